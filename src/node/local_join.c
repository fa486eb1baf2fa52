/* The contract is in local_join.h. */
#include "node/local_join.h"
#include "host/folder.h"
#include "member/member.h"
#include "node/caller.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_FILE_BYTES_MAX = sizeof(struct cluster_map) + 65536 };
#define JOIN_NS (10 * NS_PER_S)
/* So that several that are away leave time for one that is not. */
#define CONNECT_NS NS_PER_S
/* Times of files come from all nodes' clocks. */
#define CLOCK_MAX_NS (60 * NS_PER_S)

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
    struct caller caller;
    struct member *member;
    struct member_question question;
    bool asking;
    bool stopped;
};

static int map_came(void *context, const struct cluster_map *map) {
    struct joining *joining = context;

    return links_follow(joining->caller.links, map);
}

static void keep_line(void *context, const char *line) {
    struct joining *joining = context;

    caller_say(&joining->caller, line);
}

static int open_all(struct joining *joining, struct env *env, const struct config *config,
                    char problem[512]) {
    const struct caller_options caller = {.env = env,
                                          .addresses = config->join,
                                          .key_path = config->key_path,
                                          .encryption =
                                              (enum link_encryption)config->link_encryption,
                                          .connect_ns = CONNECT_NS,
                                          .clock_max_ns = CLOCK_MAX_NS};
    int r = caller_open(&joining->caller, &caller, problem);
    const struct member_options options = {
        .env = env,
        .rpc = joining->caller.rpc,
        .key = {config->node_key[0], config->node_key[1]},
        .target_count = config->ost_count + (config->mdts_by_manager ? 0 : config->mdt_count),
        .mdt_count = config->mdts_by_manager ? MEMBER_MDTS_BY_MANAGER : config->mdt_count,
        .address = "",
        .finds_manager = true,
        .hooks = {.map = map_came, .log = keep_line, .context = joining}};

    return r < 0 ? r : member_new(&options, &joining->member);
}

static void turn(struct joining *joining) {
    caller_turn(&joining->caller);
    member_tick(joining->member);
    caller_run(&joining->caller);
}

static void member_told(struct member_question *question) {
    struct joining *joining = question->context;

    joining->asking = false;
}

/* Until numbers and map are there, or it is refused, or time is up. */
static int wait_numbers(struct joining *joining, struct cluster_map *map) {
    struct env *env = joining->caller.env;
    uint64_t end_ns = env_now_ns(env) + JOIN_NS;
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
        int refusal = links_refusal(joining->caller.links);

        if (state->node.value != 0 && state->map_version != 0) {
            return 0;
        }
        if (refusal < 0) {
            return refusal;
        }
        if (state->result < 0 && state->heard_ns != 0) {
            return state->result;
        }
        if (env_now_ns(env) >= end_ns) {
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
    caller_leave(&joining->caller);
    member_free(joining->member);
    caller_close(&joining->caller);
}

static void clock_say(const struct config *config, const struct joining *joining,
                      char problem[512]) {
    struct lane_clock clock;

    lanes_clock(joining->caller.lanes, &clock);
    snprintf(problem, 512,
             "the clock at %.256s is %lld s %s this machine's: set both right, by NTP say, then "
             "join",
             config->join, (llabs(clock.ahead_ns) + (long long)NS_PER_S / 2) / (long long)NS_PER_S,
             clock.ahead_ns > 0 ? "ahead of" : "behind");
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
                 config->join, joining->caller.said[0] ? ": " : "", joining->caller.said);
    } else if (r == -ERR_ACCESS) {
        snprintf(problem, 512, "%.100s refuses the key in %.256s: it is of another cluster",
                 config->join, config->key_path);
    } else if (r == -ERR_CLOCK) {
        clock_say(config, joining, problem);
    } else if (r == -ERR_MALFORMED) {
        snprintf(problem, 512,
                 "what answers at %.256s is no Shoal: name the address and port of a node's "
                 "--listen",
                 config->join);
    } else if (r == -ERR_NO_SPACE) {
        snprintf(problem, 512,
                 "the cluster of %.256s has no place for this node: its map is full of nodes, "
                 "targets or pool versions, or the file system of the first node's DIR is full",
                 config->join);
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
        if ((config->node_key[0] | config->node_key[1]) == 0) {
            env->ops->random(env, config->node_key, sizeof config->node_key);
        }
        r = open_all(joining, env, config, problem);
        if (r == 0) {
            r = wait_numbers(joining, map);
        }
        if (r < 0) {
            say_failure(config, joining, r, problem);
        } else if (joining->question.state.mdt_count + config->ost_count == 0) {
            /* By a manager of a version before. */
            snprintf(problem, 512,
                     "the manager gives this node no metadata target, and shoal.conf no storage "
                     "target: set mdts there, or osts");
            r = -ERR_INVALID;
        } else {
            memcpy(config->cluster_id, map->cluster_id, sizeof config->cluster_id);
            memcpy(config->name_hash_key, map->name_hash_key, sizeof config->name_hash_key);
            config->node = joining->question.state.node.value;
            config->first_target = joining->question.state.first_target;
            config->mdt_count = joining->question.state.mdt_count;
            config->mdts_by_manager = false;
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
