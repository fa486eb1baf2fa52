/* One end of TLS 1.3 (RFC 8446) as a machine over memory, with pre-shared keys only: no
 * certificates, no session tickets, no early data; each handshake has an ephemeral exchange, so a
 * key that is stolen later opens nothing that was recorded before.
 *
 *     bytes from the peer --> tls_open ---> plaintext
 *     bytes for the peer <--- tls_seal <--- plaintext         tls_pending, tls_sent
 *
 *     HANDSHAKE --> PROVEN --> ENDED (the peer has closed), or FAILED; tls_error says why
 *
 * Which key it is, the client names as IDENTITY@KEY (key_ring.h); the server derives it, so the two
 * prove to each other that they have it. Who has been proven may go on without TLS: one call of
 * tls_open opens one record and takes nothing behind it, so when its last byte has been read, what
 * was left in `in` is plain from its first byte.
 *
 * The key of each direction is changed after 2^23 records (RFC 8446, 5.5).
 *
 * Any bytes may come. Thread: one at a time for each machine, any for contexts. Memory: a machine
 * keeps TLS_OUT_BYTES, TLS_RECORD_BYTES and about 16 KiB of OpenSSL's, and 33 KiB more while a
 * record is under way; before it is proven a peer's long hello may take 128 KiB more. */
#pragma once
#include "keys/key_ring.h"

enum { TLS_RECORD_BYTES = 16384, TLS_OUT_BYTES = 72 << 10 };

/* What the links of a process share. */
struct tls_context;

/* Takes who has a key that is derived from one of the ring's; the ring is borrowed.
 * -ERR_NO_MEMORY. */
MUST_CHECK int tls_context_serve(const struct key_ring *ring, struct tls_context **ret_context);
/* Proves itself by the keys of a file, copied. Likewise. */
MUST_CHECK int tls_context_call(const struct key_file *file, struct tls_context **ret_context);
/* After its machines. Takes NULL. */
void tls_context_free(struct tls_context *context);

struct tls;

/* attempt: of a client, which counts: it chooses among the keys of its file in turns, as during a
 * rotation not everybody may know the newest. */
MUST_CHECK int tls_new(struct tls_context *context, uint32_t attempt, struct tls **ret_tls);
/* Takes NULL. */
void tls_free(struct tls *tls);

/* Goes on with the handshake, and decrypts one record into the parts, each from its size up to its
 * capacity; what does not fit comes with the next call, which needs no bytes. Takes what it has
 * read off the front of `in`: bytes of this record, also where it is not whole yet. Call it again
 * until it opens nothing. *ret_opened: how many bytes it put there, also 0. -ERR_CLOSED: the peer
 * has ended it in order; -ERR_ACCESS: refused, or the peer's proof is none; -ERR_MALFORMED: what
 * comes is no TLS, or was changed. */
MUST_CHECK int tls_open(struct tls *tls, struct bytes *in, struct buffer *parts, size_t part_count,
                        size_t *ret_opened);
/* Puts the parts, in order, into records, as far as there is room; *ret_sealed is how many of their
 * bytes that were. 0 before it is proven. The errors of tls_open. */
MUST_CHECK int tls_seal(struct tls *tls, const struct bytes *parts, size_t part_count,
                        size_t *ret_sealed);
/* What the peer must get next; and that it has got so much of it. */
struct bytes tls_pending(const struct tls *tls);
void tls_sent(struct tls *tls, size_t bytes);

bool tls_is_proven(const struct tls *tls);
/* Who the peer of a server is; of a client, who it says it is itself. Only when it is proven. */
const struct identity *tls_identity(const struct tls *tls);
/* Why it has failed, or 0, and in words. */
int tls_error(const struct tls *tls, const char **ret_words);

/* After so many records, at least 1, what is sealed gets a new key. For tests. */
void tls_set_records_per_key(struct tls *tls, uint64_t record_count);
