/* Processes that have lanes at a gate, and how many: known by their life and the key that they have
 * proven, as their lanes are.
 *
 * Thread: the gate's. Memory: the heap, while they have one. */
#pragma once
#include "base/list.h"
#include "keys/identity.h"

enum { CALLERS_BUCKETS = 1024 };

struct caller {
    struct list_node node; /* of its bucket */
    uint64_t life[2];
    struct identity identity;
    uint32_t lane_count; /* the user's; at 0 callers_put lets it go */
};

struct callers {
    uint32_t count;
    struct list buckets[CALLERS_BUCKETS];
};

void callers_init(struct callers *callers);
/* The one that is there, or a new one, without lanes. NULL: no memory. */
struct caller *callers_get(struct callers *callers, const uint64_t life[2],
                           const struct identity *identity);
void callers_put(struct callers *callers, struct caller *caller);
/* Lanes that each may have where there may be lanes_max in all: its share, and one at least. */
uint32_t callers_share(const struct callers *callers, uint32_t lanes_max);
/* With the most lanes; NULL: there is none. */
struct caller *callers_most(struct callers *callers);
