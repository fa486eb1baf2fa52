/* Numbers of a group at their ends: links, directories, inodes, names of one hash. No test makes as
 * many: their rows are set close to it. What is refused has its own error and no effect, also after
 * a start, and goes on when there is one less, where there can be. */
#include "unit.h"
#include "meta/directory.h"
#include "meta/inode_format.h"
#include "meta/names.h"
#include "meta_bench.h"
#include <sys/stat.h>

enum { NAME_BYTES = 6 };

struct named {
    uint8_t bytes[NAME_BYTES];
};

static struct bytes name_of(uint32_t number, struct named *ret_name) {
    for (size_t i = 0; i < NAME_BYTES; i++, number /= 10) {
        ret_name->bytes[i] = (uint8_t)('0' + number % 10);
    }
    return (struct bytes){ret_name->bytes, NAME_BYTES};
}

/* The row as it is; while no step runs. */
static void row_get(struct meta_bench *bench, const struct kv_key *key, void *ret_row,
                    size_t size) {
    struct bytes value;

    assert_int_equal(kv_get(group_kv(bench->group), key, &value), 0);
    assert_int_equal(value.size, size);
    memcpy(ret_row, value.data, size);
}

static void row_set(struct meta_bench *bench, const struct kv_key *key, const void *row,
                    size_t size) {
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = (uint32_t)size,
                                 .record_bytes = KV_ROW_RECORD_BYTES + (uint32_t)size};
    struct kv *kv = group_kv(bench->group);
    struct kv_grant grant;

    assert_int_equal(kv_admit(kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(kv, &grant);
    assert_int_equal(kv_put(kv, key, (struct bytes){row, size}), 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
}

static void start_anew(struct meta_bench *bench) {
    bench_restart(bench, false);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
}

static int create(struct meta_bench *bench, uint32_t number, struct ino *ret_ino) {
    struct named name;
    struct call call;

    bench_prepare(bench, 0, OP_MKNOD, &call);
    call.request.mknod.parent = INO_ROOT;
    call.request.mknod.name = name_of(number, &name);
    call.request.mknod.mode = S_IFREG | 0644;
    call.header.floor = call.header.sequence;
    int r = bench_run(bench, &call);

    if (r == 0 && ret_ino) {
        *ret_ino = call.reply.mknod.attributes.ino;
    }
    return r;
}

static int change(struct meta_bench *bench, uint16_t opcode, uint32_t number) {
    struct named name;
    struct call call;

    bench_prepare(bench, 0, opcode, &call);
    if (opcode == OP_MKDIR) {
        call.request.mkdir.parent = INO_ROOT;
        call.request.mkdir.name = name_of(number, &name);
        call.request.mkdir.mode = 0755;
    } else if (opcode == OP_RMDIR) {
        call.request.rmdir.parent = INO_ROOT;
        call.request.rmdir.name = name_of(number, &name);
    } else {
        call.request.unlink.parent = INO_ROOT;
        call.request.unlink.name = name_of(number, &name);
    }
    call.header.floor = call.header.sequence;
    return bench_run(bench, &call);
}

static int lookup(struct meta_bench *bench, uint32_t number) {
    struct named name;
    struct call call;

    bench_prepare(bench, 0, OP_LOOKUP, &call);
    call.request.lookup.parent = INO_ROOT;
    call.request.lookup.name = name_of(number, &name);
    return bench_run(bench, &call);
}

static int link_to(struct meta_bench *bench, struct ino ino, uint32_t number) {
    struct named name;
    struct call call;

    bench_prepare(bench, 0, OP_LINK, &call);
    call.request.link.ino = ino;
    call.request.link.parent = INO_ROOT;
    call.request.link.name = name_of(number, &name);
    call.header.floor = call.header.sequence;
    return bench_run(bench, &call);
}

static void test_links(void **state) {
    const struct bench_options options = {.seed = 31};
    struct meta_bench *bench = bench_new(&options);
    struct inode_row row;
    struct ino ino = {0};

    (void)state;
    assert_int_equal(create(bench, 0, &ino), 0);
    const struct kv_key key = key_inode(ino);
    row_get(bench, &key, &row, sizeof row);
    row.nlink = LINKS_MAX - 1;
    row_set(bench, &key, &row, sizeof row);
    assert_int_equal(link_to(bench, ino, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(link_to(bench, ino, 2), -ERR_TOO_MANY_LINKS);
        assert_int_equal(lookup(bench, 2), -ERR_NOT_FOUND);
        start_anew(bench);
    }
    assert_int_equal(change(bench, OP_UNLINK, 1), 0);
    assert_int_equal(link_to(bench, ino, 2), 0);
    assert_int_equal(lookup(bench, 2), 0);
    row_get(bench, &key, &row, sizeof row);
    assert_int_equal(row.nlink, LINKS_MAX);
    bench_free(bench);
}

static void test_directories(void **state) {
    const struct bench_options options = {.seed = 32};
    struct meta_bench *bench = bench_new(&options);
    const struct kv_key key = key_partition(INO_ROOT);
    struct partition_row row;

    (void)state;
    assert_int_equal(change(bench, OP_MKDIR, 0), 0);
    row_get(bench, &key, &row, sizeof row);
    row.directory_count = DIRECTORIES_MAX - 1;
    row_set(bench, &key, &row, sizeof row);
    assert_int_equal(change(bench, OP_MKDIR, 1), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(change(bench, OP_MKDIR, 2), -ERR_TOO_MANY_LINKS);
        assert_int_equal(lookup(bench, 2), -ERR_NOT_FOUND);
        assert_int_equal(create(bench, 3 + i, NULL), 0);
        start_anew(bench);
    }
    assert_int_equal(change(bench, OP_RMDIR, 1), 0);
    assert_int_equal(change(bench, OP_MKDIR, 2), 0);
    bench_free(bench);
}

/* The last numbers are given out, then there are none; what is there goes on. */
static void test_inode_numbers(void **state) {
    enum { LEFT = 3 };
    const struct bench_options options = {.seed = 33};
    struct meta_bench *bench = bench_new(&options);
    const struct kv_key key = key_owner(ROW_COUNTERS, 0, 0, 0);
    struct counters_row row;

    (void)state;
    assert_int_equal(create(bench, 0, NULL), 0);
    row_get(bench, &key, &row, sizeof row);
    row.ino_reserved = (UINT64_C(1) << INO_COUNTER_BITS) - 1 - LEFT;
    row_set(bench, &key, &row, sizeof row);
    start_anew(bench);
    for (uint32_t i = 1; i <= LEFT; i++) {
        assert_int_equal(create(bench, i, NULL), 0);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(create(bench, 9, NULL), -ERR_NO_SPACE);
        assert_int_equal(change(bench, OP_MKDIR, 9), -ERR_NO_SPACE);
        assert_int_equal(lookup(bench, 9), -ERR_NOT_FOUND);
        assert_int_equal(change(bench, OP_UNLINK, i), 0);
        start_anew(bench);
    }
    bench_free(bench);
}

/* Hashes of one bit: of the two the first that has all its ranks is full, the other one is not. */
static void test_names_of_one_hash(void **state) {
    const struct bench_options options = {.seed = 34, .hash_bits = 1};
    struct meta_bench *bench = bench_new(&options);
    uint32_t count = 0;
    int r;

    (void)state;
    while ((r = create(bench, count, NULL)) == 0) {
        assert_true(++count <= 2 * NAME_RANKS_MAX);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_true(count >= NAME_RANKS_MAX);
    start_anew(bench);
    assert_int_equal(create(bench, count, NULL), -ERR_NO_SPACE);
    assert_int_equal(lookup(bench, count), -ERR_NOT_FOUND);
    /* As soon as one of its hash has gone. */
    for (uint32_t i = 0; r != 0; i++) {
        assert_true(i < count);
        assert_int_equal(change(bench, OP_UNLINK, i), 0);
        r = create(bench, count, NULL);
        assert_true(r == 0 || r == -ERR_NO_SPACE);
    }
    assert_int_equal(lookup(bench, count), 0);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_inode_numbers),
        cmocka_unit_test(test_names_of_one_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
