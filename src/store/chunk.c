/* See chunk.h. */
#include "store/chunk.h"
#include "base/bug.h"

#include <assert.h>
#include <stdlib.h>

int change_init(struct change *change, struct blocks *blocks, uint32_t extents_max) {
    *change = (struct change){.blocks = blocks, .extents_max = extents_max};
    change->rows = calloc(CHANGE_ROWS_MAX, sizeof *change->rows);
    change->extents = calloc(extents_max, sizeof *change->extents);
    change->bitmaps = calloc(2 * (size_t)extents_max, sizeof *change->bitmaps);
    return change->rows && change->extents && change->bitmaps ? 0 : -ERR_NO_MEMORY;
}

void change_deinit(struct change *change) {
    free(change->rows);
    free(change->extents);
    free(change->bitmaps);
    *change = (struct change){0};
}

struct kv_key chunk_key(const struct chunk_id *id, uint64_t row) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = store_bucket(id->ino),
                                              .type = STORE_ROW_CHUNK,
                                              .id = id->ino.value,
                                              .generation = id->generation,
                                              .index = id->chunk << STORE_INDEX_BITS | row});
}

int chunk_head_check(struct bytes value, struct store_head *ret_head) {
    struct store_head head = {0};

    if (value.size != sizeof head && value.size != STORE_HEAD_BYTES) {
        return -ERR_CORRUPT;
    }
    memcpy(&head, value.data, value.size);
    bool promises = head.promise != STORE_PROMISE_NONE;
    uint8_t format = promises ? STORE_FORMAT_PROMISING : STORE_FORMAT;
    if (head.format > STORE_FORMAT_PROMISING) {
        return -ERR_NEWER_FORMAT;
    }
    if (head.format != format || promises != (value.size == sizeof head) ||
        head.promise > STORE_PROMISE_SOME || (!promises && head.promised > 0)) {
        return -ERR_CORRUPT;
    }
    uint32_t blocks = head.chunk_bytes / BLOCK_BYTES;
    if (blocks > (uint32_t)STORE_CHUNK_BLOCKS_MAX || head.length > head.chunk_bytes ||
        head.promised > blocks || (promises && head.chunk_bytes % SEGMENT_BYTES)) {
        return -ERR_CORRUPT;
    }
    *ret_head = head;
    return 0;
}

int chunk_head_get(struct kv *kv, const struct chunk_id *id, struct store_head *ret_head) {
    struct kv_key key = chunk_head_key(id);
    struct bytes value;
    int r = kv_get(kv, &key, &value);

    return r < 0 ? r : chunk_head_check(value, ret_head);
}

/* A row may end early; what is missing is a hole. */
static struct block_entry entry_at(struct bytes row, uint32_t index) {
    size_t offset = offsetof(struct store_segment, entries) + index * sizeof(struct store_entry);
    struct store_entry entry;

    if (offset + sizeof entry > row.size) {
        return (struct block_entry){0};
    }
    memcpy(&entry, row.data + offset, sizeof entry);
    return (struct block_entry){.block = store_entry_block(&entry), .crc = entry.crc};
}

static int segment_check(struct bytes row) {
    if (row.size > sizeof(struct store_segment) || row.size < 1) {
        return -ERR_CORRUPT;
    }
    if (row.data[0] != STORE_FORMAT) {
        return row.data[0] > STORE_FORMAT ? -ERR_NEWER_FORMAT : -ERR_CORRUPT;
    }
    return 0;
}

/* An empty row when there is none. */
static int segment_get(struct kv *kv, const struct kv_key *key, struct bytes *ret_row) {
    struct bytes row = {0};
    int r = kv_get(kv, key, &row);

    if (r == 0) {
        r = segment_check(row);
    } else if (r == -ERR_NOT_FOUND) {
        row = (struct bytes){0};
        r = 0;
    }
    if (r == 0) {
        *ret_row = row;
    }
    return r;
}

int chunk_entries_get(struct kv *kv, const struct chunk_id *id, struct extent range,
                      struct block_entry *ret_entries) {
    struct bytes row = {0};

    for (uint32_t i = 0; i < range.count; i++) {
        uint64_t block = range.first + i;
        uint32_t index = (uint32_t)(block % BLOCKS_PER_SEGMENT);

        if (i == 0 || index == 0) {
            struct kv_key key = chunk_key(id, 1 + block / BLOCKS_PER_SEGMENT);
            int r = segment_get(kv, &key, &row);

            if (r < 0) {
                return r;
            }
        }
        ret_entries[i] = entry_at(row, index);
    }
    return 0;
}

void change_begin(struct change *change, struct kv *kv) {
    change->kv = kv;
    change->row_count = 0;
    change->extent_count = 0;
    change->bitmap_count = 0;
    change->block_delta = 0;
    change->has_promise = false;
    change->promise_changed = false;
    change->promised_holes = 0;
    change->promised_delta = 0;
}

static int extent_add(struct change *change, uint64_t block, bool used) {
    struct change_extent *last = change->extents + change->extent_count - 1;

    if (block == 0) {
        return 0;
    }
    if (block >= change->blocks->block_count) {
        return -ERR_CORRUPT;
    }
    change->block_delta += used ? 1 : -1;
    if (change->extent_count > 0 && last->used == used &&
        last->extent.first + last->extent.count == block) {
        last->extent.count++;
        return 0;
    }
    if (change->extent_count == change->extents_max) {
        return -ERR_BUSY;
    }
    change->extents[change->extent_count++] = (struct change_extent){{block, 1}, used};
    return 0;
}

/* Nothing is left of a segment whose part becomes a hole. */
static bool is_all_of(struct bytes row, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < BLOCKS_PER_SEGMENT; i++) {
        if ((i < first || i >= first + count) && entry_at(row, i).block != 0) {
            return false;
        }
    }
    return true;
}

/* The part of a range that lies in one segment becomes a row of the change. */
static int row_add(struct change *change, const struct chunk_id *id, struct extent part,
                   const struct block_entry *entries) {
    struct change_row *row = &change->rows[change->row_count];
    uint8_t first = (uint8_t)(part.first % BLOCKS_PER_SEGMENT);
    struct bytes old = {0};

    assert(part.count > 0 && first + part.count <= BLOCKS_PER_SEGMENT);
    if (change->row_count == CHANGE_ROWS_MAX) {
        return -ERR_BUSY;
    }
    *row = (struct change_row){.key = chunk_key(id, 1 + part.first / BLOCKS_PER_SEGMENT),
                               .first = first,
                               .count = (uint8_t)part.count,
                               .entries = entries};
    int r = segment_get(change->kv, &row->key, &old);

    row->size = old.size;
    row->deleted = r == 0 && !entries && is_all_of(old, first, row->count);
    for (uint32_t i = 0; r == 0 && i < part.count; i++) {
        uint64_t block = entry_at(old, first + i).block;

        change->promised_holes +=
            change->has_promise && block == 0 && promise_has(&change->promise, part.first + i);
        r = extent_add(change, block, false);
    }
    for (uint32_t i = 0; r == 0 && entries && i < part.count; i++) {
        r = extent_add(change, entries[i].block, true);
    }
    if (r == 0 && (entries || old.size > 0)) {
        change->row_count++;
    }
    return r;
}

static int rows_add(struct change *change, const struct chunk_id *id, struct extent range,
                    const struct block_entry *entries) {
    uint64_t end = range.first + range.count;
    int r = 0;

    for (uint64_t at = range.first; r == 0 && at < end;) {
        uint64_t count = MIN(end - at, BLOCKS_PER_SEGMENT - at % BLOCKS_PER_SEGMENT);

        r = row_add(change, id, (struct extent){at, (uint32_t)count},
                    entries ? entries + (at - range.first) : NULL);
        at += count;
    }
    return r;
}

int change_entries(struct change *change, const struct chunk_id *id, struct extent range,
                   const struct block_entry *entries) {
    return rows_add(change, id, range, entries);
}

int change_holes(struct change *change, const struct chunk_id *id, struct extent range) {
    return rows_add(change, id, range, NULL);
}

int change_checksum(struct change *change, const struct chunk_id *id, uint64_t block,
                    const struct block_entry *entry) {
    struct change_row *row = &change->rows[change->row_count];
    uint8_t first = (uint8_t)(block % BLOCKS_PER_SEGMENT);
    struct bytes old = {0};

    if (change->row_count == CHANGE_ROWS_MAX) {
        return -ERR_BUSY;
    }
    *row = (struct change_row){.key = chunk_key(id, 1 + block / BLOCKS_PER_SEGMENT),
                               .first = first,
                               .count = 1,
                               .entries = entry};
    int r = segment_get(change->kv, &row->key, &old);

    row->size = old.size;
    if (r == 0 && entry_at(old, first).block != entry->block) {
        r = -ERR_CORRUPT;
    }
    change->row_count += r == 0;
    return r;
}

int change_promise(struct change *change, const struct chunk_id *id,
                   const struct store_head *head) {
    int r = promise_load(change->kv, id, head, &change->promise);

    change->has_promise = r == 0;
    return r;
}

int change_promised(struct change *change, struct store_head *head, uint64_t promised,
                    bool changed) {
    assert(change->has_promise);
    if (promised > change->promise.block_count) {
        return -ERR_CORRUPT; /* Its count does not fit its bits and holes. */
    }
    change->promised_delta +=
        BUG(KEPT_PROMISE) && !changed ? 0 : (int64_t)promised - head->promised;
    head->promised = (uint32_t)promised;
    change->promise_changed = changed;
    if (changed) {
        head->promise = (uint8_t)promise_kind(&change->promise);
    }
    return 0;
}

int change_row_delete(struct change *change, const struct kv_key *key, struct bytes value) {
    struct change_row *row = &change->rows[change->row_count];
    uint64_t index = kv_key_split(key).index % (1 << STORE_INDEX_BITS);
    struct store_head head;
    int r = 0;

    if (change->row_count == CHANGE_ROWS_MAX) {
        return -ERR_BUSY;
    }
    *row = (struct change_row){.key = *key, .deleted = true, .size = value.size};
    if (index == 0 && chunk_head_check(value, &head) == 0) {
        change->promised_delta -= head.promised;
    }
    if (store_row_is_segment(index)) {
        r = segment_check(value);
        for (uint32_t i = 0; r == 0 && i < BLOCKS_PER_SEGMENT; i++) {
            r = extent_add(change, entry_at(value, i).block, false);
        }
    }
    change->row_count += r == 0;
    return r;
}

/* Shell's sort: most changes have two extents, and nothing may be allocated here. */
static void extents_sort(struct change_extent *extents, uint32_t count) {
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; i++) {
            struct change_extent moved = extents[i];
            uint32_t at = i;

            for (; at >= gap && extents[at - gap].extent.first > moved.extent.first; at -= gap) {
                extents[at] = extents[at - gap];
            }
            extents[at] = moved;
        }
    }
}

static uint64_t bitmap_row(uint64_t block) {
    return block / STORE_BITMAP_BITS;
}

/* Calls of one row follow each other, as the extents are sorted. */
static int bitmaps_read(struct change *change) {
    uint64_t last = UINT64_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < change->extent_count; i++) {
        struct extent extent = change->extents[i].extent;

        for (uint64_t row = bitmap_row(extent.first);
             row <= bitmap_row(extent.first + extent.count - 1); row++) {
            struct kv_key key = store_owner_key(STORE_ROW_BITMAP, 0, row);
            struct bytes value = {0};

            if (row == last) {
                continue;
            }
            if (count == 2 * change->extents_max) {
                return -ERR_BUSY;
            }
            int r = kv_get(change->kv, &key, &value);
            if (r < 0 && r != -ERR_NOT_FOUND) {
                return r;
            }
            change->bitmaps[count++] = r < 0 ? (struct bytes){0} : value;
            last = row;
        }
    }
    change->bitmap_count = count;
    return 0;
}

/* A bitmap row in the making: the bytes [low, high) of bits differ from the stored ones. */
struct bitmap_edit {
    struct store_bitmap content;
    uint64_t row;
    size_t old_size;
    uint32_t low;
    uint32_t high;
};

static void edit_start(struct bitmap_edit *edit, uint64_t row, struct bytes old) {
    memset(&edit->content, 0, sizeof edit->content);
    if (old.size > 0) {
        memcpy(&edit->content, old.data, MIN(old.size, sizeof edit->content));
    }
    edit->content.format = STORE_FORMAT;
    edit->row = row;
    edit->old_size = old.size;
    edit->low = sizeof edit->content.bits;
    edit->high = 0;
}

static bool edit_is_empty(const struct bitmap_edit *edit) {
    return edit->high == 0;
}

static size_t edit_from(const struct bitmap_edit *edit) {
    return edit->old_size > 0 ? offsetof(struct store_bitmap, bits) + edit->low : 0;
}

static size_t edit_bytes(const struct bitmap_edit *edit) {
    return edit_is_empty(edit) ? 0
                               : offsetof(struct store_bitmap, bits) + edit->high - edit_from(edit);
}

/* Bits so far away from the edit's that a patch of their own is shorter. */
static bool edit_is_far(const struct bitmap_edit *edit, uint32_t first) {
    return !edit_is_empty(edit) && first / 8 > edit->high + KV_ROW_RECORD_BYTES;
}

static int edit_apply(struct bitmap_edit *edit, uint32_t first, uint32_t end, bool used) {
    for (uint32_t bit = first; bit < end; bit++) {
        uint8_t mask = (uint8_t)(1U << bit % 8);
        uint8_t *byte = &edit->content.bits[bit / 8];

        /* Used twice or freed twice: two chunks claim the block. */
        if (((*byte & mask) != 0) == used) {
            return -ERR_CORRUPT;
        }
        *byte ^= mask;
    }
    edit->low = MIN(edit->low, first / 8);
    edit->high = MAX(edit->high, (end + 7) / 8);
    return 0;
}

/* One patch; or, with need, what it takes. The next one, of the same row, finds it there. */
static int edit_stage(struct change *change, struct bitmap_edit *edit, struct kv_need *need) {
    struct kv_key key = store_owner_key(STORE_ROW_BITMAP, 0, edit->row);
    const uint8_t *content = (const uint8_t *)&edit->content;
    size_t from = edit_from(edit);
    size_t bytes = edit_bytes(edit);
    int r = 0;

    assert(edit_is_empty(edit) || edit->low < edit->high);
    assert(from + bytes <= sizeof edit->content);
    if (bytes > 0 && need) {
        need->record_bytes += (uint32_t)(KV_ROW_RECORD_BYTES + bytes);
        need->value_bytes += (uint32_t)MAX(edit->old_size, from + bytes);
    } else if (bytes > 0) {
        r = kv_patch(change->kv, &key, from, (struct bytes){content + from, bytes});
    }
    edit->old_size = MAX(edit->old_size, from + bytes);
    edit->low = sizeof edit->content.bits;
    edit->high = 0;
    return r;
}

/* All patches of bitmap rows; or, with need, what they take. */
static int bitmaps_stage(struct change *change, struct kv_need *need) {
    struct bitmap_edit edit = {.row = UINT64_MAX};
    uint32_t count = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < change->extent_count; i++) {
        const struct change_extent *item = &change->extents[i];
        uint64_t end = item->extent.first + item->extent.count;

        for (uint64_t at = item->extent.first; r == 0 && at < end;) {
            uint64_t row = bitmap_row(at);
            uint64_t stop = MIN(end, (row + 1) * STORE_BITMAP_BITS);
            uint32_t first = (uint32_t)(at % STORE_BITMAP_BITS);

            if (row != edit.row || edit_is_far(&edit, first)) {
                r = edit_stage(change, &edit, need);
            }
            if (row != edit.row) {
                assert(count < change->bitmap_count);
                edit_start(&edit, row, change->bitmaps[count++]);
            }
            if (r == 0) {
                r = edit_apply(&edit, first, (uint32_t)(stop - row * STORE_BITMAP_BITS),
                               item->used);
            }
            at = stop;
        }
    }
    assert(r < 0 || count == change->bitmap_count);
    if (need) {
        need->rows += count;
    }
    return r < 0 ? r : edit_stage(change, &edit, need);
}

static size_t row_from(const struct change_row *row) {
    return row->size > 0
               ? offsetof(struct store_segment, entries) + row->first * sizeof(struct store_entry)
               : 0;
}

static size_t row_end(const struct change_row *row) {
    return offsetof(struct store_segment, entries) +
           (row->first + row->count) * sizeof(struct store_entry);
}

static int row_stage(struct change *change, const struct change_row *row) {
    struct store_segment segment = {.format = STORE_FORMAT};
    size_t from = row_from(row);

    if (row->deleted) {
        return kv_delete(change->kv, &row->key);
    }
    for (uint32_t i = 0; row->entries && i < row->count; i++) {
        store_entry_set(&segment.entries[row->first + i], row->entries[i].block,
                        row->entries[i].crc);
    }
    return kv_patch(change->kv, &row->key, from,
                    (struct bytes){(const uint8_t *)&segment + from, row_end(row) - from});
}

/* The target's total, and the promise's rows. */
static int promised_need(const struct change *change, struct kv_need *need) {
    int64_t total = (int64_t)change->blocks->promised_count + change->promised_delta;

    if (change->promise_changed) {
        struct promise_cost cost = promise_cost(&change->promise);

        need->rows += cost.rows;
        need->value_bytes += cost.value_bytes;
        need->record_bytes += cost.record_bytes;
    }
    if (change->promised_delta != 0) {
        need->rows++;
        need->value_bytes += (uint32_t)sizeof(struct store_promised);
        need->record_bytes += (uint32_t)(KV_ROW_RECORD_BYTES + sizeof(struct store_promised));
    }
    return total < 0 ? -ERR_CORRUPT : 0;
}

static int promised_stage(const struct change *change) {
    struct kv_key key = store_owner_key(STORE_ROW_PROMISED, 0, 0);
    int64_t total = (int64_t)change->blocks->promised_count + change->promised_delta;
    struct store_promised row = {.format = STORE_FORMAT,
                                 .block_count = (uint64_t)total,
                                 .changes = change->blocks->promised_changes + 1};

    if (change->promised_delta == 0) {
        return 0;
    }
    return kv_put(change->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
}

int change_need(struct change *change, struct kv_need *ret_need) {
    struct kv_need need = {.rows = change->row_count + 1,
                           .value_bytes = sizeof(struct store_head),
                           .record_bytes = KV_ROW_RECORD_BYTES + sizeof(struct store_head)};

    extents_sort(change->extents, change->extent_count);
    int r = bitmaps_read(change);
    r = r < 0 ? r : bitmaps_stage(change, &need);
    r = r < 0 ? r : promised_need(change, &need);
    for (uint32_t i = 0; i < change->row_count; i++) {
        const struct change_row *row = &change->rows[i];

        need.record_bytes += (uint32_t)KV_ROW_RECORD_BYTES;
        need.record_bytes += row->deleted ? 0 : (uint32_t)(row_end(row) - row_from(row));
        need.value_bytes += row->deleted ? 0 : (uint32_t)sizeof(struct store_segment);
    }
    if (r == 0) {
        *ret_need = need;
    }
    return r;
}

int change_stage(struct change *change) {
    int r = bitmaps_stage(change, NULL);

    if (r == 0) {
        r = promised_stage(change);
    }
    for (uint32_t i = 0; r == 0 && i < change->row_count; i++) {
        r = row_stage(change, &change->rows[i]);
    }
    return r;
}

int change_head(struct change *change, const struct chunk_id *id, const struct store_head *head,
                bool existed) {
    size_t from = existed && !change->has_promise ? offsetof(struct store_head, version) : 0;
    bool promises = head->promise != STORE_PROMISE_NONE;
    struct store_head row = *head;
    struct kv_key key = chunk_head_key(id);
    int r = 0;

    assert(head->length <= head->chunk_bytes && (change->has_promise || !promises));
    row.format = promises ? STORE_FORMAT_PROMISING : STORE_FORMAT;
    struct bytes value = {(const uint8_t *)&row + from,
                          (promises ? sizeof row : (size_t)STORE_HEAD_BYTES) - from};
    if (change->promise_changed) {
        r = promise_stage(change->kv, id, &change->promise);
    }
    if (r < 0) {
        return r;
    }
    return from > 0 ? kv_patch(change->kv, &key, from, value) : kv_put(change->kv, &key, value);
}

int change_head_delete(struct change *change, const struct chunk_id *id) {
    struct kv_key key = chunk_head_key(id);
    int r = change->has_promise ? promise_stage(change->kv, id, &change->promise) : 0;

    return r < 0 ? r : kv_delete(change->kv, &key);
}

uint64_t change_commit(struct change *change, uint64_t read_number) {
    uint64_t position = kv_commit(change->kv);

    assert(blocks_can_free(change->blocks, change->extent_count));
    change->blocks->promised_count =
        (uint64_t)((int64_t)change->blocks->promised_count + change->promised_delta);
    change->blocks->promised_changes += change->promised_delta != 0;
    for (uint32_t i = 0; i < change->extent_count; i++) {
        if (!change->extents[i].used) {
            blocks_free(change->blocks, change->extents[i].extent, position, read_number);
        }
    }
    return position;
}
