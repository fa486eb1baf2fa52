/* A base's file with bytes that were changed: what LMDB goes by is refused, a row is told of, and
 * no bytes make the look at it read beyond the file. */
#include "base/prng.h"
#include "kv/kv_lmdb.h"
#include "kv/kv_lmdb_check.h"
#include "unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 240, ROUNDS = 5, STEP = 3, GARBAGE = 20000, PAGE_BYTES = 4096 };

struct file {
    char root[64];
    uint8_t *data;
    size_t size;
};

static int directory_make(struct env *env, const char *path) {
    (void)env;
    (void)path;
    return 0;
}

static struct kv_key key_of(uint64_t number) {
    return kv_key_make((struct kv_key_fields){.space = 1, .type = 'x', .id = number * 77});
}

/* Rows that are there, and pages that rows before them have left. */
static void rows_write(struct kv_base *base, uint64_t round) {
    static uint8_t bytes[100];
    struct kv_base_row rows[ROWS];
    struct kv_base_commit commit = {.rows = rows};

    memset(bytes, (int)round, sizeof bytes);
    for (uint64_t i = 0; i < ROWS; i++) {
        if (i % ROUNDS <= round) {
            rows[commit.row_count++] = (struct kv_base_row){
                .key = key_of(i), .value = {bytes, sizeof bytes}, .deleted = i % 7 == round};
        }
    }
    assert_int_equal(kv_lmdb_ops.commit_now(base, &commit), 0);
}

static int file_make(void **state) {
    static const struct env_ops ops = {.directory_make = directory_make};
    struct env env = {.ops = &ops};
    struct file *file = calloc(1, sizeof *file);
    const struct kv_base_options options = {.env = &env, .root = file->root, .directory = "."};
    char problem[256] = "", path[96];
    struct kv_base *base;

    (void)snprintf(file->root, sizeof file->root, "/tmp/test_lmdb_check.XXXXXX");
    assert_non_null(mkdtemp(file->root));
    assert_int_equal(kv_lmdb_ops.open(&options, &base, problem), 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        rows_write(base, round);
    }
    kv_lmdb_ops.close(base);
    (void)snprintf(path, sizeof path, "%s/" KV_LMDB_NAME, file->root);
    int fd = open(path, O_RDONLY);
    struct stat stat;
    assert_int_equal(fstat(fd, &stat), 0);
    file->size = (size_t)stat.st_size;
    file->data = malloc(file->size);
    assert_int_equal(read(fd, file->data, file->size), file->size);
    (void)close(fd);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/" KV_LMDB_NAME "-lock", file->root);
    (void)unlink(path);
    *state = file;
    return rmdir(file->root);
}

static int file_free(void **state) {
    struct file *file = *state;

    free(file->data);
    free(file);
    return 0;
}

static int check(const struct file *file, struct lmdb_check_found *ret_found) {
    char what[96] = "";
    int r = lmdb_check((struct bytes){file->data, file->size}, file->size, ret_found, what);

    assert_true(r == 0 || r == -ERR_CORRUPT);
    assert_true((r == 0) == (what[0] == '\0'));
    return r;
}

static bool is_seen(const struct file *file, size_t at, unsigned bit) {
    struct lmdb_check_found found;

    file->data[at] ^= (uint8_t)(1 << bit);
    int r = check(file, &found);
    file->data[at] ^= (uint8_t)(1 << bit);
    return r < 0 || found.damaged_rows > 0;
}

static void a_file_that_is_well(void **state) {
    const struct file *file = *state;
    struct lmdb_check_found found;
    char what[96];

    assert_int_equal(check(file, &found), 0);
    assert_int_equal(found.damaged_rows, 0);
    assert_int_equal(lmdb_check((struct bytes){file->data, 0}, GIB, &found, what), 0);
}

/* Of a larger file the meta pages only: what is changed elsewhere is not seen, and that is told. */
static void test_larger_than_is_looked_through(void **state) {
    struct file *file = *state;
    const struct bytes bytes = {file->data, file->size};
    struct lmdb_check_found found;
    char what[96];

    file->data[file->size / 2] ^= 1;
    assert_int_equal(lmdb_check(bytes, file->size - 1, &found, what), 0);
    assert_true(found.partly && found.damaged_rows == 0);
    assert_int_equal(lmdb_check(bytes, file->size, &found, what), 0);
    assert_false(found.partly);
    file->data[16] ^= 1;
    assert_int_equal(lmdb_check(bytes, file->size - 1, &found, what), -ERR_CORRUPT);
}

/* A page of rows that is in use, but for the one behind all rows. */
static bool has_rows(const struct file *file, size_t page_at) {
    const uint8_t *page = file->data + page_at;
    unsigned count = (load_le16(page + 12) - 16u) / 2u;

    if (load_le16(page + 10) != 2 || !is_seen(file, page_at, 0)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (load_le16(page + load_le16(page + 16 + 2 * i) + 6) != KV_KEY_BYTES) {
            return false;
        }
    }
    return true;
}

static void each_byte_of_rows_is_seen(void **state) {
    const struct file *file = *state;
    unsigned pages = 0;

    for (size_t page_at = 2 * PAGE_BYTES; page_at < file->size; page_at += PAGE_BYTES) {
        const uint8_t *page = file->data + page_at;

        if (!has_rows(file, page_at)) {
            continue;
        }
        pages++;
        for (size_t at = 0; at < PAGE_BYTES; at += at < 64 ? 1 : STEP) {
            bool is_used =
                (at < load_le16(page + 12) && at != 8 && at != 9) || at >= load_le16(page + 14);

            if (is_used && !is_seen(file, page_at + at, at % 8)) {
                fail_msg("a change of byte %zu of a page is not seen", at);
            }
        }
    }
    assert_in_range(pages, 2, file->size / PAGE_BYTES);
}

static void a_file_that_was_cut(void **state) {
    const struct file *file = *state;

    for (size_t size = 1; size < file->size; size += 509) {
        struct file cut = {.data = malloc(size), .size = size};
        struct lmdb_check_found found;

        memcpy(cut.data, file->data, size);
        (void)check(&cut, &found);
        if (size < 2 * PAGE_BYTES) {
            assert_int_equal(check(&cut, &found), -ERR_CORRUPT);
        }
        free(cut.data);
    }
}

static void bytes_of_any_kind(void **state) {
    const struct file *file = *state;
    struct file changed = {.data = malloc(file->size), .size = file->size};
    struct prng prng;

    prng_init(&prng, 1);
    for (unsigned i = 0; i < GARBAGE; i++) {
        struct lmdb_check_found found;

        memcpy(changed.data, file->data, file->size);
        for (uint64_t count = 1 + prng_next(&prng) % 4; count > 0; count--) {
            uint64_t page = prng_next(&prng) % (file->size / PAGE_BYTES);
            uint64_t at = prng_next(&prng) % (count % 2 ? 200 : PAGE_BYTES);

            changed.data[page * PAGE_BYTES + at] = (uint8_t)prng_next(&prng);
        }
        (void)check(&changed, &found);
    }
    free(changed.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_that_is_well, file_make, file_free),
        cmocka_unit_test_setup_teardown(each_byte_of_rows_is_seen, file_make, file_free),
        cmocka_unit_test_setup_teardown(test_larger_than_is_looked_through, file_make, file_free),
        cmocka_unit_test_setup_teardown(a_file_that_was_cut, file_make, file_free),
        cmocka_unit_test_setup_teardown(bytes_of_any_kind, file_make, file_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
