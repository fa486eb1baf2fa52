/* A log and who serves it, as this client sees it: whether we are attached, in which term, and who
 * waits for it.
 *
 * Thread: the session's actor, but term and state, which anybody reads. */
#pragma once
#include "client/ledger.h"
#include "rpc/call.h"
#include <stdatomic.h>

/*     NEW --> ATTACHING ------------------------------------> ATTACHED
 *                ^   \--- it did not know us: ---> REOPENING -->  |
 *                |                                                |
 *                '---- REOPENING <--- it has started anew --------'
 *
 * A metadata target that comes back frees what nobody has open once all have attached, so opens
 * are presented before. */
struct reopening;

enum peer_stage { PEER_NEW, PEER_ATTACHING, PEER_REOPENING, PEER_ATTACHED };

/* What it has said last of its room; zeros: nothing yet. */
struct peer_space {
    _Atomic uint64_t bytes_total, bytes_free, bytes_available, files_total, files_free;
};

struct peer {
    struct log_id log;
    uint8_t kind;                /* enum target_kind */
    atomic_bool is_lost;         /* for good: whatever is asked of it answers -ERR_TARGET_LOST */
    _Atomic uint64_t term;       /* as told by its last attachment */
    struct log_life life;        /* likewise */
    _Atomic uint64_t generation; /* attachments that succeeded */
    _Atomic uint64_t over_term;  /* our opens are presented to a later one, or were */
    struct ledger ledger;        /* what we were answered that may not be on disk yet */
    struct peer_space space;
    enum peer_stage stage;
    bool attached;        /* in this round of mending */
    bool presented;       /* likewise: the opens */
    uint64_t mended_term; /* that this round of mending began with */
    int present_result;
    uint64_t present_term; /* of the server, to which they were presented; 0: there were none */
    uint32_t shards_left;  /* that have not presented theirs yet */
    struct reopening *reopenings; /* one a shard; NULL: nothing was ever presented */
    struct list stalled;          /* errands that go on when we are attached */
    struct call call;
    uint8_t ticket[WIRE_TICKET_BYTES_MAX]; /* of its attachment: the session may get another one */
    size_t ticket_bytes;
    struct call floor_call;  /* floor.c */
    uint64_t floor;          /* that it tells */
    uint64_t floor_position; /* of its record there; 0: not known */
    uint64_t floor_wait_ns;  /* until when that may come to be on disk */
    uint64_t floor_generation;
    uint64_t told_generation; /* when it was told last */
    bool telling;
    bool was_tried;     /* it may know us, whatever it has answered */
    bool asks_only;     /* and that only to hear whether it knows us */
    uint64_t return_ns; /* it has started anew, and may wait for us: not before; 0: it does not */
};
