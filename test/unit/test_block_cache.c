/* The block cache: what is found is what was put in, dropped blocks are gone, blocks that are used
 * again outlive those seen once, and a cache of no size keeps nothing. */
#include "unit.h"
#include "base/prng.h"
#include "store/block_cache.h"
#include <string.h>

enum { SLOTS = 50, BLOCKS = 300 };

static uint8_t content[BLOCK_BYTES];

static const uint8_t *content_of(uint64_t block, uint64_t version) {
    memset(content, (int)(block * 7 + version), sizeof content);
    memcpy(content, &block, sizeof block);
    memcpy(content + BLOCK_BYTES - sizeof version, &version, sizeof version);
    return content;
}

static void test_random(void **state) {
    struct block_cache cache;
    struct prng prng;
    uint64_t versions[BLOCKS] = {0};
    uint64_t hits = 0;

    (void)state;
    prng_init(&prng, 5);
    assert_int_equal(block_cache_init(&cache, SLOTS * BLOCK_BYTES + 17), 0);
    for (int i = 0; i < 20000; i++) {
        uint64_t block = 1 + prng_below(&prng, BLOCKS - 1);
        const uint8_t *found = block_cache_find(&cache, block);

        if (found) {
            assert_memory_equal(found, content_of(block, versions[block]), BLOCK_BYTES);
            hits++;
        } else {
            block_cache_insert(&cache, block, content_of(block, versions[block]));
            assert_non_null(block_cache_find(&cache, block));
        }
        if (prng_chance(&prng, 1, 10)) {
            uint64_t first = 1 + prng_below(&prng, BLOCKS - 5);

            block_cache_drop(&cache, first, 4);
            for (uint64_t k = first; k < first + 4; k++) {
                assert_null(block_cache_find(&cache, k));
                versions[k]++;
            }
        }
        assert_true(cache.used_count <= SLOTS);
    }
    assert_true(hits > 0);
    block_cache_deinit(&cache);
}

static void test_used_again_stays(void **state) {
    struct block_cache cache;

    (void)state;
    assert_int_equal(block_cache_init(&cache, SLOTS * BLOCK_BYTES), 0);
    block_cache_insert(&cache, 1, content_of(1, 0));
    for (uint64_t block = 2; block < BLOCKS; block++) {
        assert_non_null(block_cache_find(&cache, 1));
        block_cache_insert(&cache, block, content_of(block, 0));
    }
    assert_non_null(block_cache_find(&cache, 1));
    assert_null(block_cache_find(&cache, 2));
    block_cache_deinit(&cache);
}

static void test_none(void **state) {
    struct block_cache cache;

    (void)state;
    assert_int_equal(block_cache_init(&cache, 0), 0);
    block_cache_insert(&cache, 1, content_of(1, 0));
    assert_null(block_cache_find(&cache, 1));
    block_cache_drop(&cache, 1, 5);
    block_cache_deinit(&cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_used_again_stays),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
