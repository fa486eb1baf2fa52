/* A gate, and whatever strangers and callers with and without keys may say to it, over several
 * connections and in any order. An input is a program: each instruction is a byte and what it
 * takes. So a message has a right checksum where it should, and connections come and go.
 *
 *     0 CONNECT                    one more stream, which is spoken on from here on
 *     1 CHOOSE    u8               ... another one
 *     2 BYTES     u8 count, bytes  as they are
 *     3 MESSAGE   u8 kind, u16 size of the head, u8 size of the bulk, head, bulk
 *     4 PASS      u8               so many tenths of a second go by, and a tick
 *     5 ANSWER                     the actor answers what it holds
 *     6 END       u8               the other side ends the stream, or resets it
 *     7 TAKE      u8               how many bytes each send takes from here on; 0: all
 *
 * At its end nothing of it is left: no request, no memory, no stream. */
#include "byte_streams.h"
#include "fuzz.h"
#include "keys/tls.h"
#include "rpc/connection.h"
#include "rpc/gate.h"
#include "rpc/worker.h"

enum { HELD_MAX = 64, BULK_BYTES = 8192, SEED_BYTES = 4096 };
enum instruction { CONNECT, CHOOSE, BYTES, MESSAGE, PASS, ANSWER, END, TAKE, INSTRUCTION_COUNT };

static const struct log_id log_served = {7};

static struct {
    struct byte_streams streams;
    struct worker worker;
    struct log_table *logs; /* there for good, with all that does not change */
    struct actor server;
    struct tls_context *tls;
    struct call *held[HELD_MAX];
    uint32_t held_count;
    struct byte_stream *stream;
    struct gate *gate;
} it;

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        assert(it.held_count < HELD_MAX);
        it.held[it.held_count++] = call;
    }
}

static void answer_held(void) {
    while (it.held_count > 0) {
        struct call *call = it.held[--it.held_count];

        if (call->bulk_in.capacity > 0) {
            memset(call->bulk_in.data, 1, call->bulk_in.capacity);
            call->bulk_in.size = call->bulk_in.capacity / 2;
        }
        call_reply(call, 0);
    }
}

static void tls_begin(void) {
    static struct key_ring *ring;
    struct secret secret = {{1, 2, 3}};
    struct key_file members;

    key_file_make(&secret, &members);
    int r = key_ring_new(&members, &ring);
    assert(r == 0);
    r = tls_context_serve(ring, &it.tls);
    assert(r == 0);
}

static void wake(void *context) {
    (void)context;
}

static void gate_begin(bool with_tls) {
    const struct address address = {.kind = ADDRESS_UNIX, .name = "/s"};
    struct gate_options options = {.self = {.cluster_id = {1}, .node = {1}, .life = {1, 2}},
                                   .requests_max = 16,
                                   .connections_max = 8,
                                   .bulk_count = 2,
                                   .small_bulk_count = 2,
                                   .bulk_bytes_max = BULK_BYTES,
                                   .waker = {.wake = wake}};
    int r;

    worker_bind(&it.worker);
    if (!it.logs) {
        worker_init(&it.worker);
        worker_bind(&it.worker);
        r = log_table_new(4, &it.logs);
        assert(r == 0);
        actor_init(&it.server, "server", server_step);
        r = log_table_add(it.logs, log_served, &it.server);
        assert(r == 0);
        tls_begin();
    }
    byte_streams_begin(&it.streams);
    if (with_tls) {
        r = address_parse("10.0.0.1:7400", &it.streams.address);
        assert(r == 0);
    }
    options.env = &it.streams.env;
    options.logs = it.logs;
    options.tls = it.tls;
    r = gate_new(&options, &it.gate);
    assert(r == 0);
    r = gate_listen(it.gate, &address);
    assert(r == 0);
    it.stream = NULL;
}

static void gate_finish(void) {
    struct gate_stats stats;

    answer_held();
    (void)gate_turn(it.gate);
    gate_stats(it.gate, &stats);
    assert(stats.connection_count <= stats.connections_max);
    gate_close(it.gate);
    (void)gate_turn(it.gate);
    assert(gate_is_idle(it.gate));
    gate_free(it.gate);
    byte_streams_end(&it.streams);
}

static void choose(uint64_t number) {
    if (it.streams.count > 0) {
        it.stream = &it.streams.streams[number % it.streams.count];
    }
}

static void run_one(struct wire_cursor *cursor) {
    struct byte_stream *added;

    switch (wire_take_number(cursor, 1) % INSTRUCTION_COUNT) {
    case CONNECT:
        added = byte_streams_add(&it.streams);
        it.stream = added ? added : it.stream;
        break;
    case CHOOSE:
        choose(wire_take_number(cursor, 1));
        break;
    case BYTES:
        byte_stream_say(it.stream, cursor);
        break;
    case MESSAGE:
        byte_stream_say_message(it.stream, cursor);
        break;
    case PASS:
        it.streams.now_ns += wire_take_number(cursor, 1) * (NS_PER_S / 10);
        gate_tick(it.gate);
        break;
    case ANSWER:
        answer_held();
        break;
    case END:
        if (it.stream) {
            byte_stream_finish(it.stream, wire_take_number(cursor, 1) & 1 ? -ERR_RESET : 0);
        }
        break;
    case TAKE:
        it.streams.take_bytes = (uint32_t)wire_take_number(cursor, 1);
        if (it.stream) {
            byte_stream_room(it.stream);
        }
        break;
    }
}

/* The first byte says whether they come by TCP, and so by TLS. */
void fuzz_gate(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);

    gate_begin(wire_take_number(&cursor, 1) & 1);
    while (cursor.size > 0 && !cursor.bad) {
        run_one(&cursor);
        (void)gate_turn(it.gate);
    }
    gate_finish();
}

static void give_message(struct buffer *out, enum connection_kind kind, const struct buffer *head,
                         size_t bulk_bytes) {
    wire_give_number(out, MESSAGE, 1);
    byte_stream_script(out, kind, head, bulk_bytes);
}

static void give_hello(struct buffer *out, uint64_t number) {
    const union request_body body = {.hello = {.version_min = 1,
                                               .version_max = 1,
                                               .cluster_high = 1,
                                               .node = 2,
                                               .receiver = 1,
                                               .life_high = 5,
                                               .lane = 1,
                                               .number = number,
                                               .plain = 1}};
    uint8_t space[UINT8_MAX];
    struct buffer head = {space, 0, sizeof space};
    int r = wire_encode_request(OP_HELLO, &body, &head);

    assert(r == 0);
    wire_give_number(out, CONNECT, 1);
    give_message(out, CONNECTION_HELLO, &head, 0);
}

static void give_call(struct buffer *out, struct call *call) {
    uint8_t space[SAID_HEAD_BYTES_MAX];
    struct buffer head = {space, 0, sizeof space};

    call->header.log = log_served;
    int r = frame_encode_request(call, 3, UINT64_MAX, &head);
    assert(r == 0);
    give_message(out, CONNECTION_REQUEST, &head,
                 call->bulk_out_count > 0 ? call->bulk_out[0].size : 0);
}

void seed_gate(const struct fuzz_seeds *seeds) {
    static const uint8_t end[] = {ANSWER, PASS, 200, END, 1};
    uint8_t space[SEED_BYTES], bulk[100] = {0};
    struct buffer out = {space, 0, sizeof space};
    struct call getattr = {.header = {.opcode = OP_GETATTR}};
    struct call write = {.header = {.opcode = OP_CHUNK_WRITE, .sequence = 1},
                         .bulk_out = {{bulk, sizeof bulk}},
                         .bulk_out_count = 1};
    struct call read = {.header = {.opcode = OP_CHUNK_READ}, .bulk_in = {.capacity = 4096}};

    wire_give_number(&out, 0, 1);
    give_hello(&out, 1);
    give_call(&out, &getattr);
    give_call(&out, &read);
    wire_give(&out, end, 1);
    give_message(&out, CONNECTION_PING, &(struct buffer){0}, 0);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    give_hello(&out, 2); /* a newer connection of the lane, to which the answers go */
    give_call(&out, &write);
    wire_give(&out, end, sizeof end);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}
