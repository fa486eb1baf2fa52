/* The contract is in ost_peers.h. */
#include "meta/ost_peers.h"
#include "base/bug.h"
#include "layout/map_lost.h"
#include "meta/group_internal.h"
#include <assert.h>
#include <stdlib.h>

int ost_peers_init(struct ost_peers *peers) {
    peers->table = calloc(OST_PEERS_MAX, sizeof *peers->table);
    peers->known = calloc(OST_PEERS_MAX, sizeof(struct ost_peer *));
    return peers->table && peers->known ? 0 : -ERR_NO_MEMORY;
}

void ost_peers_deinit(struct ost_peers *peers) {
    for (uint32_t i = 0; i < peers->count; i++) {
        free(peers->known[i]->sync);
    }
    free(peers->table);
    free(peers->known);
    *peers = (struct ost_peers){0};
}

/* The table is never full: it has twice as many places as a map may have targets. */
struct ost_peer *ost_peer_get(struct ost_peers *peers, struct log_id log) {
    assert(log.value != 0);
    for (uint64_t i = log.value;; i++) {
        struct ost_peer *peer = &peers->table[i % OST_PEERS_MAX];

        assert(i - log.value < OST_PEERS_MAX);
        if (peer->log.value == 0) {
            peer->log = log;
            peer->index = (uint32_t)(i % OST_PEERS_MAX);
            peers->known[peers->count++] = peer;
        }
        if (peer->log.value == log.value) {
            return peer;
        }
    }
}

void ost_peer_asked(struct group *group, struct ost_peer *peer) {
    peer->out_count++;
    if (peer->owes_ns == 0) {
        peer->owes_ns = MAX(group->now_ns, UINT64_C(1));
    }
}

/* Of one that is lost nobody waits for anything. */
static bool is_answer(int result) {
    return result == 0 || result == -ERR_STALE_TERM || result == -ERR_TARGET_LOST;
}

void ost_peer_answered(struct group *group, struct ost_peer *peer, int result) {
    assert(peer->out_count > 0 && peer->owes_ns > 0);
    peer->out_count--;
    if (!is_answer(result)) {
        return;
    }
    peer->owes_ns = peer->out_count > 0 ? MAX(group->now_ns, UINT64_C(1)) : 0;
    if (peer->away) {
        peer->away = false;
        peer->returned = true;
        group->ost_peers.news = true;
        group->moved = true;
    }
}

bool ost_peer_is_away(const struct ost_peer *peer) {
    return peer->away && !BUG(AWAY_WAITS);
}

void ost_peers_tick(struct group *group) {
    struct ost_peers *peers = &group->ost_peers;

    for (uint32_t i = 0; i < peers->count; i++) {
        struct ost_peer *peer = peers->known[i];

        assert(peer->owes_ns > 0 || !peer->away);
        peer->away = peer->owes_ns > 0 && group->now_ns - peer->owes_ns >= OST_AWAY_NS;
    }
}

const struct map_target *ost_of(const struct group *group, const struct layout *layout,
                                const struct pool_version *pool, uint32_t i) {
    uint32_t chain_id = layout_chain_at(layout, pool, i);
    const struct map_chain *chain = cluster_map_chain(group->map, chain_id);

    if (!chain || (cluster_map_chain_is_lost(group->map, chain_id) && !BUG(LOST_WAITS))) {
        return NULL;
    }
    return cluster_map_target(group->map, chain->members[0]);
}

bool ost_peers_hold(struct group *group, const struct layout *layout) {
    struct pool_version pool;
    bool named = cluster_map_pool(group->map, layout->pool_version, &pool);
    uint32_t width = named ? layout_width(layout, &pool) : 0;

    for (uint32_t i = 0; i < width; i++) {
        const struct map_target *target = ost_of(group, layout, &pool, i);

        if (target && ost_peer_is_away(ost_peer_get(&group->ost_peers, target->log))) {
            return true;
        }
    }
    return false;
}
