/* Rows of a base that is not in memory: who reads many of them, one after the other, finds the
 * first ones still there when the last is. */
#include "unit.h"
#include "kv/kv.h"
#include "kv/kv_mem.h"
#include "memory_env.h"

enum { KEYS = 1000 };

static void wake(void *context) {
    (void)context;
}

/* Keys of different kinds differ in few bits, and not in the same ones. */
static struct kv_key key_of(int kind, uint64_t number) {
    struct kv_key_fields fields = {.space = KV_SPACE_SLOT, .type = 'T'};

    fields.slot = kind == 0 ? (uint16_t)number : 7;
    fields.id = kind == 1 ? number : kind == 2 ? number << 40 : 9;
    fields.generation = kind == 3 ? (uint32_t)number : 3;
    fields.index = kind == 4 ? number : kind == 5 ? number << 11 : kind == 6 ? number << 50 : 0;
    return kv_key_make(fields);
}

static uint64_t reads_of(const struct kv *kv) {
    struct kv_counters counters;

    kv_counters_get(kv, &counters);
    return counters.pending_reads;
}

static void read_all(struct memory_env *world, struct kv *kv, int kind) {
    for (uint64_t i = 0; i < KEYS; i++) {
        struct kv_key key = key_of(kind, i);
        struct bytes value;
        int r;

        while ((r = kv_get(kv, &key, &value)) == -ERR_PENDING) {
            (void)memory_env_pump(world, 8);
            kv_step(kv);
        }
        assert_int_equal(r, -ERR_NOT_FOUND);
    }
}

static void test_many_rows(void **state) {
    struct prng prng;
    const struct kv_mem_options cold = {.prng = &prng, .cold_numerator = 1, .cold_denominator = 1};
    struct kv_mem_store *store;
    struct memory_env *world;
    char problem[256];
    struct kv *kv;

    (void)state;
    prng_init(&prng, 1);
    assert_int_equal(memory_env_new(1, &world), 0);
    assert_int_equal(kv_mem_store_new(&cold, &store), 0);
    const struct kv_options options = {.env = memory_env_env(world),
                                       .directory = "t",
                                       .shared_name = "ring",
                                       .base = &kv_mem_ops,
                                       .base_store = store,
                                       .owner_id = "rows",
                                       .ring_bytes = 64 * KIB,
                                       .disk_log_bytes = 512 * KIB,
                                       .changes_bytes_max = 512 * KIB,
                                       .sync_interval_ns = NS_PER_S,
                                       .hooks = {.wake = wake}};
    assert_int_equal(kv_open(&options, &kv, problem), 0);
    for (int kind = 0; kind <= 6; kind++) {
        uint64_t before = reads_of(kv);

        read_all(world, kv, kind);
        assert_true(reads_of(kv) > before);
        before = reads_of(kv);
        read_all(world, kv, kind);
        assert_int_equal(reads_of(kv), before);
    }
    kv_abandon(kv);
    kv_mem_store_free(store);
    memory_env_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
