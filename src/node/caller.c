/* The contract is in caller.h. */
#include "node/caller.h"
#include "node/config.h"
#include "node/key_path.h"
#include <stdio.h>
#include <string.h>

enum { TURN_MS = 20, LOGS_DEFAULT = 2 };

static uint64_t worker_now(struct worker *worker) {
    return env_now_ns(worker->context);
}

static void thread_wake(void *context) {
    env_loop_wake(context);
}

void caller_say(void *context, const char *line) {
    struct caller *caller = context;

    snprintf(caller->said, sizeof caller->said, "%s", line);
}

static int open_lanes(struct caller *caller, const struct caller_options *options,
                      char problem[512]) {
    struct lanes_options lanes = {.env = caller->env,
                                  .encryption = options->encryption,
                                  .connect_ns = options->connect_ns,
                                  .clock_max_ns = options->clock_max_ns,
                                  .log = caller_say,
                                  .context = caller};
    struct key_file key;
    int r = key_path_read_members(options->key_path, &key, problem);

    if (r < 0) {
        return r;
    }
    r = tls_context_call(&key, &caller->tls);
    key_file_wipe(&key);
    lanes.tls = caller->tls;
    if (options->cluster_id) {
        memcpy(lanes.self.cluster_id, options->cluster_id, sizeof lanes.self.cluster_id);
    }
    caller->env->ops->random(caller->env, lanes.self.life, sizeof lanes.self.life);
    return r < 0 ? r : lanes_new(&lanes, &caller->lanes);
}

static int open_links(struct caller *caller, const struct caller_options *options) {
    struct address addresses[CONFIG_JOIN_MAX];
    int count = config_addresses(options->addresses, addresses, CONFIG_JOIN_MAX);
    const struct links_options links = {.lanes = caller->lanes,
                                        .by_hand = addresses,
                                        .by_hand_count = (uint32_t)MAX(count, 0),
                                        .by_hand_name = options->addresses,
                                        .has_key = true};

    return count < 0 ? count : links_new(&links, &caller->links);
}

int caller_open(struct caller *caller, const struct caller_options *options, char problem[512]) {
    const struct lane_waker waker = {.wake = thread_wake, .context = env_thread_loop(options->env)};

    *caller = (struct caller){.env = options->env, .before = worker_current()};
    worker_init(&caller->worker);
    caller->worker.now_ns = worker_now;
    caller->worker.context = caller->env;
    worker_bind(&caller->worker);
    int r = open_lanes(caller, options, problem);
    if (r == 0) {
        r = open_links(caller, options);
    }
    if (r == 0) {
        r = lane_thread_new(caller->lanes, &waker, &caller->thread);
    }
    if (r < 0) {
        return r;
    }
    lane_thread_bind(caller->thread);
    const struct rpc_options rpc = {.transport = &lanes_ops,
                                    .transport_context = caller->lanes,
                                    .env = caller->env,
                                    .resend_ns = NS_PER_S / 10,
                                    .logs_max =
                                        options->logs_max > 0 ? options->logs_max : LOGS_DEFAULT};
    return rpc_new(&rpc, &caller->rpc);
}

void caller_run(struct caller *caller) {
    while (worker_run_one(&caller->worker)) {
    }
    (void)lane_thread_turn(caller->thread);
}

void caller_turn(struct caller *caller) {
    (void)env_loop_wait(caller->env, -1, TURN_MS * NS_PER_MS);
    lanes_tick(caller->lanes);
    caller_run(caller);
}

void caller_leave(struct caller *caller) {
    lane_thread_free(TAKE_PTR(caller->thread));
    while (worker_run_one(&caller->worker) || env_loop_pending(caller->env) > 0) {
        (void)env_loop_wait(caller->env, -1, NS_PER_MS);
    }
}

void caller_close(struct caller *caller) {
    rpc_free(caller->rpc);
    links_free(caller->links);
    lanes_free(caller->lanes);
    tls_context_free(caller->tls);
    worker_bind(caller->before);
}
