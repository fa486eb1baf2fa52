/* The manager against targets that only count what they are told, and of the list of the ended keep
 * what an OST keeps: sessions begin, renew and end,
 * predecessors and the silent are evicted, and a restart goes on where it was cut off. */
#include "manager_bench.h"
#include "manager/manager_format.h"

static void test_sessions_begin_renew_and_end(void **state) {
    struct bench *bench = *state;
    struct asked asked;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    uint64_t second = begin(bench, 2, 100, "/mnt");

    assert_true(first > 0 && second > first);
    assert_int_equal(manager_session_count(bench->manager), 2);
    assert_int_equal(renew(bench, first, 100), 0);
    assert_int_equal(renew(bench, first, 99), -ERR_FENCED);
    assert_int_equal(renew(bench, 999, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 99)), -ERR_FENCED);
    assert_int_equal(told(bench), 0);
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 100)), 0);
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, first);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(renew(bench, second, 100), 0);
    assert_int_equal(manager_session_count(bench->manager), 1);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(3, 0, "/mnt")), -ERR_INVALID);
    assert_int_equal(ask(bench, &asked, OP_LOOKUP, (union request_body){0}), -ERR_NOT_SUPPORTED);
}

static void note_met(struct manager_met *met) {
    *(bool *)met->context = true;
}

static void met_get(struct bench *bench, struct manager_met *ret_met) {
    bool done = false;

    *ret_met = (struct manager_met){.done = note_met, .context = &done};
    manager_met_start(bench->manager, ret_met);
    pass(bench, NS_PER_S / 10);
    assert_true(done);
}

static void renew_met(struct bench *bench, uint64_t session, uint64_t files, uint64_t requests) {
    union request_body request = {.session_renew = {.session = session,
                                                    .incarnation = 100,
                                                    .files_user = files,
                                                    .requests_user = requests}};
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_SESSION_RENEW, request), 0);
}

/* What mounts tell of users who have met their shares is shown, the newest first, 16 at most, until
 * their sessions end. */
static void test_shares_that_were_met(void **state) {
    struct bench *bench = *state;
    char place[] = "mount mnt:[1] /mnt";
    struct manager_met met;
    struct asked asked;

    assert_int_equal(manager_ends(bench), 0);
    bench->sessions_max = 4 * MANAGER_MET_MAX;
    manager_begins(bench);
    uint64_t first = begin(bench, 1, 100, place);
    uint64_t second = begin(bench, 2, 100, "/mnt");
    assert_int_equal(renew(bench, first, 100), 0);
    met_get(bench, &met);
    assert_int_equal(met.count, 0);
    renew_met(bench, first, 1001, 0);
    renew_met(bench, second, 0, 1);
    renew_met(bench, first, 1001, 0); /* nothing new */
    met_get(bench, &met);
    assert_int_equal(met.count, 2);
    assert_int_equal(met.rows[0].session.value, second);
    assert_true(met.rows[0].files_user == 0 && met.rows[0].requests_user == 1);
    assert_int_equal(met.rows[1].session.value, first);
    assert_true(met.rows[1].files_user == 1001 && met.rows[1].requests_user == 0);
    assert_string_equal(met.rows[1].origin, place);
    renew_met(bench, first, 1001, 77);
    met_get(bench, &met);
    assert_true(met.rows[0].session.value == first && met.rows[0].requests_user == 77);
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 100)), 0);
    met_get(bench, &met);
    assert_true(met.count == 1 && met.rows[0].session.value == second);
    for (uint32_t i = 0; i < 2 * MANAGER_MET_MAX; i++) {
        uint64_t session = begin(bench, 3 + i, 100, "/mnt");

        renew_met(bench, session, 1 + i, 0);
        second = session;
    }
    met_get(bench, &met);
    assert_true(met.count == MANAGER_MET_MAX && met.rows[0].session.value == second);
}

/* A group that has no room is told again; who ends its session does not wait for that. */
static void test_end_does_not_wait_for_room(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    bench->targets[0].result = -ERR_NO_SPACE;
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 100)), 0);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    uint32_t before = bench->targets[0].told;
    pass(bench, 2 * NS_PER_S);
    assert_true(bench->targets[0].told > before + 2 && told(bench) == 0);
    assert_true(is_ended(&bench->targets[2], first)); /* The others need not wait for it. */
    assert_int_equal(manager_ending_count(bench->manager), 1);
    bench->targets[0].result = 0;
    pass(bench, NS_PER_S);
    assert_int_equal(manager_ending_count(bench->manager), 0);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
}

/* As another thread is told. */
static uint32_t waiting_count(const struct bench *bench) {
    struct manager_room room;

    manager_room_get(bench->manager, &room);
    return room.waiting_count;
}

/* In process nobody but the manager can end what it holds: it does when the deadline has passed, or
 * the caller has cancelled. What was set in motion goes on. */
static void test_gives_up_what_it_holds(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked successor;
    struct asked end;
    struct asked cancelled;
    struct asked patient;

    bench->targets[0].hold = true;
    start_for(bench, &successor, 5 * NS_PER_S, OP_SESSION_BEGIN, begin_of(1, 101, "/mnt"));
    start_for(bench, &end, 7 * NS_PER_S, OP_SESSION_END, end_of(first, 100));
    start(bench, &cancelled, OP_SESSION_END, end_of(first, 100));
    start(bench, &patient, OP_SESSION_END, end_of(first, 100));
    pass(bench, 4 * NS_PER_S);
    assert_false(end.done || cancelled.done || patient.done);
    assert_int_equal(waiting_count(bench), 3);
    /* It may begin: the group lets it in when it knows of the end. */
    assert_true(successor.done);
    assert_int_equal(successor.call.result, 0);
    call_cancel(&cancelled.call);
    pass(bench, 2 * NS_PER_S);
    assert_true(cancelled.done);
    assert_int_equal(cancelled.call.result, -ERR_INTERRUPTED);
    assert_false(end.done);
    pass(bench, 2 * NS_PER_S);
    assert_true(end.done);
    assert_int_equal(end.call.result, -ERR_TIMED_OUT);
    assert_false(patient.done);
    assert_int_equal(waiting_count(bench), 1);
    target_release(&bench->targets[0]);
    pass(bench, 10 * NS_PER_S);
    assert_true(patient.done);
    assert_int_equal(patient.call.result, 0);
    assert_int_equal(waiting_count(bench), 0);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(manager_session_count(bench->manager), 1);
}

/* The second copy of a beginning is the same session; a new life is another. The number that it
 * begins with is of a list that names the old one's end; a group has it when it has
 * heard of that. */
static void test_predecessor_goes_first(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    assert_int_equal(begin(bench, 1, 100, "/mnt"), first);
    assert_int_not_equal(begin(bench, 1, 100, "/other"), first);
    assert_int_equal(told(bench), 0);
    bench->targets[0].hold = true;
    bench->targets[2].result = -ERR_IO;
    start(bench, &asked, OP_SESSION_BEGIN, begin_of(1, 101, "/mnt"));
    pass(bench, 3 * NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, 0);
    assert_true(asked.call.reply.session_begin.session > first);
    uint64_t number = asked.call.reply.session_begin.ended;
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    assert_true(bench->targets[0].number < number);
    target_release(&bench->targets[0]);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(bench->targets[0].number, number);
    assert_true(bench->targets[2].number < number);
    assert_false(is_ended(&bench->targets[2], first));
    assert_int_equal(bench->targets[1].number, number);
    assert_true(is_ended(&bench->targets[1], first));
    bench->targets[2].result = 0;
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(bench->targets[2].number, number);
    assert_true(is_ended(&bench->targets[2], first));
    assert_false(is_ended(&bench->targets[2], asked.call.reply.session_begin.session));
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
}

static void test_silence_ends_a_session(void **state) {
    struct bench *bench = *state;
    uint64_t quiet = begin(bench, 1, 100, "/mnt");
    uint64_t lively = begin(bench, 2, 100, "/mnt");

    for (int i = 0; i < 18; i++) {
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(renew(bench, lively, 100), 0);
        if (i < 12) {
            assert_int_equal(told(bench), 0);
        }
    }
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, quiet);
    assert_true(is_ended(&bench->targets[1], quiet) && is_ended(&bench->targets[2], quiet));
    assert_false(is_ended(&bench->targets[1], lively));
    assert_int_equal(manager_session_count(bench->manager), 1);
}

/* Stopped for longer than a session may be silent, the manager has not listened: whoever is quiet
 * is given the rest of the time once it goes on. */
static void test_a_stopped_manager_evicts_nobody(void **state) {
    struct bench *bench = *state;
    uint64_t quiet = begin(bench, 1, 100, "/mnt");
    uint64_t lively = begin(bench, 2, 100, "/mnt");

    pass(bench, 20 * NS_PER_S);
    for (int stop = 0; stop < 3; stop++) {
        bool flag = false;

        sim_schedule(bench->sim, NULL, 40 * NS_PER_S, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(told(bench), 0);
    }
    assert_int_equal(renew(bench, lively, 100), 0);
    pass(bench, 8 * NS_PER_S);
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, quiet);
    assert_int_equal(renew(bench, lively, 100), 0);
}

static void note_result(void *context, int result) {
    *(int *)context = result;
}

/* Stopped again while it reads its rows, some of them from disk: the stop ends, and then it can be
 * closed. */
static void test_stop_while_loading(void **state) {
    struct bench *bench = *state;

    for (uint32_t life = 0; life < 4; life++) {
        int result = 1;

        assert_int_equal(manager_ends(bench), 0);
        manager_begins(bench);
        manager_stop_start(bench->manager, note_result, &result);
        for (int i = 0; i < 100000 && result == 1; i++) {
            bool flag = false;

            while (worker_run_one(&bench->worker)) {
            }
            sim_schedule(bench->sim, NULL, 10 * NS_PER_US, note_flag, &flag);
            sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
        }
        assert_int_equal(result, 0);
        log_table_remove(bench->logs, LOG_MANAGER);
        manager_close(bench->manager);
        manager_begins(bench);
    }
}

/* A storage target that cannot be told is told again, at the pace of ticks; it holds up no end, and
 * takes nobody's place. */
static void test_unreachable_target_is_told_again(void **state) {
    struct bench *bench = *state;
    uint64_t session = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    bench->targets[1].result = -ERR_IO;
    start(bench, &asked, OP_SESSION_END, end_of(session, 100));
    pass(bench, 2 * NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, 0);
    assert_int_equal(manager_session_count(bench->manager), 0);
    assert_int_equal(manager_ending_count(bench->manager), 1);
    assert_true(bench->targets[2].number > bench->targets[2].everywhere);
    bench->targets[1].result = 0;
    pass(bench, 2 * NS_PER_S);
    assert_int_equal(manager_ending_count(bench->manager), 0);
    assert_true(is_ended(&bench->targets[1], session));
    assert_true(bench->targets[1].number == bench->targets[2].number);
}

static void test_sessions_have_a_limit(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    for (uint32_t i = 0; i < 8; i++) {
        begin(bench, i + 1, 100, "/mnt");
    }
    /* It is told at once; its place is the successor's, for which there is no other. */
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(9, 100, "/mnt")),
                     -ERR_TOO_MANY_SESSIONS);
    uint64_t again = begin(bench, 3, 101, "/mnt");
    assert_int_equal(renew(bench, again, 101), 0);
    /* All the others fall silent, so the ninth finds a place. */
    int r = -ERR_TOO_MANY_SESSIONS;
    for (int i = 0; i < 40 && r == -ERR_TOO_MANY_SESSIONS; i++) {
        pass(bench, NS_PER_S);
        assert_int_equal(renew(bench, again, 101), 0);
        r = ask(bench, &asked, OP_SESSION_BEGIN, begin_of(9, 100, "/mnt"));
    }
    assert_int_equal(r, 0);
}

static void end(struct bench *bench, uint64_t session, uint64_t incarnation) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(session, incarnation)), 0);
}

/* Who is there when the number is made smaller stays; nobody begins before enough have ended. */
static void test_a_limit_that_is_made_smaller(void **state) {
    struct bench *bench = *state;
    struct asked asked;
    uint64_t sessions[8];

    for (uint32_t i = 0; i < 8; i++) {
        sessions[i] = begin(bench, i + 1, 100, "/mnt");
    }
    assert_int_equal(manager_ends(bench), 0);
    bench->sessions_max = 3;
    manager_begins(bench);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(renew(bench, sessions[i], 100), 0);
    }
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(9, 100, "/mnt")),
                         -ERR_TOO_MANY_SESSIONS);
        end(bench, sessions[i], 100);
        pass(bench, NS_PER_S);
    }
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(9, 100, "/mnt")), 0);
    assert_int_equal(renew(bench, sessions[7], 100), 0);
}

/* Killed before the record of a session is on disk, asked again after the next start: it is said to
 * have begun only when it is, so that its number is nobody else's after a power failure. */
static void test_a_begin_that_the_ring_kept(void **state) {
    struct bench *bench = *state;

    for (uint32_t round = 1; round <= 7; round++) {
        struct asked asked;
        struct asked again;

        begin(bench, 1, round, "/mnt"); /* What was to be synced is. */
        pass(bench, NS_PER_S);
        start(bench, &asked, OP_SESSION_BEGIN, begin_of(1 + round, 100, "/mnt"));
        while (worker_run_one(&bench->worker)) {
        }
        uint64_t position = kv_position(manager_kv(bench->manager));
        assert_true(position > kv_synced_position(manager_kv(bench->manager)) && !asked.done);
        manager_dies(bench, false);
        manager_begins(bench);
        start(bench, &again, OP_SESSION_BEGIN, begin_of(1 + round, 100, "/mnt"));
        finish(bench, &again);
        assert_int_equal(again.call.result, 0);
        assert_true(kv_synced_position(manager_kv(bench->manager)) >= position);
    }
}

/* Who is away for many ends gets them in messages of many; who is away for more than are
 * remembered, or has lost what he had, gets the whole list. Nobody that lives is ever named. */
static void test_list_of_the_ended(void **state) {
    struct bench *bench = *state;
    struct target *near = &bench->targets[1];
    struct target *far = &bench->targets[2];

    uint64_t oldest = begin(bench, 1, 1, "/oldest");
    pass(bench, NS_PER_S);
    for (int round = 0; round < 4; round++) {
        uint32_t wholes = far->wholes, count = round == 1 ? 1100 : 200;

        far->result = -ERR_IO;
        for (uint32_t i = 0; i < count; i++) {
            end(bench, begin(bench, 2, 1, "/gone"), 1);
            assert_int_equal(renew(bench, oldest, 1), 0);
        }
        uint64_t other = begin(bench, 2, 1, "/stays");
        pass(bench, NS_PER_S);
        assert_true(far->number < near->number);
        if (round == 2) {
            manager_dies(bench, true);
            manager_begins(bench);
        }
        if (round == 3) { /* Its disk is gone, and it is a new one. */
            far->number = far->lowest = 0;
            memset(far->ended, 0, sizeof far->ended);
        }
        far->result = 0;
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(far->number, near->number);
        assert_int_equal(far->wholes > wholes, round > 0);
        for (uint64_t session = 1; session <= other; session++) {
            bool lives = session == oldest || session == other;

            assert_int_equal(is_ended(far, session), !lives);
            assert_int_equal(is_ended(near, session), !lives);
        }
        assert_int_equal(renew(bench, oldest, 1), 0);
        end(bench, other, 1);
    }
    end(bench, oldest, 1);
    pass(bench, NS_PER_S);
    assert_true(far->lowest > oldest && near->lowest == far->lowest);
}

static void tick(struct bench *bench) {
    manager_tick(bench->manager);
    while (worker_run_one(&bench->worker)) {
    }
}

/* Something of its log is not on disk. */
static bool is_behind(const struct bench *bench) {
    struct kv *kv = manager_kv(bench->manager);

    return kv_position(kv) > kv_synced_position(kv);
}

/* Of two ends one is on disk and the other one not: who is told of the first waits for no number
 * that power may still take. */
static void test_no_number_is_told_before_it_is_on_disk(void **state) {
    struct bench *bench = *state;
    const struct target *group = &bench->targets[0];
    struct asked first, second;

    uint64_t one = begin(bench, 1, 1, "/one");
    uint64_t other = begin(bench, 2, 1, "/other");
    pass(bench, NS_PER_S);
    start(bench, &first, OP_SESSION_END, end_of(one, 1));
    while (worker_run_one(&bench->worker)) {
    }
    start(bench, &second, OP_SESSION_END, end_of(other, 1));
    finish(bench, &first);
    assert_int_equal(group->heard, 1);
    assert_true(is_ended(group, one));
    assert_int_equal(group->newest, group->number);
    pass(bench, NS_PER_S);
    assert_true(second.done);
    assert_int_equal(group->heard, 2);
    assert_int_equal(group->newest, group->number);
}

/* A beginning that is given up while its record is being flushed, and one while the manager is only
 * finding out what it knows: the session is there for who asks again. */
static void test_gives_up_a_beginning(void **state) {
    struct bench *bench = *state;
    struct asked asked;
    bool found_out = false;
    uint32_t node = 1;

    bench->sessions_max = 32; /* from the next manager on */
    begin(bench, node, 1, "/mnt");
    pass(bench, NS_PER_S);
    /* What was on its way to the disk when the manager died may have arrived: then there is nothing
     * to find out, and the next one is tried. */
    while (!found_out && ++node < 30) {
        for (int round = 0; round < 2; round++) {
            bool flag = false;

            start_for(bench, &asked, NS_PER_US, OP_SESSION_BEGIN, begin_of(node, 100, "/mnt"));
            tick(bench);
            assert_false(asked.done);
            sim_schedule(bench->sim, NULL, NS_PER_US, note_flag, &flag);
            sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
            tick(bench);
            assert_true(asked.done);
            assert_int_equal(asked.call.result, -ERR_TIMED_OUT);
            if (round == 0) {
                assert_true(is_behind(bench));
                manager_dies(bench, false);
                manager_begins(bench);
                found_out = is_behind(bench);
                round += !found_out;
            }
        }
        start(bench, &asked, OP_SESSION_BEGIN, begin_of(node, 100, "/mnt"));
        finish(bench, &asked);
        assert_int_equal(asked.call.result, 0);
        assert_int_equal(manager_session_count(bench->manager), node);
    }
    assert_true(found_out);
}

/* Sessions, numbers, the map and an eviction that was under way outlive the manager: after a clean
 * stop, after a kill, and after a power failure. */
static void test_restarts_forget_nothing(void **state) {
    struct bench *bench = *state;
    uint64_t newest = 0;

    for (uint64_t round = 1; round <= 6; round++) {
        uint64_t kept = begin(bench, 1, round, "/kept");
        uint64_t going = begin(bench, 2, round, "/going");
        struct asked asked;

        assert_true(kept > newest && going > kept);
        newest = going;
        bench->targets[0].result = -ERR_IO; /* So that the end does not come to its end. */
        start(bench, &asked, OP_SESSION_END, end_of(going, round));
        pass(bench, 2 * NS_PER_S);
        assert_true(asked.done); /* Who does not answer holds up nobody. */
        assert_int_equal(asked.call.result, 0);
        if (round % 3 == 0) {
            assert_int_equal(manager_ends(bench), 0);
        } else {
            manager_dies(bench, round % 3 == 2);
        }
        bench->targets[0].result = 0;
        uint32_t before = told(bench);
        bench->targets[0].hold = true;
        manager_begins(bench);
        pass(bench, 3 * NS_PER_S);
        /* It has not heard of the end, and is not told that it has. */
        uint64_t meanwhile = bench->targets[0].number;
        target_release(&bench->targets[0]);
        pass(bench, 3 * NS_PER_S);
        assert_true(bench->targets[0].number > meanwhile);
        assert_int_equal(told(bench), before + 1);
        assert_int_equal(bench->targets[0].session, going);
        assert_true(is_ended(&bench->targets[2], going));
        assert_int_equal(renew(bench, kept, round), 0);
        assert_int_equal(renew(bench, going, round), -ERR_UNKNOWN_SESSION);
    }
}

/* A path and a name of any length that a session may have are kept; a longer one is refused, and
 * harms nobody. */
static void test_origins_of_any_length(void **state) {
    static const size_t lengths[] = {0, 1, 900, 1000, 1024, MANAGER_ORIGIN_BYTES_MAX};
    struct bench *bench = *state;
    uint64_t sessions[ARRAY_SIZE(lengths)];
    char origin[MANAGER_ORIGIN_BYTES_MAX + 2];
    struct asked asked;

    memset(origin, 'o', sizeof origin);
    origin[MANAGER_ORIGIN_BYTES_MAX + 1] = '\0';
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(1, 100, origin)), -ERR_INVALID);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        sessions[i] = begin(bench, 1, 100, origin + sizeof origin - 1 - lengths[i]);
        assert_true(i == 0 || sessions[i] != sessions[i - 1]);
    }
    for (int i = 0; i < 2; i++) {
        manager_dies(bench, i == 1);
        manager_begins(bench);
        for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
            assert_int_equal(begin(bench, 1, 100, origin + sizeof origin - 1 - lengths[k]),
                             sessions[k]);
        }
    }
}

/* When the log cannot be written nobody is told of a session. */
static void test_failed_log_is_told(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    begin(bench, 1, 100, "/mnt");
    sim_process_faults(bench->process)->error_per_million = 1000000;
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(2, 100, "/mnt")), -ERR_IO);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(3, 100, "/mnt")), -ERR_IO);
    assert_int_equal(manager_ends(bench), -ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(end_does_not_wait_for_room), TEST(sessions_begin_renew_and_end),
        TEST(predecessor_goes_first),     TEST(list_of_the_ended),
        TEST(silence_ends_a_session),     TEST(a_stopped_manager_evicts_nobody),
        TEST(stop_while_loading),         TEST(unreachable_target_is_told_again),
        TEST(sessions_have_a_limit),      TEST(a_limit_that_is_made_smaller),
        TEST(gives_up_what_it_holds),     TEST(gives_up_a_beginning),
        TEST(a_begin_that_the_ring_kept), TEST(restarts_forget_nothing),
        TEST(shares_that_were_met),       TEST(origins_of_any_length),
        TEST(failed_log_is_told),         TEST(no_number_is_told_before_it_is_on_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
