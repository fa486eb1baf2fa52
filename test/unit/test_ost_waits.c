/* Requests of an OST that wait, and whose callers give them up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_up_with_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
