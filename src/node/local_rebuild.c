/* The contract is in local_rebuild.h. What a log tells is asked by rebuild_rows.c. */
#include "node/local_rebuild.h"
#include "host/folder.h"
#include "node/local_join.h"
#include "node/rebuild_rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANAGER_NAME "manager"
#define CONNECT_NS NS_PER_S
/* Within it a node that runs answers; one that is to be gone is asked for a shorter time, and so
 * are others once one has been silent. */
#define ANSWER_NS (5 * NS_PER_S)
#define GONE_NS (2 * NS_PER_S)
/* Of a node that has just answered: each page of rows waits for its disk. */
#define ROWS_NS (60 * NS_PER_S)

enum { MAP_BYTES = 1024 * 1024, LOGS_MAX = MAP_TARGETS_MAX + MAP_NODES_MAX + 2 };

struct local_rebuilding {
    struct rebuilt *rebuilt;
    struct rebuild_asker asker; /* of other nodes, while they are asked */
    struct cluster_map *map;    /* for answers */
    uint8_t *map_bytes;
    uint32_t asked[MAP_NODES_MAX]; /* nodes that have told their maps */
    uint32_t asked_count;
    struct local_without without;
    struct target_id highest; /* that has told of the highest session */
};

static int entry_found(void *context, const struct folder_entry *entry) {
    (void)entry;
    *(bool *)context = true;
    return 0;
}

static bool file_is_there(struct env *env, const char *name) {
    struct env_file *file;

    if (env->ops->file_open(env, name, ENV_FILE_READ_ONLY, &file) < 0) {
        return false;
    }
    env->ops->file_close(file);
    return true;
}

int local_rebuild_check(struct env *env, const struct local_cluster_options *options,
                        const struct config *config, char problem[512]) {
    bool is_cut = file_is_there(env, LOCAL_REBUILDING_NAME);
    bool has_manager = false;
    const char *directory = options->directory;

    if (!options->rebuild_manager) {
        if (!is_cut) {
            return 0;
        }
        snprintf(problem, 512,
                 "the manager of %s was being rebuilt, and that did not end: `shoal up %s "
                 "--rebuild-manager` once more",
                 directory, directory);
        return -ERR_INVALID;
    }
    if (!config_is_first(config)) {
        snprintf(problem, 512,
                 "%s is node %" PRIu32
                 "'s, and the manager is the first node's: it is rebuilt there, beside its targets",
                 directory, config->node);
        return -ERR_INVALID;
    }
    if (folder_list(env, MANAGER_NAME, entry_found, &has_manager) == 0 && has_manager && !is_cut) {
        snprintf(problem, 512,
                 "%s/manager is there: start without --rebuild-manager; where that can't be, move "
                 "it away first",
                 directory);
        return -ERR_EXISTS;
    }
    if (config->listen[0] && !file_is_there(env, LOCAL_MAP_NAME)) {
        snprintf(problem, 512,
                 "%s/map is gone, which names the nodes to ask: copy that file from the DIR of any "
                 "other node",
                 directory);
        return -ERR_NOT_FOUND;
    }
    return 0;
}

int local_without_parse(const char *text, struct local_without *ret_without) {
    struct local_without without = {.count = 0};

    while (text && *text) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);

        /* strtoul takes blanks, a sign and zeros in front, too. */
        if (*text < '1' || *text > '9' || (*end != ',' && *end != '\0') || number > UINT32_MAX ||
            without.count == LOCAL_WITHOUT_MAX) {
            return -ERR_INVALID;
        }
        without.nodes[without.count++] = (uint32_t)number;
        text = end;
        if (*text == ',' && *++text == '\0') {
            return -ERR_INVALID;
        }
    }
    *ret_without = without;
    return 0;
}

static bool is_in(const uint32_t *numbers, uint32_t count, struct node_id node) {
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == node.value) {
            return true;
        }
    }
    return false;
}

static bool is_without(const struct local_rebuilding *rebuilding, struct node_id node) {
    return is_in(rebuilding->without.nodes, rebuilding->without.count, node);
}

/* "6, 7": of its targets those that are not lost. */
static void targets_print(const struct cluster_map *map, struct node_id node, size_t size,
                          char *ret_text) {
    size_t used = 0;

    ret_text[0] = '\0';
    for (uint32_t i = 0; i < map->target_count && used + 16 < size; i++) {
        const struct map_target *target = &map->targets[i];

        if (target->node.value == node.value && target->state != TARGET_LOST) {
            used += (size_t)snprintf(ret_text + used, size - used, "%s%" PRIu32,
                                     used > 0 ? ", " : "", target->id.value);
        }
    }
}

/* Of a node that was silent: what the lanes have said of it, behind its name. */
static const char *silence_of(const struct local_rebuilding *rebuilding, int r) {
    bool is_silent = r == -ERR_TIMED_OUT || r == -ERR_AWAY;
    const char *said = is_silent ? strstr(rebuilding->asker.caller.said, ": ") : NULL;

    return said ? said + 2 : err_text(r);
}

/* What is to be done of a node that has not told what it has. */
static void node_say(const struct local_rebuilding *rebuilding, const struct map_node *node, int r,
                     char problem[256]) {
    const struct cluster_map *map = rebuilding->rebuilt->map;
    char targets[32];

    targets_print(map, node->id, sizeof targets, targets);
    if (r == -ERR_CONFLICT) {
        snprintf(problem, 256,
                 "node %" PRIu32 " has another map of version %" PRIu64
                 " than others have: one of them is no node of this cluster",
                 node->id.value, map->version);
    } else if (r == -ERR_OTHER_CLUSTER) {
        snprintf(problem, 256, "at %.120s, of node %" PRIu32 ", is a node of another cluster",
                 node->address, node->id.value);
    } else if (r == -ERR_INVALID || r == -ERR_NOT_SUPPORTED) {
        snprintf(problem, 256,
                 "node %" PRIu32
                 " runs a version that can't tell what a manager is rebuilt from: update it first",
                 node->id.value);
    } else if (r == -ERR_CORRUPT || r == -ERR_MALFORMED) {
        snprintf(problem, 256,
                 "node %" PRIu32 " tells rows that make no sense: see its log; as a last resort "
                 "stop it for ever, and --without %" PRIu32 " goes on without its targets",
                 node->id.value, node->id.value);
    } else {
        snprintf(problem, 256,
                 "node %" PRIu32 " at %.44s does not tell what it has (%.40s): start it; or, where "
                 "it is gone for ever, --without %" PRIu32 " declares its targets lost: %s",
                 node->id.value, node->address, silence_of(rebuilding, r), node->id.value, targets);
    }
}

/* The map that the node goes by, in rebuilding->map. */
static int map_ask(struct local_rebuilding *rebuilding, const struct map_node *node,
                   uint64_t patience_ns) {
    struct call call = {.header = {.opcode = OP_MAP_GET, .log = log_of_node(node->id)},
                        .bulk_in = {.data = rebuilding->map_bytes, .capacity = MAP_BYTES}};
    int r = rebuild_ask(&rebuilding->asker, &call, patience_ns);

    return r < 0 ? r
                 : cluster_map_decode((struct bytes){call.bulk_in.data, call.bulk_in.size},
                                      rebuilding->map);
}

static int node_map_ask(struct local_rebuilding *rebuilding, const struct map_node *node,
                        uint64_t patience_ns, bool *ret_is_newer) {
    int r = map_ask(rebuilding, node, patience_ns);

    *ret_is_newer = false;
    if (r == 0) {
        r = rebuilt_map_add(rebuilding->rebuilt, rebuilding->map, ret_is_newer);
    }
    return r;
}

/* A newer map may name more nodes, and other addresses: also of one that was silent at its old one,
 * so all are asked before that is told of the first. */
static int maps_ask(struct local_rebuilding *rebuilding, struct node_id own, char problem[256]) {
    const struct cluster_map *map = rebuilding->rebuilt->map;
    int failed = 0;

    for (uint32_t i = 0; i < map->node_count; i++) {
        const struct map_node node = map->nodes[i];
        bool is_newer = false;

        if (node.id.value == own.value || is_without(rebuilding, node.id) ||
            is_in(rebuilding->asked, rebuilding->asked_count, node.id) ||
            !rebuilt_needs(rebuilding->rebuilt, &node)) {
            continue;
        }
        int r = node_map_ask(rebuilding, &node, failed < 0 ? GONE_NS : ANSWER_NS, &is_newer);
        if (r < 0 && failed == 0) {
            node_say(rebuilding, &node, r, problem);
            failed = r;
        }
        if (r < 0) {
            continue;
        }
        rebuilding->asked[rebuilding->asked_count++] = node.id.value;
        if (is_newer) {
            problem[0] = '\0';
            r = links_follow(rebuilding->asker.caller.links, map);
            if (r < 0) {
                return r;
            }
            failed = 0;
            i = UINT32_MAX; /* From the first one on. */
        }
    }
    return failed;
}

/* What runs is not lost. */
static int without_lose(struct local_rebuilding *rebuilding, struct node_id own,
                        char problem[256]) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < rebuilding->without.count; i++) {
        const struct node_id id = {rebuilding->without.nodes[i]};
        const struct map_node *node = cluster_map_node(rebuilding->rebuilt->map, id);

        if (!node || id.value == own.value || !rebuilt_needs(rebuilding->rebuilt, node)) {
            snprintf(problem, 256, "--without %" PRIu32 ": %s", id.value,
                     !node                   ? "the cluster has no such node"
                     : id.value == own.value ? "it is this node, without which there is no root"
                                             : "all its targets are lost already: leave it out");
            return -ERR_INVALID;
        }
        if (map_ask(rebuilding, node, GONE_NS) == 0) {
            snprintf(problem, 256,
                     "--without %" PRIu32 ": that node answers, so nothing of it is lost: leave "
                     "it out",
                     id.value);
            return -ERR_IN_USE;
        }
        r = rebuilt_lose(rebuilding->rebuilt, id);
        if (r < 0) {
            snprintf(problem, 256, "--without %" PRIu32 ": one of its targets can't be lost: %s",
                     id.value, err_text(r));
        }
    }
    return r;
}

/* Of those that other nodes serve, or of the own ones. */
static int logs_ask(struct local_rebuilding *rebuilding, struct rebuild_asker *asker,
                    struct node_id own, bool is_own, char problem[256]) {
    const struct cluster_map *map = rebuilding->rebuilt->map;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];
        uint64_t highest = rebuilding->rebuilt->session_highest;

        if (target->state == TARGET_LOST || (target->node.value == own.value) != is_own) {
            continue;
        }
        r = rebuild_rows_ask(asker, rebuilding->rebuilt, target, ROWS_NS);
        if (rebuilding->rebuilt->session_highest > highest) {
            rebuilding->highest = target->id;
        }
        if (r < 0 && is_own) {
            snprintf(problem, 256, "target %" PRIu32 " of this node can't tell what it has: %s",
                     target->id.value, err_text(r));
        } else if (r < 0) {
            node_say(rebuilding, cluster_map_node(map, target->node), r, problem);
        }
    }
    return r;
}

static int others_ask(struct local_rebuilding *rebuilding, struct node_id own, char problem[256]) {
    int r = links_follow(rebuilding->asker.caller.links, rebuilding->rebuilt->map);

    if (r == 0) {
        r = maps_ask(rebuilding, own, problem);
    }
    if (r == 0) {
        r = without_lose(rebuilding, own, problem);
    }
    return r == 0 ? logs_ask(rebuilding, &rebuilding->asker, own, false, problem) : r;
}

/* Another node's: who has no other calls nobody. */
static const char *any_address(const struct cluster_map *map, struct node_id own) {
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (map->nodes[i].id.value != own.value && map->nodes[i].address[0]) {
            return map->nodes[i].address;
        }
    }
    return NULL;
}

static int others_open_and_ask(struct local_cluster *cluster, char problem[256]) {
    struct local_rebuilding *rebuilding = cluster->rebuilding;
    const struct config *config = &cluster->config;
    const struct node_id own = {config->node};
    const struct caller_options options = {.env = cluster->env,
                                           .addresses = any_address(cluster->map, own),
                                           .key_path = config->key_path,
                                           .cluster_id = config->cluster_id,
                                           .encryption =
                                               (enum link_encryption)config->link_encryption,
                                           .connect_ns = CONNECT_NS,
                                           .logs_max = LOGS_MAX};
    char detail[512] = "";

    if (!options.addresses) {
        return without_lose(rebuilding, own, problem);
    }
    int r = rebuild_asker_open(&rebuilding->asker, &options, detail);
    if (r == 0) {
        r = others_ask(rebuilding, own, problem);
    }
    rebuild_asker_close(&rebuilding->asker);
    if (detail[0]) {
        snprintf(problem, 256, "%.255s", detail);
    }
    return r;
}

int local_rebuild_ask(struct local_cluster *cluster, const struct local_cluster_options *options,
                      char problem[256]) {
    char detail[512];
    /* Once more, as the lock is held now. */
    int r = local_rebuild_check(cluster->env, options, &cluster->config, detail);

    if (r < 0) {
        snprintf(problem, 256, "%.255s", detail);
        return r;
    }
    struct local_rebuilding *rebuilding = calloc(1, sizeof *rebuilding);
    if (!rebuilding) {
        return -ERR_NO_MEMORY;
    }
    cluster->rebuilding = rebuilding;
    rebuilding->map = malloc(sizeof *rebuilding->map);
    rebuilding->map_bytes = malloc(MAP_BYTES);
    if (!rebuilding->map || !rebuilding->map_bytes) {
        return -ERR_NO_MEMORY;
    }
    r = local_without_parse(options->without, &rebuilding->without);
    if (r < 0) {
        snprintf(problem, 256, "--without takes numbers of nodes, commas between, not %.80s",
                 options->without);
        return r;
    }
    r = rebuilt_new(cluster->map, &rebuilding->rebuilt);
    return r < 0 ? r : others_open_and_ask(cluster, problem);
}

/* What was there was made by a rebuilding that did not end, and the ring belongs to what is gone.
 */
static int room_make(struct local_cluster *cluster, char problem[256]) {
    struct env *env = cluster->env;
    char ring[LOCAL_RING_NAME_BYTES];
    int r = folder_file_write(env, LOCAL_REBUILDING_NAME, "", 0);

    if (r == 0) {
        r = folder_tree_remove(env, MANAGER_NAME);
        r = r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (r == 0) {
        local_target_ring(&cluster->config, MANAGER_NAME, ring);
        r = env->ops->shared_remove(env, ring);
        r = r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (r < 0) {
        snprintf(problem, 256, "there is no room made for the manager: %s", err_text(r));
    }
    return r;
}

int local_rebuild_own(struct local_cluster *cluster, char problem[256]) {
    struct local_rebuilding *rebuilding = cluster->rebuilding;
    struct rebuild_asker asker = {.cluster = cluster};
    int r = logs_ask(rebuilding, &asker, (struct node_id){cluster->config.node}, true, problem);

    if (r < 0) {
        return r;
    }
    r = rebuilt_finish(rebuilding->rebuilt);
    if (r == -ERR_CORRUPT) {
        snprintf(problem, 256,
                 "target %" PRIu32 " tells of session %" PRIu64
                 ", and the lowest that lives is %" PRIu64
                 ": so many were never begun, so one of the two is damage, and nothing is rebuilt "
                 "from it",
                 rebuilding->highest.value, rebuilding->rebuilt->session_highest,
                 rebuilding->rebuilt->sessions[0].id.value);
    }
    return r < 0 ? r : room_make(cluster, problem);
}

const struct rebuilt *local_rebuild_result(const struct local_cluster *cluster) {
    return cluster->rebuilding ? cluster->rebuilding->rebuilt : NULL;
}

static void rebuilt_say(const struct local_cluster *cluster) {
    const struct rebuilt *rebuilt = cluster->rebuilding->rebuilt;
    char line[320];

    snprintf(line, sizeof line,
             "the manager is rebuilt from %" PRIu32 " logs: cluster map %" PRIu64
             ", sessions from %" PRIu64 " on, %" PRIu32
             " that go on if they are heard within session_timeout_ms; till then a machine that "
             "had one of these may have to wait for a new one",
             rebuilt->life_count, rebuilt->map->version, rebuilt->next_session,
             rebuilt->session_count);
    if (cluster->log) {
        cluster->log(line);
    }
}

/* The manager answers when what it was made of is on its disk. */
int local_rebuild_end(struct local_cluster *cluster, char problem[256]) {
    struct call call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                        .request.map_get.known_version = UINT64_MAX};
    int r = local_cluster_ask(cluster, &call);

    if (r < 0) {
        snprintf(problem, 256, "the manager that was rebuilt does not begin: %s", err_text(r));
        return r;
    }
    r = cluster->env->ops->file_remove(cluster->env, LOCAL_REBUILDING_NAME);
    if (r < 0) {
        snprintf(problem, 256, LOCAL_REBUILDING_NAME " cannot be removed: %s", err_text(r));
        return r;
    }
    rebuilt_say(cluster);
    return 0;
}

void local_rebuild_free(struct local_cluster *cluster) {
    struct local_rebuilding *rebuilding = TAKE_PTR(cluster->rebuilding);

    if (rebuilding) {
        rebuilt_free(rebuilding->rebuilt);
        free(rebuilding->map);
        free(rebuilding->map_bytes);
        free(rebuilding);
    }
}
