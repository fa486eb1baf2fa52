/* The cluster map: nodes, targets and their states, groups, slots, chains, pools, in one version.
 *
 * The manager changes it; everybody else holds an immutable copy that is replaced as a whole.
 * In one process it has one group and chains of one member; the fields for more are here. */
#pragma once
#include "base/types.h"
#include "layout/layout.h"

enum {
    MAP_TARGETS_MAX = 1024,
    MAP_GROUPS_MAX = 256,
    MAP_CHAIN_MEMBERS_MAX = 4,
    SLOT_COUNT = 65536
};

enum target_kind { TARGET_MDT = 1, TARGET_OST = 2 };
enum target_state { TARGET_UP = 1, TARGET_DOWN = 2, TARGET_DRAINING = 3 };

struct map_target {
    struct target_id id;
    struct node_id node;
    uint8_t kind;  /* enum target_kind */
    uint8_t state; /* enum target_state */
    uint64_t incarnation;
    uint64_t synced_position; /* last one reported */
    struct log_id log; /* of a storage target; 0: a metadata target, whose groups have some */
};

/* Replicas in order; the version rises with each change of membership. */
struct map_chain {
    uint32_t id;
    uint32_t version;
    uint32_t member_count;
    struct target_id members[MAP_CHAIN_MEMBERS_MAX];
};

struct map_group {
    struct group_id id;
    struct log_id log;
    uint32_t version;
    uint32_t member_count;
    struct target_id members[MAP_CHAIN_MEMBERS_MAX];
};

struct cluster_map {
    uint64_t version;
    uint8_t cluster_id[16];
    uint64_t name_hash_key[2]; /* of the keyed hash that orders names */
    uint32_t target_count;
    uint32_t group_count;
    uint32_t chain_count;
    struct map_target targets[MAP_TARGETS_MAX];
    struct map_group groups[MAP_GROUPS_MAX];
    struct map_chain chains[MAP_TARGETS_MAX];
    uint16_t slot_groups[SLOT_COUNT]; /* index into groups */
    struct pool_version pool;         /* the newest version of the default pool */
};

/* NULL when there is none. */
const struct map_target *cluster_map_target(const struct cluster_map *map, struct target_id id);
const struct map_chain *cluster_map_chain(const struct cluster_map *map, uint32_t chain_id);
const struct map_group *cluster_map_group(const struct cluster_map *map, struct slot slot);

/* The logs of the map in places 0 to count - 1, those of groups first; id 0: none in that place. */
struct map_log {
    struct log_id id;
    uint8_t kind; /* enum target_kind of who serves it */
};
uint32_t cluster_map_log_places(const struct cluster_map *map);
struct map_log cluster_map_log_at(const struct cluster_map *map, uint32_t place);
/* A storage target's log, or that of the first group on a metadata target; 0: none. */
struct log_id cluster_map_log_of(const struct cluster_map *map, struct target_id target);
/* The log that the maker of a cluster gives to a target. */
struct log_id cluster_map_first_log(const struct cluster_map *map, struct target_id target);

/* One group on target `mdt`, one chain a storage target, chain ids = target ids; each has its first
 * log. The cluster's id is there. */
void cluster_map_single(struct cluster_map *map, struct target_id mdt, const struct target_id *osts,
                        uint32_t ost_count);

/* Bytes for the manager's store and for map_get: little-endian, versioned, CRC at the end.
 * encode needs capacity cluster_map_size(map). decode:
 * -ERR_MALFORMED, -ERR_CORRUPT, -ERR_NEWER_FORMAT, -ERR_OLDER_FORMAT; *ret_map is then
 * undefined. */
size_t cluster_map_size(const struct cluster_map *map);
void cluster_map_encode(const struct cluster_map *map, struct buffer *out);
MUST_CHECK int cluster_map_decode(struct bytes data, struct cluster_map *ret_map);
