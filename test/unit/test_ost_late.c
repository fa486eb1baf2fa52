/* Writes from before a truncation that come behind it are refused, whatever it has left of the
 * chunk that they are for. */
#include "unit.h"
#include "ost_chunk.h"
#include <stdio.h>
#include <string.h>

/* A chunk that a truncation has removed cannot refuse what was written before: the file does. */
static void test_late_write_after_cut(void **state) {
    struct ost_world *world = world_start(21);
    struct ost_place place = place_of(0, 100);

    (void)state;
    fill(1, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = place.ino,
                                                              .generation = place.generation,
                                                              .chunk_bytes = place.chunk_bytes,
                                                              .truncate_seq = 1};
    assert_int_equal(ost_call_run(call), 0);
    for (int life = 0; life < 2; life++) {
        assert_int_equal(ost_world_write(world, &place, data), -ERR_BAD_CAPABILITY);
        place.chunk = 3;
        assert_int_equal(ost_world_write(world, &place, data), -ERR_BAD_CAPABILITY);
        place.chunk = 0;
        assert_int_equal(ost_world_fsck(world), 0);
        ost_world_crash(world, false);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    place.truncate_seq = 1;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    /* A later truncation to a larger size finds nothing older to show. */
    place.truncate_seq = 2;
    place.truncate_size = place.chunk_bytes;
    assert_int_equal(ost_world_read(world, &place, data), 0);
    /* The mark goes with the file. */
    ost_world_delete(world, place.ino, place.generation);
    place.truncate_seq = 0;
    place.truncate_size = 0;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    ost_world_free(world);
}

/* One that ends before the cut stays as it is, and refuses it likewise. */
static void test_late_write_behind_short_chunk(void **state) {
    struct ost_world *world = world_start(22);
    struct ost_place place = place_of(0, 100);
    static const uint8_t zeros[100];

    (void)state;
    fill(1, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut =
        (struct chunk_cut_request){.ino = place.ino,
                                   .generation = place.generation,
                                   .chunk_bytes = place.chunk_bytes,
                                   .truncate_seq = 1,
                                   .truncate_size = place.chunk * place.chunk_bytes + 200};
    assert_int_equal(ost_call_run(call), 0);
    assert_true(call->call.reply.chunk_cut.end);
    place.offset = 300;
    assert_int_equal(ost_world_write(world, &place, data), -ERR_BAD_CAPABILITY);
    /* A later truncation to a larger size finds nothing older to show. */
    place.truncate_seq = 2;
    place.truncate_size = (place.chunk + 1) * place.chunk_bytes;
    assert_int_equal(ost_world_read(world, &place, zeros), 0);
    place.offset = 0;
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_write_after_cut),
        cmocka_unit_test(test_late_write_behind_short_chunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
