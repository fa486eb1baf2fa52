/* Rows from disk: what was written is accepted, and nothing that is cut, too long, of a newer
 * format or plainly wrong; random bytes are survived. */
#include "unit.h"
#include "base/err.h"
#include "base/prng.h"
#include "meta/group_format.h"
#include "meta/rows.h"
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES_MAX = 2048 };

/* One type for all checks; the row itself is not looked at. */
#define CHECKER(name)                                                                              \
    static int check_##name(struct bytes value) {                                                  \
        const struct name##_row *row;                                                              \
        return name##_row_check(value, &row);                                                      \
    }
CHECKER(partition)
CHECKER(dentry)
CHECKER(inode)
CHECKER(group)
CHECKER(session)
CHECKER(mark)
CHECKER(order)
CHECKER(counters)
CHECKER(slots)
CHECKER(lost)

static int check_small(struct bytes value) {
    return check_inode(value);
}

static int check_inline(struct bytes value) {
    struct bytes data;

    return inline_row_check(value, &data);
}

static int check_outcome(struct bytes value) {
    const struct outcome_head *head;
    struct bytes reply;

    return outcome_check(value, &head, &reply);
}

static const struct partition_row partition = {
    .format = META_FORMAT, .state = PARTITION_LIVE, .mode = MODE_DIRECTORY | 0755};
static const struct inode_row inode = {.format = META_FORMAT,
                                       .data_state = DATA_CHUNKED,
                                       .mode = MODE_REGULAR | 0644,
                                       .nlink = 1,
                                       .chunk_bytes = CHUNK_BYTES_DEFAULT,
                                       .stripe_count = 1};
static const struct inode_row small = {
    .format = META_FORMAT, .data_state = DATA_INLINE, .mode = MODE_REGULAR | 0644, .nlink = 1};
static const struct group_row group = {.format = META_FORMAT, .hash_bits = 51};
static const struct counters_row counters = {.format = META_FORMAT,
                                             .ino_reserved = 9,
                                             .generation_reserved = 7,
                                             .generation_next = 6,
                                             .inode_count = 3,
                                             .directory_count = 3};
static const struct slots_row slots = {
    .format = META_FORMAT, .state = SLOTS_MINE, .count = 100, .opened = 100};
static const struct lost_row lost = {.format = META_FORMAT,
                                     .counter_from = 9,
                                     .counter_to = 10,
                                     .generation_from = 20,
                                     .generation_to = 30};
static const struct session_row session = {.format = META_FORMAT, .state = SESSION_LIVE};
static const struct mark_row mark = {.format = META_FORMAT};
static const struct order_row order = {.format = META_FORMAT,
                                       .kind = ORDER_CUT,
                                       .chunk_bytes = CHUNK_BYTES_DEFAULT,
                                       .stripe_count = 1};
static const struct outcome_head outcome = {.format = META_FORMAT};
static const uint8_t inline_value[sizeof(struct inline_row) + 5] = {META_FORMAT};
/* An entry "abc" of ino 5, a regular file. */
static const uint8_t dentry[sizeof(struct dentry_row) + 3] = {
    META_FORMAT, 8, 0, 3, [16] = 5, [24] = 'a', 'b', 'c'};

static const struct {
    const char *name;
    int (*check)(struct bytes value);
    const void *good;
    size_t size;
    size_t size_max; /* longer values are accepted up to this; 0: none */
} rows[] = {
    {"partition", check_partition, &partition, sizeof partition, 0},
    {"dentry", check_dentry, dentry, sizeof dentry, 0},
    {"inode", check_inode, &inode, sizeof inode, 0},
    {"inline", check_inline, inline_value, sizeof inline_value,
     sizeof(struct inline_row) + INLINE_PIECE_BYTES},
    {"group", check_group, &group, sizeof group, 0},
    {"counters", check_counters, &counters, sizeof counters, 0},
    {"session", check_session, &session, sizeof session, 0},
    {"mark", check_mark, &mark, sizeof mark, 0},
    {"slots", check_slots, &slots, sizeof slots, 0},
    {"lost", check_lost, &lost, sizeof lost, 0},
    {"order", check_order, &order, sizeof order, 0},
    {"outcome", check_outcome, &outcome, sizeof outcome, VALUE_BYTES_MAX},
};

/* In memory of exactly its size, so that a sanitizer sees a read beyond it. */
static int check_exact(size_t index, const void *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);

    assert_non_null(copy);
    memcpy(copy, data, size);
    int r = rows[index].check((struct bytes){copy, size});
    free(copy);
    return r;
}

static void test_good_and_cut(void **state) {
    uint8_t value[VALUE_BYTES_MAX + 1] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t size = rows[i].size;

        assert_int_equal(check_exact(i, rows[i].good, size), 0);
        assert_int_equal(check_exact(i, rows[i].good, 0), -ERR_CORRUPT);
        memcpy(value, rows[i].good, size);
        if (rows[i].size_max == 0) {
            assert_int_equal(check_exact(i, rows[i].good, size - 1), -ERR_CORRUPT);
            assert_int_equal(check_exact(i, value, size + 1), -ERR_CORRUPT);
        } else if (rows[i].size_max < VALUE_BYTES_MAX) {
            assert_int_equal(check_exact(i, value, rows[i].size_max), 0);
            assert_int_equal(check_exact(i, value, rows[i].size_max + 1), -ERR_CORRUPT);
        }
        value[0]++;
        assert_int_equal(check_exact(i, value, size), -ERR_NEWER_FORMAT);
        value[0] = 0;
        assert_int_equal(check_exact(i, value, size), -ERR_CORRUPT);
    }
}

/* Any bytes: an answer of the three, and no read beyond the value. */
static void test_random(void **state) {
    uint8_t value[300];
    struct prng prng;

    (void)state;
    prng_init(&prng, 5);
    for (int round = 0; round < 20000; round++) {
        size_t i = (size_t)prng_below(&prng, ARRAY_SIZE(rows));
        size_t size = (size_t)prng_below(&prng, sizeof value);

        for (size_t at = 0; at < size; at++) {
            value[at] = (uint8_t)prng_next(&prng);
        }
        if (prng_chance(&prng, 1, 2)) {
            size = MIN(rows[i].size, sizeof value);
            memcpy(value, rows[i].good, size);
            value[prng_below(&prng, size)] ^= (uint8_t)(1 << prng_below(&prng, 8));
        }
        int r = check_exact(i, value, size);
        assert_true(r == 0 || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT);
    }
}

#define ASSERT_BAD(type, good, field, bad)                                                         \
    do {                                                                                           \
        struct type changed = good;                                                                \
        changed.field = bad;                                                                       \
        assert_int_equal(check_##good((struct bytes){(const uint8_t *)&changed, sizeof changed}),  \
                         -ERR_CORRUPT);                                                            \
    } while (0)

static void test_wrong_fields(void **state) {
    (void)state;
    ASSERT_BAD(partition_row, partition, state, 0);
    ASSERT_BAD(partition_row, partition, state, PARTITION_DYING + 1);
    ASSERT_BAD(partition_row, partition, depth, 3);
    ASSERT_BAD(partition_row, partition, reserved, 1);
    ASSERT_BAD(partition_row, partition, reserved3, 1);
    ASSERT_BAD(partition_row, partition, mode, MODE_REGULAR | 0755);
    ASSERT_BAD(inode_row, inode, mode, 0644);
    ASSERT_BAD(inode_row, inode, mode, MODE_LINK | 0777); /* a link with chunks */
    ASSERT_BAD(inode_row, inode, data_state, DATA_CHUNKED + 1);
    ASSERT_BAD(inode_row, inode, flags, 0x8000);
    ASSERT_BAD(inode_row, inode, size, FILE_BYTES_MAX + 1);
    ASSERT_BAD(inode_row, inode, stripe_count, 0);
    ASSERT_BAD(inode_row, inode, chunk_bytes, 1000);
    ASSERT_BAD(inode_row, small, blocks_high, 1);
    ASSERT_BAD(inode_row, small, flags, INODE_COUNTED);
    ASSERT_BAD(group_row, group, hash_bits, 52);
    ASSERT_BAD(group_row, group, reserved[5], 1);
    ASSERT_BAD(counters_row, counters, ino_reserved, UINT64_C(1) << INO_COUNTER_BITS);
    ASSERT_BAD(session_row, session, state, 0);
    ASSERT_BAD(session_row, session, state, SESSION_EVICTING + 1);
    ASSERT_BAD(counters_row, counters, reserved, 1);
    ASSERT_BAD(lost_row, lost, reserved[6], 1);
    ASSERT_BAD(lost_row, lost, counter_from, 11);
    ASSERT_BAD(lost_row, lost, generation_from, 31);
    ASSERT_BAD(counters_row, counters, generation_next, 8);
    ASSERT_BAD(counters_row, counters, directory_count, 4);
    ASSERT_BAD(slots_row, slots, state, 0);
    ASSERT_BAD(slots_row, slots, state, SLOTS_GIVEN); /* to nobody */
    ASSERT_BAD(slots_row, slots, given_to, 5);        /* and mine */
    ASSERT_BAD(slots_row, slots, count, 0);
    ASSERT_BAD(slots_row, slots, count, 65537);
    ASSERT_BAD(slots_row, slots, opened, 101);
    ASSERT_BAD(slots_row, slots, reserved[1], 1);
    ASSERT_BAD(slots_row, slots, reserved2, 1);
    ASSERT_BAD(mark_row, mark, reserved[0], 1);
    ASSERT_BAD(order_row, order, kind, 0);
    ASSERT_BAD(order_row, order, kind, ORDER_CUT + 1);
    ASSERT_BAD(order_row, order, stripe_count, 0);
}

/* Counters of generations are 64 bits wide, and what names a chunk is not; 0 is not used. */
static void test_lost_generations(void **state) {
    struct lost_row row = lost;
    struct ino ino = {1};

    (void)state;
    assert_false(lost_row_has(&row, ino, 20));
    assert_true(lost_row_has(&row, ino, 21));
    assert_true(lost_row_has(&row, ino, 30));
    assert_false(lost_row_has(&row, ino, 31));
    assert_false(lost_row_has(&row, ino, 0));
    row.generation_from = UINT32_MAX - UINT64_C(1);
    row.generation_to = UINT32_MAX + UINT64_C(2);
    assert_false(lost_row_has(&row, ino, UINT32_MAX - 1));
    assert_true(lost_row_has(&row, ino, UINT32_MAX));
    assert_true(lost_row_has(&row, ino, 1));
    assert_true(lost_row_has(&row, ino, 2));
    assert_false(lost_row_has(&row, ino, 3));
    assert_false(lost_row_has(&row, ino, 0));
    row.generation_to = row.generation_from;
    assert_false(lost_row_has(&row, ino, UINT32_MAX));
}

/* Keys of a directory's entries sort by index, behind nothing of another directory. */
static void test_keys(void **state) {
    struct ino directory = {UINT64_C(0x0007000000000123)};
    struct kv_key first = key_dentry(directory, 0);
    struct kv_key middle = key_dentry(directory, UINT64_C(1) << 40);
    struct kv_key last = key_dentry(directory, UINT64_MAX);
    struct kv_key next = key_dentry((struct ino){directory.value + 1}, 0);

    (void)state;
    assert_true(kv_key_compare(&first, &middle) < 0);
    assert_true(kv_key_compare(&middle, &last) < 0);
    assert_true(kv_key_compare(&last, &next) < 0);
    assert_int_equal(kv_key_split(&middle).slot, 7);
    assert_int_equal(kv_key_split(&middle).id, directory.value);
    struct kv_key inode_key = key_inode(directory);
    assert_int_equal(kv_key_split(&inode_key).type, ROW_INODE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_and_cut), cmocka_unit_test(test_random),
        cmocka_unit_test(test_wrong_fields), cmocka_unit_test(test_lost_generations),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
