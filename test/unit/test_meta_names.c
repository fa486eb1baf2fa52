/* Names, their order and their cookies. */
#include "unit.h"
#include "base/err.h"
#include "meta/names.h"
#include <stdio.h>
#include <string.h>

#define NAME(text) ((struct bytes){(const uint8_t *)(text), sizeof(text) - 1})

static void test_check(void **state) {
    uint8_t name[NAME_BYTES_MAX + 1];

    (void)state;
    memset(name, 0xff, sizeof name);
    assert_int_equal(name_check((struct bytes){name, NAME_BYTES_MAX}), 0);
    assert_int_equal(name_check((struct bytes){name, NAME_BYTES_MAX + 1}), -ERR_NAME_TOO_LONG);
    assert_int_equal(name_check((struct bytes){NULL, 0}), -ERR_INVALID);
    assert_int_equal(name_check(NAME("a/b")), -ERR_INVALID);
    assert_int_equal(name_check(NAME("a\0b")), -ERR_INVALID);
    assert_int_equal(name_check(NAME("a\nb")), 0);
    assert_int_equal(name_kind(NAME(".")), NAME_SELF);
    assert_int_equal(name_kind(NAME("..")), NAME_PARENT);
    assert_int_equal(name_kind(NAME("...")), NAME_PLAIN);
    assert_int_equal(name_kind(NAME(".a")), NAME_PLAIN);
    assert_int_equal(name_kind(NAME("a")), NAME_PLAIN);
}

/* Every index leaves room for all ranks, below a cookie of 2^63; few bits give few indexes. */
static void test_index(void **state) {
    const struct name_hash hash = {{{1, 2}}, NAME_HASH_BITS};
    const struct name_hash other_key = {{{1, 3}}, NAME_HASH_BITS};
    const struct name_hash coarse = {{{1, 2}}, 2};
    const struct name_hash none = {{{1, 2}}, 0};
    uint64_t differing = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        char text[16];
        size_t size = (size_t)snprintf(text, sizeof text, "file-%d", i);
        struct bytes name = {(const uint8_t *)text, size};
        uint64_t index = name_index(&hash, name);

        assert_int_equal(index % NAME_RANKS_MAX, 0);
        assert_int_equal(index, name_index(&hash, name));
        assert_true(cookie_of(index + NAME_RANKS_MAX - 1) < UINT64_C(1) << 63);
        differing += index != name_index(&other_key, name);
        assert_int_equal(name_index(&coarse, name) & ((UINT64_C(1) << 61) - 1), 0);
        assert_int_equal(name_index(&none, name), 0);
    }
    assert_true(differing > 9990);
}

static void test_cookies(void **state) {
    uint64_t index = 77;

    (void)state;
    for (uint64_t cookie = COOKIE_START; cookie <= COOKIE_PARENT; cookie++) {
        assert_int_equal(cookie_next_index(cookie, &index), 0);
        assert_int_equal(index, 0);
    }
    for (uint64_t at = 1; at >> 62 == 0; at = at * 3 + 1) {
        assert_int_equal(cookie_next_index(cookie_of(at), &index), 0);
        assert_int_equal(index, at + 1);
    }
    index = 77;
    assert_int_equal(cookie_next_index(UINT64_C(1) << 63, &index), -ERR_INVALID);
    assert_int_equal(cookie_next_index(UINT64_MAX, &index), -ERR_INVALID);
    assert_int_equal(index, 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_cookies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
