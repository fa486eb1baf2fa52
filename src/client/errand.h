/* A call that is sent again as long as its error says that this helps.
 *
 *     errand_start -> call -> answered: success or FAIL ---------------------------> done
 *                       ^         REFRESH           wait for the newest map --------+
 *                       |         REOPEN            wait until attached again ------+
 *                       +----- the same sequence number, until the deadline <-------+
 *
 * -ERR_BAD_CAPABILITY is given to done: what to do about it the file knows. An errand always runs
 * in the steps of its shard. Memory: the user's, who fills the request, bulk and checksums of the
 * call between errand_init and errand_start; kept until done. */
#pragma once
#include "client/peer.h"

enum errand_route { ERRAND_TO_SLOT, ERRAND_TO_CHUNK, ERRAND_TO_PEER };

struct shard;

struct errand {
    struct message message; /* back to the shard, or to the session */
    struct list_node node;  /* in a peer's stalled ones, or those that wait for a map */
    struct shard *shard;
    void (*done)(struct errand *errand);
    enum errand_route route;
    bool plain;                  /* done gets every error: it is part of the mending */
    const struct layout *layout; /* of the chunk's file */
    uint64_t chunk;
    struct peer *peer;    /* where it was sent last */
    uint64_t generation;  /* of the peer's attachment, when sent */
    uint64_t map_version; /* that it was sent by */
    struct call call;
};

/* Makes the errand ready to have its call filled. */
void errand_init(struct errand *errand, struct shard *shard, void (*done)(struct errand *errand),
                 uint64_t deadline_ns);
/* From the shard's step, or, while the errand is in nobody else's hands, from anywhere: done may
 * have run when these return. */
void errand_start_slot(struct errand *errand, uint16_t opcode, struct slot slot);
/* To who holds the chunk of a file with that layout, which stays until done. */
void errand_start_chunk(struct errand *errand, uint16_t opcode, struct slot slot,
                        const struct layout *layout, uint64_t chunk);
void errand_start_peer(struct errand *errand, uint16_t opcode, struct peer *peer);
/* The answer is of a term that is over: our opens are presented to a later one, or are on their way
 * there. What it says of a file may be lost, and looks newer than what is so now; what it opened or
 * closed has not been counted, and must be asked for anew. */
bool errand_is_over(const struct errand *errand);
/* In the shard's step, when the session has posted it back: goes on when call.result is 0, ends
 * with it otherwise. */
void errand_return(struct errand *errand);
