/* Stores that ring_store tells. */
#include "watch.h"
#include "kv/ring_store.h"
#include <assert.h>

/* One whole ring's worth of small writes. */
const size_t watch_touched_bytes = 24 * BLOCK_BYTES;

/* The engine has no context where it stores. */
static struct machine *machine_in_use;

bool machine_is_stepped(void) {
    return false;
}

bool machine_is_possible(void) {
    return true;
}

void watch_begin(struct machine *machine) {
    machine_in_use = machine;
}

void watch_end(void) {
    machine_in_use = NULL;
}

void watch_untouch(struct machine *machine, uint64_t place) {
    (void)machine;
    (void)place;
}

static uint64_t readable_place(const struct machine *machine, const void *at) {
    const uint8_t *first = (const uint8_t *)machine->readable->regions;
    const uint8_t *place = at;

    assert(place >= first && place < first + sizeof machine->readable->regions);
    return (uint64_t)(place - (const uint8_t *)machine->readable);
}

void ring_store_traced(const void *at, const void *from, size_t size_bytes) {
    machine_store(machine_in_use, readable_place(machine_in_use, at), from, size_bytes);
}

/* Who asks may write there until the next event, and a ring's worth of blocks behind. */
void *ring_data_traced(const void *at) {
    uint64_t place = readable_place(machine_in_use, at);

    machine_touch(machine_in_use, place);
    return (uint8_t *)machine_in_use->arena + place;
}
