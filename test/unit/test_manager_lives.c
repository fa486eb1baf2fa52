/* Of each log one life is registered: none behind a higher term, none while another is heard; the
 * rows of it are on disk before anybody is told. */
#include "manager/manager_format.h"
#include "manager_bench.h"
#include "other_rows.h"
#include "wire/wire_origin.h"

enum { TARGET_COUNT = 2, KEY = 70 };

static uint32_t first_target;
static uint32_t node_id;

/* Those of both targets of a node; life 0: none. */
struct told {
    uint64_t term, life, place, asked;
};

static struct wire_life lives[TARGET_COUNT];

static union request_body join_of(const struct bench *bench, struct told told) {
    for (uint32_t i = 0; i < TARGET_COUNT; i++) {
        const struct target_id target = {first_target + i};

        lives[i] = (struct wire_life){.log = cluster_map_first_log(&bench->map, target).value,
                                      .term = told.term,
                                      .life_high = told.life,
                                      .life_low = i};
    }
    return (union request_body){
        .node_join = {.key_high = KEY,
                      .key_low = 1,
                      .target_count = TARGET_COUNT,
                      .place = told.place,
                      .asked = told.asked,
                      .lives = {(const uint8_t *)lives, told.life ? sizeof lives : 0}}};
}

static struct node_join_reply tell(struct bench *bench, struct told told) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, join_of(bench, told)), 0);
    return asked.call.reply.node_join;
}

static int verdict(struct bench *bench, struct told told) {
    return tell(bench, told).verdict;
}

static void node_joins(struct bench *bench) {
    first_target = 0;
    const struct node_join_reply reply = tell(bench, (struct told){0});
    first_target = reply.first_target;
    node_id = reply.node;
    assert_true(first_target > OST);
}

/* The time of a test passes in calls, too: 100 ms each. */
static void speak_for(struct bench *bench, struct told told, uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; i++) {
        assert_int_equal(verdict(bench, told), LIVES_REGISTERED);
        pass(bench, NS_PER_S);
    }
}

/* Over restarts of the manager, also by power: what it has answered is on disk. */
static void test_terms_only_rise(void **state) {
    struct bench *bench = *state;

    node_joins(bench);
    assert_int_equal(verdict(bench, (struct told){0}), LIVES_NOT_TOLD);
    for (uint64_t term = 5; term < 9; term += 2) {
        assert_int_equal(verdict(bench, (struct told){term, term, 1, 0}), LIVES_REGISTERED);
        assert_int_equal(verdict(bench, (struct told){term, term, 1, 0}), LIVES_REGISTERED);
        manager_dies(bench, term == 5);
        manager_begins(bench);
        struct node_join_reply reply = tell(bench, (struct told){term, 99, 1, 0});
        assert_int_equal(reply.verdict, LIVES_OLDER);
        assert_int_equal(reply.log, lives[0].log);
        assert_int_equal(verdict(bench, (struct told){term - 1, 98, 1, 0}), LIVES_OLDER);
        assert_int_equal(verdict(bench, (struct told){term, term, 1, 0}), LIVES_REGISTERED);
    }
}

static uint64_t starts_since(struct bench *bench, uint64_t known, uint32_t *ret_count,
                             struct wire_start ret_starts[4]) {
    struct asked asked = {.call = {.header = {.opcode = OP_LOG_STARTS, .log = LOG_MANAGER},
                                   .request = {.log_starts = {.known = known}},
                                   .bulk_in = {(uint8_t *)ret_starts, 0, 4 * sizeof *ret_starts},
                                   .origin = &bench->origin,
                                   .done = asked_done}};

    call_start(bench->client_rpc, &asked.call);
    finish(bench, &asked);
    assert_int_equal(asked.call.result, 0);
    assert_int_equal(asked.call.reply.log_starts.row_bytes, sizeof *ret_starts);
    *ret_count = (uint32_t)(asked.call.bulk_in.size / sizeof *ret_starts);
    return asked.call.reply.log_starts.starts;
}

/* Who asks hears of the metadata targets that have started since; of all, with those that tell no
 * lives, when the manager has started itself. Storage targets are none of it. */
static void test_starts_are_told(void **state) {
    struct bench *bench = *state;
    struct wire_start starts[4];
    uint32_t count;

    node_joins(bench);
    uint64_t first = starts_since(bench, 0, &count, starts);
    assert_int_equal(count, 1); /* the first node's, which tells nothing */
    assert_int_equal(starts[0].term, 0);
    assert_int_equal(verdict(bench, (struct told){5, 5, 1, 0}), LIVES_REGISTERED);
    uint64_t second = starts_since(bench, first, &count, starts);
    assert_true(second > first);
    assert_int_equal(count, 0); /* storage targets */
    assert_int_equal(starts_since(bench, second, &count, starts), second);
    manager_dies(bench, false);
    manager_begins(bench);
    uint64_t third = starts_since(bench, second, &count, starts);
    assert_int_not_equal(third, second);
    assert_int_equal(count, 1);
    assert_int_equal(starts_since(bench, third, &count, starts), third);
    assert_int_equal(count, 0);
}

/* The power fails at the very answer, to its first question or to a second one meanwhile. */
static void test_a_life_is_on_disk_before_it_is_told(void **state) {
    struct bench *bench = *state;
    struct asked asked[2];

    node_joins(bench);
    for (uint64_t term = 5; term < 9; term++) {
        start(bench, &asked[0], OP_NODE_JOIN, join_of(bench, (struct told){term, term, 1, 0}));
        start(bench, &asked[1], OP_NODE_JOIN, join_of(bench, (struct told){term, term, 1, 0}));
        finish(bench, &asked[term % 2]);
        assert_int_equal(asked[term % 2].call.reply.node_join.verdict, LIVES_REGISTERED);
        if (!asked[0].done || !asked[1].done) {
            finish(bench, &asked[1 - term % 2]);
        }
        manager_dies(bench, true);
        manager_begins(bench);
        assert_int_equal(verdict(bench, (struct told){term, 99, 1, 0}), LIVES_OLDER);
    }
}

/* From the same directory it does not wait, as that has one process at a time. From another it
 * waits until the one before has been silent for 5 s; that one is an older copy then. */
static void test_another_place_waits_for_silence(void **state) {
    struct bench *bench = *state;
    const struct told one = {5, 1, 1, 0};
    struct told other = {7, 2, 2, 0};

    node_joins(bench);
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, (struct told){6, 3, 1, 0}), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, one), LIVES_OLDER);
    for (uint64_t at = 0; at < 40; at += 8) {
        struct node_join_reply reply = tell(bench, other);

        assert_int_equal(reply.verdict, LIVES_WAIT);
        assert_true(other.asked == 0 || reply.asked == other.asked);
        other.asked = reply.asked;
        pass(bench, 800 * NS_PER_MS);
    }
    pass(bench, NS_PER_S);
    assert_int_equal(verdict(bench, other), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, (struct told){6, 3, 1, 0}), LIVES_OLDER);
    assert_int_equal(verdict(bench, (struct told){8, 4, 0, 0}), LIVES_WAIT); /* place unknown */
}

/* Only what has read an answer that was made later than the question of the other proves that it
 * runs; a message that was late does not. */
static void test_one_that_runs_is_told_of(void **state) {
    struct bench *bench = *state;
    struct told one = {5, 1, 1, 0};
    struct told other = {6, 2, 2, 0};

    node_joins(bench);
    speak_for(bench, one, 3);
    one.asked = tell(bench, one).asked;
    other.asked = tell(bench, other).asked;
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED); /* late */
    assert_int_equal(verdict(bench, other), LIVES_WAIT);
    one.asked = tell(bench, one).asked;
    assert_int_equal(verdict(bench, other), LIVES_WAIT);
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, other), LIVES_RUNS);
    /* A third one comes later. */
    struct told third = {9, 3, 3, 0};
    third.asked = tell(bench, third).asked;
    assert_int_equal(verdict(bench, third), LIVES_WAIT);
    speak_for(bench, one, 8);
    assert_int_equal(verdict(bench, third), LIVES_WAIT);
    one.asked = tell(bench, one).asked;
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, third), LIVES_RUNS);
}

/* Behind a start nobody has been heard yet, and numbers of the one before are nobody's. */
static void test_a_start_hears_all(void **state) {
    struct bench *bench = *state;
    struct told one = {5, 1, 1, 0};
    struct told other = {6, 2, 2, 0};

    node_joins(bench);
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    other.asked = tell(bench, other).asked;
    one.asked = tell(bench, one).asked;
    manager_dies(bench, true);
    manager_begins(bench);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    struct node_join_reply reply = tell(bench, other);
    assert_int_equal(reply.verdict, LIVES_WAIT);
    assert_int_not_equal(reply.asked, other.asked);
    other.asked = reply.asked;
    pass(bench, 6 * NS_PER_S);
    assert_int_equal(verdict(bench, other), LIVES_REGISTERED);
}

/* A manager that was stopped has heard nobody meanwhile. */
static void test_a_gap_is_nobodys_silence(void **state) {
    struct bench *bench = *state;
    const struct told one = {5, 1, 1, 0};
    struct told other = {6, 2, 2, 0};
    bool flag = false;

    node_joins(bench);
    pass(bench, NS_PER_S);
    assert_int_equal(verdict(bench, one), LIVES_REGISTERED);
    sim_schedule(bench->sim, NULL, 60 * NS_PER_S, note_flag, &flag);
    sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
    pass(bench, NS_PER_S);
    assert_int_equal(verdict(bench, other), LIVES_WAIT);
    pass(bench, 6 * NS_PER_S);
    assert_int_equal(verdict(bench, other), LIVES_REGISTERED);
}

/* All of a node's, or none; and only a node's own. */
static void test_what_is_told_must_be_its_own(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    node_joins(bench);
    union request_body request = join_of(bench, (struct told){5, 1, 1, 0});
    request.node_join.lives.size--;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_MALFORMED);
    request = join_of(bench, (struct told){5, 1, 1, 0});
    lives[1].log = cluster_map_first_log(&bench->map, (struct target_id){OST}).value;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_INVALID);
    assert_int_equal(verdict(bench, (struct told){5, 1, 1, 0}), LIVES_REGISTERED);
    request = join_of(bench, (struct told){6, 2, 1, 0});
    lives[1].term = 4;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.verdict, LIVES_OLDER);
    assert_int_equal(asked.call.reply.node_join.log, lives[1].log);
    assert_int_equal(verdict(bench, (struct told){5, 1, 1, 0}), LIVES_REGISTERED);
}

/* What a version to come adds to a life is skipped, here and when its rows are written; a length
 * that no version has registers nothing. */
static void test_rows_of_other_versions(void **state) {
    uint8_t space[TARGET_COUNT * (sizeof *lives + ROW_MORE)];
    struct bench *bench = *state;
    struct asked asked;

    node_joins(bench);
    union request_body request = join_of(bench, (struct told){5, 1, 1, 0});
    for (uint32_t i = 0; (request.node_join.lives_row_bytes = rows_wrong(i, sizeof *lives)); i++) {
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_MALFORMED);
    }
    request.node_join.lives = rows_longer(request.node_join.lives, sizeof *lives, space);
    request.node_join.lives_row_bytes = sizeof *lives + ROW_MORE;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.verdict, LIVES_REGISTERED);
    manager_dies(bench, true);
    manager_begins(bench);
    assert_int_equal(verdict(bench, (struct told){5, 1, 1, 0}), LIVES_REGISTERED);
    assert_int_equal(verdict(bench, (struct told){5, 2, 1, 0}), LIVES_OLDER);
    request = join_of(bench, (struct told){5, 1, 1, 0});
    request.node_join.lives_row_bytes = sizeof *lives;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.verdict, LIVES_REGISTERED);
}

/* Neither heard nor found at its address. */
static void test_a_copy_changes_no_map(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    node_joins(bench);
    union request_body request = join_of(bench, (struct told){5, 1, 1, 0});
    request.node_join.ready = true;
    request.node_join.address = (struct bytes){(const uint8_t *)"10.0.0.2:7400", 13};
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    uint64_t version = asked.call.reply.node_join.map_version;
    for (uint64_t term = 4; term < 8; term += 3) {
        union request_body copy = join_of(bench, (struct told){term, 2, 2, 0});

        copy.node_join.ready = true;
        copy.node_join.address = (struct bytes){(const uint8_t *)"10.0.0.9:7400", 13};
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, copy), 0);
        assert_int_equal(asked.call.reply.node_join.verdict, term == 4 ? LIVES_OLDER : LIVES_WAIT);
        assert_int_equal(asked.call.reply.node_join.map_version, version);
    }
}

/* Who speaks for the manager's node is of its process, and alone in its directory. */
static void test_its_own_node_does_not_wait(void **state) {
    struct bench *bench = *state;
    const struct map_node *own = &bench->map.nodes[0];
    struct asked asked;

    for (uint64_t term = 5; term > 3; term--) {
        for (uint64_t place = 1; place < 3; place++) {
            union request_body request =
                join_of(bench, (struct told){term + place, place, place, 0});

            request.node_join.key_high = own->key[0];
            request.node_join.key_low = own->key[1];
            request.node_join.target_count = own->target_count;
            request.node_join.mdt_count = own->mdt_count;
            lives[0].log = cluster_map_first_log(&bench->map, (struct target_id){MDT}).value;
            lives[1].log = cluster_map_first_log(&bench->map, (struct target_id){OST}).value;
            assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
            assert_int_equal(asked.call.reply.node_join.verdict,
                             term == 5 ? LIVES_REGISTERED : LIVES_OLDER);
        }
    }
}

/* It does nothing rather than register a life behind one that it can't read. */
static void test_a_row_that_is_none(void **state) {
    struct bench *bench = *state;
    const struct kv_key key = manager_key(MANAGER_ROW_LIFE, UINT64_C(1) << 63, 0);
    const struct manager_life_row row = {.format = MANAGER_ROW_FORMAT + 1};
    const struct kv_need need = {.rows = 1, .value_bytes = sizeof row, .record_bytes = 200};
    struct kv_grant grant;
    struct asked asked;

    node_joins(bench);
    struct kv *kv = manager_kv(bench->manager);
    assert_int_equal(kv_admit(kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(kv, &grant);
    assert_int_equal(kv_put(kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}), 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
    manager_dies(bench, false);
    manager_begins(bench);
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, join_of(bench, (struct told){5, 1, 1, 0})),
                     -ERR_CORRUPT);
    assert_non_null(strstr(bench->line, "lives cannot be read"));
    log_table_remove(bench->logs, LOG_MANAGER);
    manager_abandon(bench->manager);
    bench->manager = NULL;
}

/* Two at the same moment: one is registered. */
static void test_one_of_two_at_once(void **state) {
    struct bench *bench = *state;
    struct wire_life first[TARGET_COUNT];
    struct asked asked[2];

    node_joins(bench);
    union request_body request = join_of(bench, (struct told){5, 1, 1, 0});
    memcpy(first, lives, sizeof first);
    request.node_join.lives.data = (const uint8_t *)first;
    start(bench, &asked[0], OP_NODE_JOIN, request);
    start(bench, &asked[1], OP_NODE_JOIN, join_of(bench, (struct told){5, 2, 2, 0}));
    pass(bench, NS_PER_S);
    assert_true(asked[0].done && asked[1].done);
    assert_int_equal(asked[0].call.reply.node_join.verdict, LIVES_REGISTERED);
    assert_int_equal(asked[1].call.reply.node_join.verdict, LIVES_OLDER);
}

/* What is read is what was written, whatever bytes a client takes for its name. */
static void test_origins_are_what_was_told(void **state) {
    static const char *const names[] = {"", "/mnt", "a\0bcdefgh", "a\0bcdefghi",
                                        "\0\0\0\0\0\0\0\0\0"};
    static const size_t sizes[] = {0, 4, 9, 10, 9};
    static const uint64_t places[] = {1, UINT64_MAX, 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names) * ARRAY_SIZE(places); i++) {
        size_t n = i / ARRAY_SIZE(places);
        const struct wire_origin origin = {{(const uint8_t *)names[n], sizes[n]},
                                           places[i % ARRAY_SIZE(places)]};
        uint8_t first[32], second[32];
        struct bytes told = {first, wire_origin_write(&origin, first)};
        const struct wire_origin got = wire_origin_read(told);

        if (origin.place != 0) {
            assert_true(got.place == origin.place && got.name.size == sizes[n]);
        }
        assert_int_equal(wire_origin_write(&got, second), told.size);
        assert_memory_equal(first, second, told.size);
    }
}

static uint64_t begin_at(struct bench *bench, uint32_t node, uint64_t incarnation, uint64_t place) {
    static const char name[] = "mount a /mnt";
    const struct wire_origin origin = {{(const uint8_t *)name, sizeof name - 1}, place};
    uint8_t bytes[sizeof name + WIRE_ORIGIN_PLACE_BYTES];
    struct asked asked;
    union request_body request = {
        .session_begin = {node, incarnation, {bytes, wire_origin_write(&origin, bytes)}}};

    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, request), 0);
    return asked.call.reply.session_begin.session;
}

static bool lives_on(struct bench *bench, uint64_t session, uint64_t incarnation) {
    return renew(bench, session, incarnation) == 0;
}

/* Mounts of copies of a directory, on machines that are alike else: each ends its own predecessor,
 * and no other's. Over restarts of the manager; and where one of them is of the version before. */
static void test_copies_end_no_mount_of_another(void **state) {
    struct bench *bench = *state;
    uint64_t sessions[3];

    node_joins(bench);
    assert_int_equal(verdict(bench, (struct told){5, 5, 1, 0}), LIVES_REGISTERED);
    for (uint64_t place = 0; place < 3; place++) {
        sessions[place] = begin_at(bench, node_id, 100 + place, place);
    }
    for (uint64_t round = 1; round < 4; round++) {
        for (uint64_t place = 0; place < 3; place++) {
            uint64_t before = sessions[place];

            sessions[place] = begin_at(bench, node_id, 100 * (round + 1) + place, place);
            assert_true(sessions[place] > before);
            assert_false(lives_on(bench, before, 100 * round + place));
            for (uint64_t other = 0; other < 3; other++) {
                assert_true(
                    lives_on(bench, sessions[other], 100 * (round + (other <= place)) + other));
            }
        }
        manager_dies(bench, round == 1);
        manager_begins(bench);
    }
}

/* The node was started elsewhere, or its machine anew: what it had mounted before goes with the
 * first mount there, unless it was heard while the node was silent; a copy's mount ends nothing. */
static void test_a_node_leaves_its_mounts(void **state) {
    struct bench *bench = *state;

    node_joins(bench);
    speak_for(bench, (struct told){5, 5, 1, 0}, 2);
    uint64_t first = begin_at(bench, node_id, 100, 1);
    pass(bench, 6 * NS_PER_S);
    uint64_t copy = begin_at(bench, node_id, 101, 3);
    assert_true(lives_on(bench, first, 100));
    speak_for(bench, (struct told){6, 6, 2, 0}, 1);
    assert_true(lives_on(bench, first, 100));
    uint64_t second = begin_at(bench, node_id, 102, 2);
    assert_true(lives_on(bench, first, 100) && lives_on(bench, copy, 101));
    speak_for(bench, (struct told){6, 6, 2, 0}, 6);
    assert_true(lives_on(bench, copy, 101));
    uint64_t other = begin_at(bench, node_id, 103, 4);
    uint64_t older = begin_at(bench, node_id, 104, 0);
    assert_int_equal(manager_session_count(bench->manager), 5);
    uint64_t third = begin_at(bench, node_id, 105, 2);
    assert_int_equal(manager_session_count(bench->manager), 4);
    assert_false(lives_on(bench, first, 100) || lives_on(bench, second, 102));
    assert_true(lives_on(bench, third, 105) && lives_on(bench, copy, 101));
    assert_true(lives_on(bench, other, 103) && lives_on(bench, older, 104));
    /* A manager that has just started has heard nobody, which says nothing. */
    manager_dies(bench, false);
    manager_begins(bench);
    assert_int_equal(verdict(bench, (struct told){6, 6, 2, 0}), LIVES_REGISTERED);
    (void)begin_at(bench, node_id, 106, 2);
    assert_false(lives_on(bench, third, 105));
    assert_true(lives_on(bench, other, 103) && lives_on(bench, older, 104));
}

/* The machine of the manager has started anew, or its directory was moved: its mounts of before
 * don't wait for their silence; one that has spoken since runs. */
static void test_its_own_node_leaves_its_mounts(void **state) {
    struct bench *bench = *state;
    uint32_t own = bench->map.nodes[0].id.value;

    for (bench->place = 1; bench->place < 4; bench->place++) {
        uint64_t incarnation = 100 * bench->place;

        manager_dies(bench, true);
        manager_begins(bench);
        uint64_t elsewhere = begin_at(bench, own, incarnation, 10 + bench->place);
        uint32_t count = manager_session_count(bench->manager);
        uint64_t here = begin_at(bench, own, incarnation + 1, bench->place);
        assert_true(lives_on(bench, elsewhere, incarnation));
        assert_true(lives_on(bench, here, incarnation + 1));
        assert_int_equal(count, bench->place == 1 ? 1 : 3);
        assert_int_equal(manager_session_count(bench->manager), 2);
        manager_dies(bench, false);
        manager_begins(bench);
        assert_true(lives_on(bench, elsewhere, incarnation));
        uint64_t successor = begin_at(bench, own, incarnation + 2, bench->place);
        assert_false(lives_on(bench, here, incarnation + 1));
        assert_true(lives_on(bench, successor, incarnation + 2));
        assert_true(lives_on(bench, elsewhere, incarnation));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(terms_only_rise),
        TEST(starts_are_told),
        TEST(a_life_is_on_disk_before_it_is_told),
        TEST(another_place_waits_for_silence),
        TEST(one_that_runs_is_told_of),
        TEST(a_start_hears_all),
        TEST(a_gap_is_nobodys_silence),
        TEST(what_is_told_must_be_its_own),
        TEST(rows_of_other_versions),
        TEST(a_copy_changes_no_map),
        TEST(one_of_two_at_once),
        TEST(its_own_node_does_not_wait),
        TEST(a_row_that_is_none),
        TEST(origins_are_what_was_told),
        TEST(copies_end_no_mount_of_another),
        TEST(a_node_leaves_its_mounts),
        TEST(its_own_node_leaves_its_mounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
