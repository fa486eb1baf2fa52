/* Look-ups in the newest map, and the going of older ones. */
#include "client/router.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int router_init(struct router *router) {
    router->peers = calloc(ROUTER_PEERS_MAX, sizeof *router->peers);
    return router->peers ? 0 : -ERR_NO_MEMORY;
}

void router_deinit(struct router *router) {
    for (uint32_t i = 0; i < router->retired_count; i++) {
        free(router->retired[i].map);
    }
    free((void *)(uintptr_t)atomic_load(&router->newest));
    for (uint32_t i = 0; i < router->peer_count; i++) {
        ledger_deinit(&router->peers[i].ledger);
        free(router->peers[i].reopenings);
    }
    free(router->peers);
    *router = (struct router){.peers = NULL};
}

/* The second look at the epoch: one that moved between the first and our count would not wait for
 * us the next time it moves. */
uint32_t router_enter(struct router *router, struct router_readers *readers) {
    for (;;) {
        uint32_t epoch = atomic_load(&router->epoch);

        atomic_fetch_add(&readers->counts[epoch & 1], 1);
        if (atomic_load(&router->epoch) == epoch) {
            return epoch & 1;
        }
        atomic_fetch_sub(&readers->counts[epoch & 1], 1);
    }
}

void router_leave(struct router_readers *readers, uint32_t parity) {
    uint32_t before = atomic_fetch_sub_explicit(&readers->counts[parity], 1, memory_order_release);

    assert(before > 0);
    (void)before;
}

bool router_is_read(const struct router_readers *readers) {
    return atomic_load_explicit(&readers->counts[0], memory_order_relaxed) > 0 ||
           atomic_load_explicit(&readers->counts[1], memory_order_relaxed) > 0;
}

static bool router_is_drained(struct router *router, uint32_t parity) {
    for (uint32_t i = 0; i < router->readers_count; i++) {
        if (atomic_load(&router->readers(router->readers_context, i)->counts[parity]) != 0) {
            return false;
        }
    }
    return true;
}

/* What was retired in epoch e may be seen by requests of e and before; those before had ended when
 * e began. So it goes when those of e have ended as well, which is when e + 2 begins. */
void router_reclaim(struct router *router) {
    uint32_t kept = 0;
    uint32_t epoch = atomic_load(&router->epoch);

    if (router->retired_count == 0 || !router_is_drained(router, (epoch + 1) & 1)) {
        return;
    }
    atomic_store(&router->epoch, epoch + 1);
    for (uint32_t i = 0; i < router->retired_count; i++) {
        assert(router->retired[i].epoch <= epoch);
        if (epoch + 1 - router->retired[i].epoch >= 2) {
            free(router->retired[i].map);
        } else {
            router->retired[kept++] = router->retired[i];
        }
    }
    router->retired_count = kept;
}

struct route_map *router_map_new(void) {
    struct route_map *map = malloc(sizeof *map);

    /* The map itself, most of it, is written by who takes it. */
    if (map) {
        memset(map->peers, 0, sizeof map->peers);
        memset(map->group_peers, 0, sizeof map->group_peers);
        memset(map->chains, 0, sizeof map->chains);
    }
    return map;
}

void router_map_free(struct route_map *map) {
    free(map);
}

struct peer *router_peer(const struct router *router, struct log_id log) {
    for (uint32_t i = 0; i < router->peer_count; i++) {
        if (router->peers[i].log.value == log.value) {
            return &router->peers[i];
        }
    }
    return NULL;
}

static int router_peer_add(struct router *router, struct map_log log) {
    struct peer *peer;

    if (log.id.value == 0 || router_peer(router, log.id)) {
        return 0;
    }
    if (router->peer_count == ROUTER_PEERS_MAX) {
        return -ERR_MALFORMED;
    }
    peer = &router->peers[router->peer_count];
    *peer = (struct peer){.log = log.id, .kind = log.kind};
    list_init(&peer->stalled);
    int r = ledger_init(&peer->ledger, &router->losses);
    router->peer_count += r == 0 ? 1 : 0;
    return r;
}

static uint32_t chain_bucket(uint32_t chain) {
    return (chain * 2654435761U) >> 20; /* Fibonacci hashing down to 12 bits */
}

static int route_chains(struct router *router, struct route_map *map) {
    for (uint32_t i = 0; i < map->map.chain_count; i++) {
        const struct map_chain *chain = &map->map.chains[i];
        const struct map_target *head =
            chain->member_count > 0 ? cluster_map_target(&map->map, chain->members[0]) : NULL;
        struct peer *peer = head ? router_peer(router, head->log) : NULL;
        uint32_t bucket = chain_bucket(chain->id);

        if (!peer) {
            return -ERR_MALFORMED;
        }
        while (map->chains[bucket].peer) {
            bucket = (bucket + 1) % ROUTER_CHAIN_BUCKETS;
        }
        map->chains[bucket].chain = chain->id;
        map->chains[bucket].peer = peer;
    }
    return 0;
}

static int route_groups(struct router *router, struct route_map *map) {
    for (uint32_t i = 0; i < map->map.group_count; i++) {
        map->group_peers[i] = router_peer(router, map->map.groups[i].log);
        if (!map->group_peers[i]) {
            return -ERR_MALFORMED;
        }
    }
    return 0;
}

int router_install(struct router *router, struct route_map *map) {
    struct route_map *old = (struct route_map *)(uintptr_t)atomic_load(&router->newest);
    int r = 0;

    _Static_assert((int)ROUTER_CHAIN_BUCKETS > (int)MAP_TARGETS_MAX,
                   "a chain always finds a bucket");
    router_reclaim(router);
    if (router->retired_count == ROUTER_RETIRED_MAX) {
        return -ERR_BUSY;
    }
    for (uint32_t i = 0; i < cluster_map_log_places(&map->map) && r == 0; i++) {
        struct map_log log = cluster_map_log_at(&map->map, i);

        r = router_peer_add(router, log);
        map->peers[i] = router_peer(router, log.id);
    }
    r = r ? r : route_groups(router, map);
    r = r ? r : route_chains(router, map);
    if (r) {
        return r;
    }
    atomic_store(&router->newest, map);
    if (old) {
        router->retired[router->retired_count].map = old;
        router->retired[router->retired_count].epoch = atomic_load(&router->epoch);
        router->retired_count++;
    }
    return 0;
}

static const struct route_map *router_newest(const struct router *router) {
    return atomic_load_explicit(&router->newest, memory_order_acquire);
}

const struct cluster_map *router_map(const struct router *router) {
    const struct route_map *map = router_newest(router);

    return map ? &map->map : NULL;
}

int router_slot(const struct router *router, struct slot slot, struct peer **ret_peer) {
    const struct route_map *map = router_newest(router);
    uint16_t group = map->map.slot_groups[slot.value];

    if (group >= map->map.group_count) {
        return -ERR_STALE_MAP;
    }
    *ret_peer = map->group_peers[group];
    return 0;
}

int router_chain(const struct router *router, uint32_t chain, struct peer **ret_peer) {
    const struct route_map *map = router_newest(router);
    uint32_t bucket = chain_bucket(chain);

    while (map->chains[bucket].peer && map->chains[bucket].chain != chain) {
        bucket = (bucket + 1) % ROUTER_CHAIN_BUCKETS;
    }
    if (!map->chains[bucket].peer) {
        return -ERR_STALE_MAP;
    }
    *ret_peer = map->chains[bucket].peer;
    return 0;
}

int router_chunk(const struct router *router, const struct layout *layout, uint64_t chunk,
                 uint32_t *ret_chain) {
    struct pool_version pool;

    if (!cluster_map_pool(&router_newest(router)->map, layout->pool_version, &pool) ||
        layout->pool_version == 0 || pool.chain_count == 0) {
        return -ERR_STALE_MAP;
    }
    *ret_chain = layout_chain(layout, &pool, chunk);
    return 0;
}

struct peer *router_place(const struct router *router, uint32_t place) {
    const struct route_map *map = router_newest(router);

    return place < cluster_map_log_places(&map->map) ? map->peers[place] : NULL;
}
