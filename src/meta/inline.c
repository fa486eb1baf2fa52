/* Pieces of INLINE_PIECE_BYTES. */
#include "meta/inline.h"
#include <assert.h>
#include <string.h>

/* Bytes [from, to) of one piece, by a patch where the row exists. */
static int piece_put(struct transaction *transaction, struct kv_key *key, size_t from,
                     struct bytes data) {
    uint8_t whole[sizeof(struct inline_row) + INLINE_PIECE_BYTES];
    struct inline_row head = {.format = META_FORMAT, .epoch = transaction->epoch};
    struct bytes value;
    struct bytes old;

    int r = transaction_get(transaction, key, &value);
    if (r == 0) {
        r = inline_row_check(value, &old);
        r = r < 0 ? r : TRANSACTION_PATCH(transaction, key, &head, epoch, data);
        return r < 0 ? r : transaction_patch(transaction, key, sizeof head + from, data);
    }
    if (r != -ERR_NOT_FOUND) {
        return r;
    }
    memcpy(whole, &head, sizeof head);
    memset(whole + sizeof head, 0, from);
    memcpy(whole + sizeof head + from, data.data, data.size);
    return transaction_put(transaction, key, whole, sizeof head + from + data.size);
}

int inline_put(struct transaction *transaction, struct ino ino, uint64_t offset,
               struct bytes data) {
    assert(offset + data.size <= INLINE_BYTES_MAX);
    while (data.size > 0) {
        uint64_t piece = offset / INLINE_PIECE_BYTES;
        size_t from = (size_t)(offset % INLINE_PIECE_BYTES);
        size_t count = MIN(data.size, INLINE_PIECE_BYTES - from);
        struct kv_key key = key_inline(ino, piece);

        int r = piece_put(transaction, &key, from, (struct bytes){data.data, count});
        if (r < 0) {
            return r;
        }
        offset += count;
        data = (struct bytes){data.data + count, data.size - count};
    }
    return 0;
}

int inline_get(struct transaction *transaction, struct ino ino, uint64_t size, struct buffer *out) {
    if (size > out->capacity - out->size) {
        return -ERR_TOO_SMALL;
    }
    uint8_t *to = out->data + out->size;
    for (uint64_t at = 0; at < size; at += INLINE_PIECE_BYTES) {
        struct kv_key key = key_inline(ino, at / INLINE_PIECE_BYTES);
        size_t want = (size_t)MIN(size - at, (uint64_t)INLINE_PIECE_BYTES);
        struct bytes data = {0};
        struct bytes value;

        int r = transaction_get(transaction, &key, &value);
        r = r < 0 ? r : inline_row_check(value, &data);
        if (r < 0 && r != -ERR_NOT_FOUND) {
            return r;
        }
        size_t have = MIN(want, data.size);
        if (have > 0) {
            memcpy(to + at, data.data, have);
        }
        memset(to + at + have, 0, want - have);
    }
    out->size += (size_t)size;
    return 0;
}

int inline_drop(struct transaction *transaction, struct ino ino, const struct inode_row *row) {
    uint64_t size = row->data_state == DATA_INLINE ? MIN(row->size, (uint64_t)INLINE_BYTES_MAX) : 0;

    for (uint64_t at = 0; at < size; at += INLINE_PIECE_BYTES) {
        struct kv_key key = key_inline(ino, at / INLINE_PIECE_BYTES);
        int r = transaction_delete(transaction, &key);

        if (r < 0) {
            return r;
        }
    }
    return 0;
}
