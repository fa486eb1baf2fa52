/* Orders to OSTs: delete or cut the chunks of an inode. Each is a Q row, made in the record that
 * makes the data unreachable, and leaves only when that record is on disk.
 *
 *     Q row --synced--> job: one OST after the other, in bounded steps --> wait for a round
 *     round: every OST that took an order syncs its log --> Q row deleted, CUT_PENDING cleared
 *
 * An order may be carried out more than once (a restart begins it anew), which does no harm.
 *
 * Thread: the group's step.  Memory: ORDER_JOBS calls and a few for syncs, taken at start. */
#pragma once
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "meta/group_format.h"
#include "rpc/call.h"

enum { ORDER_JOBS = 64, ORDER_SYNCS = 16, ORDER_TARGETS = 2 * MAP_TARGETS_MAX };

struct group;

enum order_stage {
    ORDER_IDLE,
    ORDER_SEND,    /* to the OST of chain_index, as soon as possible */
    ORDER_ASKING,  /* its answer is awaited */
    ORDER_WAITING, /* all OSTs have done it; the round must end */
    ORDER_ENDING,  /* the row can go */
};

struct order_job {
    struct call call;
    struct order_queue *queue;
    enum order_stage stage;
    struct kv_key key;
    struct order_row row;
    struct ino ino;
    uint32_t chain_index;
    uint64_t resume_chunk;
    uint64_t round; /* the one that must have ended */
    bool again;     /* an OST may have lost what it has done of it */
};

struct order_sync {
    struct call call;
    struct order_queue *queue;
    bool busy;
    struct order_target *target;
};

/* What the OST of a log has done for orders and not yet synced, whatever the map says of it. */
struct order_target {
    struct log_id log; /* 0: nobody's */
    uint64_t position;
    uint64_t term; /* in which it has done it; 0: nothing yet */
    bool dirty;
    bool in_round;
};

struct order_queue {
    struct group *group;
    struct order_job *jobs;
    struct order_sync *syncs;
    struct order_target *targets; /* ORDER_TARGETS, a hash table by log; none is ever removed */
    struct kv_cursor cursor;      /* behind the last row taken */
    uint32_t busy_count;
    uint64_t rounds_begun;
    uint64_t rounds_ended;
    uint64_t done_count;
    bool looking;           /* there may be rows behind the cursor */
    uint64_t next_position; /* of the record that the first of them waits for */
    bool urgent;            /* somebody waits for an order */
    bool ticked;
};

MUST_CHECK int queue_init(struct order_queue *queue, struct group *group);
void queue_deinit(struct order_queue *queue);
/* An order row was made. */
void queue_order_made(struct order_queue *queue);
void queue_step(struct group *group);
/* For a stop: the calls under way, and having them end soon. */
uint32_t queue_calls_out(const struct order_queue *queue);
void queue_cancel(struct order_queue *queue);
