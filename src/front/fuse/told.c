/* What the kernel was told last of attributes. */
#include "front/fuse/told.h"
#include "front/fuse/mix.h"
#include <stdlib.h>

enum { SLOT_COUNT = 8192, UNKNOWN = 1 };

static struct told_slot *slot_of(const struct told_table *table, uint64_t ino) {
    return &table->slots[mix(ino) % SLOT_COUNT];
}

static uint64_t attributes_hash(const struct shoal_attributes *attributes) {
    uint64_t hash = mix(attributes->ino);

    hash = mix(hash ^ attributes->size);
    hash = mix(hash ^ (uint64_t)attributes->mtime_ns);
    return mix(hash ^ (uint64_t)attributes->ctime_ns) | 2;
}

static uint64_t size_hash(uint64_t ino, uint64_t size) {
    return mix(mix(ino) ^ size);
}

int told_table_init(struct told_table *table) {
    table->slots = calloc(SLOT_COUNT, sizeof *table->slots);
    return table->slots ? 0 : -ERR_NO_MEMORY;
}

void told_table_deinit(struct told_table *table) {
    free(table->slots);
    table->slots = NULL;
}

/* Nothing is ordered by it, so no store of it waits for others. */
static void size_note(struct told_slot *slot, const struct shoal_attributes *attributes) {
    atomic_store_explicit(&slot->size, size_hash(attributes->ino, attributes->size),
                          memory_order_relaxed);
}

void told_note(const struct told_table *table, const struct shoal_attributes *attributes,
               uint64_t asked_ns, uint64_t now_ns) {
    struct told_slot *slot = slot_of(table, attributes->ino);
    uint64_t told = atomic_load_explicit(&slot->attributes, memory_order_acquire);
    uint64_t noted_ns = atomic_load_explicit(&slot->noted_ns, memory_order_relaxed);
    uint64_t hash = attributes_hash(attributes);
    bool is_beside = told != 0 && told != hash && noted_ns + TOLD_OVERLAP_NS >= asked_ns;

    size_note(slot, attributes);
    /* The time first, and who meets others that are being noted now tells beside them. */
    atomic_store_explicit(&slot->noted_ns, now_ns, memory_order_relaxed);
    if (!atomic_compare_exchange_strong_explicit(&slot->attributes, &told,
                                                 is_beside ? (uint64_t)UNKNOWN : hash,
                                                 memory_order_release, memory_order_relaxed) &&
        told != hash) {
        atomic_store_explicit(&slot->attributes, UNKNOWN, memory_order_relaxed);
    }
}

bool told_differs(const struct told_table *table, const struct shoal_attributes *attributes) {
    struct told_slot *slot = slot_of(table, attributes->ino);
    uint64_t hash = attributes_hash(attributes);

    size_note(slot, attributes);
    uint64_t told = atomic_exchange(&slot->attributes, hash);
    return told != hash && told != 0;
}

void told_end(const struct told_table *table, uint64_t ino, uint64_t end) {
    struct told_slot *slot = slot_of(table, ino);

    if (atomic_load(&slot->size) != size_hash(ino, end)) {
        atomic_store(&slot->attributes, UNKNOWN);
    }
}
