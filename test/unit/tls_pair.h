/* Two ends of TLS beside each other, with the bytes between them at hand.
 *
 * Memory: of the pair, freed by tls_pair_deinit. Thread: one. */
#pragma once
#include "keys/tls.h"

enum { TLS_PAIR_BYTES = 4 << 20, TLS_WHOLE = TLS_PAIR_BYTES };

/* What goes in and comes out at one end. The wire is never reused: all of it can be looked at. */
struct tls_end {
    struct tls *tls;
    int result;        /* the first failure */
    uint8_t *wire;     /* that the other end has sent */
    size_t wire_begin; /* taken */
    size_t wire_limit; /* more is not delivered */
    size_t wire_end;
    uint8_t *plain; /* that was read */
    size_t plain_bytes;
    struct bytes to_send; /* that is still to be sealed */
};

struct tls_pair {
    struct tls_context *serving;
    struct tls_context *calling;
    struct tls_end client;
    struct tls_end server;
};

/* A members' file with keys made of these numbers, the newest first; 0: no second one. */
struct key_file tls_members(uint8_t newest, uint8_t older);
struct key_ring *tls_ring(const struct key_file *members);

void tls_pair_init(struct tls_pair *pair, const struct key_file *client,
                   const struct key_ring *ring);
void tls_pair_deinit(struct tls_pair *pair);
/* An end without a peer; tls may be NULL. tls_end_deinit frees it. */
void tls_end_init(struct tls_end *end, struct tls *tls);
void tls_end_deinit(struct tls_end *end);

/* "" if it has not failed. */
const char *tls_end_words(const struct tls_end *end);

/* Seals and sends to the other what is there; whether there was anything. */
bool tls_end_send(struct tls_end *end, struct tls_end *other);
/* Gives the machine up to so many bytes, and takes plaintext up to this much; whether it took or
 * gave any. */
bool tls_end_receive(struct tls_end *end, size_t wire_bytes, size_t plain_bytes);
/* Until nothing moves any more; pieces of so many bytes. */
void tls_pair_run(struct tls_pair *pair, size_t piece_bytes);
