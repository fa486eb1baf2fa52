/* The queue's jobs. */
#include "meta/queue.h"
#include "base/bug.h"
#include "layout/map_lost.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include <assert.h>
#include <stdlib.h>

enum { ORDERS_ENDED_A_STEP = 64 };
static const struct kv_need order_need = {.rows = 2, .record_bytes = 400};

int queue_init(struct order_queue *queue, struct group *group) {
    struct kv_key from = key_owner(ROW_ORDER, 0, 0, 0);
    struct kv_key to = key_owner(ROW_ORDER, UINT64_MAX, UINT32_MAX, UINT64_MAX);

    queue->group = group;
    queue->looking = true;
    queue->jobs = calloc(ORDER_JOBS, sizeof *queue->jobs);
    queue->syncs = calloc(ORDER_SYNCS, sizeof *queue->syncs);
    queue->targets = calloc(ORDER_TARGETS, sizeof *queue->targets);
    if (!queue->jobs || !queue->syncs || !queue->targets) {
        return -ERR_NO_MEMORY;
    }
    kv_cursor_init(&queue->cursor, &from, &to);
    return 0;
}

void queue_deinit(struct order_queue *queue) {
    free(queue->jobs);
    free(queue->syncs);
    free(queue->targets);
    *queue = (struct order_queue){0};
}

void queue_order_made(struct order_queue *queue) {
    queue->looking = true;
}

static bool order_may_leave(const struct group *group, uint64_t position) {
    return position <= kv_synced_position(group->kv) || BUG(EARLY_FREE);
}

/* The OST at the head of the order's i-th chain; NULL when the map has none any more, or it is
 * lost, which counts as done. */
static const struct map_target *target_of(const struct group *group, const struct order_job *job,
                                          const struct pool_version *pool) {
    struct layout layout = order_layout(&job->row);
    uint32_t chain_id = layout_chain_at(&layout, pool, job->chain_index);
    const struct map_chain *chain = cluster_map_chain(group->map, chain_id);

    if (!chain || (cluster_map_chain_is_lost(group->map, chain_id) && !BUG(LOST_WAITS))) {
        return NULL;
    }
    return cluster_map_target(group->map, chain->members[0]);
}

/* False: the map does not name the order's pool version: a newer one is waited for. */
static bool pool_of(const struct group *group, const struct order_job *job,
                    struct pool_version *ret_pool, uint32_t *ret_width) {
    struct layout layout = order_layout(&job->row);
    bool named = cluster_map_pool(group->map, layout.pool_version, ret_pool);

    *ret_width = named ? layout_width(&layout, ret_pool) : 0;
    return named;
}

static void job_next_target(struct order_job *job) {
    job->chain_index++;
    job->resume_chunk = 0;
    job->stage = ORDER_SEND;
}

/* An OST has started anew before a sync point was heard of, and may have lost what it had done:
 * orders are given again from their beginning. They change nothing where they were done. */
static void orders_again(struct order_queue *queue, struct order_target *target) {
    target->term = 0;
    target->position = 0;
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        struct order_job *job = &queue->jobs[i];

        job->again = job->stage == ORDER_ASKING;
        if (job->stage == ORDER_SEND || job->stage == ORDER_WAITING) {
            job->chain_index = 0;
            job->resume_chunk = 0;
            job->stage = ORDER_SEND;
        }
    }
}

/* The table is never full: it has twice as many places as a map may have targets. */
static struct order_target *target_get(struct order_queue *queue, struct log_id log) {
    for (uint64_t i = log.value;; i++) {
        struct order_target *target = &queue->targets[i % ORDER_TARGETS];

        assert(i - log.value < ORDER_TARGETS);

        if (target->log.value == 0) {
            target->log = log;
        }
        if (target->log.value == log.value) {
            return target;
        }
    }
}

static void job_begin_anew(struct order_job *job) {
    job->again = false;
    job->chain_index = 0;
    job->resume_chunk = 0;
}

static void job_answered(struct call *call) {
    struct order_job *job = call->context;
    struct order_queue *queue = job->queue;
    bool cut = job->row.kind == ORDER_CUT;
    bool end = cut ? call->reply.chunk_cut.end : call->reply.chunk_delete.end;
    uint64_t resume =
        cut ? call->reply.chunk_cut.resume_chunk : call->reply.chunk_delete.resume_chunk;
    uint64_t position = cut ? call->reply.chunk_cut.position : call->reply.chunk_delete.position;

    assert(job->stage == ORDER_ASKING && queue->busy_count > 0);
    job->stage = ORDER_SEND;
    if (call->result < 0) {
        if (job->again) {
            job_begin_anew(job);
        }
        return;
    }
    uint64_t term = cut ? call->reply.chunk_cut.term : call->reply.chunk_delete.term;
    struct order_target *target = target_get(queue, call->header.log);
    if (target->term != 0 && target->term != term) {
        job->stage = ORDER_ASKING;
        orders_again(queue, target);
        job->stage = ORDER_SEND;
    }
    target->term = term;
    target->position = MAX(target->position, position);
    target->dirty = true;
    job->resume_chunk = resume;
    if (job->again) {
        job_begin_anew(job);
    } else if (end) {
        job_next_target(job);
    }
}

static void job_send(struct group *group, struct order_job *job, const struct map_target *target) {
    struct call *call = &job->call;

    assert(job->stage == ORDER_SEND && !job->again);
    call->header.log = target->log;
    call->header.slot = ino_slot(job->ino);
    call->origin = &group->actor;
    call->done = job_answered;
    call->context = job;
    if (job->row.kind == ORDER_CUT) {
        call->header.opcode = OP_CHUNK_CUT;
        call->request.chunk_cut =
            (struct chunk_cut_request){.ino = job->ino,
                                       .generation = job->row.chunk_generation,
                                       .chunk_bytes = job->row.chunk_bytes,
                                       .truncate_seq = job->row.truncate_seq,
                                       .truncate_size = job->row.truncate_size,
                                       .resume_chunk = job->resume_chunk};
    } else {
        call->header.opcode = OP_CHUNK_DELETE;
        call->request.chunk_delete =
            (struct chunk_delete_request){.ino = job->ino,
                                          .generation = job->row.chunk_generation,
                                          .resume_chunk = job->resume_chunk};
    }
    job->stage = ORDER_ASKING;
    call_start(group->rpc, call);
}

/* After an error the same question is asked again, but not before a tick. */
static void job_step(struct group *group, struct order_job *job) {
    struct order_queue *queue = &group->orders;
    bool failed = job->call.result < 0;
    struct pool_version pool;
    uint32_t width;

    if ((failed && !queue->ticked) || !pool_of(group, job, &pool, &width)) {
        return;
    }
    while (job->stage == ORDER_SEND) {
        if (job->chain_index >= width) {
            job->stage = ORDER_WAITING;
            job->round = queue->rounds_begun + 1;
            return;
        }
        const struct map_target *target = target_of(group, job, &pool);
        if (target) {
            job->call.result = 0;
            job_send(group, job, target);
        } else {
            job_next_target(job);
        }
    }
}

/* Takes rows into idle jobs, as far as their records are on disk. */
static void rows_take(struct group *group) {
    struct order_queue *queue = &group->orders;
    uint32_t place = 0;

    if (!order_may_leave(group, queue->next_position)) {
        return;
    }
    while (queue->looking && queue->busy_count < ORDER_JOBS) {
        struct kv_cursor cursor = queue->cursor;
        const struct order_row *row;
        struct bytes value;

        int r = kv_next(group->kv, &cursor, &value);
        if (r == -ERR_NOT_FOUND) {
            queue->looking = false;
        }
        if (r == -ERR_PENDING) {
            queue->cursor = cursor; /* behind deleted ones */
        }
        if (r < 0) {
            return;
        }
        if (order_row_check(value, &row) < 0) {
            queue->cursor = cursor; /* a damaged row stays, for fsck to name */
            continue;
        }
        struct kv_key_fields fields = kv_key_split(&cursor.key);
        queue->next_position = fields.id;
        if (!order_may_leave(group, fields.id)) {
            return;
        }
        while (queue->jobs[place].stage != ORDER_IDLE) {
            place++;
            assert(place < ORDER_JOBS); /* busy_count says that one is idle. */
        }
        struct order_job *job = &queue->jobs[place];
        job->queue = queue;
        job->stage = ORDER_SEND;
        job->key = cursor.key;
        job->row = *row;
        job->ino.value = fields.index;
        job->chain_index = 0;
        job->resume_chunk = 0;
        job->again = false;
        job->call.result = 0;
        queue->busy_count++;
        queue->cursor = cursor;
    }
}

/* A cut that all OSTs have done no longer stands in the way of a longer file. */
static int cut_done(struct transaction *transaction, const struct order_job *job) {
    const struct inode_row *row;

    int r = inode_get(transaction, job->ino, &row);
    if (r < 0 || row->truncate_seq != job->row.truncate_seq) {
        return r == -ERR_STALE ? 0 : r;
    }
    struct inode_row changed = *row;
    changed.flags &= (uint16_t)~INODE_CUT_PENDING;
    return INODE_PATCH(transaction, job->ino, &changed, flags, nlink);
}

static void job_end(struct group *group, struct order_job *job) {
    struct transaction transaction;

    if (transaction_begin(&transaction, group, KV_CLASS_BACKGROUND, &order_need) < 0) {
        return;
    }
    int r = job->row.kind == ORDER_CUT ? cut_done(&transaction, job) : 0;
    r = r < 0 ? r : transaction_delete(&transaction, &job->key);
    if (r < 0) {
        transaction_abort(&transaction);
        return;
    }
    assert(job->stage == ORDER_ENDING && job->round <= group->orders.rounds_ended);
    (void)transaction_commit(&transaction);
    job->stage = ORDER_IDLE;
    group->orders.busy_count--;
    group->orders.done_count++;
    group->counters.totals.orders_done++;
    group->moved = true;
}

static void round_look(struct order_queue *queue) {
    for (uint32_t i = 0; i < ORDER_TARGETS; i++) {
        if (queue->targets[i].in_round) {
            return;
        }
    }
    queue->rounds_ended = queue->rounds_begun;
}

static void sync_answered(struct call *call) {
    struct order_sync *sync = call->context;

    assert(sync->busy && sync->target->in_round);
    sync->busy = false;
    if (call->result == -ERR_STALE_TERM) {
        orders_again(sync->queue, sync->target);
    } else if (call->result < 0 && call->result != -ERR_TARGET_LOST) {
        return; /* still in the round: asked again at a tick */
    }
    sync->target->in_round = false;
    round_look(sync->queue);
}

/* NULL: all are out, or one is out to this OST already. Of two, an answer to the one would end the
 * round, and the other, left over from it, be taken for an answer to the next, of later orders. */
static struct order_sync *sync_find(struct order_queue *queue, const struct order_target *target) {
    struct order_sync *idle = NULL;

    for (uint32_t i = 0; i < ORDER_SYNCS; i++) {
        struct order_sync *sync = &queue->syncs[i];

        if (sync->busy && sync->target == target) {
            return NULL;
        }
        if (!sync->busy && !idle) {
            idle = sync;
        }
    }
    return idle;
}

static void sync_send(struct group *group, struct order_target *target) {
    struct order_queue *queue = &group->orders;
    struct order_sync *sync = sync_find(queue, target);

    if (!sync) {
        return;
    }
    sync->queue = queue;
    sync->busy = true;
    sync->target = target;
    sync->call.header.opcode = OP_SYNC;
    sync->call.header.log = target->log;
    sync->call.origin = &group->actor;
    sync->call.done = sync_answered;
    sync->call.context = sync;
    sync->call.header.term = target->term;
    sync->call.request.sync.position = target->position;
    call_start(group->rpc, &sync->call);
}

/* Begins a round when there is reason to, and asks the OSTs of the round that runs. */
static void round_step(struct group *group, uint32_t waiting_count) {
    struct order_queue *queue = &group->orders;
    bool running = queue->rounds_begun != queue->rounds_ended;
    bool crowded = waiting_count > 0 && waiting_count == queue->busy_count;

    assert(queue->rounds_begun - queue->rounds_ended <= 1);
    if (!running && waiting_count > 0 &&
        (queue->ticked || queue->urgent || (crowded && queue->busy_count == ORDER_JOBS))) {
        queue->rounds_begun++;
        queue->urgent = false;
        running = true;
        for (uint32_t i = 0; i < ORDER_TARGETS; i++) {
            queue->targets[i].in_round = queue->targets[i].dirty;
            queue->targets[i].dirty = false;
        }
        round_look(queue);
    }
    for (uint32_t i = 0; running && i < ORDER_TARGETS; i++) {
        if (queue->targets[i].in_round) {
            sync_send(group, &queue->targets[i]);
        }
    }
}

void queue_step(struct group *group) {
    struct order_queue *queue = &group->orders;
    uint32_t waiting_count = 0;
    uint32_t busy_count = 0;

    if (!group->rpc) {
        return;
    }
    rows_take(group);
    if (queue->busy_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        struct order_job *job = &queue->jobs[i];

        if (job->stage == ORDER_SEND) {
            job_step(group, job);
        }
        if (job->stage == ORDER_WAITING && job->round <= queue->rounds_ended) {
            job->stage = ORDER_ENDING;
        }
        if (job->stage == ORDER_ENDING) {
            job_end(group, job);
        }
        waiting_count += job->stage == ORDER_WAITING;
        busy_count += job->stage != ORDER_IDLE;
    }
    assert(busy_count == queue->busy_count);
    round_step(group, waiting_count);
    queue->ticked = false;
}

uint32_t queue_calls_out(const struct order_queue *queue) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        count += queue->jobs[i].stage == ORDER_ASKING;
    }
    for (uint32_t i = 0; i < ORDER_SYNCS; i++) {
        count += queue->syncs[i].busy;
    }
    return count;
}

void queue_cancel(struct order_queue *queue) {
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        if (queue->jobs[i].stage == ORDER_ASKING) {
            call_cancel(&queue->jobs[i].call);
        }
    }
    for (uint32_t i = 0; i < ORDER_SYNCS; i++) {
        if (queue->syncs[i].busy) {
            call_cancel(&queue->syncs[i].call);
        }
    }
}
