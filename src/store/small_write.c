/* Blocks of small writes: their bytes go to the ring beside the record that names them. */
#include "store/operations.h"
#include <assert.h>

void small_part_fill(struct ost *ost, const struct small_part *part, struct small_spans *spans) {
    for (uint32_t i = 0; i < part->count;) {
        uint64_t block = part->entries[i].block;
        uint64_t ring_offset = 0;
        uint32_t count = 1;

        while (i + count < part->count && part->entries[i + count].block == block + count) {
            count++;
        }
        uint8_t *data = kv_data_allocate(ost->kv, (size_t)count * BLOCK_BYTES, &ring_offset);
        for (uint32_t k = 0; k < count; k++) {
            part->entries[i + k].crc =
                part->fill(part->context, i + k, data + (size_t)k * BLOCK_BYTES);
        }
        assert(spans->count < OST_SMALL_BLOCKS_MAX);
        spans->items[spans->count].block = block;
        spans->items[spans->count].ring_offset = ring_offset;
        spans->items[spans->count].count = count;
        spans->count++;
        i += count;
    }
}

uint32_t small_spans_bytes(uint32_t block_count) {
    return block_count * (uint32_t)(KV_NOTE_RECORD_BYTES + sizeof(struct store_note));
}

int small_spans_note(struct ost *ost, const struct small_spans *spans) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < spans->count; i++) {
        struct store_note note = {.format = STORE_FORMAT,
                                  .block_count = spans->items[i].count,
                                  .block = spans->items[i].block,
                                  .ring_offset = spans->items[i].ring_offset};

        r = kv_note(ost->kv, (struct bytes){(const uint8_t *)&note, sizeof note});
    }
    return r;
}

void small_spans_commit(struct ost *ost, const struct small_spans *spans, uint64_t position) {
    uint32_t block_count = 0;

    for (uint32_t i = 0; i < spans->count; i++) {
        block_count += spans->items[i].count;
    }
    assert(position > ost->sync.cut);
    assert(block_count <= ost->small.entry_max - ost->small.count);
    for (uint32_t i = 0; i < spans->count; i++) {
        for (uint32_t k = 0; k < spans->items[i].count; k++) {
            const struct small_entry entry = {
                .block = spans->items[i].block + k,
                .ring_offset = spans->items[i].ring_offset + (uint64_t)k * BLOCK_BYTES,
                .position = position,
                .soon = block_count <= OST_CACHED_BLOCKS_MAX,
            };
            int r = small_add(&ost->small, &entry);

            /* An entry for each block that the data area holds was taken at open. */
            assert(r == 0);
            (void)r;
        }
    }
}
