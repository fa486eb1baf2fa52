/* Listings that go on ahead of their program: what is taken of them, what is dropped, who waits. */
#include "unit.h"
#include "fuse_desk.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FILES = 200, SIZE = 4096, OPENDIR = 27, RELEASEDIR = 29, THREAD = 0 };

static uint64_t directory; /* the root's handle */
static uint64_t file;      /* one of a file */

static size_t requests_free(struct desk *desk) {
    struct fuse_request *taken[8];
    size_t count = 0;

    while ((taken[count] = request_pool_take(&desk->front.requests)))
        count++;
    for (size_t i = 0; i < count; i++)
        request_pool_put(&desk->front.requests, taken[i]);
    return count;
}

static int set_up(void **state) {
    const struct abi_open_in in = {0};
    struct desk *desk = desk_new();
    char name[32];
    uint64_t handle;

    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "file-%d", i);
        assert_int_equal(desk_create(desk, name, 0644, &handle), 0);
        assert_int_equal(desk_release(desk, handle), 0);
    }
    assert_int_equal(
        desk_run(desk,
                 &(struct desk_request){.opcode = OPENDIR, .body = &in, .body_bytes = sizeof(in)}),
        0);
    directory = ((struct abi_open_out *)(void *)desk->reply.body)->handle;
    *state = desk;
    return 0;
}

static int directory_close(struct desk *desk) {
    const struct abi_handle_in in[2] = {{.handle = directory}};

    return desk_run(desk,
                    &(struct desk_request){.opcode = RELEASEDIR, .body = in, .body_bytes = 24});
}

/* Nothing of the mount's is kept by what was listed ahead. */
static int tear_down(void **state) {
    struct desk *desk = *state;

    memory_shoal_behind(desk->client, NULL, NULL);
    if (directory != 0)
        assert_int_equal(directory_close(desk), 0);
    assert_int_equal(memory_shoal_open_count(desk->client), 0);
    assert_int_equal(requests_free(desk), 3); /* one is the desk's */
    assert_int_equal(atomic_load(&desk->front.requests.detached_count), 0);
    desk_free(desk);
    return 0;
}

static struct desk_request list_request(struct abi_read_in *in, uint64_t offset, bool plus) {
    *in = (struct abi_read_in){.handle = directory, .offset = offset, .size = SIZE};
    return (struct desk_request){.opcode = plus ? OPCODE_READDIRPLUS : OPCODE_READDIR,
                                 .body = in,
                                 .body_bytes = sizeof(*in)};
}

/* What a reply has of its first entry; *ret_last is the cookie of the last. The number of them. */
static unsigned reply_look(const struct desk *desk, bool plus, struct abi_entry_out *ret_first,
                           uint64_t *ret_last) {
    size_t head = plus ? sizeof(struct abi_entry_out) : 0;
    unsigned count = 0;

    for (size_t at = 0; at < desk->reply.bytes; count++) {
        struct abi_dirent dirent;

        memcpy(&dirent, desk->reply.body + at + head, sizeof(dirent));
        if (plus && ret_first && (dirent.ino != SHOAL_INO_ROOT || count > 1)) {
            memcpy(ret_first, desk->reply.body + at, sizeof(*ret_first));
            ret_first = NULL;
        }
        *ret_last = dirent.cookie;
        at += (head + sizeof(dirent) + dirent.name_bytes + 7) & ~(size_t)7;
    }
    return count;
}

static unsigned list(struct desk *desk, uint64_t *offset, bool plus, struct abi_entry_out *first) {
    struct abi_read_in in;
    const struct desk_request request = list_request(&in, *offset, plus);

    assert_int_equal(desk_run(desk, &request), 0);
    /* Kernels before 6.16 have room for 4 KiB: more would be listed in vain each time. */
    assert_in_range(memory_shoal_listing_bytes(desk->client), SIZE / 2, SIZE);
    return reply_look(desk, plus, first, offset);
}

static uint64_t listed(struct desk *desk) {
    return memory_shoal_count(desk->client, SHOAL_READDIR);
}

/* All entries once, each piece but the first by what was listed ahead. */
static void all_is_listed_once(void **state) {
    struct desk *desk = *state;
    unsigned pieces_of_both = 0;

    for (int plus = 0; plus < 2; plus++) {
        uint64_t before = listed(desk);
        uint64_t offset = 0;
        unsigned pieces = 0;
        unsigned total = 0;
        unsigned count;

        do {
            uint64_t calls = listed(desk);

            count = list(desk, &offset, plus, NULL);
            total += count;
            assert_int_equal(listed(desk) - calls, pieces == 0 ? 1 : 0);
            /* Nothing is wanted behind the end. */
            assert_int_equal(ahead_run(&desk->front, THREAD), total < FILES + 2);
            assert_false(ahead_run(&desk->front, THREAD));
            pieces++;
        } while (count > 0 && pieces < 100 && total < FILES + 2);
        assert_int_equal(total, FILES + 2);
        assert_true(pieces > 1);
        assert_int_equal(listed(desk) - before, pieces);
        pieces_of_both += pieces;
    }
    assert_int_equal(desk->ahead_count, pieces_of_both - 2);
}

/* As it was listed some time ago. */
static void it_holds_for_less(void **state) {
    struct desk *desk = *state;
    struct abi_entry_out now, ahead;
    uint64_t offset = 0;

    (void)list(desk, &offset, true, &now);
    assert_true(ahead_run(&desk->front, THREAD));
    (void)list(desk, &offset, true, &ahead);
    assert_int_equal(now.entry_valid, 1);
    assert_int_equal(now.attributes_valid_ns, NS_PER_S / 2);
    assert_int_equal(ahead.entry_valid, 0);
    assert_int_equal(ahead.entry_valid_ns, NS_PER_S - AHEAD_NS);
    assert_int_equal(ahead.attributes_valid_ns, NS_PER_S / 2 - AHEAD_NS);
}

static void nothing_is_wanted_of_those_who_want_it_exact(void **state) {
    struct desk *desk = *state;
    uint64_t offset = 0;

    desk->front.attributes_timeout_ns = AHEAD_NS;
    (void)list(desk, &offset, true, NULL);
    assert_false(ahead_run(&desk->front, THREAD));
    assert_int_equal(desk->ahead_count, 0);
}

static void is_made(struct desk *desk) {
    const struct abi_mkdir_in in = {.mode = 0755};

    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 9,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in),
                                                           .name = "new"}),
                     0);
}
static void is_removed(struct desk *desk) {
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 10, .name = "file-20"}), 0);
}
static void is_cut(struct desk *desk) {
    const struct abi_setattr_in in = {.valid = ABI_SET_SIZE, .size = 5};

    assert_int_equal(desk_run(desk,
                              &(struct desk_request){
                                  .opcode = 4, .nodeid = 9, .body = &in, .body_bytes = sizeof(in)}),
                     0);
}
static void is_emptied(struct desk *desk) {
    struct abi_open_out open;

    assert_int_equal(desk_open(desk, 9, 1 | LINUX_TRUNCATE, &open), 0);
    assert_int_equal(desk_release(desk, open.handle), 0);
}
static void is_opened(struct desk *desk) {
    struct abi_open_out open;

    assert_int_equal(desk_open(desk, 9, 0, &open), 0);
    assert_int_equal(desk_release(desk, open.handle), 0);
}
static void is_looked_up(struct desk *desk) {
    assert_true(desk_ino(desk, "file-3") > 0);
}
static void is_looked_at(struct desk *desk) {
    const struct abi_getattr_in in = {0};

    assert_int_equal(desk_run(desk,
                              &(struct desk_request){
                                  .opcode = 3, .nodeid = 9, .body = &in, .body_bytes = sizeof(in)}),
                     0);
}
static void is_read(struct desk *desk, uint32_t size) {
    const struct abi_read_in in = {.handle = file, .size = size};

    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 15,
                                                           .nodeid = 9,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
}
static void is_read_within(struct desk *desk) {
    is_read(desk, 10);
}
static void is_read_to_its_end(struct desk *desk) {
    is_read(desk, 11);
}
static void time_passes(struct desk *desk) {
    (void)desk;
    desk_pass(AHEAD_NS);
}
static void less_time_passes(struct desk *desk) {
    (void)desk;
    desk_pass(AHEAD_NS - NS_PER_MS);
}

/* What the kernel may have been told of since is listed now, and for a moment nothing ahead. */
static void what_may_take_the_kernel_back_is_dropped(void **state) {
    static const struct {
        void (*act)(struct desk *desk);
        bool taken;
        bool rests;
    } table[] = {
        {is_read_within, true, false},   {is_read_to_its_end, false, true},
        {less_time_passes, true, false}, {is_opened, false, true},
        {is_looked_up, false, true},     {is_looked_at, false, true},
        {is_made, false, true},          {is_removed, false, true},
        {is_cut, false, true},           {is_emptied, false, true},
        {time_passes, false, false},
    };
    struct desk *desk = *state;
    struct shoal_request ten = {.operation = SHOAL_SETATTR, .ino = 9, .set = SHOAL_SET_SIZE};
    struct abi_open_out open;

    ten.attributes.size = 10;
    assert_int_equal(shoal_run(desk->client, &ten), 0);
    assert_int_equal(desk_open(desk, 9, 0, &open), 0);
    file = open.handle;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        uint64_t offset = 0;
        uint64_t calls;

        (void)list(desk, &offset, true, NULL);
        assert_true(ahead_run(&desk->front, THREAD));
        table[i].act(desk);
        calls = listed(desk);
        (void)list(desk, &offset, true, NULL);
        assert_int_equal(listed(desk) - calls, table[i].taken ? 0 : 1);
        assert_int_equal(ahead_run(&desk->front, THREAD), !table[i].rests);
        desk_pass(AHEAD_REST_NS);
    }
    assert_int_equal(desk_release(desk, file), 0);
}

/* Another place, another kind, or one that nobody has begun to list yet. */
static void what_was_not_asked_for_is_dropped(void **state) {
    struct desk *desk = *state;

    for (int way = 0; way < 3; way++) {
        uint64_t offset = 0;
        uint64_t start = 0;
        uint64_t calls;

        (void)list(desk, &offset, true, NULL);
        if (way != 2)
            assert_true(ahead_run(&desk->front, THREAD));
        calls = listed(desk);
        (void)list(desk, way == 0 ? &start : &offset, way != 1, NULL);
        assert_int_equal(listed(desk) - calls, 1);
    }
}

static void one_that_fails_is_listed_by_who_comes(void **state) {
    struct desk *desk = *state;
    uint64_t offset = 0;

    (void)list(desk, &offset, true, NULL);
    memory_shoal_fail(desk->client, SHOAL_READDIR, -EIO, 1);
    assert_true(ahead_run(&desk->front, THREAD));
    assert_true(list(desk, &offset, true, NULL) > 0);
}

static void server_is_slow(void *context) {
    struct desk *desk = context;

    memory_shoal_behind(desk->client, NULL, NULL);
    desk_pass(2 * AHEAD_NS);
}

/* What was too old when it was there is listed anew, and so is seldom tried. */
static void one_that_is_slow_is_not_listed_twice_again(void **state) {
    struct desk *desk = *state;
    uint64_t offset = 0;
    uint64_t calls;

    (void)list(desk, &offset, true, NULL);
    memory_shoal_behind(desk->client, server_is_slow, desk);
    assert_true(ahead_run(&desk->front, THREAD));
    calls = listed(desk);
    (void)list(desk, &offset, true, NULL);
    assert_int_equal(listed(desk) - calls, 1);
    desk_pass((2 * AHEAD_SLOW_RESTS - 1) * AHEAD_NS);
    (void)list(desk, &offset, true, NULL);
    assert_false(ahead_run(&desk->front, THREAD));
    desk_pass(2 * AHEAD_NS);
    offset = 0;
    (void)list(desk, &offset, true, NULL);
    assert_true(ahead_run(&desk->front, THREAD));
}

/* A request that comes while it is listed. */
struct meanwhile {
    struct desk *desk;
    struct fuse_request *request;
    size_t bytes;
    bool ended; /* at once */
};

static void comes_beside(void *context) {
    struct meanwhile *meanwhile = context;

    memory_shoal_behind(meanwhile->desk->client, NULL, NULL);
    meanwhile->ended = fuse_request_run(meanwhile->request, meanwhile->bytes);
}

/* It waits, and has what was listed; who wants something else does not wait for it. */
static void who_comes_meanwhile_waits(void **state) {
    struct desk *desk = *state;

    for (int same = 0; same < 2; same++) {
        struct meanwhile meanwhile = {.desk = desk, .request = desk->request};
        uint64_t offset = 0;
        struct abi_read_in in;
        unsigned replies;
        uint64_t calls;

        (void)list(desk, &offset, true, NULL);
        const struct desk_request request = list_request(&in, same ? offset : 0, true);

        meanwhile.bytes = desk_lay(desk, &request);
        replies = desk->reply_count;
        calls = listed(desk);
        memory_shoal_behind(desk->client, comes_beside, &meanwhile);
        assert_true(ahead_run(&desk->front, THREAD));
        assert_int_equal(meanwhile.ended, !same);
        assert_int_equal(desk->reply_count, replies + 1);
        assert_int_equal(desk->reply.error, 0);
        assert_int_equal(listed(desk) - calls, same ? 1 : 2);
        assert_true(reply_look(desk, true, NULL, &offset) > 0);
        if (meanwhile.ended)
            continue;
        desk->request = request_pool_take(&desk->front.requests); /* That one was put back. */
        assert_non_null(desk->request);
    }
}

/* A handle is not closed below a listing. */
static void a_close_waits(void **state) {
    struct desk *desk = *state;
    const struct abi_handle_in in[2] = {{.handle = directory}};
    const struct desk_request request = {.opcode = RELEASEDIR, .body = in, .body_bytes = 24};
    struct meanwhile meanwhile = {.desk = desk, .request = desk->request};
    uint64_t offset = 0;

    (void)list(desk, &offset, true, NULL);
    meanwhile.bytes = desk_lay(desk, &request);
    memory_shoal_behind(desk->client, comes_beside, &meanwhile);
    assert_true(ahead_run(&desk->front, THREAD));
    assert_false(meanwhile.ended);
    assert_int_equal(desk->reply.error, 0);
    assert_int_equal(memory_shoal_open_count(desk->client), 0);
    desk->request = request_pool_take(&desk->front.requests);
    directory = 0;
}

static void files_look_up(struct desk *desk, uint64_t inodes[FILES]) {
    char name[32];

    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "file-%d", i);
        inodes[i] = desk_ino(desk, name);
    }
}

/* As by another mount. */
static void files_change(struct desk *desk, const uint64_t inodes[FILES]) {
    for (int i = 0; i < FILES; i++) {
        struct shoal_request request = {
            .operation = SHOAL_SETATTR, .ino = inodes[i], .set = SHOAL_SET_SIZE};

        request.attributes.size = 100;
        assert_int_equal(shoal_run(desk->client, &request), 0);
    }
}

/* Another mount changes all files, and the kernel did not get what was listed then: so it does not
 * know, and each open makes it ask. */
static void what_is_dropped_is_not_told(void **state) {
    struct desk *desk = *state;
    struct abi_open_out open;
    uint64_t inodes[FILES];
    uint64_t offset = 0;

    files_look_up(desk, inodes);
    (void)list(desk, &offset, true, NULL);
    files_change(desk, inodes);
    assert_true(ahead_run(&desk->front, THREAD));
    desk_pass(AHEAD_NS);
    for (int i = 0; i < FILES; i++) {
        unsigned forgotten = desk->forget_count;

        assert_int_equal(desk_open(desk, inodes[i], 0, &open), 0);
        assert_int_equal(desk_release(desk, open.handle), 0);
        assert_int_equal(desk->forget_count, forgotten + 1);
    }
}

/* Until what was told before can't be on its way any more. */
static void told_arrives(const struct desk *desk) {
    uint64_t told_ns = env_now_ns(desk->front.env);

    while (env_now_ns(desk->front.env) <= told_ns + TOLD_OVERLAP_NS) {
    }
}

/* What it did get, it knows. */
static void what_is_taken_is_told(void **state) {
    struct desk *desk = *state;
    struct abi_open_out open;
    struct abi_entry_out entry = {0};
    uint64_t inodes[FILES];
    uint64_t offset = 0;

    files_look_up(desk, inodes);
    files_change(desk, inodes);
    told_arrives(desk);
    (void)list(desk, &offset, true, NULL);
    assert_true(ahead_run(&desk->front, THREAD));
    (void)list(desk, &offset, true, &entry);
    assert_true(entry.nodeid > 0);
    assert_int_equal(desk_open(desk, entry.nodeid, 0, &open), 0);
    assert_int_equal(desk_release(desk, open.handle), 0);
    assert_int_equal(desk->forget_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_listed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_holds_for_less, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_wanted_of_those_who_want_it_exact, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_may_take_the_kernel_back_is_dropped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_was_not_asked_for_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_fails_is_listed_by_who_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_slow_is_not_listed_twice_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_comes_meanwhile_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_close_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_not_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_taken_is_told, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
