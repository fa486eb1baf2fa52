/* See request.h. */
#include "store/operations.h"
#include <assert.h>

void request_ready(struct ost *ost, struct request *request) {
    if (!request->is_ready && !request->is_syncing) {
        list_remove(&request->node);
        list_push_back(&ost->ready[request->call->header.message_class], &request->node);
        request->is_ready = true;
    }
}

void request_wait(struct request *request, struct list *list) {
    assert(!request->is_ready && !request->is_syncing);
    list_remove(&request->node);
    list_push_back(list, &request->node);
    request->ost->counters.waits++;
}

void request_yield(struct ost *ost, struct request *request) {
    request_wait(request, &ost->yielded);
    ost_wake(ost);
}

static void drain_run(struct ost *ost, struct request *request) {
    if (request->io_pending == 0) {
        request_finish(ost, request, request->result);
    }
}

static void request_leave(struct ost *ost, struct request *request) {
    struct list_node *node;

    assert(request->io_pending == 0 && !request->is_syncing);
    list_remove(&request->active);
    while ((node = list_pop_front(&request->followers))) {
        request_ready(ost, CONTAINER_OF(node, struct request, node));
    }
    if (request->has_blocks) {
        space_give_back(ost, request->entries, request->range.count);
        request->has_blocks = false;
    }
    request_unpin(ost, request);
    list_remove(&request->node);
}

void request_finish(struct ost *ost, struct request *request, int result) {
    request->result = result;
    if (request->io_pending > 0) {
        request->run = drain_run;
        return;
    }
    request_leave(ost, request);
    list_push_back(&ost->finished, &request->node);
}

static void request_free(struct ost *ost, struct request *request) {
    assert(ost->free_request_count < ost->options.requests_max);
    assert(!request->has_blocks && !request->is_pinned && !list_contains(&request->active));
    list_remove(&request->node);
    request->call = NULL;
    list_push_front(&ost->free_requests, &request->node);
    ost->free_request_count++;
}

void request_discard(struct ost *ost, struct request *request) {
    struct call *call = request->call;

    request_leave(ost, request);
    request_free(ost, request);
    call_discard(call);
}

int ost_failure_told(int failure) {
    return failure == -ERR_CORRUPT || failure == -ERR_INVALID ? -ERR_IO : failure;
}

void requests_answer(struct ost *ost) {
    uint64_t position = kv_seal(ost->kv);
    /* A log that has stopped took the open record with it: what ran in this step did not happen. */
    int failure = kv_failure(ost->kv);
    uint64_t now_ns = list_is_empty(&ost->finished) ? ost->seen_ns : env_now_ns(ost->env);
    struct list_node *node;

    ost->seen_ns = now_ns;
    while ((node = list_first(&ost->finished))) {
        struct request *request = CONTAINER_OF(node, struct request, node);
        struct call *call = request->call;
        int result = failure < 0 ? ost_failure_told(failure) : request->result;

        call->server_position = position;
        call->server_term = kv_term(ost->kv);
        operation_counters_record(ost->operations, call->header.opcode, result,
                                  now_ns - call->started_ns);
        session_counters_record(call, result, now_ns - call->started_ns);
        slow_log_answer(&ost->slow, call, result, now_ns);
        request_free(ost, request);
        call_reply(call, result);
    }
}

void request_pin(struct ost *ost, struct request *request) {
    if (!request->is_pinned) {
        request->is_pinned = true;
        request->pin_number = ost->read_number++;
        list_push_back(&ost->pins, &request->pin);
    }
}

void request_unpin(struct ost *ost, struct request *request) {
    if (request->is_pinned) {
        bool was_oldest = list_first(&ost->pins) == &request->pin;

        request->is_pinned = false;
        list_remove(&request->pin);
        if (was_oldest) {
            space_release(ost);
        }
    }
}

static void request_synced(struct kv_waiter *waiter, int result) {
    struct request *request = CONTAINER_OF(waiter, struct request, waiter);

    assert(request->is_syncing && !request->is_ready && request->call);
    request->sync_result = result;
    if (result < 0 && request->io_result == 0) {
        request->io_result = result; /* The log has stopped: nothing can be recorded any more. */
    }
    request->is_syncing = false;
    request_ready(request->ost, request);
}

void request_disk_begins(const struct ost *ost, struct request *request) {
    struct call *call = request->call;

    call->disk_ns = call->disk_ns ? call->disk_ns : ost->seen_ns;
}

void request_sync(struct ost *ost, struct request *request, uint64_t position) {
    assert(!request->is_syncing && !list_contains(&request->node));
    request->waiter.done = request_synced;
    request->is_syncing = true;
    request_disk_begins(ost, request);
    kv_sync(ost->kv, &request->waiter, position);
}

bool request_stops(struct ost *ost, struct request *request, int r) {
    if (r == -ERR_PENDING) {
        request_wait(request, &ost->kv_waiting);
    } else if (r < 0) {
        request_finish(ost, request, r);
    }
    return r != 0;
}

void request_walk(struct request *request, const struct chunk_id *file,
                  struct kv_cursor *ret_cursor) {
    struct chunk_id id = {file->ino, file->generation, request->cursor};
    struct chunk_id after = {file->ino, file->generation, UINT64_MAX >> STORE_INDEX_BITS};
    struct kv_key from = chunk_head_key(&id);
    struct kv_key to = chunk_head_key(&after);

    kv_cursor_init(ret_cursor, &from, &to);
    if (request->walk_kept) {
        *ret_cursor = request->walk;
        request->walk_kept = false;
    }
}

void request_walked(struct request *request, int r, const struct kv_cursor *cursor) {
    if (r == -ERR_PENDING) {
        uint64_t chunk = kv_key_split(&cursor->key).index >> STORE_INDEX_BITS;

        request->cursor = MAX(request->cursor, chunk);
        request->walk = *cursor;
        request->walk_kept = true;
    }
}

int request_begin(struct ost *ost, struct request *request, const struct kv_need *need) {
    static const enum kv_class classes[MESSAGE_CLASS_COUNT] = {
        [MESSAGE_CONTROL] = KV_CLASS_CONTROL,
        [MESSAGE_RELEASE] = KV_CLASS_RELEASE,
        [MESSAGE_REQUEST] = KV_CLASS_REQUEST,
        [MESSAGE_BACKGROUND] = KV_CLASS_BACKGROUND,
    };
    enum kv_class class = classes[request->call->header.message_class];
    uint16_t opcode = request->call->header.opcode;
    bool waits = class == KV_CLASS_BACKGROUND || opcode == OP_SESSION_ATTACH;
    struct kv_grant grant;

    assert(request->io_pending == 0 && !request->is_syncing);
    int r = kv_admit(ost->kv, class, need, &grant);

    if (r == 0) {
        kv_begin(ost->kv, &grant);
        return 0;
    }
    if (r != -ERR_PENDING && (r != -ERR_NO_SPACE || !waits)) {
        return r;
    }
    /* What makes room begins in kv_step. */
    request_wait(request, &ost->kv_waiting);
    ost->kv_due = true;
    return REQUEST_WAITS;
}

int request_capability(struct ost *ost, const struct call *call,
                       const struct capability *capability, uint32_t rights) {
    if ((capability->rights & rights) != rights ||
        capability->session != call->header.session.value ||
        capability->session_incarnation != call->header.incarnation) {
        return -ERR_BAD_CAPABILITY;
    }
    int r = capability_check_signed(&ost->capability_check, capability);
    if (r < 0) {
        return r;
    }
    /* It was attached when the request began: no other search, if it still is. */
    const struct session_counters *counters = session_counters_of(call);

    if (counters && counters->incarnation == capability->session_incarnation) {
        return 0;
    }
    return ost_session_check(ost, capability->session, capability->session_incarnation);
}

int request_shape(struct ost *ost, struct request *request, const struct request_shape *shape) {
    uint32_t chunk_bytes = shape->chunk_bytes;
    uint64_t end = (uint64_t)shape->offset + shape->size;

    if (chunk_bytes < CHUNK_BYTES_MIN || chunk_bytes > CHUNK_BYTES_MAX ||
        chunk_bytes % SEGMENT_BYTES || shape->size == 0 || end > chunk_bytes ||
        (shape->size > ost->options.request_bytes_max && !shape->is_whole) ||
        shape->chunk > FILE_BYTES_MAX / chunk_bytes) {
        return -ERR_INVALID;
    }
    if (shape->chunk * chunk_bytes + end > shape->capability->max_offset) {
        return -ERR_BAD_CAPABILITY;
    }
    request->id = (struct chunk_id){.ino = shape->capability->ino,
                                    .generation = shape->capability->generation,
                                    .chunk = shape->chunk};
    request->skip = shape->offset % BLOCK_BYTES;
    request->size = shape->size;
    request->range.first = shape->offset / BLOCK_BYTES;
    request->range.count = (request->skip + shape->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    assert(shape->is_whole || request->range.count <= request_blocks(&ost->options));
    return 0;
}

void request_block_part(const struct request *request, uint32_t i, uint32_t *ret_from,
                        uint32_t *ret_to) {
    uint32_t last = (request->skip + request->size - 1) % BLOCK_BYTES + 1;

    *ret_from = i == 0 ? request->skip : 0;
    *ret_to = i == request->range.count - 1 ? last : BLOCK_BYTES;
    assert(i < request->range.count && *ret_from < *ret_to);
}

uint32_t chunk_bytes_before(uint64_t chunk, uint32_t chunk_bytes, uint64_t truncate_size) {
    uint64_t start = chunk * chunk_bytes;

    return start >= truncate_size ? 0 : (uint32_t)MIN(truncate_size - start, (uint64_t)chunk_bytes);
}
