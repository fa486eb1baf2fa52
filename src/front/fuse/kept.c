/* Which version of each file the kernel's pages are of. */
#include "front/fuse/kept.h"
#include "front/fuse/mix.h"
#include <stdlib.h>

/* As many files as a machine has small ones in its page cache: 32 MiB where all of it is used. */
enum { SLOT_COUNT = 1 << 22 };

static _Atomic uint64_t *slot_of(const struct kept_table *table, uint64_t ino) {
    return &table->slots[mix(ino) % SLOT_COUNT];
}

int kept_table_init(struct kept_table *table) {
    table->slots = calloc(SLOT_COUNT, sizeof *table->slots);
    return table->slots ? 0 : -ERR_NO_MEMORY;
}

void kept_table_deinit(struct kept_table *table) {
    free(table->slots);
    table->slots = NULL;
}

uint64_t kept_mark(const struct shoal_attributes *attributes) {
    uint64_t hash = mix(attributes->ino);

    hash = mix(hash ^ attributes->version);
    hash = mix(hash ^ attributes->size);
    hash = mix(hash ^ (uint64_t)attributes->mtime_ns);
    hash = mix(hash ^ (uint64_t)attributes->ctime_ns) | 1;
    return attributes->version != 0 ? hash : 0;
}

bool kept_is(const struct kept_table *table, uint64_t ino, uint64_t mark) {
    return mark != 0 && atomic_load(slot_of(table, ino)) == mark;
}

void kept_note(const struct kept_table *table, uint64_t ino, uint64_t mark) {
    atomic_store(slot_of(table, ino), mark);
}
