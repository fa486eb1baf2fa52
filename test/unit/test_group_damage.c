/* Metadata whose rows are whole each by itself and contradict one another, as after damage that
 * kept the checksums right: every call ends, and the log says what to do. */
#include "unit.h"
#include "meta/look.h"
#include "meta/meta_format.h"
#include "meta/rows.h"
#include "meta_bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CIRCLE_MAX = 5,
    TAIL_MAX = 5,
    CHAINS = CIRCLE_MAX * (TAIL_MAX + 1),
    DEPTH = 100,
    SLOTS = 32768
};

/* A chain of directories down from the root. Later the first one gets the last of the circle for
 * its parent; the tail behind that leads into the circle. */
struct chain {
    uint32_t circle;
    uint32_t tail;
    struct ino inos[CIRCLE_MAX + TAIL_MAX];
};

static uint32_t chain_last(const struct chain *chain) {
    return chain->circle + chain->tail - 1;
}

static struct ino directory_make(struct meta_bench *bench, struct ino parent, uint32_t number) {
    char name[16];
    struct call call;

    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.request.mkdir.parent = parent;
    call.request.mkdir.name =
        (struct bytes){(uint8_t *)name, (size_t)snprintf(name, sizeof name, "d%" PRIu32, number)};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.mkdir.attributes.ino;
}

static int directory_move(struct meta_bench *bench, uint32_t number, struct ino new_parent) {
    char name[16];
    struct call call;

    bench_prepare(bench, 0, OP_RENAME, &call);
    call.request.rename.parent = INO_ROOT;
    call.request.rename.name =
        (struct bytes){(uint8_t *)name, (size_t)snprintf(name, sizeof name, "d%" PRIu32, number)};
    call.request.rename.new_parent = new_parent;
    call.request.rename.new_name = (struct bytes){(const uint8_t *)"moved", 5};
    return bench_run(bench, &call);
}

static void committed(struct kv_base_commit *commit) {
    *(bool *)commit->context = true;
}

/* Gives the inode another parent, below a group that is closed. */
static void parent_set(struct meta_bench *bench, struct ino ino, struct ino parent) {
    const struct kv_base_options options = {.env = memory_env_env(bench->world),
                                            .store = bench->store};
    struct kv_base_row row = {.key = key_inode(ino)};
    struct inode_row changed;
    struct kv_base *base;
    char problem[256];
    bool done = false;

    assert_int_equal(kv_mem_ops.open(&options, &base, problem), 0);
    assert_int_equal(kv_mem_ops.get(base, &row.key, &row.value), 0);
    assert_int_equal(row.value.size, sizeof changed);
    memcpy(&changed, row.value.data, sizeof changed);
    kv_mem_ops.read_end(base);
    changed.parent = parent.value;
    row.value = (struct bytes){(const uint8_t *)&changed, sizeof changed};
    struct kv_base_commit commit = {
        .rows = &row, .row_count = 1, .done = committed, .context = &done};
    kv_mem_ops.commit(base, &commit);
    while (!done) {
        (void)memory_env_pump(bench->world, 1);
    }
    assert_int_equal(commit.result, 0);
    kv_mem_ops.close(base);
}

static void chains_make(struct meta_bench *bench, struct chain chains[CHAINS]) {
    for (uint32_t i = 0; i < CHAINS; i++) {
        struct chain *chain = &chains[i];
        struct ino parent = INO_ROOT;

        chain->circle = 1 + i % CIRCLE_MAX;
        chain->tail = i / CIRCLE_MAX;
        for (uint32_t at = 0; at <= chain_last(chain); at++) {
            parent = directory_make(bench, parent, i);
            chain->inos[at] = parent;
        }
    }
}

/* A directory can't be moved to where the parents lead round in a circle, wherever that begins, and
 * however often the rows have to be waited for: EIO, and one line. Nothing else is hindered. */
static void circles_play(uint32_t cold_per_mille) {
    const struct bench_options options = {.seed = 20, .cold_per_mille = cold_per_mille};
    struct meta_bench *bench = bench_new(&options);
    struct chain chains[CHAINS];
    char named[64];

    chains_make(bench, chains);
    (void)directory_make(bench, INO_ROOT, CHAINS);
    assert_int_equal(bench_stop(bench), 0);
    group_abandon(bench->group);
    bench->group = NULL;
    for (uint32_t i = 0; i < CHAINS; i++) {
        parent_set(bench, chains[i].inos[0], chains[i].inos[chains[i].circle - 1]);
    }
    bench_restart(bench, false);
    bench_attach(bench, 0);
    for (uint32_t i = 0; i < CHAINS; i++) {
        const struct chain *chain = &chains[i];
        struct ino last = chain->inos[chain_last(chain)];
        uint32_t line_count = bench->other_line_count;
        bool is_told = false;

        assert_int_equal(directory_move(bench, CHAINS, last), -ERR_CORRUPT);
        assert_int_equal(bench->other_line_count, line_count + 1);
        assert_non_null(strstr(bench->other_line, "shoal fsck"));
        for (uint32_t at = 0; at < chain->circle; at++) {
            (void)snprintf(named, sizeof named, "inode %" PRIu64 " ", chain->inos[at].value);
            is_told = is_told || strstr(bench->other_line, named);
        }
        assert_true(is_told);
        /* At once again: the same answer, and no other line. */
        assert_int_equal(directory_move(bench, CHAINS, last), -ERR_CORRUPT);
        assert_int_equal(bench->other_line_count, line_count + 1);
        /* What lies on the circle is found there, though that never leads to the root. */
        assert_int_equal(directory_move(bench, i, last), -ERR_INVALID);
        bench_advance(bench, NS_PER_S);
    }
    assert_int_equal(directory_move(bench, CHAINS, directory_make(bench, INO_ROOT, CHAINS + 1)), 0);
    bench_free(bench);
}

static void test_circles(void **state) {
    (void)state;
    circles_play(0);
    circles_play(300);
}

/* A long way up is none. */
static void test_depth(void **state) {
    const struct bench_options options = {.seed = 21};
    struct meta_bench *bench = bench_new(&options);
    struct ino parent = INO_ROOT;

    (void)state;
    (void)directory_make(bench, INO_ROOT, 1);
    for (uint32_t i = 0; i < DEPTH; i++) {
        parent = directory_make(bench, parent, 0);
    }
    assert_int_equal(directory_move(bench, 0, parent), -ERR_INVALID);
    assert_int_equal(directory_move(bench, 1, parent), 0);
    assert_int_equal(bench->other_line_count, 0);
    bench_free(bench);
}

/* Another group: what lies in its directory's way to the root, for so many looks, and then. */
struct elsewhere {
    struct actor actor; /* first */
    struct ino directory;
    struct ino next;
    uint32_t looks;
    uint32_t looks_left;
};

static void way_answer(struct elsewhere *elsewhere, struct call *call) {
    struct ino next = elsewhere->looks_left > 0 ? elsewhere->next : INO_ROOT;
    const struct look_answer answer = {.format = META_FORMAT, .next = next.value};

    assert_int_equal(call->header.opcode, OP_CROSS_LOOK);
    assert_int_equal(call->request.cross_look.what, LOOK_WAY);
    assert_int_equal(call->request.cross_look.ino.value, elsewhere->directory.value);
    elsewhere->looks++;
    elsewhere->looks_left -= elsewhere->looks_left > 0;
    memset(&call->reply, 0, sizeof call->reply);
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
    call_reply(call, 0);
}

static void elsewhere_step(struct actor *actor, struct message *first) {
    struct elsewhere *elsewhere = CONTAINER_OF(actor, struct elsewhere, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        way_answer(elsewhere, call);
    }
}

/* d1 is moved to where d2 lies: in a directory of another group, which for so many looks lies in
 * d2. */
static int move_with(uint32_t circle_looks, uint32_t *ret_looks, uint32_t *ret_lines) {
    const struct bench_options options = {.seed = 22, .slot_count = SLOTS};
    struct meta_bench *bench = bench_new(&options);
    struct elsewhere elsewhere = {.directory = ino_make((struct slot){SLOTS}, 5),
                                  .looks_left = circle_looks};

    actor_init(&elsewhere.actor, "other group", elsewhere_step);
    assert_int_equal(log_table_add(bench->logs, BENCH_OTHER_LOG, &elsewhere.actor), 0);
    (void)directory_make(bench, INO_ROOT, 1);
    elsewhere.next = directory_make(bench, INO_ROOT, 2);
    assert_int_equal(bench_stop(bench), 0);
    group_abandon(bench->group);
    bench->group = NULL;
    parent_set(bench, elsewhere.next, elsewhere.directory);
    bench_restart(bench, false);
    bench_attach(bench, 0);

    uint32_t line_count = bench->other_line_count;
    int result = directory_move(bench, 1, elsewhere.next);
    *ret_looks = elsewhere.looks;
    *ret_lines = bench->other_line_count - line_count;
    bench_free(bench);
    return result;
}

/* A circle over several groups is damage when they say so twice; else their answers were of
 * different moments, as renames went on meanwhile. */
static void test_circle_of_two_groups(void **state) {
    uint32_t looks;
    uint32_t lines;

    (void)state;
    assert_int_equal(move_with(UINT32_MAX, &looks, &lines), -ERR_CORRUPT);
    assert_int_equal(looks, 2);
    assert_int_equal(lines, 1);
    assert_int_equal(move_with(1, &looks, &lines), 0);
    assert_int_equal(looks, 4);
    assert_int_equal(lines, 0);
}

/* Without the row that says whose it is a group is not taken for an empty one: all of it stays. */
static void test_lost_group_row(void **state) {
    const struct bench_options options = {.seed = 21};
    const struct kv_key key = key_owner(ROW_GROUP, 0, 0, 0);
    struct meta_bench *bench = bench_new(&options);
    char problem[256];

    (void)state;
    (void)directory_make(bench, INO_ROOT, 1);
    assert_int_equal(bench_stop(bench), 0);
    group_abandon(bench->group);
    bench->group = NULL;
    assert_int_equal(kv_mem_store_drop(bench->store, &key), 0);
    assert_int_equal(bench_open(bench, problem), -ERR_CORRUPT);
    assert_non_null(strstr(problem, "restore DIR"));
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_group_row),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_circle_of_two_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
