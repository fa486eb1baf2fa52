/* Whose request is begun next: one user's many never stand before more than one of another's. */
#include "unit.h"
#include "front/fuse/front.h"
#include "front/fuse/ops.h"
#include "front/fuse/request.h"
#include <string.h>

enum { STORM = 61001, QUIET = 61002, ROOT = 0, REQUESTS = 32, THREADS = 4, OP_FSYNC = 20 };
enum { OP_RELEASE = 18, OP_READ = 15, OP_LOOKUP = 1, OP_READDIR = 28, OP_READDIRPLUS = 44 };
enum { LARGE_BYTES = 1 << 20 };

struct fair_desk {
    struct env env;
    struct env_ops ops;
    struct fair fair;
    struct front front; /* without handles */
    struct fuse_request requests[REQUESTS];
    uint8_t buffers[REQUESTS][2 * BUFFER_HEAD_BYTES];
    uint64_t number;
};

static uint64_t now_ns;

static uint64_t desk_now_ns(struct env *env) {
    (void)env;
    return now_ns;
}

static int set_up(void **state) {
    static struct fair_desk desk;

    memset(&desk, 0, sizeof desk);
    now_ns = NS_PER_S;
    desk.ops.now_ns = desk_now_ns;
    desk.env.ops = &desk.ops;
    fair_init(&desk.fair, &desk.env, REQUESTS, THREADS);
    *state = &desk;
    return 0;
}

static int tear_down(void **state) {
    struct fair_desk *desk = *state;

    fair_deinit(&desk->fair);
    return 0;
}

static struct fuse_request *request_of(struct fair_desk *desk, unsigned index, uint32_t uid,
                                       uint32_t opcode) {
    struct fuse_request *request = &desk->requests[index];
    struct abi_in_header *header;

    request->front = &desk->front;
    request->buffer = desk->buffers[index];
    request->head_bytes = BUFFER_PREFIX_BYTES;
    header = request_head(request);
    *header = (struct abi_in_header){.opcode = opcode, .uid = uid, .unique = ++desk->number};
    if (opcode == OP_READ) {
        struct abi_read_in *read = (void *)(header + 1);

        *read = (struct abi_read_in){.size = LARGE_BYTES};
    }
    return request;
}

static bool wanted(struct fair_desk *desk, uint32_t uid, uint32_t opcode, bool at_once) {
    struct fuse_request *request = request_of(desk, 0, uid, opcode);

    return fair_wanted(&desk->fair, request, sizeof(struct abi_in_header), at_once);
}

static void put(struct fair_desk *desk, unsigned index, uint32_t uid, uint32_t opcode) {
    fair_put(&desk->fair, request_of(desk, index, uid, opcode),
             sizeof(struct abi_in_header) + sizeof(struct abi_read_in));
}

static void expect(struct fair_desk *desk, int index) {
    struct fuse_request *request = fair_take(&desk->fair);

    if (index < 0)
        assert_null(request);
    else
        assert_ptr_equal(request, &desk->requests[index]);
}

static void end(struct fair_desk *desk, unsigned index) {
    fair_end(&desk->fair, &desk->requests[index]);
}

static void test_who_is_alone_does_not_wait(void **state) {
    struct fair_desk *desk = *state;

    assert_false(wanted(desk, ROOT, OP_FSYNC, true));
    assert_false(wanted(desk, ROOT, OP_FSYNC, true));
    assert_true(wanted(desk, QUIET, OP_FSYNC, true));
    assert_false(wanted(desk, QUIET, OP_FSYNC, false));
    assert_true(wanted(desk, QUIET, OP_FSYNC, true));
    now_ns += FAIR_MIXED_NS;
    assert_false(wanted(desk, QUIET, OP_FSYNC, true));
}

/* RELEASE comes as root's, from whoever closes. */
static void test_what_frees_never_waits(void **state) {
    struct fair_desk *desk = *state;

    assert_true(wanted(desk, QUIET, OP_FSYNC, true));
    assert_false(wanted(desk, ROOT, OP_RELEASE, true));
    now_ns += FAIR_MIXED_NS;
    assert_false(wanted(desk, QUIET, OP_FSYNC, true));
}

static void test_users_take_turns(void **state) {
    struct fair_desk *desk = *state;

    for (unsigned i = 0; i < 10; i++)
        put(desk, i, STORM, OP_FSYNC);
    expect(desk, 0);
    put(desk, 10, QUIET, OP_FSYNC);
    put(desk, 11, ROOT, OP_FSYNC);
    put(desk, 12, QUIET, OP_FSYNC);
    expect(desk, 10);
    expect(desk, 11);
    expect(desk, 1);
    expect(desk, 12);
    for (int i = 2; i < 10; i++)
        expect(desk, i);
    expect(desk, -1);
    assert_false(fair_wait(&desk->fair));
}

static void test_a_share_is_half_and_root_has_a_reserve(void **state) {
    struct fair_desk *desk = *state;
    uint32_t uid;

    for (unsigned i = 0; i < 17; i++)
        put(desk, i, STORM, OP_FSYNC);
    for (int i = 0; i < 16; i++)
        expect(desk, i);
    assert_false(fair_to_tell(&desk->fair, now_ns, &uid));
    expect(desk, -1);
    assert_true(fair_to_tell(&desk->fair, now_ns, &uid));
    assert_int_equal(uid, STORM);
    for (unsigned i = 17; i < 32; i++)
        put(desk, i, QUIET, OP_FSYNC);
    for (int i = 17; i < 31; i++)
        expect(desk, i);
    expect(desk, -1); /* 30 of 32 are at work: the others are root's */
    assert_false(fair_to_tell(&desk->fair, now_ns + FAIR_TOLD_NS / 2, &uid) && uid == STORM);
    end(desk, 0);
    put(desk, 0, ROOT, OP_FSYNC);
    expect(desk, 0);
    expect(desk, 16);
    expect(desk, -1);
    end(desk, 1);
    expect(desk, 31);
    expect(desk, -1);
}

static void test_large_ones_are_few_at_a_time(void **state) {
    struct fair_desk *desk = *state;

    assert_true(wanted(desk, QUIET, OP_READ, true));
    for (unsigned i = 0; i < 9; i++)
        put(desk, i, STORM, OP_READ);
    for (int i = 0; i < THREADS; i++)
        expect(desk, i);
    expect(desk, -1);
    put(desk, 10, QUIET, OP_READ);
    expect(desk, 10);
    end(desk, 0);
    expect(desk, 4);
    expect(desk, -1);
    /* A server is away: what it has holds up no others. */
    now_ns += FAIR_STUCK_NS;
    expect(desk, 5);
    expect(desk, -1);
    end(desk, 5);
    expect(desk, 6);
    end(desk, 6);
    expect(desk, 7);
    expect(desk, -1);
    /* The others have asked nothing for a while. */
    now_ns += FAIR_LARGE_NS - FAIR_STUCK_NS;
    expect(desk, 8);
}

/* A listing is short to ask for, and long to answer. */
static void test_listings_are_few_at_a_time(void **state) {
    struct fair_desk *desk = *state;

    assert_true(wanted(desk, QUIET, OP_LOOKUP, true));
    for (unsigned i = 0; i < 6; i++)
        put(desk, i, STORM, i % 2 ? OP_READDIR : OP_READDIRPLUS);
    for (int i = 0; i < THREADS; i++)
        expect(desk, i);
    put(desk, 8, QUIET, OP_READDIRPLUS);
    expect(desk, 8);
    expect(desk, -1);
    end(desk, 1);
    expect(desk, THREADS);
    expect(desk, -1);
}

static void interrupt(struct fair_desk *desk, unsigned index) {
    struct fuse_request *request = &desk->requests[index];

    atomic_store(&request->interrupted, request_header(request)->unique);
    atomic_store(&desk->fair.interrupted, true);
}

/* Whatever its user has at work, and in whichever place it is. */
static void test_an_interrupted_one_is_its_users_next(void **state) {
    struct fair_desk *desk = *state;

    for (unsigned i = 0; i < 19; i++)
        put(desk, i, STORM, OP_FSYNC);
    for (int i = 0; i < 16; i++)
        expect(desk, i);
    expect(desk, -1);
    interrupt(desk, 18);
    expect(desk, 18);
    expect(desk, -1);
    /* Its INTERRUPT was read ahead of it, so its number is noted already. */
    atomic_store(&desk->requests[19].interrupted, desk->number + 1);
    put(desk, 19, STORM, OP_FSYNC);
    expect(desk, 19);
    expect(desk, -1);
    put(desk, 20, STORM, OP_FSYNC);
    for (unsigned i = 0; i < 5; i++)
        end(desk, i);
    expect(desk, 16);
    expect(desk, 17);
    expect(desk, 20);
    expect(desk, -1);
}

/* Anybody can interrupt his own programs, so that earns no more turns. */
static void test_interrupted_ones_take_turns(void **state) {
    struct fair_desk *desk = *state;

    for (unsigned i = 0; i < 6; i++)
        put(desk, i, STORM, OP_FSYNC);
    for (unsigned i = 2; i < 6; i++)
        interrupt(desk, i);
    put(desk, 6, QUIET, OP_FSYNC);
    put(desk, 7, QUIET, OP_FSYNC);
    expect(desk, 2);
    expect(desk, 6);
    expect(desk, 3);
    expect(desk, 7);
    expect(desk, 4);
    expect(desk, 5);
    expect(desk, 0);
    expect(desk, 1);
    expect(desk, -1);
}

/* While large ones move it waits as others do; of a server that is away none waits for another. */
static void test_interrupted_large_ones_are_few(void **state) {
    struct fair_desk *desk = *state;

    assert_true(wanted(desk, QUIET, OP_READ, true));
    for (unsigned i = 0; i < 10; i++)
        put(desk, i, STORM, OP_READ);
    for (unsigned i = 5; i < 10; i++)
        interrupt(desk, i);
    for (int i = 5; i < 5 + THREADS; i++)
        expect(desk, i);
    expect(desk, -1);
    end(desk, 5);
    expect(desk, 9);
    expect(desk, -1);
    for (unsigned i = 0; i < 3; i++)
        interrupt(desk, i);
    expect(desk, -1);
    now_ns += FAIR_STUCK_NS;
    for (int i = 0; i < 3; i++) {
        expect(desk, i);
        end(desk, (unsigned)i);
    }
    expect(desk, 3);
    expect(desk, -1);
}

static void test_what_is_large(void **state) {
    struct fair_desk *desk = *state;
    const struct {
        uint32_t opcode;
        size_t body_bytes, at;
    } rows[] = {
        {43, sizeof(struct abi_fallocate_in), offsetof(struct abi_fallocate_in, length)},
        {47, sizeof(struct abi_copy_in), offsetof(struct abi_copy_in, length)},
        {53, sizeof(struct abi_copy_in), offsetof(struct abi_copy_in, length)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct fuse_request *request = request_of(desk, 0, STORM, rows[i].opcode);
        uint8_t *body = (uint8_t *)request_head(request) + sizeof(struct abi_in_header);
        size_t bytes = sizeof(struct abi_in_header) + rows[i].body_bytes;
        uint64_t length = LARGE_BYTES;

        memset(body, 0, rows[i].body_bytes);
        assert_false(fuse_request_is_large(request, bytes));
        memcpy(body + rows[i].at, &length, sizeof length);
        assert_true(fuse_request_is_large(request, bytes));
        assert_false(fuse_request_is_large(request, bytes - 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_is_alone_does_not_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_frees_never_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_users_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_share_is_half_and_root_has_a_reserve, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_large_ones_are_few_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_listings_are_few_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_interrupted_one_is_its_users_next, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_interrupted_ones_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interrupted_large_ones_are_few, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_large, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
