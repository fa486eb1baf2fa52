/* Which mounts are successors of each other: one that is taken for another's ends its session, and
 * is ended by it in turn, as long as both live. */
#include "unit.h"
#include "node/mount_origin.h"
#include <string.h>

/* Machines that were started alike. */
static const struct mount_place place = {"mnt:[4026531841]", "/mnt/shoal"};
static const uint64_t drawn[2] = {3, 4};
static const struct config first = {.node = 1, .node_key = {10, 11}};

static void assert_successor(bool is, const struct config *config, const struct mount_place *at,
                             const uint64_t random[2]) {
    struct mount_origin one;
    struct mount_origin other;

    mount_origin_make(&first, &place, drawn, &one);
    mount_origin_make(config, at, random, &other);
    assert_int_equal(other.node.value, config && config->node ? config->node : 0);
    assert_int_equal(strcmp(one.name, other.name) == 0, is);
}

static void test_mounts_of_nodes(void **state) {
    static const uint64_t later[2] = {5, 6};
    const struct config second = {.node = 2, .node_key = {12, 13}};
    const struct config same_number = {.node = 1, .node_key = {10, 13}};
    const struct config same_begin = {.node = 1, .node_key = {12, 11}};
    const struct mount_place container = {"mnt:[4026532500]", place.path};
    const struct mount_place elsewhere = {place.space, "/mnt/shoal2"};

    (void)state;
    assert_successor(true, &first, &place, later);
    assert_successor(false, &second, &place, drawn);
    assert_successor(false, &same_number, &place, drawn);
    assert_successor(false, &same_begin, &place, drawn);
    assert_successor(false, &first, &container, drawn);
    assert_successor(false, &first, &elsewhere, drawn);
}

/* By an address, or of a directory that is no node's yet. */
static void test_mounts_that_none_follows(void **state) {
    const struct config joins = {.node = 0};
    const struct config *const configs[] = {NULL, &joins};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(configs); i++) {
        struct mount_origin origins[3];

        for (uint64_t j = 0; j < ARRAY_SIZE(origins); j++) {
            const uint64_t random[2] = {3 + j / 2, 3 + j % 2};

            mount_origin_make(configs[i], &place, random, &origins[j]);
            assert_int_equal(origins[j].node.value, 0);
            for (uint64_t k = 0; k < j; k++) {
                assert_string_not_equal(origins[k].name, origins[j].name);
            }
        }
        assert_successor(false, configs[i], &place, drawn);
    }
}

/* What is shown of it is all behind the second space. */
static void test_the_place_ends_it(void **state) {
    char path[4096];
    struct mount_origin origin;

    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        const struct mount_place longest = {place.space, path};

        mount_origin_make(i ? &first : NULL, &longest, drawn, &origin);
        assert_memory_equal(origin.name, "mount ", 6);
        assert_string_equal(strchr(origin.name + 6, ' ') + 1, path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mounts_of_nodes),
                                       cmocka_unit_test(test_mounts_that_none_follows),
                                       cmocka_unit_test(test_the_place_ends_it)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
