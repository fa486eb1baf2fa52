/* Requests of an OST that wait, and whose callers give them up. */
#include "unit.h"
#include "ost_world.h"
#include "store/operations.h"

static char problem[256];

static void run_again(struct ost *ost, struct request *request) {
    request_finish(ost, request, 0);
}

/* One at work, as far as waiting for blocks. */
static struct request *waiting_for_blocks(struct ost_world *world, struct ost_call **ret_call) {
    struct ost *ost = world->ost;
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
    struct list_node *node = list_pop_front(&ost->free_requests);
    struct request *request = CONTAINER_OF(node, struct request, node);

    ost->free_request_count--;
    request->ost = ost;
    request->call = &call->call;
    request->run = run_again;
    list_init(&request->followers);
    request_wait(request, &ost->space_waiting);
    *ret_call = call;
    return request;
}

/* The first of those that wait for blocks holds some itself: those of its data, while it waits for
 * one to cut at. Given up, it wakes the others. */
static void test_given_up_with_blocks(void **state) {
    struct ost_world *world = ost_world_new(1);
    struct ost_call *first;
    struct ost_call *second;

    (void)state;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    struct ost *ost = world->ost;
    uint64_t free_count = ost->blocks.free_count;
    struct request *request = waiting_for_blocks(world, &first);
    (void)waiting_for_blocks(world, &second);
    request->range.count = 1;
    request->has_blocks =
        blocks_take(&ost->blocks, BLOCKS_LANE_LARGE, 1, &request->entries[0].block) == 1;
    ost->held_blocks += request->has_blocks;
    atomic_store(&first->call.cancelled, true);
    ost->gave_up_ns = 0;
    for (int i = 0; i < 100 && !(first->answered && second->answered); i++) {
        ost_world_turn(world);
    }
    assert_int_equal(first->call.result, -ERR_INTERRUPTED);
    assert_int_equal(second->call.result, 0);
    assert_true(first->answered && second->answered);
    assert_int_equal(ost->blocks.free_count, free_count);
    assert_int_equal(ost->held_blocks, 0);
    first->busy = false;
    second->busy = false;
    ost_world_stop(world);
    ost_world_free(world);
}

/* No row is in memory, and little is known of what was read. */
static struct ost_world *world_of_cold_rows(uint32_t files, uint32_t chunks) {
    static uint8_t data[BLOCK_BYTES];
    struct ost_world *world = ost_world_new(7);
    const struct kv_mem_options store = {
        .prng = &world->prng, .cold_numerator = 1, .cold_denominator = 1};

    kv_mem_store_free(world->store);
    assert_int_equal(kv_mem_store_new(&store, &world->store), 0);
    world->options.kv.base_store = world->store;
    world->options.kv.warm_sets = 8;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    for (uint32_t i = 0; i < files * chunks; i++) {
        struct ost_place place = {.ino = {100 + i / chunks},
                                  .generation = 1,
                                  .chunk = i % chunks,
                                  .chunk_bytes = 256 * KIB,
                                  .size = BLOCK_BYTES};

        assert_int_equal(ost_world_write(world, &place, data), 0);
    }
    ost_world_stop(world);
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    return world;
}

/* More rows, and more deleted ones in a row, than are known to have been read. */
static void test_cold_walks(void **state) {
    struct ost_world *world = world_of_cold_rows(150, 2);

    (void)state;
    uint64_t used = ost_world_fsck(world);
    assert_true(used >= 300);
    for (uint32_t i = 0; i < 140; i++) {
        ost_world_delete(world, (struct ino){100 + i}, 1);
    }
    assert_true(ost_world_fsck(world) < used);
    ost_world_stop(world);
    ost_world_free(world);
}

static void cut(struct ost_world *world, const struct chunk_cut_request *order) {
    struct chunk_cut_request next = *order;
    bool end = false;

    while (!end) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);

        call->call.request.chunk_cut = next;
        assert_int_equal(ost_call_run(call), 0);
        next.resume_chunk = call->call.reply.chunk_cut.resume_chunk;
        end = call->call.reply.chunk_cut.end;
    }
}

/* A file that was long is cut to its first block, then deleted: behind the rows that it still has
 * lie more deleted ones than are known to have been read. */
static void test_cut_then_deleted(void **state) {
    struct ost_world *world = world_of_cold_rows(1, 300);
    const struct chunk_cut_request order = {.ino = {100},
                                            .generation = 1,
                                            .chunk_bytes = 256 * KIB,
                                            .truncate_seq = 1,
                                            .truncate_size = BLOCK_BYTES};

    (void)state;
    cut(world, &order);
    ost_world_delete(world, (struct ino){100}, 1);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* Likewise within a chunk, whose head is gone, too. */
static void test_long_chunk_deleted(void **state) {
    static uint8_t data[BLOCK_BYTES];
    struct ost_world *world = world_of_cold_rows(1, 1);
    const struct chunk_cut_request order = {
        .ino = {7}, .generation = 1, .chunk_bytes = CHUNK_BYTES_MAX, .truncate_seq = 1};
    const struct chunk_length_request length = {.ino = {7}, .generation = 1};
    struct ost_place place = {
        .ino = {7}, .generation = 1, .chunk_bytes = CHUNK_BYTES_MAX, .size = BLOCK_BYTES};

    (void)state;
    for (uint32_t i = 0; i < 300; i++) {
        place.offset = i * SEGMENT_BYTES;
        assert_int_equal(ost_world_write(world, &place, data), 0);
    }
    ost_world_stop(world);
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    cut(world, &order);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);
    call->call.request.chunk_length = length;
    assert_int_equal(ost_call_run(call), 0);
    assert_int_equal(call->call.reply.chunk_length.bytes_used, 0);
    ost_world_delete(world, (struct ino){7}, 1);
    assert_int_equal(ost_world_fsck(world), 1);
    ost_world_stop(world);
    ost_world_free(world);
}

static void stopped(void *context, int result) {
    *(int *)context = result;
}

/* Stopped again while it loads, at whatever row: when the stop is answered no row is being read. */
static void test_stop_while_loading(void **state) {
    struct ost_world *world = world_of_cold_rows(1, 1);

    (void)state;
    for (uint32_t life = 0; life < 40; life++) {
        int result = 1;

        ost_world_stop(world);
        assert_int_equal(ost_world_open(world, problem), 0);
        for (uint32_t i = 0; i < life % 8; i++) {
            ost_world_turn(world);
        }
        ost_stop_start(world->ost, stopped, &result);
        for (int i = 0; i < 1000 && result == 1; i++) {
            ost_world_turn(world);
        }
        assert_int_equal(result, 0);
        assert_true(kv_is_idle(ost_kv(world->ost)));
        ost_close(world->ost);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    ost_world_stop(world);
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_up_with_blocks), cmocka_unit_test(test_cold_walks),
        cmocka_unit_test(test_cut_then_deleted),     cmocka_unit_test(test_long_chunk_deleted),
        cmocka_unit_test(test_stop_while_loading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
