/* The contract is in local_join.h. */
#include "node/local_join.h"
#include "env/env_linux.h"
#include "host/folder.h"
#include "keys/tls.h"
#include "member/member.h"
#include "node/key_path.h"
#include "node/links.h"
#include "rpc/worker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_FILE_BYTES_MAX = sizeof(struct cluster_map) + 65536, TICK_MS = 20 };
#define JOIN_NS (10 * NS_PER_S)
/* So that several that are away leave time for one that is not. */
#define CONNECT_NS NS_PER_S

int local_map_write(struct env *env, const struct cluster_map *map) {
    struct buffer out = {.capacity = cluster_map_size(map)};
    int r;

    out.data = malloc(out.capacity);
    if (!out.data) {
        return -ERR_NO_MEMORY;
    }
    cluster_map_encode(map, &out);
    r = folder_file_write(env, LOCAL_MAP_NAME, out.data, out.size);
    free(out.data);
    return r;
}

int local_map_read(struct env *env, struct cluster_map *ret_map) {
    char *data;
    size_t size;
    int r = folder_file_read(env, LOCAL_MAP_NAME, MAP_FILE_BYTES_MAX, &data, &size);

    if (r < 0) {
        return r;
    }
    r = cluster_map_decode((struct bytes){(const uint8_t *)data, size}, ret_map);
    free(data);
    return r;
}

/* All that asks, on one thread. */
struct joining {
    struct env *env;
    struct worker worker;
    struct tls_context *tls;
    struct lanes *lanes;
    struct links *links;
    struct lane_thread *thread;
    struct rpc *rpc;
    struct member *member;
    struct member_question question;
    bool asking;
    bool stopped;
    char said[256]; /* the last line */
};

static uint64_t worker_now(struct worker *worker) {
    return env_now_ns(worker->context);
}

static void thread_wake(void *context) {
    env_loop_wake(context);
}

static void keep_line(void *context, const char *line) {
    struct joining *joining = context;

    snprintf(joining->said, sizeof joining->said, "%s", line);
}

static int map_came(void *context, const struct cluster_map *map) {
    struct joining *joining = context;

    return links_follow(joining->links, map);
}

static int open_links(struct joining *joining, const struct config *config, char problem[512]) {
    struct lanes_options options = {.env = joining->env,
                                    .encryption = (enum link_encryption)config->link_encryption,
                                    .connect_ns = CONNECT_NS,
                                    .log = keep_line,
                                    .context = joining};
    struct address addresses[CONFIG_JOIN_MAX];
    struct key_file key;
    int count = config_addresses(config->join, addresses, CONFIG_JOIN_MAX);
    int r = count < 0 ? count : key_path_read_members(config->key_path, &key, problem);

    if (r < 0) {
        return r;
    }
    r = tls_context_call(&key, &joining->tls);
    key_file_wipe(&key);
    options.tls = joining->tls;
    joining->env->ops->random(joining->env, options.self.life, sizeof options.self.life);
    if (r == 0) {
        r = lanes_new(&options, &joining->lanes);
    }
    const struct links_options links = {.lanes = joining->lanes,
                                        .by_hand = addresses,
                                        .by_hand_count = (uint32_t)count,
                                        .by_hand_name = config->join,
                                        .has_key = true};
    return r < 0 ? r : links_new(&links, &joining->links);
}

static int open_all(struct joining *joining, const struct config *config, char problem[512]) {
    const struct lane_waker waker = {.wake = thread_wake, .context = env_thread_loop(joining->env)};
    int r = open_links(joining, config, problem);

    if (r == 0) {
        r = lane_thread_new(joining->lanes, &waker, &joining->thread);
    }
    if (r < 0) {
        return r;
    }
    lane_thread_bind(joining->thread);
    const struct rpc_options rpc = {.transport = &lanes_ops,
                                    .transport_context = joining->lanes,
                                    .env = joining->env,
                                    .resend_ns = NS_PER_S / 10,
                                    .logs_max = 2}; /* the manager, and whoever is reached */
    r = rpc_new(&rpc, &joining->rpc);
    const struct member_options options = {
        .env = joining->env,
        .rpc = joining->rpc,
        .key = {config->node_key[0], config->node_key[1]},
        .target_count = config->ost_count,
        .address = "",
        .finds_manager = true,
        .hooks = {.map = map_came, .log = keep_line, .context = joining}};
    return r < 0 ? r : member_new(&options, &joining->member);
}

static void turn(struct joining *joining) {
    (void)env_loop_wait(joining->env, -1, TICK_MS * NS_PER_MS);
    while (worker_run_one(&joining->worker)) {
    }
    lanes_tick(joining->lanes);
    (void)lane_thread_turn(joining->thread);
    member_tick(joining->member);
    while (worker_run_one(&joining->worker)) {
    }
    (void)lane_thread_turn(joining->thread);
}

static void member_told(struct member_question *question) {
    struct joining *joining = question->context;

    joining->asking = false;
}

/* Until numbers and map are there, or it is refused, or time is up. */
static int wait_numbers(struct joining *joining, struct cluster_map *map) {
    uint64_t end_ns = env_now_ns(joining->env) + JOIN_NS;
    struct member_state *state = &joining->question.state;

    for (;;) {
        joining->question.map = map;
        joining->question.done = member_told;
        joining->question.context = joining;
        joining->asking = true;
        member_ask(joining->member, &joining->question);
        do {
            turn(joining);
        } while (joining->asking);
        int refusal = links_refusal(joining->links);

        if (state->node.value != 0 && state->map_version != 0) {
            return 0;
        }
        if (refusal < 0) {
            return refusal;
        }
        if (state->result < 0 && state->heard_ns != 0) {
            return state->result;
        }
        if (env_now_ns(joining->env) >= end_ns) {
            return -ERR_TIMED_OUT;
        }
    }
}

static void stopped(void *context, int result) {
    (void)result;
    ((struct joining *)context)->stopped = true;
}

static void close_all(struct joining *joining) {
    if (joining->member) {
        member_stop_start(joining->member, stopped, joining);
        while (!joining->stopped) {
            turn(joining);
        }
    }
    lane_thread_free(joining->thread);
    while (worker_run_one(&joining->worker) || env_loop_pending(joining->env) > 0) {
        (void)env_loop_wait(joining->env, -1, NS_PER_MS);
    }
    member_free(joining->member);
    rpc_free(joining->rpc);
    links_free(joining->links);
    lanes_free(joining->lanes);
    tls_context_free(joining->tls);
    worker_bind(NULL);
}

static void say_failure(const struct config *config, const struct joining *joining, int r,
                        char problem[512]) {
    if (r == -ERR_TIMED_OUT && joining->question.state.map_version != 0) {
        snprintf(problem, 512,
                 "%.100s answers, but the first node does not, which has the manager: is it up?",
                 config->join);
    } else if (r == -ERR_TIMED_OUT) {
        snprintf(problem, 512,
                 "nobody answers at %.100s%s%.200s: is a node of the cluster up there, with "
                 "--listen, and does a firewall let it through?",
                 config->join, joining->said[0] ? ": " : "", joining->said);
    } else if (r == -ERR_ACCESS) {
        snprintf(problem, 512, "%.100s refuses the key in %.256s: it is of another cluster",
                 config->join, config->key_path);
    } else if (!problem[0]) {
        snprintf(problem, 512, "%.256s refuses this node: %s", config->join, err_text(r));
    }
}

int local_join_first(struct env *env, struct config *config, struct cluster_map **ret_map,
                     char problem[512]) {
    struct joining *joining = calloc(1, sizeof *joining);
    struct cluster_map *map = malloc(sizeof *map);
    int r = joining && map ? 0 : -ERR_NO_MEMORY;

    if (r == 0) {
        joining->env = env;
        worker_init(&joining->worker);
        joining->worker.now_ns = worker_now;
        joining->worker.context = env;
        worker_bind(&joining->worker);
        if ((config->node_key[0] | config->node_key[1]) == 0) {
            env->ops->random(env, config->node_key, sizeof config->node_key);
        }
        r = open_all(joining, config, problem);
        if (r == 0) {
            r = wait_numbers(joining, map);
        }
        if (r < 0) {
            say_failure(config, joining, r, problem);
        } else {
            memcpy(config->cluster_id, map->cluster_id, sizeof config->cluster_id);
            memcpy(config->name_hash_key, map->name_hash_key, sizeof config->name_hash_key);
            config->node = joining->question.state.node.value;
            config->first_target = joining->question.state.first_target;
        }
        close_all(joining);
    }
    free(joining);
    if (r < 0) {
        free(map);
        return r;
    }
    *ret_map = map;
    return 0;
}
