/* What calls between processes cost beside the bare sockets that they go over, in one run: a round
 * trip of one small call, and bulk of 1 MiB that comes back, several under way. Both ends are
 * threads with a loop each; bare is epoll with blocking in epoll_wait, and plain send and recv.
 *
 *     bench_lane FOLDER [ROUND_TRIPS]
 *
 * Prints a line of JSON for a Unix socket, TCP (which after the proof of the keys is plain on
 * loopback) and TCP in TLS: medians of ROUNDS, alternating. */
#include "bare_socket.h"
#include "env/env_linux.h"
#include "keys/tls.h"
#include "rpc/gate.h"
#include "rpc/worker.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, DEPTH = 4, STREAM_CALLS = 400 };

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

static void measure(bool tcp, const char *name, uint64_t count) {
    double lane[ROUNDS], bare[ROUNDS], lane_stream[ROUNDS], bare_stream[ROUNDS];

    (void)lane_round_trip_ns(100);
    for (int i = 0; i < ROUNDS; i++) {
        lane[i] = lane_round_trip_ns(count);
        bare[i] = bare_socket_ns(tcp, count, 0) / (double)count;
        lane_stream[i] = lane_bytes_per_ns();
        bare_stream[i] = (double)STREAM_CALLS * (double)MIB / bare_socket_ns(tcp, 0, STREAM_CALLS);
    }
    printf("{\"name\": \"lane\", \"socket\": \"%s\", \"round_trip_us\": %.1f, \"bare_us\": %.1f, "
           "\"ratio\": %.2f, ",
           name, bare_median(lane, ROUNDS) / 1e3, bare_median(bare, ROUNDS) / 1e3,
           bare_median(lane, ROUNDS) / bare_median(bare, ROUNDS));
    printf("\"stream_gb_s\": %.2f, \"bare_gb_s\": %.2f, \"stream_ratio\": %.2f}\n",
           bare_median(lane_stream, ROUNDS), bare_median(bare_stream, ROUNDS),
           bare_median(lane_stream, ROUNDS) / bare_median(bare_stream, ROUNDS));
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
