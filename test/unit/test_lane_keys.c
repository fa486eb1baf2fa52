/* Lanes and gates as to who is let in: strangers, keys, greetings. */
#include "base/crc32c.h"
#include "base/endian.h"
#include "lane_bench.h"

enum { STRANGERS = 48 };
static uint32_t strangers_spoken;

static void stranger_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    uint8_t junk[600];
    uint32_t number = (uint32_t)(uintptr_t)stream->context;
    uint32_t seed = number + 1;
    struct bytes part = {junk, 1 + number * 12};
    size_t sent;

    (void)reason;
    if (event != ENV_STREAM_OPEN) {
        return;
    }
    for (size_t j = 0; j < sizeof junk; j++) {
        seed = seed * 1664525 + 1013904223;
        junk[j] = (uint8_t)(seed >> 24);
    }
    if (number % 3 == 0) {
        memset(junk, 0, 12);
        junk[0] = (uint8_t)(1 + number % 6); /* A kind, a small head, a wrong sum. */
        junk[4] = (uint8_t)number;
    }
    assert_int_equal(env_stream_send(stream, &part, 1, &sent), 0);
    strangers_spoken++;
}

static bool all_have_spoken(void *context) {
    (void)context;
    return strangers_spoken == STRANGERS;
}

/* Bytes of anyone's: whole, cut, or none at all. The others are served meanwhile. */
static void any_bytes_may_come(void **state) {
    struct env_stream *streams[STRANGERS];

    (void)state;
    strangers_spoken = 0;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        const struct env_connect_options options = {
            .deadline_ns = UINT64_MAX, .event = stranger_event, .context = (void *)(uintptr_t)i};

        assert_int_equal(it.env->streams->connect(it.env, &it.address, &options, &streams[i]), 0);
    }
    run_until(all_have_spoken, NULL);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        (i % 2 ? env_stream_reset : env_stream_close)(streams[i]);
    }
    ask(1, OP_GETATTR, 0);
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
}

/* What a mount's key for reading is not for is refused, and never gets to an actor. */
static void a_key_is_for_what_it_says(void **state) {
    static const uint16_t refused[] = {OP_MKDIR, OP_UNLINK, OP_SESSIONS_ENDED, OP_FSCK_LIST,
                                       OP_CHUNK_DELETE};
    struct call *call;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < ARRAY_SIZE(refused); i++) {
        ask(i, refused[i], 0);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, i < 2 ? -ERR_READ_ONLY : -ERR_NOT_PERMITTED);
    }
    it.calls[10].request.open.open_flags = OPEN_READ | OPEN_WRITE;
    ask(10, OP_OPEN, 0);
    it.calls[11].request.reopen.write_count = 1;
    ask(11, OP_REOPEN, 0);
    wait_done(7);
    assert_int_equal(it.calls[10].result, -ERR_READ_ONLY);
    assert_int_equal(it.calls[11].result, -ERR_READ_ONLY);
    assert_int_equal(it.ran_count, 0);
    call = ask(12, OP_LOOKUP, 0);
    wait_done(8);
    assert_int_equal(call->result, 0);
    assert_int_equal(it.asked_as, 65534);
}

static void another_key_is_refused(void **state) {
    const struct secret secret = {{9}};
    struct key_file other;

    (void)state;
    key_file_make(&secret, &other);
    tls_context_free(it.calling);
    assert_int_equal(tls_context_call(&other, &it.calling), 0);
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 200 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
    assert_non_null(strstr(it.said, "the key is not taken there"));
    assert_non_null(strstr(it.said, "was refused: its key is of another cluster"));
}

/* Who is connected is cut off, with what it waits for; and hears each time why. */
static void a_revoked_key_is_cut_off(void **state) {
    uint32_t held = 3;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < held; i++) {
        ask(i, OP_LOOKUP, 0);
    }
    run_until(is_held, &held);
    assert_int_equal(key_ring_revoke(it.ring, 5), 0);
    wait_done(held);
    it.holds = false;
    answer_held();
    ask(held, OP_LOOKUP, 0);
    wait_done(held + 1);
    for (uint32_t i = 0; i <= held; i++) {
        assert_int_equal(it.calls[i].result, -ERR_REVOKED);
    }
    assert_int_equal(it.held_count, held);
    assert_non_null(strstr(it.said, "was cut off: its key 0000000000000005 is revoked"));
    assert_non_null(strstr(it.said, "lets nobody in by this key: the key is revoked"));
}

/* HELLO by hand. */
static int welcomed;
static bool welcomed_plain;

static void hello_answered(void *context, const struct connection_message *message) {
    union reply_body body;

    (void)context;
    assert_int_equal(message->kind, CONNECTION_WELCOME);
    assert_int_equal(wire_decode_reply(OP_HELLO, message->head, &body), 0);
    welcomed = (int)body.hello.result;
    welcomed_plain = body.hello.plain;
}

static void hello_ended(void *context, int reason) {
    (void)context;
    (void)reason;
    welcomed = -ERR_RESET;
}

static bool is_welcomed(void *context) {
    (void)context;
    return welcomed != 1;
}

static int hello_with(struct hello_request hello) {
    static const struct connection_hooks hooks = {.message = hello_answered, .ended = hello_ended};
    const struct connection_options options = {
        .env = it.env, .out_bytes = 65536, .out_messages = 4, .hooks = &hooks, .tls = it.calling};
    const struct connection_outgoing outgoing = {.kind = CONNECTION_HELLO};
    const union request_body body = {.hello = hello};
    struct connection *connection;
    struct buffer head;

    welcomed = 1;
    assert_int_equal(connection_dial(&options, &it.address, UINT64_MAX, &connection), 0);
    assert_int_equal(connection_begin(connection, 256, &head), 0);
    assert_int_equal(wire_encode_request(OP_HELLO, &body, &head), 0);
    connection_commit(connection, &head, &outgoing);
    connection_flush(connection);
    run_until(is_welcomed, NULL);
    connection_free(connection, true);
    return welcomed;
}

static void a_greeting_must_fit(void **state) {
    struct hello_request good = {.version_min = 1, .version_max = 1, .life_high = 1, .number = 1};
    const struct {
        uint32_t version_min, version_max, node, receiver;
        uint64_t cluster_high;
        int result;
    } rows[] = {{2, 9, 0, 0, 0, -ERR_TOO_NEW},
                {0, 0, 0, 0, 0, -ERR_TOO_OLD},
                {1, 1, 0, 2, 0, -ERR_REFUSED},
                {1, 1, 1, 0, 0, -ERR_OWN_NODE},
                {1, 1, 1, 2, 0, -ERR_OWN_NODE},
                {1, 1, 1, 0, 77, -ERR_OTHER_CLUSTER},
                {1, 9, 2, 1, 0, 0},
                {0, 1, 0, 0, 0, -ERR_OLD_LANE}};

    (void)state;
    good.plain = it.calling != NULL && it.encryption_of_gate != LINK_ENCRYPTED_ALWAYS;
    gate_begin(9);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct hello_request hello = good;

        hello.version_min = rows[i].version_min;
        hello.version_max = rows[i].version_max;
        hello.node = rows[i].node;
        hello.receiver = rows[i].receiver;
        hello.cluster_high = rows[i].cluster_high;
        assert_int_equal(hello_with(hello), rows[i].result);
    }
}

/* What goes on in the clear goes to whom was connected to. Who has said nothing of that, as the
 * version before does, is believed. */
static void who_was_led_elsewhere_stays_in_tls(void **state) {
    struct hello_request hello = {
        .version_min = 1, .version_max = 1, .life_high = 1, .plain = true};
    struct address other;
    char dialled[ADDRESS_TEXT_BYTES];

    (void)state;
    gate_begin(9);
    other = it.address;
    other.port++;
    const struct address *addresses[] = {NULL, &it.address, &other};
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        dialled[0] = '\0';
        if (addresses[i]) {
            address_format(addresses[i], dialled);
        }
        hello.dialled = (struct bytes){(const uint8_t *)dialled, strlen(dialled)};
        hello.number = i + 1;
        assert_int_equal(hello_with(hello), 0);
        assert_int_equal(welcomed_plain, addresses[i] != &other);
    }
    /* Half an address, and one that is longer. */
    hello.dialled.size--;
    hello.number++;
    assert_int_equal(hello_with(hello), 0);
    assert_false(welcomed_plain);
}

/* A member's life is told to whom it welcomes. A mount that greets by it elsewhere, with the
 * highest number there is, is not in the member's way. */
static void a_life_is_nobody_else_s(void **state) {
    static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 6};
    const struct secret secret = {{1, 2, 3}};
    struct hello_request hello = {.version_min = 1,
                                  .version_max = 1,
                                  .life_high = 3,
                                  .life_low = 9,
                                  .number = UINT64_MAX,
                                  .plain = true};
    struct tls_context *of_member = it.calling;
    struct key_file members, file;

    (void)state;
    key_file_make(&secret, &members);
    key_file_derive(&members, &laptop, &file);
    assert_int_equal(tls_context_call(&file, &it.calling), 0);
    gate_begin(9);
    for (hello.lane = 0; hello.lane < 4; hello.lane++) {
        assert_int_equal(hello_with(hello), 0);
    }
    tls_context_free(it.calling);
    it.calling = of_member;
    lanes_begin(9);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 5 * NS_PER_S;
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
}

/* Greets, and begins a message whose bulk never comes. */
static uint32_t halves_said;

static size_t message_begin(uint8_t *to, enum connection_kind kind, struct bytes head,
                            uint32_t bulk_bytes) {
    store_le32(to, kind);
    store_le32(to + 4, (uint32_t)head.size);
    store_le32(to + 8, bulk_bytes);
    memcpy(to + CONNECTION_PREFIX_BYTES, head.data, head.size);
    store_le32(to + 12,
               crc32c(crc32c(0, to, 12), to + CONNECTION_PREFIX_BYTES, (uint32_t)head.size));
    return CONNECTION_PREFIX_BYTES + head.size;
}

static void half_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    static const uint8_t head[256];
    const union request_body body = {.hello = {.version_min = 1,
                                               .version_max = 1,
                                               .life_high = 100 + (uintptr_t)stream->context,
                                               .number = 1}};
    uint8_t words[256];
    struct buffer hello = {.data = words, .capacity = sizeof words};
    uint8_t bytes[1024];
    size_t sent;

    (void)reason;
    if (event != ENV_STREAM_OPEN) {
        return;
    }
    assert_int_equal(wire_encode_request(OP_HELLO, &body, &hello), 0);
    size_t size = message_begin(bytes, CONNECTION_HELLO, (struct bytes){words, hello.size}, 0);
    size += message_begin(bytes + size, CONNECTION_REQUEST, (struct bytes){head, sizeof head},
                          BULK_BYTES);
    assert_int_equal(env_stream_send(stream, &(struct bytes){bytes, size + 1}, 1, &sent), 0);
    halves_said++;
}

static bool halves_are_said(void *count) {
    return halves_said == *(uint32_t *)count;
}

/* More half messages than there are buffers: they hold up the others no longer than a second. */
static void half_messages_hold_nobody_up(void **state) {
    enum { HALVES = 6 };
    struct env_stream *streams[HALVES];
    uint32_t count = HALVES;

    (void)state;
    halves_said = 0;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < HALVES; i++) {
        const struct env_connect_options options = {
            .deadline_ns = UINT64_MAX, .event = half_event, .context = (void *)(uintptr_t)i};

        assert_int_equal(it.env->streams->connect(it.env, &it.address, &options, &streams[i]), 0);
    }
    run_until(halves_are_said, &count);
    for (uint32_t i = 0; i < 20; i++) {
        turn(); /* They are read. */
    }
    ask(0, OP_MKDIR, BULK_BYTES);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    assert_non_null(strstr(it.said, "was cut off: it holds memory for half of a message"));
    for (uint32_t i = 0; i < HALVES; i++) {
        env_stream_close(streams[i]);
    }
}

/* More strangers than may be at a time, who say nothing: who has a key comes in, and they go. */
static void strangers_keep_nobody_out(void **state) {
    enum { MANY = GATE_GREETINGS_MAX + 100 };
    struct env_stream **streams = calloc(MANY, sizeof(struct env_stream *));
    struct gate_stats stats;

    (void)state;
    gate_begin(9);
    for (uint32_t i = 0; i < MANY; i++) {
        const struct env_connect_options options = {.deadline_ns = UINT64_MAX,
                                                    .event = silent_event};

        assert_int_equal(it.env->streams->connect(it.env, &it.address, &options, &streams[i]), 0);
        turn();
    }
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    gate_stats(it.gate, &stats);
    assert_true(stats.connection_count <= GATE_GREETINGS_MAX + 1);
    assert_true(stats.refused_count >= 100 - 1);
    for (uint32_t i = 0; i < MANY; i++) {
        env_stream_close(streams[i]);
    }
    free(streams);
}

static void who_has_no_key_is_refused(void **state) {
    (void)state;
    gate_begin(9);
    tls_context_free(it.calling);
    it.calling = NULL;
    assert_int_equal(lanes_new(&(struct lanes_options){.env = it.env}, &it.lanes), 0);
    assert_int_equal(lanes_peer_add(it.lanes, &it.address, 1, "it", &(uint32_t){0}), -ERR_ACCESS);
    lanes_free(TAKE_PTR(it.lanes));
}

/* One end says that all links are encrypted, the other that none on a machine is. */
static void ends_that_differ_refuse_each_other(void **state) {
    (void)state;
    it.encryption_of_gate = LINK_ENCRYPTED_ALWAYS;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 200 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_non_null(strstr(it.said, "one side encrypts"));
    assert_int_equal(it.ran_count, 0);
}

int main(void) {
    static struct way without_ring = {.without_ring = true};
    static struct way plain = {.by_tcp = true};
    static struct way encrypted = {.by_tcp = true, .encryption = LINK_ENCRYPTED_ALWAYS};
    static struct way by_reader = {.by_tcp = true, .of_mount = true};
    const struct CMUnitTest tests[] = {
        LANE_WAYS(any_bytes_may_come),
        LANE_WAY(a_key_is_for_what_it_says, "", by_reader),
        LANE_WAY(another_key_is_refused, "", plain),
        LANE_WAY(a_revoked_key_is_cut_off, "", by_reader),
        LANE_WAY(a_greeting_must_fit, "", encrypted),
        LANE_WAY(who_was_led_elsewhere_stays_in_tls, "", plain),
        LANE_WAY(who_has_no_key_is_refused, "", plain),
        LANE_WAY(strangers_keep_nobody_out, "", plain),
        LANE_WAY(a_life_is_nobody_else_s, "", plain),
        cmocka_unit_test_setup_teardown(half_messages_hold_nobody_up, set_up, tear_down),
        LANE_WAY(ends_that_differ_refuse_each_other, "", plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
