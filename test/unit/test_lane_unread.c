/* Ends of connections that stop reading: what waits for them holds up nobody else, and nobody's
 * memory is read when it is not theirs any more. */
#include "base/crc32c.h"
#include "base/endian.h"
#include "lane_bench.h"
#include "rpc/frame.h"
#include "rpc/lane.h"
#include "wire/wire.h"
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The other end, which does what no lane and no gate does. */
static struct other {
    struct connection *connection;
    bool is_welcome;
    bool is_over;
    struct env_listener *listener;
} other;

static void *no_bulk(void *context, const struct connection_message *message, size_t size_bytes) {
    (void)context;
    (void)message;
    (void)size_bytes;
    return NULL;
}

static void no_bulk_back(void *context, void *bulk) {
    (void)context;
    (void)bulk;
}

/* Welcomes whoever greets, and reads no more. */
static void welcome_send(void) {
    const struct connection_outgoing outgoing = {.kind = CONNECTION_WELCOME};
    const union reply_body body = {.hello = {.version = 1,
                                             .cluster_high = 9,
                                             .life_high = 1,
                                             .life_low = 2,
                                             .lanes = 1,
                                             .wall_ns = env_wall_ns(it.env)}};
    struct buffer head;

    assert_int_equal(connection_begin(other.connection, 256, &head), 0);
    assert_int_equal(wire_encode_reply(OP_HELLO, &body, &head), 0);
    connection_commit(other.connection, &head, &outgoing);
    connection_flush(other.connection);
    connection_set_reading(other.connection, false);
}

static void message_came(void *context, const struct connection_message *message) {
    (void)context;
    if (message->kind == CONNECTION_HELLO) {
        welcome_send();
    }
    other.is_welcome = other.is_welcome || message->kind == CONNECTION_WELCOME;
}

static void room_came(void *context) {
    (void)context;
}

static void end_came(void *context, int reason) {
    (void)context;
    (void)reason;
    other.is_over = true;
}

static const struct connection_hooks hooks = {no_bulk, no_bulk_back, message_came, room_came,
                                              end_came};

static bool is_set(void *context) {
    return *(bool *)context;
}

static bool is_there(void *context) {
    return *(struct connection **)context != NULL;
}

static void hello_send(void) {
    const struct connection_options options = {
        .env = it.env, .out_bytes = 4 * MIB, .out_messages = 65536, .hooks = &hooks};
    const struct connection_outgoing outgoing = {.kind = CONNECTION_HELLO};
    const union request_body body = {
        .hello = {
            .version_min = 1, .version_max = 1, .life_high = 99, .life_low = 98, .number = 1}};
    struct buffer head;

    assert_int_equal(
        connection_dial(&options, &it.address, env_now_ns(it.env) + LIMIT_NS, &other.connection),
        0);
    assert_int_equal(connection_begin(other.connection, 256, &head), 0);
    assert_int_equal(wire_encode_request(OP_HELLO, &body, &head), 0);
    connection_commit(other.connection, &head, &outgoing);
    connection_flush(other.connection);
    run_until(is_set, &other.is_welcome);
}

static int request_send(uint64_t id) {
    const struct connection_outgoing outgoing = {.kind = CONNECTION_REQUEST};
    const struct call call = {.header = {.opcode = OP_GETATTR, .log = log_served}};
    struct buffer head;
    int r = connection_begin(other.connection, 16384, &head);

    if (r == 0) {
        assert_int_equal(frame_encode_request(&call, id, UINT64_MAX, &head), 0);
        connection_commit(other.connection, &head, &outgoing);
    }
    return r;
}

static bool is_full(void) {
    struct gate_stats stats;

    gate_stats(it.gate, &stats);
    return stats.busy_count > 0;
}

/* Small answers, each of which holds a request's place until it is sent: one end takes all places
 * that there are, asking one thing after the other, and reads none of its answers. It goes when
 * others find no place. */
static void who_reads_no_answers_holds_up_nobody(void **state) {
    uint64_t end_ns = env_now_ns(it.env) + LIMIT_NS;
    uint64_t id = 1;

    (void)state;
    gate_begin(9);
    hello_send();
    connection_set_reading(other.connection, false);
    for (; !is_full(); id++) {
        assert_int_equal(request_send(id), 0);
        connection_flush(other.connection);
        turn();
        assert_true(env_now_ns(it.env) < end_ns);
    }
    assert_false(other.is_over);
    lanes_begin(9);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask(i, OP_GETATTR, 0);
    }
    wait_done(CALLS);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
}

static void stream_came(struct env_listener *listener, struct env_stream *stream) {
    const struct connection_options options = {
        .env = it.env, .out_bytes = 256 * KIB, .out_messages = 64, .hooks = &hooks};

    (void)listener;
    if (!other.connection) {
        assert_int_equal(connection_accept(&options, stream, &other.connection), 0);
    } else {
        it.env->streams->close(stream);
    }
}

/* A question that is given up before it was sent: its caller has its memory again, so the
 * connection that would read from there goes. */
static void what_was_given_up_unsent_is_not_touched(void **state) {
    const struct env_listen_options options = {.accepted = stream_came};
    struct lane_stats stats;

    (void)state;
    assert_int_equal(it.env->streams->listen(it.env, &it.address, &options, &other.listener), 0);
    lanes_begin(0);
    for (uint32_t i = 0; i < 4; i++) {
        ask(i, OP_READLINK, BULK_BYTES)->deadline_ns = env_now_ns(it.env) + 2 * LIMIT_NS;
    }
    run_until(is_there, &other.connection);
    struct call *late = ask(4, OP_GETATTR, 0);
    late->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(late->result, -ERR_TIMED_OUT);
    late->bulk_is_sent = false;
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.replaced_count, 1);
    connection_set_reading(other.connection, true);
    run_until(is_set, &other.is_over);
    assert_false(late->bulk_is_sent);
}

/* Everything that the gate has for the peer by now; how many bytes. */
static size_t raw_drain(int peer) {
    static uint8_t bytes[1 << 16];
    size_t all = 0;
    ssize_t got;

    while ((got = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        all += (size_t)got;
    }
    return all;
}

static void raw_message(int peer, enum connection_kind kind, struct bytes head) {
    uint8_t bytes[1024] = {0};

    assert_true(16 + head.size <= sizeof bytes);
    store_le32(bytes, kind);
    store_le32(bytes + 4, (uint32_t)head.size);
    memcpy(bytes + 16, head.data, head.size);
    store_le32(bytes + 12, crc32c(crc32c(0, bytes, 12), bytes + 16, head.size));
    assert_int_equal(write(peer, bytes, 16 + head.size), 16 + head.size);
}

static void raw_wait_for_map(int peer, uint64_t id) {
    uint8_t bytes[512];
    struct buffer head = {.data = bytes, .capacity = sizeof bytes};
    struct call call = {.header = {.opcode = OP_MAP_WAIT, .log = log_served},
                        .request.map_wait = {.who = id}};

    assert_int_equal(frame_encode_request(&call, id, UINT64_MAX, &head), 0);
    raw_message(peer, CONNECTION_REQUEST, (struct bytes){bytes, head.size});
}

static int raw_connect(void) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const union request_body body = {
        .hello = {
            .version_min = 1, .version_max = 1, .life_high = 99, .life_low = 98, .number = 1}};
    uint8_t bytes[512];
    struct buffer head = {.data = bytes, .capacity = sizeof bytes};
    int peer = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_true(peer >= 0);
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s/socket", it.folder);
    assert_int_equal(connect(peer, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(wire_encode_request(OP_HELLO, &body, &head), 0);
    raw_message(peer, CONNECTION_HELLO, (struct bytes){bytes, head.size});
    while (raw_drain(peer) == 0) {
        turn();
    }
    return peer;
}

/* So many answers at once that they take three fillings of a connection, and a peer that reads them
 * only once the gate has stopped reading from it; what it has said meanwhile is no request. */
static void who_reads_again_and_says_rubbish_is_cut_off(void **state) {
    static const uint8_t rubbish[8] = {0};
    struct gate_stats stats;
    uint32_t many = HELD_MAX - 6;

    (void)state;
    it.requests_max = HELD_MAX;
    gate_begin(9);
    it.holds = true;
    int peer = raw_connect();
    for (uint32_t i = 0; i < many; i++) {
        raw_wait_for_map(peer, i + 1);
        if (i % 64 == 0) {
            turn();
        }
    }
    run_until(is_held, &many);
    while (it.held_answered < many) {
        call_reply(it.held[it.held_answered++], 0);
    }
    for (int i = 0; i < 5; i++) {
        turn();
    }
    raw_message(peer, CONNECTION_REPLY, (struct bytes){rubbish, sizeof rubbish});
    for (int i = 0; i < 5; i++) {
        turn();
    }
    gate_stats(it.gate, &stats);
    assert_int_equal(stats.connection_count, 1);
    while (stats.connection_count > 0) {
        (void)raw_drain(peer);
        (void)env_loop_wait(it.env, -1, NS_PER_MS);
        (void)raw_drain(peer); /* It reads while the gate is on its way. */
        gate_turn(it.gate);
        gate_stats(it.gate, &stats);
    }
    close(peer);
}

/* Nothing of the last while was a reason to take a connection that is there for gone. */
static void assert_nobody_absent(void) {
    struct lane_stats stats;
    uint64_t from_ns = env_now_ns(it.env);

    while (env_now_ns(it.env) < from_ns + 200 * NS_PER_MS) {
        turn();
    }
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.broken_count, 0);
    assert_int_equal(stats.silent_count, 0);
    assert_string_equal(it.said, "");
}

/* A change that is given up replaces the connection, and another call goes on: the new connection
 * has begun behind the time that the tick goes by. */
static void who_is_given_up_makes_nobody_absent(void **state) {
    uint32_t two = 2;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 2 * LIMIT_NS;
    struct call *late = ask(1, OP_MKDIR, 0);
    run_until(is_held, &two);
    late->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(late->result, -ERR_TIMED_OUT);
    assert_nobody_absent();
}

static void asks_once_more(struct call *call) {
    (void)call;
    it.done_count++;
    (void)ask(7, OP_GETATTR, 0);
}

/* Who hears in a tick that its time is up asks anew at once. */
static void who_asks_anew_makes_nobody_absent(void **state) {
    uint32_t one = 1;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    struct call *late = ask(0, OP_GETATTR, 0);
    late->done = asks_once_more;
    run_until(is_held, &one);
    late->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(late->result, -ERR_TIMED_OUT);
    assert_nobody_absent();
}

static int set_up_both(void **state) {
    other = (struct other){0};
    return set_up(state);
}

/* Also of a test that has failed. */
static int tear_down_both(void **state) {
    if (it.lanes) {
        lanes_end();
    }
    connection_free(other.connection, true);
    it.env->streams->listener_close(other.listener);
    return tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_both, tear_down_both)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_reads_no_answers_holds_up_nobody),
        TEST(what_was_given_up_unsent_is_not_touched),
        TEST(who_is_given_up_makes_nobody_absent),
        TEST(who_asks_anew_makes_nobody_absent),
        TEST(who_reads_again_and_says_rubbish_is_cut_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
