/* Bytes in, replies out, without a kernel: valid requests, cut ones, and garbage. */
#include "unit.h"
#include "base/prng.h"
#include "fuse_desk.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FORGET = 2, INTERRUPT = 36, BATCH_FORGET = 42, NOTIFY_REPLY = 41 };

static int desk_set_up(void **state) {
    *state = desk_new();
    return 0;
}

static int desk_tear_down(void **state) {
    desk_free(*state);
    return 0;
}

/* One valid request of each kind, in an order in which all of them succeed. The handle of what
 * CREATE made is filled in where `takes_handle`; OPENDIR's where it lists. */
struct sample {
    uint32_t opcode;
    size_t body_bytes;
    const char *name;
    const char *new_name;
    enum { HANDLE_NONE, HANDLE_FILE, HANDLE_DIRECTORY } handle;
    int error;
    size_t reply_bytes; /* SIZE_MAX: not checked */
};

static const struct sample samples[] = {
    {35, 16, "file", NULL, HANDLE_NONE, 0, 144},         /* CREATE */
    {1, 0, "file", NULL, HANDLE_NONE, 0, 128},           /* LOOKUP */
    {1, 0, "missing", NULL, HANDLE_NONE, -ENOENT, 0},    /* LOOKUP */
    {3, 16, NULL, NULL, HANDLE_NONE, 0, 104},            /* GETATTR */
    {4, 88, NULL, NULL, HANDLE_NONE, 0, 104},            /* SETATTR of nothing */
    {52, 24, NULL, NULL, HANDLE_NONE, 0, 288},           /* STATX */
    {6, 0, "link", "target", HANDLE_NONE, 0, 128},       /* SYMLINK */
    {5, 0, NULL, NULL, HANDLE_NONE, -EINVAL, 0},         /* READLINK of the root */
    {8, 16, "node", NULL, HANDLE_NONE, 0, 128},          /* MKNOD */
    {9, 8, "directory", NULL, HANDLE_NONE, 0, 128},      /* MKDIR */
    {15, 40, NULL, NULL, HANDLE_FILE, 0, 0},             /* READ of nothing */
    {16, 40, NULL, NULL, HANDLE_FILE, 0, 8},             /* WRITE of nothing */
    {25, 24, NULL, NULL, HANDLE_FILE, 0, 0},             /* FLUSH */
    {20, 16, NULL, NULL, HANDLE_FILE, 0, 0},             /* FSYNC */
    {43, 32, NULL, NULL, HANDLE_FILE, 0, 0},             /* FALLOCATE */
    {47, 56, NULL, NULL, HANDLE_FILE, 0, 8},             /* COPY_FILE_RANGE of nothing */
    {53, 56, NULL, NULL, HANDLE_FILE, 0, 8},             /* COPY_FILE_RANGE_64 */
    {47, 56, NULL, NULL, HANDLE_NONE, -EBADF, 0},        /* COPY_FILE_RANGE of no file */
    {46, 24, NULL, NULL, HANDLE_FILE, -EINVAL, 0},       /* LSEEK as the kernel does it itself */
    {27, 8, NULL, NULL, HANDLE_NONE, 0, 16},             /* OPENDIR */
    {28, 40, NULL, NULL, HANDLE_DIRECTORY, 0, SIZE_MAX}, /* READDIR */
    {44, 40, NULL, NULL, HANDLE_DIRECTORY, 0, SIZE_MAX}, /* READDIRPLUS */
    {30, 16, NULL, NULL, HANDLE_DIRECTORY, 0, 0},        /* FSYNCDIR */
    {29, 24, NULL, NULL, HANDLE_DIRECTORY, 0, 0},        /* RELEASEDIR */
    {29, 24, NULL, NULL, HANDLE_DIRECTORY, -EBADF, 0},   /* once more */
    {12, 8, "node", "other", HANDLE_NONE, -ENOENT, 0},   /* RENAME to directory 0 */
    {45, 16, "node", "other", HANDLE_NONE, -ENOENT, 0},  /* RENAME2 likewise */
    {13, 8, "hard", NULL, HANDLE_NONE, -ENOENT, 0},      /* LINK of inode 0 */
    {10, 0, "node", NULL, HANDLE_NONE, 0, 0},            /* UNLINK */
    {11, 0, "directory", NULL, HANDLE_NONE, 0, 0},       /* RMDIR */
    {17, 0, NULL, NULL, HANDLE_NONE, 0, 80},             /* STATFS */
    {34, 8, NULL, NULL, HANDLE_NONE, 0, 0},              /* ACCESS */
    {18, 24, NULL, NULL, HANDLE_FILE, 0, 0},             /* RELEASE */
    {18, 24, NULL, NULL, HANDLE_FILE, -EBADF, 0},        /* once more */
    {50, 8, NULL, NULL, HANDLE_NONE, 0, 0},              /* SYNCFS */
    {38, 0, NULL, NULL, HANDLE_NONE, 0, 0},              /* DESTROY */
    {39, 32, NULL, NULL, HANDLE_NONE, -ENOTTY, 0},       /* IOCTL */
    {21, 8, "user.x", NULL, HANDLE_NONE, -ENOSYS, 0},    /* SETXATTR */
    {22, 8, "user.x", NULL, HANDLE_NONE, -ENOSYS, 0},    /* GETXATTR */
    {23, 8, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},        /* LISTXATTR */
    {24, 0, "user.x", NULL, HANDLE_NONE, -ENOSYS, 0},    /* REMOVEXATTR */
    {31, 48, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},       /* GETLK */
    {37, 16, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},       /* BMAP */
    {40, 24, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},       /* POLL */
    {51, 16, "/", NULL, HANDLE_NONE, 0, 144},            /* TMPFILE */
    {18, 24, NULL, NULL, HANDLE_FILE, 0, 0},             /* RELEASE of that */
    {7, 8, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},         /* a number that isn't used */
    {4096, 8, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},      /* one beyond the table */
    {UINT32_MAX, 0, NULL, NULL, HANDLE_NONE, -ENOSYS, 0},
};

struct handles {
    uint64_t file;
    uint64_t directory;
};

static size_t sample_lay(struct desk *desk, const struct sample *sample,
                         const struct handles *handles) {
    uint64_t body[16] = {0};
    uint32_t open_flags = 2;

    if (sample->handle != HANDLE_NONE)
        body[0] = sample->handle == HANDLE_FILE ? handles->file : handles->directory;
    if (sample->opcode == 35 || sample->opcode == 51)
        memcpy(body, &open_flags, sizeof(open_flags));
    if (sample->opcode == 28 || sample->opcode == 44)
        body[2] = 4096; /* size */
    if (sample->opcode == 43)
        body[2] = 100; /* length */
    if (sample->opcode == 47 || sample->opcode == 53)
        body[3] = body[0]; /* to the same file */
    if (sample->opcode == 8)
        body[0] = 0100644; /* mode */
    return desk_lay(desk, &(struct desk_request){.opcode = sample->opcode,
                                                 .body = body,
                                                 .body_bytes = sample->body_bytes,
                                                 .name = sample->name,
                                                 .new_name = sample->new_name});
}

static void handles_learn(struct desk *desk, const struct sample *sample, struct handles *handles) {
    if (desk->reply.error != 0)
        return;
    if (sample->opcode == 35 || sample->opcode == 51)
        handles->file = ((struct abi_create_out *)(void *)desk->reply.body)->open.handle;
    if (sample->opcode == 27)
        handles->directory = ((struct abi_open_out *)(void *)desk->reply.body)->handle;
}

static void test_each_kind_is_answered(void **state) {
    struct desk *desk = *state;
    struct handles handles = {0};

    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        const struct sample *sample = &samples[i];

        desk->reply_count = 0;
        desk_run_bytes(desk, sample_lay(desk, sample, &handles));
        if (desk->reply_count != 1 || desk->reply.error != sample->error)
            fail_msg("sample %zu, opcode %u: %u replies, error %d instead of %d", i, sample->opcode,
                     desk->reply_count, desk->reply.error, sample->error);
        assert_int_equal(desk->reply.unique, 4242);
        if (sample->reply_bytes != SIZE_MAX && desk->reply.bytes != sample->reply_bytes)
            fail_msg("sample %zu, opcode %u: %zu bytes instead of %zu", i, sample->opcode,
                     desk->reply.bytes, sample->reply_bytes);
        handles_learn(desk, sample, &handles);
    }
    assert_int_equal(memory_shoal_open_count(desk->client), 0);
    assert_int_equal(desk->front.statistics[0][1].count, 2);
    assert_int_equal(desk->front.statistics[0][1].error_count, 1);
    assert_int_equal(desk->front.statistics[0][0].count, 3);
}

/* Whatever the kernel forgets needs no answer, also when it says so badly. */
static void test_forgetting_is_silent(void **state) {
    static const uint32_t opcodes[] = {FORGET, BATCH_FORGET, NOTIFY_REPLY};
    struct desk *desk = *state;

    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        uint64_t body[8] = {UINT64_MAX};

        desk_run(desk, &(struct desk_request){
                           .opcode = opcodes[i], .body = body, .body_bytes = sizeof(body)});
        desk_run(desk, &(struct desk_request){.opcode = opcodes[i]});
    }
    assert_int_equal(desk->reply_count, 0);
    assert_int_equal(desk->front.statistics[0][FORGET].count, 2);
    assert_int_equal(memory_shoal_count(desk->client, SHOAL_LOOKUP), 0);
}

/* Each sample cut at each length gets one answer; what its body or names lack is EIO. The bytes
 * behind the cut still lie there, so reading too far would succeed. */
static void test_cut_requests_are_refused(void **state) {
    struct desk *desk = *state;

    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        const struct sample *sample = &samples[i];
        size_t whole = sample_lay(desk, sample, &(struct handles){0});

        for (size_t bytes = 0; bytes < whole; bytes++) {
            struct abi_in_header *header = (void *)(uintptr_t)request_header(desk->request);
            bool unknown = sample->error == -ENOSYS || sample->error == -ENOTTY;

            (void)sample_lay(desk, sample, &(struct handles){0});
            header->bytes = (uint32_t)bytes;
            desk->reply_count = 0;
            desk_run_bytes(desk, bytes);
            assert_int_equal(desk->reply_count, bytes < sizeof(*header) ? 0 : 1);
            if (bytes >= sizeof(*header) && desk->reply.error != -EIO && !unknown &&
                sample->opcode != 50)
                fail_msg("opcode %u cut to %zu of %zu bytes: %d", sample->opcode, bytes, whole,
                         desk->reply.error);
        }
    }
    assert_int_equal(memory_shoal_inode_count(desk->client), 1);
    assert_int_equal(memory_shoal_open_count(desk->client), 0);
}

static void test_wrong_length_is_refused(void **state) {
    struct desk *desk = *state;
    struct abi_in_header *header = (void *)(uintptr_t)request_header(desk->request);
    size_t bytes = desk_lay(desk, &(struct desk_request){.opcode = 1, .name = "file"});

    header->bytes++;
    desk_run_bytes(desk, bytes);
    assert_int_equal(desk->reply.error, -EIO);

    /* Extensions are skipped, and can't be longer than the request. */
    bytes = desk_lay(desk, &(struct desk_request){.opcode = 1, .name = "1234567"});
    header->extension_words = 1;
    desk_run_bytes(desk, bytes);
    assert_int_equal(desk->reply.error, -EIO);
    header->extension_words = UINT16_MAX;
    desk_run_bytes(desk, bytes);
    assert_int_equal(desk->reply.error, -EIO);
    bytes = desk_lay(desk, &(struct desk_request){
                               .opcode = 1, .name = "12345", .data = "extended", .data_bytes = 8});
    header->extension_words = 1;
    desk_run_bytes(desk, bytes);
    assert_int_equal(desk->reply.error, -ENOENT);
}

static void test_names_have_limits(void **state) {
    struct desk *desk = *state;
    char name[257];
    char target[4097];
    uint64_t handle;

    memset(name, '\xff', sizeof(name));
    name[255] = 0;
    assert_int_equal(desk_create(desk, name, 0644, &handle), 0);
    assert_int_not_equal(desk_ino(desk, name), 0);
    name[255] = 'x';
    name[256] = 0;
    assert_int_equal(desk_create(desk, name, 0644, &handle), -ENAMETOOLONG);
    assert_int_equal(desk_create(desk, "", 0644, &handle), -EINVAL);

    memset(target, 't', sizeof(target));
    target[4095] = 0;
    assert_int_equal(
        desk_run(desk, &(struct desk_request){.opcode = 6, .name = "l", .new_name = target}), 0);
    assert_int_equal(
        desk_run(desk, &(struct desk_request){.opcode = 5, .nodeid = desk_ino(desk, "l")}), 0);
    assert_int_equal(desk->reply.bytes, 4095);
    target[4095] = 't';
    target[4096] = 0;
    assert_int_equal(
        desk_run(desk, &(struct desk_request){.opcode = 6, .name = "m", .new_name = target}),
        -ENAMETOOLONG);
}

/* A WRITE that brings less or more than it says, or more than was agreed on. */
static void test_write_lengths_are_checked(void **state) {
    static uint8_t data[DESK_WRITE_BYTES_MAX];
    struct desk *desk = *state;
    struct abi_write_in in = {.size = sizeof(data)};
    struct abi_read_in read = {.size = DESK_WRITE_BYTES_MAX + 1};

    assert_int_equal(desk_create(desk, "file", 0644, &in.handle), 0);
    assert_int_equal(desk_write(desk, &in, data), 0);
    assert_int_equal(memory_shoal_write_misalignment(desk->client), 0);
    for (int change = -1; change <= 1; change += 2) {
        struct abi_write_in wrong = in;

        wrong.size = (uint32_t)((int)sizeof(data) - 8 + change);
        assert_int_equal(desk_run(desk, &(struct desk_request){.opcode = 16,
                                                               .body = &wrong,
                                                               .body_bytes = sizeof(wrong),
                                                               .data = data,
                                                               .data_bytes = sizeof(data) - 8}),
                         -EIO);
    }
    assert_int_equal(memory_shoal_count(desk->client, SHOAL_WRITE), 1);

    read.handle = in.handle;
    assert_int_equal(
        desk_run(desk,
                 &(struct desk_request){.opcode = 15, .body = &read, .body_bytes = sizeof(read)}),
        -EINVAL);
}

/* Random bytes behind a header that is right in its length: one answer each, nothing crashes, and
 * what was opened can be closed. Half of them are samples with a few bytes changed. */
static void test_garbage(void **state) {
    enum { ROUNDS = 200000 };
    struct desk *desk = *state;
    struct prng prng;
    uint64_t seed = 20261121;
    struct handles handles = {0};

    print_message("seed %llu\n", (unsigned long long)seed);
    prng_init(&prng, seed);
    for (int i = 0; i < ROUNDS; i++) {
        const struct sample *sample = &samples[prng_below(&prng, ARRAY_SIZE(samples))];
        struct abi_in_header *header = (void *)(uintptr_t)request_header(desk->request);
        uint8_t *bytes_at = (uint8_t *)header;
        size_t bytes = sample_lay(desk, sample, &handles);
        bool silent;

        if (prng_below(&prng, 2)) {
            bytes = sizeof(*header) + prng_below(&prng, 400);
            for (size_t at = 0; at < bytes; at++)
                bytes_at[at] = (uint8_t)prng_next(&prng);
            header->opcode = (uint32_t)prng_below(&prng, 64);
            header->bytes = (uint32_t)bytes;
            header->nodeid = prng_below(&prng, 8);
            header->extension_words = (uint16_t)prng_below(&prng, 3);
        } else {
            for (uint64_t n = prng_below(&prng, 4); n > 0; n--)
                bytes_at[sizeof(*header) + prng_below(&prng, bytes - sizeof(*header) + 1)] =
                    (uint8_t)prng_below(&prng, 256);
        }
        header->pid = 0;
        silent = header->opcode == FORGET || header->opcode == BATCH_FORGET ||
                 header->opcode == NOTIFY_REPLY;
        desk->reply_count = 0;
        desk_run_bytes(desk, bytes);
        if (header->opcode == INTERRUPT) /* Silent where it is one. */
            assert_in_range(desk->reply_count, 0, 1);
        else
            assert_int_equal(desk->reply_count, silent ? 0 : 1);
        assert_in_range(-desk->reply.error + 1, 0, 512);
        if (header->opcode == sample->opcode)
            handles_learn(desk, sample, &handles);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_kind_is_answered, desk_set_up, desk_tear_down),
        cmocka_unit_test_setup_teardown(test_forgetting_is_silent, desk_set_up, desk_tear_down),
        cmocka_unit_test_setup_teardown(test_cut_requests_are_refused, desk_set_up, desk_tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_length_is_refused, desk_set_up, desk_tear_down),
        cmocka_unit_test_setup_teardown(test_names_have_limits, desk_set_up, desk_tear_down),
        cmocka_unit_test_setup_teardown(test_write_lengths_are_checked, desk_set_up,
                                        desk_tear_down),
        cmocka_unit_test_setup_teardown(test_garbage, desk_set_up, desk_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
