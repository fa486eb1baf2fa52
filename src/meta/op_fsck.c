/* fsck_list: rows of one kind as bulk, each {u16 bytes of value, key[24], value}, behind the
 * cursor: the key of the last row that the caller has got, or nothing.
 *
 * A row whose own checksum is wrong has FSCK_ROW_IS_BAD for the bytes of its value, and none.
 * Rows of slots are found slot by slot: an empty one costs one step of the walk. */
#include "base/endian.h"
#include "meta/group_internal.h"
#include "meta/operations.h"
#include <assert.h>
#include <string.h>

enum { FSCK_STEPS_MAX = 4096 };

static int type_of(uint32_t what, uint8_t *ret_space, enum row_type *ret_type) {
    static const struct {
        uint8_t space;
        enum row_type type;
    } types[] = {
        [FSCK_INODES] = {KV_SPACE_SLOT, ROW_INODE},
        [FSCK_DENTRIES] = {KV_SPACE_SLOT, ROW_DENTRY},
        [FSCK_PARTITIONS] = {KV_SPACE_SLOT, ROW_PARTITION},
        [FSCK_ORPHANS] = {KV_SPACE_OWNER, ROW_ORPHAN},
        [FSCK_QUEUE] = {KV_SPACE_OWNER, ROW_ORDER},
        [FSCK_INLINE] = {KV_SPACE_SLOT, ROW_INLINE},
        [FSCK_WRITERS] = {KV_SPACE_OWNER, ROW_WRITER},
        [FSCK_LOST] = {KV_SPACE_OWNER, ROW_LOST},
        [FSCK_MOVES] = {KV_SPACE_OWNER, ROW_MOVE},
        [FSCK_TRANSACTIONS] = {KV_SPACE_OWNER, ROW_TRANSACTION},
        [FSCK_SESSIONS] = {KV_SPACE_OWNER, ROW_SESSION},
        [FSCK_ENDED] = {KV_SPACE_OWNER, ROW_ENDED},
        [FSCK_SLOTS] = {KV_SPACE_OWNER, ROW_SLOTS},
    };

    if (what >= ARRAY_SIZE(types) || types[what].type == 0) {
        return -ERR_INVALID;
    }
    *ret_space = types[what].space;
    *ret_type = types[what].type;
    return 0;
}

static bool row_give(struct buffer *out, size_t limit, const struct kv_key *key,
                     struct bytes value) {
    size_t stored = value.size == FSCK_ROW_IS_BAD ? 0 : value.size;
    size_t total = sizeof(uint16_t) + KV_KEY_BYTES + stored;

    assert(out->size <= limit);
    if (total > limit - out->size) {
        return false;
    }
    uint8_t *to = out->data + out->size;
    store_le16(to, (uint16_t)value.size);
    memcpy(to + sizeof(uint16_t), key->bytes, KV_KEY_BYTES);
    if (stored > 0) {
        memcpy(to + sizeof(uint16_t) + KV_KEY_BYTES, value.data, stored);
    }
    out->size += total;
    return true;
}

/* Where the walk goes on when it has met a row of another type than the wanted one. */
static struct kv_key skip_to(const struct kv_key *key, uint8_t space, enum row_type type) {
    struct kv_key_fields fields = kv_key_split(key);
    bool passed = fields.type > (uint8_t)type;

    return kv_key_make((struct kv_key_fields){
        .space = fields.slot == UINT16_MAX && passed ? space + 1 : space,
        .slot = (uint16_t)(fields.slot + (passed ? 1 : 0)),
        .type = (uint8_t)type,
    });
}

static int rows_walk(struct transaction *transaction, struct kv_cursor *cursor, enum row_type type,
                     struct call *call) {
    size_t limit = MIN((size_t)call->request.fsck_list.bytes_max, call->bulk_in.capacity);
    uint8_t space = cursor->end.bytes[0] - 1;

    for (int i = 0; i < FSCK_STEPS_MAX; i++) {
        struct bytes value;
        struct kv_key before = cursor->key;
        bool inclusive = cursor->inclusive;
        int r = transaction_next(transaction, cursor, &value);
        bool moved = cursor->inclusive != inclusive || kv_key_compare(&cursor->key, &before) != 0;

        if (r == -ERR_CORRUPT && moved) {
            value = (struct bytes){NULL, FSCK_ROW_IS_BAD};
        } else if (r < 0) {
            return r;
        }
        if (kv_key_split(&cursor->key).type != (uint8_t)type) {
            cursor->key = skip_to(&cursor->key, space, type);
            cursor->inclusive = true;
        } else if (!row_give(&call->bulk_in, limit, &cursor->key, value)) {
            return -ERR_TOO_SMALL;
        }
    }
    group_again(transaction->group);
    return -ERR_PENDING;
}

static int rows_list(struct transaction *transaction, struct kv_cursor *cursor, enum row_type type,
                     struct call *call) {
    call->bulk_in.size = 0;
    transaction_walk_resume(call, cursor);
    int r = rows_walk(transaction, cursor, type, call);
    if (r == -ERR_PENDING && call->bulk_in.size == 0) {
        transaction_walk_keep(call, cursor);
    }
    return r;
}

int op_fsck_list(struct transaction *transaction, struct call *call) {
    const struct fsck_list_request *request = &call->request.fsck_list;
    struct kv_cursor cursor;
    enum row_type type;
    uint8_t space;

    int r = type_of(request->what, &space, &type);
    if (r < 0 || (request->cursor.size != 0 && request->cursor.size != KV_KEY_BYTES)) {
        return -ERR_INVALID;
    }
    struct kv_key from = kv_key_make((struct kv_key_fields){.space = space, .type = (uint8_t)type});
    struct kv_key to = kv_key_make((struct kv_key_fields){.space = (uint8_t)(space + 1)});
    kv_cursor_init(&cursor, &from, &to);
    cursor.skips_max = FSCK_STEPS_MAX;
    if (request->cursor.size > 0) {
        memcpy(cursor.key.bytes, request->cursor.data, KV_KEY_BYTES);
        cursor.inclusive = false;
        if (kv_key_compare(&cursor.key, &from) < 0) {
            return -ERR_INVALID;
        }
    }
    r = rows_list(transaction, &cursor, type, call);
    bool partial = (r == -ERR_TOO_SMALL || r == -ERR_PENDING) && call->bulk_in.size > 0;
    if (r != -ERR_NOT_FOUND && !partial) {
        return r;
    }
    const struct log_life life = kv_life(transaction->group->kv);
    call->reply.fsck_list = (struct fsck_list_reply){.end = r == -ERR_NOT_FOUND,
                                                     .term = kv_term(transaction->group->kv),
                                                     .life_high = life.high,
                                                     .life_low = life.low};
    return 0;
}
