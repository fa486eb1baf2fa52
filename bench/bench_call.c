/* What a call within one process costs, from call_start to done; prints one line of JSON.
 *
 * query: no sequence to draw.  mutation: one that ends at once, so the floor moves with it.  The
 * server does nothing but answer. Best of several rounds, as the machine has other things to do. */
#include "env/env.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include <assert.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 7, CALLS = 1000000, TARGET = 1 };

static uint64_t done_count;

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t env_clock_ns(struct env *env) {
    (void)env;
    return clock_ns();
}

static uint64_t worker_clock_ns(struct worker *worker) {
    (void)worker;
    return clock_ns();
}

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *next = first->next;

        call_reply(CONTAINER_OF(first, struct call, message), 0);
        first = next;
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

static void count_done(struct call *call) {
    (void)call;
    done_count++;
}

static double best_ns(struct rpc *rpc, struct actor *origin, uint16_t opcode) {
    static struct call call;
    uint64_t best = UINT64_MAX;

    call = (struct call){
        .header = {.opcode = opcode, .log = {TARGET}}, .origin = origin, .done = count_done};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = clock_ns();

        done_count = 0;
        for (uint32_t j = 0; j < CALLS; j++) {
            call_start(rpc, &call);
        }
        assert(done_count == CALLS);
        best = MIN(best, clock_ns() - start_ns);
    }
    return (double)best / CALLS;
}

int main(void) {
    static const struct env_ops ops = {.now_ns = env_clock_ns};
    static struct env env = {.ops = &ops};
    static struct worker worker;
    static struct actor server;
    static struct actor origin;
    struct rpc_options options = {
        .transport = &transport_inproc_ops, .env = &env, .resend_ns = NS_PER_MS, .logs_max = 4};
    struct log_table *logs = NULL;
    struct rpc *rpc = NULL;
    int r = log_table_new(4, &logs);

    assert(r == 0);
    worker_init(&worker);
    worker.now_ns = worker_clock_ns;
    worker_bind(&worker);
    actor_init(&server, "server", server_step);
    actor_init(&origin, "origin", origin_step);
    r = log_table_add(logs, (struct log_id){TARGET}, &server);
    assert(r == 0);
    options.transport_context = logs;
    r = rpc_new(&options, &rpc);
    assert(r == 0);
    printf("{\"name\": \"call\", \"query_ns\": %.1f, ", best_ns(rpc, &origin, OP_GETATTR));
    printf("\"mutation_ns\": %.1f}\n", best_ns(rpc, &origin, OP_MKDIR));
    rpc_free(rpc);
    log_table_free(logs);
    worker_bind(NULL);
    return 0;
}
