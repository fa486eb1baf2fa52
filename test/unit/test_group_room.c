/* A group that is full says so, between its two marks as before, and new directories are drawn past
 * who is full, as long as another one has room. */
#include "unit.h"
#include "meta/draw.h"
#include "meta/group_internal.h"
#include "meta/room.h"
#include "meta_bench.h"
#include <stdio.h>
#include <string.h>

enum { GROUPS = 3, DRAWS = 300, OWN_SLOTS = 1000, THIRD_FIRST = 30000 };
#define THIRD_LOG ((struct log_id){9})

static struct meta_bench *bench_of_three(void) {
    const struct bench_options options = {.seed = 11, .slot_count = OWN_SLOTS};
    struct meta_bench *bench = bench_new(&options);

    bench->map->groups[2] = (struct map_group){.id = {3}, .log = THIRD_LOG};
    bench->map->group_count = GROUPS;
    for (uint32_t i = THIRD_FIRST; i < SLOT_COUNT; i++) {
        bench->map->slot_groups[i] = 2;
    }
    group_map_read(bench->group);
    return bench;
}

static void loads_tell(struct meta_bench *bench, unsigned full) {
    struct wire_load loads[GROUPS];
    struct call call;

    for (uint32_t i = 0; i < GROUPS; i++) {
        loads[i] =
            (struct wire_load){.log = bench->map->groups[i].log.value, .is_full = full >> i & 1};
    }
    bench_prepare(bench, 0, OP_GROUP_TELL, &call);
    call.request.group_tell =
        (struct group_tell_request){.loads = GROUPS, .loads_row_bytes = sizeof *loads};
    call.bulk_out[0] = (struct bytes){(const uint8_t *)loads, sizeof loads};
    call.bulk_out_count = 1;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.group_tell.is_full, bench->group->room.is_full);
}

/* By bits of groups: those that directories in there were drawn to. */
static unsigned groups_drawn(struct meta_bench *bench, struct ino parent) {
    struct transaction transaction = {.group = bench->group};
    struct call call = {.header.session = {1}, .request.mkdir.parent = parent};
    unsigned drawn = 0;

    for (call.header.sequence = 1; call.header.sequence <= DRAWS; call.header.sequence++) {
        struct log_id log;

        assert_int_equal(draw_log(&transaction, &call, &log), 0);
        for (uint32_t i = 0; i < GROUPS; i++) {
            drawn |= bench->map->groups[i].log.value == log.value ? 1U << i : 0;
        }
    }
    return drawn;
}

/* The own group is the first. Of a full one new directories go elsewhere also from parents that are
 * far from the root; where all are full, as if none were. */
static void test_directories_go_past_who_is_full(void **state) {
    const unsigned all = (1U << GROUPS) - 1;
    struct meta_bench *bench = bench_of_three();
    const struct ino far = {.value = INO_ROOT.value + 77};

    (void)state;
    for (unsigned full = 0; full <= all; full++) {
        unsigned wanted = full == all ? all : all & ~full;

        bench->group->room.is_full = full & 1;
        loads_tell(bench, full & ~1U);
        assert_int_equal(groups_drawn(bench, INO_ROOT), wanted);
        if (full & 1 && full != all) {
            assert_int_equal(groups_drawn(bench, far), wanted);
        }
        /* Of itself a group knows more than it is told. */
        loads_tell(bench, full ^ 1);
        assert_int_equal(groups_drawn(bench, INO_ROOT), wanted);
    }
    bench_free(bench);
}

/* One that has room, and is not to be reached, leaves those that are full. */
static void test_who_has_room_is_lost(void **state) {
    struct meta_bench *bench = bench_of_three();

    (void)state;
    loads_tell(bench, 2);
    bench->group->room.is_full = true;
    assert_int_equal(groups_drawn(bench, INO_ROOT), 4);
    bench->group->group_is_lost[2] = true;
    assert_int_equal(groups_drawn(bench, INO_ROOT), 3);
    bench_free(bench);
}

static void directories_make(struct meta_bench *bench, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        struct call call;

        snprintf(name, sizeof name, "d%u", i);
        bench_prepare(bench, 0, OP_MKDIR, &call);
        call.request.mkdir.parent = INO_ROOT;
        call.request.mkdir.name = (struct bytes){(const uint8_t *)name, strlen(name)};
        call.request.mkdir.mode = 0755;
        assert_int_equal(bench_run(bench, &call), 0);
    }
}

/* The disk is as large as leaves so much free, of 1,000 parts of what the base takes. */
static void available_set(struct meta_bench *bench, uint64_t parts) {
    const uint64_t large = UINT64_C(1) << 40;
    struct kv_space space;

    memory_env_capacity(bench->world, large);
    kv_space_get(bench->group->kv, &space);
    assert_true(space.used_bytes > 10000 && space.available_bytes < large);
    memory_env_capacity(bench->world,
                        large - space.available_bytes + space.used_bytes * parts / 1000);
    bench_advance(bench, 3 * NS_PER_S / 2);
}

static void test_marks(void **state) {
    /* 95 % are 1,000 of 1,052.6; 85 % of 1,176.5. */
    static const struct {
        uint32_t parts;
        bool is_full;
    } steps[] = {{1000, false}, {170, false}, {54, false}, {51, true},  {54, true},  {170, true},
                 {180, false},  {170, false}, {0, true},   {175, true}, {178, false}};
    const struct bench_options options = {.seed = 3};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    directories_make(bench, 300);
    bench_stop_and_start(bench);
    bench_advance(bench, 3 * NS_PER_S / 2);
    uint32_t lines = bench->other_line_count;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        bool before = bench->group->room.is_full;

        available_set(bench, steps[i].parts);
        assert_int_equal(bench->group->room.is_full, steps[i].is_full);
        lines += steps[i].is_full != before;
        assert_int_equal(bench->other_line_count, lines);
    }
    bench_free(bench);
}

/* Also where the base has nothing yet. */
static void test_a_disk_without_room(void **state) {
    const struct bench_options options = {.seed = 4};
    struct meta_bench *bench = bench_new(&options);
    struct kv_space space;

    (void)state;
    kv_space_get(bench->group->kv, &space);
    assert_int_equal(space.used_bytes, 0);
    for (int round = 0; round < 2; round++) {
        assert_false(bench->group->room.is_full);
        memory_env_capacity(bench->world, 0);
        bench_advance(bench, 3 * NS_PER_S / 2);
        assert_true(bench->group->room.is_full);
        memory_env_capacity(bench->world, UINT64_MAX);
        bench_advance(bench, 3 * NS_PER_S / 2);
    }
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directories_go_past_who_is_full),
        cmocka_unit_test(test_who_has_room_is_lost),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_a_disk_without_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
