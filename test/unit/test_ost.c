/* The OST, one thing at a time: writes and reads of every shape, their order, copies of requests,
 * sessions, fences, lengths, truncation, stopping. */
#include "unit.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "kv/kv_internal.h"
#include "ost_chunk.h"
#include "other_rows.h"
#include "store/session.h"
#include "store/store_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every size and alignment class, in the chunk and in memory, comes back as it was written. */
static void test_shapes(void **state) {
    static const uint32_t offsets[] = {0, 1, 4095, 4096, 5000, 61440, 65536};
    static const uint32_t sizes[] = {1,     7,     4095,  4096,  4097,        8192,
                                     20000, 61440, 65536, 65537, 65536 - 4096};
    static const uint32_t shifts[] = {0, 1, 512, 4095};
    struct ost_world *world = world_start(1);
    uint8_t *model = calloc(1, CHUNK);

    (void)state;
    for (size_t o = 0; o < ARRAY_SIZE(offsets); o++) {
        for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
            struct ost_place place = place_of(offsets[o], MIN(sizes[s], CHUNK - offsets[o]));
            struct ost_place all = place_of(0, CHUNK);
            struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

            fill((uint32_t)(o * 100 + s), place.size);
            call->shift = shifts[(o + s) % ARRAY_SIZE(shifts)];
            ost_call_write(call, &place, data);
            assert_int_equal(ost_call_run(call), 0);
            memcpy(model + place.offset, data, place.size);
            assert_int_equal(ost_world_read(world, &place, model + place.offset), 0);
            assert_int_equal(ost_world_read(world, &all, model), 0);
        }
    }
    assert_int_equal(ost_world_sync(world), 0);
    struct ost_place all = place_of(0, CHUNK);
    assert_int_equal(ost_world_read(world, &all, model), 0);
    (void)ost_world_fsck(world);
    free(model);
    ost_world_stop(world);
    ost_world_free(world);
}

/* A later write of the same blocks lands on top of an earlier one that waits for the disk. */
static void test_order_of_arrival(void **state) {
    struct ost_world *world = world_start(2);
    struct ost_place large = place_of(0, CHUNK);
    struct ost_place small = place_of(70000, 9000);
    struct ost_call *first = ost_call_get(world, OP_CHUNK_WRITE);
    struct ost_call *second = ost_call_get(world, OP_CHUNK_WRITE);
    uint8_t *want = malloc(CHUNK);

    (void)state;
    fill(1, CHUNK);
    memcpy(want, data, CHUNK);
    ost_call_write(first, &large, data);
    fill(2, small.size);
    memcpy(want + small.offset, data, small.size);
    ost_call_write(second, &small, data);
    ost_call_start(first);
    ost_call_start(second);
    assert_false(first->answered || second->answered);
    while (!second->answered) {
        ost_world_turn(world);
    }
    assert_int_equal(first->call.result, 0);
    assert_int_equal(second->call.result, 0);
    assert_true(first->answer_number < second->answer_number);
    first->busy = false;
    second->busy = false;
    assert_int_equal(ost_world_read(world, &large, want), 0);
    free(want);
    ost_world_free(world);
}

/* Who sends a write again that is at work gets its answer, whatever becomes of the copies between:
 * for these nobody waits any more. */
static void test_copies(void **state) {
    struct ost_world *world = world_start(3);
    struct ost_place place = place_of(0, CHUNK);
    struct ost_call *first = ost_call_get(world, OP_CHUNK_WRITE);
    struct ost_call *copy = ost_call_get(world, OP_CHUNK_WRITE);

    (void)state;
    fill(1, CHUNK);
    ost_call_write(first, &place, data);
    ost_call_write(copy, &place, data);
    first->call.header.sequence = world->next_sequence++;
    copy->call.header.sequence = first->call.header.sequence;
    struct ost_call *newest = ost_call_get(world, OP_CHUNK_WRITE);
    ost_call_write(newest, &place, data);
    newest->call.header.sequence = first->call.header.sequence;
    ost_call_start(first);
    ost_call_start(copy);
    assert_false(first->answered || copy->answered);
    ost_call_start(newest);
    assert_true(copy->answered);
    assert_int_equal(copy->call.result, CALL_DISCARDED);
    assert_false(first->answered || newest->answered);
    while (!newest->answered) {
        ost_world_turn(world);
    }
    assert_true(first->answered);
    assert_int_equal(first->call.result, 0);
    assert_int_equal(newest->call.result, 0);
    uint64_t version = first->call.reply.chunk_write.version;
    assert_int_equal(newest->call.reply.chunk_write.version, version);
    newest->busy = false;
    uint64_t sequence = first->call.header.sequence;
    first->busy = false;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(ost_call_run(copy), 0);
    assert_int_equal(copy->call.reply.chunk_write.version, version);
    /* Below the floor it is refused, never run. */
    copy = ost_call_get(world, OP_CHUNK_WRITE);
    ost_call_write(copy, &place, data);
    copy->call.header.floor = world->next_sequence;
    assert_int_equal(ost_call_run(copy), 0);
    copy = ost_call_get(world, OP_CHUNK_WRITE);
    ost_call_write(copy, &place, data);
    copy->call.header.sequence = sequence;
    assert_int_equal(ost_call_run(copy), -ERR_OUTDATED);
    ost_world_free(world);
}

/* A client that gives the number of a write at work to one of another chunk, which is in the same
 * list of writes at work as its file's number and its own add up alike, harms nothing. */
static void test_one_number_for_writes_of_two_chunks(void **state) {
    struct ost_world *world = world_start(5);
    struct ost_place place = place_of(0, CHUNK);
    struct ost_place other = place_of(0, CHUNK);
    struct ost_call *calls[3];

    (void)state;
    other.ino.value += 31;
    other.chunk--;
    fill(1, CHUNK);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        calls[i] = ost_call_get(world, OP_CHUNK_WRITE);
        ost_call_write(calls[i], i == 1 ? &other : &place, data);
        calls[i]->call.header.sequence = world->next_sequence;
        ost_call_start(calls[i]);
        assert_false(calls[i]->answered);
    }
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        while (!calls[i]->answered) {
            ost_world_turn(world);
        }
        assert_int_equal(calls[i]->call.result, 0);
    }
    ost_world_free(world);
}

static uint64_t free_blocks(struct ost_world *world) {
    struct ost_counters counters;

    ost_counters_get(world->ost, &counters);
    return counters.free_blocks;
}

static int attach(struct ost_world *world, uint64_t session, uint64_t incarnation) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = session, .incarnation = incarnation, .node = 1, .known_term = 0};
    return ost_call_run(call);
}

/* A number that was drawn for another log is not run, leaves no outcome, and raises no floor. */
static void test_numbers_of_another_log(void **state) {
    struct ost_world *world = world_start(27);
    struct ost_place place = place_of(0, 100);
    uint64_t sequence = 0;

    (void)state;
    fill(1, place.size);
    for (int own = 0; own < 2; own++) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
        struct log_id log = kv_log_id(ost_kv(world->ost));

        ost_call_write(call, &place, data);
        sequence = own ? sequence : call->call.header.sequence;
        call->call.header.sequence = sequence;
        call->call.header.floor = own ? 0 : sequence + 1000;
        call->call.header.origin.value = own ? log.value : log.value + 1;
        assert_int_equal(ost_call_run(call), own ? 0 : -ERR_STALE_MAP);
    }
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_free(world);
}

static int floor_tell(struct ost_world *world, uint64_t floor, uint64_t incarnation) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_FLOOR);

    call->call.header.floor = floor;
    call->call.header.incarnation = incarnation;
    return ost_call_run(call);
}

/* What an idle session has written goes from the table; a late copy is refused, also after a kill,
 * and one of a write that has not come yet when the floor passes it is never run. */
static void test_floor_of_an_idle_session(void **state) {
    struct ost_world *world = world_start(28);
    struct ost_place place = place_of(0, 100);
    const struct session_id session = {OST_SESSION};

    (void)state;
    fill(1, place.size);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
    ost_call_write(call, &place, data);
    uint64_t sequence = world->next_sequence++;
    call->call.header.sequence = sequence;
    assert_int_equal(ost_call_run(call), 0);
    assert_int_equal(floor_tell(world, sequence + 2, OST_INCARNATION - 1), -ERR_FENCED);
    assert_int_equal(floor_tell(world, sequence + 2, OST_INCARNATION + 1), -ERR_UNKNOWN_SESSION);
    assert_int_equal(kv_outcomes_of(ost_kv(world->ost), session), 1);
    assert_int_equal(floor_tell(world, sequence + 2, OST_INCARNATION), 0);
    for (int life = 0; life < 2; life++) {
        assert_int_equal(kv_outcomes_of(ost_kv(world->ost), session), 0);
        for (uint64_t late = sequence; late < sequence + 2; late++) {
            struct ost_place other = place_of(0, 50);
            uint8_t bytes[50] = {7};

            call = ost_call_get(world, OP_CHUNK_WRITE);
            ost_call_write(call, &other, bytes);
            call->call.header.sequence = late;
            assert_int_equal(ost_call_run(call), -ERR_OUTDATED);
        }
        assert_int_equal(ost_world_read(world, &place, data), 0);
        ost_world_crash(world, false);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    assert_int_equal(floor_tell(world, 1, OST_INCARNATION), 0); /* only raises */
    assert_int_equal(kv_outcomes_of(ost_kv(world->ost), session), 0);
    ost_world_free(world);
}

/* A session that is evicted while its data is on the way to the disk changes nothing. */
static void test_fenced_in_flight(void **state) {
    struct ost_world *world = world_start(4);
    struct ost_place place = place_of(100, CHUNK - 100);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
    uint64_t before = free_blocks(world);

    (void)state;
    fill(1, place.size);
    ost_call_write(call, &place, data);
    ost_call_start(call);
    assert_true(free_blocks(world) < before);
    assert_int_equal(ost_world_ended(world, OST_SESSION), 0);
    while (!call->answered) {
        ost_world_turn(world);
    }
    assert_int_equal(call->call.result, -ERR_FENCED);
    assert_int_equal(free_blocks(world), before);
    call->busy = false;
    assert_int_equal(ost_world_read(world, &place, NULL), -ERR_FENCED);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_free(world);
}

/* The log stops while a read is on its way: what the read has seen may never have happened, so it
 * is not told. */
static void test_stopped_log(void **state) {
    struct ost_world *world = world_start(5);
    struct ost_place place = place_of(0, CHUNK);
    struct ost_call *call;

    (void)state;
    fill(1, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    call = ost_call_get(world, OP_CHUNK_READ);
    ost_call_read(call, &place);
    ost_call_start(call);
    assert_false(call->answered);
    kv_fail(ost_kv(world->ost), "a test", -ERR_IO);
    while (!call->answered) {
        ost_world_turn(world);
    }
    assert_int_equal(call->call.result, -ERR_IO);
    call->busy = false;
    ost_world_free(world);
}

static struct ost_call *length_of(struct ost_world *world, uint32_t seq, uint64_t size,
                                  uint64_t fence_incarnation) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);

    call->call.request.chunk_length = (struct chunk_length_request){
        .ino = {17},
        .generation = 1,
        .chunk_bytes = CHUNK,
        .truncate_seq = seq,
        .truncate_size = size,
        .fence_session = fence_incarnation ? OST_SESSION : 0,
        .fence_incarnation = fence_incarnation,
    };
    assert_int_equal(ost_call_run(call), 0);
    return call;
}

/* Each answer says what the chunk has and had, also one that is given again. */
static void test_blocks_of_writes(void **state) {
    struct ost_world *world = world_start(5);
    static const struct {
        struct ost_place place;
        uint32_t before, blocks;
    } rows[] = {
        {{.offset = 5000, .size = 3000}, 0, 1},
        {{.offset = 4000, .size = 9000}, 1, 4},
        {{.offset = 0, .size = CHUNK}, 4, CHUNK / BLOCK_BYTES},
        {{.offset = 7, .size = 1}, CHUNK / BLOCK_BYTES, CHUNK / BLOCK_BYTES},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ost_place place = place_of(rows[i].place.offset, rows[i].place.size);
        uint64_t sequence = world->next_sequence++;

        fill((uint32_t)i, place.size);
        for (int again = 0; again < 2; again++) {
            struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
            const struct chunk_write_reply *reply = &call->call.reply.chunk_write;

            ost_call_write(call, &place, data);
            call->call.header.sequence = sequence;
            assert_int_equal(ost_call_run(call), 0);
            assert_int_equal(reply->blocks_before, rows[i].before);
            assert_int_equal(reply->blocks, rows[i].blocks);
        }
    }
    ost_world_free(world);
}

static void test_length_and_fence(void **state) {
    struct ost_world *world = world_start(5);
    struct ost_place place = place_of(5000, 3000);
    struct ost_call *call = length_of(world, 0, 0, 0);
    struct chunk_length_reply *reply = &call->call.reply.chunk_length;

    (void)state;
    assert_int_equal(reply->length, 0);
    fill(1, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    place.chunk = 0;
    assert_int_equal(ost_world_write(world, &place, data), 0);
    reply = &length_of(world, 0, 0, 0)->call.reply.chunk_length;
    assert_int_equal(reply->length, 2 * CHUNK + 8000);
    assert_int_equal(reply->bytes_used, 2 * BLOCK_BYTES);
    /* A cut that the chunks do not know yet counts; nothing is changed by the question. */
    reply = &length_of(world, 1, 2 * CHUNK + 6000, 0)->call.reply.chunk_length;
    assert_int_equal(reply->length, 2 * CHUNK + 6000);
    reply = &length_of(world, 1, 6000, 0)->call.reply.chunk_length;
    assert_int_equal(reply->length, 6000);
    reply = &length_of(world, 0, 0, OST_INCARNATION)->call.reply.chunk_length;
    assert_int_equal(reply->length, 2 * CHUNK + 8000);
    /* Fenced from the answer on, also after power was lost. */
    for (int life = 0; life < 2; life++) {
        assert_int_equal(ost_world_write(world, &place, data), -ERR_FENCED);
        assert_int_equal(attach(world, OST_SESSION, OST_INCARNATION), -ERR_FENCED);
        ost_world_crash(world, true);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    assert_int_equal(attach(world, OST_SESSION, OST_INCARNATION + 1), 0);
    assert_int_equal(ost_world_write(world, &place, data), -ERR_FENCED);
    assert_int_equal(attach(world, OST_SESSION + 1, 1), 0);
    ost_world_free(world);
}

static int rows_of_fences(struct ost_world *world, struct bytes fences, uint16_t row_bytes,
                          uint32_t *ret_count) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);

    call->call.request.chunk_length = (struct chunk_length_request){.ino = {17},
                                                                    .generation = 1,
                                                                    .chunk_bytes = CHUNK,
                                                                    .fences = fences,
                                                                    .fences_row_bytes = row_bytes};
    int r = ost_call_run(call);
    *ret_count = call->call.reply.chunk_length.fenced_count;
    return r;
}

static int list_of_fences(struct ost_world *world, struct bytes fences, uint32_t *ret_count) {
    return rows_of_fences(world, fences, 0, ret_count);
}

/* As many sessions as one question may name, attached here or not: refused from the answer on, also
 * after power was lost; others are not. A list that is none fences nobody. */
static void test_list_of_fences(void **state) {
    struct ost_world *world = world_start(31);
    struct ost_place place = place_of(0, 3000);
    uint8_t fences[WIRE_FENCES_MAX * WIRE_FENCE_BYTES];
    uint32_t count;

    (void)state;
    fill(1, place.size);
    for (uint64_t i = 0; i < WIRE_FENCES_MAX; i++) {
        store_le64(fences + i * WIRE_FENCE_BYTES, i == 0 ? OST_SESSION : 100 + i);
        store_le64(fences + i * WIRE_FENCE_BYTES + 8, i == 0 ? OST_INCARNATION : i);
    }
    store_le64(fences + 63 * WIRE_FENCE_BYTES, 0);
    assert_int_equal(list_of_fences(world, (struct bytes){fences, sizeof fences}, &count),
                     -ERR_INVALID);
    store_le64(fences + 63 * WIRE_FENCE_BYTES, 163);
    assert_int_equal(list_of_fences(world, (struct bytes){fences, 17}, &count), -ERR_MALFORMED);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(list_of_fences(world, (struct bytes){fences, sizeof fences}, &count), 0);
    assert_int_equal(count, WIRE_FENCES_MAX);
    for (int life = 0; life < 3; life++) {
        assert_int_equal(ost_world_write(world, &place, data), -ERR_FENCED);
        assert_int_equal(attach(world, OST_SESSION, OST_INCARNATION), -ERR_FENCED);
        for (uint64_t i = 1; i < WIRE_FENCES_MAX; i++) {
            assert_int_equal(attach(world, 100 + i, i), -ERR_FENCED);
        }
        assert_int_equal(attach(world, 200, 1), 0);
        ost_world_crash(world, life == 0);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    assert_int_equal(list_of_fences(world, (struct bytes){fences, WIRE_FENCE_BYTES}, &count), 0);
    assert_int_equal(count, 1);
    ost_world_free(world);
}

/* What a version to come adds to a fence is skipped; a length that no version has fences nobody. */
static void test_fences_of_other_versions(void **state) {
    const struct wire_fence fences[] = {{OST_SESSION, OST_INCARNATION}, {300, 3}};
    const struct bytes rows = {(const uint8_t *)fences, sizeof fences};
    uint8_t space[ARRAY_SIZE(fences) * (sizeof *fences + ROW_MORE)];
    struct ost_world *world = world_start(33);
    struct ost_place place = place_of(0, 3000);
    uint32_t count;
    uint16_t wrong;

    (void)state;
    for (uint32_t i = 0; (wrong = rows_wrong(i, sizeof *fences)); i++) {
        assert_int_equal(rows_of_fences(world, rows, wrong, &count), -ERR_MALFORMED);
    }
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(rows_of_fences(world, rows_longer(rows, sizeof *fences, space),
                                    sizeof *fences + ROW_MORE, &count),
                     0);
    assert_int_equal(count, ARRAY_SIZE(fences));
    assert_int_equal(ost_world_write(world, &place, data), -ERR_FENCED);
    assert_int_equal(attach(world, 300, 3), -ERR_FENCED);
    assert_int_equal(attach(world, 300, 4), 0);
    ost_world_free(world);
}

static void test_sessions(void **state) {
    struct ost_world *world = world_start(6);
    struct ost_place place = place_of(0, 10);

    (void)state;
    for (uint64_t session = 100; session < 100 + 15; session++) {
        assert_int_equal(attach(world, session, 1), 0);
    }
    assert_int_equal(attach(world, 200, 1), -ERR_BUSY);
    assert_int_equal(attach(world, 101, 2), 0);
    assert_int_equal(attach(world, 101, 1), -ERR_FENCED);
    assert_int_equal(ost_world_ended(world, 101), 0);
    assert_int_equal(ost_world_ended(world, 101), 0);
    assert_int_equal(attach(world, 101, 2), -ERR_FENCED);
    assert_int_equal(attach(world, 200, 1), 0);
    /* Attached sessions are known after a kill; each is found, whatever went before it. */
    ost_world_crash(world, false);
    assert_int_equal(ost_world_open(world, problem), 0);
    fill(1, 10);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    for (uint64_t session = 102; session < 100 + 15; session += 2) {
        assert_int_equal(ost_world_ended(world, session), 0);
    }
    for (uint64_t session = 103; session < 100 + 15; session += 2) {
        assert_int_equal(attach(world, session, 1), 0);
    }
    assert_int_equal(attach(world, 102, 1), -ERR_FENCED);
    assert_int_equal(attach(world, 0, 1), -ERR_INVALID);
    ost_world_free(world);
}

static uint64_t list_tell(struct ost_world *world, struct sessions_ended_request request) {
    struct ost_call *call = ost_call_get(world, OP_SESSIONS_ENDED);

    call->call.request.sessions_ended = request;
    assert_int_equal(ost_call_run(call), 0);
    return call->call.reply.sessions_ended.number;
}

static int attach_at(struct ost_world *world, uint64_t session, uint64_t ended) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = session, .incarnation = 1, .node = 1, .ended = ended};
    return ost_call_run(call);
}

/* It waits for the list, until it is given up. */
static void attach_waits(struct ost_world *world, uint64_t session, uint64_t ended) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = session, .incarnation = 1, .node = 1, .ended = ended};
    ost_call_start(call);
    for (int i = 0; i < 100; i++) {
        ost_world_turn(world);
    }
    assert_false(call->answered);
    call_cancel(&call->call);
    while (!call->answered) {
        ost_world_turn(world);
    }
    assert_int_equal(call->call.result, -ERR_INTERRUPTED);
    call->busy = false;
}

static struct bytes names_of(const uint64_t *sessions, size_t count, uint8_t *names) {
    for (size_t i = 0; i < count; i++) {
        store_le64(names + 8 * i, sessions[i]);
    }
    return (struct bytes){names, 8 * count};
}

/* A message that begins elsewhere than where the list stands names, and moves no number; what was
 * answered is on disk. Who began by a newer list waits for it; who was named is refused for ever,
 * attached or not; a fence goes with its session's name. */
static void test_list_of_the_ended(void **state) {
    static const uint64_t first[] = {9, 40, 41}, second[] = {42};
    struct ost_world *world = world_start(29);
    const struct kv_key fence = store_owner_key(STORE_ROW_FENCE, 40, 0);
    struct bytes value;
    uint8_t names[64];

    (void)state;
    assert_int_equal(attach_at(world, 9, 1), 0);
    attach_waits(world, 50, 3);
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);
    call->call.request.chunk_length = (struct chunk_length_request){
        .ino = {0x300}, .chunk_bytes = CHUNK, .fence_session = 40, .fence_incarnation = 5};
    assert_int_equal(ost_call_run(call), 0);
    assert_int_equal(list_tell(world, (struct sessions_ended_request){.from = 2, .number = 3}), 1);
    attach_waits(world, 50, 3);
    assert_int_equal(list_tell(world,
                               (struct sessions_ended_request){
                                   .from = 1, .number = 4, .names = names_of(first, 3, names)}),
                     4);
    for (int life = 0; life < 3; life++) {
        assert_int_equal(attach_at(world, 9, 1), -ERR_FENCED);
        assert_int_equal(attach_at(world, 41, 4), -ERR_FENCED);
        assert_int_equal(attach_at(world, 50 + life, 3), 0);
        attach_waits(world, 60, 5);
        int r;
        while ((r = kv_get(ost_kv(world->ost), &fence, &value)) == -ERR_PENDING) {
            ost_world_turn(world);
        }
        assert_int_equal(r, -ERR_NOT_FOUND);
        assert_int_equal(list_tell(world, (struct sessions_ended_request){.from = 1, .number = 3}),
                         4); /* a late copy */
        ost_world_crash(world, life != 1);
        assert_int_equal(ost_world_open(world, problem), 0);
    }
    /* Below the lowest all are refused, also whom no message has named; no row of bits is left. */
    assert_int_equal(
        list_tell(world,
                  (struct sessions_ended_request){
                      .from = 4, .number = 4, .first = 39, .names = names_of(second, 1, names)}),
        4);
    assert_int_equal(attach_at(world, 38, 1), 0);
    assert_int_equal(list_tell(world,
                               (struct sessions_ended_request){
                                   .from = 4, .number = 6, .first = 1000000, .lowest = 1000000}),
                     6);
    assert_int_equal(attach_at(world, 38, 1), -ERR_FENCED);
    assert_int_equal(attach_at(world, 999999, 1), -ERR_FENCED);
    assert_int_equal(attach_at(world, 1000000, 6), 0);
    const struct kv_key bits = store_owner_key(STORE_ROW_ENDED, 1, 0);
    int r;
    while ((r = kv_get(ost_kv(world->ost), &bits, &value)) == -ERR_PENDING) {
        ost_world_turn(world);
    }
    assert_int_equal(r, -ERR_NOT_FOUND);
    ost_world_free(world);
}

static void session_put(struct ost_world *world, uint64_t session, uint64_t incarnation) {
    const struct store_session row = {
        .format = STORE_FORMAT, .node = 1, .incarnation = incarnation};
    const struct kv_need need = {
        .rows = 1, .value_bytes = sizeof row, .record_bytes = KV_ROW_RECORD_BYTES + sizeof row};
    struct kv_key key = store_owner_key(STORE_ROW_SESSION, session, 0);
    struct kv *kv = ost_kv(world->ost);
    struct kv_grant grant;

    assert_int_equal(kv_admit(kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(kv, &grant);
    assert_int_equal(kv_put(kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}), 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
}

/* Whose row lies below the lowest has ended, whatever has left it there. */
static void test_rows_below_the_lowest(void **state) {
    struct ost_world *world = world_start(31);

    (void)state;
    assert_int_equal(list_tell(world,
                               (struct sessions_ended_request){
                                   .from = 1, .number = 2, .first = 1000, .lowest = 1000}),
                     2);
    session_put(world, 998, 1);
    session_put(world, 1000, 1);
    ost_world_crash(world, false);
    assert_int_equal(ost_world_open(world, problem), 0);
    assert_int_equal(attach_at(world, 998, 2), -ERR_FENCED);
    assert_int_equal(attach_at(world, 1000, 2), 0);
    ost_world_free(world);
}

static void test_list_that_is_none(void **state) {
    struct ost_world *world = ost_world_new(30);
    uint8_t names[24] = {0};

    (void)state;
    assert_int_equal(ost_world_open(world, problem), 0);
    attach_waits(world, 5, 0); /* It has no list at all. */
    const struct sessions_ended_request bad[] = {{.from = 2, .number = 1},
                                                 {.number = 1, .names = {names, 7}},
                                                 {.number = 1, .names = {names, 8}}};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct ost_call *call = ost_call_get(world, OP_SESSIONS_ENDED);

        call->call.request.sessions_ended = bad[i];
        assert_int_equal(ost_call_run(call), -ERR_INVALID);
    }
    assert_int_equal(list_tell(world, (struct sessions_ended_request){.number = 1}), 1);
    assert_int_equal(attach_at(world, 5, 1), 0);
    /* A stop does not wait for a list. */
    struct ost_call *late = ost_call_get(world, OP_SESSION_ATTACH);
    late->call.request.session_attach =
        (struct session_attach_request){.session = 6, .incarnation = 1, .node = 1, .ended = 2};
    ost_call_start(late);
    ost_world_turn(world);
    assert_false(late->answered);
    ost_world_stop(world);
    assert_true(late->answered);
    assert_int_equal(late->call.result, -ERR_CLOSED);
    ost_world_free(world);
}

/* Its counters lie where they did, whatever has moved in the table; UINT64_MAX: it has none. */
static void session_look(const struct sessions *sessions, uint64_t id, uint64_t request_count) {
    struct session_counters *counters = ost_sessions_counters(sessions, (struct session_id){id});

    assert_int_equal(counters == NULL, request_count == UINT64_MAX);
    if (counters) {
        assert_int_equal(counters->session.value, id);
        assert_int_equal(counters->node, id);
        assert_int_equal(counters->request_count, request_count);
        counters->request_count++;
    }
}

/* The table against a plain array, full of neighbours. */
static void test_session_table(void **state) {
    enum { IDS = 60, MOST = 24 };
    uint64_t model[IDS] = {0};
    uint64_t request_counts[IDS] = {0};
    struct sessions sessions;
    struct prng prng;
    uint32_t count = 0;

    (void)state;
    prng_init(&prng, 3);
    assert_int_equal(ost_sessions_init(&sessions, MOST), 0);
    for (int i = 0; i < 5000; i++) {
        uint64_t id = 1 + prng_below(&prng, IDS - 1);
        uint64_t incarnation = 1 + prng_below(&prng, 9);

        if (prng_chance(&prng, 1, 2)) {
            sessions_remove(&sessions, id);
            count -= model[id] > 0;
            model[id] = 0;
            request_counts[id] = 0;
        } else {
            int r = sessions_put(&sessions, (struct session_entry){.session = id,
                                                                   .incarnation = incarnation,
                                                                   .node = (uint32_t)id});

            assert_int_equal(r, model[id] > 0 || count < MOST ? 0 : -ERR_BUSY);
            count += r == 0 && model[id] == 0;
            model[id] = r == 0 ? incarnation : model[id];
        }
        for (uint64_t k = 1; k < IDS; k++) {
            const struct session_entry *entry = ost_sessions_find(&sessions, k);

            assert_int_equal(entry ? entry->incarnation : 0, model[k]);
            session_look(&sessions, k, entry ? request_counts[k] : UINT64_MAX);
            request_counts[k] += entry ? 1 : 0;
        }
    }
    struct session_counters_list list = {0};
    ost_sessions_counters_get(&sessions, &list);
    assert_int_equal(list.count, count);
    ost_sessions_deinit(&sessions);
}

/* What a reader, a writer and an order each make of a truncation that the chunk does not know. */
static void test_truncation(void **state) {
    struct ost_world *world = world_start(7);
    struct ost_place all = place_of(0, CHUNK);
    struct ost_place behind = place_of(100000, 5000);
    uint8_t *want = calloc(1, CHUNK);

    (void)state;
    fill(1, CHUNK);
    memcpy(want, data, 30001);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    uint64_t full = free_blocks(world);
    all.truncate_seq = behind.truncate_seq = 3;
    all.truncate_size = behind.truncate_size = 2 * CHUNK + 30001;
    assert_int_equal(ost_world_read(world, &all, want), 0);
    all.truncate_seq = 2;
    all.truncate_size = 0;
    uint8_t *nothing = calloc(1, CHUNK);
    assert_int_equal(ost_world_read(world, &all, nothing), 0);
    fill(2, behind.size);
    assert_int_equal(ost_world_write(world, &behind, data), 0);
    memcpy(want + behind.offset, data, behind.size);
    assert_int_equal(ost_world_read(world, &all, want), 0);
    /* The cut has left the middle empty. */
    assert_int_equal(ost_world_fsck(world), 8 + 2);
    assert_int_equal(ost_world_write(world, &all, data), -ERR_BAD_CAPABILITY);
    assert_int_equal(ost_world_sync(world), 0);
    assert_true(free_blocks(world) > full);
    free(nothing);
    free(want);
    ost_world_free(world);
}

/* A chunk of more segments than one transaction cuts. */
static void test_long_cut(void **state) {
    struct ost_world *world = ost_world_new(8);
    struct ost_place place = {.ino = {9}, .generation = 4, .chunk_bytes = 8 * MIB};
    uint64_t resume = 0;

    (void)state;
    world->options.data_bytes_max = 24 * MIB;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    place.size = 128 * 1024;
    fill(1, place.size);
    for (place.offset = 0; place.offset < place.chunk_bytes; place.offset += place.size) {
        assert_int_equal(ost_world_write(world, &place, data), 0);
    }
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {9},
                                                              .generation = 4,
                                                              .chunk_bytes = 8 * MIB,
                                                              .truncate_seq = 1,
                                                              .truncate_size = 5000};
    assert_int_equal(ost_call_run(call), 0);
    assert_true(call->call.reply.chunk_cut.end);
    assert_int_equal(ost_world_fsck(world), 2);
    place.offset = 0;
    place.truncate_seq = 1;
    place.truncate_size = 5000;
    memset(data + 5000, 0, place.size - 5000);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    /* All of it goes; the order may be repeated. */
    call = ost_call_get(world, OP_CHUNK_CUT);
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {9},
                                                              .generation = 4,
                                                              .chunk_bytes = 8 * MIB,
                                                              .truncate_seq = 2,
                                                              .resume_chunk = resume};
    assert_int_equal(ost_call_run(call), 0);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_delete(world, (struct ino){9}, 4);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The largest file ends within its last chunk, which is a chunk like others; behind it is none. */
static void test_last_chunk(void **state) {
    static const uint32_t chunk_bytes[] = {CHUNK_BYTES_MIN, 3 * CHUNK_BYTES_MIN, CHUNK_BYTES_MAX};
    struct ost_world *world = world_start(19);
    uint8_t zeros[100] = {0};

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(chunk_bytes); i++) {
        uint64_t last = FILE_BYTES_MAX / chunk_bytes[i];
        uint32_t end = (uint32_t)(FILE_BYTES_MAX - last * chunk_bytes[i]);
        struct ost_place place = {.ino = {30 + i},
                                  .generation = 1,
                                  .chunk = last,
                                  .chunk_bytes = chunk_bytes[i],
                                  .offset = end - 100,
                                  .size = 100};

        assert_int_equal(ost_world_read(world, &place, zeros), 0);
        fill(i, place.size);
        assert_int_equal(ost_world_write(world, &place, data), 0);
        assert_int_equal(ost_world_read(world, &place, data), 0);
        place.offset++;
        assert_int_equal(ost_world_write(world, &place, data), -ERR_BAD_CAPABILITY);
        place.chunk++;
        place.offset = 0;
        assert_int_equal(ost_world_write(world, &place, data), -ERR_INVALID);
        struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);
        call->call.request.chunk_cut = (struct chunk_cut_request){.ino = place.ino,
                                                                  .generation = 1,
                                                                  .chunk_bytes = chunk_bytes[i],
                                                                  .truncate_seq = 1,
                                                                  .resume_chunk = last + 1};
        assert_int_equal(ost_call_run(call), 0);
        assert_true(call->call.reply.chunk_cut.end);
        assert_int_equal(ost_world_fsck(world), i + 1);
    }
    ost_world_stop(world);
    ost_world_free(world);
}

/* Whoever has seen an earlier term is told; by its writes' positions it knows what was lost. */
static void test_terms(void **state) {
    struct ost_world *world = world_start(20);
    struct ost_place place = place_of(0, 100);
    uint64_t term = 0;
    uint64_t position = 0;

    (void)state;
    for (int life = 0; life < 4; life++) {
        bool power = life % 2;
        struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

        call->call.request.session_attach = (struct session_attach_request){
            .session = OST_SESSION, .incarnation = OST_INCARNATION, .node = 1, .known_term = term};
        call->call.header.term = term;
        assert_int_equal(ost_call_run(call), 0);
        const struct session_attach_reply *reply = &call->call.reply.session_attach;
        assert_true(reply->term > term);
        assert_int_equal(reply->window, 1024); /* as first granted, also where that is lost */
        if (life > 0) {
            /* The life before was ended by a kill first, then by a power cut, then by a kill. */
            assert_true(power ? reply->recovered_position >= position
                              : reply->recovered_position < position);
        }
        term = reply->term;
        fill(1, place.size);
        call = ost_call_get(world, OP_CHUNK_WRITE);
        ost_call_write(call, &place, data);
        call->call.header.term = term;
        assert_int_equal(ost_call_run(call), 0);
        position = call->call.reply.chunk_write.position;
        assert_true(position > 0);
        ost_world_crash(world, power);
        assert_int_equal(ost_world_open(world, problem), 0);
        call = ost_call_get(world, OP_SYNC);
        call->call.header.term = term;
        assert_int_equal(ost_call_run(call), -ERR_STALE_TERM);
    }
    ost_world_free(world);
}

/* After the stop calls are refused; those before it are answered. */
static void test_stop(void **state) {
    struct ost_world *world = world_start(18);
    struct ost_place place = place_of(0, CHUNK);
    struct ost_call *before = ost_call_get(world, OP_CHUNK_WRITE);
    struct ost_call *after = ost_call_get(world, OP_STATFS);
    int result = 1;

    (void)state;
    fill(1, CHUNK);
    ost_call_write(before, &place, data);
    ost_call_start(before);
    ost_stop_start(world->ost, NULL, &result);
    ost_call_start(after);
    assert_true(after->answered);
    assert_int_equal(after->call.result, -ERR_CLOSED);
    while (!before->answered) {
        ost_world_turn(world);
    }
    assert_int_equal(before->call.result, 0);
    before->busy = false;
    after->busy = false;
    ost_world_stop(world);
    assert_int_equal(ost_world_open(world, problem), 0);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_order_of_arrival),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_one_number_for_writes_of_two_chunks),
        cmocka_unit_test(test_numbers_of_another_log),
        cmocka_unit_test(test_floor_of_an_idle_session),
        cmocka_unit_test(test_fenced_in_flight),
        cmocka_unit_test(test_stopped_log),
        cmocka_unit_test(test_blocks_of_writes),
        cmocka_unit_test(test_length_and_fence),
        cmocka_unit_test(test_list_of_fences),
        cmocka_unit_test(test_fences_of_other_versions),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_list_of_the_ended),
        cmocka_unit_test(test_rows_below_the_lowest),
        cmocka_unit_test(test_list_that_is_none),
        cmocka_unit_test(test_session_table),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_long_cut),
        cmocka_unit_test(test_last_chunk),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_terms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
