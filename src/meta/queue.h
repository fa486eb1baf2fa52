/* Orders to OSTs: delete or cut the chunks of an inode. Each is a Q row, made in the record that
 * makes the data unreachable, and leaves only when that record is on disk.
 *
 *     Q row --synced--> job: one OST after the other, in bounded steps --> waits for their syncs
 *     OST: a sync of what it has done for all orders --> Q row deleted, CUT_PENDING cleared
 *
 * An OST that is away is passed over. An order that has passed over one is put aside once the
 * others have done their part: its job ends, its row stays. When an OST returns, the rows that were
 * put aside are gone through again. Where all jobs are taken, those that wait for one that is away
 * are put aside likewise. So what is away holds up its own orders only. So does what an OST refuses
 * by an error that lasts, of a file whose chunks are not as its row has it, say: it is put aside,
 * and tried again each minute.
 *
 * An order may be carried out more than once (a restart begins it anew), which does no harm.
 *
 * Thread: the group's step.  Memory: ORDER_JOBS calls, taken at start. */
#pragma once
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "meta/group_format.h"
#include "meta/ost_peers.h"
#include "rpc/call.h"

#define ORDER_REFUSED_NS (60 * NS_PER_S)
enum { ORDER_JOBS = 64, ORDER_OWED_WORDS = OST_PEERS_MAX / 64 };

struct group;

enum order_stage {
    ORDER_IDLE,
    ORDER_SEND,    /* to the OST of chain_index, as soon as possible */
    ORDER_ASKING,  /* its answer is awaited */
    ORDER_WAITING, /* all OSTs have done it; all must have it on disk */
    ORDER_ENDING,  /* the row can go */
};

struct order_job {
    struct call call;
    struct order_queue *queue;
    enum order_stage stage;
    struct kv_key key;
    struct order_row row;
    struct ino ino;
    struct ost_peer *peer; /* that was asked last */
    uint32_t chain_index;
    uint64_t resume_chunk;
    uint64_t number;                 /* from WAITING on */
    uint64_t looked;                 /* of the queue's answers, when it was looked at last */
    bool again;                      /* an OST may have lost what it has done of it */
    bool passed;                     /* an OST was passed over */
    bool refused;                    /* an OST has answered that it can't be done */
    uint64_t owed[ORDER_OWED_WORDS]; /* by index: OSTs that may have a part of it not on disk */
};

struct order_queue {
    struct group *group;
    struct order_job *jobs;
    struct kv_cursor cursor; /* behind the last row taken */
    struct kv_key seen;      /* the highest row ever taken */
    struct kv_key aside_key; /* the lowest row that was put aside, if any was */
    bool aside;
    bool rescans; /* the cursor goes through rows that were put aside */
    uint32_t busy_count;
    uint64_t number;  /* of the order that has come to WAITING last */
    uint64_t answers; /* to syncs, so far: without another one no job that waits has moved */
    uint64_t done_count;
    bool looking;           /* there may be rows behind the cursor */
    uint64_t next_position; /* of the record that the first of them waits for */
    uint64_t refused_ns;    /* when an order was put aside as refused, the first of them; 0: none */
    bool urgent;            /* somebody waits for an order */
    bool ticked;
};

MUST_CHECK int queue_init(struct order_queue *queue, struct group *group);
void queue_deinit(struct order_queue *queue);
/* An order row was made. */
void queue_order_made(struct order_queue *queue);
void queue_step(struct group *group);
/* For a stop: the calls under way, and having them end soon. */
uint32_t queue_calls_out(const struct group *group);
void queue_cancel(struct group *group);
