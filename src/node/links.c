/* The contract is in links.h. */
#include "node/links.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link_node {
    uint32_t node;
    uint32_t peer;
};

struct links {
    struct lanes *lanes;
    struct node_id self;
    struct address by_hand[LANE_ADDRESSES_MAX];
    uint32_t by_hand_count;
    bool has_key;
    uint32_t by_hand_peer; /* LANE_PEERS_MAX: none */
    atomic_flag busy;      /* somebody reads a map, which takes less than a millisecond */
    uint64_t version;      /* of the map that it goes by */
    uint64_t tried;        /* the newest, which may have been followed in part */
    uint32_t node_count;
    struct link_node nodes[MAP_NODES_MAX]; /* in the order in which they were met */
};

int links_new(const struct links_options *options, struct links **ret_links) {
    struct links *links = calloc(1, sizeof *links);
    int r = options->by_hand_count < LANE_ADDRESSES_MAX ? 0 : -ERR_INVALID;

    if (!links) {
        return -ERR_NO_MEMORY;
    }
    atomic_flag_clear(&links->busy);
    links->lanes = options->lanes;
    links->self = options->self;
    links->has_key = options->has_key;
    links->by_hand_peer = LANE_PEERS_MAX;
    if (r == 0 && options->by_hand_count > 0) {
        memcpy(links->by_hand, options->by_hand, options->by_hand_count * sizeof *links->by_hand);
        links->by_hand_count = options->by_hand_count;
        r = lanes_peer_add(links->lanes, links->by_hand, links->by_hand_count,
                           options->by_hand_name, &links->by_hand_peer);
    }
    if (r < 0) {
        links_free(links);
        return r;
    }
    if (links->by_hand_count > 0) {
        lanes_set_default(links->lanes, links->by_hand_peer);
    }
    *ret_links = links;
    return 0;
}

void links_free(struct links *links) {
    free(links);
}

/* The address that the map has; then, of the first node, those by hand. */
static uint32_t addresses_of(const struct links *links, const struct map_node *node,
                             struct address ret_addresses[LANE_ADDRESSES_MAX]) {
    uint32_t count = 0;

    if (links->has_key && node->address[0] &&
        address_parse(node->address, &ret_addresses[0]) == 0) {
        count = 1;
    }
    for (uint32_t i = 0; node->id.value == 1 && i < links->by_hand_count; i++) {
        if (count == 0 || !address_is(&ret_addresses[0], &links->by_hand[i])) {
            ret_addresses[count++] = links->by_hand[i];
        }
    }
    return count;
}

static struct link_node *node_find(struct links *links, uint32_t index, uint32_t node) {
    /* A map keeps its nodes in order, so nearly always it is this one. */
    if (index < links->node_count && links->nodes[index].node == node) {
        return &links->nodes[index];
    }
    for (uint32_t i = 0; i < links->node_count; i++) {
        if (links->nodes[i].node == node) {
            return &links->nodes[i];
        }
    }
    return NULL;
}

static int node_follow(struct links *links, uint32_t index, const struct map_node *node) {
    struct link_node *known = node_find(links, index, node->id.value);
    struct address addresses[LANE_ADDRESSES_MAX];
    uint32_t count = addresses_of(links, node, addresses);
    char name[LANE_NAME_BYTES];

    if (known) {
        int r = lanes_peer_move(links->lanes, known->peer, addresses, count);

        return r < 0 ? r : lanes_route(links->lanes, log_of_node(node->id), known->peer);
    }
    if (links->node_count == MAP_NODES_MAX) {
        return -ERR_TOO_MANY_OPEN;
    }
    known = &links->nodes[links->node_count];
    known->node = node->id.value;
    snprintf(name, sizeof name, "node %u", node->id.value);
    int r = lanes_peer_add(links->lanes, addresses, count, name, &known->peer);
    if (r < 0) {
        return r;
    }
    lanes_peer_is(links->lanes, known->peer, node->id);
    links->node_count++;
    return lanes_route(links->lanes, log_of_node(node->id), known->peer);
}

static int route(struct links *links, struct node_id node, struct log_id log) {
    const struct link_node *known = node_find(links, 0, node.value);

    return known && log.value != 0 ? lanes_route(links->lanes, log, known->peer) : 0;
}

static int routes_follow(struct links *links, const struct cluster_map *map) {
    int r = 0;

    for (uint32_t i = 0; i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];

        if (target->node.value != links->self.value) {
            int one = route(links, target->node, cluster_map_log_of(map, target->id));

            r = r < 0 ? r : one;
        }
    }
    if (links->self.value != 1) {
        int one = route(links, (struct node_id){1}, LOG_MANAGER);

        r = r < 0 ? r : one;
    }
    return r;
}

static int follow(struct links *links, const struct cluster_map *map) {
    int r = 0;

    for (uint32_t i = 0; i < map->node_count; i++) {
        if (map->nodes[i].id.value != links->self.value) {
            int one = node_follow(links, i, &map->nodes[i]);

            r = r < 0 ? r : one;
        }
    }
    int one = routes_follow(links, map);
    return r < 0 ? r : one;
}

int links_follow(struct links *links, const struct cluster_map *map) {
    int r = 0;

    while (atomic_flag_test_and_set_explicit(&links->busy, memory_order_acquire)) {
    }
    if (map->version > links->version && map->version >= links->tried) {
        links->tried = map->version;
        r = follow(links, map);
        if (r == 0) {
            links->version = map->version;
        }
    }
    atomic_flag_clear_explicit(&links->busy, memory_order_release);
    return r;
}

int links_refusal(struct links *links) {
    const struct link_node *first;
    uint32_t peer;

    while (atomic_flag_test_and_set_explicit(&links->busy, memory_order_acquire)) {
    }
    first = node_find(links, 0, 1);
    peer = first ? first->peer : links->by_hand_peer;
    atomic_flag_clear_explicit(&links->busy, memory_order_release);
    return peer < LANE_PEERS_MAX ? lanes_peer_refusal(links->lanes, peer) : 0;
}
