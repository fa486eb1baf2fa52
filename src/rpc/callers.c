/* A hash table; the contract is in callers.h. */
#include "rpc/callers.h"
#include <assert.h>
#include <stdlib.h>

void callers_init(struct callers *callers) {
    callers->count = 0;
    callers->most = 0;
    for (uint32_t i = 0; i <= CALLER_LANES_MAX; i++) {
        list_init(&callers->by_count[i]);
    }
    for (uint32_t i = 0; i < CALLERS_BUCKETS; i++) {
        list_init(&callers->buckets[i]);
    }
}

struct caller *callers_get(struct callers *callers, const uint64_t life[2],
                           const struct identity *identity) {
    struct list *bucket = &callers->buckets[(life[0] ^ life[1]) % CALLERS_BUCKETS];
    struct caller *caller;

    for (struct list_node *node = bucket->head.next; node != &bucket->head; node = node->next) {
        caller = CONTAINER_OF(node, struct caller, node);
        if (caller->life[0] == life[0] && caller->life[1] == life[1] &&
            identity_is(&caller->identity, identity)) {
            return caller;
        }
    }
    caller = calloc(1, sizeof *caller);
    if (caller) {
        caller->life[0] = life[0];
        caller->life[1] = life[1];
        caller->identity = *identity;
        list_init(&caller->lanes);
        list_push_back(bucket, &caller->node);
        list_push_back(&callers->by_count[0], &caller->peer);
        callers->count++;
    }
    return caller;
}

static void count_set(struct callers *callers, struct caller *caller, uint32_t lane_count) {
    assert(lane_count <= CALLER_LANES_MAX);
    caller->lane_count = lane_count;
    list_remove(&caller->peer);
    list_push_back(&callers->by_count[lane_count], &caller->peer);
    callers->most = MAX(callers->most, lane_count);
}

void caller_lane_add(struct callers *callers, struct caller *caller, struct list_node *lane) {
    list_push_back(&caller->lanes, lane);
    count_set(callers, caller, caller->lane_count + 1);
}

void caller_lane_remove(struct callers *callers, struct caller *caller, struct list_node *lane) {
    list_remove(lane);
    count_set(callers, caller, caller->lane_count - 1);
    if (caller->lane_count == 0) {
        list_remove(&caller->peer);
        list_remove(&caller->node);
        callers->count--;
        free(caller);
    }
}

uint32_t callers_share(const struct callers *callers, uint32_t lanes_max) {
    uint32_t share = lanes_max / MAX(callers->count, 1U);

    return MIN(MAX(share, 1U), (uint32_t)LANE_THREADS_MAX);
}

struct caller *callers_most(struct callers *callers) {
    while (callers->most > 0 && list_is_empty(&callers->by_count[callers->most])) {
        callers->most--;
    }
    struct list_node *node = list_first(&callers->by_count[callers->most]);

    return node ? CONTAINER_OF(node, struct caller, peer) : NULL;
}
