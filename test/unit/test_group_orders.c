/* Orders to OSTs that are slow to have on disk what they have done. */
#include "unit.h"
#include "layout/map_lost.h"
#include "meta/queue.h"
#include "meta/rows.h"
#include "meta_bench.h"
#include <string.h>

enum { SEEDS = 10, ANSWERS_MAX = 100, GONE_ID = 77, POSITIONS_MAX = 10000 };

static void sync_all(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
}

/* A file in chunks, closed. */
static struct bench_chunks *file_make(struct meta_bench *bench, struct bytes name) {
    struct call call;

    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = name;
    call.request.create.mode = 0644;
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert.ino = ino;
    call.request.inline_convert.stage = INLINE_CONVERT_BEGIN;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_chunk_write(bench, &call.reply.inline_convert.capability, 5000);
    uint32_t generation = call.reply.inline_convert.capability.generation;
    bench_prepare(bench, 0, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){
        .ino = ino, .size = 5000, .wrote = 1, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    return bench_chunks_find(bench, ino.value, generation);
}

/* Until all OSTs have been told; none is away so soon. */
static void file_remove(struct meta_bench *bench, struct bytes name) {
    struct call call;

    bench_prepare(bench, 0, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = name;
    assert_int_equal(bench_run(bench, &call), 0);
    sync_all(bench);
    bench_advance(bench, NS_PER_S / 2);
}

static uint64_t orders_count(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.order_count;
}

/* What an OST answers late is about the orders that it was asked for, not about those that it has
 * done since. */
static void test_late_sync(void **state) {
    const struct bytes first = {(const uint8_t *)"a", 1};
    const struct bytes second = {(const uint8_t *)"b", 1};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {.seed = seed};
        struct meta_bench *bench = bench_new(&options);
        struct bench_ost *late = &bench->osts[BENCH_OSTS - 1];

        (void)file_make(bench, first);
        const struct bench_chunks *chunks = file_make(bench, second);
        late->holds_syncs = true;
        file_remove(bench, first);
        file_remove(bench, second);
        assert_true(chunks->deleted);
        assert_int_equal(orders_count(bench), 2);
        for (int i = 0; orders_count(bench) > 0; i++) {
            assert_true(i < ANSWERS_MAX);
            assert_true(bench_sync_answer(late));
            bench_advance(bench, 5 * NS_PER_S);
        }
        for (uint32_t i = 0; i < BENCH_OSTS; i++) {
            if (bench->osts[i].synced != bench->osts[i].position) {
                fail_msg("seed %llu: all orders are done, and OST %u has %llu of %llu on disk",
                         (unsigned long long)seed, i, (unsigned long long)bench->osts[i].synced,
                         (unsigned long long)bench->osts[i].position);
            }
        }
        bench_free(bench);
    }
}

/* What an OST answers is about that OST, also when the map names another one for the chain by then,
 * or knows the OST no longer: what it has done is synced there, and nowhere else. */
static void test_answer_after_a_new_map(void **state) {
    const struct bytes name = {(const uint8_t *)"a", 1};

    (void)state;
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        const struct bench_options options = {.seed = 1};
        struct meta_bench *bench = bench_new(&options);
        struct bench_ost *asked = &bench->osts[0];
        struct bench_ost *other = &bench->osts[1];

        (void)file_make(bench, name);
        asked->holds_deletes = true;
        file_remove(bench, name);
        assert_int_equal(asked->held_count, 1);
        for (uint32_t i = 0; i < BENCH_OSTS; i++) {
            struct target_id *head = &bench->map->chains[i].members[0];

            *head = head->value == asked->id.value && !is_gone ? other->id : *head;
        }
        for (uint32_t i = 0; i < bench->map->target_count && is_gone; i++) {
            struct target_id *id = &bench->map->targets[i].id;

            id->value = id->value == asked->id.value ? GONE_ID : id->value;
        }
        assert_true(bench_delete_answer(asked));
        bench_advance(bench, 20 * NS_PER_S);
        assert_int_equal(orders_count(bench), 0);
        assert_int_equal(other->synced, other->position);
        assert_int_equal(asked->synced, asked->position);
        bench_free(bench);
    }
}

/* A target is lost, which the process knows and the group's map does not say: the map cannot be
 * kept, say. It counts as done all the same. */
static void test_lost_before_the_map_says_so(void **state) {
    const struct bench_options options = {.seed = 2};
    const struct bytes name = {(const uint8_t *)"a", 1};
    struct meta_bench *bench = bench_new(&options);
    struct bench_ost *lost = &bench->osts[0];

    (void)state;
    (void)file_make(bench, name);
    lost->is_dead = true;
    rpc_log_lose(bench->rpc, cluster_map_first_log(bench->map, lost->id));
    file_remove(bench, name);
    bench_advance(bench, 3 * NS_PER_S);
    assert_int_equal(orders_count(bench), 0);
    assert_int_equal(lost->deleted_count, 0);
    assert_int_equal(bench->osts[1].deleted_count, 1);
    bench_free(bench);
}

/* A target that an order has passed over, as it is away, is declared lost while another one is at
 * its part: nobody comes back for whom the order would have to wait. */
static void test_lost_while_passed_over(void **state) {
    const struct bench_options options = {.seed = 3};
    const struct bytes name = {(const uint8_t *)"a", 1};
    struct meta_bench *bench = bench_new(&options);
    struct bench_ost *lost = &bench->osts[0];
    struct bench_ost *other = &bench->osts[1];

    (void)state;
    (void)file_make(bench, name);
    lost->is_dead = true;
    other->holds_deletes = true;
    file_remove(bench, name);
    for (int i = 0; other->held_count == 0; i++) {
        assert_true(i < 100);
        bench_advance(bench, NS_PER_S / 10);
    }
    assert_int_equal(cluster_map_lose(bench->map, lost->id), 0);
    rpc_log_lose(bench->rpc, cluster_map_first_log(bench->map, lost->id));
    bench_advance(bench, NS_PER_S);
    other->holds_deletes = false;
    assert_true(bench_delete_answer(other));
    bench_advance(bench, 20 * NS_PER_S);
    assert_int_equal(orders_count(bench), 0);
    assert_int_equal(lost->deleted_count, 0);
    assert_int_equal(other->synced, other->position);
    bench_free(bench);
}

static void truncate(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, 0, OP_SETATTR, &call);
    call.request.setattr = (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = 10};
    assert_int_equal(bench_run(bench, &call), 0);
}

/* What a target refuses by an error that lasts holds no job: the other target does its part, other
 * orders go on, that target counts as one that answers, and the next start tries again. */
static void test_refused(void **state) {
    enum { FILES = ORDER_JOBS + 1 };
    const struct bench_options options = {.seed = 4};
    const struct bytes other_name = {(const uint8_t *)"z", 1};
    struct meta_bench *bench = bench_new(&options);
    struct bench_ost *refuses = &bench->osts[0];
    const struct bench_chunks *chunks[FILES];

    (void)state;
    for (uint32_t i = 0; i < FILES; i++) {
        uint8_t name[2] = {'c', (uint8_t)('0' + i)};

        chunks[i] = file_make(bench, (struct bytes){name, sizeof name});
    }
    const struct bench_chunks *other = file_make(bench, other_name);
    refuses->refuses_cuts = true;
    for (uint32_t i = 0; i < FILES; i++) {
        truncate(bench, (struct ino){chunks[i]->ino});
    }
    bench_advance(bench, NS_PER_S);
    assert_int_equal(orders_count(bench), 0);
    assert_non_null(strstr(bench->other_line, "the cut of the chunks of inode"));
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(chunks[i]->length, 10);
    }
    file_remove(bench, other_name);
    assert_true(other->deleted);
    bench_advance(bench, 10 * NS_PER_S);
    assert_int_equal(orders_count(bench), 0);
    assert_int_equal(refuses->deleted_count, 1);
    assert_true(bench->other_line_count < FILES / 4);
    uint64_t position = refuses->position;
    bench_restart(bench, false);
    bench_advance(bench, 10 * NS_PER_S);
    refuses->refuses_cuts = false; /* It has not been away since, and is asked again. */
    bench_advance(bench, 60 * NS_PER_S);
    assert_int_equal(orders_count(bench), 0);
    assert_true(refuses->position >= position + FILES);
    bench_free(bench);
}

/* The group has stopped with an order that is not done; its row, or the inode's, gets damaged. */
static void order_damage(struct meta_bench *bench, const struct bench_chunks *chunks) {
    int r = -ERR_NOT_FOUND;

    for (uint64_t position = 0; r < 0 && position < POSITIONS_MAX; position++) {
        struct kv_key key =
            key_owner(ROW_ORDER, position, chunks->generation | ORDER_DELETE_BIT, chunks->ino);

        r = kv_mem_store_damage(bench->store, &key);
    }
    assert_int_equal(r, 0);
}

/* A row of the queue that can't be read stays, and those behind it are taken. */
static void test_damaged_order(void **state) {
    const struct bench_options options = {.seed = 5};
    const struct bytes first = {(const uint8_t *)"a", 1};
    const struct bytes second = {(const uint8_t *)"b", 1};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    const struct bench_chunks *damaged = file_make(bench, first);
    const struct bench_chunks *chunks = file_make(bench, second);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true;
    }
    file_remove(bench, first);
    assert_int_equal(bench_stop(bench), 0);
    order_damage(bench, damaged);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = false;
    }
    bench_restart(bench, false);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    file_remove(bench, second);
    bench_advance(bench, 10 * NS_PER_S);
    assert_true(chunks->deleted);
    assert_false(damaged->deleted);
    assert_int_equal(orders_count(bench), 0);
    bench_free(bench);
}

/* A cut is done whose inode can't be read any more: its order ends. */
static void test_cut_of_a_damaged_inode(void **state) {
    const struct bench_options options = {.seed = 6};
    const struct bytes name = {(const uint8_t *)"a", 1};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    const struct bench_chunks *chunks = file_make(bench, name);
    const struct kv_key key = key_inode((struct ino){chunks->ino});
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true;
    }
    truncate(bench, (struct ino){chunks->ino});
    assert_int_equal(bench_stop(bench), 0);
    assert_int_equal(kv_mem_store_damage(bench->store, &key), 0);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = false;
    }
    bench_restart(bench, false);
    uint32_t line_count = bench->other_line_count;
    bench_advance(bench, 10 * NS_PER_S);
    assert_int_equal(chunks->length, 10);
    assert_int_equal(orders_count(bench), 0);
    assert_int_equal(bench->other_line_count, line_count + 1);
    assert_non_null(strstr(bench->other_line, "the inode is damaged"));
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damaged_order),
        cmocka_unit_test(test_cut_of_a_damaged_inode),
        cmocka_unit_test(test_late_sync),
        cmocka_unit_test(test_answer_after_a_new_map),
        cmocka_unit_test(test_lost_before_the_map_says_so),
        cmocka_unit_test(test_lost_while_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
