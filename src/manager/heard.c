/* Whom the manager hears: it must not take a cut of its own link for the silence of everybody.
 *
 *     heard fewer than half of the members --> HOLDS: nobody is evicted for silence
 *     heard half of them for a whole session timeout without a break --> they are again
 *
 * A member is a node that has come back with its targets (map_lost.h); the manager's own node is
 * the first one, and counts as heard. A node speaks each second (node_join). It is heard while it
 * has spoken within a third of the session timeout: much longer than a second, and so short that a
 * cut is noticed before it has made the first client, which renews each 2 s, silent for too long.
 *
 * Those that are heard stand in a list, who has spoken last at its end, so that a message and a
 * tick cost nothing that grows with the number of nodes. Keys lead to nodes by a hash table with
 * open addressing. Nodes keep their places in all versions of the map, and none ever goes. */
#include "manager/heard.h"
#include "base/bug.h"
#include "layout/map_lost.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HASH_PLACES = 2 * MAP_NODES_MAX, HEARD_PARTS = 3 };
/* From a node's question for its numbers until its targets are formatted and told. A start takes
 * seconds; one that was cut short is begun anew by hand. */
#define COMING_NS (300 * NS_PER_S)
static_assert((HASH_PLACES & (HASH_PLACES - 1)) == 0 && MAP_NODES_MAX < UINT16_MAX, "places");

/* A node of the map. */
struct heard_node {
    struct list_node node; /* in heard, while it is */
    uint64_t heard_ns;
    uint64_t asked_ns; /* without targets in the map; by the manager's time of listening */
    bool has_targets;
    bool is_member;
};

struct manager_heard {
    struct heard_node nodes[MAP_NODES_MAX]; /* in the map's order */
    uint32_t node_count;
    uint16_t places[HASH_PLACES]; /* 0: free; else one more than the node's index */
    struct list heard; /* of members, but for the manager's own; the longest silent first */
    uint32_t member_count;
    uint32_t heard_count; /* with its own */
    uint64_t period_ns;
    bool holds;
    uint64_t holds_until_ns;
    /* For other threads. */
    _Atomic uint32_t told_members, told_heard;
    atomic_bool told_holds;
    _Atomic uint64_t silent_evicted, silent_held;
};

int manager_heard_new(struct manager *manager) {
    struct manager_heard *heard = calloc(1, sizeof *heard);

    if (!heard) {
        return -ERR_NO_MEMORY;
    }
    list_init(&heard->heard);
    heard->period_ns = manager->options.session_timeout_ns / HEARD_PARTS;
    manager->heard = heard;
    return 0;
}

void manager_heard_free(struct manager *manager) {
    free(TAKE_PTR(manager->heard));
}

/* Keys are drawn at random. */
static uint32_t place_first(uint64_t high, uint64_t low) {
    return (uint32_t)((high ^ low) % HASH_PLACES);
}

/* The place that names the node with this key, or the free one where it would be named. */
static uint16_t *place_of(struct manager *manager, uint64_t high, uint64_t low) {
    struct manager_heard *heard = manager->heard;
    uint32_t at = place_first(high, low);

    while (heard->places[at] != 0) {
        const struct map_node *node = &manager->map->nodes[heard->places[at] - 1];

        if (node->key[0] == high && node->key[1] == low) {
            break;
        }
        at = (at + 1) % HASH_PLACES;
    }
    return &heard->places[at];
}

const struct map_node *manager_heard_node(struct manager *manager, uint64_t high, uint64_t low) {
    uint16_t place = *place_of(manager, high, low);

    return place != 0 ? &manager->map->nodes[place - 1] : NULL;
}

static struct heard_node *heard_of(const struct manager *manager, const struct map_node *node) {
    return &manager->heard->nodes[node - manager->map->nodes];
}

static void node_leave(struct manager *manager, const struct map_node *node) {
    struct manager_heard *heard = manager->heard;
    struct heard_node *one = heard_of(manager, node);

    one->is_member = false;
    heard->member_count--;
    heard->heard_count -= list_contains(&one->node);
    list_remove(&one->node);
}

/* A node that has numbers, and never came back with targets or an address, is nobody. */
static void node_look(struct manager *manager, const struct map_node *node) {
    struct manager_heard *heard = manager->heard;
    struct heard_node *one = heard_of(manager, node);

    one->has_targets = one->has_targets || manager_node_has_targets(manager->map, node);
    if (!cluster_map_node_is_member(manager->map, node)) {
        return;
    }
    one->is_member = true;
    one->heard_ns = env_now_ns(manager->env);
    heard->member_count++;
    heard->heard_count++;
    if (node != manager->map->nodes) {
        list_push_back(&heard->heard, &one->node);
    }
}

void manager_heard_map(struct manager *manager) {
    const struct cluster_map *map = manager->map;
    struct manager_heard *heard = manager->heard;

    for (uint32_t i = heard->node_count; i < map->node_count; i++) {
        uint16_t *place = place_of(manager, map->nodes[i].key[0], map->nodes[i].key[1]);

        if (*place == 0) {
            *place = (uint16_t)(i + 1);
        }
        heard->nodes[i].asked_ns = manager_listening_ns(manager);
    }
    heard->node_count = map->node_count;
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (!heard->nodes[i].is_member) {
            node_look(manager, &map->nodes[i]);
        } else if (!cluster_map_node_is_member(map, &map->nodes[i])) {
            node_leave(manager, &map->nodes[i]);
        }
    }
}

bool manager_heard_has_targets(const struct manager *manager, const struct map_node *node) {
    return heard_of(manager, node)->has_targets;
}

bool manager_heard_is_member(const struct manager *manager, const struct map_node *node) {
    return heard_of(manager, node)->is_member;
}

bool manager_heard_is_coming(const struct manager *manager, const struct map_node *node) {
    const struct heard_node *one = heard_of(manager, node);

    return !one->has_targets && manager_listening_ns(manager) < one->asked_ns + COMING_NS;
}

bool manager_heard_is(const struct manager *manager, struct node_id id) {
    const struct map_node *node = cluster_map_node(manager->map, id);

    return node && (node == manager->map->nodes || list_contains(&heard_of(manager, node)->node));
}

void manager_heard_note(struct manager *manager, const struct map_node *node) {
    struct manager_heard *heard = manager->heard;
    struct heard_node *one = heard_of(manager, node);

    one->asked_ns = manager_listening_ns(manager);
    if (!one->is_member || node == manager->map->nodes) {
        return;
    }
    heard->heard_count += !list_contains(&one->node);
    list_remove(&one->node);
    list_push_back(&heard->heard, &one->node);
    one->heard_ns = env_now_ns(manager->env);
}

void manager_heard_forgive(struct manager *manager, uint64_t gap_ns, uint64_t now_ns) {
    struct list *list = &manager->heard->heard;

    if (manager->heard->holds) {
        manager->heard->holds_until_ns += gap_ns;
    }
    for (struct list_node *node = list_first(list); node; node = list_next(list, node)) {
        struct heard_node *one = CONTAINER_OF(node, struct heard_node, node);

        one->heard_ns = MIN(one->heard_ns + gap_ns, now_ns);
    }
}

static void silent_leave(struct manager_heard *heard, uint64_t now_ns) {
    struct list_node *node;

    while ((node = list_first(&heard->heard)) &&
           now_ns - CONTAINER_OF(node, struct heard_node, node)->heard_ns > heard->period_ns) {
        list_remove(node);
        heard->heard_count--;
    }
}

static void say(const struct manager *manager, const char *line) {
    if (manager->options.log) {
        manager->options.log(manager->options.log_context, line);
    }
}

static void holds_say(const struct manager *manager) {
    const struct manager_heard *heard = manager->heard;
    char line[240];

    if (heard->holds) {
        snprintf(line, sizeof line,
                 "the manager hears %" PRIu32 " of %" PRIu32
                 " nodes: no client is evicted for its silence until it hears half of them again; "
                 "see to this node's network, or start the others",
                 heard->heard_count, heard->member_count);
    } else {
        snprintf(line, sizeof line,
                 "the manager hears %" PRIu32 " of %" PRIu32
                 " nodes: clients are evicted for their silence again",
                 heard->heard_count, heard->member_count);
    }
    say(manager, line);
}

static void holds_tell(struct manager_heard *heard) {
    atomic_store_explicit(&heard->told_members, heard->member_count, memory_order_relaxed);
    atomic_store_explicit(&heard->told_heard, heard->heard_count, memory_order_relaxed);
    atomic_store_explicit(&heard->told_holds, heard->holds, memory_order_relaxed);
}

/* Who was not heard because of the cut has a whole timeout to be heard again. */
bool manager_heard_holds(struct manager *manager, uint64_t now_ns) {
    struct manager_heard *heard = manager->heard;
    bool held = heard->holds;

    silent_leave(heard, now_ns);
    if (2 * heard->heard_count < heard->member_count) {
        heard->holds = true;
        heard->holds_until_ns = now_ns + manager->options.session_timeout_ns;
    } else if (now_ns >= heard->holds_until_ns) {
        heard->holds = false;
    }
    if (heard->holds != held) {
        holds_say(manager);
    }
    holds_tell(heard);
    return heard->holds && !BUG(DEAF_EVICTION);
}

void manager_heard_evicted(struct manager *manager) {
    atomic_fetch_add_explicit(&manager->heard->silent_evicted, 1, memory_order_relaxed);
}

void manager_heard_held(struct manager *manager) {
    atomic_fetch_add_explicit(&manager->heard->silent_held, 1, memory_order_relaxed);
}

void manager_hearing_get(const struct manager *manager, struct manager_hearing *ret_hearing) {
    const struct manager_heard *heard = manager->heard;

    *ret_hearing = (struct manager_hearing){
        .nodes = atomic_load_explicit(&heard->told_members, memory_order_relaxed),
        .nodes_heard = atomic_load_explicit(&heard->told_heard, memory_order_relaxed),
        .holds = atomic_load_explicit(&heard->told_holds, memory_order_relaxed),
        .silent_evicted = atomic_load_explicit(&heard->silent_evicted, memory_order_relaxed),
        .silent_held = atomic_load_explicit(&heard->silent_held, memory_order_relaxed),
    };
}
