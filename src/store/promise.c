/* See promise.h. */
#include "store/promise.h"
#include "store/chunk.h"
#include <assert.h>

enum { ROW_BYTES = STORE_PROMISE_BLOCKS / 8 };

/* Bytes of bits that row i has. */
static uint32_t row_bytes(const struct promise *promise, uint32_t i) {
    uint32_t all = promise->block_count / 8;

    return all <= i * ROW_BYTES ? 0 : MIN(all - i * ROW_BYTES, (uint32_t)ROW_BYTES);
}

static struct kv_key row_key(const struct chunk_id *id, uint32_t i) {
    return chunk_key(id, STORE_INDEX_PROMISE + i);
}

static bool is_any(const uint8_t *bits, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bits[i]) {
            return true;
        }
    }
    return false;
}

static int row_take(struct promise *promise, uint32_t i, struct bytes value) {
    size_t head = offsetof(struct store_promise, bits);
    uint32_t bytes = row_bytes(promise, i);

    if (value.size < head) {
        return -ERR_CORRUPT;
    }
    if (value.data[0] != STORE_FORMAT) {
        return value.data[0] > STORE_FORMAT ? -ERR_NEWER_FORMAT : -ERR_CORRUPT;
    }
    bool has_before = value.data[1];
    if (value.data[1] > 1 || value.size != head + (has_before ? 2 : 1) * (size_t)bytes) {
        return -ERR_CORRUPT;
    }
    memcpy(promise->bits + (size_t)i * ROW_BYTES, value.data + head, bytes);
    if (has_before) {
        memcpy(promise->before + (size_t)i * ROW_BYTES, value.data + head + bytes, bytes);
    }
    promise->rows |= 1U << i;
    return 0;
}

int promise_load(struct kv *kv, const struct chunk_id *id, const struct store_head *head,
                 struct promise *ret_promise) {
    struct promise *promise = ret_promise;

    promise->block_count = head->chunk_bytes / BLOCK_BYTES;
    promise->rows = 0;
    memset(promise->bits, head->promise == STORE_PROMISE_ALL ? 0xff : 0, promise->block_count / 8);
    memset(promise->before, 0, promise->block_count / 8);
    for (uint32_t i = 0; head->promise == STORE_PROMISE_SOME && row_bytes(promise, i) > 0; i++) {
        struct kv_key key = row_key(id, i);
        struct bytes value;
        int r = kv_get(kv, &key, &value);

        r = r == 0 ? row_take(promise, i, value) : r;
        if (r < 0 && r != -ERR_NOT_FOUND) {
            return r;
        }
    }
    return 0;
}

uint32_t promise_count(const struct promise *promise, struct extent range) {
    uint32_t count = 0;

    for (uint64_t block = range.first; block < range.first + range.count;) {
        if (block % 8 == 0 && block + 8 <= range.first + range.count) {
            count += (uint32_t)__builtin_popcount(promise->bits[block / 8]);
            block += 8;
        } else {
            count += promise_has(promise, block);
            block++;
        }
    }
    return count;
}

void promise_add(struct promise *promise, struct extent range) {
    assert(range.first + range.count <= promise->block_count);
    for (uint64_t block = range.first; block < range.first + range.count; block++) {
        promise->bits[block / 8] = (uint8_t)(promise->bits[block / 8] | 1U << (block % 8));
    }
}

static void bit_drop(uint8_t *bits, uint64_t block) {
    bits[block / 8] = (uint8_t)(bits[block / 8] & ~(1U << (block % 8)));
}

void promise_drop(struct promise *promise, struct extent range) {
    assert(range.first + range.count <= promise->block_count);
    for (uint64_t block = range.first; block < range.first + range.count; block++) {
        bit_drop(promise->bits, block);
        bit_drop(promise->before, block);
    }
}

void promise_forget_before(struct promise *promise) {
    memset(promise->before, 0, promise->block_count / 8);
}

void promise_keep_before(struct promise *promise) {
    memcpy(promise->before, promise->bits, promise->block_count / 8);
}

bool promise_take_back(struct promise *promise, struct extent *range, uint64_t *ret_block) {
    while (range->count > 0) {
        uint64_t block = range->first++;

        range->count--;
        if (promise_has(promise, block) && !(promise->before[block / 8] >> (block % 8) & 1)) {
            bit_drop(promise->bits, block);
            *ret_block = block;
            return true;
        }
    }
    return false;
}

enum store_promise_kind promise_kind(const struct promise *promise) {
    size_t size = promise->block_count / 8;
    size_t full = 0;

    while (full < size && promise->bits[full] == 0xff) {
        full++;
    }
    if (full == size && !is_any(promise->before, size)) {
        return STORE_PROMISE_ALL;
    }
    return is_any(promise->bits, size) ? STORE_PROMISE_SOME : STORE_PROMISE_NONE;
}

/* Without bits there is no row, whatever was there before. */
static bool row_is_wanted(const struct promise *promise, uint32_t i) {
    return promise_kind(promise) == STORE_PROMISE_SOME &&
           is_any(promise->bits + (size_t)i * ROW_BYTES, row_bytes(promise, i));
}

struct promise_cost promise_cost(const struct promise *promise) {
    struct promise_cost cost = {0};

    for (uint32_t i = 0; row_bytes(promise, i) > 0; i++) {
        bool wanted = row_is_wanted(promise, i);

        if (wanted || (promise->rows >> i & 1)) {
            uint32_t bytes =
                wanted ? (uint32_t)offsetof(struct store_promise, bits) + 2 * row_bytes(promise, i)
                       : 0;

            cost.rows++;
            cost.value_bytes += bytes;
            cost.record_bytes += (uint32_t)KV_ROW_RECORD_BYTES + bytes;
        }
    }
    return cost;
}

static int row_put(struct kv *kv, const struct chunk_id *id, const struct promise *promise,
                   uint32_t i) {
    struct store_promise row = {.format = STORE_FORMAT};
    struct kv_key key = row_key(id, i);
    uint32_t bytes = row_bytes(promise, i);
    const uint8_t *before = promise->before + (size_t)i * ROW_BYTES;
    size_t size = offsetof(struct store_promise, bits) + bytes;

    memcpy(row.bits, promise->bits + (size_t)i * ROW_BYTES, bytes);
    if (is_any(before, bytes)) {
        row.has_before = 1;
        memcpy(row.bits + bytes, before, bytes);
        size += bytes;
    }
    return kv_put(kv, &key, (struct bytes){(const uint8_t *)&row, size});
}

int promise_stage(struct kv *kv, const struct chunk_id *id, const struct promise *promise) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && row_bytes(promise, i) > 0; i++) {
        struct kv_key key = row_key(id, i);

        if (row_is_wanted(promise, i)) {
            r = row_put(kv, id, promise, i);
        } else if (promise->rows >> i & 1) {
            r = kv_delete(kv, &key);
        }
    }
    return r;
}
