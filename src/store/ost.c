/* The OST's actor: opening, the step, stopping.
 *
 *     messages -> calls by class -> requests -> run .. wait .. run -> finished
 *                                                                        | kv_seal
 *     I/O done, kv's wake, ticks -> what waited is ready again           v
 *                                                                     replies */
#include "store/operations.h"
#include "base/bug.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct actor *ost_actor(struct ost *ost) {
    return &ost->actor;
}

struct kv *ost_kv(struct ost *ost) {
    return ost->kv;
}

void ost_log(struct ost *ost, const char *format, ...) {
    char line[256];
    va_list arguments;

    if (!ost->options.log) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    ost->options.log(ost->options.log_context, line);
}

/* From any thread with a worker. */
void ost_wake(struct ost *ost) {
    if (ost->is_open && !atomic_exchange(&ost->wake_posted, true)) {
        actor_post(&ost->actor, &ost->wake_message);
    }
}

void ost_tick(struct ost *ost) {
    ost_wake(ost);
}

uint64_t ost_epoch(struct ost *ost) {
    ost->epoch = MAX(ost->epoch + 1, env_wall_ns(ost->env));
    return ost->epoch;
}

static void all_ready(struct ost *ost, struct list *list) {
    struct list_node *node;

    while ((node = list_pop_front(list))) {
        request_ready(ost, CONTAINER_OF(node, struct request, node));
    }
}

static void bytes_synced(struct kv_waiter *waiter, int result) {
    struct ost *ost = CONTAINER_OF(waiter, struct ost, bytes_waiter);

    assert(ost->bytes_waiting);
    (void)result;
    ost->bytes_waiting = false;
}

static void sync_soon(struct ost *ost) {
    if (!ost->bytes_waiting) {
        ost->bytes_waiting = true;
        ost->bytes_waiter.done = bytes_synced;
        kv_sync(ost->kv, &ost->bytes_waiter, kv_seal(ost->kv));
    }
}

void ost_count_direct(struct ost *ost, uint64_t bytes) {
    ost->direct_bytes += bytes;
    if (ost->direct_bytes >= ost->options.sync_bytes ||
        ost->blocks.freed_count > ost->blocks.freed_max / 2) {
        sync_soon(ost);
    }
}

static void (*run_of(uint16_t opcode))(struct ost *ost, struct request *request) {
    switch (opcode) {
    case OP_CHUNK_WRITE:
        return write_run;
    case OP_CHUNK_READ:
        return read_run;
    case OP_CHUNK_SPACE:
        return allocate_run;
    case OP_CHUNK_SEEK:
        return seek_run;
    case OP_CHUNK_CUT:
        return cut_run;
    case OP_CHUNK_DELETE:
        return remove_run;
    case OP_CHUNK_LENGTH:
        return length_run;
    case OP_SESSION_ATTACH:
        return attach_run;
    case OP_SESSION_FLOOR:
        return floor_run;
    case OP_SESSIONS_ENDED:
        return ended_run;
    case OP_SYNC:
        return sync_run;
    case OP_STATFS:
        return statfs_run;
    case OP_FSCK_LIST:
        return fsck_run;
    default:
        return NULL;
    }
}

/* Whoever knows a session's number and incarnation has not its ticket yet. */
static void stranger_run(struct ost *ost, struct request *request) {
    request_finish(ost, request, -ERR_UNKNOWN_SESSION);
}

static void request_start(struct ost *ost, struct call *call) {
    struct list_node *node = list_pop_front(&ost->free_requests);
    struct request *request = CONTAINER_OF(node, struct request, node);
    struct block_entry *entries = request->entries;
    uint8_t *edges[REQUEST_EDGES];

    assert(ost->free_request_count > 0 && node && !request->call);
    ost->free_request_count--;
    for (size_t i = 0; i < REQUEST_EDGES; i++) {
        edges[i] = request->edges[i].data;
    }
    *request = (struct request){
        .ost = ost, .call = call, .run = run_of(call->header.opcode), .entries = entries};
    for (size_t i = 0; i < REQUEST_EDGES; i++) {
        request->edges[i].data = edges[i];
    }
    list_init(&request->followers);
    call->ran_ns = ost->seen_ns;
    if (call->header.opcode == OP_SESSION_ATTACH || ost_session_is_from(&ost->sessions, call)) {
        call->session_counters = ost_sessions_counters(&ost->sessions, call->header.session);
    } else {
        call->session_counters = NULL;
        request->run = stranger_run;
    }
    request_ready(ost, request);
}

/* Each class leaves requests for those before it. */
static void accept_calls(struct ost *ost) {
    uint32_t share = MAX(ost->options.requests_max / 32, 1U);

    if (ost->is_loading) {
        return;
    }
    for (uint32_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        while (!list_is_empty(&ost->calls[class]) && ost->free_request_count > class * share) {
            struct list_node *node = list_pop_front(&ost->calls[class]);

            request_start(ost, CONTAINER_OF(node, struct call, server_node));
        }
    }
}

static struct request *next_ready(struct ost *ost) {
    for (size_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        struct list_node *node = list_pop_front(&ost->ready[class]);

        if (node) {
            return CONTAINER_OF(node, struct request, node);
        }
    }
    return NULL;
}

static bool is_any_ready(const struct ost *ost) {
    for (size_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        if (!list_is_empty(&ost->ready[class])) {
            return true;
        }
    }
    return false;
}

static void call_arrived(struct ost *ost, struct call *call) {
    int r = ost_failure_told(ost->failed);

    if (r == 0 && ost->stop_stage != STOP_NONE) {
        r = -ERR_CLOSED;
    }
    if (r == 0 &&
        (!run_of(call->header.opcode) || call->header.message_class >= MESSAGE_CLASS_COUNT)) {
        r = -ERR_NOT_SUPPORTED;
    }
    if (r == 0 && call->header.origin.value != 0 &&
        call->header.origin.value != kv_log_id(ost->kv).value) {
        r = -ERR_STALE_MAP; /* Its number and floor are another log's: nothing is kept of them. */
    }
    if (r == 0 && call->header.term != 0 && call->header.term != kv_term(ost->kv) &&
        call->header.opcode != OP_SESSION_ATTACH) {
        r = -ERR_STALE_TERM; /* So that the client hears of our new start, and what it has cost. */
    }
    if (r < 0) {
        call->server_position = kv_position(ost->kv);
        call_reply(call, r);
        return;
    }
    ost->seen_ns = env_now_ns(ost->env);
    call->started_ns = ost->seen_ns;
    call->ran_ns = 0;
    call->disk_ns = 0;
    list_push_back(&ost->calls[call->header.message_class], &call->server_node);
}

static void calls_refuse(struct ost *ost, int result) {
    for (size_t class = 0; class < MESSAGE_CLASS_COUNT; class ++) {
        struct list_node *node;

        while ((node = list_pop_front(&ost->calls[class]))) {
            call_reply(CONTAINER_OF(node, struct call, server_node), result);
        }
    }
}

/* What the ring held beyond the disk log is on disk before anybody is told of it. */
static void load_more(struct ost *ost) {
    int r = ost_load_step(ost);

    r = r < 0 ? r : kv_failure(ost->kv);
    if (r == 0 && ost->recovered > kv_synced_position(ost->kv)) {
        sync_soon(ost);
    } else if (r == 0) {
        assert(ost->load_stage == LOAD_DONE &&
               ost->free_request_count == ost->options.requests_max);
        ost->is_loading = false;
    } else if (r != -ERR_PENDING) {
        ost->failed = r;
        ost_log(ost, "target %u: %s", (unsigned)ost->options.target.value,
                ost->problem[0] ? ost->problem : err_text(r));
        calls_refuse(ost, ost_failure_told(r));
    }
}

static void kv_stopped(void *context, int result) {
    struct ost *ost = context;

    assert(ost->stop_stage == STOP_KV);
    assert(!ost->sync.running || kv_failure(ost->kv) < 0);
    ost->stop_stage = STOP_KV_DONE;
    ost->stop_result = result;
}

static bool is_idle(const struct ost *ost) {
    return ost->free_request_count == ost->options.requests_max && !ost->growing &&
           !ost->label_writing;
}

bool ost_io_is_idle(const struct ost *ost) {
    return ost->free_io_count == ost->options.io_max && !ost->growing && !ost->label_writing;
}

/* The last sync point may be the first one, which lets the label be written: nothing is in flight
 * any more when done is called. */
static void stop_step(struct ost *ost) {
    if (!atomic_load(&ost->stop_wanted)) {
        return;
    }
    if (ost->stop_stage == STOP_NONE) {
        ost->stop_stage = STOP_REQUESTS;
        calls_refuse(ost, -ERR_CLOSED);
    }
    if (ost->stop_stage == STOP_REQUESTS && is_idle(ost)) {
        assert(ost->held_blocks == 0 && list_is_empty(&ost->pins));
        ost->stop_stage = STOP_KV;
        kv_stop_start(ost->kv, kv_stopped, ost);
    }
    /* A log that has failed waits for nothing of ours: a sync point's I/O may be on its way. */
    if (ost->stop_stage == STOP_KV_DONE && is_idle(ost) &&
        (ost_io_is_idle(ost) || BUG(LATE_DONE))) {
        assert(ost->free_bounce_count == ost->options.bounce_max || BUG(LATE_DONE));
        ost->stop_stage = STOP_DONE;
        if (ost->stop_done) {
            ost->stop_done(ost->stop_context, ost->stop_result);
        }
    }
}

static void progress(struct ost *ost) {
    struct request *request;

    do {
        if (ost->kv_due) {
            ost->kv_due = false;
            kv_step(ost->kv);
        }
        if (ost->is_loading && ost->failed == 0 && ost->stop_stage < STOP_KV) {
            load_more(ost);
        }
        accept_calls(ost);
        while ((request = next_ready(ost))) {
            assert(request->is_ready && !request->is_syncing && request->call);
            request->is_ready = false;
            request->run(ost, request);
        }
        requests_answer(ost);
        accept_calls(ost);
    } while (ost->kv_due || is_any_ready(ost));
    assert(list_is_empty(&ost->finished));
    stop_step(ost);
}

static void stats_fill(struct ost *ost, struct ost_stats *stats) {
    ost_counters_get(ost, &stats->ost);
    kv_counters_get(ost->kv, &stats->kv);
    stats->data = (struct env_file_ways){.reads = ENV_WAY_NONE};
    if (ost->env->ops->file_ways) {
        ost->env->ops->file_ways(ost->file, &stats->data);
    }
    stats->position = kv_position(ost->kv);
    stats->synced_position = kv_synced_position(ost->kv);
    if (stats->operations) {
        memcpy(stats->operations, ost->operations, sizeof ost->operations);
    }
    ost_sessions_counters_get(&ost->sessions, &stats->clients);
    stats->done(stats);
}

void ost_stats_start(struct ost *ost, struct ost_stats *stats) {
    stats->message = (struct message){.kind = OST_MESSAGE_STATS, .message_class = MESSAGE_CONTROL};
    actor_post(&ost->actor, &stats->message);
}

void ost_step(struct actor *actor, struct message *first) {
    struct ost *ost = CONTAINER_OF(actor, struct ost, actor);

    while (first) {
        struct message *message = first;

        first = message->next;
        if (message->kind == CALL_MESSAGE_KIND) {
            call_arrived(ost, CONTAINER_OF(message, struct call, message));
        } else if (message->kind == OST_MESSAGE_IO) {
            struct ost_io *io = CONTAINER_OF(message, struct ost_io, message);

            io->finished(ost, io);
        } else if (message->kind == OST_MESSAGE_STATS) {
            stats_fill(ost, CONTAINER_OF(message, struct ost_stats, message));
        } else {
            atomic_store(&ost->wake_posted, false);
            kv_step(ost->kv);
            requests_give_up(ost);
            all_ready(ost, &ost->kv_waiting);
            all_ready(ost, &ost->yielded);
            space_tick(ost);
            space_note(ost);
        }
    }
    /* What fills up without waking anybody is looked at now and then. */
    ost->kv_due = ost->kv_due || ++ost->step_count % 64 == 0;
    progress(ost);
}

void ost_stop_start(struct ost *ost, void (*done)(void *context, int result), void *context) {
    ost->stop_done = done;
    ost->stop_context = context;
    atomic_store(&ost->stop_wanted, true);
    ost_wake(ost);
}

void ost_counters_get(const struct ost *ost, struct ost_counters *ret_counters) {
    *ret_counters = ost->counters;
    ret_counters->cache_hits = ost->cache.hits;
    ret_counters->cache_misses = ost->cache.misses;
    ret_counters->capabilities_checked = ost->capability_check.computed;
    ret_counters->capabilities_refused = ost->capability_check.refused;
    ret_counters->block_count = ost->blocks.block_count;
    ret_counters->free_blocks = ost->blocks.free_count;
    ret_counters->quarantine_blocks = ost->blocks.quarantine_blocks;
    ret_counters->promised_blocks = ost->blocks.promised_count;
    ret_counters->waiting_count = list_count(&ost->kv_waiting) + list_count(&ost->io_waiting) +
                                  list_count(&ost->space_waiting);
}
