/* Newer maps are told to who waits for them, and handed out by what they add. */
#include "manager_bench.h"
#include "layout/map_change.h"

enum { WAITERS = 4, PROCESS = 77 };
#define A_WAIT_NS (30 * NS_PER_S)

static union request_body wait_of(uint64_t known_version, uint64_t who) {
    return (union request_body){.map_wait = {.known_version = known_version, .who = who}};
}

static union request_body changes_of(uint64_t known_version) {
    return (union request_body){.map_changes = {.known_version = known_version}};
}

/* Each makes a version. */
static void revoke_start(struct bench *bench, struct asked *asked, uint64_t serial) {
    start(bench, asked, OP_KEY_REVOKE, (union request_body){.key_revoke = {.serial = serial}});
}

static uint64_t revoke(struct bench *bench, uint64_t serial) {
    struct asked asked;

    revoke_start(bench, &asked, serial);
    finish(bench, &asked);
    assert_int_equal(asked.call.result, 0);
    return asked.call.reply.key_revoke.map_version;
}

/* When it is on disk, and not before. */
static void test_who_waits_is_told_at_once(void **state) {
    struct bench *bench = *state;
    struct asked waiting[WAITERS], asked;

    pass(bench, NS_PER_S);
    for (uint64_t i = 0; i < WAITERS; i++) {
        start(bench, &waiting[i], OP_MAP_WAIT, wait_of(5, i + 1));
    }
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(manager_map_waits(bench->manager), WAITERS);
    revoke_start(bench, &asked, 1);
    while (worker_run_one(&bench->worker)) {
    }
    assert_false(asked.done); /* Its version is being flushed. */
    for (int i = 0; i < WAITERS; i++) {
        assert_false(waiting[i].done);
    }
    finish(bench, &asked);
    for (int i = 0; i < WAITERS; i++) {
        assert_true(waiting[i].done);
        assert_int_equal(waiting[i].call.result, 0);
        assert_int_equal(waiting[i].call.reply.map_wait.version, 6);
        assert_false(waiting[i].call.reply.map_wait.is_full);
    }
    assert_int_equal(manager_map_waits(bench->manager), 0);
    start(bench, &asked, OP_MAP_WAIT, wait_of(5, 1)); /* It is behind. */
    finish(bench, &asked);
    assert_int_equal(asked.call.reply.map_wait.version, 6);
}

/* And who gives up gets it back. */
static void test_a_wait_ends_without_news(void **state) {
    struct bench *bench = *state;
    struct asked waiting[2];

    start(bench, &waiting[0], OP_MAP_WAIT, wait_of(5, 1));
    start_for(bench, &waiting[1], 10 * NS_PER_S, OP_MAP_WAIT, wait_of(5, 2));
    pass(bench, 9 * NS_PER_S);
    assert_false(waiting[0].done || waiting[1].done);
    pass(bench, 2 * NS_PER_S);
    assert_true(waiting[1].done);
    assert_int_equal(waiting[1].call.result, -ERR_TIMED_OUT);
    assert_false(waiting[0].done);
    pass(bench, A_WAIT_NS - 10 * NS_PER_S);
    assert_true(waiting[0].done);
    assert_int_equal(waiting[0].call.result, 0);
    assert_int_equal(waiting[0].call.reply.map_wait.version, 5);
    start(bench, &waiting[0], OP_MAP_WAIT, wait_of(5, 1));
    pass(bench, NS_PER_S);
    call_cancel(&waiting[0].call);
    pass(bench, NS_PER_S);
    assert_true(waiting[0].done);
    assert_int_equal(waiting[0].call.result, -ERR_INTERRUPTED);
}

static void test_more_than_may_wait_are_told_so(void **state) {
    struct bench *bench = *state;
    struct asked waiting[WAITERS + 1];

    assert_int_equal(manager_ends(bench), 0);
    bench->map_waits_max = WAITERS;
    manager_begins(bench);
    pass(bench, NS_PER_S);
    for (uint64_t i = 0; i <= WAITERS; i++) {
        start(bench, &waiting[i], OP_MAP_WAIT, wait_of(5, i + 1));
        pass(bench, NS_PER_S / 10);
        assert_int_equal(waiting[i].done, i == WAITERS);
    }
    assert_true(waiting[WAITERS].call.reply.map_wait.is_full);
    assert_int_equal(revoke(bench, 1), 6);
    for (uint64_t i = 0; i < WAITERS; i++) {
        assert_true(waiting[i].done);
        start(bench, &waiting[i], OP_MAP_WAIT, wait_of(6, i + 1));
    }
    pass(bench, NS_PER_S);
    assert_int_equal(manager_map_waits(bench->manager), WAITERS); /* The places are free again. */
    manager_quiet(bench->manager);
    pass(bench, NS_PER_S / 10);
    for (uint64_t i = 0; i < WAITERS; i++) {
        assert_true(waiting[i].done && waiting[i].call.reply.map_wait.is_full);
    }
    start(bench, &waiting[0], OP_MAP_WAIT, wait_of(6, 1));
    pass(bench, NS_PER_S / 10);
    assert_true(waiting[0].done && waiting[0].call.reply.map_wait.is_full);
}

/* As of another process, by links that break. */
static int results[WAITERS];

static void copy_replied(struct call *call) {
    *(int *)call->context = call->result;
}

static void copy_post(struct bench *bench, struct call *call, uint64_t process, int *ret_result) {
    *call = (struct call){.message.kind = CALL_MESSAGE_KIND,
                          .header = {.opcode = OP_MAP_WAIT, .log = LOG_MANAGER},
                          .request = wait_of(5, 1),
                          .reply_to = copy_replied,
                          .context = ret_result,
                          .life = {process}};
    *ret_result = -1;
    actor_post(manager_actor(bench->manager), &call->message);
    pass(bench, NS_PER_S / 10);
}

static void test_a_copy_takes_the_place_of_the_first(void **state) {
    struct bench *bench = *state;
    struct call copies[WAITERS];

    pass(bench, NS_PER_S);
    for (int i = 0; i < 3; i++) {
        copy_post(bench, &copies[i], PROCESS, &results[i]);
        assert_int_equal(manager_map_waits(bench->manager), 1);
    }
    assert_int_equal(results[0], CALL_DISCARDED);
    assert_int_equal(results[1], CALL_DISCARDED);
    copy_post(bench, &copies[3], PROCESS + 1, &results[3]); /* Another's number is of no use. */
    assert_int_equal(manager_map_waits(bench->manager), 2);
    assert_int_equal(results[2], -1);
    (void)revoke(bench, 1);
    assert_int_equal(results[2], 0);
    assert_int_equal(results[3], 0);
}

static void test_a_stop_lets_go_who_waits(void **state) {
    struct bench *bench = *state;
    struct asked waiting;

    start(bench, &waiting, OP_MAP_WAIT, wait_of(5, 1));
    pass(bench, NS_PER_S);
    assert_int_equal(manager_ends(bench), 0);
    assert_true(waiting.done);
    assert_int_equal(waiting.call.result, -ERR_CLOSED);
}

static struct {
    struct cluster_map map;
    uint8_t space[MAP_CHANGES_BYTES_MAX];
} it;

static struct bytes changes_get(struct bench *bench, uint64_t known_version, size_t capacity) {
    struct asked asked = {.call = {.header = {.opcode = OP_MAP_CHANGES, .log = LOG_MANAGER},
                                   .request = changes_of(known_version),
                                   .bulk_in = {it.space, 0, capacity},
                                   .origin = &bench->origin,
                                   .done = asked_done}};

    call_start(bench->client_rpc, &asked.call);
    finish(bench, &asked);
    assert_int_equal(asked.call.result, 0);
    assert_int_equal(asked.call.reply.map_changes.version, manager_map(bench->manager)->version);
    return (struct bytes){it.space, asked.call.bulk_in.size};
}

/* All that came behind the version that is known, or as much as there is room for. */
static void test_what_newer_maps_add_is_handed_out(void **state) {
    struct bench *bench = *state;

    pass(bench, NS_PER_S);
    for (uint64_t serial = 1; serial <= 10; serial++) {
        assert_int_equal(revoke(bench, serial), 5 + serial);
    }
    for (uint64_t known = 5; known < 15; known++) {
        it.map = bench->map;
        it.map.version = known;
        it.map.revoked_count = (uint32_t)known - 5;
        for (uint32_t i = 0; i < it.map.revoked_count; i++) {
            it.map.revoked[i] = i + 1;
        }
        struct bytes changes = changes_get(bench, known, sizeof it.space);
        assert_int_equal(cluster_map_changes_apply(&it.map, changes), 0);
        assert_int_equal(cluster_map_crc(&it.map), cluster_map_crc(manager_map(bench->manager)));
    }
    assert_int_equal(changes_get(bench, 15, sizeof it.space).size, 0);
    assert_int_equal(changes_get(bench, 4, sizeof it.space).size, 0);
    assert_int_equal(changes_get(bench, 16, sizeof it.space).size, 0);
    struct bytes all = changes_get(bench, 5, sizeof it.space);
    it.map = bench->map;
    assert_int_equal(cluster_map_changes_apply(&it.map, changes_get(bench, 5, all.size - 1)), 0);
    assert_int_equal(it.map.version, 14);
    assert_int_equal(changes_get(bench, 5, 10).size, 0);
}

/* They are kept in memory, the newest only. */
static void test_older_changes_are_forgotten(void **state) {
    struct bench *bench = *state;

    pass(bench, NS_PER_S);
    for (uint64_t serial = 1; serial <= 70; serial++) {
        (void)revoke(bench, serial);
    }
    assert_int_equal(changes_get(bench, 5, sizeof it.space).size, 0);
    assert_int_equal(changes_get(bench, 75 - 65, sizeof it.space).size, 0);
    it.map = *manager_map(bench->manager);
    it.map.version = 75 - 64;
    it.map.revoked_count -= 64;
    assert_int_equal(
        cluster_map_changes_apply(&it.map, changes_get(bench, it.map.version, sizeof it.space)), 0);
    assert_int_equal(it.map.version, 75);
    manager_dies(bench, false);
    manager_begins(bench);
    pass(bench, NS_PER_S);
    assert_int_equal(changes_get(bench, 74, sizeof it.space).size, 0);
    assert_int_equal(revoke(bench, 100), 76);
    assert_true(changes_get(bench, 75, sizeof it.space).size > 0);
}

static void note_passed(void *context) {
    *(bool *)context = true;
}

/* Who asked for it is not what ends the sessions of a key. */
static void test_a_revocation_whose_asker_gave_up_ends_sessions(void **state) {
    const struct identity mount = {.kind = IDENTITY_MOUNT, .serial = 4};
    struct bench *bench = *state;
    struct asked begun, asked;
    bool passed = false;
    const struct call call = {.header.opcode = OP_SESSION_BEGIN,
                              .request = begin_of(1, 7, "mount")};

    assert_int_equal(ask_as(bench, &begun, &mount, call), 0);
    start_for(bench, &asked, 1, OP_KEY_REVOKE, (union request_body){.key_revoke = {.serial = 4}});
    while (worker_run_one(&bench->worker)) {
    }
    assert_false(asked.done); /* Its version is being flushed. */
    sim_schedule(bench->sim, NULL, 2, note_passed, &passed);
    sim_run_until(bench->sim, UINT64_MAX, is_set, &passed);
    manager_tick(bench->manager);
    while (worker_run_one(&bench->worker)) {
    }
    assert_true(asked.done);
    assert_int_equal(asked.call.result, -ERR_TIMED_OUT);
    pass(bench, NS_PER_S);
    assert_int_equal(manager_map(bench->manager)->revoked_count, 1);
    assert_int_equal(manager_session_count(bench->manager), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_waits_is_told_at_once),      TEST(a_wait_ends_without_news),
        TEST(more_than_may_wait_are_told_so), TEST(a_copy_takes_the_place_of_the_first),
        TEST(a_stop_lets_go_who_waits),       TEST(what_newer_maps_add_is_handed_out),
        TEST(older_changes_are_forgotten),    TEST(a_revocation_whose_asker_gave_up_ends_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
