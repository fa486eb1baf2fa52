/* A lane, and whatever a process may answer that it calls: welcomes, replies to what was asked and
 * to what was not, in any order, over one connection after the other. An input is a program as that
 * of fuzz_gate.c:
 *
 *     0 CALL      u8               one of the kinds of `kinds`
 *     1 BYTES, 2 MESSAGE           said by the other side of the newest connection
 *     3 PASS      u8               so many tenths of a second go by, and a tick
 *     4 END       u8               the other side ends the stream, or resets it
 *     5 TAKE      u8               how many bytes each send takes from here on; 0: all
 *
 * No call is done twice, and what it gets lies within its space. */
#include "byte_streams.h"
#include "fuzz.h"
#include "rpc/call_origin.h"
#include "rpc/frame.h"
#include "rpc/lane.h"
#include "rpc/worker.h"
#include <stdlib.h>

enum { CALLS_MAX = 32, LOGS_MAX = 4, SPACE_BYTES = 200, CHECKSUMS = 2, SEED_BYTES = 2048 };
enum instruction { CALL, BYTES, MESSAGE, PASS, END, TAKE, INSTRUCTION_COUNT };

static const struct log_id log_asked = {7};
static const uint16_t kinds[] = {OP_GETATTR, OP_CHUNK_READ, OP_CREATE, OP_READDIR, OP_CHUNK_WRITE};

static struct {
    struct byte_streams streams;
    struct worker worker;
    struct actor origin;
    struct lanes *lanes;
    struct lane_thread *thread;
    struct rpc *rpc;
    struct call calls[CALLS_MAX];
    bool done[CALLS_MAX];
    uint32_t call_count;
} it;

static void wake(void *context) {
    (void)context;
}

static void call_is_done(struct call *call) {
    size_t number = (size_t)(call - it.calls);

    assert(!it.done[number] && call->result <= 0);
    it.done[number] = true;
    assert(call->bulk_in.size <= call->bulk_in.capacity && call->checksum_count <= CHECKSUMS);
    call_abandon(call);
}

static void lanes_begin(void) {
    const struct address address = {.kind = ADDRESS_UNIX, .name = "/s"};
    const struct lanes_options options = {.env = &it.streams.env, .self = {.life = {3, 4}}};
    const struct lane_waker waker = {.wake = wake};
    const struct rpc_options rpc = {.transport = &lanes_ops,
                                    .env = &it.streams.env,
                                    .resend_ns = NS_PER_MS,
                                    .logs_max = LOGS_MAX};
    struct rpc_options with_lanes = rpc;
    uint32_t peer;

    memset(&it, 0, sizeof it);
    byte_streams_begin(&it.streams);
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.origin, "origin", call_origin_step);
    int r = lanes_new(&options, &it.lanes);
    assert(r == 0);
    r = lanes_peer_add(it.lanes, &address, 1, "it", &peer);
    assert(r == 0);
    lanes_set_default(it.lanes, peer);
    r = lane_thread_new(it.lanes, &waker, &it.thread);
    assert(r == 0);
    lane_thread_bind(it.thread);
    with_lanes.transport_context = it.lanes;
    r = rpc_new(&with_lanes, &it.rpc);
    assert(r == 0);
    r = rpc_session_set(it.rpc, (struct session_id){1}, 1);
    assert(r == 0);
}

static void lanes_run(void) {
    while (worker_run_one(&it.worker)) {
    }
    (void)lane_thread_turn(it.thread);
}

static void lanes_finish(void) {
    lane_thread_free(it.thread);
    while (worker_run_one(&it.worker)) {
    }
    rpc_free(it.rpc);
    lanes_free(it.lanes);
    byte_streams_end(&it.streams);
    for (uint32_t i = 0; i < it.call_count; i++) {
        free(it.calls[i].bulk_in.data);
        free(it.calls[i].checksums);
    }
}

static void call_begin(uint64_t kind) {
    static uint8_t content[SPACE_BYTES];

    if (it.call_count == CALLS_MAX) {
        return;
    }
    struct call *call = &it.calls[it.call_count++];
    call->header.opcode = kinds[kind % ARRAY_SIZE(kinds)];
    call->header.log = log_asked;
    call->origin = &it.origin;
    call->done = call_is_done;
    if (call->header.opcode == OP_CHUNK_READ || call->header.opcode == OP_READDIR) {
        call->bulk_in = (struct buffer){malloc(SPACE_BYTES), 0, SPACE_BYTES};
        call->checksums = malloc(CHECKSUMS * sizeof *call->checksums);
        call->checksum_count = CHECKSUMS;
        assert(call->bulk_in.data && call->checksums);
    } else if (call->header.opcode == OP_CHUNK_WRITE) {
        call->bulk_out[0] = (struct bytes){content, sizeof content};
        call->bulk_out_count = 1;
    }
    call_start(it.rpc, call);
}

static void run_one(struct wire_cursor *cursor) {
    struct byte_stream *newest =
        it.streams.count > 0 ? &it.streams.streams[it.streams.count - 1] : NULL;

    switch (wire_take_number(cursor, 1) % INSTRUCTION_COUNT) {
    case CALL:
        call_begin(wire_take_number(cursor, 1));
        break;
    case BYTES:
        byte_stream_say(newest, cursor);
        break;
    case MESSAGE:
        byte_stream_say_message(newest, cursor);
        break;
    case PASS:
        it.streams.now_ns += wire_take_number(cursor, 1) * (NS_PER_S / 10);
        lanes_tick(it.lanes);
        (void)lane_thread_turn(it.thread);
        rpc_tick(it.rpc);
        break;
    case END:
        if (newest) {
            byte_stream_finish(newest, wire_take_number(cursor, 1) & 1 ? -ERR_RESET : 0);
        }
        break;
    case TAKE:
        it.streams.take_bytes = (uint32_t)wire_take_number(cursor, 1);
        if (newest) {
            byte_stream_room(newest);
        }
        break;
    }
}

void fuzz_lane(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);

    lanes_begin();
    while (cursor.size > 0 && !cursor.bad) {
        run_one(&cursor);
        lanes_run();
    }
    lanes_finish();
}

static void give_welcome(struct buffer *out) {
    const union reply_body body = {.hello = {.version = 1, .node = 1, .lanes = 8}};
    uint8_t space[UINT8_MAX];
    struct buffer head = {space, 0, sizeof space};
    int r = wire_encode_reply(OP_HELLO, &body, &head);

    assert(r == 0);
    wire_give_number(out, MESSAGE, 1);
    byte_stream_script(out, CONNECTION_WELCOME, &head, 0);
}

static void give_reply(struct buffer *out, uint16_t opcode, uint64_t id) {
    size_t bulk_bytes = opcode == OP_CHUNK_READ ? 100 : 0;
    const struct call call = {.header = {.opcode = opcode, .log = log_asked},
                              .bulk_in = {.size = bulk_bytes}};
    uint8_t space[SAID_HEAD_BYTES_MAX];
    struct buffer head = {space, 0, sizeof space};
    int r = frame_encode_reply(&call, id, &head);

    assert(r == 0);
    wire_give_number(out, MESSAGE, 1);
    byte_stream_script(out, CONNECTION_REPLY, &head, bulk_bytes);
}

void seed_lane(const struct fuzz_seeds *seeds) {
    static const uint8_t calls[] = {CALL, 0, CALL, 1, CALL, 2};
    static const uint8_t breaks[] = {CALL, 4, END, 1, PASS, 2, PASS, 100};
    uint8_t space[SEED_BYTES];
    struct buffer out = {space, 0, sizeof space};

    wire_give(&out, calls, sizeof calls);
    give_welcome(&out);
    for (uint64_t i = 0; i < 3; i++) {
        give_reply(&out, kinds[i], i);
    }
    fuzz_seed(seeds, (struct bytes){space, out.size});
    wire_give(&out, breaks, sizeof breaks);
    give_welcome(&out);
    give_reply(&out, kinds[4], UINT64_C(1) << 32);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}
