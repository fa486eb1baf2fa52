/* A manager that is made of what others have told: sessions of before go on if they are heard, and
 * end if not; nothing is given twice; a kill or a power loss right behind it changes nothing. */
#include "manager/manager_format.h"
#include "manager/rebuilt.h"
#include "manager_bench.h"

enum { HEARD = 30, SILENT = 31, OTHER_NODE = 32, NEXT = 100, NODE = 1, SECOND_NODE = 3 };
enum { INCARNATION = 70, ENDED = 500, TERM = 9 };

static struct rebuilt rebuilt_one;
static uint64_t next_session;
static struct rebuilt_life lives[1];
static struct rebuilt_session sessions[] = {{{HEARD}, INCARNATION, NODE},
                                            {{SILENT}, INCARNATION, NODE},
                                            {{OTHER_NODE}, INCARNATION, SECOND_NODE}};

/* The bench's targets know few numbers, so these are not as far above as a real one's. */
static void rebuilt_make(struct bench *bench) {
    lives[0] =
        (struct rebuilt_life){.log = cluster_map_first_log(&bench->map, (struct target_id){OST}),
                              .node = NODE,
                              .term = TERM,
                              .life = {1, 2}};
    rebuilt_one = (struct rebuilt){.map = &bench->map,
                                   .handover = 900,
                                   .next_session = next_session,
                                   .ended_number = ENDED,
                                   .sessions = sessions,
                                   .session_count = ARRAY_SIZE(sessions),
                                   .lives = lives,
                                   .life_count = ARRAY_SIZE(lives),
                                   .is_finished = true};
}

/* Its log is gone. */
static void rebuild_to(struct bench *bench, uint64_t next) {
    const struct kv_mem_options store = {&bench->prng, 30, 100};

    assert_int_equal(manager_ends(bench), 0);
    kv_mem_store_free(bench->store);
    assert_int_equal(kv_mem_store_new(&store, &bench->store), 0);
    assert_int_equal(bench->env->ops->file_remove(bench->env, "manager/log"), 0);
    next_session = next;
    rebuilt_make(bench);
    bench->rebuilt = &rebuilt_one;
    manager_begins(bench);
    pass(bench, NS_PER_S);
    bench->rebuilt = NULL;
}

static void rebuild(struct bench *bench) {
    rebuild_to(bench, NEXT);
}

static int renew_as(struct bench *bench, const struct identity *identity, uint64_t session,
                    const char *origin) {
    const struct call call = {
        .header.opcode = OP_SESSION_RENEW,
        .request.session_renew = {.session = session,
                                  .incarnation = INCARNATION,
                                  .origin = {(const uint8_t *)origin, strlen(origin)}}};
    struct asked asked;

    return ask_as(bench, &asked, identity, call);
}

static int renew_named(struct bench *bench, uint64_t session, const char *origin) {
    return renew_as(bench, NULL, session, origin);
}

static void keep_alive(struct bench *bench, uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; i++) {
        assert_int_equal(renew_named(bench, HEARD, "mount"), 0);
        assert_int_equal(renew_named(bench, OTHER_NODE, "there"), 0);
        pass(bench, NS_PER_S);
    }
}

/* Over a clean stop, a kill and a power loss of the manager. */
static void test_who_is_heard_goes_on(void **state) {
    struct bench *bench = *state;

    rebuild(bench);
    assert_int_equal(manager_session_count(bench->manager), 3);
    assert_int_equal(manager_nameless_count(bench->manager), 3);
    for (int end = 0; end < MANAGER_ENDS; end++) {
        keep_alive(bench, 3);
        manager_again(bench, (enum manager_end)end);
    }
    keep_alive(bench, 45);
    assert_int_equal(manager_nameless_count(bench->manager), 0);
    assert_int_equal(manager_session_count(bench->manager), 2);
    for (int i = 0; i < TARGETS; i++) {
        assert_true(is_ended(&bench->targets[i], SILENT));
        assert_false(is_ended(&bench->targets[i], HEARD));
        assert_false(is_ended(&bench->targets[i], OTHER_NODE));
        /* What was given and nobody has told of is over, at each of them. */
        assert_true(is_ended(&bench->targets[i], OTHER_NODE + 1));
        assert_true(is_ended(&bench->targets[i], NEXT - 1));
        assert_true(bench->targets[i].number > ENDED);
    }
    assert_int_equal(renew(bench, SILENT, INCARNATION), -ERR_UNKNOWN_SESSION);
    assert_int_equal(renew(bench, NEXT - 1, INCARNATION), -ERR_UNKNOWN_SESSION);
    assert_int_equal(renew(bench, HEARD, INCARNATION + 1), -ERR_FENCED);
    assert_true(begin(bench, NODE, 5, "new") >= NEXT);
}

/* One that is heard, and tells its origin, is the predecessor of who begins there. */
static void test_origins_are_told(void **state) {
    struct bench *bench = *state;

    rebuild(bench);
    keep_alive(bench, 40);
    uint64_t session = begin(bench, NODE, 5, "mount");
    assert_true(session >= NEXT);
    pass(bench, NS_PER_S);
    assert_int_equal(renew(bench, HEARD, INCARNATION), -ERR_UNKNOWN_SESSION);
    assert_true(is_ended(&bench->targets[0], HEARD));
    assert_int_equal(renew(bench, OTHER_NODE, INCARNATION), 0);
}

/* Each has renewed once: what the manager knows then is what it knows after a restart, also whose
 * key it was by which it has. */
static void test_serials_are_kept(void **state) {
    static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
    static const struct identity phone = {.kind = IDENTITY_MOUNT, .serial = 18};
    struct bench *bench = *state;
    struct asked asked;

    rebuild(bench);
    assert_int_equal(renew_as(bench, &laptop, HEARD, "mount"), 0);
    assert_int_equal(renew_named(bench, SILENT, "mount"), 0);
    assert_int_equal(renew_as(bench, &phone, OTHER_NODE, "mount"), 0);
    pass(bench, 3 * NS_PER_S);
    for (int end = 0; end < MANAGER_ENDS; end++) {
        manager_again(bench, (enum manager_end)end);
    }
    assert_int_equal(manager_nameless_count(bench->manager), 0);
    assert_int_equal(ask_as(bench, &asked, &laptop,
                            (struct call){.header.opcode = OP_SESSION_BEGIN,
                                          .request = begin_of(NODE, 5, "mount")}),
                     0);
    pass(bench, NS_PER_S);
    assert_true(is_ended(&bench->targets[0], HEARD));
    assert_false(is_ended(&bench->targets[0], SILENT));
    assert_int_equal(ask(bench, &asked, OP_KEY_REVOKE,
                         (union request_body){.key_revoke = {.serial = phone.serial}}),
                     0);
    assert_int_equal(asked.call.reply.key_revoke.sessions, 1);
    pass(bench, NS_PER_S);
    assert_true(is_ended(&bench->targets[0], OTHER_NODE));
    assert_false(is_ended(&bench->targets[0], SILENT));
}

/* Who begins where one may be his predecessor waits until that is heard, or is over; at the
 * manager, where others want a place, he does not wait. */
static void test_a_beginning_waits(void **state) {
    struct bench *bench = *state;
    struct manager_room room;
    struct asked here;
    struct asked there;

    rebuild(bench);
    assert_int_equal(renew_named(bench, OTHER_NODE, "there"), 0);
    start(bench, &there, OP_SESSION_BEGIN, begin_of(SECOND_NODE, 5, "new"));
    start(bench, &here, OP_SESSION_BEGIN, begin_of(NODE, 6, "beside"));
    pass(bench, NS_PER_S);
    assert_true(there.done);
    assert_int_equal(there.call.result, 0);
    assert_false(here.done);
    keep_alive(bench, 20);
    assert_false(here.done);
    manager_room_get(bench->manager, &room);
    assert_int_equal(room.waiting_count, 0);
    pass(bench, 15 * NS_PER_S);
    assert_true(here.done);
    assert_int_equal(here.call.result, 0);
    assert_true(here.call.reply.session_begin.session >= NEXT);
    assert_true(is_ended(&bench->targets[0], SILENT));
}

/* A stop waits for no session, so neither does who begins then. */
static void test_nobody_waits_at_a_stop(void **state) {
    struct bench *bench = *state;
    struct asked before;
    struct asked behind;

    rebuild(bench);
    start(bench, &before, OP_SESSION_BEGIN, begin_of(NODE, 5, "new"));
    pass(bench, NS_PER_S);
    assert_false(before.done);
    manager_quiet(bench->manager);
    assert_int_equal(ask(bench, &behind, OP_SESSION_BEGIN, begin_of(NODE, 6, "newer")),
                     -ERR_CLOSED);
    pass(bench, NS_PER_S);
    assert_true(before.done);
    assert_int_equal(before.call.result, -ERR_CLOSED);
    assert_int_equal(renew_named(bench, HEARD, "mount"), 0);
}

static int verdict(struct bench *bench, uint64_t term, struct log_life life) {
    const struct map_node *node = &bench->map.nodes[0];
    const struct wire_life told = {lives[0].log.value, term, life.high, life.low};
    struct asked asked;

    assert_int_equal(
        ask(bench, &asked, OP_NODE_JOIN,
            (union request_body){.node_join = {.key_high = node->key[0],
                                               .key_low = node->key[1],
                                               .target_count = node->target_count,
                                               .mdt_count = node->mdt_count,
                                               .lives = {(const uint8_t *)&told, sizeof told}}}),
        0);
    return asked.call.reply.node_join.verdict;
}

/* The life of a log that was asked is the registered one: a copy of before is older. */
static void test_lives_are_known(void **state) {
    struct bench *bench = *state;

    rebuild(bench);
    assert_int_equal(verdict(bench, TERM, (struct log_life){7, 7}), LIVES_OLDER);
    assert_int_equal(verdict(bench, TERM - 1, (struct log_life){1, 2}), LIVES_OLDER);
    assert_int_equal(verdict(bench, TERM, (struct log_life){1, 2}), LIVES_REGISTERED);
    manager_again(bench, MANAGER_LOSES_POWER);
    assert_int_equal(verdict(bench, TERM, (struct log_life){7, 7}), LIVES_OLDER);
    assert_int_equal(verdict(bench, TERM + 1, (struct log_life){7, 7}), LIVES_REGISTERED);
}

/* The version before tells no origin: its session goes on, and holds nobody up once it is heard. */
static void test_origins_that_are_not_told(void **state) {
    struct bench *bench = *state;

    rebuild(bench);
    for (uint32_t i = 0; i < 45; i++) {
        assert_int_equal(renew(bench, HEARD, INCARNATION), 0);
        pass(bench, NS_PER_S);
    }
    assert_int_equal(manager_nameless_count(bench->manager), 1);
    assert_true(begin(bench, NODE, 5, "") >= NEXT);
    assert_int_equal(renew(bench, HEARD, INCARNATION), 0);
    assert_int_equal(ask(bench, &(struct asked){0}, OP_SESSION_END, end_of(HEARD, INCARNATION)), 0);
    assert_int_equal(manager_nameless_count(bench->manager), 0);
}

/* A list of many messages, of which each other one is lost: what the target has got is not told
 * again, so it ends. */
static void test_a_long_list_over_a_bad_link(void **state) {
    enum { MESSAGES = 6 };
    struct bench *bench = *state;
    struct target *far = &bench->targets[2];

    far->fails_of = 2;
    rebuild_to(bench, HEARD + UINT64_C(8) * WIRE_ENDED_BYTES_MAX * MESSAGES);
    keep_alive(bench, 5);
    assert_true(far->number >= ENDED);
    assert_int_equal(far->wholes, MESSAGES);
    assert_true(is_ended(far, HEARD - 1));
    assert_false(is_ended(far, HEARD));
    assert_true(is_ended(far, next_session - 1));
}

/* Who has another number than when his list was begun is told all of it. */
static void test_a_long_list_to_another_copy(void **state) {
    enum { MESSAGES = 6 };
    struct bench *bench = *state;
    struct target *far = &bench->targets[2];

    far->result = -ERR_IO;
    rebuild_to(bench, HEARD + UINT64_C(8) * WIRE_ENDED_BYTES_MAX * MESSAGES);
    far->result = 0;
    far->fails_of = 2;
    for (int i = 0; i < 100 && far->wholes < 2; i++) {
        pass(bench, 100 * NS_PER_MS);
    }
    assert_int_equal(far->wholes, 2);
    memset(far->ended, 0, sizeof far->ended);
    far->number = 7;
    keep_alive(bench, 5);
    assert_true(far->number >= ENDED);
    for (uint64_t session = 1; session < next_session; session++) {
        assert_true(is_ended(far, session) ||
                    (session >= HEARD && session < HEARD + ARRAY_SIZE(sessions)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_is_heard_goes_on),
        TEST(origins_are_told),
        TEST(serials_are_kept),
        TEST(a_beginning_waits),
        TEST(nobody_waits_at_a_stop),
        TEST(lives_are_known),
        TEST(origins_that_are_not_told),
        TEST(a_long_list_over_a_bad_link),
        TEST(a_long_list_to_another_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
