/* One file of a simulated disk: its blocks and their versions. */
#include "env/env_sim.h"
#include "env/sim_disk.h"
#include "env/sim_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_PER_CHUNK = 512,
    SECTOR_BYTES = 512,
    SECTORS_PER_BLOCK = BLOCK_BYTES / SECTOR_BYTES,
    VERSIONS_MAX = 4, /* that one block keeps of its own accord */
    KEEP_VERSION_ONE_IN = 8,
};

struct version {
    struct version *older;
    uint64_t sequence;
    uint8_t *data; /* NULL: zeros */
};

/* A block with something that is not durable. */
struct dirty {
    struct list_node node; /* of the file, in order of the first write since it was clean */
    uint64_t block;
    struct version *newest;
};

struct slot_of_block {
    uint8_t *durable; /* NULL: zeros */
    struct dirty *dirty;
};

struct chunk {
    struct slot_of_block slots[SLOTS_PER_CHUNK];
};

struct bitmap {
    uint64_t *words;
    size_t word_count;
};

/* Of a killed process, and still with the medium. */
struct late_write {
    struct list_node node;
    uint64_t offset;
    size_t size;
    uint8_t data[];
};

struct sim_file {
    struct sim_disk *disk;
    unsigned reference_count;
    uint64_t size_bytes;
    uint64_t durable_size_bytes;
    struct chunk **chunks;
    size_t chunk_count;
    struct list dirty;
    struct list late;       /* writes */
    struct sim_sync *syncs; /* under way */
    struct bitmap allocated;
    struct bitmap durable_allocated;
    bool allocation_changed;
};

static const uint8_t zero_block[BLOCK_BYTES];

static void *grown(void *memory, size_t old_size, size_t new_size) {
    void *larger = sim_allocate(new_size);

    if (memory) {
        memcpy(larger, memory, old_size);
        free(memory);
    }
    return larger;
}

static bool bitmap_get(const struct bitmap *bitmap, uint64_t bit) {
    return bit / 64 < bitmap->word_count && (bitmap->words[bit / 64] >> bit % 64 & 1);
}

static void bitmap_set(struct bitmap *bitmap, uint64_t bit) {
    if (bit / 64 >= bitmap->word_count) {
        size_t word_count = MAX((size_t)(bit / 64 + 1), 2 * bitmap->word_count);

        bitmap->words = grown(bitmap->words, bitmap->word_count * sizeof *bitmap->words,
                              word_count * sizeof *bitmap->words);
        bitmap->word_count = word_count;
    }
    bitmap->words[bit / 64] |= UINT64_C(1) << bit % 64;
}

static uint64_t bitmap_count(const struct bitmap *bitmap) {
    uint64_t count = 0;

    for (size_t i = 0; i < bitmap->word_count; i++) {
        count += (uint64_t)__builtin_popcountll(bitmap->words[i]);
    }
    return count;
}

static void bitmap_copy(struct bitmap *to, const struct bitmap *from) {
    free(to->words);
    to->word_count = from->word_count;
    to->words = sim_allocate(from->word_count * sizeof *from->words);
    if (from->word_count > 0) {
        memcpy(to->words, from->words, from->word_count * sizeof *from->words);
    }
}

struct sim_file *sim_file_new(struct sim_disk *disk) {
    struct sim_file *file = sim_allocate(sizeof *file);

    file->disk = disk;
    file->reference_count = 1;
    list_init(&file->dirty);
    list_init(&file->late);
    return file;
}

static struct slot_of_block *slot_find(const struct sim_file *file, uint64_t block) {
    uint64_t chunk = block / SLOTS_PER_CHUNK;

    if (chunk >= file->chunk_count || !file->chunks[chunk]) {
        return NULL;
    }
    return &file->chunks[chunk]->slots[block % SLOTS_PER_CHUNK];
}

static struct slot_of_block *slot_make(struct sim_file *file, uint64_t block) {
    uint64_t chunk = block / SLOTS_PER_CHUNK;

    if (chunk >= file->chunk_count) {
        size_t chunk_count = MAX((size_t)chunk + 1, 2 * file->chunk_count);

        file->chunks = grown(file->chunks, file->chunk_count * sizeof(struct chunk *),
                             chunk_count * sizeof(struct chunk *));
        file->chunk_count = chunk_count;
    }
    if (!file->chunks[chunk]) {
        file->chunks[chunk] = sim_allocate(sizeof(struct chunk));
    }
    return &file->chunks[chunk]->slots[block % SLOTS_PER_CHUNK];
}

/* What a read of the block sees; never NULL. */
static const uint8_t *slot_current(const struct slot_of_block *slot) {
    const uint8_t *data = NULL;

    if (slot) {
        data = slot->dirty ? slot->dirty->newest->data : slot->durable;
    }
    return data ? data : zero_block;
}

static void versions_free(struct version *version) {
    while (version) {
        struct version *older = version->older;

        free(version->data);
        free(version);
        version = older;
    }
}

static void slot_clean(struct slot_of_block *slot) {
    if (slot->dirty) {
        list_remove(&slot->dirty->node);
        versions_free(slot->dirty->newest);
        free(slot->dirty);
        slot->dirty = NULL;
    }
}

/* Takes data over; zeros are kept as NULL. */
static void slot_set_durable(struct slot_of_block *slot, uint8_t *data) {
    free(slot->durable);
    if (data && memcmp(data, zero_block, BLOCK_BYTES) == 0) {
        free(data);
        data = NULL;
    }
    slot->durable = data;
}

void sim_file_get(struct sim_file *file) {
    file->reference_count++;
}

void sim_file_put(struct sim_file *file) {
    struct list_node *node;

    if (--file->reference_count > 0) {
        return;
    }
    assert(!file->syncs);
    while ((node = list_pop_front(&file->late)) != NULL) {
        free(CONTAINER_OF(node, struct late_write, node));
    }
    for (size_t i = 0; i < file->chunk_count; i++) {
        for (size_t j = 0; file->chunks[i] && j < SLOTS_PER_CHUNK; j++) {
            slot_clean(&file->chunks[i]->slots[j]);
            free(file->chunks[i]->slots[j].durable);
        }
        free(file->chunks[i]);
    }
    sim_disk_give(file->disk, bitmap_count(&file->allocated));
    free(file->chunks);
    free(file->allocated.words);
    free(file->durable_allocated.words);
    free(file);
}

uint64_t sim_file_size(const struct sim_file *file) {
    return file->size_bytes;
}

size_t sim_file_read(const struct sim_file *file, uint64_t offset, void *buffer, size_t size) {
    uint8_t *to = buffer;
    uint64_t end = MIN(offset + size, file->size_bytes);

    if (offset >= end) {
        return 0;
    }
    for (uint64_t at = offset; at < end;) {
        size_t within = at % BLOCK_BYTES;
        size_t part = (size_t)MIN(BLOCK_BYTES - within, end - at);

        memcpy(to, slot_current(slot_find(file, at / BLOCK_BYTES)) + within, part);
        to += part;
        at += part;
    }
    return (size_t)(end - offset);
}

static bool sync_needs(const struct sim_file *file, const struct version *version) {
    const struct sim_sync *sync = file->syncs;

    while (sync && sync->cut < version->sequence) {
        sync = sync->next;
    }
    return sync != NULL;
}

static unsigned version_count(const struct version *version) {
    unsigned count = 0;

    for (; version; version = version->older) {
        count++;
    }
    return count;
}

/* The version that a write may change: a new one, or the newest overwritten in place. */
static struct version *version_for_write(struct sim_file *file, struct slot_of_block *slot,
                                         uint64_t block) {
    struct prng *prng = sim_prng(sim_disk_world(file->disk));

    if (!slot->dirty) {
        slot->dirty = sim_allocate(sizeof *slot->dirty);
        slot->dirty->block = block;
        list_push_back(&file->dirty, &slot->dirty->node);
    }
    struct version *newest = slot->dirty->newest;
    bool keep =
        newest && version_count(newest) < VERSIONS_MAX && prng_chance(prng, 1, KEEP_VERSION_ONE_IN);
    if (newest && !keep && !sync_needs(file, newest)) {
        return newest;
    }
    const uint8_t *current = newest ? newest->data : slot->durable;
    struct version *version = sim_allocate(sizeof *version);
    if (current) {
        version->data = sim_allocate(BLOCK_BYTES);
        memcpy(version->data, current, BLOCK_BYTES);
    }
    version->older = newest;
    slot->dirty->newest = version;
    return version;
}

/* Writes within one block; space was taken before. */
static void piece_write(struct sim_file *file, uint64_t offset, const uint8_t *data, size_t size) {
    uint64_t block = offset / BLOCK_BYTES;
    struct slot_of_block *slot = slot_make(file, block);
    struct version *version = version_for_write(file, slot, block);

    version->sequence = sim_disk_next_sequence(file->disk);
    if (size == BLOCK_BYTES && memcmp(data, zero_block, BLOCK_BYTES) == 0) {
        free(version->data);
        version->data = NULL;
        return;
    }
    if (!version->data) {
        version->data = sim_allocate(BLOCK_BYTES);
    }
    memcpy(version->data + offset % BLOCK_BYTES, data, size);
}

/* Takes the space of [first, end) that isn't taken yet. */
static int blocks_allocate(struct sim_file *file, uint64_t first, uint64_t end) {
    uint64_t missing = 0;

    for (uint64_t block = first; block < end; block++) {
        missing += !bitmap_get(&file->allocated, block);
    }
    if (missing == 0) {
        return 0;
    }
    if (!sim_disk_take(file->disk, missing)) {
        return -ERR_NO_SPACE;
    }
    for (uint64_t block = first; block < end; block++) {
        bitmap_set(&file->allocated, block);
    }
    file->allocation_changed = true;
    return 0;
}

static uint64_t block_after(uint64_t offset) {
    return (offset + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

bool sim_file_is_allocated(const struct sim_file *file, uint64_t offset, uint64_t size) {
    bool whole = offset + size <= file->size_bytes;

    for (uint64_t block = offset / BLOCK_BYTES; whole && block < block_after(offset + size);
         block++) {
        whole = bitmap_get(&file->allocated, block);
    }
    return whole;
}

int sim_file_allocate(struct sim_file *file, uint64_t offset, uint64_t size,
                      uint64_t keep_free_bytes) {
    uint64_t end = offset + size;
    uint64_t more = end > file->size_bytes ? end - file->size_bytes : 0;

    if (keep_free_bytes > 0 && more > 0 &&
        !sim_disk_has_room(file->disk, block_after(more) + block_after(keep_free_bytes))) {
        return -ERR_NO_SPACE;
    }
    int r = blocks_allocate(file, offset / BLOCK_BYTES, block_after(offset + size));

    if (!r) {
        file->size_bytes = MAX(file->size_bytes, offset + size);
    }
    return r;
}

static void pieces_write(struct sim_file *file, struct bytes data, uint64_t offset, bool all) {
    struct sim *sim = sim_disk_world(file->disk);
    uint64_t end = offset + data.size;

    for (uint64_t at = offset; at < end;) {
        size_t part = (size_t)MIN(BLOCK_BYTES - at % BLOCK_BYTES, end - at);

        if (all || prng_chance(sim_prng(sim), 1, 2)) {
            piece_write(file, at, data.data + (at - offset), part);
            file->size_bytes = MAX(file->size_bytes, at + part);
        }
        at += part;
    }
}

int sim_file_write(struct sim_file *file, uint64_t offset, const void *buffer, size_t size) {
    int r = blocks_allocate(file, offset / BLOCK_BYTES, block_after(offset + size));

    if (!r) {
        pieces_write(file, (struct bytes){buffer, size}, offset, true);
    }
    return r;
}

void sim_file_write_some(struct sim_file *file, uint64_t offset, const void *buffer, size_t size) {
    if (blocks_allocate(file, offset / BLOCK_BYTES, block_after(offset + size)) == 0) {
        pieces_write(file, (struct bytes){buffer, size}, offset, false);
    }
}

void sim_file_write_late(struct sim_file *file, uint64_t offset, const void *buffer, size_t size) {
    struct late_write *late = sim_allocate(sizeof *late + size);

    late->offset = offset;
    late->size = size;
    memcpy(late->data, buffer, size);
    list_push_back(&file->late, &late->node);
}

void sim_file_land(struct sim_file *file, uint64_t numerator, uint64_t denominator) {
    struct list_node *node;

    while ((node = list_pop_front(&file->late)) != NULL) {
        struct late_write *late = CONTAINER_OF(node, struct late_write, node);

        if (prng_chance(sim_prng(sim_disk_world(file->disk)), numerator, denominator)) {
            (void)sim_file_write(file, late->offset, late->data, late->size);
        }
        free(late);
    }
}

bool sim_file_is_late(const struct sim_file *file) {
    return list_first(&file->late) != NULL;
}

void sim_file_sync_begin(struct sim_file *file, struct sim_sync *sync) {
    sync->cut = sim_disk_sequence(file->disk);
    sync->size_bytes = file->size_bytes;
    sync->next = file->syncs;
    file->syncs = sync;
}

/* Makes the newest version up to cut durable and forgets it and what is older. */
static void slot_sync(struct slot_of_block *slot, uint64_t cut) {
    struct version **link = &slot->dirty->newest;

    while (*link && (*link)->sequence > cut) {
        link = &(*link)->older;
    }
    struct version *covered = *link;
    if (!covered) {
        return;
    }
    *link = NULL;
    slot_set_durable(slot, TAKE_PTR(covered->data));
    versions_free(covered);
    if (!slot->dirty->newest) {
        slot_clean(slot);
    }
}

void sim_file_sync_end(struct sim_file *file, struct sim_sync *sync, bool succeeded) {
    struct sim_sync **link = &file->syncs;
    struct list_node *node = list_first(&file->dirty);

    while (*link != sync) {
        link = &(*link)->next;
    }
    *link = sync->next;
    if (!succeeded) {
        return;
    }
    while (node) {
        struct dirty *dirty = CONTAINER_OF(node, struct dirty, node);

        node = list_next(&file->dirty, node);
        slot_sync(slot_find(file, dirty->block), sync->cut);
    }
    file->durable_size_bytes = MAX(file->durable_size_bytes, sync->size_bytes);
    if (file->allocation_changed) {
        bitmap_copy(&file->durable_allocated, &file->allocated);
        file->allocation_changed = false;
    }
}

/* One of the versions by lot, or what is durable; NULL is zeros. */
static const uint8_t *any_version(struct prng *prng, const struct slot_of_block *slot) {
    const struct version *version = slot->dirty->newest;
    uint64_t steps = prng_below(prng, version_count(version) + 1);

    while (version && steps > 0) {
        version = version->older;
        steps--;
    }
    return version ? version->data : slot->durable;
}

static void block_power(struct sim_file *file, struct slot_of_block *slot) {
    struct sim *sim = sim_disk_world(file->disk);
    const struct sim_faults *faults = sim_disk_faults(file->disk);
    uint64_t lot = prng_below(sim_prng(sim), 100);
    uint8_t *left = sim_allocate(BLOCK_BYTES);

    if (lot < faults->lost_percent) {
        memcpy(left, slot->durable ? slot->durable : zero_block, BLOCK_BYTES);
        sim_count(sim, "blocks lost", 1);
    } else if (lot < faults->lost_percent + faults->torn_percent) {
        for (size_t i = 0; i < SECTORS_PER_BLOCK; i++) {
            const uint8_t *from = any_version(sim_prng(sim), slot);

            memcpy(left + i * SECTOR_BYTES, (from ? from : zero_block) + i * SECTOR_BYTES,
                   SECTOR_BYTES);
        }
        sim_count(sim, "blocks torn", 1);
    } else {
        const uint8_t *from = slot->dirty->newest->data;

        if (prng_chance(sim_prng(sim), 1, 4)) {
            from = any_version(sim_prng(sim), slot);
        }
        memcpy(left, from ? from : zero_block, BLOCK_BYTES);
        sim_count(sim, "blocks kept", 1);
    }
    slot_clean(slot);
    slot_set_durable(slot, left);
}

/* Of a size that was not synced, all, nothing or some whole blocks of the growth are left. */
static uint64_t size_after_power(const struct sim_file *file) {
    struct prng *prng = sim_prng(sim_disk_world(file->disk));
    uint64_t low = file->durable_size_bytes;
    uint64_t high = file->size_bytes;

    if (high <= low || prng_chance(prng, 1, 3)) {
        return low;
    }
    if (prng_chance(prng, 1, 2)) {
        return high;
    }
    uint64_t between = prng_between(prng, low, high) / BLOCK_BYTES * BLOCK_BYTES;
    return MAX(between, low);
}

/* What lay past the new end is gone: it reads as zeros when the file grows again. */
static void cut_to_size(struct sim_file *file, uint64_t size_bytes) {
    uint64_t end = block_after(file->size_bytes);

    if (size_bytes % BLOCK_BYTES) {
        struct slot_of_block *slot = slot_find(file, size_bytes / BLOCK_BYTES);

        if (slot && slot->durable) {
            memset(slot->durable + size_bytes % BLOCK_BYTES, 0,
                   BLOCK_BYTES - size_bytes % BLOCK_BYTES);
        }
    }
    for (uint64_t block = block_after(size_bytes); block < end; block++) {
        struct slot_of_block *slot = slot_find(file, block);

        if (slot) {
            slot_set_durable(slot, NULL);
        }
    }
    file->size_bytes = size_bytes;
    file->durable_size_bytes = size_bytes;
}

void sim_file_power(struct sim_file *file) {
    struct sim *sim = sim_disk_world(file->disk);
    struct list_node *node;

    assert(!file->syncs);
    sim_file_land(file, 1, 2);
    while ((node = list_first(&file->dirty)) != NULL) {
        struct dirty *dirty = CONTAINER_OF(node, struct dirty, node);

        block_power(file, slot_find(file, dirty->block));
    }
    /* File systems journal blocks before, or together with, the size that holds them: a size
     * without its blocks does not come about. */
    bool undone = file->allocation_changed && prng_chance(sim_prng(sim), 1, 2);
    cut_to_size(file, undone ? file->durable_size_bytes : size_after_power(file));
    if (undone) {
        uint64_t before = bitmap_count(&file->allocated);

        bitmap_copy(&file->allocated, &file->durable_allocated);
        sim_disk_give(file->disk, before - bitmap_count(&file->allocated));
    }
    bitmap_copy(&file->durable_allocated, &file->allocated);
    file->allocation_changed = false;
}

static bool block_may_flip(const struct sim_file *file, uint64_t block) {
    const struct slot_of_block *slot = slot_find(file, block);

    return slot && slot->durable && !slot->dirty;
}

bool sim_file_flip_bit(struct sim_file *file, uint64_t bit) {
    uint64_t block = bit / 8 / BLOCK_BYTES;

    if (!block_may_flip(file, block)) {
        return false;
    }
    slot_find(file, block)->durable[bit / 8 % BLOCK_BYTES] ^= (uint8_t)(1U << bit % 8);
    return true;
}

unsigned sim_file_flip(struct sim_file *file, uint64_t first_block, uint64_t end_block,
                       uint64_t *ret_offset) {
    struct prng *prng = sim_prng(sim_disk_world(file->disk));
    uint64_t seen = 0;
    uint64_t chosen = 0;

    end_block = MIN(end_block, block_after(file->size_bytes));
    for (uint64_t block = first_block; block < end_block; block++) {
        /* Each of those seen is the chosen one with the same probability. */
        if (block_may_flip(file, block) && prng_below(prng, ++seen) == 0) {
            chosen = block;
        }
    }
    if (seen == 0) {
        return 0;
    }
    uint64_t bit = prng_below(prng, BLOCK_BYTES * 8);
    (void)sim_file_flip_bit(file, chosen * BLOCK_BYTES * 8 + bit);
    *ret_offset = chosen * BLOCK_BYTES + bit / 8;
    return 1;
}
