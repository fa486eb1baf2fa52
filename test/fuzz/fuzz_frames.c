/* Heads of requests and replies: through the inlet as a server has it, and as a client applies
 * them. */
#include "env/env.h"
#include "fuzz.h"
#include "rpc/inlet.h"
#include "rpc/worker.h"
#include <stdlib.h>

enum { BULK_BYTES_MAX = 65536, HEAD_BYTES = 32768, REQUESTS = 4, REPLY_SPACE = 8192 };

static const struct log_id log_served = {7};

/* What the inlet has around it; one request at a time. */
static struct {
    struct inlet inlet;
    struct log_table *logs;
    struct actor server;
    struct worker worker;
    uint32_t bulk_count; /* that is given out */
    uint32_t ready_count;
} it;

static uint64_t now_ns(struct env *env) {
    (void)env;
    return NS_PER_S;
}

static const struct env_ops clock_ops = {.now_ns = now_ns};
static struct env clock_env = {.ops = &clock_ops};

static void *bulk_get(void *context, size_t size_bytes) {
    (void)context;
    assert(size_bytes <= BULK_BYTES_MAX);
    it.bulk_count++;
    void *bulk = malloc(size_bytes);
    assert(bulk);
    return bulk;
}

static void bulk_put(void *context, void *bulk) {
    (void)context;
    it.bulk_count--;
    free(bulk);
}

static void taken(void *context, struct inlet_request *request) {
    (void)context;
    (void)request;
}

/* What a server looks at of any request: all must lie where it says. */
static void call_look(const struct call *call) {
    union request_body body = call->request;
    const struct credentials *who = wire_request_credentials(call->header.opcode, &body);
    uint64_t sum = 0;

    assert(wire_name(call->header.opcode));
    assert(wire_is_mutation(call->header.opcode) == (call->header.sequence > 0));
    for (uint32_t i = 0; who && i < who->group_count; i++) {
        sum += who->groups[i];
        assert(who->groups[i] != 0 || !call->identity || !call->identity->squash_root);
    }
    assert(!who || !call->identity || !call->identity->squash_root || who->uid != 0);
    for (uint32_t i = 0; i < call->checksum_count && call->bulk_out_count > 0; i++) {
        sum += call->checksums[i];
    }
    for (size_t i = 0; call->bulk_out_count > 0 && i < call->bulk_out[0].size; i++) {
        sum += call->bulk_out[0].data[i];
    }
    for (size_t i = 0; i < call->bulk_in.capacity; i++) {
        call->bulk_in.data[i] = (uint8_t)sum;
    }
}

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        call_look(call);
        call_reply(call, 0);
    }
}

/* The answer is one that a client takes. */
static void ready(void *context, struct inlet_request *request) {
    static uint8_t head[HEAD_BYTES];
    struct buffer out = {head, 0, sizeof head};
    struct frame_reply frame;

    (void)context;
    assert(inlet_reply_size(request) <= sizeof head);
    inlet_encode(request, &out);
    int r = frame_decode_reply((struct bytes){head, out.size}, &frame);
    assert(r == 0 && frame.id == request->id && frame.result == 0);
    it.ready_count++;
    inlet_done(request);
}

static void inlet_begin(void) {
    const struct inlet_options options = {.env = &clock_env,
                                          .requests_max = REQUESTS,
                                          .bulk_bytes_max = BULK_BYTES_MAX,
                                          .bulk_get = bulk_get,
                                          .bulk_put = bulk_put,
                                          .taken = taken,
                                          .ready = ready};
    struct inlet_options with_logs = options;
    int r = log_table_new(4, &it.logs);

    assert(r == 0);
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.server, "server", server_step);
    r = log_table_add(it.logs, log_served, &it.server);
    assert(r == 0);
    with_logs.logs = it.logs;
    with_logs.worker = &it.worker;
    r = inlet_init(&it.inlet, &with_logs);
    assert(r == 0);
}

/* Two bytes: who it comes from, and how much of the end is bulk. */
void fuzz_request(struct bytes in) {
    static const struct identity identities[] = {
        {.kind = IDENTITY_MEMBER},
        {.kind = IDENTITY_MOUNT, .serial = 1},
        {.kind = IDENTITY_MOUNT, .serial = 1, .read_only = true},
        {.kind = IDENTITY_MOUNT, .serial = 1, .squash_root = true}};
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t who = wire_take_number(&cursor, 1) % (ARRAY_SIZE(identities) + 1);
    size_t bulk_bytes = MIN((size_t)wire_take_number(&cursor, 1), cursor.size);
    const struct inlet_arrival arrival = {
        .head = {cursor.data, cursor.size - bulk_bytes},
        .bulk = {cursor.data + (cursor.size - bulk_bytes), bulk_bytes},
        .identity = who > 0 ? &identities[who - 1] : NULL};
    struct inlet_refusal refusal;
    uint8_t head[INLET_REFUSAL_BYTES];
    struct buffer out = {head, 0, sizeof head};

    if (!it.logs) {
        inlet_begin();
    }
    it.ready_count = 0;
    enum inlet_taken took = inlet_take(&it.inlet, &arrival, &refusal);
    if (took == INLET_REFUSED) {
        struct frame_reply frame;

        assert(refusal.result < 0);
        inlet_encode_refusal(&refusal, &out);
        int r = frame_decode_reply((struct bytes){head, out.size}, &frame);
        assert(r == 0 && frame.result == refusal.result);
    }
    assert(it.ready_count == (took == INLET_POSTED) && it.bulk_count == 0);
    assert(pool_usage(&it.inlet.pool).used_count == 0);
}

static void seed_call(const struct fuzz_seeds *seeds, struct call *call, size_t bulk_bytes) {
    static uint8_t seed[2 + HEAD_BYTES];
    struct buffer out = {seed + 2, 0, HEAD_BYTES - bulk_bytes};

    call->header.log = log_served;
    call->header.sequence = wire_is_mutation(call->header.opcode) ? 9 : 0;
    int r = frame_encode_request(call, 5, UINT64_MAX, &out);
    assert(r == 0);
    memset(seed + 2 + out.size, 0x11, bulk_bytes);
    for (uint8_t who = 0; who < 5; who += 2) {
        seed[0] = who;
        seed[1] = (uint8_t)bulk_bytes;
        fuzz_seed(seeds, (struct bytes){seed, 2 + out.size + bulk_bytes});
    }
}

void seed_request(const struct fuzz_seeds *seeds) {
    static const uint32_t groups[] = {0, 24};
    uint32_t checksums[2] = {1, 2};
    uint8_t bulk[200] = {0};
    struct call lookup = {.header = {.opcode = OP_LOOKUP},
                          .request.lookup = {.parent = {1},
                                             .name = {(const uint8_t *)"a", 1},
                                             .who = {0, 0, 2, groups}}};
    struct call write = {.header = {.opcode = OP_CHUNK_WRITE},
                         .bulk_out = {{bulk, sizeof bulk}},
                         .bulk_out_count = 1,
                         .checksums = checksums,
                         .checksum_count = 2};
    struct call read = {.header = {.opcode = OP_CHUNK_READ},
                        .bulk_in = {bulk, 0, sizeof bulk},
                        .checksums = checksums,
                        .checksum_count = 2};
    struct call open = {.header = {.opcode = OP_OPEN},
                        .request.open = {.ino = {2}, .open_flags = OPEN_WRITE}};

    seed_call(seeds, &lookup, 0);
    seed_call(seeds, &write, sizeof bulk);
    seed_call(seeds, &read, 0);
    seed_call(seeds, &open, 0);
}

/* A client that awaits the reply of the opcode that the first byte names; the second says how many
 * checksums it has room for. */
void fuzz_reply(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    uint16_t opcode = (uint16_t)wire_take_number(&cursor, 1);
    uint32_t checksum_count = (uint32_t)wire_take_number(&cursor, 1);
    uint32_t *checksums = calloc(checksum_count + 1, sizeof *checksums);
    struct call call = {.header = {.opcode = opcode, .log = log_served},
                        .bulk_in = {.capacity = REPLY_SPACE},
                        .checksums = checksums,
                        .checksum_count = checksum_count};
    struct bytes head = fuzz_rest(&cursor);
    struct frame_reply frame;

    assert(checksums);
    if (frame_decode_reply(head, &frame) == 0) {
        assert(frame.result <= 0 && fuzz_is_within(frame.body, head));
        assert(fuzz_is_within(frame.checksums, head) && frame.checksums.size % 4 == 0);
        if (frame_apply_reply(&frame, &call) == 0) {
            assert(call.header.opcode == frame.opcode && frame.bulk_bytes <= REPLY_SPACE);
            assert(call.checksum_count <= checksum_count);
        } else {
            assert(call.checksum_count == checksum_count && call.server_position == 0);
        }
    }
    free(checksums);
}

void seed_reply(const struct fuzz_seeds *seeds) {
    static const uint16_t opcodes[] = {OP_LOOKUP, OP_CREATE, OP_CHUNK_READ, OP_READDIR};
    static uint8_t seed[2 + HEAD_BYTES], space[REPLY_SPACE];
    uint32_t checksums[2] = {3, 4};

    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        bool with_bulk = i >= 2;
        const struct call call = {.header = {.opcode = opcodes[i], .log = log_served},
                                  .bulk_in = {space, with_bulk ? 100 : 0, sizeof space},
                                  .checksums = checksums,
                                  .checksum_count = with_bulk ? 2 : 0,
                                  .server_position = 5};
        struct buffer out = {seed + 2, 0, HEAD_BYTES};

        int r = frame_encode_reply(&call, 1, &out);
        assert(r == 0);
        seed[0] = (uint8_t)opcodes[i];
        seed[1] = 2;
        fuzz_seed(seeds, (struct bytes){seed, 2 + out.size});
    }
}
