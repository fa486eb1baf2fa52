/* What the kernel was told last of attributes. */
#include "front/fuse/told.h"
#include <stdlib.h>

enum { SLOT_COUNT = 8192 };

static uint64_t mix(uint64_t word) {
    word ^= word >> 32;
    word *= UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

static _Atomic uint64_t *slot_of(const struct told_table *table, uint64_t ino) {
    return &table->slots[mix(ino) % SLOT_COUNT];
}

static uint64_t hash_of(const struct shoal_attributes *attributes) {
    uint64_t hash = mix(attributes->ino);

    hash = mix(hash ^ attributes->size);
    hash = mix(hash ^ (uint64_t)attributes->mtime_ns);
    return mix(hash ^ (uint64_t)attributes->ctime_ns) | 1;
}

int told_table_init(struct told_table *table) {
    table->slots = calloc(SLOT_COUNT, sizeof *table->slots);
    return table->slots ? 0 : -ERR_NO_MEMORY;
}

void told_table_deinit(struct told_table *table) {
    free((void *)table->slots);
    table->slots = NULL;
}

void told_note(const struct told_table *table, const struct shoal_attributes *attributes) {
    atomic_store_explicit(slot_of(table, attributes->ino), hash_of(attributes),
                          memory_order_relaxed);
}

bool told_differs(const struct told_table *table, const struct shoal_attributes *attributes) {
    uint64_t hash = hash_of(attributes);
    uint64_t told =
        atomic_exchange_explicit(slot_of(table, attributes->ino), hash, memory_order_relaxed);

    return told != hash && told != 0;
}
