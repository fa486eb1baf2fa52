/* The OST: holes, promised space, and where data is. What is promised is counted against a model of
 * which blocks are holes, and which are owed. */
#include "unit.h"
#include "ost_world.h"
#include "store/store_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 * 1024, BLOCKS = CHUNK / BLOCK_BYTES, CHUNKS = 2 };

static uint8_t data[OST_CALL_BYTES_MAX];
static char problem[256];

static void fill(struct prng *prng, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = prng_next(prng);

        memcpy(data + i, &word, MIN(size - i, sizeof word));
    }
}

static struct ost_world *world_start(uint64_t seed) {
    struct ost_world *world = ost_world_new(seed);

    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    return world;
}

static struct ost_place place_of(uint32_t offset, uint32_t size) {
    return (struct ost_place){
        .ino = {17}, .generation = 1, .chunk_bytes = CHUNK, .offset = offset, .size = size};
}

static struct capability capability_of(const struct ost_place *place) {
    return (struct capability){.ino = place->ino,
                               .generation = place->generation,
                               .rights = RIGHT_READ | RIGHT_WRITE,
                               .max_offset = FILE_BYTES_MAX,
                               .truncate_seq = place->truncate_seq,
                               .truncate_size = place->truncate_size,
                               .session = OST_SESSION,
                               .session_incarnation = OST_INCARNATION};
}

static struct ost_call *space_call(struct ost_world *world, const struct ost_place *place,
                                   uint32_t what, uint64_t name) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_SPACE);

    call->call.request.chunk_space =
        (struct chunk_space_request){.capability = capability_of(place),
                                     .chunk = place->chunk,
                                     .chunk_bytes = place->chunk_bytes,
                                     .offset = place->offset,
                                     .size = place->size,
                                     .what = what,
                                     .call = name};
    return call;
}

static int space(struct ost_world *world, const struct ost_place *place, uint32_t what,
                 uint64_t name) {
    return ost_call_run(space_call(world, place, what, name));
}

/* -1: there is none. */
static int64_t seek(struct ost_world *world, const struct ost_place *from, uint32_t what) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_SEEK);

    call->call.request.chunk_seek = (struct chunk_seek_request){.capability = capability_of(from),
                                                                .chunk = from->chunk,
                                                                .chunk_bytes = from->chunk_bytes,
                                                                .offset = from->offset,
                                                                .stride = 1,
                                                                .what = what};
    assert_int_equal(ost_call_run(call), 0);
    return call->call.reply.chunk_seek.found ? (int64_t)call->call.reply.chunk_seek.offset : -1;
}

static uint64_t promised(struct ost_world *world) {
    struct ost_counters counters;

    ost_counters_get(world->ost, &counters);
    return counters.promised_blocks;
}

static void cut(struct ost_world *world, struct ost_place *place, uint64_t size) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);

    place->truncate_seq++;
    place->truncate_size = size;
    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = place->ino,
                                                              .generation = place->generation,
                                                              .chunk_bytes = place->chunk_bytes,
                                                              .truncate_seq = place->truncate_seq,
                                                              .truncate_size = size};
    assert_int_equal(ost_call_run(call), 0);
    assert_true(call->call.reply.chunk_cut.end);
}

static void test_holes(void **state) {
    struct ost_world *world = world_start(1);
    struct ost_place all = place_of(0, 40 * BLOCK_BYTES);
    struct ost_place hole = place_of(5 * BLOCK_BYTES + 100, 6 * BLOCK_BYTES);
    struct ost_place place;

    (void)state;
    fill(&world->prng, all.size);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    assert_int_equal(space(world, &hole, SPACE_PUNCH, 0), 0);
    memset(data + hole.offset, 0, hole.size);
    assert_int_equal(ost_world_read(world, &all, data), 0);
    assert_int_equal(ost_world_fsck(world), 40 - 5);
    place = place_of(0, 0);
    assert_int_equal(seek(world, &place, WIRE_SEEK_HOLE), 6 * BLOCK_BYTES);
    place.offset = 6 * BLOCK_BYTES + 7;
    assert_int_equal(seek(world, &place, WIRE_SEEK_HOLE), 6 * BLOCK_BYTES + 7);
    assert_int_equal(seek(world, &place, WIRE_SEEK_DATA), 11 * BLOCK_BYTES);
    place.offset = 11 * BLOCK_BYTES;
    assert_int_equal(seek(world, &place, WIRE_SEEK_HOLE), 40 * BLOCK_BYTES);
    place.offset = 40 * BLOCK_BYTES;
    assert_int_equal(seek(world, &place, WIRE_SEEK_DATA), -1);
    /* The last block up to the end is one as a whole; of what is no chunk nothing is made. */
    hole = place_of(39 * BLOCK_BYTES, BLOCK_BYTES - 1);
    assert_int_equal(space(world, &hole, SPACE_PUNCH, 0), 0);
    assert_int_equal(ost_world_fsck(world), 40 - 5);
    hole.size = BLOCK_BYTES;
    assert_int_equal(space(world, &hole, SPACE_PUNCH, 0), 0);
    assert_int_equal(ost_world_fsck(world), 40 - 6);
    hole.chunk = 3;
    assert_int_equal(space(world, &hole, SPACE_PUNCH, 0), 0);
    assert_int_equal(ost_world_fsck(world), 40 - 6);
    /* A hole in a chunk of which nothing else is left takes no row but its head's. */
    assert_int_equal(space(world, &all, SPACE_PUNCH, 0), 0);
    assert_int_equal(ost_world_fsck(world), 0);
    place.offset = 0;
    assert_int_equal(seek(world, &place, WIRE_SEEK_DATA), -1);
    assert_int_equal(seek(world, &place, WIRE_SEEK_ANY), -1);
    ost_world_stop(world);
    ost_world_free(world);
}

/* What comes twice is done once: a write since is not punched. */
static void test_copy_of_a_punch(void **state) {
    struct ost_world *world = world_start(2);
    struct ost_place place = place_of(0, 3 * BLOCK_BYTES);

    (void)state;
    struct ost_call *call = space_call(world, &place, SPACE_PUNCH, 0);
    assert_int_equal(ost_call_run(call), 0);
    uint64_t sequence = call->call.header.sequence;
    uint64_t position = call->call.reply.chunk_space.position;
    fill(&world->prng, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    call = space_call(world, &place, SPACE_PUNCH, 0);
    call->call.header.sequence = sequence;
    assert_int_equal(ost_call_run(call), 0);
    assert_int_equal(call->call.reply.chunk_space.position, position);
    assert_int_equal(ost_world_read(world, &place, data), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

static void test_promise(void **state) {
    struct ost_world *world = world_start(3);
    struct ost_place all = place_of(0, CHUNK);
    struct ost_place part = place_of(4 * BLOCK_BYTES, 10 * BLOCK_BYTES);
    struct ost_place place = place_of(0, 0);

    (void)state;
    assert_int_equal(space(world, &all, SPACE_PROMISE, 9), 0);
    assert_int_equal(promised(world), BLOCKS);
    assert_int_equal(seek(world, &place, WIRE_SEEK_DATA), -1);
    assert_int_equal(seek(world, &place, WIRE_SEEK_ANY), 0);
    fill(&world->prng, part.size);
    for (int i = 0; i < 2; i++) { /* Once filled, a hole is none. */
        assert_int_equal(ost_world_write(world, &part, data), 0);
        assert_int_equal(promised(world), BLOCKS - 10);
        assert_int_equal(ost_world_fsck(world), 10);
    }
    part.size = 2 * BLOCK_BYTES;
    assert_int_equal(space(world, &part, SPACE_ZERO, 0), 0); /* stays promised */
    assert_int_equal(promised(world), BLOCKS - 8);
    assert_int_equal(space(world, &part, SPACE_PUNCH, 0), 0); /* is given back */
    assert_int_equal(promised(world), BLOCKS - 10);
    assert_int_equal(ost_world_fsck(world), 8);
    ost_world_crash(world, false);
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    assert_int_equal(ost_world_fsck(world), 8);
    assert_int_equal(promised(world), BLOCKS - 10);
    cut(world, &all, 20 * BLOCK_BYTES + 1);
    assert_int_equal(promised(world), 21 - 10);
    assert_int_equal(ost_world_fsck(world), 8);
    cut(world, &all, 5 * BLOCK_BYTES);
    assert_int_equal(promised(world), 4);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_delete(world, all.ino, all.generation);
    assert_int_equal(promised(world), 0);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* What a call has added goes, and nothing that was promised before, or to others since. */
static void test_undo(void **state) {
    struct ost_world *world = world_start(4);
    struct ost_place all = place_of(0, CHUNK);
    struct ost_place low = place_of(0, 10 * BLOCK_BYTES);
    struct ost_place high = place_of(5 * BLOCK_BYTES, 20 * BLOCK_BYTES);

    (void)state;
    assert_int_equal(space(world, &all, SPACE_PROMISE, 1), 0);
    assert_int_equal(space(world, &all, SPACE_UNDO, 2), 0);
    assert_int_equal(promised(world), BLOCKS);
    assert_int_equal(space(world, &all, SPACE_UNDO, 1), 0);
    assert_int_equal(promised(world), 0);
    assert_int_equal(space(world, &low, SPACE_PROMISE, 1), 0);
    assert_int_equal(space(world, &high, SPACE_PROMISE, 2), 0);
    assert_int_equal(promised(world), 25);
    assert_int_equal(space(world, &high, SPACE_UNDO, 2), 0);
    assert_int_equal(promised(world), 10);
    assert_int_equal(space(world, &high, SPACE_PROMISE, 3), 0);
    assert_int_equal(space(world, &low, SPACE_PROMISE, 4), 0); /* relies on what is there */
    assert_int_equal(space(world, &high, SPACE_UNDO, 3), 0);
    assert_int_equal(promised(world), 25);
    assert_int_equal(ost_world_fsck(world), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* Others find the target full; who was promised space, and who overwrites, does not. */
static void test_full(void **state) {
    struct ost_world *world = world_start(5);
    struct ost_place owed = place_of(0, CHUNK);
    struct ost_place other = place_of(0, 64 * 1024);
    uint32_t written = 0;
    int r = 0;

    (void)state;
    assert_int_equal(space(world, &owed, SPACE_PROMISE, 1), 0);
    other.ino.value = 18;
    fill(&world->prng, other.size);
    for (other.chunk = 0; r == 0; other.chunk++) {
        r = ost_world_write(world, &other, data);
        written += r == 0;
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_true(written > 50);
    struct ost_place more = place_of(0, CHUNK);
    more.chunk = 7;
    assert_int_equal(space(world, &more, SPACE_PROMISE, 2), -ERR_NO_SPACE);
    assert_int_equal(promised(world), BLOCKS);
    for (owed.offset = 0; owed.offset < CHUNK; owed.offset += owed.size) {
        owed.size = MIN((uint32_t)OST_CALL_BYTES_MAX, CHUNK - owed.offset);
        assert_int_equal(ost_world_write(world, &owed, data), 0);
    }
    assert_int_equal(promised(world), 0);
    other.chunk = 0;
    assert_int_equal(ost_world_write(world, &other, data), 0);
    assert_int_equal(ost_world_fsck(world), BLOCKS + written * 16);
    ost_world_stop(world);
    ost_world_free(world);
}

static void test_refusals(void **state) {
    struct ost_world *world = world_start(6);
    struct ost_place place = place_of(0, BLOCK_BYTES);
    struct ost_place bad;

    (void)state;
    fill(&world->prng, place.size);
    assert_int_equal(ost_world_write(world, &place, data), 0);
    assert_int_equal(space(world, &place, 0, 1), -ERR_INVALID);
    assert_int_equal(space(world, &place, SPACE_UNDO + 1, 1), -ERR_INVALID);
    assert_int_equal(space(world, &place, SPACE_PROMISE, 0), -ERR_INVALID);
    bad = place_of(0, 0);
    assert_int_equal(space(world, &bad, SPACE_PUNCH, 0), -ERR_INVALID);
    bad = place_of(CHUNK - 1, 2);
    assert_int_equal(space(world, &bad, SPACE_PROMISE, 1), -ERR_INVALID);
    bad = place_of(0, CHUNK); /* Only what needs no look at each block may be as large. */
    assert_int_equal(space(world, &bad, SPACE_PUNCH, 0), -ERR_INVALID);
    bad = place;
    bad.chunk_bytes = 2 * CHUNK;
    assert_int_equal(space(world, &bad, SPACE_PUNCH, 0), -ERR_INVALID);
    struct ost_call *call = space_call(world, &place, SPACE_PUNCH, 0);
    call->call.request.chunk_space.capability.rights = RIGHT_READ;
    assert_int_equal(ost_call_run(call), -ERR_BAD_CAPABILITY);
    cut(world, &place, 100);
    bad = place;
    bad.truncate_seq--;
    assert_int_equal(space(world, &bad, SPACE_PUNCH, 0), -ERR_BAD_CAPABILITY);
    for (uint32_t i = 0; i < 4; i++) {
        call = ost_call_get(world, OP_CHUNK_SEEK);
        call->call.request.chunk_seek =
            (struct chunk_seek_request){.capability = capability_of(&place),
                                        .chunk_bytes = i == 0 ? CHUNK + 1 : CHUNK,
                                        .offset = i == 1 ? CHUNK : 0,
                                        .stride = i == 2 ? 0 : 1,
                                        .what = i == 3 ? WIRE_SEEK_ANY + 1 : WIRE_SEEK_DATA};
        assert_int_equal(ost_call_run(call), -ERR_INVALID);
    }
    ost_world_stop(world);
    ost_world_free(world);
}

/* What one chunk is: its bytes, which blocks are stored, and which are promised when they are not.
 */
struct model_chunk {
    uint8_t bytes[CHUNK];
    bool stored[BLOCKS];
    bool owed[BLOCKS];
    bool before[BLOCKS];
    uint64_t call;
    uint32_t length;
};

static uint64_t chunk_promised(const struct model_chunk *chunk) {
    uint64_t count = 0;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        count += chunk->owed[i] && !chunk->stored[i];
    }
    return count;
}

static void promise_settle(struct model_chunk *chunk) {
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (chunk->owed[i]) {
            return;
        }
    }
    chunk->call = 0;
}

static void model_write(struct model_chunk *chunk, const struct ost_place *place) {
    uint32_t end = place->offset + place->size;

    memcpy(chunk->bytes + place->offset, data, place->size);
    for (uint32_t i = place->offset / BLOCK_BYTES; i <= (end - 1) / BLOCK_BYTES; i++) {
        chunk->stored[i] = true;
    }
    chunk->length = MAX(chunk->length, end);
}

static bool is_whole(const struct model_chunk *chunk, const struct ost_place *place, uint32_t i) {
    uint32_t end = MIN((i + 1) * (uint32_t)BLOCK_BYTES, chunk->length);

    return place->offset <= i * BLOCK_BYTES && place->offset + place->size >= end;
}

static void model_space(struct model_chunk *chunk, const struct ost_place *place, uint32_t what,
                        uint64_t call) {
    uint32_t first = place->offset / BLOCK_BYTES;
    uint32_t last = (place->offset + place->size - 1) / BLOCK_BYTES;
    bool adds = false;

    for (uint32_t i = first; i <= last; i++) {
        adds = adds || !chunk->owed[i];
    }
    if (what == SPACE_PROMISE && chunk->call != call) {
        chunk->call = adds ? call : 0;
        for (uint32_t i = 0; i < BLOCKS; i++) {
            chunk->before[i] = adds && chunk->owed[i];
        }
    }
    if (what == SPACE_PUNCH || what == SPACE_ZERO) {
        memset(chunk->bytes + place->offset, 0, place->size);
    }
    for (uint32_t i = first; i <= last; i++) {
        if (what == SPACE_PROMISE) {
            chunk->owed[i] = true;
        } else if (what == SPACE_UNDO && chunk->call == call) {
            chunk->owed[i] = chunk->owed[i] && chunk->before[i];
        } else if (what != SPACE_UNDO && is_whole(chunk, place, i)) {
            chunk->stored[i] = false;
            chunk->owed[i] = chunk->owed[i] && what == SPACE_ZERO;
            chunk->before[i] = chunk->before[i] && what == SPACE_ZERO;
        }
    }
    promise_settle(chunk);
}

static void model_cut(struct model_chunk *chunk, uint64_t keep) {
    uint32_t length = (uint32_t)MIN(keep, (uint64_t)CHUNK);

    memset(chunk->bytes + length, 0, CHUNK - length);
    chunk->length = MIN(chunk->length, length);
    for (uint32_t i = (length + BLOCK_BYTES - 1) / BLOCK_BYTES; i < BLOCKS; i++) {
        chunk->stored[i] = false;
        chunk->owed[i] = false;
        chunk->before[i] = false;
    }
    promise_settle(chunk);
}

static void model_check(struct ost_world *world, const struct model_chunk *chunks,
                        const struct ost_place *file) {
    uint64_t owed = 0;
    uint64_t stored = 0;

    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct ost_place place = *file;

        place.chunk = i;
        place.size = CHUNK / 2;
        for (place.offset = 0; place.offset < CHUNK; place.offset += place.size) {
            assert_int_equal(ost_world_read(world, &place, chunks[i].bytes + place.offset), 0);
        }
        owed += chunk_promised(&chunks[i]);
        for (uint32_t k = 0; k < BLOCKS; k++) {
            stored += chunks[i].stored[k];
        }
    }
    assert_int_equal(promised(world), owed);
    assert_int_equal(ost_world_fsck(world), stored);
}

static void model_seek(struct ost_world *world, const struct model_chunk *chunks,
                       struct ost_place place) {
    int64_t hole = -1;
    int64_t found = -1;

    for (uint32_t at = place.offset / BLOCK_BYTES; at < BLOCKS * CHUNKS; at++) {
        int64_t offset = MAX((int64_t)at * BLOCK_BYTES, (int64_t)place.offset);
        bool stored = chunks[at / BLOCKS].stored[at % BLOCKS];

        found = found < 0 && stored ? offset : found;
        hole = hole < 0 && !stored ? offset : hole;
    }
    place.chunk = 0;
    assert_int_equal(seek(world, &place, WIRE_SEEK_DATA), found);
    hole = hole < 0 ? (int64_t)CHUNK * CHUNKS : hole;
    assert_int_equal(seek(world, &place, WIRE_SEEK_HOLE), hole);
}

static void model_step(struct ost_world *world, struct model_chunk *chunks,
                       struct ost_place *file) {
    struct prng *prng = &world->prng;
    uint32_t what = (uint32_t)prng_between(prng, SPACE_PUNCH, SPACE_UNDO);
    uint64_t call = prng_between(prng, 1, 3);
    struct ost_place place = *file;

    place.chunk = prng_below(prng, CHUNKS);
    place.offset = (uint32_t)prng_below(prng, CHUNK);
    place.offset -= prng_chance(prng, 2, 3) ? place.offset % BLOCK_BYTES : 0;
    place.size = 1 + (uint32_t)prng_below(prng, MIN((uint32_t)OST_CALL_BYTES_MAX - BLOCK_BYTES,
                                                    CHUNK - place.offset));
    if (what >= SPACE_PROMISE && prng_chance(prng, 1, 4)) {
        place.offset = 0;
        place.size = CHUNK;
    }
    if (prng_chance(prng, 1, 16)) {
        uint64_t size = prng_below(prng, CHUNKS * CHUNK);

        cut(world, file, size);
        for (uint32_t i = 0; i < CHUNKS; i++) {
            model_cut(&chunks[i], size > (uint64_t)i * CHUNK ? size - (uint64_t)i * CHUNK : 0);
        }
    } else if (prng_chance(prng, 2, 5)) {
        place.size = MIN(place.size, (uint32_t)OST_CALL_BYTES_MAX);
        fill(prng, place.size);
        assert_int_equal(ost_world_write(world, &place, data), 0);
        model_write(&chunks[place.chunk], &place);
    } else {
        assert_int_equal(space(world, &place, what, call), 0);
        model_space(&chunks[place.chunk], &place, what, call);
    }
    place = *file;
    place.offset = (uint32_t)prng_below(prng, CHUNK);
    model_seek(world, chunks, place);
}

static void test_model(void **state) {
    (void)state;
    for (uint64_t seed = 100; seed < 112; seed++) {
        struct ost_world *world = world_start(seed);
        struct model_chunk *chunks = calloc(CHUNKS, sizeof *chunks);
        struct ost_place file = place_of(0, 0);

        for (int i = 0; i < 150; i++) {
            model_step(world, chunks, &file);
            if (prng_chance(&world->prng, 1, 10)) {
                model_check(world, chunks, &file);
            }
            if (prng_chance(&world->prng, 1, 40)) {
                bool power = prng_chance(&world->prng, 1, 2);

                if (power) {
                    assert_int_equal(ost_world_sync(world), 0);
                }
                ost_world_crash(world, power);
                assert_int_equal(ost_world_open(world, problem), 0);
                ost_world_attach(world);
                model_check(world, chunks, &file);
            }
        }
        ost_world_delete(world, file.ino, file.generation);
        assert_int_equal(promised(world), 0);
        assert_int_equal(ost_world_fsck(world), 0);
        ost_world_stop(world);
        ost_world_free(world);
        free(chunks);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holes),   cmocka_unit_test(test_copy_of_a_punch),
        cmocka_unit_test(test_promise), cmocka_unit_test(test_undo),
        cmocka_unit_test(test_full),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
