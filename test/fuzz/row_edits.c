/* The contract is in row_edits.h. */
#include "row_edits.h"
#include "base/crc32c.h"
#include "memory_env.h"

struct edited {
    struct kv_key key;
    uint8_t value[KV_VALUE_BYTES_MAX];
    size_t size;
    bool deleted;
};

static struct kv_cursor all_rows(void) {
    struct kv_cursor cursor;
    struct kv_key from, to;

    memset(from.bytes, 0, sizeof from.bytes);
    memset(to.bytes, UINT8_MAX, sizeof to.bytes);
    kv_cursor_init(&cursor, &from, &to);
    return cursor;
}

/* 0, or -ERR_NOT_FOUND behind the last one. What is not in memory is waited for. */
static int row_next(struct memory_env *world, struct kv *kv, struct kv_cursor *cursor,
                    struct bytes *ret_value) {
    int r;

    while ((r = kv_next(kv, cursor, ret_value)) == -ERR_PENDING) {
        (void)memory_env_pump(world, 1);
        kv_step(kv);
    }
    assert(r == 0 || r == -ERR_NOT_FOUND);
    return r;
}

void row_edits_walk(struct memory_env *world, struct kv *kv,
                    void (*see)(void *context, const struct kv_key *key, struct bytes value),
                    void *context) {
    struct kv_cursor cursor = all_rows();
    struct bytes value;

    while (row_next(world, kv, &cursor, &value) == 0) {
        see(context, &cursor.key, value);
    }
}

static void sum_row(void *context, const struct kv_key *key, struct bytes value) {
    uint32_t *sum = context;

    *sum = crc32c(crc32c(*sum, key->bytes, KV_KEY_BYTES), value.data, value.size);
}

uint32_t row_edits_sum(struct memory_env *world, struct kv *kv) {
    uint32_t sum = 0;

    row_edits_walk(world, kv, sum_row, &sum);
    return sum;
}

/* The row of that place, counted round and round; false: there is none at all. */
static bool row_get(struct memory_env *world, struct kv *kv, uint64_t place,
                    struct edited *ret_row) {
    struct kv_cursor cursor = all_rows();
    struct bytes value;
    uint64_t count = 0;

    while (row_next(world, kv, &cursor, &value) == 0) {
        count++;
    }
    cursor = all_rows();
    for (uint64_t i = 0; count > 0 && i <= place % count; i++) {
        int r = row_next(world, kv, &cursor, &value);

        assert(r == 0 && value.size <= sizeof ret_row->value);
    }
    if (count > 0) {
        ret_row->key = cursor.key;
        ret_row->size = value.size;
        memcpy(ret_row->value, value.data, value.size);
    }
    return count > 0;
}

/* Spaces above those of owners are the engine's, which reads no such row from its log. */
static void row_write(struct kv *kv, const struct edited *row) {
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = (uint32_t)row->size,
                                 .record_bytes = KV_ROW_RECORD_BYTES + (uint32_t)row->size};
    struct kv_grant grant;

    if (kv_key_split(&row->key).space > KV_SPACE_SLOT ||
        kv_admit(kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    kv_begin(kv, &grant);
    int r = row->deleted ? kv_delete(kv, &row->key)
                         : kv_put(kv, &row->key, (struct bytes){row->value, row->size});
    assert(r == 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
}

/* As many as it says and are there, over what it has from `at` on. */
static void bytes_take(struct wire_cursor *cursor, struct edited *row, size_t at, size_t said) {
    size_t size = MIN(MIN(said, cursor->size), sizeof row->value - at);
    const uint8_t *from = wire_take(cursor, size);

    if (from && size > 0) {
        memcpy(row->value + at, from, size);
        row->size = MAX(row->size, at + size);
    }
}

static void key_take(struct wire_cursor *cursor, struct edited *row) {
    size_t at = wire_take_number(cursor, 1) % KV_KEY_BYTES;
    size_t size = wire_take_number(cursor, 1) % (KV_KEY_BYTES - at + 1);
    const uint8_t *from = wire_take(cursor, size);

    if (from) {
        memcpy(row->key.bytes + at, from, size);
    }
}

static void edit_one(struct memory_env *world, struct kv *kv, struct wire_cursor *cursor) {
    enum row_edit edit = (enum row_edit)(wire_take_number(cursor, 1) % ROW_EDIT_COUNT);
    struct edited row = {.size = 0};
    const uint8_t *key = edit == ROW_PUT ? wire_take(cursor, KV_KEY_BYTES) : NULL;

    if (edit == ROW_PUT ? !key : !row_get(world, kv, wire_take_number(cursor, 1), &row)) {
        return;
    }
    if (edit == ROW_PATCH) {
        size_t at = wire_take_number(cursor, 2) % (row.size + 1);

        bytes_take(cursor, &row, at, wire_take_number(cursor, 1));
    } else if (edit == ROW_RENAME) {
        key_take(cursor, &row);
    } else if (edit == ROW_DELETE) {
        row.deleted = true;
    } else {
        if (key) {
            memcpy(row.key.bytes, key, KV_KEY_BYTES);
        }
        row.size = 0;
        bytes_take(cursor, &row, 0, wire_take_number(cursor, 2));
    }
    row_write(kv, &row);
}

void row_edits_play(struct memory_env *world, struct kv *kv, struct wire_cursor *cursor) {
    uint64_t count = wire_take_number(cursor, 1) % (ROW_EDITS_MAX + 1);

    for (uint64_t i = 0; i < count && cursor->size > 0 && !cursor->bad; i++) {
        edit_one(world, kv, cursor);
    }
}

void row_edit_patch(struct buffer *out, uint8_t row, uint16_t at, struct bytes bytes) {
    wire_give_number(out, ROW_PATCH, 1);
    wire_give_number(out, row, 1);
    wire_give_number(out, at, 2);
    wire_give_number(out, bytes.size, 1);
    wire_give(out, bytes.data, bytes.size);
}

void row_edit_put(struct buffer *out, const struct kv_key *key, struct bytes value) {
    wire_give_number(out, ROW_PUT, 1);
    wire_give(out, key->bytes, KV_KEY_BYTES);
    wire_give_number(out, value.size, 2);
    wire_give(out, value.data, value.size);
}
