/* The contract is in local_member.h. */
#include "node/local_member.h"
#include "layout/map_lost.h"
#include "node/links.h"
#include "node/local_internal.h"
#include "node/local_join.h"
#include "node/local_lives.h"
#include "node/local_others.h"
#include "node/local_twin.h"
#include "store/ost.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void member_log(void *context, const char *line) {
    struct local_cluster *cluster = context;

    if (cluster->log) {
        cluster->log(line);
    }
}

int local_member_links(struct local_cluster *cluster) {
    const struct config *config = &cluster->config;
    struct lanes_options options = {.env = cluster->env,
                                    .self = {.node = {config->node}},
                                    .tls = cluster->network.calling,
                                    .encryption = (enum link_encryption)config->link_encryption,
                                    .logs = cluster->logs,
                                    .keeps = true,
                                    .log = member_log,
                                    .context = cluster};
    struct address addresses[CONFIG_JOIN_MAX];
    int count = 0;

    cluster->env->ops->random(cluster->env, cluster->life, sizeof cluster->life);
    if (!config->listen[0]) {
        return 0;
    }
    if (config->join[0]) {
        count = config_addresses(config->join, addresses, CONFIG_JOIN_MAX);
    }
    memcpy(options.self.cluster_id, config->cluster_id, 16);
    memcpy(options.self.life, cluster->life, sizeof options.self.life);
    int r = count < 0 ? count : lanes_new(&options, &cluster->lanes);
    const struct links_options links = {.lanes = cluster->lanes,
                                        .self = {config->node},
                                        .by_hand = addresses,
                                        .by_hand_count = (uint32_t)MAX(count, 0),
                                        .by_hand_name = config->join,
                                        .has_key = true};
    return r < 0 ? r : links_new(&links, &cluster->links);
}

static int map_make(struct local_cluster *cluster) {
    const struct config *config = &cluster->config;
    struct target_id osts[CONFIG_OSTS_MAX];
    struct target_id mdts[CONFIG_MDTS_MAX];

    for (uint32_t i = 0; i < config->ost_count; i++) {
        osts[i].value = local_target_id(config, TARGET_OST_FIRST + i);
    }
    memset(cluster->map, 0, sizeof *cluster->map);
    memcpy(cluster->map->cluster_id, config->cluster_id, 16);
    memcpy(cluster->map->name_hash_key, config->name_hash_key, 16);
    for (uint32_t i = 0; i < config->mdt_count; i++) {
        mdts[i].value = local_target_id(config, TARGET_GROUP_FIRST + i);
    }
    cluster_map_single(cluster->map, mdts[0], osts, config->ost_count);
    if (cluster->network.ring) {
        cluster->map->signing_key = key_ring_signing(cluster->network.ring).value;
    }
    return cluster_map_add_mdts(cluster->map, mdts + 1, config->mdt_count - 1);
}

/* Of one that has joined and whose end came before its map was written: the manager is asked as at
 * first. */
static int map_ask(struct local_cluster *cluster, char problem[256]) {
    struct config config = cluster->config;
    struct cluster_map *map;
    char detail[512];
    int r = local_join_first(cluster->env, &config, &map, detail);

    if (r < 0) {
        snprintf(problem, 256, "%.255s", detail);
        return r;
    }
    if (memcmp(config.cluster_id, cluster->config.cluster_id, sizeof config.cluster_id) != 0 ||
        config.node != cluster->config.node) {
        snprintf(problem, 256, "%.128s is another cluster than this node's", config.join);
        r = -ERR_OTHER_CLUSTER;
    } else {
        cluster_map_copy(cluster->map, map);
        r = local_map_write(cluster->env, map);
    }
    free(map);
    return r;
}

static_assert((int)MAP_REVOKED_MAX <= (int)KEY_REVOKED_MAX, "a ring holds what a map names");

/* Until its file has the key by which the cluster signs, it takes no capability of other nodes. */
static void signing_follow(struct local_cluster *cluster, const struct cluster_map *map) {
    const struct key_name name = {map->signing_key};
    struct key_ring *ring = cluster->network.ring;
    char line[240];

    if (!ring) {
        return;
    }
    if (key_ring_sign_by(ring, name) && name.value != 0 && !key_ring_has(ring, name)) {
        snprintf(line, sizeof line,
                 "the cluster signs by the members' key %016" PRIx64
                 ", which this node's key file lacks: programs get EACCES here; `shoal key add` "
                 "the newer of both keys to the file of the older, and start this node anew",
                 name.value);
        member_log(cluster, line);
    }
}

/* From here on they let nobody in; who is in by one is cut off at the gate's next tick. */
static void revoked_follow(struct local_cluster *cluster, const struct cluster_map *map) {
    struct key_ring *ring = cluster->network.ring;

    for (uint32_t i = 0; ring && i < map->revoked_count; i++) {
        if (key_ring_revoke(ring, map->revoked[i]) < 0 && cluster->map_failure == 0) {
            member_log(cluster, "the cluster map names other revoked keys than those before it: "
                                "this node cannot hold them all until it is started anew");
            return;
        }
    }
}

static void keys_follow(struct local_cluster *cluster, const struct cluster_map *map) {
    signing_follow(cluster, map);
    if (cluster->network.ring) {
        key_ring_number_set(cluster->network.ring, map->capability_number);
    }
}

/* index is that of local_targets.h. */
static void loss_follow(struct local_cluster *cluster, const struct cluster_map *map,
                        uint32_t index, atomic_bool *is_lost) {
    const struct target_id id = {local_target_id(&cluster->config, index)};
    char name[LOCAL_TARGET_NAME_BYTES];
    char line[240];

    if (atomic_load(is_lost) || !cluster_map_is_lost(map, id)) {
        return;
    }
    atomic_store(is_lost, true);
    log_table_remove(cluster->logs, cluster_map_log_of(map, id));
    local_target_name(index, name);
    snprintf(line, sizeof line,
             "%s is target %" PRIu32 ", which was declared lost (`shoal target lost`): it is not "
             "served and cannot come back; a new DIR joins with new targets",
             name, id.value);
    member_log(cluster, line);
}

/* A target of this node that was declared lost is served no more, whatever it has: its log is no
 * longer found here. Others are called no more. */
static void losses_follow(struct local_cluster *cluster, const struct cluster_map *map) {
    for (uint32_t i = 0; i < map->target_count; i++) {
        rpc_log_lose(cluster->rpcs[RPC_ASKER], cluster_map_lost_log(map, i));
        rpc_log_lose(cluster->rpcs[RPC_GROUP], cluster_map_lost_log(map, i));
    }
    for (uint32_t i = 0; i < cluster->config.mdt_count; i++) {
        loss_follow(cluster, map, TARGET_GROUP_FIRST + i, &cluster->mdt_lost[i]);
    }
    for (uint32_t i = 0; i < cluster->config.ost_count; i++) {
        loss_follow(cluster, map, TARGET_OST_FIRST + i, &cluster->ost_lost[i]);
    }
}

int local_member_map(struct local_cluster *cluster, char problem[256]) {
    cluster->map = calloc(1, sizeof *cluster->map);
    if (!cluster->map) {
        return -ERR_NO_MEMORY;
    }
    int r = local_lives_check(cluster->env, problem);
    if (r < 0) {
        return r;
    }
    r = local_map_read(cluster->env, cluster->map);
    if (r == -ERR_NOT_FOUND && config_is_first(&cluster->config)) {
        r = map_make(cluster);
    } else if (r == -ERR_NOT_FOUND) {
        r = map_ask(cluster, problem);
    } else if (r < 0) {
        snprintf(problem, 256, "%s cannot be read: %s: remove it, and the manager is asked anew",
                 LOCAL_MAP_NAME, err_text(r));
    } else if (memcmp(cluster->map->cluster_id, cluster->config.cluster_id, 16) != 0) {
        snprintf(problem, 256, "%s is another cluster's than %s says", LOCAL_MAP_NAME, CONFIG_NAME);
        r = -ERR_OTHER_CLUSTER;
    } else {
        r = local_twin_check(cluster->env, &cluster->config, cluster->map, problem);
    }
    if (r < 0 || !cluster->links) {
        return r;
    }
    revoked_follow(cluster, cluster->map);
    keys_follow(cluster, cluster->map);
    return links_follow(cluster->links, cluster->map);
}

/* No later map gives it back, so nobody is wronged where a start goes by an older one for a while.
 * What a map gives is used only once it is kept. */
static void map_takes(void *context, const struct cluster_map *map) {
    struct local_cluster *cluster = context;

    revoked_follow(cluster, map);
    losses_follow(cluster, map);
}

/* Once, until it is used or the reason is another one. */
static void map_say(struct local_cluster *cluster, const struct cluster_map *map, bool is_kept,
                    int result) {
    char line[240];

    if (result == cluster->map_failure) {
        return;
    }
    if (result < 0 && is_kept) {
        snprintf(line, sizeof line, "a newer cluster map cannot be used: %s", err_text(result));
    } else if (result < 0) {
        snprintf(line, sizeof line,
                 "cluster map %" PRIu64 " cannot be kept in DIR: %s: what it revokes and who it "
                 "says is lost is gone, nothing else of it holds",
                 map->version,
                 result == -ERR_NO_SPACE ? "its file system is full" : err_text(result));
    } else {
        snprintf(line, sizeof line, "cluster map %" PRIu64 " is kept, and used", map->version);
    }
    cluster->map_failure = result;
    member_log(cluster, line);
}

/* On disk before it is used. */
static int map_came(void *context, const struct cluster_map *map) {
    struct local_cluster *cluster = context;
    int r = local_map_write(cluster->env, map);
    bool is_kept = r == 0;

    if (r == 0) {
        keys_follow(cluster, map);
        r = links_follow(cluster->links, map);
    }
    for (uint32_t i = 0; r == 0 && i < cluster->config.mdt_count; i++) {
        r = group_map_set(cluster->groups[i], map);
    }
    map_say(cluster, map, is_kept, r);
    return r;
}

static_assert((int)CONFIG_OSTS_MAX <= (int)WIRE_SPACES_MAX, "each has its place");

static size_t spaces(void *context, uint8_t *ret_spaces) {
    const struct local_cluster *cluster = context;
    size_t bytes = 0;

    for (uint32_t i = 0; i < cluster->ost_count; i++) {
        struct ost_space space;

        if (cluster->osts[i] && !atomic_load(&cluster->ost_lost[i]) &&
            ost_space_get(cluster->osts[i], &space)) {
            const struct wire_space told = {
                .target = local_target_id(&cluster->config, TARGET_OST_FIRST + i),
                .used_bytes = space.used_bytes,
                .available_bytes = space.available_bytes,
            };

            memcpy(ret_spaces + bytes, &told, sizeof told);
            bytes += sizeof told;
        }
    }
    return bytes;
}

static void keys(void *context, uint64_t ret_names[2]) {
    const struct local_cluster *cluster = context;
    struct key_name names[KEY_FILE_KEYS_MAX];
    uint32_t count = cluster->network.ring ? key_ring_names(cluster->network.ring, names) : 0;

    for (uint32_t i = 0; i < count; i++) {
        ret_names[i] = names[i].value;
    }
}

static_assert((int)KEY_FILE_KEYS_MAX == 2, "as the hook has it");

static uint32_t key_number(void *context) {
    const struct local_cluster *cluster = context;

    return cluster->network.ring ? key_ring_number(cluster->network.ring) : 0;
}

static void tell(void *context, struct call *call) {
    struct local_cluster *cluster = context;
    local_cluster_tell_fn *fn = atomic_load(&cluster->tell);

    if (fn) {
        fn(cluster->tell_context, call);
    } else {
        call_reply(call, -ERR_CLOSED);
    }
}

void local_cluster_on_tell(struct local_cluster *cluster, local_cluster_tell_fn *fn,
                           void *context) {
    if (fn) {
        cluster->tell_context = context;
    }
    atomic_store(&cluster->tell, fn);
}

int local_member_open(struct local_cluster *cluster) {
    const struct config *config = &cluster->config;
    const struct member_options options = {.env = cluster->env,
                                           .rpc = cluster->rpcs[RPC_MEMBER],
                                           .key = {config->node_key[0], config->node_key[1]},
                                           .target_count = config->mdt_count + config->ost_count,
                                           .mdt_count = config->mdt_count,
                                           .address = config_address(config),
                                           .map = cluster->map,
                                           .place = local_lives_place(cluster->env),
                                           .hooks = {.map = map_came,
                                                     .map_takes = map_takes,
                                                     .spaces = spaces,
                                                     .lives = local_lives_tell,
                                                     .registered = local_lives_registered,
                                                     .keys = keys,
                                                     .key_number = key_number,
                                                     .tell = tell,
                                                     .log = member_log,
                                                     .context = cluster}};

    return cluster->links ? member_new(&options, &cluster->member) : 0;
}

void local_member_lose(struct local_cluster *cluster) {
    losses_follow(cluster, cluster->map);
}

void local_member_serve(struct local_cluster *cluster) {
    if (cluster->member) {
        member_ready(cluster->member);
    }
}

void local_member_stop(struct local_cluster *cluster) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    if (cluster->member) {
        member_stop_start(cluster->member, waiting_done, &waiting);
        (void)waiting_end(&waiting, cluster->env);
    }
}

void local_member_close(struct local_cluster *cluster) {
    member_free(TAKE_PTR(cluster->member));
    links_free(TAKE_PTR(cluster->links));
    lanes_free(TAKE_PTR(cluster->lanes));
}

static void question_answered(struct member_question *question) {
    waiting_done(question->context, 0);
}

static void member_answer(struct local_cluster *cluster, struct member_question *question) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    question->done = question_answered;
    question->context = &waiting;
    member_ask(cluster->member, question);
    (void)waiting_end(&waiting, cluster->env);
}

void local_cluster_member(struct local_cluster *cluster, struct cluster_map *map,
                          struct member_state *ret_state) {
    struct member_question question = {.map = map};

    if (map) {
        cluster_map_copy(map, cluster->map);
    }
    if (cluster->member) {
        member_answer(cluster, &question);
    } else {
        question.state = (struct member_state){.node = {cluster->config.node},
                                               .first_target = cluster->config.first_target,
                                               .mdt_count = cluster->config.mdt_count,
                                               .map_version = cluster->map->version};
    }
    if (ret_state) {
        *ret_state = question.state;
    }
}

int local_cluster_follow(struct local_cluster *cluster, uint64_t version, uint64_t end_ns) {
    struct member_question question = {.version = version, .end_ns = end_ns};

    if (!cluster->member) {
        return 0;
    }
    member_answer(cluster, &question);
    if (question.state.map_version >= version) {
        return 0;
    }
    return question.state.map_problem < 0 ? question.state.map_problem : -ERR_TIMED_OUT;
}

bool local_cluster_mdt_is_lost(const struct local_cluster *cluster, uint32_t index) {
    return atomic_load(&cluster->mdt_lost[index]);
}

bool local_cluster_ost_is_lost(const struct local_cluster *cluster, uint32_t index) {
    return atomic_load(&cluster->ost_lost[index]);
}

bool local_cluster_hearing(const struct local_cluster *cluster,
                           struct manager_hearing *ret_hearing) {
    if (cluster->manager) {
        manager_hearing_get(cluster->manager, ret_hearing);
    }
    return cluster->manager != NULL;
}

bool local_cluster_manager_room(const struct local_cluster *cluster,
                                struct manager_room *ret_room) {
    if (cluster->manager) {
        manager_room_get(cluster->manager, ret_room);
    }
    return cluster->manager != NULL;
}

uint32_t local_cluster_map_waits(const struct local_cluster *cluster) {
    return cluster->manager ? manager_map_waits(cluster->manager) : 0;
}

uint64_t local_cluster_joins_gathered(const struct local_cluster *cluster) {
    return cluster->manager ? manager_joins_gathered(cluster->manager) : 0;
}

uint32_t local_cluster_revoked_count(const struct local_cluster *cluster) {
    return cluster->network.ring ? key_ring_revoked_count(cluster->network.ring) : 0;
}

void local_cluster_keys(const struct local_cluster *cluster, struct local_keys *ret_keys) {
    const struct key_ring *ring = cluster->network.ring;

    *ret_keys = (struct local_keys){0};
    if (ring) {
        ret_keys->count = key_ring_names(ring, ret_keys->names);
        ret_keys->signing = key_ring_signing(ring);
        ret_keys->number = key_ring_number(ring);
    }
}

void local_cluster_clock(const struct local_cluster *cluster, struct lane_clock *ret_clock) {
    *ret_clock = (struct lane_clock){0};
    if (cluster->lanes) {
        lanes_clock(cluster->lanes, ret_clock);
    }
}

uint32_t local_cluster_away(const struct local_cluster *cluster, struct lane_away *ret_rows,
                            uint32_t capacity) {
    return cluster->lanes ? lanes_away(cluster->lanes, ret_rows, capacity) : 0;
}
