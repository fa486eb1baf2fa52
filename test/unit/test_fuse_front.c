/* What the FUSE front-end decides: page cache or not, set-id bits, groups, durability, handles. */
#include "unit.h"
#include "front/fuse/fuse_abi_forget.h"
#include "fuse_desk.h"
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_ONLY = 0, WRITE_ONLY = 1, READ_WRITE = 2 };

static int desk_set_up(void **state) {
    *state = desk_new();
    return 0;
}

static int desk_tear_down(void **state) {
    desk_free(*state);
    return 0;
}

/* SETATTR of the permission bits, by root. */
static void chmod_file(struct desk *desk, uint64_t ino, uint32_t mode) {
    const struct abi_setattr_in in = {.valid = ABI_SET_MODE, .mode = mode};
    uint32_t uid = desk->uid;

    desk->uid = 0;
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 4,
                                                           .nodeid = ino,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
    desk->uid = uid;
}

static uint32_t mode_of(struct desk *desk, uint64_t ino) {
    const struct abi_getattr_in in = {0};

    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 3,
                                                           .nodeid = ino,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
    return ((struct abi_attributes_out *)(void *)desk->reply.body)->attributes.mode & 07777;
}

static uint64_t count(struct desk *desk, enum shoal_operation operation) {
    return memory_shoal_count(desk->client, operation);
}

/* Which opens the page cache serves, with and without kernels that map direct files. */
static void test_open_policy(void **state) {
    enum { DIRECT = ABI_OPEN_DIRECT | ABI_OPEN_PARALLEL_WRITES, SMALL = 1 << 20 };
    static const struct {
        uint32_t linux_flags;
        uint64_t size;
        uint32_t want;
        uint32_t want_without;
    } table[] = {
        {READ_ONLY, 0, ABI_OPEN_NO_FLUSH, ABI_OPEN_NO_FLUSH},
        {READ_ONLY, SMALL, ABI_OPEN_NO_FLUSH, ABI_OPEN_NO_FLUSH},
        {READ_ONLY, SMALL + 1, ABI_OPEN_NO_FLUSH | DIRECT, ABI_OPEN_NO_FLUSH},
        {READ_ONLY | LINUX_EXECUTE, SMALL + 1, ABI_OPEN_NO_FLUSH, ABI_OPEN_NO_FLUSH},
        {READ_ONLY | LINUX_DIRECT, 0, ABI_OPEN_NO_FLUSH | DIRECT, ABI_OPEN_NO_FLUSH},
        {WRITE_ONLY, 0, DIRECT, 0},
        {READ_WRITE, SMALL, DIRECT, 0},
        {READ_WRITE | LINUX_DIRECT, SMALL + 1, DIRECT, 0},
        {3, 0, DIRECT, 0},
    };
    struct desk *desk = *state;
    struct abi_open_out open;
    uint64_t handle;

    assert_int_equal(desk_create(desk, "file", 0755, &handle), 0);
    assert_int_equal(desk_release(desk, handle), 0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct abi_setattr_in in = {.valid = ABI_SET_SIZE, .size = table[i].size};

        assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 4,
                                                               .nodeid = 2,
                                                               .body = &in,
                                                               .body_bytes = sizeof(in)}),
                         0);
        desk->front.features.direct = true;
        assert_int_equal(desk_open(desk, 2, table[i].linux_flags, &open), 0);
        assert_int_equal(open.flags, table[i].want);
        assert_int_equal(desk_release(desk, open.handle), 0);
        desk->front.features.direct = false;
        assert_int_equal(desk_open(desk, 2, table[i].linux_flags, &open), 0);
        assert_int_equal(open.flags, table[i].want_without);
        assert_int_equal(desk_release(desk, open.handle), 0);
    }
    desk->front.features.direct = true;
    desk->front.features.parallel_writes = false;
    assert_int_equal(desk_open(desk, 2, WRITE_ONLY, &open), 0);
    assert_int_equal(open.flags, ABI_OPEN_DIRECT);
}

/* A program is read, and needs no right to be. */
static void test_execute_only(void **state) {
    struct desk *desk = *state;
    struct abi_read_in in = {.size = 10};
    struct abi_open_out open;
    uint64_t handle;

    assert_int_equal(desk_create(desk, "program", 0711, &handle), 0);
    assert_int_equal(desk_write(desk, &(struct abi_write_in){.handle = handle, .size = 5}, "12345"),
                     0);
    desk->uid = 1000;
    assert_int_equal(desk_open(desk, 2, READ_ONLY, &open), -EACCES);
    assert_int_equal(desk_open(desk, 2, READ_ONLY | LINUX_EXECUTE, &open), 0);
    in.handle = open.handle;
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 15,
                                                           .nodeid = 2,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
    assert_int_equal(desk->reply.bytes, 5);
}

/* It has no name, is kept by no cache, and goes with its handle; or a link makes it a file. */
static void test_file_without_a_name(void **state) {
    struct desk *desk = *state;
    const struct abi_create_in in = {.flags = READ_WRITE, .mode = 0600};
    const struct desk_request request = {
        .opcode = 51, .body = &in, .body_bytes = sizeof(in), .name = "/"};
    const struct abi_create_out *out = (const void *)desk->reply.body;
    uint64_t inodes = memory_shoal_inode_count(desk->client);

    for (int named = 0; named < 2; named++) {
        assert_int_equal(desk_run(desk, &request), 0);
        assert_int_equal(out->entry.attributes.nlink, 0);
        assert_int_equal(out->entry.attributes_valid, 0);
        assert_int_equal(out->open.flags & ABI_OPEN_DIRECT, ABI_OPEN_DIRECT);
        uint64_t handle = out->open.handle;
        const struct abi_link_in link = {.nodeid = out->entry.nodeid};
        assert_int_equal(memory_shoal_inode_count(desk->client), inodes + 1);
        if (named)
            assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 13,
                                                                   .body = &link,
                                                                   .body_bytes = sizeof(link),
                                                                   .name = "name"}),
                             0);
        assert_int_equal(desk_release(desk, handle), 0);
        assert_int_equal(memory_shoal_inode_count(desk->client), inodes + (unsigned)named);
    }
    assert_int_not_equal(desk_ino(desk, "name"), 0);
    assert_int_equal(desk_ino(desk, "/"), 0);
}

/* The kernel has an inode's number, by a handle, and nothing else: any type is found by it. */
static void test_lookup_by_number(void **state) {
    struct desk *desk = *state;
    const struct abi_mkdir_in mkdir = {.mode = 0700};
    uint64_t handle;

    assert_int_equal(desk_create(desk, "file", 0600, &handle), 0);
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 9,
                                                           .body = &mkdir,
                                                           .body_bytes = sizeof(mkdir),
                                                           .name = "directory"}),
                     0);
    desk->uid = 1000;
    for (uint64_t ino = 1; ino < 4; ino++) {
        const struct abi_entry_out *entry = (const void *)desk->reply.body;

        assert_int_equal(
            desk_run(desk, &(struct desk_request){.opcode = 1, .nodeid = ino, .name = "."}), 0);
        assert_int_equal(entry->nodeid, ino);
        assert_int_equal(entry->generation, 0);
        assert_int_equal(entry->attributes.mode & 0170000, ino == 2 ? 0100000 : 0040000);
    }
    assert_true(desk_run(desk, &(struct desk_request){.opcode = 1, .nodeid = 99, .name = "."}) < 0);
}

/* What another mount has changed: the kernel must not go on with the size that it was told. */
/* Nothing that they do keeps who only reads waiting in the kernel. */
static void test_open_beside_writers(void **state) {
    enum { DIRECT = ABI_OPEN_DIRECT | ABI_OPEN_PARALLEL_WRITES };
    static const uint32_t flags[] = {READ_ONLY, READ_ONLY | LINUX_EXECUTE};
    struct desk *desk = *state;
    struct abi_open_out writer;
    struct abi_open_out open;
    uint64_t created;

    assert_int_equal(desk_create(desk, "file", 0755, &created), 0);
    desk->front.features.direct = true;
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        assert_int_equal(desk_open(desk, 2, WRITE_ONLY, &writer), 0);
        desk->front.features.parallel_writes = false;
        assert_int_equal(desk_open(desk, 2, flags[i], &open), 0);
        assert_int_equal(open.flags, ABI_OPEN_NO_FLUSH);
        assert_int_equal(desk_release(desk, open.handle), 0);
        desk->front.features.parallel_writes = true;
        for (int writers = i == 0 ? 2 : 1; writers > 0; writers--) {
            assert_int_equal(desk_open(desk, 2, flags[i], &open), 0);
            assert_int_equal(open.flags, ABI_OPEN_NO_FLUSH | DIRECT);
            assert_int_equal(desk_release(desk, open.handle), 0);
            assert_int_equal(desk_release(desk, writers == 2 ? created : writer.handle), 0);
        }
        assert_int_equal(desk_open(desk, 2, flags[i], &open), 0);
        assert_int_equal(open.flags, ABI_OPEN_NO_FLUSH);
        assert_int_equal(desk_release(desk, open.handle), 0);
    }
}

static void test_open_meets_what_others_changed(void **state) {
    struct desk *desk = *state;
    struct shoal_request change = {.operation = SHOAL_SETATTR, .set = SHOAL_SET_SIZE, .ino = 2};
    struct abi_open_out open;
    uint64_t created;

    assert_int_equal(desk_create(desk, "file", 0644, &created), 0);
    (void)mode_of(desk, 2);
    for (uint64_t size = 1; size < 4; size++) {
        change.attributes.size = size;
        assert_int_equal(shoal_run(desk->client, &change), 0);
        desk->forget_count = 0;
        for (int again = 0; again < 2; again++) {
            assert_int_equal(desk_open(desk, 2, READ_ONLY, &open), 0);
            assert_int_equal(desk->forget_count, 1);
            assert_int_equal(desk_release(desk, open.handle), 0);
        }
    }
}

static void read_file(struct desk *desk, uint64_t handle) {
    const struct abi_read_in in = {.handle = handle, .size = 10};

    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 15,
                                                           .nodeid = 2,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
}

static bool open_keeps(struct desk *desk, uint64_t *ret_handle) {
    struct abi_open_out open;

    assert_int_equal(desk_open(desk, 2, READ_ONLY, &open), 0);
    *ret_handle = open.handle;
    return open.flags & ABI_OPEN_KEEP_CACHE;
}

/* Pages are kept by an open that meets the file as it was when another one dropped them, which its
 * first read shows: its answer may come behind that of a later one. */
static void test_pages_that_are_kept(void **state) {
    struct desk *desk = *state;
    struct shoal_request change = {.operation = SHOAL_SETATTR, .set = SHOAL_SET_SIZE, .ino = 2};
    struct abi_open_out open;
    uint64_t created, first, second, late;

    assert_int_equal(desk_create(desk, "file", 0644, &created), 0);
    assert_int_equal(desk_release(desk, created), 0);
    for (change.attributes.size = 1; change.attributes.size < 4; change.attributes.size++) {
        assert_int_equal(shoal_run(desk->client, &change), 0);
        assert_false(open_keeps(desk, &first));
        assert_false(open_keeps(desk, &second));
        read_file(desk, first);
        assert_int_equal(desk_release(desk, first), 0);
        assert_true(open_keeps(desk, &first));
        read_file(desk, second);
        assert_int_equal(desk_release(desk, second), 0);
        assert_true(open_keeps(desk, &late));
        assert_int_equal(desk_release(desk, first), 0);
        assert_int_equal(desk_release(desk, late), 0);
    }

    /* What dropped pages for an earlier version, and is read late, has none kept. */
    assert_int_equal(shoal_run(desk->client, &change), 0);
    assert_false(open_keeps(desk, &late));
    change.attributes.size++;
    assert_int_equal(shoal_run(desk->client, &change), 0);
    assert_false(open_keeps(desk, &first));
    read_file(desk, first);
    read_file(desk, late);
    assert_false(open_keeps(desk, &second));

    /* Who writes keeps out of them. */
    read_file(desk, second);
    assert_int_equal(desk_open(desk, 2, READ_WRITE, &open), 0);
    assert_int_equal(open.flags & ABI_OPEN_KEEP_CACHE, 0);
    assert_false(open_keeps(desk, &late));
    assert_int_equal(desk_release(desk, open.handle), 0);
    assert_true(open_keeps(desk, &late));
}

enum { SAMPLE_BYTES = 50 << 10, SAMPLES = 6 };

static uint32_t open_flags(struct desk *desk, uint64_t ino, uint32_t flags, uint64_t *ret_handle) {
    struct abi_open_out open;

    assert_int_equal(desk_open(desk, ino, flags, &open), 0);
    *ret_handle = open.handle;
    return open.flags & (ABI_OPEN_DIRECT | ABI_OPEN_KEEP_CACHE | ABI_OPEN_NO_FLUSH);
}

/* Opens a file, reads so much of it, and closes it; the open's flags. */
static uint32_t read_sample(struct desk *desk, uint64_t ino, uint32_t bytes) {
    struct abi_read_in in = {.size = bytes};
    uint32_t flags = open_flags(desk, ino, READ_ONLY, &in.handle);

    assert_true(flags & ABI_OPEN_NO_FLUSH);
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 15,
                                                           .nodeid = ino,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
    assert_int_equal(desk_release(desk, in.handle), 0);
    return flags & ~(uint32_t)ABI_OPEN_NO_FLUSH;
}

static void forget(struct desk *desk, uint64_t ino) {
    const struct abi_forget_in in = {.lookup_count = 1};
    unsigned replies = desk->reply_count;

    desk_run_bytes(desk, desk_lay(desk, &(struct desk_request){.opcode = OPCODE_FORGET,
                                                               .nodeid = ino,
                                                               .body = &in,
                                                               .body_bytes = sizeof(in)}));
    assert_int_equal(desk->reply_count, replies);
}

/* Of a batch only what is there counts, whatever it says. */
static void forget_batch(struct desk *desk, uint64_t ino, uint32_t count, size_t bytes) {
    const struct {
        struct abi_forget_batch_in in;
        struct abi_forget_one ones[2];
    } body = {{.count = count}, {{.nodeid = 1, .lookup_count = 1}, {ino, 1}}};
    unsigned replies = desk->reply_count;

    desk_run_bytes(desk, desk_lay(desk, &(struct desk_request){.opcode = OPCODE_BATCH_FORGET,
                                                               .body = &body,
                                                               .body_bytes = bytes}));
    assert_int_equal(desk->reply_count, replies);
}

/* Who reads files whole reads a new one past the kernel's pages, what he has seen before by them,
 * and then what is there; who takes them piece by piece by pages. */
static void test_files_that_are_read_whole(void **state) {
    struct desk *desk = *state;
    struct shoal_request size = {
        .operation = SHOAL_SETATTR, .set = SHOAL_SET_SIZE, .attributes.size = SAMPLE_BYTES};
    char name[] = "0";
    uint64_t inos[SAMPLES], handle, writer;

    for (unsigned i = 0; i < SAMPLES; i++, name[0]++) {
        assert_int_equal(desk_create(desk, name, 0755, &handle), 0);
        assert_int_equal(desk_release(desk, handle), 0);
        size.ino = inos[i] = desk_ino(desk, name);
        assert_int_equal(shoal_run(desk->client, &size), 0);
    }
    desk->pid = 7;
    assert_int_equal(read_sample(desk, inos[0], SAMPLE_BYTES), 0);
    assert_int_equal(read_sample(desk, inos[1], SAMPLE_BYTES), 0);
    assert_int_equal(read_sample(desk, inos[1], SAMPLE_BYTES), ABI_OPEN_KEEP_CACHE);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_DIRECT);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), 0);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_KEEP_CACHE);

    /* The inode goes, and its pages. */
    forget(desk, inos[2]);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), 0);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_KEEP_CACHE);
    forget_batch(desk, inos[2], 2, sizeof(struct abi_forget_batch_in) + 8);
    forget_batch(desk, inos[2], 1, sizeof(struct abi_forget_batch_in) + 32);
    forget_batch(desk, inos[2], UINT32_MAX, sizeof(struct abi_forget_batch_in));
    forget_batch(desk, inos[2], UINT32_MAX, 4);
    forget_batch(desk, inos[2], UINT32_MAX, sizeof(struct abi_forget_batch_in) + 16);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_KEEP_CACHE);
    forget_batch(desk, inos[2], UINT32_MAX, sizeof(struct abi_forget_batch_in) + 32);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), 0);

    /* A program shares its pages with others, and what is being written to is direct. */
    assert_int_equal(open_flags(desk, inos[3], READ_ONLY | LINUX_EXECUTE, &handle),
                     ABI_OPEN_NO_FLUSH);
    assert_int_equal(desk_release(desk, handle), 0);
    assert_int_equal(open_flags(desk, inos[2], READ_WRITE, &writer), ABI_OPEN_DIRECT);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_DIRECT);
    assert_int_equal(desk_release(desk, writer), 0);
    assert_int_equal(read_sample(desk, inos[2], SAMPLE_BYTES), ABI_OPEN_KEEP_CACHE);

    /* Each thread has its own way, and changes it with the first file that shows another. */
    desk->pid++;
    assert_int_equal(read_sample(desk, inos[3], 4096), 0);
    desk->pid--;
    assert_int_equal(read_sample(desk, inos[4], 4096), ABI_OPEN_DIRECT);
    assert_int_equal(read_sample(desk, inos[5], 4096), 0);
    desk->front.features.direct = false;
    desk->pid += 2;
    for (unsigned i = 0; i < 3; i++) {
        size.ino = inos[5];
        size.attributes.size++;
        assert_int_equal(shoal_run(desk->client, &size), 0);
        assert_int_equal(read_sample(desk, inos[5], SAMPLE_BYTES), 0);
    }
}

/* A write without privilege clears the bits before it takes effect, and asks for the mode once. */
static void test_write_clears_set_id(void **state) {
    struct desk *desk = *state;
    struct abi_write_in in = {.size = 5, .write_flags = ABI_WRITE_KILL_SET_ID};

    assert_int_equal(desk_create(desk, "file", 04755, &in.handle), 0);
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(((struct abi_write_out *)(void *)desk->reply.body)->size, 5);
    assert_int_equal(mode_of(desk, 2), 0755);
    assert_int_equal(desk->forget_count, 1);
    assert_int_equal(count(desk, SHOAL_SETATTR), 1);

    uint64_t asked = count(desk, SHOAL_GETATTR);

    for (int i = 0; i < 10; i++)
        assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(count(desk, SHOAL_GETATTR), asked);

    /* Set anew through the mount: noticed by a handle that was clean. */
    chmod_file(desk, 2, 06755);
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(mode_of(desk, 2), 0755);
    assert_int_equal(desk->forget_count, 2);

    /* Set-group-ID without execution by the group stays. */
    chmod_file(desk, 2, 02744);
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(mode_of(desk, 2), 02744);
    assert_int_equal(desk->forget_count, 2);

    /* With privilege nothing is cleared, nor asked. */
    chmod_file(desk, 2, 04755);
    in.write_flags = 0;
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(mode_of(desk, 2), 04755);
}

static void test_failing_to_clear_refuses_the_write(void **state) {
    struct desk *desk = *state;
    struct abi_write_in in = {.size = 5, .write_flags = ABI_WRITE_KILL_SET_ID};

    assert_int_equal(desk_create(desk, "file", 04755, &in.handle), 0);
    memory_shoal_fail(desk->client, SHOAL_SETATTR, -EIO, 1);
    assert_int_equal(desk_write(desk, &in, "12345"), -EIO);
    assert_int_equal(count(desk, SHOAL_WRITE), 0);
    memory_shoal_fail(desk->client, SHOAL_GETATTR, -ESTALE, 1);
    assert_int_equal(desk_write(desk, &in, "12345"), -ESTALE);
    assert_int_equal(count(desk, SHOAL_WRITE), 0);
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(mode_of(desk, 2), 0755);
}

static void test_allocation_clears_set_id(void **state) {
    struct desk *desk = *state;
    struct abi_fallocate_in in = {.length = 4096};

    assert_int_equal(desk_create(desk, "file", 04755, &in.handle), 0);
    desk->uid = 1000;
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 43,
                                                           .nodeid = 2,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     0);
    assert_int_equal(mode_of(desk, 2), 0755);
    in.mode = 8; /* collapse the range */
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 43,
                                                           .nodeid = 2,
                                                           .body = &in,
                                                           .body_bytes = sizeof(in)}),
                     -EOPNOTSUPP);
}

/* Truncation by open likewise; when the bits can't be cleared nothing stays open. */
static void test_truncating_open_clears_set_id(void **state) {
    struct desk *desk = *state;
    const struct abi_open_in in = {.flags = WRITE_ONLY | LINUX_TRUNCATE,
                                   .open_flags = ABI_OPEN_KILL_SET_ID};
    const struct desk_request request = {
        .opcode = 14, .nodeid = 2, .body = &in, .body_bytes = sizeof(in)};
    uint64_t handle;

    assert_int_equal(desk_create(desk, "file", 04755, &handle), 0);
    memory_shoal_fail(desk->client, SHOAL_SETATTR, -EIO, 1);
    assert_int_equal(desk_run(desk, &request), -EIO);
    assert_int_equal(memory_shoal_open_count(desk->client), 1);
    for (int i = 0; i < 2 * DESK_HANDLES_MAX; i++) {
        chmod_file(desk, 2, 04755);
        memory_shoal_fail(desk->client, SHOAL_SETATTR, -EIO, 1);
        assert_int_equal(desk_run(desk, &request), -EIO);
    }
    assert_int_equal(desk_run(desk, &request), 0);
    assert_int_equal(mode_of(desk, 2), 0755);
    assert_int_equal(memory_shoal_open_count(desk->client), 2);

    /* A server that clears them itself: the kernel must not go on believing the old mode. */
    chmod_file(desk, 2, 04777);
    desk->uid = 1000;
    desk->forget_count = 0;
    assert_int_equal(desk_run(desk, &request), 0);
    assert_int_equal(desk->forget_count, 1);
    assert_int_equal(count(desk, SHOAL_SETATTR), 2 * DESK_HANDLES_MAX * 2 + 3);
    assert_int_equal(mode_of(desk, 2), 0777);
}

static void test_chown_clears_set_id(void **state) {
    struct desk *desk = *state;
    const struct abi_setattr_in in = {.valid = ABI_SET_UID | ABI_SET_GID, .uid = 7, .gid = 8};
    uint64_t handle;

    assert_int_equal(desk_create(desk, "file", 06755, &handle), 0);
    assert_int_equal(desk_run(desk,
                              &(struct desk_request){
                                  .opcode = 4, .nodeid = 2, .body = &in, .body_bytes = sizeof(in)}),
                     0);
    assert_int_equal(mode_of(desk, 2), 0755);
}

/* The kernel sends no FSYNC behind a direct write that must be durable. */
static void test_synchronous_writes(void **state) {
    struct desk *desk = *state;
    struct abi_write_in in = {.size = 5, .flags = LINUX_DATA_SYNC};

    assert_int_equal(desk_create(desk, "file", 0644, &in.handle), 0);
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(count(desk, SHOAL_FSYNC), 1);
    assert_int_equal(((struct abi_write_out *)(void *)desk->reply.body)->size, 5);
    memory_shoal_fail(desk->client, SHOAL_FSYNC, -EIO, 1);
    assert_int_equal(desk_write(desk, &in, "12345"), -EIO);
    in.flags = 0;
    assert_int_equal(desk_write(desk, &in, "12345"), 0);
    assert_int_equal(count(desk, SHOAL_FSYNC), 2);
}

/* close settles what may have been written, and says when that failed. */
static void test_flush(void **state) {
    struct desk *desk = *state;
    struct abi_close_in in = {0};
    const struct desk_request request = {
        .opcode = 25, .nodeid = 2, .body = &in, .body_bytes = sizeof(in)};
    struct abi_open_out open;

    assert_int_equal(desk_create(desk, "file", 0644, &in.handle), 0);
    memory_shoal_fail(desk->client, SHOAL_FLUSH, -ENOSPC, 1);
    assert_int_equal(desk_run(desk, &request), -ENOSPC);
    assert_int_equal(desk_run(desk, &request), 0);
    assert_int_equal(count(desk, SHOAL_FLUSH), 2);
    assert_int_equal(desk_open(desk, 2, READ_ONLY, &open), 0);
    in.handle = open.handle;
    assert_int_equal(desk_run(desk, &request), 0);
    assert_int_equal(count(desk, SHOAL_FLUSH), 2);
}

/* A refused caller is tried once more with the groups of its process. */
static void test_groups_are_looked_up(void **state) {
    struct desk *desk = *state;
    const struct abi_setattr_in chown = {.valid = ABI_SET_GID, .gid = 4242};
    const gid_t group = 4242;
    struct abi_open_out open;
    uint64_t handle;
    gid_t before[256];
    int before_count = getgroups(256, before);

    if (geteuid() != 0 || before_count < 0 || setgroups(1, &group) < 0)
        skip();
    assert_int_equal(desk_create(desk, "file", 0060, &handle), 0);
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 4,
                                                           .nodeid = 2,
                                                           .body = &chown,
                                                           .body_bytes = sizeof(chown)}),
                     0);
    desk->uid = 1000;
    desk->gid = 1000;
    desk->pid = (uint32_t)getpid();
    assert_int_equal(desk_open(desk, 2, READ_WRITE, &open), 0);
    assert_int_equal(count(desk, SHOAL_OPEN), 2);

    /* Gone, or nothing gained: refused, and the handle that was set aside is back. */
    desk->pid = 0;
    assert_int_equal(desk_open(desk, 2, READ_WRITE, &open), -EACCES);
    assert_int_equal(count(desk, SHOAL_OPEN), 3);
    chmod_file(desk, 2, 0600);
    desk->pid = (uint32_t)getpid();
    for (int i = 0; i < 2 * DESK_HANDLES_MAX; i++)
        assert_int_equal(desk_open(desk, 2, READ_WRITE, &open), -EACCES);
    assert_int_equal(setgroups((size_t)before_count, before), 0);
}

/* More groups than a call of libshoal takes: those beyond don't count. */
static void test_very_many_groups(void **state) {
    enum { GROUPS = 1500 };
    struct desk *desk = *state;
    const struct abi_setattr_in chown = {.valid = ABI_SET_GID, .gid = GROUPS};
    struct abi_open_out open;
    gid_t many[GROUPS];
    gid_t before[256];
    int before_count = getgroups(256, before);
    uint64_t handle;

    for (unsigned i = 0; i < GROUPS; i++)
        many[i] = i + 1;
    if (geteuid() != 0 || before_count < 0 || setgroups(GROUPS, many) < 0)
        skip();
    assert_int_equal(desk_create(desk, "file", 0060, &handle), 0);
    assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 4,
                                                           .nodeid = 2,
                                                           .body = &chown,
                                                           .body_bytes = sizeof(chown)}),
                     0);
    desk->uid = 1000;
    desk->gid = 100000;
    desk->pid = (uint32_t)getpid();
    assert_int_equal(desk_open(desk, 2, READ_WRITE, &open), -EACCES);
    assert_int_equal(count(desk, SHOAL_OPEN), 2);
    assert_int_equal(setgroups((size_t)before_count, before), 0);
}

static void test_handles_run_out_and_come_back(void **state) {
    struct desk *desk = *state;
    struct abi_open_out open[DESK_HANDLES_MAX];
    struct abi_open_out more;
    uint64_t first;

    assert_int_equal(desk_create(desk, "file", 0644, &first), 0);
    for (int i = 1; i < DESK_HANDLES_MAX; i++)
        assert_int_equal(desk_open(desk, 2, READ_ONLY, &open[i]), 0);
    assert_int_equal(desk_open(desk, 2, READ_ONLY, &more), -ENFILE);
    assert_int_equal(memory_shoal_open_count(desk->client), DESK_HANDLES_MAX);
    assert_int_equal(desk_release(desk, open[5].handle), 0);
    assert_int_equal(desk_open(desk, 2, READ_ONLY, &more), 0);
    assert_true(more.handle != open[5].handle);
    assert_int_equal(desk_release(desk, open[5].handle), -EBADF);
    assert_int_equal(desk_open(desk, 3, READ_ONLY, &more), -ENFILE);
}

static void test_strange_errors_become_eio(void **state) {
    static const int errors[] = {-512, -4096, INT32_MIN};
    struct desk *desk = *state;

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        memory_shoal_fail(desk->client, SHOAL_STATFS, errors[i], 1);
        assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 17}), -EIO);
    }
}

static void test_rename_flags(void **state) {
    struct desk *desk = *state;
    struct abi_rename2_in in = {.new_parent = 1};
    const struct desk_request request = {
        .opcode = 45, .body = &in, .body_bytes = sizeof(in), .name = "a", .new_name = "b"};
    uint64_t handle;

    assert_int_equal(desk_create(desk, "a", 0644, &handle), 0);
    assert_int_equal(desk_create(desk, "b", 0644, &handle), 0);
    in.flags = LINUX_RENAME_NO_REPLACE;
    assert_int_equal(desk_run(desk, &request), -EEXIST);
    in.flags = LINUX_RENAME_EXCHANGE;
    assert_int_equal(desk_run(desk, &request), 0);
    assert_int_equal(desk_ino(desk, "a"), 3);
    assert_int_equal(desk_ino(desk, "b"), 2);
    in.flags = 4; /* whiteout */
    assert_int_equal(desk_run(desk, &request), -EINVAL);
}

/* Walks one reply; answers the last cookie and marks each name that is a number. */
static uint64_t entries_walk(struct desk *desk, bool plus, uint8_t *seen, unsigned *ret_count) {
    const uint8_t *at = desk->reply.body;
    const uint8_t *end = at + desk->reply.bytes;
    uint64_t cookie = 0;

    while (at < end) {
        const struct abi_entry_out *entry = (const void *)at;
        const struct abi_dirent *dirent =
            (const void *)(at + (plus ? sizeof(struct abi_entry_out) : 0));
        const char *name = (const char *)(dirent + 1);
        bool dots = name[0] == '.';
        size_t bytes =
            (size_t)((const uint8_t *)name - at) + ((dirent->name_bytes + 7) & ~(size_t)7);

        assert_true(at + bytes <= end);
        assert_int_equal(dirent->type, dots ? 4 : 8);
        if (plus) {
            assert_int_equal(entry->nodeid, dots ? 0 : dirent->ino);
            assert_int_equal(entry->attributes.nlink, dots ? 0 : 1);
        }
        if (!dots) {
            unsigned number = 0;

            for (uint32_t i = 0; i < dirent->name_bytes; i++)
                number = number * 10 + (unsigned)(name[i] - '0');
            assert_int_equal(seen[number]++, 0);
        }
        cookie = dirent->cookie;
        (*ret_count)++;
        at += bytes;
    }
    return cookie;
}

/* Each entry comes once, whatever the size of the replies. */
static void test_listing_in_pieces(void **state) {
    enum { ENTRIES = 500 };
    static const uint32_t sizes[] = {176, 200, 512, 4096, 65536};
    struct desk *desk = *state;
    const struct abi_open_in open = {0};
    struct abi_read_in in = {0};
    char name[16];
    uint64_t handle;

    for (int i = 0; i < ENTRIES; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(desk_create(desk, name, 0644, &handle), 0);
        assert_int_equal(desk_release(desk, handle), 0);
    }
    assert_int_equal(
        desk_run(desk,
                 &(struct desk_request){.opcode = 27, .body = &open, .body_bytes = sizeof(open)}),
        0);
    in.handle = ((struct abi_open_out *)(void *)desk->reply.body)->handle;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
        uint8_t seen[ENTRIES] = {0};
        bool plus = i % 2;
        unsigned entry_count = 0;

        in.size = sizes[i / 2];
        in.offset = 0;
        do {
            assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = plus ? 44 : 28,
                                                                   .body = &in,
                                                                   .body_bytes = sizeof(in)}),
                             0);
            assert_true(desk->reply.bytes <= in.size);
            in.offset = MAX(entries_walk(desk, plus, seen, &entry_count), in.offset);
        } while (desk->reply.bytes > 0);
        assert_int_equal(entry_count, ENTRIES + 2);
    }
}

enum { LAID_NUMBER = 4242 };

/* The kernel's INTERRUPT of a request, as another thread of the mount reads it. */
static void interrupt_comes(void *context) {
    struct desk *desk = context;
    const struct abi_interrupt_in in = {.unique = LAID_NUMBER};
    struct fuse_request *waiting = desk->request;
    const struct desk_request interrupt = {.opcode = 36, .body = &in, .body_bytes = sizeof(in)};
    unsigned replies = desk->reply_count;
    struct fuse_request *other = request_pool_take(&desk->front.requests);

    assert_non_null(other);
    memory_shoal_wait(desk->client, NULL, NULL);
    desk->request = other;
    assert_true(fuse_request_run(other, desk_lay(desk, &interrupt)));
    desk->request = waiting;
    request_pool_put(&desk->front.requests, other);
    assert_int_equal(desk->reply_count, replies);
}

static void nothing_comes(void *context) {
    struct desk *desk = context;

    memory_shoal_wait(desk->client, NULL, NULL);
}

static int getattr_root(struct desk *desk) {
    const struct abi_getattr_in in = {0};

    return desk_run(desk,
                    &(struct desk_request){.opcode = 3, .body = &in, .body_bytes = sizeof(in)});
}

/* Who is interrupted while a server is away gets EINTR; a number that is noted stays of its
 * request, and one that comes ahead of it counts. */
static void test_interrupted_request_ends(void **state) {
    struct desk *desk = *state;

    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0);
    memory_shoal_wait(desk->client, interrupt_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);

    memset(&desk->front.interrupts, 0, sizeof(desk->front.interrupts));
    atomic_store(&desk->request->interrupted, LAID_NUMBER - 2);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0);
    for (uint32_t i = 0; i < desk->front.requests.free.capacity; i++) /* None was read yet. */
        atomic_store(&desk->front.requests.requests[i].number, 0);
    atomic_store(&desk->request->interrupted, 0);
    interrupts_note(&desk->front, LAID_NUMBER);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);
}

/* Nobody will use what an open or a create has opened, and no INTERRUPT comes any more. */
static void test_opens_end_with_the_mount(void **state) {
    struct desk *desk = *state;
    struct abi_open_out open;
    uint64_t handle;
    uint64_t ino;

    assert_int_equal(desk_create(desk, "file", 0644, &handle), 0);
    ino = desk_ino(desk, "file");
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(desk_create(desk, "other", 0644, &handle), 0);
    atomic_store(&desk->front.is_over, true);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(desk_open(desk, ino, READ_WRITE, &open), -EINTR);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(desk_create(desk, "fresh", 0644, &handle), -EINTR);
}

/* Of many whose requests wait none makes one forgotten whose request another thread has read, and
 * not met yet. */
static void test_a_flood_of_interrupts(void **state) {
    struct desk *desk = *state;
    struct fuse_request *requests = desk->front.requests.requests;
    uint32_t other = desk->request == &requests[0];

    for (uint32_t i = 0; i < desk->front.requests.free.capacity; i++)
        atomic_store(&requests[i].number, 0);
    interrupts_note(&desk->front, LAID_NUMBER);
    for (uint64_t i = 1; i <= 4 * INTERRUPTS_KEPT; i++) {
        atomic_store(&requests[other].number, 2 * i);
        interrupts_note(&desk->front, 2 * i);
        assert_int_equal(atomic_load(&requests[other].interrupted), 2 * i);
    }
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);
}

/* Without a wait nobody asks. */
static void test_interrupt_of_what_is_answered(void **state) {
    struct desk *desk = *state;

    interrupts_note(&desk->front, LAID_NUMBER);
    assert_int_equal(getattr_root(desk), 0);
}

/* EINTR at once, and what comes later is closed again, once and without a second answer. */
static void test_interrupted_open_is_closed(void **state) {
    struct desk *desk = *state;
    struct abi_open_out open;
    uint64_t handle;
    unsigned replies;
    uint64_t ino;

    assert_int_equal(desk_create(desk, "file", 0644, &handle), 0);
    assert_int_equal(desk_release(desk, handle), 0);
    ino = desk_ino(desk, "file");
    assert_int_equal(memory_shoal_open_count(desk->client), 0);
    for (int creates = 0; creates < 2; creates++) {
        memset(&desk->front.interrupts, 0, sizeof(desk->front.interrupts));
        atomic_store(&desk->request->interrupted, 0);
        replies = desk->reply_count;
        memory_shoal_wait(desk->client, interrupt_comes, desk);
        assert_int_equal(creates ? desk_create(desk, "fresh", 0644, &handle)
                                 : desk_open(desk, ino, READ_WRITE, &open),
                         -EINTR);
        assert_int_equal(desk->reply_count, replies + 1);
        assert_int_equal(memory_shoal_open_count(desk->client), 0);
        assert_int_equal(count(desk, SHOAL_RELEASE), 2 + creates);
    }
    memset(&desk->front.interrupts, 0, sizeof(desk->front.interrupts));
    atomic_store(&desk->request->interrupted, 0);
    for (int i = 0; i < DESK_HANDLES_MAX; i++)
        assert_int_equal(desk_open(desk, ino, READ_ONLY, &open), 0);
}

/* While all requests are in flight nobody reads an INTERRUPT: the process itself is looked at. */
static void test_process_is_looked_at_without_a_reader(void **state) {
    struct desk *desk = *state;
    sigset_t usual;
    sigset_t blocked;
    int ready[2];
    char byte;
    int status;

    assert_int_equal(pipe(ready), 0);
    int child = fork();
    if (child == 0) {
        /* A library may block signals for as long as it forks. */
        (void)!write(ready[1], "", 1);
        for (;;)
            (void)pause();
    }
    assert_true(child > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    desk->pid = (uint32_t)child;
    atomic_fetch_add(&desk->front.requests.detached_count, (int)desk->front.requests.free.capacity);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &usual), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    desk->pid = (uint32_t)getpid();
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0); /* It waits, but is blocked. */
    assert_int_equal(signal(SIGUSR1, SIG_IGN) == SIG_ERR, 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &usual, NULL), 0);

    /* Traced and stopped, it can't take what comes. */
    assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(kill(child, SIGTERM), 0);
    desk->pid = (uint32_t)child;
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);

    /* Where requests are free an INTERRUPT is read, but of what io_uring brings none may come. */
    atomic_fetch_sub(&desk->front.requests.detached_count, (int)desk->front.requests.free.capacity);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0);
    desk->request->entry = desk;
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), -EINTR);

    /* Who asks often finds out in a moment only. */
    atomic_store(&desk->request->looked_ns, env_now_ns(desk->front.env));
    assert_int_equal(interrupts_asked(&desk->request->shoal), 0);
    desk_pass(INTERRUPTS_LOOK_NS);
    assert_int_equal(interrupts_asked(&desk->request->shoal), 1);
    assert_int_equal(interrupts_asked(&desk->request->shoal), 1);
    desk->request->entry = NULL;
    atomic_fetch_add(&desk->front.requests.detached_count, (int)desk->front.requests.free.capacity);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    memory_shoal_wait(desk->client, nothing_comes, desk);
    assert_int_equal(getattr_root(desk), 0); /* It has gone: nobody is known to wait. */
    atomic_fetch_sub(&desk->front.requests.detached_count, (int)desk->front.requests.free.capacity);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, desk_set_up, desk_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        DESK_TEST(test_open_policy),
        DESK_TEST(test_open_beside_writers),
        DESK_TEST(test_execute_only),
        DESK_TEST(test_file_without_a_name),
        DESK_TEST(test_lookup_by_number),
        DESK_TEST(test_open_meets_what_others_changed),
        DESK_TEST(test_pages_that_are_kept),
        DESK_TEST(test_files_that_are_read_whole),
        DESK_TEST(test_write_clears_set_id),
        DESK_TEST(test_failing_to_clear_refuses_the_write),
        DESK_TEST(test_allocation_clears_set_id),
        DESK_TEST(test_truncating_open_clears_set_id),
        DESK_TEST(test_chown_clears_set_id),
        DESK_TEST(test_synchronous_writes),
        DESK_TEST(test_flush),
        DESK_TEST(test_groups_are_looked_up),
        DESK_TEST(test_very_many_groups),
        DESK_TEST(test_handles_run_out_and_come_back),
        DESK_TEST(test_strange_errors_become_eio),
        DESK_TEST(test_rename_flags),
        DESK_TEST(test_listing_in_pieces),
        DESK_TEST(test_interrupted_request_ends),
        DESK_TEST(test_opens_end_with_the_mount),
        DESK_TEST(test_a_flood_of_interrupts),
        DESK_TEST(test_interrupt_of_what_is_answered),
        DESK_TEST(test_interrupted_open_is_closed),
        DESK_TEST(test_process_is_looked_at_without_a_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
