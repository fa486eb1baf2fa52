/* The queue's jobs. */
#include "meta/queue.h"
#include "base/bug.h"
#include "meta/inode.h"
#include "meta/queue_internal.h"
#include "meta/usage.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct kv_need order_need = {.rows = 2, .record_bytes = 400};

int queue_init(struct order_queue *queue, struct group *group) {
    struct kv_key from = key_owner(ROW_ORDER, 0, 0, 0);
    struct kv_key to = key_owner(ROW_ORDER, UINT64_MAX, UINT32_MAX, UINT64_MAX);

    queue->group = group;
    queue->looking = true;
    queue->jobs = calloc(ORDER_JOBS, sizeof *queue->jobs);
    if (!queue->jobs) {
        return -ERR_NO_MEMORY;
    }
    kv_cursor_init(&queue->cursor, &from, &to);
    return 0;
}

void queue_deinit(struct order_queue *queue) {
    free(queue->jobs);
    *queue = (struct order_queue){0};
}

void queue_order_made(struct order_queue *queue) {
    queue->looking = true;
}

static void job_next_target(struct order_job *job) {
    job->chain_index++;
    job->resume_chunk = 0;
    job->stage = ORDER_SEND;
}

/* One line a second at most, as other damage. */
static void job_tell(struct group *group, const struct order_job *job, const char *what) {
    const struct kv_options *options = &group->options.kv;
    const char *kind = job->row.kind == ORDER_CUT ? "cut" : "deletion";
    char line[256];

    if (!options->log || group->now_ns < group->damage_quiet_ns) {
        return;
    }
    group->damage_quiet_ns = group->now_ns + NS_PER_S;
    (void)snprintf(line, sizeof line,
                   "target %u: the %s of the chunks of inode %" PRIu64
                   " %s: run `shoal fsck DIR`, it names all that is damaged",
                   (unsigned)group->options.target.value, kind, job->ino.value, what);
    options->log(options->log_context, line);
}

/* It would be answered so the next time, too. */
static bool is_refusal(int result) {
    return result == -ERR_INVALID || result == -ERR_MALFORMED || result == -ERR_NOT_SUPPORTED ||
           result == -ERR_CORRUPT;
}

/* Asked again and again it would keep the job from orders that can be done. */
static void job_is_refused(struct group *group, struct order_job *job) {
    char what[128];

    (void)snprintf(what, sizeof what, "is put aside, a storage target has answered: %s",
                   err_text(job->call.result));
    job_tell(group, job, what);
    job->refused = true;
    job->call.result = 0;
    job_next_target(job);
}

static void job_answered(struct call *call) {
    struct order_job *job = call->context;
    struct group *group = job->queue->group;
    bool cut = job->row.kind == ORDER_CUT;
    bool end = cut ? call->reply.chunk_cut.end : call->reply.chunk_delete.end;
    uint64_t resume =
        cut ? call->reply.chunk_cut.resume_chunk : call->reply.chunk_delete.resume_chunk;
    uint64_t position = cut ? call->reply.chunk_cut.position : call->reply.chunk_delete.position;
    uint64_t term = cut ? call->reply.chunk_cut.term : call->reply.chunk_delete.term;

    assert(job->stage == ORDER_ASKING && job->queue->busy_count > 0);
    assert(call->header.log.value == job->peer->log.value);
    bool refused = is_refusal(call->result);
    ost_peer_answered(group, job->peer, refused ? 0 : call->result);
    /* It may be known to the process before the group's map says so (node/local_member.c). */
    bool lost = call->result == -ERR_TARGET_LOST && !BUG(LOST_WAITS);
    if (call->result == 0) {
        order_owe(job, job->peer, term, position);
        job->resume_chunk = resume;
    }
    job->stage = ORDER_SEND;
    if (job->again) {
        order_begin_anew(job);
    } else if (lost || (call->result == 0 && end)) {
        call->result = 0;
        job_next_target(job);
    } else if (refused) {
        job_is_refused(group, job);
    }
}

static void job_send(struct group *group, struct order_job *job) {
    struct call *call = &job->call;

    assert(job->stage == ORDER_SEND && !job->again);
    call->header.log = job->peer->log;
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
    ost_peer_asked(group, job->peer);
    call_start(group->rpc, call);
}

static void job_idle(struct order_queue *queue, struct order_job *job) {
    assert(job->stage != ORDER_IDLE && job->stage != ORDER_ASKING && queue->busy_count > 0);
    job->stage = ORDER_IDLE;
    queue->busy_count--;
}

static void job_put_aside(struct group *group, struct order_job *job) {
    order_row_put_aside(&group->orders, &job->key);
    job_idle(&group->orders, job);
    group->counters.totals.orders_put_aside++;
    group_again(group); /* There is room for the next one. */
}

/* One that was passed over may have returned since; or it is lost, so that none is away any more
 * whose return would have the order looked at again. */
static bool job_may_go_on(struct group *group, const struct order_job *job,
                          const struct pool_version *pool, uint32_t width) {
    struct layout layout = order_layout(&job->row);
    bool any_away = false;

    for (uint32_t i = 0; i < width; i++) {
        const struct map_target *target = ost_of(group, &layout, pool, i);
        const struct ost_peer *peer = target ? ost_peer_get(&group->ost_peers, target->log) : NULL;
        bool away = peer && ost_peer_is_away(peer);

        if (peer && !away && !order_is_owed_by(job, peer)) {
            return true;
        }
        any_away = any_away || away;
    }
    return !any_away;
}

/* Behind the last OST. */
static void job_is_told(struct group *group, struct order_job *job, const struct pool_version *pool,
                        uint32_t width) {
    if (job->refused) {
        group->orders.refused_ns =
            group->orders.refused_ns ? group->orders.refused_ns : group->now_ns;
        job_put_aside(group, job);
    } else if (!job->passed) {
        job->stage = ORDER_WAITING;
        job->looked = UINT64_MAX;
        job->number = ++group->orders.number;
    } else if (job_may_go_on(group, job, pool, width)) {
        order_begin_anew(job);
    } else {
        job_put_aside(group, job);
    }
}

/* After an error the same question is asked again, but not before a tick. */
static void job_step(struct group *group, struct order_job *job) {
    struct layout layout = order_layout(&job->row);
    struct pool_version pool;
    uint32_t width;

    if (!order_pool(group, &job->row, &pool, &width)) {
        return;
    }
    while (job->stage == ORDER_SEND) {
        if (job->chain_index >= width) {
            job_is_told(group, job, &pool, width);
            continue;
        }
        const struct map_target *target = ost_of(group, &layout, &pool, job->chain_index);
        struct ost_peer *peer = target ? ost_peer_get(&group->ost_peers, target->log) : NULL;
        if (!peer || ost_peer_is_away(peer)) {
            job->passed = job->passed || peer;
            job->call.result = 0;
            job_next_target(job);
        } else if (job->call.result < 0 && !group->orders.ticked) {
            return;
        } else {
            job->call.result = 0;
            job->peer = peer;
            job_send(group, job);
        }
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
    if (usage_is_due(transaction, job->ino, &changed, NULL)) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_COUNT, .ino = job->ino});
    }
    return INODE_PATCH(transaction, job->ino, &changed, flags, nlink);
}

static void job_end(struct group *group, struct order_job *job) {
    struct transaction transaction;

    if (transaction_begin(&transaction, group, KV_CLASS_BACKGROUND, &order_need) < 0) {
        return;
    }
    int r = job->row.kind == ORDER_CUT ? cut_done(&transaction, job) : 0;
    bool damaged = r == -ERR_CORRUPT; /* No file can be made longer by that row. */
    r = r < 0 && !damaged ? r : transaction_delete(&transaction, &job->key);
    if (r < 0) {
        transaction_abort(&transaction);
        return;
    }
    (void)transaction_commit(&transaction);
    assert(job->stage == ORDER_ENDING);
    if (damaged) {
        job_tell(group, job, "is done, but the inode is damaged");
    }
    job_idle(&group->orders, job);
    group->orders.done_count++;
    group->counters.totals.orders_done++;
    group->moved = true;
}

/* A call to an OST that is away ends soon, and its job then passes it over: others may be behind
 * it. Where all jobs are taken, those that wait for its sync make room. */
static void jobs_make_room(struct group *group) {
    struct order_queue *queue = &group->orders;
    bool is_full = queue->busy_count == ORDER_JOBS && queue->looking;

    if (!queue->ticked) {
        return;
    }
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        struct order_job *job = &queue->jobs[i];

        if (is_full && job->stage == ORDER_WAITING && order_waits_for_away(group, job)) {
            job_put_aside(group, job);
        } else if (job->stage == ORDER_ASKING && ost_peer_is_away(job->peer)) {
            call_cancel(&job->call);
        }
    }
}

struct order_counts {
    uint32_t busy, waiting, going;
};

static void job_run(struct group *group, struct order_job *job, struct order_counts *counts) {
    if (job->stage == ORDER_SEND) {
        job_step(group, job);
    }
    if (job->stage == ORDER_WAITING && order_is_synced(group, job)) {
        job->stage = ORDER_ENDING;
    }
    if (job->stage == ORDER_ENDING) {
        job_end(group, job);
    }
    counts->busy += job->stage != ORDER_IDLE;
    counts->waiting += job->stage == ORDER_WAITING;
    counts->going +=
        job->stage == ORDER_SEND || (job->stage == ORDER_ASKING && !ost_peer_is_away(job->peer));
}

/* What has refused them may have been mended, or be of a newer version. */
static bool refused_are_due(const struct group *group) {
    const struct order_queue *queue = &group->orders;

    return queue->ticked && queue->refused_ns > 0 &&
           group->now_ns - queue->refused_ns >= ORDER_REFUSED_NS;
}

void queue_step(struct group *group) {
    struct order_queue *queue = &group->orders;
    struct order_counts counts = {0};

    if (!group->rpc) {
        return;
    }
    if (refused_are_due(group)) {
        queue->refused_ns = 0;
        group->ost_peers.news = true;
    }
    if (group->ost_peers.news) {
        order_rows_rescan(group);
    }
    jobs_make_room(group);
    order_rows_take(group);
    for (uint32_t i = 0; queue->busy_count > 0 && i < ORDER_JOBS; i++) {
        job_run(group, &queue->jobs[i], &counts);
    }
    assert(counts.busy == queue->busy_count);
    order_syncs_step(group, counts.waiting, counts.busy == ORDER_JOBS && counts.going == 0);
    queue->ticked = false;
}

uint32_t queue_calls_out(const struct group *group) {
    uint32_t count = order_syncs_out(group);

    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        count += group->orders.jobs[i].stage == ORDER_ASKING;
    }
    return count;
}

void queue_cancel(struct group *group) {
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        if (group->orders.jobs[i].stage == ORDER_ASKING) {
            call_cancel(&group->orders.jobs[i].call);
        }
    }
    order_syncs_cancel(group);
}
