/* Rows in a message, of versions that know more or less of them. */
#include "other_rows.h"

enum { COUNT = 3, FIRST_BYTES = 8, NOW_BYTES = 16, LATER_BYTES = 20, COUNT_MAX = 4 };

/* As it is now: the first version had no `second`. */
struct row {
    uint64_t first;
    uint64_t second;
};
_Static_assert(sizeof(struct row) == NOW_BYTES, "no padding");

static uint8_t space[COUNT_MAX * LATER_BYTES + 1];

static struct wire_rows rows_of(size_t size_bytes, uint32_t row_bytes) {
    return (struct wire_rows){.bytes = {space, size_bytes},
                              .row_bytes = row_bytes,
                              .row_bytes_min = FIRST_BYTES,
                              .count_max = COUNT_MAX};
}

static void rows_fill(uint32_t row_bytes) {
    memset(space, 0xee, sizeof space);
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct row row = {.first = 100 + i, .second = 200 + i};

        memcpy(space + (size_t)i * row_bytes, &row, MIN(row_bytes, (uint32_t)NOW_BYTES));
    }
}

/* What a row lacks is zero, what it has beyond ours is skipped. */
static void test_lengths(void **state) {
    static const struct {
        uint32_t told, row_bytes;
    } rows[] = {{0, FIRST_BYTES},
                {FIRST_BYTES, FIRST_BYTES},
                {FIRST_BYTES + 4, FIRST_BYTES + 4},
                {NOW_BYTES, NOW_BYTES},
                {LATER_BYTES, LATER_BYTES}};
    struct row got;

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
        const struct wire_rows array = rows_of((size_t)COUNT * rows[k].row_bytes, rows[k].told);

        rows_fill(rows[k].row_bytes);
        assert_int_equal(wire_rows_check(&array), 0);
        assert_int_equal(wire_rows_count(&array), COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            memset(&got, 0xdd, sizeof got);
            wire_rows_get(&array, i, &got, sizeof got);
            assert_int_equal(got.first, 100 + i);
            assert_int_equal(got.second, rows[k].row_bytes > FIRST_BYTES ? 200 + i : 0);
        }
    }
}

static void test_none(void **state) {
    const struct wire_rows none = {.row_bytes = NOW_BYTES, .row_bytes_min = FIRST_BYTES};

    (void)state;
    assert_int_equal(wire_rows_check(&none), 0);
    assert_int_equal(wire_rows_count(&none), 0);
}

static void test_what_is_malformed(void **state) {
    static const struct {
        size_t size_bytes;
        uint32_t row_bytes;
    } rows[] = {{FIRST_BYTES, 1},
                {FIRST_BYTES, FIRST_BYTES - 1},
                {0, FIRST_BYTES - 1},
                {FIRST_BYTES - 1, 0},
                {FIRST_BYTES + 1, 0},
                {3 * NOW_BYTES + 1, NOW_BYTES},
                {NOW_BYTES - 1, NOW_BYTES},
                {NOW_BYTES, LATER_BYTES},
                {NOW_BYTES, UINT16_MAX},
                {NOW_BYTES, UINT32_MAX},
                {(COUNT_MAX + 1) * FIRST_BYTES, 0}};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
        const struct wire_rows array = rows_of(rows[k].size_bytes, rows[k].row_bytes);

        assert_int_equal(wire_rows_check(&array), -ERR_MALFORMED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_what_is_malformed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
