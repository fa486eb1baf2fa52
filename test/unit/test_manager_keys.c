/* The manager as to keys: tickets, who is let in by which, what is revoked. */
#include "manager_bench.h"

static int begin_as(struct bench *bench, struct asked *asked, const struct identity *identity) {
    return ask_as(
        bench, asked, identity,
        (struct call){.header.opcode = OP_SESSION_BEGIN, .request = begin_of(1, 100, "/mnt")});
}

static int renew_as(struct bench *bench, struct asked *asked, const struct identity *identity,
                    struct bytes ticket) {
    union request_body request = {
        .session_renew = {.session = 1, .incarnation = 100, .ticket = ticket}};

    return ask_as(bench, asked, identity,
                  (struct call){.header.opcode = OP_SESSION_RENEW, .request = request});
}

static struct bytes ticket_of(const struct asked *asked) {
    return (struct bytes){asked->ticket, asked->call.bulk_in.size};
}

/* What a target of the same members' key makes of a ticket. */
static int admit(struct bench *bench, const struct asked *asked, const struct identity *identity) {
    struct signer signer;

    ticket_signer_init(&signer, bench->keys);
    int r = ticket_admit(&signer, (struct ticket_session){1, 100}, ticket_of(asked), identity);
    signer_deinit(&signer);
    return r;
}

static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
static const struct identity phone = {.kind = IDENTITY_MOUNT, .serial = 18};

static void test_a_session_gets_its_ticket(void **state) {
    struct bench *bench = *state;
    struct asked first;
    struct asked again;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(first.call.reply.session_begin.session, 1);
    assert_int_equal(admit(bench, &first, &laptop), 0);
    assert_int_equal(admit(bench, &first, NULL), -ERR_BAD_TICKET);
    /* A second copy of the same begin gets as good a one. */
    assert_int_equal(begin_as(bench, &again, &laptop), 0);
    assert_int_equal(admit(bench, &again, &laptop), 0);
    bench->has_no_room = true;
    assert_int_equal(begin_as(bench, &again, &laptop), -ERR_TOO_SMALL);
}

/* A renewal needs the ticket, and answers with another when this one is of an older key. */
static void test_a_ticket_is_renewed(void **state) {
    struct bench *bench = *state;
    struct asked first;
    struct asked renewed;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(renew_as(bench, &renewed, &laptop, (struct bytes){NULL, 0}), -ERR_BAD_TICKET);
    first.ticket[20] ^= 1;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), -ERR_BAD_TICKET);
    first.ticket[20] ^= 1;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), 0);
    assert_int_equal(renewed.call.bulk_in.size, 0);
    key_ring_number_set(bench->keys, 2);
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), 0);
    assert_int_equal(admit(bench, &renewed, &laptop), 0);
    struct asked newest = renewed;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&newest)), 0);
    assert_int_equal(renewed.call.bulk_in.size, 0);
    /* The mount comes with another key: it has shown that the session is its own. */
    assert_int_equal(renew_as(bench, &renewed, NULL, ticket_of(&newest)), 0);
    assert_int_equal(admit(bench, &renewed, NULL), 0);
    assert_int_equal(admit(bench, &renewed, &laptop), -ERR_BAD_TICKET);
}

/* Renewals that show nothing do not keep a session alive that its client has left. */
static void test_renewals_without_ticket_keep_nothing_alive(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    assert_int_equal(begin_as(bench, &asked, &laptop), 0);
    for (int i = 0; i < 40 && manager_session_count(bench->manager) > 0; i++) {
        int r = renew_as(bench, &asked, &laptop, (struct bytes){NULL, 0});

        assert_true(r == -ERR_BAD_TICKET || r == -ERR_FENCED || r == -ERR_UNKNOWN_SESSION);
        pass(bench, NS_PER_S);
    }
    assert_int_equal(manager_session_count(bench->manager), 0);
}

static int revoke(struct bench *bench, uint64_t serial, struct key_revoke_reply *ret_reply) {
    struct asked asked;
    int r = ask(bench, &asked, OP_KEY_REVOKE, (union request_body){.key_revoke = {serial}});

    *ret_reply = asked.call.reply.key_revoke;
    return r;
}

/* Its sessions end, also one that is known from its row only; it begins none; and all that is still
 * so behind a restart that lost whatever was not flushed. */
static void test_a_key_is_revoked(void **state) {
    struct bench *bench = *state;
    struct key_revoke_reply reply;
    struct asked first;
    struct asked other;
    struct asked asked;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(begin_as(bench, &other, &phone), 0);
    manager_dies(bench, true);
    manager_begins(bench);
    assert_int_equal(revoke(bench, 0, &reply), -ERR_INVALID);
    assert_int_equal(revoke(bench, 17, &reply), 0);
    assert_int_equal(reply.map_version, 6);
    assert_int_equal(reply.sessions, 1);
    for (int i = 0; i < 2; i++) {
        pass(bench, NS_PER_S);
        int r = renew_as(bench, &asked, &laptop, ticket_of(&first));

        assert_true(r == -ERR_UNKNOWN_SESSION || r == -ERR_FENCED);
        assert_int_equal(begin_as(bench, &asked, &laptop), -ERR_REVOKED);
        assert_int_equal(manager_session_count(bench->manager), 1);
        assert_true(cluster_map_is_revoked(manager_map(bench->manager), 17));
        /* Known already: no version more. */
        assert_int_equal(revoke(bench, 17, &reply), 0);
        assert_int_equal(reply.map_version, 6);
        assert_int_equal(reply.sessions, 0);
        manager_dies(bench, true);
        manager_begins(bench);
    }
}

/* By whichever key it was renewed last: a manager that starts anew knows that, too. */
static void test_a_key_is_revoked_that_came_later(void **state) {
    struct bench *bench = *state;
    struct key_revoke_reply reply;
    struct asked begun;
    struct asked asked;

    assert_int_equal(begin_as(bench, &begun, &laptop), 0);
    assert_int_equal(renew_as(bench, &asked, &phone, ticket_of(&begun)), 0);
    manager_again(bench, MANAGER_IS_KILLED);
    assert_int_equal(revoke(bench, laptop.serial, &reply), 0);
    assert_int_equal(reply.sessions, 0);
    assert_int_equal(revoke(bench, phone.serial, &reply), 0);
    assert_int_equal(reply.sessions, 1);
}

static void test_as_many_keys_as_a_map_names(void **state) {
    struct bench *bench = *state;
    struct key_revoke_reply reply;
    struct asked *asked = calloc(MAP_REVOKED_MAX, sizeof *asked);

    for (uint64_t i = 0; i < MAP_REVOKED_MAX; i++) {
        start(bench, &asked[i], OP_KEY_REVOKE, (union request_body){.key_revoke = {100 + i}});
    }
    pass(bench, 5 * NS_PER_S);
    assert_int_equal(manager_map(bench->manager)->revoked_count, MAP_REVOKED_MAX);
    uint64_t version = manager_map(bench->manager)->version;
    assert_int_equal(revoke(bench, 17, &reply), -ERR_TOO_MANY_REVOKED);
    assert_int_equal(reply.map_version, version);
    for (int i = 0; i < 3; i++) {
        if (i == 0) {
            assert_int_equal(manager_ends(bench), 0);
        } else {
            manager_dies(bench, i == 2);
        }
        manager_begins(bench);
        assert_int_equal(revoke(bench, 17, &reply), -ERR_TOO_MANY_REVOKED);
        assert_int_equal(revoke(bench, 100, &reply), 0); /* It is already. */
        assert_int_equal(reply.map_version, version);
        struct asked begun;
        assert_int_equal(ask(bench, &begun, OP_SESSION_BEGIN, begin_of(1, 100, "/mnt")), 0);
    }
    free(asked);
}

/* Who names the node and origin of another one's session begins one beside it; who knows its
 * number ends it not without its ticket. */
static void test_nobody_ends_anothers_session(void **state) {
    struct bench *bench = *state;
    struct asked nodes_own;
    struct asked laptops;
    struct asked asked;
    union request_body end = {.session_end = {.session = 1, .incarnation = 100}};
    const struct identity *not_ours[] = {&laptop, &phone};

    assert_int_equal(begin_as(bench, &nodes_own, NULL), 0);
    assert_int_equal(begin_as(bench, &laptops, &laptop), 0);
    assert_int_equal(laptops.call.reply.session_begin.session, 2);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(renew_as(bench, &asked, NULL, ticket_of(&nodes_own)), 0);
    const struct bytes tickets[] = {{NULL, 0}, ticket_of(&laptops), ticket_of(&nodes_own)};
    for (size_t i = 0; i < ARRAY_SIZE(not_ours); i++) {
        for (size_t with = 0; with < ARRAY_SIZE(tickets); with++) {
            end.session_end.ticket = tickets[with];
            assert_int_equal(ask_as(bench, &asked, not_ours[i],
                                    (struct call){.header.opcode = OP_SESSION_END, .request = end}),
                             -ERR_BAD_TICKET);
        }
    }
    assert_int_equal(manager_session_count(bench->manager), 2);
    end.session_end.ticket = ticket_of(&nodes_own);
    assert_int_equal(
        ask_as(bench, &asked, NULL, (struct call){.header.opcode = OP_SESSION_END, .request = end}),
        0);
}

#define WITH_KEYS(name) cmocka_unit_test_setup_teardown(test_##name, setup_with_keys, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_KEYS(a_session_gets_its_ticket),
        WITH_KEYS(a_ticket_is_renewed),
        WITH_KEYS(a_key_is_revoked),
        WITH_KEYS(a_key_is_revoked_that_came_later),
        WITH_KEYS(as_many_keys_as_a_map_names),
        WITH_KEYS(nobody_ends_anothers_session),
        WITH_KEYS(renewals_without_ticket_keep_nothing_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
