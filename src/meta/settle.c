/* The settle jobs. */
#include "meta/settle.h"
#include "base/bug.h"
#include "base/endian.h"
#include "meta/eviction.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/move.h"
#include "meta/untouched.h"
#include "meta/usage.h"
#include <assert.h>
#include <stdlib.h>

/* With a close: the writer's row, its moves as orders, and the file if that was its last. */
enum { LATER_TRIED_AT_A_TIME = 16, COUNT_JOBS = SETTLE_JOBS / 2 };
static const struct kv_need settle_need = {.rows = 16 + 2 * MOVES_MAX, .record_bytes = 3000};

int settle_init(struct settle *settle, struct group *group) {
    settle->group = group;
    settle->jobs = calloc(SETTLE_JOBS, sizeof *settle->jobs);
    list_init(&settle->later);
    for (uint32_t i = 0; i < SETTLE_BUCKETS; i++) {
        list_init(&settle->buckets[i]);
    }
    return settle->jobs ? 0 : -ERR_NO_MEMORY;
}

void settle_deinit(struct settle *settle) {
    struct list_node *node;

    while (settle->jobs && (node = list_pop_front(&settle->later))) {
        free(CONTAINER_OF(node, struct settle_later, node));
    }
    free(settle->jobs);
    *settle = (struct settle){0};
}

static struct settle_job *job_find(const struct group *group, struct ino ino) {
    const struct settle *settle = &group->settle;

    for (uint32_t i = 0; settle->busy_count > 0 && i < SETTLE_JOBS; i++) {
        if (settle->jobs[i].stage != SETTLE_IDLE && settle->jobs[i].ino.value == ino.value) {
            return &settle->jobs[i];
        }
    }
    return NULL;
}

static uint32_t bucket_of(struct ino ino) {
    return (uint32_t)(ino.value * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SETTLE_BUCKETS;
}

static struct settle_later *later_find(const struct group *group, struct ino ino) {
    const struct list *bucket = &group->settle.buckets[bucket_of(ino)];

    for (struct list_node *node = group->settle.later_count > 0 ? list_first(bucket) : NULL; node;
         node = list_next(bucket, node)) {
        struct settle_later *later = CONTAINER_OF(node, struct settle_later, bucket_node);

        if (later->ino.value == ino.value) {
            return later;
        }
    }
    return NULL;
}

bool settle_has_room(const struct group *group, struct ino ino) {
    return group->settle.busy_count < SETTLE_JOBS || job_find(group, ino) || later_find(group, ino);
}

bool settle_is_running(const struct group *group, struct ino ino) {
    const struct settle_job *job = job_find(group, ino);
    const struct settle_later *later = job ? NULL : later_find(group, ino);

    return (job && !job->counts) || (later && !later->counts);
}

bool settle_has_job(const struct group *group, struct ino ino) {
    return job_find(group, ino);
}

bool settle_is_awaited(const struct group *group, struct ino ino) {
    if (settle_is_running(group, ino)) {
        return true;
    }
    return group->sessions.evicting_count > 0 && eviction_holds(group, ino);
}

int settle_ask(struct transaction *transaction, struct ino ino) {
    struct group *group = transaction->group;

    if (!group->rpc) {
        return 0;
    }
    if (settle_has_room(group, ino)) {
        settle_begin(group, ino, NULL);
        group_again(group);
    }
    return transaction_stall(transaction);
}

static void job_counts_set(struct settle_job *job, bool counts) {
    job->settle->count_count += counts;
    job->settle->count_count -= job->counts;
    job->counts = counts;
}

static struct settle_job *job_start(struct settle *settle, struct ino ino) {
    struct settle_job *job = settle->jobs;

    assert(settle->busy_count < SETTLE_JOBS);
    while (job->stage != SETTLE_IDLE) {
        job++;
    }
    job->stage = SETTLE_READ;
    job->settle = settle;
    job->ino = ino;
    job->session = NULL;
    job->counts = false;
    job->again = false;
    job->is_read = false;
    job->is_written = false;
    job->is_unsure = false;
    job->fence_place = 0;
    job->fences_one = false;
    settle->busy_count++;
    return job;
}

/* False: there is no memory for it, or there are too many; of those that count, half as many. */
static bool later_add(struct settle *settle, const struct settle_later *what) {
    uint32_t max = settle->group->options.settles_later_max;
    uint32_t most = what->counts ? max / 2 : max;
    struct settle_later *later = settle->later_count < most ? calloc(1, sizeof *later) : NULL;

    if (!later) {
        return false;
    }
    *later = *what;
    list_push_back(&settle->later, &later->node);
    list_push_back(&settle->buckets[bucket_of(what->ino)], &later->bucket_node);
    settle->later_count++;
    return true;
}

void settle_begin(struct group *group, struct ino ino, struct session *session) {
    struct settle *settle = &group->settle;
    struct settle_job *job = job_find(group, ino);
    struct settle_later *later = job ? NULL : later_find(group, ino);
    /* Who closes it by the same record has written, too. */
    bool is_written = session || opens_any_writer(&group->opens, ino, NULL);

    assert(!session || session->state == SESSION_EVICTING);
    if (job && job->counts) {
        job_counts_set(job, false);
        job->session = session;
        job->is_written = is_written;
        job->is_read = false;
    }
    if (job) {
        job->again = true;
        job->is_written = job->is_written || is_written;
        return;
    }
    if (later) {
        later->session = later->counts ? session : later->session;
        later->counts = false;
        later->is_written = later->is_written || is_written;
        return;
    }
    job_start(settle, ino)->session = session;
    job_find(group, ino)->is_written = is_written;
}

void settle_count(struct group *group, struct ino ino) {
    struct settle *settle = &group->settle;
    const struct settle_later of_ino = {.ino = ino, .counts = true};
    struct settle_job *job = job_find(group, ino);

    if (job) {
        job->again = true;
    } else if (later_find(group, ino)) {
        return; /* It asks when it is tried. */
    } else if (settle->busy_count < SETTLE_JOBS && settle->count_count < COUNT_JOBS) {
        job_counts_set(job_start(settle, ino), true);
        group_again(group);
    } else {
        (void)later_add(settle, &of_ino);
    }
}

static void fences_draw(const struct group *group, struct settle_job *job) {
    job->fence_short = false;
    job->fence_place_next = job->fence_place;
    job->ends_place = group->fences.place_next;
    job->fence_count = !job->is_unsure
                           ? 0
                           : fences_take(&group->fences, &job->fence_place_next,
                                         job->fences_one ? 1 : WIRE_FENCES_MAX, job->fences);
}

/* Or somebody unsure has ended who needs no fence: an answer may be older than his last write. */
static bool fences_are_left(const struct group *group, const struct settle_job *job) {
    const struct fences *fences = &group->fences;

    return job->is_unsure &&
           (fences_any_from(fences, job->fence_place) || fences->place_next != job->ends_place);
}

static int job_read(struct group *group, struct settle_job *job) {
    struct transaction transaction;
    const struct inode_row *row;

    job->is_unsure = false;
    transaction_begin_read(&transaction, group);
    int r = inode_get(&transaction, job->ino, &row);
    if (r < 0) {
        return r;
    }
    if (row->truncate_position > kv_synced_position(group->kv)) {
        group_sync_want(group, row->truncate_position);
        return -ERR_PENDING;
    }
    job->layout = inode_layout(row);
    job->generation = row->chunk_generation;
    job->truncate_seq = row->truncate_seq;
    job->truncate_size = row->truncate_size;
    job->chain_next = 0;
    job->answer_count = 0;
    job->length = 0;
    job->blocks = 0;
    job->is_unsure = !job->counts && row->data_state == DATA_CHUNKED &&
                     row->losses != kv_losses(transaction.group->kv);
    /* Nobody was told the size since the job began, so it may still count what is found. */
    job->is_over = job->is_read ? job->is_over : fences_are_over(&group->fences, row);
    job->is_written = job->is_written || row->flags & INODE_UNTOLD;
    job->is_read = true;
    fences_draw(group, job);
    return 0;
}

static void ask_answered(struct call *call) {
    struct settle_ask *ask = call->context;
    struct settle_job *job = ask->job;

    assert(ask->busy && !ask->failed);
    assert(job->stage == SETTLE_ASK || job->stage == SETTLE_PUT_OFF);
    ost_peer_answered(job->settle->group, ask->peer, call->result);
    job->settle->no_space = call->result == -ERR_NO_SPACE;
    if (call->result < 0 && call->result != -ERR_TARGET_LOST) {
        ask->failed = true;
        return;
    }
    ask->busy = false;
    job->answer_count++;
    assert(job->answer_count <= job->chain_next);
    if (call->result == -ERR_TARGET_LOST) {
        return; /* What it had of the file is lost. */
    }
    job->length = MAX(job->length, MIN(call->reply.chunk_length.length, FILE_BYTES_MAX));
    job->blocks += call->reply.chunk_length.bytes_used / BLOCK_BYTES;
    job->fence_short =
        job->fence_short ||
        (!job->fences_one && call->reply.chunk_length.fenced_count < job->fence_count);
}

/* Whom an OST of an older version can fence, too, and whom it can't. */
static void fences_fill(const struct settle_job *job, struct chunk_length_request *request) {
    bool one = job->fences_one && job->fence_count > 0;

    if (one) {
        request->fence_session = load_le64(job->fences);
        request->fence_incarnation = load_le64(job->fences + 8);
    } else if (job->session) {
        request->fence_session = job->session->id.value;
        request->fence_incarnation = job->session->incarnation;
    }
    if (!one) {
        request->fences = (struct bytes){job->fences, (size_t)job->fence_count * WIRE_FENCE_BYTES};
        request->fences_row_bytes = WIRE_FENCE_BYTES;
    }
}

static void ask_send(struct group *group, struct settle_job *job, struct settle_ask *ask) {
    struct call *call = &ask->call;

    assert(!ask->busy || (ask->failed && ask->job == job));
    assert(!job->session || job->session->state == SESSION_EVICTING);
    call->header.opcode = OP_CHUNK_LENGTH;
    call->header.slot = ino_slot(job->ino);
    call->origin = &group->actor;
    call->done = ask_answered;
    call->context = ask;
    call->request.chunk_length = (struct chunk_length_request){
        .ino = job->ino,
        .generation = job->generation,
        .chunk_bytes = job->layout.chunk_bytes,
        .truncate_seq = job->truncate_seq,
        .truncate_size = job->truncate_size,
    };
    fences_fill(job, &call->request.chunk_length);
    call->header.log = ask->peer->log;
    ask->job = job;
    ask->busy = true;
    ask->failed = false;
    ost_peer_asked(group, ask->peer);
    call_start(group->rpc, call);
}

/* All OSTs have answered. */
static void job_answered(struct group *group, struct settle_job *job) {
    bool was_one = job->fences_one && job->fence_count > 0;

    job->fences_one = job->fences_one || job->fence_short;
    job->fence_place = job->fence_short ? job->fence_place : job->fence_place_next;
    group->counters.totals.fencing_settles += job->fence_count > 0 && !job->fence_short;
    bool more = job->fence_short || fences_are_left(group, job) || (was_one && job->session);
    job->stage = job->again || more ? SETTLE_READ : SETTLE_END;
    job->again = false;
}

static void job_ask(struct group *group, struct settle_job *job) {
    struct pool_version pool;
    uint32_t width;

    if (!cluster_map_pool(group->map, job->layout.pool_version, &pool)) {
        return; /* A newer map is waited for: nobody is skipped, or counted as answered. */
    }
    if (ost_peers_hold(group, &job->layout)) {
        job->stage = SETTLE_PUT_OFF;
        return;
    }
    width = layout_width(&job->layout, &pool);
    for (uint32_t i = 0; i < SETTLE_CALLS; i++) {
        struct settle_ask *ask = &job->asks[i];

        if (ask->busy && ask->failed && group->settle.ticked) {
            ask_send(group, job, ask);
        }
        while (!ask->busy && job->chain_next < width) {
            const struct map_target *head = ost_of(group, &job->layout, &pool, job->chain_next++);

            if (head) {
                ask->peer = ost_peer_get(&group->ost_peers, head->log);
                ask_send(group, job, ask);
            } else {
                job->answer_count++;
            }
        }
    }
    if (job->answer_count == width) {
        job_answered(group, job);
    }
}

static void job_idle(struct settle *settle, struct settle_job *job) {
    assert(job->stage != SETTLE_IDLE && settle->busy_count > 0);
    job_counts_set(job, false);
    job->stage = SETTLE_IDLE;
    settle->busy_count--;
    settle->ended_count++;
}

/* Its questions end soon; then it is begun anew from the row, later or, where there is no room for
 * that, at once. */
static void job_put_off(struct group *group, struct settle_job *job) {
    bool out = false;

    for (uint32_t i = 0; i < SETTLE_CALLS; i++) {
        if (job->asks[i].busy && !job->asks[i].failed) {
            call_cancel(&job->asks[i].call);
            out = true;
        }
    }
    if (out) {
        return;
    }
    for (uint32_t i = 0; i < SETTLE_CALLS; i++) {
        job->asks[i].busy = false;
        job->asks[i].failed = false;
    }
    job->again = false;
    const struct settle_later what = {.ino = job->ino,
                                      .session = job->session,
                                      .is_written = job->is_written,
                                      .counts = job->counts};
    if (later_add(&group->settle, &what)) {
        job_idle(&group->settle, job);
        group->counters.totals.settles_put_off++;
    } else if (job->counts) {
        job_idle(&group->settle, job);
    } else {
        job->stage = SETTLE_READ;
    }
}

/* Those that were put off are tried in turn: most need what is away still. */
static void later_try(struct group *group) {
    struct settle *settle = &group->settle;

    for (int i = 0; i < LATER_TRIED_AT_A_TIME && settle->busy_count < SETTLE_JOBS; i++) {
        struct list_node *node = list_pop_front(&settle->later);

        if (!node) {
            return;
        }
        struct settle_later *later = CONTAINER_OF(node, struct settle_later, node);
        if (later->counts && settle->count_count == COUNT_JOBS) {
            list_push_back(&settle->later, node);
            continue;
        }
        list_remove(&later->bucket_node);
        settle->later_count--;
        if (later->counts) {
            settle_count(group, later->ino);
        } else {
            settle_begin(group, later->ino, later->session);
            struct settle_job *job = job_find(group, later->ino);
            job->is_written = job->is_written || later->is_written;
        }
        free(later);
    }
}

/* Its answers are of the chunks that the file has now. */
static bool is_of_row(const struct settle_job *job, const struct inode_row *row) {
    return row->data_state == DATA_CHUNKED && row->chunk_generation == job->generation &&
           row->truncate_seq == job->truncate_seq;
}

/* What an evicted session has not told is missing in the count; the answers have it, unless
 * somebody writes on. */
static void blocks_take(const struct transaction *transaction, const struct settle_job *job,
                        struct inode_row *row) {
    if (row->data_state != DATA_CHUNKED) {
        return;
    }
    if ((job->session && !BUG(BLIND_COUNT)) || job->is_unsure) {
        usage_unsure(row);
    }
    if (is_of_row(job, row) && usage_is_due(transaction, job->ino, row, job->session)) {
        usage_set(row, job->blocks);
    }
}

static int job_count(struct transaction *transaction, const struct settle_job *job) {
    const struct inode_row *row;
    int r = inode_get(transaction, job->ino, &row);

    if (r < 0) {
        return r == -ERR_STALE || r == -ERR_CORRUPT ? 0 : r;
    }
    struct inode_row changed = *row;
    blocks_take(transaction, job, &changed);
    return usage_patch(transaction, job->ino, row, &changed);
}

/* One record: the size, and the end of what the evicted session had open. */
static int job_record(struct transaction *transaction, struct settle_job *job, bool *ret_asked) {
    uint16_t losses = kv_losses(transaction->group->kv);
    bool all_are_back = transaction->group->sessions.unsure_count == 0;
    const struct inode_row *row;

    int r = inode_get(transaction, job->ino, &row);
    if (r == -ERR_STALE || r == -ERR_CORRUPT) {
        return job->session ? eviction_close_stage(transaction, job->session, job->ino, NULL) : 0;
    }
    if (r < 0) {
        return r;
    }
    struct inode_row changed = *row;
    bool same = is_of_row(job, row) && (job->is_written || !job->is_over);
    if (same && job->length > row->size) {
        changed.size = job->length;
        inode_touch(transaction, &changed);
        changed.mtime_ns = changed.ctime_ns;
        r = INODE_PATCH(transaction, job->ino, &changed, epoch, mode);
    } else if (same && (job->session || job->is_unsure) && row->data_state == DATA_CHUNKED) {
        changed.epoch = transaction->epoch; /* Bytes that nobody has told of may have changed. */
        r = INODE_PATCH(transaction, job->ino, &changed, epoch, mode);
    }
    if (same) {
        changed.flags &= (uint16_t)~INODE_UNTOLD;
    }
    if (job->session) {
        (void)untouched_end(&changed);
    }
    blocks_take(transaction, job, &changed);
    r = r < 0 ? r : usage_patch(transaction, job->ino, row, &changed);
    *ret_asked = same && job->is_unsure;
    if (r == 0 && same && row->losses != losses && all_are_back) {
        changed.losses = losses;
        r = INODE_PATCH(transaction, job->ino, &changed, losses, blocks_high);
    }
    if (r == 0 && job->session) {
        r = eviction_close_stage(transaction, job->session, job->ino, &changed);
    }
    return r;
}

static void job_over(struct group *group, struct settle_job *job) {
    assert(job->stage == SETTLE_END);
    if (job->session) {
        eviction_close_apply(group, job->session, job->ino);
    }
    group->counters.totals.counted += job->counts;
    group->counters.totals.settled += !job->counts;
    job_idle(&group->settle, job);
    group->settle.progress = true;
    group->moved = true;
}

static void job_end(struct group *group, struct settle_job *job) {
    struct fences *fences = &group->fences;
    struct transaction transaction;
    bool asked = false;

    /* They came while there was no room for the record. */
    if (job->again || fences_are_left(group, job)) {
        job->stage = SETTLE_READ;
        job->again = false;
        return;
    }
    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &settle_need) < 0) {
        return;
    }
    int r = job->counts ? job_count(&transaction, job) : job_record(&transaction, job, &asked);
    if (r < 0) {
        transaction_abort(&transaction);
        return;
    }
    uint64_t position = transaction_commit(&transaction);
    if (asked) {
        fences->sure_position = position;
        fences_file_asked(fences, job->ino);
    }
    job_over(group, job);
}

void settle_step(struct group *group) {
    struct settle *settle = &group->settle;

    if (settle->ticked || settle->progress) {
        settle->progress = false;
        later_try(group);
    }
    for (uint32_t i = 0; settle->busy_count > 0 && i < SETTLE_JOBS; i++) {
        struct settle_job *job = &settle->jobs[i];

        if (job->stage == SETTLE_READ) {
            int r = job_read(group, job);

            if (r == 0) {
                job->stage = SETTLE_ASK;
            } else if (r != -ERR_PENDING) {
                job->stage = SETTLE_END;
            }
        }
        if (job->stage == SETTLE_ASK) {
            job_ask(group, job);
        }
        if (job->stage == SETTLE_PUT_OFF) {
            job_put_off(group, job);
        }
        if (job->stage == SETTLE_END) {
            job_end(group, job);
        }
    }
    settle->ticked = false;
}

uint32_t settle_calls_out(const struct settle *settle) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < SETTLE_JOBS; i++) {
        for (uint32_t j = 0; j < SETTLE_CALLS; j++) {
            const struct settle_ask *ask = &settle->jobs[i].asks[j];

            count += ask->busy && !ask->failed;
        }
    }
    return count;
}

void settle_cancel(struct settle *settle) {
    for (uint32_t i = 0; i < SETTLE_JOBS; i++) {
        for (uint32_t j = 0; j < SETTLE_CALLS; j++) {
            struct settle_ask *ask = &settle->jobs[i].asks[j];

            if (ask->busy && !ask->failed) {
                call_cancel(&ask->call);
            }
        }
    }
}
