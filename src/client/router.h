/* Where a call goes: slot -> group -> log, chunk -> chain -> log, by the newest map.
 *
 * A map is immutable and replaced as a whole. A request is counted from its start to its end in one
 * of two epochs, so a map that was replaced goes when every request that may have seen it has ended
 * (epoch-based reclamation, Fraser 2004).
 *
 * Thread: lookups and enter/leave from any; install and reclaim from the session's step. */
#pragma once
#include "client/peer.h"
#include "layout/cluster_map.h"

enum {
    ROUTER_CHAIN_BUCKETS = 4096,
    ROUTER_RETIRED_MAX = 16,
    ROUTER_PEERS_MAX = MAP_TARGETS_MAX + MAP_GROUPS_MAX
};

/* A map with its names looked up. */
struct route_map {
    struct cluster_map map;
    struct peer *peers[ROUTER_PEERS_MAX]; /* by the map's places of logs; NULL: none there */
    struct peer *group_peers[MAP_GROUPS_MAX];
    struct {
        uint32_t chain;
        struct peer *peer; /* NULL: empty */
    } chains[ROUTER_CHAIN_BUCKETS];
};

/* Requests at work, by the epoch they began in; one a shard, so that threads don't share lines. */
struct router_readers {
    _Atomic uint32_t counts[2];
};

struct router {
    _Atomic(const struct route_map *) newest;
    _Atomic uint32_t epoch;
    struct router_readers *(*readers)(void *context, uint32_t index);
    void *readers_context;
    uint32_t readers_count;
    uint32_t retired_count;
    struct {
        struct route_map *map;
        uint32_t epoch;
    } retired[ROUTER_RETIRED_MAX];
    _Atomic uint64_t losses; /* starts of servers that have lost something of ours */
    struct peer *peers;      /* ROUTER_PEERS_MAX of them; never removed */
    uint32_t peer_count;
};

MUST_CHECK int router_init(struct router *router);
void router_deinit(struct router *router);

uint32_t router_enter(struct router *router, struct router_readers *readers);
void router_leave(struct router_readers *readers, uint32_t parity);
bool router_is_read(const struct router_readers *readers);

/* Takes over a map that was allocated by router_map_new; -ERR_MALFORMED when it names what it does
 * not have, -ERR_BUSY when too many older ones are still in use: the map is the caller's then. */
struct route_map *router_map_new(void);
void router_map_free(struct route_map *map);
MUST_CHECK int router_install(struct router *router, struct route_map *map);
/* Frees maps that nobody can see any more. */
void router_reclaim(struct router *router);

/* NULL before the first map. */
const struct cluster_map *router_map(const struct router *router);
/* -ERR_STALE_MAP when the map does not tell. */
MUST_CHECK int router_slot(const struct router *router, struct slot slot, struct peer **ret_peer);
MUST_CHECK int router_chain(const struct router *router, uint32_t chain, struct peer **ret_peer);
/* The chain of a chunk; -ERR_STALE_MAP for a pool version that the map does not have. */
MUST_CHECK int router_chunk(const struct router *router, const struct layout *layout,
                            uint64_t chunk, uint32_t *ret_chain);
/* The peers of the map, by its places of logs; NULL where there is none, and beyond the last. */
struct peer *router_place(const struct router *router, uint32_t place);
/* By the session: NULL when there is none of that log. */
struct peer *router_peer(const struct router *router, struct log_id log);
