/* Where the logs of a cluster are called: one peer of the lanes for each other node of the map, at
 * the address that the map has of it, and a route to it for each of its logs.
 *
 * The addresses given by hand are those of any nodes: what has no route goes to the first of them
 * that answers, which is all there is before there is a map. The manager is on the first node. That
 * one may be among them, so it is also looked for there.
 *
 * Thread: any; who follows a map while another does waits for that. Memory: 8 bytes a node, besides
 * what lanes take. */
#pragma once
#include "layout/cluster_map.h"
#include "rpc/lane.h"

struct links;

struct links_options {
    struct lanes *lanes;           /* ends after the links */
    struct node_id self;           /* its own logs are not called by lanes; 0: it has none */
    const struct address *by_hand; /* copied */
    uint32_t by_hand_count;        /* up to LANE_ADDRESSES_MAX - 1 */
    const char *by_hand_name;      /* what lines call who is there */
    bool has_key;                  /* the lanes have; else only sockets by hand can be called */
};

/* -ERR_INVALID, -ERR_NO_MEMORY, and those of lanes_peer_add. With addresses by hand, whatever has
 * no route goes there. */
MUST_CHECK int links_new(const struct links_options *options, struct links **ret_links);
/* Takes NULL. */
void links_free(struct links *links);
/* Goes by this map, unless it has followed it or a newer one already. What could be done was, also
 * where an error is answered; then the same map may be followed once more: -ERR_NO_MEMORY,
 * -ERR_TOO_MANY_OPEN. */
MUST_CHECK int links_follow(struct links *links, const struct cluster_map *map);
/* Why a call of a cluster that is not known yet fails at each of the addresses by hand; or, once a
 * map is there, why the manager's node refuses. 0: none has said so (lanes_peer_refusal). */
int links_refusal(struct links *links);
