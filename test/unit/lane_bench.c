/* See lane_bench.h. */
#include "lane_bench.h"
#include "rpc/call_origin.h"

struct lane_bench it;
const struct log_id log_served = {7};

/* The reply tells what came; bulk comes back turned. */
void serve(struct call *call) {
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

void say(void *context, const char *line) {
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

void gate_begin(uint8_t cluster) {
    struct gate_options options = {.env = it.env,
                                   .self = {.cluster_id = {cluster}, .node = {1}, .life = {1, 2}},
                                   .logs = it.logs,
                                   .requests_max = it.requests_max ? it.requests_max : 64,
                                   .bulk_count = 4,
                                   .small_bulk_count = 8,
                                   .silent_ns = it.gate_silent_ns,
                                   .tls = it.serving,
                                   .keys = it.ring,
                                   .encryption = it.encryption_of_gate,
                                   .admit = admit,
                                   .log = say};

    options.waker = (struct lane_waker){.wake = wake, .context = env_thread_loop(it.env)};
    assert_int_equal(gate_new(&options, &it.gate), 0);
    assert_int_equal(gate_listen(it.gate, &it.address), 0);
}

void gate_end(void) {
    gate_free(TAKE_PTR(it.gate));
}

void thread_begin(void) {
    const struct lane_waker waker = {.wake = wake, .context = env_thread_loop(it.env)};

    assert_int_equal(lane_thread_new(it.lanes, &waker, &it.thread), 0);
    lane_thread_bind(it.thread);
}

void lanes_begin(uint8_t cluster) {
    const struct lanes_options options = {
        .env = it.env,
        .self = {.cluster_id = {cluster}, .node = {it.node}, .life = {3, cluster}},
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

void lanes_end(void) {
    lane_thread_free(TAKE_PTR(it.thread));
    rpc_free(TAKE_PTR(it.rpc));
    lanes_free(TAKE_PTR(it.lanes));
}

/* Listens, and never says a word. */
struct env_stream *silent[SILENT_MAX];
uint32_t silent_count;

void silent_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    (void)stream;
    (void)event;
    (void)reason;
}

void accept_silent(struct env_listener *listener, struct env_stream *stream) {
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

int set_up(void **state) {
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
    actor_init(&it.origin, "origin", call_origin_step);
    it.bulk_out = aligned_alloc(BLOCK_BYTES, BULK_BYTES);
    it.bulk_in = aligned_alloc(BLOCK_BYTES, BULK_BYTES);
    for (size_t i = 0; i < BULK_BYTES; i++) {
        it.bulk_out[i] = (uint8_t)(i * 7 + i / 251);
    }
    return 0;
}

void answer_held(void) {
    while (it.held_answered < it.held_count) {
        serve(it.held[it.held_answered++]);
    }
}

int tear_down(void **state) {
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

static void turn_of(bool ticks) {
    (void)env_loop_wait(it.env, -1, NS_PER_MS);
    while (worker_run_one(&it.worker)) {
    }
    if (it.thread && ticks) {
        lanes_tick(it.lanes);
        rpc_tick(it.rpc);
    }
    if (it.thread) {
        lane_thread_turn(it.thread);
    }
    if (it.gate) {
        gate_tick(it.gate);
        gate_turn(it.gate);
    }
}

void turn(void) {
    turn_of(true);
}

void turn_between_ticks(void) {
    turn_of(false);
}

static bool all_done(void *count) {
    return it.done_count >= *(uint32_t *)count;
}

bool is_held(void *count) {
    return it.held_count >= *(uint32_t *)count;
}

void run_until(bool (*is_so)(void *context), void *context) {
    uint64_t end_ns = env_now_ns(it.env) + LIMIT_NS;

    while (!is_so(context)) {
        turn();
        assert_true(env_now_ns(it.env) < end_ns);
    }
}

void wait_done(uint32_t count) {
    run_until(all_done, &count);
}

struct call *ask(uint32_t number, uint16_t opcode, size_t bulk_bytes) {
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
