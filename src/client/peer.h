/* A server as this client sees it: whether we are attached, in which term, and who waits for it.
 *
 * Thread: the session's actor, but term and state, which anybody reads. */
#pragma once
#include "rpc/call.h"
#include <stdatomic.h>

/*     NEW --> ATTACHING ----------------------------------------------------> ATTACHED
 *              ^     ^ `-- it wants our opens --> REOPENING --> ATTACHING -->  |
 *              |     `---- it has started anew meanwhile <----------'          |
 *              `----------------- it has started anew <------------------------'
 *
 * A metadata target that comes back frees what nobody has open once all have attached, so opens
 * are presented before, all in one term. */
enum peer_stage { PEER_NEW, PEER_ATTACHING, PEER_REOPENING, PEER_ATTACHED };

struct peer {
    struct target_id id;
    uint8_t kind;                /* enum target_kind */
    _Atomic uint64_t term;       /* as told by its last attachment */
    _Atomic uint64_t generation; /* attachments that succeeded */
    enum peer_stage stage;
    int present_result;
    uint32_t shards_left; /* that have not presented theirs yet */
    struct list stalled;  /* errands that go on when we are attached */
    struct call call;
};
