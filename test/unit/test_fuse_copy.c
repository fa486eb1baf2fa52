/* copy_file_range by the FUSE front-end: pieces, ends, errors, signals. */
#include "unit.h"
#include "fuse_desk.h"
#include <errno.h>
#include <string.h>

enum { PIECE = DESK_WRITE_BYTES_MAX, UNIQUE = 4242, SOURCE = 2, TARGET = 3 };

struct pair {
    struct desk *desk;
    struct abi_copy_in in; /* from the source to the target */
};

static int pair_set_up(void **state) {
    struct pair *pair = calloc(1, sizeof(*pair));

    assert_non_null(pair);
    pair->desk = desk_new();
    assert_int_equal(desk_create(pair->desk, "source", 0644, &pair->in.handle), 0);
    assert_int_equal(desk_create(pair->desk, "target", 0644, &pair->in.handle_to), 0);
    *state = pair;
    return 0;
}

static int pair_tear_down(void **state) {
    struct pair *pair = *state;

    desk_free(pair->desk);
    free(pair);
    return 0;
}

static uint8_t byte_at(uint64_t offset) {
    return (uint8_t)(offset * 7 / 5 + offset / PIECE);
}

static void source_fill(struct pair *pair, uint64_t size) {
    static uint8_t data[PIECE];

    for (uint64_t done = 0; done < size;) {
        struct abi_write_in in = {.handle = pair->in.handle, .offset = done};

        in.size = (uint32_t)MIN(size - done, (uint64_t)PIECE);
        for (uint64_t i = 0; i < in.size; i++)
            data[i] = byte_at(done + i);
        assert_int_equal(desk_write(pair->desk, &in, data), 0);
        done += in.size;
    }
}

static void source_resize(struct pair *pair, uint64_t size) {
    const struct abi_setattr_in in = {.valid = ABI_SET_SIZE, .size = size};

    assert_int_equal(desk_run(pair->desk, &(struct desk_request){.opcode = 4,
                                                                 .nodeid = SOURCE,
                                                                 .body = &in,
                                                                 .body_bytes = sizeof(in)}),
                     0);
}

static int copy_by(struct pair *pair, uint32_t opcode) {
    return desk_run(pair->desk, &(struct desk_request){.opcode = opcode,
                                                       .nodeid = SOURCE,
                                                       .body = &pair->in,
                                                       .body_bytes = sizeof(pair->in)});
}

static int copy(struct pair *pair, uint64_t *ret_bytes) {
    int r = copy_by(pair, 53);

    *ret_bytes = ((struct abi_copy_64_out *)(void *)pair->desk->reply.body)->bytes;
    return r;
}

/* What the target has at its offset is what the source has. */
static void target_check(struct pair *pair, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        struct abi_read_in in = {.handle = pair->in.handle_to, .offset = pair->in.offset_to + done};

        in.size = (uint32_t)MIN(size - done, (uint64_t)PIECE);
        assert_int_equal(desk_run(pair->desk, &(struct desk_request){.opcode = 15,
                                                                     .nodeid = TARGET,
                                                                     .body = &in,
                                                                     .body_bytes = sizeof(in)}),
                         0);
        assert_int_equal(pair->desk->reply.bytes, in.size);
        for (uint64_t i = 0; i < in.size; i++)
            assert_int_equal(pair->desk->reply.body[i], byte_at(pair->in.offset + done + i));
        done += in.size;
    }
}

static uint64_t count(struct pair *pair, enum shoal_operation operation) {
    return memory_shoal_count(pair->desk->client, operation);
}

static void test_piece_by_piece(void **state) {
    struct pair *pair = *state;
    uint64_t size = 3 * PIECE + 1234;
    uint64_t copied;

    source_fill(pair, size + 100);
    uint64_t reads = count(pair, SHOAL_READ);
    uint64_t writes = count(pair, SHOAL_WRITE);
    pair->in.offset = 57;
    pair->in.offset_to = 100001;
    pair->in.length = size;
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, size);
    assert_int_equal(count(pair, SHOAL_READ), reads + 4);
    assert_int_equal(count(pair, SHOAL_WRITE), writes + 4);
    assert_int_equal(count(pair, SHOAL_FSYNC), 0);
    target_check(pair, size);
    pair->in.offset_to = 0;
    assert_int_equal(copy_by(pair, 47), 0);
    assert_int_equal(pair->desk->reply.bytes, sizeof(struct abi_write_out));
    assert_int_equal(((struct abi_write_out *)(void *)pair->desk->reply.body)->size, size);
    target_check(pair, size);
}

static void test_ends(void **state) {
    struct pair *pair = *state;
    uint64_t copied;

    source_fill(pair, PIECE + 10);
    pair->in.offset = 4;
    pair->in.length = UINT64_MAX;
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, PIECE + 6);
    target_check(pair, copied);
    pair->in.offset = PIECE + 10;
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, 0);
    /* A request has an end of its own. */
    source_resize(pair, UINT64_C(40) << 20);
    pair->in.offset = 0;
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, 16 << 20);
}

/* Where two users take turns a request takes no longer than a WRITE. */
static void test_a_piece_is_a_turn(void **state) {
    struct pair *pair = *state;
    struct front *front = &pair->desk->front;
    uint64_t copied;

    source_fill(pair, 4 * PIECE);
    pair->in.length = 4 * PIECE;
    atomic_store(&front->fair.mixed_ns, env_now_ns(front->env));
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, PIECE);
    target_check(pair, copied);
    atomic_store(&front->fair.mixed_ns, 0);
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, 4 * PIECE);
}

static void test_what_is_refused(void **state) {
    struct pair *pair = *state;
    struct abi_copy_in in = pair->in;
    uint64_t copied;

    pair->in.flags = 1;
    assert_int_equal(copy(pair, &copied), -EINVAL);
    pair->in = in;
    pair->in.handle = 0;
    assert_int_equal(copy(pair, &copied), -EBADF);
    pair->in = in;
    pair->in.handle_to ^= UINT64_C(1) << 40;
    assert_int_equal(copy(pair, &copied), -EBADF);
    pair->in = in;
}

/* What was copied before it is told first. */
static void test_errors(void **state) {
    struct pair *pair = *state;
    uint64_t copied;

    source_fill(pair, 4 * PIECE);
    pair->in.length = 4 * PIECE;
    memory_shoal_fail(pair->desk->client, SHOAL_READ, -EIO, 1);
    assert_int_equal(copy(pair, &copied), -EIO);
    memory_shoal_fail(pair->desk->client, SHOAL_WRITE, -ENOSPC, 1);
    assert_int_equal(copy(pair, &copied), -ENOSPC);
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, 4 * PIECE);
}

static void test_a_signal_ends_it(void **state) {
    struct pair *pair = *state;
    uint64_t copied;

    source_fill(pair, 4 * PIECE);
    pair->in.length = 4 * PIECE;
    interrupts_note(&pair->desk->front, UNIQUE);
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, PIECE);
    target_check(pair, copied);
}

static void test_set_id(void **state) {
    struct pair *pair = *state;
    struct desk *desk = pair->desk;
    uint64_t copied;

    source_fill(pair, 10);
    pair->in.length = 10;
    for (int other = 0; other < 2; other++) {
        desk->uid = 0;
        char name[] = {'f', (char)('0' + other), '\0'};
        assert_int_equal(desk_create(desk, name, 04755, &pair->in.handle_to), 0);
        uint64_t cleared = count(pair, SHOAL_SETATTR);
        desk->uid = other ? 1000 : 0;
        assert_int_equal(copy(pair, &copied), 0);
        assert_int_equal(copied, 10);
        assert_int_equal(count(pair, SHOAL_SETATTR), cleared + (unsigned)other);
        target_check(pair, 10);
    }
    desk->uid = 0;
    assert_int_equal(desk_create(desk, "kept", 04755, &pair->in.handle_to), 0);
    desk->uid = 1000;
    memory_shoal_fail(desk->client, SHOAL_SETATTR, -EIO, 1);
    uint64_t writes = count(pair, SHOAL_WRITE);
    assert_int_equal(copy(pair, &copied), -EIO);
    assert_int_equal(count(pair, SHOAL_WRITE), writes);
}

static void test_synchronous(void **state) {
    struct pair *pair = *state;
    struct abi_open_out open;
    uint64_t copied;

    source_fill(pair, 10);
    assert_int_equal(desk_open(pair->desk, TARGET, 2 | LINUX_DATA_SYNC, &open), 0);
    pair->in.handle_to = open.handle;
    pair->in.length = 10;
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(copied, 10);
    assert_int_equal(count(pair, SHOAL_FSYNC), 1);
    memory_shoal_fail(pair->desk->client, SHOAL_FSYNC, -EIO, 1);
    assert_int_equal(copy(pair, &copied), -EIO);
    pair->in.offset = 10; /* nothing is copied, so nothing is synced */
    assert_int_equal(copy(pair, &copied), 0);
    assert_int_equal(count(pair, SHOAL_FSYNC), 2);
}

int main(void) {
#define PAIR(test) cmocka_unit_test_setup_teardown(test, pair_set_up, pair_tear_down)
    const struct CMUnitTest tests[] = {
        PAIR(test_piece_by_piece),   PAIR(test_ends),
        PAIR(test_what_is_refused),  PAIR(test_errors),
        PAIR(test_a_signal_ends_it), PAIR(test_set_id),
        PAIR(test_synchronous),      PAIR(test_a_piece_is_a_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
