/* From bytes to twins and back; the contract and the picture are in inlet.h. */
#include "rpc/inlet.h"
#include "env/env.h"
#include <assert.h>
#include <string.h>

enum { NOBODY_ID = 65534 };

static int waits_init(struct inlet *inlet) {
    const struct pool_options pool = {.name = "calls that wait",
                                      .object_bytes = sizeof(struct inlet_request),
                                      .object_count = inlet->options.waits_max,
                                      .worker = inlet->options.worker};

    return pool.object_count > 0 ? pool_init(&inlet->waits, &pool) : 0;
}

int inlet_init(struct inlet *inlet, const struct inlet_options *options) {
    struct pool_options pool = {.name = "calls",
                                .object_bytes = sizeof(struct inlet_request),
                                .object_count = options->requests_max,
                                .worker = options->worker};

    *inlet = (struct inlet){.options = *options};
    memcpy(pool.reserve_count, options->reserve_count, sizeof pool.reserve_count);
    int r = pool_init(&inlet->pool, &pool);
    if (r < 0) {
        return r;
    }
    r = waits_init(inlet);
    if (r < 0) {
        pool_deinit(&inlet->pool);
    }
    return r;
}

void inlet_deinit(struct inlet *inlet) {
    pool_deinit(&inlet->pool);
    pool_deinit(&inlet->waits);
}

static void request_reply(struct call *call) {
    struct inlet_request *request = CONTAINER_OF(call, struct inlet_request, call);
    const struct inlet_options *options = &request->inlet->options;

    assert(call->bulk_in.size <= call->bulk_in.capacity);
    options->ready(options->context, request);
}

static int bulk_take(const struct inlet *inlet, size_t size_bytes, void **ret_bulk) {
    *ret_bulk = inlet->options.bulk_get(inlet->options.context, size_bytes);
    return *ret_bulk ? 0 : -ERR_BUSY;
}

/* Space for what comes back, and the bulk that came. Where no answer has any, none is kept for it:
 * such a call may wait for long. */
static int request_set_bulk(struct inlet_request *request, const struct frame_request *frame,
                            struct bytes bulk) {
    const struct inlet *inlet = request->inlet;
    uint64_t bulk_bytes_max = inlet->options.bulk_bytes_max;
    struct call *call = &request->call;
    bool has_bulk = wire_reply_has_bulk(call->header.opcode);
    int r = 0;

    if (frame->bulk_out_bytes != bulk.size || bulk.size > bulk_bytes_max ||
        frame->bulk_in_bytes > bulk_bytes_max ||
        frame->checksum_count > bulk_bytes_max / BLOCK_BYTES + 2) {
        return -ERR_MALFORMED;
    }
    if (bulk.size > 0) {
        call->bulk_out[0] = bulk;
        call->bulk_out_count = 1;
    }
    if (frame->bulk_in_bytes > 0 && has_bulk) {
        r = bulk_take(inlet, (size_t)frame->bulk_in_bytes, (void **)&call->bulk_in.data);
        call->bulk_in.capacity = (size_t)frame->bulk_in_bytes;
    }
    if (r == 0 && frame->checksum_count > 0 && (has_bulk || frame->checksums.size > 0)) {
        call->checksum_count = frame->checksum_count;
        r = bulk_take(inlet, 4 * (size_t)frame->checksum_count, (void **)&call->checksums);
    }
    if (r == 0 && frame->checksums.size > 0) {
        memcpy(call->checksums, frame->checksums.data, frame->checksums.size);
    }
    return r;
}

/* Names, and bytes of small files: the head that they came in is not kept. */
static int request_keep_bytes(struct inlet_request *request) {
    struct call *call = &request->call;
    size_t size = wire_request_bytes(call->header.opcode, &call->request);
    uint8_t *to = request->bytes;

    if (size > sizeof request->bytes) {
        int r = bulk_take(request->inlet, size, &request->long_bytes);

        if (r < 0) {
            return r;
        }
        to = request->long_bytes;
    }
    wire_request_move_bytes(call->header.opcode, &call->request, to);
    return 0;
}

/* Before the body is looked at. */
static int identity_check(const struct identity *who, uint16_t opcode) {
    uint8_t from = wire_from(opcode);

    if (!who || who->kind == IDENTITY_MEMBER || from == WIRE_MOUNT) {
        return 0;
    }
    if (from == WIRE_MEMBER_ONLY) {
        return -ERR_NOT_PERMITTED;
    }
    return who->read_only ? -ERR_READ_ONLY : 0;
}

static void squash_root(struct inlet_request *request, struct credentials *who) {
    who->uid = who->uid ? who->uid : NOBODY_ID;
    who->gid = who->gid ? who->gid : NOBODY_ID;
    for (uint32_t i = 0; i < who->group_count; i++) {
        request->scratch[i] = request->scratch[i] ? request->scratch[i] : NOBODY_ID;
    }
}

/* What only the body tells. */
static int identity_apply(struct inlet_request *request, const struct identity *who) {
    struct call *call = &request->call;
    struct credentials *credentials;
    const struct reopen_request *reopen = &call->request.reopen;
    uint32_t reopen_flags = reopen->open_flags | (reopen->write_count > 0 ? OPEN_WRITE : 0);
    uint32_t open_flags = call->header.opcode == OP_OPEN     ? call->request.open.open_flags
                          : call->header.opcode == OP_REOPEN ? reopen_flags
                                                             : 0;

    call->identity = who;
    if (!who || who->kind == IDENTITY_MEMBER) {
        return 0;
    }
    credentials = wire_request_credentials(call->header.opcode, &call->request);
    if (who->squash_root && credentials) {
        squash_root(request, credentials);
    }
    return who->read_only && open_flags & (OPEN_WRITE | OPEN_TRUNCATE) ? -ERR_READ_ONLY : 0;
}

static int request_set_deadline(struct inlet_request *request, uint64_t time_left_ns,
                                uint64_t late_ns) {
    uint64_t now_ns = env_now_ns(request->inlet->options.env);

    if (time_left_ns == UINT64_MAX) {
        return 0;
    }
    if (time_left_ns <= late_ns) {
        return -ERR_TIMED_OUT;
    }
    request->call.deadline_ns = now_ns + MIN(time_left_ns - late_ns, UINT64_MAX - now_ns);
    return 0;
}

static int request_fill(struct inlet_request *request, const struct inlet_arrival *arrival,
                        uint16_t opcode, struct actor **ret_actor) {
    struct call *call = &request->call;
    struct frame_request frame;
    int r = identity_check(arrival->identity, opcode);

    if (r == 0) {
        r = frame_decode_request(arrival->head, request->scratch, call, &frame);
    }
    if (r == 0) {
        r = identity_apply(request, arrival->identity);
    }
    if (r < 0) {
        return r;
    }
    *ret_actor = log_table_find(request->inlet->options.logs, call->header.log);
    if (!*ret_actor) {
        return -ERR_STALE_MAP;
    }
    r = request_set_bulk(request, &frame, arrival->bulk);
    r = r < 0 ? r : request_keep_bytes(request);
    if (r < 0) {
        return r;
    }
    call->message.kind = CALL_MESSAGE_KIND;
    call->message.message_class = call->header.message_class;
    call->reply_to = request_reply;
    return request_set_deadline(request, frame.time_left_ns, arrival->late_ns);
}

/* One wait more than there is room for is told so at once by who would have it wait. */
static struct inlet_request *request_get(struct inlet *inlet, uint16_t opcode) {
    struct inlet_request *request = NULL;

    if (opcode == OP_MAP_WAIT && inlet->options.waits_max > 0) {
        request = pool_get(&inlet->waits, MESSAGE_CONTROL);
    }
    return request ? request : pool_get(&inlet->pool, wire_class(opcode));
}

enum inlet_taken inlet_take(struct inlet *inlet, const struct inlet_arrival *arrival,
                            struct inlet_refusal *ret_refusal) {
    struct inlet_refusal refusal = {.result = -ERR_BUSY};
    struct inlet_request *request;
    struct actor *actor;

    if (frame_peek_request(arrival->head, &refusal.request) < 0) {
        return INLET_UNREADABLE;
    }
    request = request_get(inlet, refusal.request.opcode);
    if (!request) {
        *ret_refusal = refusal;
        return INLET_REFUSED;
    }
    memset(&request->call, 0,
           offsetof(struct inlet_request, scratch) - offsetof(struct inlet_request, call));
    request->inlet = inlet;
    request->from = arrival->from;
    request->id = refusal.request.id;
    memcpy(request->call.life, arrival->life, sizeof request->call.life);
    refusal.result = request_fill(request, arrival, refusal.request.opcode, &actor);
    if (refusal.result < 0) {
        inlet_done(request);
        *ret_refusal = refusal;
        return INLET_REFUSED;
    }
    inlet->options.taken(inlet->options.context, request);
    actor_post(actor, &request->call.message);
    return INLET_POSTED;
}

size_t inlet_reply_size(const struct inlet_request *request) {
    return frame_reply_size(&request->call);
}

void inlet_encode(const struct inlet_request *request, struct buffer *out) {
    int r = frame_encode_reply(&request->call, request->id, out);

    assert(r == 0); /* What a server fills in always fits. */
}

void inlet_encode_refusal(const struct inlet_refusal *refusal, struct buffer *out) {
    const struct call call = {
        .header = {.opcode = refusal->request.opcode, .log = refusal->request.log},
        .result = refusal->result};
    int r = frame_encode_reply(&call, refusal->request.id, out);

    assert(r == 0);
}

void inlet_done(struct inlet_request *request) {
    const struct inlet_options *options = &request->inlet->options;

    if (request->call.bulk_in.data) {
        options->bulk_put(options->context, request->call.bulk_in.data);
    }
    if (request->long_bytes) {
        options->bulk_put(options->context, request->long_bytes);
    }
    if (request->call.checksums) {
        options->bulk_put(options->context, request->call.checksums);
    }
    pool_put(request);
}
