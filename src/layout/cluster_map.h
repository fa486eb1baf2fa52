/* The cluster map: nodes, targets and their states, groups, slots, chains, pools, in one version.
 *
 * The manager changes it; everybody else holds an immutable copy that is replaced as a whole.
 * Slots are dealt when it is made, and handed over to groups that join. Chains have one member so
 * far; the fields for more are here. */
#pragma once
#include "base/address.h"
#include "base/err.h"
#include "layout/layout.h"

enum {
    MAP_NODES_MAX = 1024,
    MAP_TARGETS_MAX = 1024,
    MAP_GROUPS_MAX = 256,
    MAP_CHAIN_MEMBERS_MAX = 4,
    MAP_POOL_VERSIONS_MAX = 4096,
    MAP_POOL_CHAINS_MAX = 65536, /* of all versions, those that are shared counted once */
    MAP_PLACES_MAX = MAP_GROUPS_MAX + MAP_TARGETS_MAX,
    MAP_REVOKED_MAX = 1024, /* serials of mounts' keys */
    SLOT_COUNT = 65536
};

enum target_kind { TARGET_MDT = 1, TARGET_OST = 2 };
/* TARGET_LOST: for good; nobody asks it anything, and what only it had is lost. */
enum target_state { TARGET_UP = 1, TARGET_DOWN = 2, TARGET_DRAINING = 3, TARGET_LOST = 4 };

/* A process that serves targets. Its key is drawn when its directory is made, so it is known again;
 * its address is what it has told last. Its targets have the ids from first_target on, the metadata
 * targets first, and are in the map once they are formatted. */
struct map_node {
    struct node_id id;
    uint64_t key[2];
    uint32_t first_target;
    uint32_t target_count;
    uint32_t mdt_count;               /* of these */
    char address[ADDRESS_TEXT_BYTES]; /* canonical; empty: none that others could reach */
};

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

/* Pool version i + 1 has these chains of pool_chains, which versions that begin alike share. */
struct map_pool {
    uint32_t first;
    uint32_t count;
};

struct cluster_map {
    uint64_t version;
    uint8_t cluster_id[16];
    uint64_t name_hash_key[2]; /* of the keyed hash that orders names */
    uint32_t node_count;
    uint32_t target_count;
    uint32_t group_count;
    uint32_t chain_count;
    uint32_t pool_count;
    uint32_t pool_chain_count;
    struct map_node nodes[MAP_NODES_MAX];
    struct map_target targets[MAP_TARGETS_MAX];
    struct map_group groups[MAP_GROUPS_MAX];
    struct map_chain chains[MAP_TARGETS_MAX];
    uint16_t slot_groups[SLOT_COUNT];    /* index into groups */
    uint32_t slot_handovers[SLOT_COUNT]; /* number of the hand-over that made it so; 0: none */
    struct map_pool pools[MAP_POOL_VERSIONS_MAX];
    uint32_t pool_chains[MAP_POOL_CHAINS_MAX];
    uint32_t revoked_count;
    uint64_t revoked[MAP_REVOKED_MAX]; /* serials of keys that let nobody in, as they came */
    uint64_t signing_key;              /* name of the members' key that signs; 0: not told */
    uint32_t capability_number;        /* of the keys that sign capabilities; 0: not told, so 1 */
};

/* Rows behind a count, which are most of a map's memory, are left as they are. */
void cluster_map_copy(struct cluster_map *to, const struct cluster_map *from);

/* NULL when there is none. */
const struct map_target *cluster_map_target(const struct cluster_map *map, struct target_id id);
const struct map_chain *cluster_map_chain(const struct cluster_map *map, uint32_t chain_id);
const struct map_node *cluster_map_node(const struct cluster_map *map, struct node_id id);
/* The version of the default pool; 0: the newest. False: this map does not name it. */
bool cluster_map_pool(const struct cluster_map *map, uint32_t version,
                      struct pool_version *ret_pool);
const struct map_group *cluster_map_group(const struct cluster_map *map, struct slot slot);

/* The logs of the map in places 0 to count - 1, those of groups first; id 0: none in that place. A
 * log keeps its place in all versions. */
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

/* One node, whose key is the cluster's id; one group on target `mdt`, one chain a storage target,
 * chain ids = target ids; each has its first log. The cluster's id is there. */
void cluster_map_single(struct cluster_map *map, struct target_id mdt, const struct target_id *osts,
                        uint32_t ost_count);

/* A metadata target of a node, with a group of its own and its first log, and no slots yet.
 * -ERR_NO_SPACE when the map has as many as it may. */
MUST_CHECK int cluster_map_add_mdt(struct cluster_map *map, struct node_id node,
                                   struct target_id mdt);
/* Of a cluster that is being made, besides its first metadata target; slots are dealt anew. */
MUST_CHECK int cluster_map_add_mdts(struct cluster_map *map, const struct target_id *mdts,
                                    uint32_t mdt_count);

/* A storage target of a node, with a chain of its own; its log is given. Not in a pool yet.
 * -ERR_NO_SPACE when the map has as many as it may. */
MUST_CHECK int cluster_map_add_ost(struct cluster_map *map, struct node_id node,
                                   struct target_id ost, struct log_id log);
/* A pool version with these chains besides those of the newest. -ERR_NO_SPACE. */
MUST_CHECK int cluster_map_grow_pool(struct cluster_map *map, const uint32_t *chains,
                                     uint32_t chain_count);

/* The serial is revoked for good. -ERR_INVALID: 0, which none is; -ERR_TOO_MANY_REVOKED. */
MUST_CHECK int cluster_map_revoke(struct cluster_map *map, uint64_t serial);
bool cluster_map_is_revoked(const struct cluster_map *map, uint64_t serial);

/* Bytes for the manager's store and for map_get: little-endian, versioned, CRC at the end.
 * encode needs capacity cluster_map_size(map). decode: -ERR_MALFORMED, -ERR_CORRUPT,
 * -ERR_NEWER_FORMAT, -ERR_OLDER_FORMAT; *ret_map is then undefined. */
size_t cluster_map_size(const struct cluster_map *map);
void cluster_map_encode(const struct cluster_map *map, struct buffer *out);
MUST_CHECK int cluster_map_decode(struct bytes data, struct cluster_map *ret_map);
