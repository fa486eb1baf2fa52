/* The real outside, on a temporary directory: files, names, shared memory, clocks. */
#include "env_place.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "env/env_linux_internal.h"

static void test_write_read_sync(void **state) {
    struct place *place = *state;

    for (unsigned direct = 0; direct < 2; direct++) {
        struct env_file *file = file_make(place, direct ? ENV_FILE_DIRECT : 0);
        uint8_t *out = pages(2 * BLOCK_BYTES, (uint8_t)(0x5a + direct));
        uint8_t *in = pages(2 * BLOCK_BYTES, 0);
        struct env_io io = {.kind = ENV_IO_WRITE,
                            .file = file,
                            .buffer = out,
                            .offset = 8192,
                            .size = 2 * BLOCK_BYTES};

        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){.kind = ENV_IO_SYNC, .file = file};
        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){.kind = ENV_IO_READ,
                             .file = file,
                             .buffer = in,
                             .offset = 8192,
                             .size = 2 * BLOCK_BYTES};
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 2 * BLOCK_BYTES);
        assert_memory_equal(in, out, 2 * BLOCK_BYTES);
        free(out);
        free(in);
        place->env->ops->file_close(file);
    }
}

static void test_read_past_the_end_is_short(void **state) {
    struct place *place = *state;

    for (unsigned direct = 0; direct < 2; direct++) {
        struct env_file *plain = file_make(place, 0);
        struct env_file *file = file_make(place, direct ? ENV_FILE_DIRECT : 0);
        uint8_t *data = pages(3 * BLOCK_BYTES, 7);
        struct env_io io = {.kind = ENV_IO_WRITE, .file = plain, .buffer = data, .size = 5000};

        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){
            .kind = ENV_IO_READ, .file = file, .buffer = data, .size = 3 * BLOCK_BYTES};
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 5000);
        io.offset = 3 * BLOCK_BYTES;
        io.size = BLOCK_BYTES;
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 0);
        free(data);
        place->env->ops->file_close(file);
        place->env->ops->file_close(plain);
    }
}

/* What the system may answer, piece by piece: a request ends when all of it is done, a read also
 * at the end of the file, and an interruption ends nothing. */
static void test_answers_in_pieces(void **state) {
    static const struct {
        enum env_io_kind kind;
        bool direct;
        size_t size;
        int64_t answers[4]; /* up to the one that ends it */
        unsigned answer_count;
        int result;
        size_t ret_size;
    } rows[] = {
        {ENV_IO_READ, false, 100, {100}, 1, 0, 100},
        {ENV_IO_READ, false, 100, {40, 50, 10}, 3, 0, 100},
        {ENV_IO_READ, false, 100, {40, 0}, 2, 0, 40},
        {ENV_IO_READ, false, 100, {-EINTR, 40, -EAGAIN, 60}, 4, 0, 100},
        {ENV_IO_READ, true, 12288, {4096, 4096, 4096}, 3, 0, 12288},
        {ENV_IO_READ, true, 12288, {4096, 100}, 2, 0, 4196},
        {ENV_IO_READ, false, 100, {40, -EIO}, 2, -ERR_IO, 40},
        {ENV_IO_READ, false, 0, {0}, 1, 0, 0},
        {ENV_IO_WRITE, false, 100, {60, 40}, 2, 0, 100},
        {ENV_IO_WRITE, false, 100, {60, -ENOSPC}, 2, -ERR_NO_SPACE, 60},
        {ENV_IO_WRITE, false, 100, {60, 0}, 2, -ERR_IO, 60},
        {ENV_IO_WRITE, false, 0, {0}, 1, 0, 0},
        {ENV_IO_SYNC, false, 0, {-EINTR, 0}, 2, 0, 0},
        {ENV_IO_SYNC, false, 0, {-EIO}, 1, -ERR_IO, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct env_file file = {.direct_asked = rows[i].direct};
        struct env_io io = {.kind = rows[i].kind, .file = &file, .size = rows[i].size};

        for (unsigned j = 0; j < rows[i].answer_count; j++) {
            bool ended = io_advance(&io, rows[i].answers[j]);

            assert_int_equal(ended, j == rows[i].answer_count - 1);
        }
        assert_int_equal(io.work.result, rows[i].result);
        assert_int_equal(io.work.progress_bytes, rows[i].ret_size);
    }
}

static void test_requests_that_cannot_be_right(void **state) {
    struct place *place = *state;
    struct env_file *direct = file_make(place, ENV_FILE_DIRECT);
    struct env_file *read_only = file_make(place, ENV_FILE_READ_ONLY);
    uint8_t *data = pages(2 * BLOCK_BYTES, 1);
    const struct {
        struct env_io io;
        int result;
    } rows[] = {
        {{.kind = ENV_IO_WRITE, .file = direct, .buffer = data, .size = 100}, -ERR_INVALID},
        {{.kind = ENV_IO_READ, .file = direct, .buffer = data, .offset = 512, .size = BLOCK_BYTES},
         -ERR_INVALID},
        {{.kind = ENV_IO_WRITE, .file = direct, .buffer = data + 8, .size = BLOCK_BYTES},
         -ERR_INVALID},
        {{.kind = ENV_IO_WRITE, .file = read_only, .buffer = data, .size = 8}, -ERR_BAD_HANDLE},
        {{.kind = ENV_IO_SYNC, .file = read_only}, -ERR_BAD_HANDLE},
        {{.kind = ENV_IO_READ,
          .file = direct,
          .buffer = data,
          .offset = UINT64_MAX - 4095,
          .size = BLOCK_BYTES},
         -ERR_FILE_TOO_BIG},
        {{.kind = ENV_IO_ALLOCATE, .file = direct, .size = (size_t)1 << 60}, -ERR_FILE_TOO_BIG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct env_io io = rows[i].io;

        assert_int_equal(io_finish(place, &io), rows[i].result);
        assert_int_equal(place->env->ops->io_run(place->env, &io), rows[i].result);
    }
    uint64_t size_bytes = 1;
    assert_int_equal(place->env->ops->file_size(direct, &size_bytes), 0);
    assert_int_equal(size_bytes, 0);
    free(data);
    place->env->ops->file_close(direct);
    place->env->ops->file_close(read_only);
}

static void test_allocate_grows_and_keeps(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, ENV_FILE_DIRECT);
    uint8_t *data = pages(BLOCK_BYTES, 9);
    uint64_t size_bytes;
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = data, .size = BLOCK_BYTES};

    assert_int_equal(io_finish(place, &io), 0);
    io = (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = MIB};
    assert_int_equal(io_finish(place, &io), 0);
    assert_int_equal(place->env->ops->file_size(file, &size_bytes), 0);
    assert_int_equal(size_bytes, MIB);
    memset(data, 0, BLOCK_BYTES);
    io = (struct env_io){.kind = ENV_IO_READ, .file = file, .buffer = data, .size = BLOCK_BYTES};
    assert_int_equal(place->env->ops->io_run(place->env, &io), 0);
    assert_int_equal(data[0], 9);
    assert_int_equal(data[BLOCK_BYTES - 1], 9);
    /* Nobody has an exbibyte to keep free; what the file has already needs none. */
    io = (struct env_io){.kind = ENV_IO_ALLOCATE,
                         .file = file,
                         .size = 2 * MIB,
                         .keep_free_bytes = UINT64_C(1) << 60};
    assert_int_equal(io_finish(place, &io), -ERR_NO_SPACE);
    assert_int_equal(place->env->ops->file_size(file, &size_bytes), 0);
    assert_int_equal(size_bytes, MIB);
    io.size = MIB;
    assert_int_equal(io_finish(place, &io), 0);
    io.size = 2 * MIB;
    io.keep_free_bytes = 1;
    assert_int_equal(io_finish(place, &io), 0);
    free(data);
    place->env->ops->file_close(file);
}

static int set_up_without_fallocate(void **state) {
    return place_set_up(state, (struct env_linux_options){.refuse_fallocate = true});
}

/* Where zeros must be written, what is there stays, holes are filled, and the end need not be
 * aligned. */
static void test_allocate_without_fallocate(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, 0);
    uint8_t *data = pages(16 * BLOCK_BYTES, 9);
    char path[128];
    struct stat status;
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = data, .size = BLOCK_BYTES};

    assert_int_equal(io_finish(place, &io), 0);
    io.offset = 8 * BLOCK_BYTES;
    assert_int_equal(io_finish(place, &io), 0);
    io = (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = 16 * BLOCK_BYTES - 100};
    assert_int_equal(io_finish(place, &io), 0);
    snprintf(path, sizeof path, "%s/file", place->root);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 16 * BLOCK_BYTES - 100);
    assert_true((uint64_t)status.st_blocks * 512 >= 16 * BLOCK_BYTES);
    io = (struct env_io){
        .kind = ENV_IO_READ, .file = file, .buffer = data, .size = 16 * BLOCK_BYTES};
    assert_int_equal(io_finish(place, &io), 0);
    assert_int_equal(io.ret_size, 16 * BLOCK_BYTES - 100);
    for (size_t i = 0; i < io.ret_size; i++) {
        bool written = i / BLOCK_BYTES == 0 || i / BLOCK_BYTES == 8;

        assert_int_equal(data[i], written ? 9 : 0);
    }
    free(data);
    place->env->ops->file_close(file);
}

static void test_names(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_file *file = NULL;
    unsigned exclusive = ENV_FILE_CREATE | ENV_FILE_EXCLUSIVE;

    assert_int_equal(ops->file_open(place->env, "file", 0, &file), -ERR_NOT_FOUND);
    assert_null(file);
    assert_int_equal(ops->file_open(place->env, "nowhere/file", ENV_FILE_CREATE, &file),
                     -ERR_NOT_FOUND);
    assert_int_equal(ops->directory_make(place->env, "directory"), 0);
    assert_int_equal(ops->directory_make(place->env, "directory"), 0);
    assert_int_equal(ops->file_open(place->env, "directory/file", exclusive, &file), 0);
    ops->file_close(file);
    assert_int_equal(ops->file_open(place->env, "directory/file", exclusive, &file), -ERR_EXISTS);
    assert_int_equal(ops->directory_make(place->env, "directory/file"), -ERR_NOT_DIRECTORY);
    assert_int_equal(ops->file_open(place->env, "other", exclusive, &file), 0);
    ops->file_close(file);
    assert_int_equal(ops->file_rename(place->env, "directory/file", "other"), 0);
    assert_int_equal(ops->file_open(place->env, "directory/file", 0, &file), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_remove(place->env, "other"), 0);
    assert_int_equal(ops->file_remove(place->env, "other"), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_rename(place->env, "other", "file"), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_open(place->env, "directory", 0, &file), -ERR_IS_DIRECTORY);
}

/* A process that wrote to a region and is killed leaves it as it was; only one may have it. */
static void test_shared_region_survives_kill(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_shared *shared = NULL;
    bool created = false;
    int ends[2];
    char letter;
    char name[80];
    char path[200] = "";

    /* Of this test alone, as names are the machine's; what a file system reads in them is no
     * matter. */
    snprintf(name, sizeof name, "%s/ring", place->root);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int r = ops->shared_open(place->env, name, 3 * BLOCK_BYTES, &shared, &created);

        if (r == 0 && created) {
            memset(ops->shared_data(shared), 0x77, 3 * BLOCK_BYTES);
        }
        r = write(ends[1], r || !created ? "n" : "y", 1) == 1;
        pause();
        _exit(r);
    }
    assert_int_equal(read(ends[0], &letter, 1), 1);
    assert_int_equal(letter, 'y');
    assert_int_equal(ops->shared_open(place->env, name, 3 * BLOCK_BYTES, &shared, &created),
                     -ERR_IN_USE);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(ops->shared_open(place->env, name, 3 * BLOCK_BYTES, &shared, &created), 0);
    assert_false(created);
    const uint8_t *data = ops->shared_data(shared);
    for (size_t i = 0; i < 3 * BLOCK_BYTES; i++) {
        assert_int_equal(data[i], 0x77);
    }
    ops->shared_close(shared);
    close(ends[0]);
    close(ends[1]);

    ops->shared_path(place->env, name, sizeof path, path);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 3 * BLOCK_BYTES);

    uint64_t size_bytes = 0;
    assert_int_equal(ops->shared_size(place->env, name, &size_bytes), 0);
    assert_int_equal(size_bytes, 3 * BLOCK_BYTES);

    /* Of another size it is made anew, zeroed. */
    assert_int_equal(ops->shared_open(place->env, name, BLOCK_BYTES, &shared, &created), 0);
    assert_true(created);
    assert_int_equal(*(const uint8_t *)ops->shared_data(shared), 0);
    ops->shared_close(shared);
    assert_int_equal(ops->shared_remove(place->env, name), 0);
    assert_int_equal(ops->shared_remove(place->env, name), -ERR_NOT_FOUND);
    assert_int_equal(ops->shared_size(place->env, name, &size_bytes), -ERR_NOT_FOUND);
}

/* A directory that is reached by another path has the same regions. */
static void test_shared_region_of_a_moved_root(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_linux_options options = {.root = "/"};
    struct env_shared *shared;
    struct env *other;
    char name[80];
    bool created;

    snprintf(name, sizeof name, "%s/ring", place->root);
    assert_int_equal(ops->shared_open(place->env, name, BLOCK_BYTES, &shared, &created), 0);
    *(uint8_t *)ops->shared_data(shared) = 0x5a;
    ops->shared_close(shared);
    assert_int_equal(env_linux_new(&options, &other), 0);
    assert_int_equal(ops->shared_open(other, name, BLOCK_BYTES, &shared, &created), 0);
    assert_false(created);
    assert_int_equal(*(const uint8_t *)ops->shared_data(shared), 0x5a);
    ops->shared_close(shared);
    assert_int_equal(ops->shared_remove(other, name), 0);
    env_linux_free(other);
}

static void test_shared_region_bad_input(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_shared *shared = NULL;
    char name[300];
    bool created;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(ops->shared_open(place->env, name, BLOCK_BYTES, &shared, &created),
                     -ERR_NAME_TOO_LONG);
    assert_int_equal(ops->shared_open(place->env, "empty", 0, &shared, &created), -ERR_INVALID);
    /* More than any machine has: refused now, and no signal at the first touch. */
    assert_true(ops->shared_open(place->env, "huge", (size_t)1 << 50, &shared, &created) < 0);
    assert_null(shared);
    assert_int_equal(ops->shared_remove(place->env, "huge"), -ERR_NOT_FOUND);
}

static void test_clocks_and_chance(void **state) {
    struct place *place = *state;
    uint8_t first[300];
    uint8_t second[300];
    uint8_t boot[2][16];
    uint64_t before_ns = env_now_ns(place->env);

    assert_true(before_ns > 0);
    assert_true(env_now_ns(place->env) >= before_ns);
    assert_true(env_wall_ns(place->env) > UINT64_C(1600000000) * NS_PER_S);
    place->env->ops->random(place->env, first, sizeof first);
    place->env->ops->random(place->env, second, sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    place->env->ops->boot_id(place->env, boot[0]);
    place->env->ops->boot_id(place->env, boot[1]);
    assert_memory_equal(boot[0], boot[1], 16);
    static const uint8_t zeros[16];
    assert_memory_not_equal(boot[0], zeros, 16);
}

static void test_root_must_be_a_directory(void **state) {
    struct env_linux_options missing = {.root = "/nowhere/at/all"};
    struct env_linux_options file = {.root = "/proc/self/status"};
    struct env *env = NULL;

    (void)state;
    assert_int_equal(env_linux_new(&missing, &env), -ERR_NOT_FOUND);
    assert_int_equal(env_linux_new(&file, &env), -ERR_NOT_DIRECTORY);
    assert_null(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_write_read_sync),
        BOTH(test_read_past_the_end_is_short),
        cmocka_unit_test(test_answers_in_pieces),
        BOTH(test_requests_that_cannot_be_right),
        BOTH(test_allocate_grows_and_keeps),
        cmocka_unit_test_setup_teardown(test_allocate_without_fallocate, set_up_without_fallocate,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_region_survives_kill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_region_of_a_moved_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_region_bad_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clocks_and_chance, set_up, tear_down),
        cmocka_unit_test(test_root_must_be_a_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
