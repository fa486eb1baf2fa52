/* The contract is in laps.h. */
#include "laps.h"
#include "kv/kv_state.h"
#include "life.h"

void laps_begin(struct life *life) {
    const struct ring *ring = &life_kv(life)->ring;

    life->ring_head = ring->head;
    life->ring_data_head = ring->data_head;
}

void laps_end(const struct life *life) {
    const struct ring *ring = &life_kv(life)->ring;
    struct node *node = life->node;
    struct world *world = node->world;
    uint64_t records = (ring->head - life->ring_head) / ring->record_bytes;

    if (node->role != NODE_OST) {
        world->laps_of_others += records;
        return;
    }
    uint64_t data = (ring->data_head - life->ring_data_head) / ring->data_bytes;
    world->laps += records;
    world->data_laps += data;
    node->laps = MAX(node->laps, MIN(records, data));
}

/* Of an even number, the lower one. */
uint64_t laps_median(const struct world *world) {
    uint64_t laps[WORLD_OSTS_MAX];
    uint32_t count = world->options.ost_count;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t next = world->osts[i].laps;
        uint32_t at = i;

        for (; at > 0 && laps[at - 1] > next; at--) {
            laps[at] = laps[at - 1];
        }
        laps[at] = next;
    }
    return laps[(count - 1) / 2];
}
