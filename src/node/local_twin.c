/* The contract is in local_twin.h. */
#include "node/local_twin.h"
#include "node/caller.h"
#include "rpc/call.h"
#include "rpc/call_origin.h"
#include <stdio.h>

#define TWIN_NS NS_PER_S

struct asking {
    struct caller caller;
    struct actor origin;
    struct call call;
    bool done;
    bool tries_on; /* also where one address can't be reached */
};

static void note_done(struct call *call) {
    struct asking *asking = call->context;

    asking->done = true;
}

/* Whoever cannot be reached is said to be so by the lane, which would try on. */
static bool is_over(const struct asking *asking) {
    bool is_away = asking->caller.said[0] && !asking->tries_on;

    return asking->done || is_away || links_refusal(asking->caller.links) < 0;
}

static int ask(struct asking *asking, struct log_id log) {
    struct caller *caller = &asking->caller;
    struct call *call = &asking->call;

    call->header.opcode = OP_MAP_GET;
    call->header.log = log;
    call->request.map_get.known_version = UINT64_MAX;
    call->origin = &asking->origin;
    call->done = note_done;
    call->context = asking;
    call->deadline_ns = env_now_ns(caller->env) + TWIN_NS;
    call_start(caller->rpc, call);
    caller_run(caller);
    while (!is_over(asking)) {
        caller_turn(caller);
    }
    if (!asking->done) {
        call_cancel(call);
    }
    while (!asking->done) {
        caller_turn(caller);
    }
    return call->result;
}

static const char *address_of(const struct cluster_map *map, struct node_id node) {
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (map->nodes[i].id.value == node.value) {
            return map->nodes[i].address;
        }
    }
    return "";
}

int local_twin_check(struct env *env, const struct config *config, const struct cluster_map *map,
                     char problem[256]) {
    const struct node_id node = {config->node};
    const struct caller_options options = {.env = env,
                                           .addresses = address_of(map, node),
                                           .key_path = config->key_path,
                                           .encryption =
                                               (enum link_encryption)config->link_encryption,
                                           .connect_ns = TWIN_NS};
    struct asking asking = {.done = false};
    char ignored[512] = "";

    if (!config->listen[0] || !options.addresses[0]) {
        return 0;
    }
    actor_init(&asking.origin, "twin", call_origin_step);
    int r = caller_open(&asking.caller, &options, ignored);
    /* The node's own log is served by nobody but the node. */
    bool answers = r == 0 && ask(&asking, log_of_node(node)) == 0;
    caller_leave(&asking.caller);
    caller_close(&asking.caller);
    if (r < 0) {
        snprintf(problem, 256, "%.255s", ignored);
        return r;
    }
    if (answers) {
        snprintf(problem, 256,
                 "node %u runs already, at %.120s: this directory is a copy of its directory; "
                 "start one of the two only",
                 config->node, options.addresses);
    }
    return answers ? -ERR_TWO_LIVES : 0;
}

static int join_ask(struct env *env, const struct config *config, char problem[512]) {
    const struct caller_options options = {.env = env,
                                           .addresses = config->join,
                                           .key_path = config->key_path,
                                           .cluster_id = config->cluster_id,
                                           .encryption =
                                               (enum link_encryption)config->link_encryption,
                                           .connect_ns = TWIN_NS};
    struct asking asking = {.tries_on = true};

    actor_init(&asking.origin, "join", call_origin_step);
    int r = caller_open(&asking.caller, &options, problem);
    if (r == 0) {
        (void)!ask(&asking, LOG_MEMBER);
        r = links_refusal(asking.caller.links) == -ERR_OTHER_CLUSTER ? -ERR_OTHER_CLUSTER : 0;
    }
    caller_leave(&asking.caller);
    caller_close(&asking.caller);
    return r;
}

int local_join_check(struct env *env, const struct config *config, char problem[512]) {
    int r = env_thread_enter(env);

    if (r < 0) {
        return r;
    }
    r = join_ask(env, config, problem);
    if (r == -ERR_OTHER_CLUSTER) {
        snprintf(problem, 512,
                 "%.300s is another cluster than the one that this directory has joined: leave "
                 "--join out, or name a new directory",
                 config->join);
    }
    env_thread_leave(env);
    return r;
}
