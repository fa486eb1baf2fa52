/* Lanes and gates over real sockets, both ends on one thread: what is asked is answered once,
 * whatever becomes of the connection. Each waits for conditions; the limit is only for a test that
 * fails. */
#include "env/env_linux.h"
#include "env/env_stream.h"
#include "keys/tls.h"
#include "rpc/connection.h"
#include "rpc/gate.h"
#include "rpc/transport.h"
#include "rpc/worker.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 300, BULK_BYTES = 1 << 20, LOGS_MAX = 4 };
#define LIMIT_NS (20 * NS_PER_S)

static const struct log_id log_served = {7};

static struct {
    char folder[32];
    struct address address;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct gate *gate;
    struct lanes *lanes;
    struct lane_thread *thread;
    struct rpc *rpc;
    struct actor server, origin;
    bool holds;
    struct call *held[CALLS];
    uint32_t held_count, held_answered, ran_count;
    struct call calls[CALLS];
    uint8_t *bulk_out, *bulk_in;
    uint32_t done_count, asks_again;
    char said[512]; /* the last two lines */
    uint32_t asked_as;
    int admits;
    struct key_ring *ring;
    struct tls_context *serving, *calling; /* NULL: a Unix socket */
    enum link_encryption encryption, encryption_of_gate;
    bool serves_itself, keeps; /* options of lanes */
} it;

/* How the tests are run. */
struct way {
    bool without_ring;
    bool by_tcp;
    bool of_mount; /* its key, for reading, with root squashed */
    enum link_encryption encryption;
};

/* The reply tells what came; bulk comes back turned. */
static void serve(struct call *call) {
    const struct bytes *out = &call->bulk_out[0];

    it.ran_count++;
    if (call->header.opcode == OP_LOOKUP) {
        it.asked_as = call->request.lookup.who.uid;
    }
    call->reply.getattr.attributes.size = call->request.getattr.ino.value;
    if (call->bulk_in.capacity > 0) {
        for (size_t i = 0; i < out->size && i < call->bulk_in.capacity; i++) {
            call->bulk_in.data[i] = (uint8_t)~out->data[i];
        }
        call->bulk_in.size = MIN(out->size, call->bulk_in.capacity);
    }
    call_reply(call, 0);
}

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (it.holds) {
            it.held[it.held_count++] = call;
        } else {
            serve(call);
        }
    }
}

static void origin_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *next = first->next;

        call_done_message(first);
        first = next;
    }
}

static struct call *ask(uint32_t number, uint16_t opcode, size_t bulk_bytes);

static void count_done(struct call *call) {
    uint32_t number = (uint32_t)(call - it.calls);

    it.done_count++;
    if (number < it.asks_again) {
        (void)ask(number + CALLS / 2, OP_MKDIR, 0);
    }
}

static void wake(void *context) {
    env_loop_wake(context);
}

static void say(void *context, const char *line) {
    (void)context;
    size_t last = strlen(it.said) / 2 < sizeof it.said / 4 ? strlen(it.said) : 0;

    snprintf(it.said + last, sizeof it.said - last, "%s\n", line);
}

static int admit(void *context, struct env_stream *stream) {
    struct env_stream_peer peer;

    (void)context;
    it.admits++;
    return stream->env->streams->peer(stream, &peer) == 0 && peer.uid == getuid() &&
                   peer.pid == (uint32_t)getpid()
               ? 0
               : -ERR_REFUSED;
}

static void gate_begin(uint8_t cluster) {
    struct gate_options options = {.env = it.env,
                                   .self = {.cluster_id = {cluster}, .node = {1}, .life = {1, 2}},
                                   .logs = it.logs,
                                   .requests_max = 64,
                                   .bulk_count = 4,
                                   .small_bulk_count = 8,
                                   .tls = it.serving,
                                   .keys = it.ring,
                                   .encryption = it.encryption_of_gate,
                                   .admit = admit,
                                   .log = say};

    options.waker = (struct lane_waker){.wake = wake, .context = env_thread_loop(it.env)};
    assert_int_equal(gate_new(&options, &it.gate), 0);
    assert_int_equal(gate_listen(it.gate, &it.address), 0);
}

static void gate_end(void) {
    gate_free(TAKE_PTR(it.gate));
}

static void thread_begin(void) {
    const struct lane_waker waker = {.wake = wake, .context = env_thread_loop(it.env)};

    assert_int_equal(lane_thread_new(it.lanes, &waker, &it.thread), 0);
    lane_thread_bind(it.thread);
}

static void lanes_begin(uint8_t cluster) {
    const struct lanes_options options = {.env = it.env,
                                          .self = {.cluster_id = {cluster}, .life = {3, cluster}},
                                          .silent_ns = 200 * NS_PER_MS,
                                          .rest_ns = NS_PER_MS,
                                          .tls = it.calling,
                                          .encryption = it.encryption,
                                          .logs = it.serves_itself ? it.logs : NULL,
                                          .keeps = it.keeps,
                                          .log = say};
    struct rpc_options rpc = {
        .transport = &lanes_ops, .env = it.env, .resend_ns = NS_PER_MS, .logs_max = LOGS_MAX};
    uint32_t peer;

    assert_int_equal(lanes_new(&options, &it.lanes), 0);
    assert_int_equal(lanes_peer_add(it.lanes, &it.address, 1, "the daemon", &peer), 0);
    lanes_set_default(it.lanes, peer);
    thread_begin();
    rpc.transport_context = it.lanes;
    assert_int_equal(rpc_new(&rpc, &it.rpc), 0);
}

static void lanes_end(void) {
    lane_thread_free(TAKE_PTR(it.thread));
    rpc_free(TAKE_PTR(it.rpc));
    lanes_free(TAKE_PTR(it.lanes));
}

/* Listens, and never says a word. */
static struct env_stream *silent[64];
static uint32_t silent_count;

static void silent_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    (void)stream;
    (void)event;
    (void)reason;
}

static void accept_silent(struct env_listener *listener, struct env_stream *stream) {
    (void)listener;
    stream->event = silent_event;
    silent[silent_count++ % ARRAY_SIZE(silent)] = stream;
}

static void keys_make(const struct way *way) {
    static const struct identity reader = {
        .kind = IDENTITY_MOUNT, .read_only = true, .squash_root = true, .serial = 5};
    const struct secret secret = {{1, 2, 3}};
    struct key_file members, file;

    key_file_make(&secret, &members);
    key_file_derive(&members, &reader, &file);
    assert_int_equal(key_ring_new(&members, &it.ring), 0);
    assert_int_equal(tls_context_serve(it.ring, &it.serving), 0);
    assert_int_equal(tls_context_call(way->of_mount ? &file : &members, &it.calling), 0);
    it.encryption = it.encryption_of_gate = way->encryption;
}

/* A port that was free a moment ago. */
static void port_find(void) {
    const struct env_listen_options options = {.accepted = accept_silent};
    struct env_listener *listener;

    it.address = (struct address){.kind = ADDRESS_IPV4, .ip = {127, 0, 0, 1}};
    assert_int_equal(it.env->streams->listen(it.env, &it.address, &options, &listener), 0);
    it.env->streams->listener_address(listener, &it.address);
    it.env->streams->listener_close(listener);
}

static int set_up(void **state) {
    static const struct way plain_way;
    const struct way *way = *state ? *state : &plain_way;
    struct env_linux_options options = {.refuse_uring = way->without_ring};

    memset(&it, 0, sizeof it);
    snprintf(it.folder, sizeof it.folder, "/tmp/lane-XXXXXX");
    options.root = mkdtemp(it.folder);
    it.address.kind = ADDRESS_UNIX;
    snprintf(it.address.name, sizeof it.address.name, "%s/socket", it.folder);
    if (env_linux_new(&options, &it.env) < 0 || env_thread_enter(it.env) < 0 ||
        log_table_new(LOGS_MAX, &it.logs) < 0 ||
        log_table_add(it.logs, log_served, &it.server) < 0) {
        return -1;
    }
    if (way->by_tcp) {
        keys_make(way);
        port_find();
    }
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.server, "server", server_step);
    actor_init(&it.origin, "origin", origin_step);
    it.bulk_out = aligned_alloc(BLOCK_BYTES, BULK_BYTES);
    it.bulk_in = aligned_alloc(BLOCK_BYTES, BULK_BYTES);
    for (size_t i = 0; i < BULK_BYTES; i++) {
        it.bulk_out[i] = (uint8_t)(i * 7 + i / 251);
    }
    return 0;
}

static void answer_held(void) {
    while (it.held_answered < it.held_count) {
        serve(it.held[it.held_answered++]);
    }
}

static int tear_down(void **state) {
    (void)state;
    answer_held(); /* Of a test that has failed. */
    if (it.lanes) {
        lanes_end();
    }
    it.worker.in_step = false;
    worker_return_all(&it.worker);
    gate_end();
    log_table_free(it.logs);
    worker_bind(NULL);
    env_thread_leave(it.env);
    env_linux_free(it.env);
    tls_context_free(it.serving);
    tls_context_free(it.calling);
    key_ring_free(it.ring);
    free(it.bulk_out);
    free(it.bulk_in);
    return rmdir(it.folder);
}

static void turn(void) {
    (void)env_loop_wait(it.env, -1, NS_PER_MS);
    while (worker_run_one(&it.worker)) {
    }
    if (it.thread) {
        lanes_tick(it.lanes);
        lane_thread_turn(it.thread);
        rpc_tick(it.rpc);
    }
    if (it.gate) {
        gate_tick(it.gate);
        gate_turn(it.gate);
    }
}

static bool all_done(void *count) {
    return it.done_count >= *(uint32_t *)count;
}

static bool is_held(void *count) {
    return it.held_count >= *(uint32_t *)count;
}

static void run_until(bool (*is_so)(void *context), void *context) {
    uint64_t end_ns = env_now_ns(it.env) + LIMIT_NS;

    while (!is_so(context)) {
        turn();
        assert_true(env_now_ns(it.env) < end_ns);
    }
}

static void wait_done(uint32_t count) {
    run_until(all_done, &count);
}

static struct call *ask(uint32_t number, uint16_t opcode, size_t bulk_bytes) {
    struct call *call = &it.calls[number];

    call->header.opcode = opcode;
    call->header.log = log_served;
    call->request.getattr.ino.value = 1000 + number;
    call->origin = &it.origin;
    call->done = count_done;
    if (bulk_bytes > 0) {
        call->bulk_out[0] = (struct bytes){it.bulk_out, bulk_bytes / 2};
        call->bulk_out[1] =
            (struct bytes){it.bulk_out + bulk_bytes / 2, bulk_bytes - bulk_bytes / 2};
        call->bulk_out_count = 2;
        call->bulk_in = (struct buffer){.data = it.bulk_in, .capacity = bulk_bytes};
    }
    call_start(it.rpc, call);
    return call;
}

static void what_is_asked_is_answered(void **state) {
    struct lane_stats stats;

    (void)state;
    gate_begin(9);
    lanes_begin(0); /* It does not know the cluster yet. */
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[0].reply.getattr.attributes.size, 1000);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.open_count, 1);
    assert_int_equal(stats.awaited_count, 0);
}

static void bulk_goes_and_comes(void **state) {
    static const size_t sizes[] = {1, 511, 4096, 65536, 65537, 1000003, BULK_BYTES};

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        memset(it.bulk_in, 0, BULK_BYTES);
        ask(i, OP_GETATTR, sizes[i]);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, 0);
        assert_int_equal(it.calls[i].bulk_in.size, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_int_equal(it.bulk_in[j], (uint8_t)~it.bulk_out[j]);
        }
    }
}

/* More than twins, bulk and both buffers can hold: what finds no room is asked again. */
static void many_at_once_all_end(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask(i, i % 3 ? OP_GETATTR : OP_MKDIR, i % 7 == 0 ? 100000 : 0);
    }
    wait_done(CALLS);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
    assert_int_equal(it.ran_count, CALLS);
}

static void nobody_there_is_waited_for(void **state) {
    (void)state;
    lanes_begin(9);
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    ask(1, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + LIMIT_NS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_non_null(strstr(it.said, "does not answer"));
    gate_begin(9);
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    assert_int_equal(it.ran_count, 1);
    assert_non_null(strstr(it.said, "answers again"));
}

/* The server starts anew: what was under way there is asked again. */
static void a_server_that_comes_back_is_asked_again(void **state) {
    uint32_t count = 20;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < count; i++) {
        ask(i, OP_MKDIR, i % 5 ? 0 : 5000);
    }
    run_until(is_held, &count);
    answer_held(); /* Its answers are lost with it. */
    assert_int_equal(it.ran_count, count);
    while (!gate_is_idle(it.gate)) {
        gate_close(it.gate);
        gate_turn(it.gate);
    }
    gate_end();
    it.holds = false;
    gate_begin(9);
    wait_done(count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
}

static void name_of(uint32_t number, char name[32]) {
    snprintf(name, 32, "a name with the number %u", number);
}

/* The server may look at a request long after others have come by the same connection. */
static void what_a_request_says_stays(void **state) {
    static char names[40][32];
    static uint8_t target[4000];
    uint32_t count = ARRAY_SIZE(names);
    char name[32];

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    memset(target, 't', sizeof target);
    for (uint32_t i = 0; i < count; i++) {
        struct call *call = &it.calls[i];

        name_of(i, names[i]);
        call->request.symlink.name = (struct bytes){(const uint8_t *)names[i], strlen(names[i])};
        if (i % 4 == 0) {
            call->request.symlink.target = (struct bytes){target, sizeof target};
        }
        ask(i, OP_SYMLINK, 0);
        uint32_t so_far = i + 1;
        run_until(is_held, &so_far); /* Each comes by itself. */
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct symlink_request *request = &it.held[i]->request.symlink;
        uint32_t number = (uint32_t)request->parent.value - 1000;

        name_of(number, name);
        assert_int_equal(request->name.size, strlen(name));
        assert_memory_equal(request->name.data, name, request->name.size);
        assert_int_equal(request->target.size, number % 4 == 0 ? sizeof target : 0);
        for (size_t k = 0; k < request->target.size; k++) {
            assert_int_equal(request->target.data[k], 't');
        }
    }
    answer_held();
    wait_done(count);
}

/* A mutation that is given up takes its connection with it; what else was asked by that one is
 * asked again by the next, and whichever copy is answered first, its answer comes by the newest. */
static void who_gives_up_a_mutation_replaces_the_connection(void **state) {
    struct lane_stats stats;
    uint32_t count = 2;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 100 * NS_PER_MS;
    ask(1, OP_GETATTR, 0);
    run_until(is_held, &count);
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    count = 3; /* The second copy of the other. */
    run_until(is_held, &count);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 2);
    serve(it.held[1]);
    it.held[1] = it.held[2];
    it.held_count = 2;
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    assert_int_equal(it.calls[1].reply.getattr.attributes.size, 1001);
    answer_held(); /* Answers that nobody awaits do no harm. */
    it.holds = false;
    ask(2, OP_GETATTR, 0);
    wait_done(3);
    assert_int_equal(it.calls[2].reply.getattr.attributes.size, 1002);
}

static bool is_past(void *end_ns) {
    return env_now_ns(it.env) >= *(uint64_t *)end_ns;
}

/* Silence counts only while something is awaited. */
static void a_lane_may_be_idle(void **state) {
    struct lane_stats stats;
    uint64_t end_ns;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    end_ns = env_now_ns(it.env) + 500 * NS_PER_MS; /* More than twice silent_ns. */
    run_until(is_past, &end_ns);
    ask(1, OP_GETATTR, 0);
    wait_done(2);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 1);
    assert_int_equal(it.said[0], 0);
}

static bool is_said(void *what) {
    return strstr(it.said, what) != NULL;
}

static void another_cluster_is_refused(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(8);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 200 * NS_PER_MS;
    run_until(is_said, "another cluster");
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
}

static void a_process_that_is_silent_is_given_up(void **state) {
    const struct env_listen_options options = {.accepted = accept_silent};
    struct env_listener *listener;

    (void)state;
    silent_count = 0;
    assert_int_equal(it.env->streams->listen(it.env, &it.address, &options, &listener), 0);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 300 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(silent_count, 1);
    lanes_end();
    it.env->streams->listener_close(listener);
    env_stream_close(silent[0]);
}

/* Who is told that his time is up asks anew, in the middle of telling the others. */
static void callers_may_ask_while_others_are_told(void **state) {
    uint64_t now_ns;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    it.asks_again = 40;
    now_ns = env_now_ns(it.env);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        it.calls[i].deadline_ns = now_ns + 50 * NS_PER_MS;
        ask(i, i % 2 ? OP_GETATTR : OP_MKDIR, i % 4 ? 0 : 3000);
    }
    wait_done(it.asks_again);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        assert_int_equal(it.calls[i].result, -ERR_TIMED_OUT);
    }
    it.holds = false;
    answer_held();
    wait_done(2 * it.asks_again);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        assert_int_equal(it.calls[i + CALLS / 2].result, 0);
    }
}

/* Those that speak nonsense, by their number. */
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
    static const uint16_t refused[] = {OP_MKDIR, OP_UNLINK, OP_SESSION_EVICT, OP_FSCK_LIST,
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
    wait_done(6);
    assert_int_equal(it.calls[10].result, -ERR_READ_ONLY);
    assert_int_equal(it.ran_count, 0);
    call = ask(11, OP_LOOKUP, 0);
    wait_done(7);
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

static void hello_answered(void *context, const struct connection_message *message) {
    union reply_body body;

    (void)context;
    assert_int_equal(message->kind, CONNECTION_WELCOME);
    assert_int_equal(wire_decode_reply(OP_HELLO, message->head, &body), 0);
    welcomed = (int)body.hello.result;
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
        uint32_t version_min, version_max, receiver;
        uint64_t cluster_high;
        int result;
    } rows[] = {{2, 9, 0, 0, -ERR_NEWER_FORMAT},
                {0, 0, 0, 0, -ERR_OLDER_FORMAT},
                {1, 1, 2, 0, -ERR_REFUSED},
                {1, 1, 0, 77, -ERR_OTHER_CLUSTER},
                {1, 9, 1, 0, 0},
                {0, 1, 0, 0, -ERR_OLD_LANE}};

    (void)state;
    good.plain = it.calling != NULL && it.encryption_of_gate != LINK_ENCRYPTED_ALWAYS;
    gate_begin(9);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct hello_request hello = good;

        hello.version_min = rows[i].version_min;
        hello.version_max = rows[i].version_max;
        hello.receiver = rows[i].receiver;
        hello.cluster_high = rows[i].cluster_high;
        assert_int_equal(hello_with(hello), rows[i].result);
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

/* One route for the log, which goes nowhere at first; and none for another. */
static void a_log_is_asked_for_where_it_is(void **state) {
    const struct log_id elsewhere = {12345};
    struct address nowhere = it.address;
    struct lanes *lanes;
    uint32_t peer;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    lanes = it.lanes;
    lanes_set_default(lanes, LANE_PEERS_MAX);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_STALE_MAP);
    assert_int_equal(lanes_peer_add(lanes, NULL, 0, "node 2", &peer), 0);
    assert_int_equal(lanes_route(lanes, log_served, peer), 0);
    assert_int_equal(lanes_route(lanes, elsewhere, peer), 0);
    ask(1, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 20 * NS_PER_MS;
    ask(2, OP_GETATTR, 0);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_TIMED_OUT);
    nowhere.port ^= 1;
    nowhere.name[0] = nowhere.name[0] ? '.' : '\0';
    assert_int_equal(lanes_peer_move(lanes, peer, &nowhere, 1), 0);
    assert_int_equal(lanes_peer_move(lanes, peer, &it.address, LANE_ADDRESSES_MAX + 1),
                     -ERR_INVALID);
    turn();
    assert_int_equal(lanes_peer_move(lanes, peer, &it.address, 1), 0);
    wait_done(3);
    assert_int_equal(it.calls[2].result, 0);
}

/* One of the peer's addresses has become another node's. */
static void only_who_is_meant_is_asked(void **state) {
    struct address addresses[2] = {it.address, it.address};
    struct lane_stats stats;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    lanes_peer_is(it.lanes, 0, (struct node_id){2});
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
    assert_int_equal(lanes_peer_refusal(it.lanes, 0), 0);
    lanes_peer_is(it.lanes, 0, (struct node_id){1});
    addresses[0].port ^= 1;
    addresses[0].name[0] = addresses[0].name[0] ? '.' : '\0';
    assert_int_equal(lanes_peer_move(it.lanes, 0, addresses, 2), 0);
    ask(1, OP_MKDIR, 0);
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 1);
}

static void a_log_that_is_here_needs_no_lane(void **state) {
    struct lane_stats stats;

    (void)state;
    it.serves_itself = true;
    lanes_begin(9);
    ask(0, OP_MKDIR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 0);
}

/* What a thread without lanes calls, and what one leaves behind, goes on by those of the home. */
static void nobody_s_call_is_lost_with_its_thread(void **state) {
    uint32_t count = 20;
    struct lane_thread *left;

    (void)state;
    it.keeps = true;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < count; i++) {
        ask(i, OP_MKDIR, i % 5 ? 0 : 5000);
    }
    run_until(is_held, &count);
    ask(count++, OP_MKDIR, 0); /* It is on no connection yet. */
    left = TAKE_PTR(it.thread);
    lane_thread_free(left);
    ask(count++, OP_MKDIR, 0);
    it.holds = false;
    answer_held();
    assert_int_equal(it.done_count, 0);
    thread_begin();
    lanes_set_home(it.lanes, it.thread);
    wait_done(count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
    lane_thread_free(TAKE_PTR(it.thread));
    ask(count++, OP_MKDIR, 0);
    while (worker_run_one(&it.worker)) {
    }
    assert_int_equal(it.done_count, count);
    assert_int_equal(it.calls[count - 1].result, -ERR_CLOSED);
}

/* Its number among threads is that of one that has left. */
static void a_thread_may_follow_another(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < 4; i++) {
        ask(i, OP_MKDIR, 0);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, 0);
        lane_thread_free(TAKE_PTR(it.thread));
        thread_begin();
    }
    assert_null(strstr(it.said, "does not answer"));
}

static bool is_unwanted(void *context) {
    return *(const bool *)context;
}

static struct call *ask_until(uint32_t number, uint16_t opcode, bool *unwanted) {
    it.calls[number].unwanted = is_unwanted;
    it.calls[number].unwanted_context = unwanted;
    return ask(number, opcode, 0);
}

static void server_goes(void) {
    answer_held();
    while (!gate_is_idle(it.gate)) {
        gate_close(it.gate);
        gate_turn(it.gate);
    }
    gate_end();
}

static bool is_away(void *context) {
    (void)context;
    return rpc_is_away(it.rpc, log_served);
}

/* Who is not wanted any more ends once its server is known to be away, and nobody else does. */
static void what_nobody_wants_ends_when_the_server_is_away(void **state) {
    bool wanted = false;
    bool unwanted = true;
    uint32_t count = 2;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    ask_until(0, OP_MKDIR, &unwanted);
    ask_until(1, OP_GETATTR, &unwanted);
    run_until(is_held, &count);
    for (int i = 0; i < 50; i++) {
        turn(); /* It lives, if slowly. */
    }
    assert_int_equal(it.done_count, 0);
    assert_false(rpc_is_away(it.rpc, log_served));
    it.holds = false;
    server_goes();
    wait_done(2);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[1].result, 0);

    ask_until(2, OP_MKDIR, &wanted);
    ask_until(3, OP_MKDIR, &unwanted);
    ask_until(4, OP_GETATTR, &unwanted);
    wait_done(4);
    assert_int_equal(it.calls[3].result, -ERR_INTERRUPTED);
    assert_int_equal(it.calls[4].result, -ERR_INTERRUPTED);
    assert_true(rpc_is_away(it.rpc, log_served));
    assert_true(rpc_is_away(it.rpc, (struct log_id){0}));
    it.ran_count = 0;
    gate_begin(9);
    wait_done(5);
    assert_int_equal(it.calls[2].result, 0);
    assert_int_equal(it.ran_count, 1);
    assert_false(rpc_is_away(it.rpc, log_served));

    server_goes();
    ask_until(5, OP_MKDIR, &wanted);
    run_until(is_away, NULL);
    wanted = true;
    wait_done(6);
    assert_int_equal(it.calls[5].result, -ERR_INTERRUPTED);
}

int main(void) {
    static struct way without_ring = {.without_ring = true};
    static struct way plain = {.by_tcp = true};
    static struct way encrypted = {.by_tcp = true, .encryption = LINK_ENCRYPTED_ALWAYS};
    static struct way by_reader = {.by_tcp = true, .of_mount = true};
    const struct CMUnitTest tests[] = {
#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down),                                      \
        WAY(test, "without io_uring", without_ring), WAY(test, "by TCP", plain),                   \
        WAY(test, "in TLS", encrypted)
#define WAY(test, words, way) {#test " " words, test, set_up, tear_down, &(way)}
        BOTH(what_is_asked_is_answered),
        BOTH(bulk_goes_and_comes),
        BOTH(many_at_once_all_end),
        BOTH(nobody_there_is_waited_for),
        BOTH(a_server_that_comes_back_is_asked_again),
        BOTH(what_a_request_says_stays),
        BOTH(who_gives_up_a_mutation_replaces_the_connection),
        BOTH(a_lane_may_be_idle),
        BOTH(another_cluster_is_refused),
        BOTH(a_process_that_is_silent_is_given_up),
        BOTH(callers_may_ask_while_others_are_told),
        BOTH(any_bytes_may_come),
        BOTH(a_log_is_asked_for_where_it_is),
        BOTH(only_who_is_meant_is_asked),
        BOTH(nobody_s_call_is_lost_with_its_thread),
        BOTH(a_thread_may_follow_another),
        BOTH(what_nobody_wants_ends_when_the_server_is_away),
        WAY(a_log_that_is_here_needs_no_lane, "", plain),
#undef BOTH
        WAY(a_key_is_for_what_it_says, "", by_reader),
        WAY(another_key_is_refused, "", plain),
        WAY(a_revoked_key_is_cut_off, "", by_reader),
        WAY(a_greeting_must_fit, "", encrypted),
        WAY(who_has_no_key_is_refused, "", plain),
        WAY(strangers_keep_nobody_out, "", plain),
        WAY(ends_that_differ_refuse_each_other, "", plain),
#undef WAY
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
