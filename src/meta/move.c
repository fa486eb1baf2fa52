/* M rows. */
#include "meta/move.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include <assert.h>

static struct kv_key key_move(struct ino ino, uint32_t generation, const struct session *session) {
    return key_owner(ROW_MOVE, ino.value, generation, session->id.value);
}

static struct open_entry *entry_of(const struct transaction *transaction, struct ino ino) {
    return opens_find(&transaction->group->opens, ino, transaction->session);
}

static void count_stage(struct transaction *transaction, struct ino ino, uint32_t count) {
    transaction_effect(transaction,
                       (struct effect){.kind = EFFECT_MOVES, .ino = ino, .counts = {count}});
}

/* One less; a damaged row may have left it out of count. */
static void less_stage(struct transaction *transaction, struct ino ino) {
    uint32_t count = entry_of(transaction, ino)->move_count;

    count_stage(transaction, ino, count > 0 ? count - 1 : 0);
}

/* The row becomes an order. A damaged one stays, and is no move: its chunks are the scrub's. */
static int row_lose(struct transaction *transaction, const struct kv_key *key, struct bytes value) {
    const struct order_row *row;

    if (order_row_check(value, &row) < 0) {
        return 0;
    }
    struct order_row order = *row;
    order.epoch = transaction->epoch;
    int r = order_put(transaction, (struct ino){kv_key_split(key).id}, &order);
    return r < 0 ? r : transaction_delete(transaction, key);
}

/* Up to count moves of the session, from the oldest on. */
static int rows_lose(struct transaction *transaction, const struct open_entry *entry,
                     uint32_t count) {
    struct kv_key from = key_owner(ROW_MOVE, entry->ino.value, 0, 0);
    struct kv_key to = key_owner(ROW_MOVE, entry->ino.value, UINT32_MAX, UINT64_MAX);
    struct kv_cursor cursor;
    struct bytes value;
    int r = 0;

    kv_cursor_init(&cursor, &from, &to);
    while (r == 0 && count > 0) {
        r = transaction_next(transaction, &cursor, &value);
        if (r == 0 && kv_key_split(&cursor.key).index == entry->session->id.value) {
            r = row_lose(transaction, &cursor.key, value);
            count--;
        } else if (r == -ERR_CORRUPT) {
            r = 0; /* it has moved past that row */
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int move_begin(struct transaction *transaction, struct ino ino, const struct inode_row *row,
               uint32_t generation) {
    const struct open_entry *entry = entry_of(transaction, ino);
    struct kv_key key = key_move(ino, generation, transaction->session);
    struct inode_row moved = *row;
    uint32_t count = entry->move_count + 1;
    int r = 0;

    assert(entry->write_count > 0 && entry->has_row);
    if (count > MOVES_MAX) {
        r = rows_lose(transaction, entry, 1);
        count = MOVES_MAX;
    }
    moved.chunk_generation = generation;
    struct order_row order = order_make(transaction, &moved, ORDER_DELETE);
    count_stage(transaction, ino, count);
    return r < 0 ? r : transaction_put(transaction, &key, &order, sizeof order);
}

int move_check(struct transaction *transaction, struct ino ino, uint32_t generation) {
    struct kv_key key = key_move(ino, generation, transaction->session);
    const struct order_row *row;
    struct bytes value;

    int r = transaction_get(transaction, &key, &value);
    return r < 0 ? r : order_row_check(value, &row);
}

int move_find(struct transaction *transaction, struct ino ino, uint32_t generation) {
    struct kv_key from = key_owner(ROW_MOVE, ino.value, generation, 0);
    struct kv_key to = key_owner(ROW_MOVE, ino.value, generation, UINT64_MAX);
    struct kv_cursor cursor;
    struct bytes value;

    kv_cursor_init(&cursor, &from, &to);
    int r = transaction_next(transaction, &cursor, &value);
    return r == -ERR_CORRUPT ? 0 : r; /* there is a row, whatever it holds */
}

int move_commit(struct transaction *transaction, struct ino ino, uint32_t generation) {
    struct kv_key key = key_move(ino, generation, transaction->session);

    less_stage(transaction, ino);
    return transaction_delete(transaction, &key);
}

int move_lose(struct transaction *transaction, struct ino ino, uint32_t generation) {
    struct kv_key key = key_move(ino, generation, transaction->session);
    struct bytes value;

    int r = transaction_get(transaction, &key, &value);
    if (r < 0) {
        return r;
    }
    less_stage(transaction, ino);
    return row_lose(transaction, &key, value);
}

int moves_lose(struct transaction *transaction, const struct open_entry *entry) {
    return entry->move_count > 0 ? rows_lose(transaction, entry, MOVES_MAX) : 0;
}
