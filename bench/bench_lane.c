/* What calls between processes cost beside the bare sockets that they go over, in one run: a round
 * trip of one small call, and bulk of 1 MiB that comes back, several under way. Both ends are
 * threads with a loop each; bare is epoll with blocking in epoll_wait, and plain send and recv.
 *
 *     bench_lane FOLDER [ROUND_TRIPS]
 *
 * Prints a line of JSON for a Unix socket, TCP (which after the proof of the keys is plain on
 * loopback) and TCP in TLS: medians of ROUNDS, alternating. */
#include "env/env_linux.h"
#include "keys/tls.h"
#include "rpc/gate.h"
#include "rpc/worker.h"
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, DEPTH = 4, BARE_BYTES = 200, STREAM_CALLS = 400 };

static const struct log_id served = {7};

static struct {
    struct env *env;
    struct address address;
    struct key_ring *ring;
    struct tls_context *serving, *calling;
    enum link_encryption encryption;
    struct log_table *logs;
    struct actor server;
    atomic_bool is_up, stops;
    struct rpc *rpc;
    struct lane_thread *thread;
    struct actor origin;
    struct worker worker;
    struct call calls[DEPTH];
    uint64_t done_count;
    uint8_t *bulk;
} it;

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* The lanes' two ends. */

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        call->bulk_in.size = call->bulk_in.capacity;
        call_reply(call, 0);
    }
}

static void loop_wake(void *context) {
    env_loop_wake(context);
}

static void *server_main(void *context) {
    struct gate_options options = {.env = it.env,
                                   .self = {.cluster_id = {1}, .life = {1, 1}},
                                   .logs = it.logs,
                                   .tls = it.serving,
                                   .encryption = it.encryption};
    struct worker worker;
    struct gate *gate;
    int r = env_thread_enter(it.env);

    (void)context;
    assert(r == 0);
    worker_init(&worker);
    worker_bind(&worker);
    options.waker = (struct lane_waker){.wake = loop_wake, .context = env_thread_loop(it.env)};
    r = gate_new(&options, &gate);
    assert(r == 0);
    r = gate_listen(gate, &it.address);
    assert(r == 0);
    atomic_store(&it.is_up, true);
    while (!atomic_load(&it.stops)) {
        while (worker_run_one(&worker) | gate_turn(gate)) {
        }
        (void)env_loop_wait(it.env, -1, 100 * NS_PER_MS);
    }
    gate_free(gate);
    worker_bind(NULL);
    env_thread_leave(it.env);
    return NULL;
}

static void origin_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *next = first->next;

        call_done_message(first);
        first = next;
    }
}

static void call_done(struct call *call) {
    (void)call;
    it.done_count++;
}

static void client_turn(void) {
    while (worker_run_one(&it.worker) | lane_thread_turn(it.thread)) {
    }
    (void)env_loop_wait(it.env, -1, 100 * NS_PER_MS);
}

static void call_begin(uint32_t number, size_t bulk_bytes) {
    struct call *call = &it.calls[number];

    *call = (struct call){
        .header = {.opcode = OP_GETATTR, .log = served}, .origin = &it.origin, .done = call_done};
    call->bulk_in = (struct buffer){.data = it.bulk + number * bulk_bytes, .capacity = bulk_bytes};
    call_start(it.rpc, call);
}

static double lane_round_trip_ns(uint64_t count) {
    uint64_t start_ns = now_ns();

    for (uint64_t i = 0; i < count; i++) {
        uint64_t before = it.done_count;

        call_begin(0, 0);
        while (it.done_count == before) {
            client_turn();
        }
    }
    return (double)(now_ns() - start_ns) / (double)count;
}

static double lane_bytes_per_ns(void) {
    uint64_t start_ns = now_ns();
    uint64_t end = it.done_count + STREAM_CALLS;
    uint64_t begun = it.done_count;

    while (it.done_count < end) {
        for (uint32_t i = 0; i < DEPTH && begun < end && begun < it.done_count + DEPTH; i++) {
            if (it.calls[i].stage == 0) {
                call_begin(i, MIB);
                begun++;
            }
        }
        client_turn();
    }
    return (double)STREAM_CALLS * (double)MIB / (double)(now_ns() - start_ns);
}

/* Bare sockets. */

struct bare {
    int fds[2];
    uint64_t count;  /* round trips */
    uint64_t stream; /* bytes that the other side sends instead */
};

static void bare_wait(int epoll) {
    struct epoll_event event;

    (void)!epoll_wait(epoll, &event, 1, -1);
}

static int bare_epoll(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(0);

    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return epoll;
}

static void bare_receive(int epoll, int fd, uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, data + done, size - done, MSG_DONTWAIT);

        if (got < 0) {
            bare_wait(epoll);
        } else {
            done += (size_t)got;
        }
    }
}

static void *bare_main(void *context) {
    const struct bare *bare = context;
    uint8_t data[BARE_BYTES];
    int epoll = bare_epoll(bare->fds[1]);

    for (uint64_t i = 0; i < bare->count; i++) {
        bare_receive(epoll, bare->fds[1], data, sizeof data);
        (void)!send(bare->fds[1], data, sizeof data, 0);
    }
    for (uint64_t sent = 0; sent < bare->stream; sent += MIB) {
        for (size_t done = 0; done < MIB;) {
            done += (size_t)send(bare->fds[1], it.bulk + done, MIB - done, 0);
        }
    }
    close(epoll);
    return NULL;
}

static void pair_make(bool tcp, int fds[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int one = 1;
    int listener;

    if (!tcp) {
        (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
        return;
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    (void)!bind(listener, (struct sockaddr *)&name, sizeof name);
    (void)!listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&name, &size);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    (void)!connect(fds[0], (struct sockaddr *)&name, size);
    fds[1] = accept(listener, NULL, NULL);
    close(listener);
    setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Nanoseconds of all round trips, or of the stream. */
static double bare_run(bool tcp, uint64_t count, uint64_t stream) {
    struct bare bare = {.count = count, .stream = stream};
    uint8_t data[BARE_BYTES] = {0};
    pthread_t other;
    uint64_t start_ns;
    int epoll;

    pair_make(tcp, bare.fds);
    epoll = bare_epoll(bare.fds[0]);
    pthread_create(&other, NULL, bare_main, &bare);
    start_ns = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        (void)!send(bare.fds[0], data, sizeof data, 0);
        bare_receive(epoll, bare.fds[0], data, sizeof data);
    }
    for (uint64_t got = 0; got < stream; got += MIB) {
        bare_receive(epoll, bare.fds[0], it.bulk + MIB, MIB);
    }
    start_ns = now_ns() - start_ns;
    pthread_join(other, NULL);
    close(epoll);
    close(bare.fds[0]);
    close(bare.fds[1]);
    return (double)start_ns;
}

static void measure(bool tcp, const char *name, uint64_t count) {
    double lane[ROUNDS], bare[ROUNDS], lane_stream[ROUNDS], bare_stream[ROUNDS];

    (void)lane_round_trip_ns(100);
    for (int i = 0; i < ROUNDS; i++) {
        lane[i] = lane_round_trip_ns(count);
        bare[i] = bare_run(tcp, count, 0) / (double)count;
        lane_stream[i] = lane_bytes_per_ns();
        bare_stream[i] =
            (double)STREAM_CALLS * (double)MIB / bare_run(tcp, 0, STREAM_CALLS * (uint64_t)MIB);
    }
    printf("{\"name\": \"lane\", \"socket\": \"%s\", \"round_trip_us\": %.1f, \"bare_us\": %.1f, "
           "\"ratio\": %.2f, ",
           name, median(lane) / 1e3, median(bare) / 1e3, median(lane) / median(bare));
    printf("\"stream_gb_s\": %.2f, \"bare_gb_s\": %.2f, \"stream_ratio\": %.2f}\n",
           median(lane_stream), median(bare_stream), median(lane_stream) / median(bare_stream));
}

enum kind { UNIX_SOCKET, TCP, TCP_IN_TLS };

static void run(enum kind kind, const char *folder, uint64_t count) {
    const struct lane_waker waker = {.wake = loop_wake, .context = env_thread_loop(it.env)};
    const struct lanes_options options = {.env = it.env,
                                          .self = {.life = {2, kind}},
                                          .tls = it.calling,
                                          .encryption = kind == TCP_IN_TLS ? LINK_ENCRYPTED_ALWAYS
                                                                           : LINK_ENCRYPTED};
    struct rpc_options rpc = {
        .transport = &lanes_ops, .env = it.env, .resend_ns = NS_PER_MS, .logs_max = 4};
    char address[ADDRESS_TEXT_BYTES];
    struct lanes *lanes;
    pthread_t server;
    uint32_t peer;
    int r;

    it.encryption = options.encryption;
    if (kind != UNIX_SOCKET) {
        snprintf(address, sizeof address, "127.0.0.1:%d",
                 20000 + ((int)getpid() + (int)kind) % 20000);
    } else {
        snprintf(address, sizeof address, "unix:%s/socket", folder);
    }
    r = address_parse(address, &it.address);
    assert(r == 0);
    it.stops = it.is_up = false;
    pthread_create(&server, NULL, server_main, NULL);
    while (!atomic_load(&it.is_up)) {
    }
    r = lanes_new(&options, &lanes);
    assert(r == 0);
    r = lanes_peer_add(lanes, &it.address, 1, "the other end", &peer);
    assert(r == 0);
    lanes_set_default(lanes, peer);
    r = lane_thread_new(lanes, &waker, &it.thread);
    assert(r == 0);
    lane_thread_bind(it.thread);
    rpc.transport_context = lanes;
    r = rpc_new(&rpc, &it.rpc);
    assert(r == 0);
    measure(kind != UNIX_SOCKET, kind == TCP_IN_TLS ? "tls" : kind == TCP ? "tcp" : "unix", count);
    lane_thread_free(it.thread);
    rpc_free(it.rpc);
    lanes_free(lanes);
    it.stops = true;
    pthread_join(server, NULL);
}

static void keys_make(void) {
    const struct secret secret = {{1}};
    struct key_file members;
    int r;

    key_file_make(&secret, &members);
    r = key_ring_new(&members, &it.ring);
    assert(r == 0);
    r = tls_context_serve(it.ring, &it.serving);
    assert(r == 0);
    r = tls_context_call(&members, &it.calling);
    assert(r == 0);
}

int main(int argc, char **argv) {
    const struct env_linux_options options = {.root = argc > 1 ? argv[1] : "", .spin_ns = 5000};
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000;
    int r;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_lane FOLDER [ROUND_TRIPS]\n");
        return 2;
    }
    r = env_linux_new(&options, &it.env);
    if (r < 0) {
        fprintf(stderr, "bench_lane: the folder %s cannot be used: %s\n", argv[1], err_text(r));
        return 2;
    }
    keys_make();
    r = env_thread_enter(it.env);
    assert(r == 0);
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.server, "server", server_step);
    actor_init(&it.origin, "origin", origin_step);
    it.bulk = aligned_alloc(BLOCK_BYTES, (DEPTH + 1) * MIB);
    assert(it.bulk);
    memset(it.bulk, 1, (DEPTH + 1) * MIB);
    r = log_table_new(4, &it.logs);
    assert(r == 0);
    r = log_table_add(it.logs, served, &it.server);
    assert(r == 0);
    for (int kind = UNIX_SOCKET; kind <= TCP_IN_TLS; kind++) {
        run((enum kind)kind, argv[1], count);
    }
    tls_context_free(it.serving);
    tls_context_free(it.calling);
    key_ring_free(it.ring);
    log_table_free(it.logs);
    worker_bind(NULL);
    env_thread_leave(it.env);
    env_linux_free(it.env);
    free(it.bulk);
    return 0;
}
