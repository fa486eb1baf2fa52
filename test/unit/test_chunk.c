/* What a change of chunks asks of the log is what it then takes, also where the bits of a bitmap
 * row lie so far apart that each is a patch of its own and makes the row longer. */
#include "unit.h"
#include "kv/kv_mem.h"
#include "memory_env.h"
#include "store/blocks.h"
#include "store/chunk.h"
#include "store/store_format.h"

enum { BLOCKS = 3 * STORE_BITMAP_BITS, EXTENTS_MAX = 64 };

static void wake(void *context) {
    (void)context;
}

static struct kv *open_kv(struct memory_env *world, struct kv_mem_store *store) {
    const struct kv_options options = {.env = memory_env_env(world),
                                       .directory = "t",
                                       .shared_name = "ring",
                                       .base = &kv_mem_ops,
                                       .base_store = store,
                                       .ring_bytes = MIB,
                                       .disk_log_bytes = 8 * MIB,
                                       .changes_bytes_max = 4 * MIB,
                                       .sync_interval_ns = NS_PER_S,
                                       .hooks = {.wake = wake}};
    char problem[256];
    struct kv *kv;

    assert_int_equal(kv_open(&options, &kv, problem), 0);
    return kv;
}

/* kv_commit asserts that no more was staged than was granted. */
static void take_blocks(struct change *change, struct kv *kv, const uint64_t *blocks,
                        uint32_t count) {
    struct kv_grant grant;
    struct kv_need need;

    change_begin(change, kv);
    for (uint32_t i = 0; i < count; i++) {
        change->extents[change->extent_count++] = (struct change_extent){{blocks[i], 1}, true};
    }
    assert_int_equal(change_need(change, &need), 0);
    assert_int_equal(kv_admit(kv, KV_CLASS_REQUEST, &need, &grant), 0);
    kv_begin(kv, &grant);
    assert_int_equal(change_stage(change), 0);
    (void)change_commit(change, 0);
    (void)kv_seal(kv);
}

static void test_scattered_bits(void **state) {
    const struct kv_mem_options mem = {.cold_denominator = 1};
    struct memory_env *world;
    struct kv_mem_store *store;
    struct blocks blocks;
    struct change change;
    struct prng prng;
    uint64_t taken[16];

    (void)state;
    prng_init(&prng, 1);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint32_t count = 2 + (uint32_t)prng_below(&prng, 14);

        assert_int_equal(memory_env_new(seed, &world), 0);
        assert_int_equal(kv_mem_store_new(&mem, &store), 0);
        assert_int_equal(blocks_init(&blocks, BLOCKS, EXTENTS_MAX), 0);
        blocks_grow(&blocks, BLOCKS);
        assert_int_equal(change_init(&change, &blocks, EXTENTS_MAX), 0);
        struct kv *kv = open_kv(world, store);
        uint64_t at = 1;
        for (uint32_t i = 0; i < count; i++) {
            at += 1 + prng_below(&prng, BLOCKS / 16);
            taken[i] = at;
        }
        take_blocks(&change, kv, taken, count);
        kv_abandon(kv);
        change_deinit(&change);
        blocks_deinit(&blocks);
        kv_mem_store_free(store);
        memory_env_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scattered_bits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
