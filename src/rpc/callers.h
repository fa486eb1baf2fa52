/* Processes that have lanes at a gate, and how many: known by their life and the key that they have
 * proven, as their lanes are.
 *
 * Thread: the gate's. Memory: the heap, while they have one. */
#pragma once
#include "base/list.h"
#include "keys/identity.h"

#include "rpc/lane.h"

/* Of lanes of one caller, at most: its share, and one that comes while another goes. */
enum { CALLERS_BUCKETS = 1024, CALLER_LANES_MAX = LANE_THREADS_MAX + 1 };

struct caller {
    struct list_node node; /* of its bucket */
    struct list_node peer; /* among those with as many lanes */
    uint64_t life[2];
    struct identity identity;
    struct list lanes; /* the user's nodes, oldest first */
    uint32_t lane_count;
};

struct callers {
    uint32_t count;
    struct list buckets[CALLERS_BUCKETS];
    struct list by_count[CALLER_LANES_MAX + 1];
    uint32_t most; /* nobody has more lanes */
};

void callers_init(struct callers *callers);
/* The one that is there, or a new one, without lanes. NULL: no memory. */
struct caller *callers_get(struct callers *callers, const uint64_t life[2],
                           const struct identity *identity);
/* A lane comes, or goes; with its last one the caller goes. */
void caller_lane_add(struct callers *callers, struct caller *caller, struct list_node *lane);
void caller_lane_remove(struct callers *callers, struct caller *caller, struct list_node *lane);
/* Lanes that each may have where there may be lanes_max in all: its share, and one at least. */
uint32_t callers_share(const struct callers *callers, uint32_t lanes_max);
/* With the most lanes; NULL: there is none. */
struct caller *callers_most(struct callers *callers);
