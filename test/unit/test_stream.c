/* Streams over the sockets of this machine: the cases of all outsides, with io_uring and without,
 * and what only the real one has. */
#include "env_place.h"
#include "env/env_linux_internal.h"
#include "stream_stage.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { QUIET_NS = 30000000, CALM_STREAM_LIMIT = 5 };

struct calm {
    struct stage stage;
    struct place *place;
    char unix_path[128];
};

static bool calm_run(struct stage *stage, bool (*until)(void *context), void *context) {
    uint64_t end_ns = env_now_ns(stage->server) + LONG_NS;

    while (!until(context) && env_now_ns(stage->server) < end_ns) {
        env_loop_wait(stage->server, -1, NS_PER_S);
    }
    return until(context);
}

static void calm_settle(struct stage *stage) {
    while (env_loop_wait(stage->server, -1, QUIET_NS)) {
    }
}

static int calm_set_up(void **state, struct env_linux_options options) {
    struct calm *calm = calloc(1, sizeof *calm);

    place_set_up((void **)&calm->place, options);
    snprintf(calm->unix_path, sizeof calm->unix_path, "unix:%s/socket", calm->place->root);
    calm->stage = (struct stage){.client = calm->place->env,
                                 .server = calm->place->env,
                                 .run = calm_run,
                                 .settle = calm_settle,
                                 .tcp = "127.0.0.1:0",
                                 .host = "localhost",
                                 .unix_path = calm->unix_path,
                                 .outside = calm};
    *state = &calm->stage;
    return 0;
}

static int calm_tear_down(void **state) {
    struct stage *stage = *state;
    struct calm *calm = stage->outside;
    int r = tear_down((void **)&calm->place);

    free(calm);
    return r;
}

static int ring_up(void **state) {
    return calm_set_up(state, (struct env_linux_options){.spin_ns = 5 * NS_PER_US});
}

static int epoll_up(void **state) {
    return calm_set_up(state, (struct env_linux_options){.refuse_uring = true});
}

static int ring_limited_up(void **state) {
    return calm_set_up(state, (struct env_linux_options){.stream_limit = CALM_STREAM_LIMIT});
}

static int epoll_limited_up(void **state) {
    return calm_set_up(
        state, (struct env_linux_options){.stream_limit = CALM_STREAM_LIMIT, .refuse_uring = true});
}

static void unwanted(struct env_listener *listener, struct env_stream *stream) {
    (void)listener;
    env_stream_reset(stream);
}

/* A second env may not take what the first listens at. */
static void test_in_use(void **state) {
    struct stage *stage = *state;
    struct host host = {0};
    struct env *other;
    struct env_listener *listener;
    const char *const texts[] = {stage->tcp, stage->unix_path};

    assert_int_equal(env_linux_new(&(struct env_linux_options){.root = "/"}, &other), 0);
    assert_int_equal(env_thread_enter(other), 0);
    for (int i = 0; i < 2; i++) {
        struct env_listen_options options = {.accepted = unwanted};

        host_open(&host, stage->server, texts[i]);
        assert_int_equal(other->streams->listen(other, &host.address, &options, &listener),
                         -ERR_IN_USE);
        host_close(&host, stage->server);
        calm_settle(stage);
    }
    env_thread_leave(other);
    env_linux_free(other);
}

/* The socket of a process that is gone is replaced; a file that is none, never. */
static void test_left_behind(void **state) {
    struct stage *stage = *state;
    struct calm *calm = stage->outside;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct pair pair = {0};
    struct env_listener *listener;
    struct env_listen_options options = {.accepted = unwanted};
    struct address address;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", calm->place->root);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(fd, 1), 0);
    close(fd);
    pair_open(&pair, stage, stage->unix_path);
    pair_close(&pair, stage);
    calm_settle(stage);
    assert_int_equal(access(name.sun_path, F_OK), -1);

    struct env_file *file = file_make(calm->place, 0);
    stage->server->ops->file_close(file);
    char text[160];
    snprintf(text, sizeof text, "unix:%s/file", calm->place->root);
    assert_int_equal(address_parse(text, &address), 0);
    assert_int_equal(stage->server->streams->listen(stage->server, &address, &options, &listener),
                     -ERR_IN_USE);
    snprintf(text, sizeof text, "unix:%s/none/socket", calm->place->root);
    assert_int_equal(address_parse(text, &address), 0);
    assert_int_equal(stage->server->streams->listen(stage->server, &address, &options, &listener),
                     -ERR_NOT_FOUND);
    assert_int_equal(address_parse("192.0.2.1:0", &address), 0);
    assert_int_equal(stage->server->streams->listen(stage->server, &address, &options, &listener),
                     -ERR_UNREACHABLE);
}

/* A listener that accepts nothing, with a queue that is full: who connects has no answer. */
static int deaf_listener(struct sockaddr *name, socklen_t size, int fillers[8]) {
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, name, size), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, name, &size), 0);
    for (int i = 0; i < 8; i++) {
        fillers[i] = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], name, size);
    }
    return fd;
}

static void assert_deadline(struct stage *stage, const struct address *address) {
    struct end end = {0};
    uint64_t start_ns = env_now_ns(stage->client);

    assert_int_equal(end_connect(&end, stage->client, address, SHORT_NS), 0);
    stage_until(stage, until_ended, &end);
    assert_int_equal(end.reason, -ERR_TIMED_OUT);
    assert_true(env_now_ns(stage->client) >= start_ns + SHORT_NS);
    end_finish(&end);
}

static void test_deadline(void **state) {
    struct stage *stage = *state;
    struct calm *calm = stage->outside;
    struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct address address = {.kind = ADDRESS_IPV4, .ip = {127, 0, 0, 1}};
    int fillers[2][8];

    int fd = deaf_listener((struct sockaddr *)&tcp, sizeof tcp, fillers[0]);
    address.port = ntohs(tcp.sin_port);
    assert_deadline(stage, &address);
    close(fd);

    snprintf(path.sun_path, sizeof path.sun_path, "%s/socket", calm->place->root);
    fd = deaf_listener((struct sockaddr *)&path, sizeof path, fillers[1]);
    assert_int_equal(address_parse(stage->unix_path, &address), 0);
    assert_deadline(stage, &address);

    /* Once there is room in its queue a Unix socket is let in. */
    struct end end = {0};
    assert_int_equal(end_connect(&end, stage->client, &address, UINT64_MAX), 0);
    for (int tries = 0; tries < 5; tries++) {
        env_loop_wait(stage->server, -1, SHORT_NS);
    }
    assert_int_equal(end.opened, 0);
    close(accept(fd, NULL, NULL));
    close(accept(fd, NULL, NULL));
    stage_until(stage, until_opened, &end);
    end_finish(&end);
    close(fd);
    for (int i = 0; i < 16; i++) {
        close(fillers[i / 8][i % 8]);
    }
}

/* A name that nobody knows; a name that is still being looked up when nobody wants it any more. */
static void test_names(void **state) {
    struct stage *stage = *state;
    struct address address;
    struct end end = {0};
    struct end closed = {0};

    assert_int_equal(address_parse("a-name-without-a-host.invalid:1", &address), 0);
    assert_int_equal(end_connect(&closed, stage->client, &address, UINT64_MAX), 0);
    end_close(&closed);
    assert_int_equal(end_connect(&end, stage->client, &address, 60 * NS_PER_S), 0);
    stage_until(stage, until_ended, &end);
    assert_true(end.reason == -ERR_UNREACHABLE || end.reason == -ERR_TIMED_OUT);
    assert_int_equal(closed.ended, 0);
    end_finish(&end);
}

enum { THREADS = 3, EACH = 20 };

struct shared_host {
    struct stage *stage;
    struct address address;
    atomic_uint accepted;
    atomic_bool stop;
    atomic_bool woken; /* nobody calls on a loop any more */
    atomic_uint ready;
};

struct acceptor {
    struct shared_host *shared;
    struct env_stream *streams[THREADS * EACH];
    unsigned count;
    struct env_loop *loop;
};

static void nothing_told(struct env_stream *stream, enum env_stream_event event, int reason) {
    (void)stream;
    (void)event;
    (void)reason;
}

static void shared_accepted(struct env_listener *listener, struct env_stream *stream) {
    struct acceptor *acceptor = listener->context;

    stream->event = nothing_told;
    acceptor->streams[acceptor->count++] = stream;
    atomic_fetch_add(&acceptor->shared->accepted, 1);
}

static void *acceptor_main(void *context) {
    struct acceptor *acceptor = context;
    struct shared_host *shared = acceptor->shared;
    struct env *env = shared->stage->server;
    struct env_listen_options options = {.accepted = shared_accepted, .context = acceptor};
    struct env_listener *listener;
    struct address address;

    assert_int_equal(env_thread_enter(env), 0);
    assert_int_equal(env->streams->listen(env, &shared->address, &options, &listener), 0);
    env->streams->listener_address(listener, &address);
    assert_true(address_is(&address, &shared->address));
    acceptor->loop = env_thread_loop(env);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->stop)) {
        env_loop_wait(env, -1, NS_PER_S);
    }
    for (unsigned i = 0; i < acceptor->count; i++) {
        env_stream_close(acceptor->streams[i]);
    }
    env->streams->listener_close(listener);
    while (!atomic_load(&shared->woken)) {
        sched_yield();
    }
    env_thread_leave(env);
    return NULL;
}

static bool until_shared(void *context) {
    return atomic_load(&((struct shared_host *)context)->accepted) == THREADS * EACH;
}

/* Several threads listen at one address: each connection is accepted by one of them, also when the
 * thread that bound it is gone. */
static void test_shared_listener(void **state) {
    struct stage *stage = *state;
    struct shared_host shared = {.stage = stage};
    struct host host = {.closes = true};
    static struct acceptor acceptors[THREADS];
    pthread_t threads[THREADS];
    struct end ends[THREADS * EACH] = {0};

    host_open(&host, stage->server, stage->tcp);
    shared.address = host.address;
    memset(acceptors, 0, sizeof acceptors);
    for (int i = 0; i < THREADS; i++) {
        acceptors[i].shared = &shared;
        assert_int_equal(pthread_create(&threads[i], NULL, acceptor_main, &acceptors[i]), 0);
    }
    while (atomic_load(&shared.ready) < THREADS) {
        sched_yield();
    }
    host_close(&host, stage->server);
    calm_settle(stage);
    for (int i = 0; i < THREADS * EACH; i++) {
        assert_int_equal(end_connect(&ends[i], stage->client, &shared.address, UINT64_MAX), 0);
    }
    while (!until_shared(&shared)) {
        env_loop_wait(stage->client, -1, NS_PER_MS);
    }
    atomic_store(&shared.stop, true);
    for (int i = 0; i < THREADS; i++) {
        env_loop_wake(acceptors[i].loop);
    }
    atomic_store(&shared.woken, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS * EACH; i++) {
        stage_until(stage, until_ended, &ends[i]);
        end_finish(&ends[i]);
    }
}

struct together {
    bool io_done;
    struct end *end;
};

static void together_done(struct env_io *io, int result) {
    struct together *together = io->context;

    assert_int_equal(result, 0);
    together->io_done = true;
}

/* One wait serves streams, a descriptor of the caller's, file I/O and wake-ups. */
static void test_one_wait_for_all(void **state) {
    struct stage *stage = *state;
    struct calm *calm = stage->outside;
    struct env *env = stage->server;
    struct pair pair = {0};
    struct together together = {.end = &pair.ends[1]};
    struct env_file *file = file_make(calm->place, 0);
    struct env_io io = {.kind = ENV_IO_WRITE,
                        .file = file,
                        .buffer = (char[]){"x"},
                        .size = 1,
                        .done = together_done,
                        .context = &together};
    unsigned seen = 0;
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    pair_open(&pair, stage, stage->tcp);
    end_send(&pair.ends[0], 100);
    assert_int_equal(write(pipes[1], "x", 1), 1);
    env_io_submit(env, &io);
    env_loop_wake(env_thread_loop(env));
    while (!together.io_done || pair.ends[1].size < 100 || !(seen & ENV_LOOP_READABLE) ||
           !(seen & ENV_LOOP_WOKEN)) {
        unsigned events = env_loop_wait(env, seen & ENV_LOOP_READABLE ? -1 : pipes[0], LONG_NS);

        assert_int_not_equal(events, 0);
        seen |= events;
    }
    env_loop_disarm(env);
    pair_close(&pair, stage);
    env->ops->file_close(file);
    close(pipes[0]);
    close(pipes[1]);
}

enum { SLOW_WRITES = 8, PIPE_BYTES = 1 << 20 };

/* As long as there are some, without waiting. */
static void descriptor_drain(int fd) {
    static uint8_t data[65536];

    while (read(fd, data, sizeof data) > 0) {
    }
}

/* Behind the file's descriptor from now on; answers its other end. */
static int pipe_full(struct env_file *file) {
    static const uint8_t data[PIPE_BYTES];
    int ends[2];

    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    while (write(ends[1], data, sizeof data) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_true(dup3(ends[1], file->fd, O_CLOEXEC) >= 0);
    close(ends[1]);
    return ends[0];
}

/* A stream with a full socket and a file's write that takes long wait together: the wait ends as
 * soon as the other side has taken what was sent, in the best of some times before the kernel would
 * be asked once more. */
static void test_room_to_send_beside_slow_io(void **state) {
    struct stage *stage = *state;
    struct calm *calm = stage->outside;
    struct env *env = stage->server;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct end end = {.goal = SIZE_MAX};
    struct host host = {.ends = &end, .end_count = 1};
    struct env_io ios[SLOW_WRITES];
    int results[SLOW_WRITES];
    struct env_file *file = file_make(calm->place, 0);
    int outlet = pipe_full(file);
    uint64_t fastest_ns = UINT64_MAX;
    char letter = 'x';
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    host_open(&host, env, stage->unix_path);
    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", calm->place->root);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
    stage_until(stage, until_opened, &end);
    calm_settle(stage);
    end_send(&end, SIZE_MAX);
    for (unsigned i = 0; i < SLOW_WRITES; i++) {
        uint64_t start_ns = env_now_ns(env);

        descriptor_drain(fd);
        ios[i] = (struct env_io){.kind = ENV_IO_WRITE,
                                 .file = file,
                                 .buffer = &letter,
                                 .size = 1,
                                 .done = note_done,
                                 .context = &results[i]};
        results[i] = 1;
        env_io_submit(env, &ios[i]);
        while (end.writable == i) {
            assert_true(env_now_ns(env) - start_ns < LONG_NS);
            env_loop_wait(env, -1, LONG_NS);
        }
        assert_int_equal(end.writable, i + 1);
        fastest_ns = MIN(fastest_ns, env_now_ns(env) - start_ns);
    }
    descriptor_drain(outlet);
    wait_until_idle(env);
    for (unsigned i = 0; i < SLOW_WRITES; i++) {
        assert_int_equal(results[i], 0);
    }
    end_finish(&end);
    host_close(&host, env);
    env->ops->file_close(file);
    close(outlet);
    close(fd);
    assert_true(fastest_ns < 5 * NS_PER_MS);
}

/* Nothing is told where nothing happens, and a wait ends with its time. */
static void test_quiet_wait(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};

    pair_open(&pair, stage, stage->tcp);
    calm_settle(stage);
    uint64_t start_ns = env_now_ns(stage->server);
    assert_int_equal(env_loop_wait(stage->server, -1, SHORT_NS), 0);
    assert_true(env_now_ns(stage->server) >= start_ns + SHORT_NS);
    pair_close(&pair, stage);
}

#define ON_RING(name) cmocka_unit_test_setup_teardown(name, ring_up, calm_tear_down),
#define ON_EPOLL(name) {#name " (without io_uring)", name, epoll_up, calm_tear_down, NULL},
#define REAL_CASES(X)                                                                              \
    X(test_in_use)                                                                                 \
    X(test_left_behind)                                                                            \
    X(test_deadline)                                                                               \
    X(test_names)                                                                                  \
    X(test_shared_listener)                                                                        \
    X(test_one_wait_for_all)                                                                       \
    X(test_quiet_wait)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(case_limit, ring_limited_up, calm_tear_down),
        cmocka_unit_test_setup_teardown(case_limit, epoll_limited_up, calm_tear_down),
        STREAM_CASES(ON_RING) STREAM_CASES(ON_EPOLL) ON_RING(test_room_to_send_beside_slow_io)
            REAL_CASES(ON_RING) REAL_CASES(ON_EPOLL)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
