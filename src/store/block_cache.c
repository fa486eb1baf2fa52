/* See block_cache.h. */
#include "store/block_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int block_cache_init(struct block_cache *cache, size_t cache_bytes) {
    size_t slot_count = cache_bytes / BLOCK_BYTES;
    uint32_t bucket_count = 64;

    *cache = (struct block_cache){0};
    if (slot_count > UINT32_MAX / 4) {
        return -ERR_INVALID;
    }
    if (slot_count == 0) {
        return 0;
    }
    while (bucket_count < slot_count) {
        bucket_count *= 2;
    }
    cache->slot_count = (uint32_t)slot_count;
    cache->bucket_mask = bucket_count - 1;
    cache->memory = aligned_alloc(BLOCK_BYTES, slot_count * BLOCK_BYTES);
    cache->slots = calloc(slot_count, sizeof *cache->slots);
    cache->buckets = calloc(bucket_count, sizeof *cache->buckets);
    if (!cache->memory || !cache->slots || !cache->buckets) {
        block_cache_deinit(cache);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void block_cache_deinit(struct block_cache *cache) {
    free(cache->memory);
    free(cache->slots);
    free(cache->buckets);
    *cache = (struct block_cache){0};
}

static uint32_t *bucket_of(const struct block_cache *cache, uint64_t block) {
    uint64_t hash = block * UINT64_C(0x9e3779b97f4a7c15);

    return &cache->buckets[(uint32_t)(hash >> 32) & cache->bucket_mask];
}

/* What points at the block's slot, or at the end of its bucket. */
static uint32_t *link_of(const struct block_cache *cache, uint64_t block) {
    uint32_t *link = bucket_of(cache, block);

    while (*link > 0 && cache->slots[*link - 1].block != block) {
        link = &cache->slots[*link - 1].next;
    }
    return link;
}

static uint8_t *slot_data(const struct block_cache *cache, uint32_t slot) {
    return cache->memory + (size_t)slot * BLOCK_BYTES;
}

const uint8_t *block_cache_find(struct block_cache *cache, uint64_t block) {
    uint32_t found = cache->used_count > 0 ? *link_of(cache, block) : 0;

    if (found == 0) {
        cache->misses++;
        return NULL;
    }
    cache->hits++;
    cache->slots[found - 1].marked = true;
    return slot_data(cache, found - 1);
}

static void slot_empty(struct block_cache *cache, uint32_t *link) {
    struct block_cache_slot *slot = &cache->slots[*link - 1];

    assert(cache->used_count > 0 && slot->block > 0);
    *link = slot->next;
    *slot = (struct block_cache_slot){0};
    cache->used_count--;
}

static uint32_t slot_for_new(struct block_cache *cache) {
    for (;;) {
        uint32_t place = cache->hand;
        struct block_cache_slot *slot = &cache->slots[place];

        cache->hand = (place + 1) % cache->slot_count;
        if (slot->block && slot->marked) {
            slot->marked = false;
            continue;
        }
        if (slot->block) {
            slot_empty(cache, link_of(cache, slot->block));
        }
        return place;
    }
}

void block_cache_insert(struct block_cache *cache, uint64_t block, const uint8_t *data) {
    assert(block > 0);
    if (cache->slot_count == 0 || *link_of(cache, block) > 0) {
        return;
    }
    uint32_t place = slot_for_new(cache);
    uint32_t *bucket = bucket_of(cache, block);

    assert(cache->used_count < cache->slot_count && cache->slots[place].block == 0);
    cache->slots[place] = (struct block_cache_slot){.block = block, .next = *bucket};
    *bucket = place + 1;
    cache->used_count++;
    memcpy(slot_data(cache, place), data, BLOCK_BYTES);
}

void block_cache_drop(struct block_cache *cache, uint64_t first, uint32_t count) {
    for (uint32_t i = 0; cache->used_count > 0 && i < count; i++) {
        uint32_t *link = link_of(cache, first + i);

        if (*link > 0) {
            slot_empty(cache, link);
        }
    }
}
