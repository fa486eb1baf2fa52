/* A hash table; the contract is in callers.h. */
#include "rpc/callers.h"
#include "rpc/lane.h"
#include <stdlib.h>

void callers_init(struct callers *callers) {
    callers->count = 0;
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
        list_push_back(bucket, &caller->node);
        callers->count++;
    }
    return caller;
}

void callers_put(struct callers *callers, struct caller *caller) {
    if (caller->lane_count == 0) {
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
    struct caller *most = NULL;

    for (uint32_t i = 0; i < CALLERS_BUCKETS; i++) {
        struct list *bucket = &callers->buckets[i];

        for (struct list_node *node = bucket->head.next; node != &bucket->head; node = node->next) {
            struct caller *caller = CONTAINER_OF(node, struct caller, node);

            most = !most || caller->lane_count > most->lane_count ? caller : most;
        }
    }
    return most;
}
