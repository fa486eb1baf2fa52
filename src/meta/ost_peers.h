/* The OSTs that a group calls: which of them answer, and what they have done for its orders.
 *
 * One that owes an answer for OST_AWAY_NS is away, whatever holds it up, until it answers
 * something: the queue asks it for that with each sync call (order_syncs.c). What needs it is put
 * off meanwhile, so that it takes no place from what does not.
 *
 * Thread: the group's step.  Memory: the table, taken at start; a call for each OST that is to
 * sync, taken then. */
#pragma once
#include "layout/cluster_map.h"

enum { OST_PEERS_MAX = 2 * MAP_TARGETS_MAX };
#define OST_AWAY_NS (2 * NS_PER_S)

struct group;
struct order_sync;

/* The OST of a log, whatever the map says of it. */
struct ost_peer {
    struct log_id log; /* 0: nobody's */
    uint32_t index;    /* in the table */
    uint32_t out_count;
    uint64_t owes_ns; /* since when it has answered nothing that it was asked; 0: it owes nothing */
    bool away;
    bool returned; /* orders that were put aside for it have not been looked at since */

    /* Of orders: */
    uint64_t position;
    uint64_t term; /* in which it has done what it has; 0: nothing yet */
    bool dirty;    /* it has done something since its last sync was asked for */
    struct order_sync *sync;
    uint64_t synced_number; /* orders with this number or a lower one are on its disk */
};

struct ost_peers {
    struct ost_peer *table; /* OST_PEERS_MAX, a hash table by log; none is ever removed */
    struct ost_peer **known;
    uint32_t count;
    bool news; /* one has returned */
};

MUST_CHECK int ost_peers_init(struct ost_peers *peers);
void ost_peers_deinit(struct ost_peers *peers);
struct ost_peer *ost_peer_get(struct ost_peers *peers, struct log_id log);
/* A call to it leaves; and it is over, with an answer or without. */
void ost_peer_asked(struct group *group, struct ost_peer *peer);
void ost_peer_answered(struct group *group, struct ost_peer *peer, int result);
bool ost_peer_is_away(const struct ost_peer *peer);
/* Finds who is away. */
void ost_peers_tick(struct group *group);
/* The OST at the head of the layout's i-th chain. NULL when the map has none any more, or it is
 * lost, which counts as done. */
const struct map_target *ost_of(const struct group *group, const struct layout *layout,
                                const struct pool_version *pool, uint32_t i);
/* Whether an OST of the layout is away. */
bool ost_peers_hold(struct group *group, const struct layout *layout);
