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
 * prove to each other that they have it. Who has been proven may go on without TLS: nothing of a
 * record is taken that is not asked for, so what tls_open left in `in` follows the last record.
 *
 * Any bytes may come. Thread: one at a time for each machine, any for contexts. Memory: a machine
 * keeps TLS_OUT_BYTES and about 40 KiB of OpenSSL's. */
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

/* Goes on with the handshake, and decrypts into the parts, each from its size up to its capacity,
 * as long as there is room and whole records are there; takes the bytes that it has read off the
 * front of `in`: all, or what is left when the parts are full. *ret_opened: how many bytes it put
 * there, also 0. -ERR_CLOSED: the peer has ended it in order; -ERR_ACCESS: refused, or the peer's
 * proof is none; -ERR_MALFORMED: what comes is no TLS, or was changed. */
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
/* Who the peer of a server is; of a client, who it says it is itself. When it is proven. */
const struct identity *tls_identity(const struct tls *tls);
/* Why it has failed, or 0, and in words. */
int tls_error(const struct tls *tls, const char **ret_words);
