/* Streams of bytes between two ends on one thread, over Unix sockets and TCP, with io_uring and
 * without. Each waits for conditions; the limit is only for a test that fails. */
#include "env/env_linux.h"
#include "env/env_stream.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOTAL_BYTES = 3 << 20, PIECE_BYTES = 37 * 1024, TCP = 1, PLAIN = 2 };
#define LIMIT_NS (20 * NS_PER_S)

struct end {
    struct env_stream *stream;
    unsigned events; /* all that were told */
    unsigned ended_count;
    int reason;
    bool reads, closes;
    uint64_t received, sent;
    bool is_wrong;
};

static struct {
    char folder[32];
    char address[64];
    struct env *env;
    struct env_listener *listener;
    struct end client, server;
    unsigned accepted_count;
} it;

static uint8_t byte_at(uint64_t offset) {
    return (uint8_t)(offset * 31 + offset / 1009);
}

static void receive(struct end *end) {
    uint8_t first[1000], second[5000];
    const struct buffer parts[] = {{.data = first, .capacity = sizeof first},
                                   {.data = second, .capacity = sizeof second}};
    size_t got;

    while (end->reads && env_stream_receive(end->stream, parts, 2, &got) == 0) {
        for (size_t i = 0; i < got; i++) {
            uint8_t byte = i < sizeof first ? first[i] : second[i - sizeof first];

            end->is_wrong = end->is_wrong || byte != byte_at(end->received + i);
        }
        end->received += got;
    }
}

static void told(void *context, unsigned events) {
    struct end *end = context;

    end->events |= events;
    if (events & ENV_STREAM_READABLE) {
        if (end->closes) {
            env_stream_close(TAKE_PTR(end->stream), false);
            return;
        }
        receive(end);
    }
    if (events & ENV_STREAM_ENDED) {
        end->ended_count++;
        end->reason = end->stream->reason;
    }
}

static void accepted(void *context, struct env_stream *stream) {
    (void)context;
    it.accepted_count++;
    it.server.stream = stream;
    env_stream_set_handler(stream, told, &it.server);
}

static int set_up(void **state) {
    unsigned kind = *state ? *(unsigned *)*state : 0;
    struct env_linux_options options = {.refuse_uring = kind & PLAIN};

    memset(&it, 0, sizeof it);
    it.client.reads = it.server.reads = true;
    snprintf(it.folder, sizeof it.folder, "/tmp/stream-XXXXXX");
    options.root = mkdtemp(it.folder);
    if (env_linux_new(&options, &it.env) < 0 || env_thread_enter(it.env) < 0) {
        return -1;
    }
    snprintf(it.address, sizeof it.address, "unix:%s/socket", it.folder);
    for (unsigned port = 20000 + (unsigned)getpid() % 10000; kind & TCP; port++) {
        snprintf(it.address, sizeof it.address, port % 2 ? "127.0.0.1:%u" : "[::1]:%u", port);
        if (env_stream_listen(it.env, it.address, accepted, NULL, &it.listener) == 0) {
            return 0;
        }
    }
    return env_stream_listen(it.env, it.address, accepted, NULL, &it.listener);
}

static int tear_down(void **state) {
    (void)state;
    for (struct end *end = &it.client;; end = &it.server) {
        if (end->stream) {
            env_stream_close(TAKE_PTR(end->stream), false);
        }
        if (end == &it.server) {
            break;
        }
    }
    if (it.listener) {
        env_listener_close(it.env, it.listener);
    }
    env_thread_leave(it.env);
    env_linux_free(it.env);
    return rmdir(it.folder);
}

#define RUN_UNTIL(condition)                                                                       \
    for (uint64_t end_ns = env_now_ns(it.env) + LIMIT_NS; !(condition);) {                         \
        (void)env_loop_wait(it.env, -1, NS_PER_MS);                                                \
        assert_true(env_now_ns(it.env) < end_ns);                                                  \
    }

static void join(void) {
    assert_int_equal(env_stream_connect(it.env, it.address, &it.client.stream), 0);
    env_stream_set_handler(it.client.stream, told, &it.client);
    assert_int_equal(it.client.events, 0); /* Never from inside. */
    RUN_UNTIL(it.client.events & ENV_STREAM_OPEN && it.server.stream)
}

/* As much as is taken; true when all has been. */
static bool send_some(struct end *end, uint64_t total) {
    uint8_t piece[PIECE_BYTES];
    size_t size = MIN(total - end->sent, (uint64_t)sizeof piece);
    const struct bytes parts[] = {{piece, size / 3}, {piece + size / 3, size - size / 3}};
    size_t sent;

    for (size_t i = 0; i < size; i++) {
        piece[i] = byte_at(end->sent + i);
    }
    assert_int_equal(env_stream_send(end->stream, parts, 2, &sent), 0);
    end->sent += sent;
    return end->sent == total;
}

static void bytes_arrive_in_order(void **state) {
    (void)state;
    join();
    RUN_UNTIL(send_some(&it.client, TOTAL_BYTES))
    RUN_UNTIL(send_some(&it.server, TOTAL_BYTES))
    RUN_UNTIL(it.server.received == TOTAL_BYTES && it.client.received == TOTAL_BYTES)
    assert_false(it.server.is_wrong || it.client.is_wrong);
    assert_true(it.server.stream->arrived_ns > 0);
}

/* Who does not read is told of room to its sender only when it has read. */
static void a_reader_that_stops_holds_up_its_sender(void **state) {
    uint64_t before = 1;

    (void)state;
    join();
    it.server.reads = false;
    while (it.client.sent != before) {
        before = it.client.sent;
        (void)send_some(&it.client, 64 << 20);
    }
    assert_true(it.client.sent > 0 && it.client.sent < 64 << 20);
    for (int i = 0; i < 5; i++) {
        (void)env_loop_wait(it.env, -1, NS_PER_MS);
    }
    it.client.events = 0;
    it.server.reads = true;
    env_stream_again(it.server.stream);
    RUN_UNTIL(it.client.events & ENV_STREAM_WRITABLE)
    RUN_UNTIL(it.server.received == it.client.sent)
    assert_false(it.server.is_wrong);
}

static void an_orderly_end_comes_behind_the_last_byte(void **state) {
    (void)state;
    join();
    RUN_UNTIL(send_some(&it.client, 10000))
    RUN_UNTIL(it.server.received == 10000)
    env_stream_close(TAKE_PTR(it.client.stream), false);
    RUN_UNTIL(it.server.ended_count > 0)
    assert_int_equal(it.server.reason, -ERR_CLOSED);
    assert_false(it.server.is_wrong);
}

/* What came before a reset is not read behind it. */
static void a_reset_is_not_read(void **state) {
    (void)state;
    join();
    it.server.reads = false;
    assert_true(send_some(&it.client, 5000));
    env_stream_close(TAKE_PTR(it.client.stream), true);
    it.server.reads = true;
    RUN_UNTIL(it.server.ended_count > 0)
    assert_int_equal(it.server.received, 0);
    assert_int_equal(it.server.ended_count, 1);
}

static void a_stream_may_be_closed_in_its_event(void **state) {
    (void)state;
    join();
    it.server.closes = true;
    assert_true(send_some(&it.client, 1000));
    RUN_UNTIL(it.client.ended_count > 0)
    assert_null(it.server.stream);
    assert_int_equal(it.server.ended_count, 0);
}

static void nobody_there_is_refused(void **state) {
    int r;

    (void)state;
    env_listener_close(it.env, TAKE_PTR(it.listener));
    r = env_stream_connect(it.env, it.address, &it.client.stream);
    if (r == 0) {
        env_stream_set_handler(it.client.stream, told, &it.client);
        RUN_UNTIL(it.client.ended_count > 0)
        r = it.client.reason;
    }
    assert_int_equal(r, -ERR_REFUSED);
}

static void addresses_are_checked(void **state) {
    static const char *const bad[] = {
        "",         "unix:",     "1.2.3.4", "1.2.3.4:",      ":7400",       "1.2.3.4:x",
        "::1:7400", "[::1:7400", "[]:7400", "1.2.3.4:74 00", "a.b:99999999"};
    char long_path[300] = "unix:";
    struct env_stream *stream;
    struct env_listener *listener;

    (void)state;
    memset(long_path + 5, 'x', sizeof long_path - 6);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(env_stream_connect(it.env, bad[i], &stream), -ERR_INVALID);
        assert_int_equal(env_stream_listen(it.env, bad[i], accepted, NULL, &listener),
                         -ERR_INVALID);
    }
    assert_int_equal(env_stream_connect(it.env, long_path, &stream), -ERR_INVALID);
    assert_int_equal(env_stream_listen(it.env, it.address, accepted, NULL, &listener), -ERR_IN_USE);
}

static void the_kernel_says_who_is_there(void **state) {
    struct env_stream_peer peer;
    struct stat file;

    (void)state;
    join();
    env_stream_peer(it.server.stream, &peer);
    assert_true(peer.is_local);
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(stat(it.address + strlen("unix:"), &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
}

/* A socket that a dead process has left is replaced; see addresses_are_checked for a living one. */
static void a_dead_socket_is_replaced(void **state) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat file;
    int fd;

    (void)state;
    env_listener_close(it.env, TAKE_PTR(it.listener));
    assert_int_equal(stat(it.address + strlen("unix:"), &file), -1);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memcpy(name.sun_path, it.address + strlen("unix:"), strlen(it.address) - strlen("unix:"));
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    close(fd);
    assert_int_equal(stat(it.address + strlen("unix:"), &file), 0);
    assert_int_equal(env_stream_listen(it.env, it.address, accepted, NULL, &it.listener), 0);
    join();
}

int main(void) {
    static unsigned unix_plain = PLAIN, tcp = TCP, tcp_plain = TCP | PLAIN;
    const struct CMUnitTest tests[] = {
#define ALL(test)                                                                                  \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down),                                      \
        {#test " without io_uring", test, set_up, tear_down, &unix_plain},                         \
        {#test " by TCP", test, set_up, tear_down, &tcp}, {                                        \
        #test " by TCP without io_uring", test, set_up, tear_down, &tcp_plain                      \
    }
        ALL(bytes_arrive_in_order),
        ALL(a_reader_that_stops_holds_up_its_sender),
        ALL(an_orderly_end_comes_behind_the_last_byte),
        ALL(a_reset_is_not_read),
        ALL(a_stream_may_be_closed_in_its_event),
        ALL(nobody_there_is_refused),
#undef ALL
        cmocka_unit_test_setup_teardown(addresses_are_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_kernel_says_who_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_socket_is_replaced, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
