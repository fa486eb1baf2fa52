/* See small.h. */
#include "store/small.h"

#include <assert.h>
#include <stdlib.h>

int small_init(struct small *small, uint64_t ring_data_bytes) {
    uint64_t entry_max = ring_data_bytes / BLOCK_BYTES;
    uint32_t bucket_count = 64;

    *small = (struct small){0};
    if (entry_max == 0 || entry_max > UINT32_MAX / 4) {
        return -ERR_INVALID;
    }
    while (bucket_count < entry_max) {
        bucket_count *= 2;
    }
    small->entry_max = (uint32_t)entry_max;
    small->bucket_mask = bucket_count - 1;
    small->entries = calloc(entry_max, sizeof *small->entries);
    small->buckets = calloc(bucket_count, sizeof *small->buckets);
    if (!small->entries || !small->buckets) {
        small_deinit(small);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void small_deinit(struct small *small) {
    free(small->entries);
    free(small->buckets);
    *small = (struct small){0};
}

static uint32_t *bucket_of(const struct small *small, uint64_t block) {
    uint64_t hash = block * UINT64_C(0x9e3779b97f4a7c15);

    return &small->buckets[(uint32_t)(hash >> 32) & small->bucket_mask];
}

static uint32_t place_of(const struct small *small, uint32_t index) {
    return (small->first + index) % small->entry_max;
}

int small_add(struct small *small, const struct small_entry *entry) {
    uint32_t *bucket = bucket_of(small, entry->block);

    if (small->count == small->entry_max) {
        return -ERR_BUSY;
    }
    assert(small->count == 0 ||
           small->entries[place_of(small, small->count - 1)].position <= entry->position);
    uint32_t place = place_of(small, small->count++);

    small->entries[place] = *entry;
    small->entries[place].next = *bucket;
    *bucket = place + 1;
    return 0;
}

const uint8_t *small_find(const struct small *small, uint64_t block) {
    if (small->count == 0) {
        return NULL;
    }
    for (uint32_t at = *bucket_of(small, block); at > 0; at = small->entries[at - 1].next) {
        if (small->entries[at - 1].block == block) {
            return kv_data_at(small->kv, small->entries[at - 1].ring_offset, BLOCK_BYTES);
        }
    }
    return NULL;
}

bool small_next(const struct small *small, uint32_t *at, uint64_t cut, uint32_t blocks_max,
                struct small_span *ret_span) {
    struct small_span span = {0};

    assert(*at <= small->count && small->count <= small->entry_max);
    while (*at < small->count && span.block_count < blocks_max) {
        const struct small_entry *entry = &small->entries[place_of(small, *at)];
        uint8_t *data = kv_data_at(small->kv, entry->ring_offset, BLOCK_BYTES);
        size_t bytes = (size_t)span.block_count * BLOCK_BYTES;

        if (entry->position > cut) {
            break;
        }
        if (span.block_count == 0) {
            span.block = entry->block;
            span.data = data;
        } else if (entry->block != span.block + span.block_count || data != span.data + bytes) {
            break;
        }
        span.block_count++;
        (*at)++;
    }
    if (span.block_count > 0) {
        *ret_span = span;
    }
    return span.block_count > 0;
}

bool small_drop(struct small *small, uint64_t cut, uint64_t *ret_block) {
    const struct small_entry *entry = &small->entries[small->first];

    if (small->count == 0 || entry->position > cut) {
        return false;
    }
    /* A newer entry of the same block would lie before this one in its bucket. */
    uint32_t *link = bucket_of(small, entry->block);
    while (*link != small->first + 1) {
        assert(*link > 0);
        link = &small->entries[*link - 1].next;
    }
    *link = entry->next;
    *ret_block = entry->block;
    small->first = place_of(small, 1);
    small->count--;
    return true;
}
