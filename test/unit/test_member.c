/* A node's membership against a manager that only says what a test wants: numbers, maps, silence.
 * Time is simulated. */
#include "env/env_sim.h"
#include "layout/map_change.h"
#include "member/member.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 100, ANY_TARGET = 16 };

static struct {
    struct sim *sim;
    struct sim_process *process;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc;
    struct actor manager;
    struct member *member;
    bool finds_manager;
    uint32_t asked_anybody; /* for a map */
    struct cluster_map map; /* the manager's newest */
    int join_result;
    bool holds;        /* what it is asked */
    struct call *held; /* one */
    uint32_t joins, map_gets, changes_gets;
    bool pushes;                    /* it keeps who waits for a newer map, and has changes */
    struct call *waiting;           /* of those */
    struct cluster_map before;      /* that changes begin with */
    struct node_join_request asked; /* last */
    char address[64];
    int take; /* the hook's answer */
    uint64_t taken[8];
    uint64_t took_away; /* version of the last map that did, before it was taken */
    uint32_t took_away_count;
    uint32_t taken_count;
    uint32_t lines;
    char line[256];
    bool stopped;
    bool has_lives;
    enum lives_verdict verdict; /* the manager's answer */
    uint32_t with_lives;        /* questions that told some */
    enum registration_stage stage;
    uint32_t stages; /* that were told */
    uint32_t key_number;
} it;

static void join_answer(struct call *call) {
    const struct node_join_request *request = &call->request.node_join;

    it.asked = *request;
    memcpy(it.address, request->address.data ? request->address.data : (const uint8_t *)"",
           request->address.size);
    it.address[request->address.size] = '\0';
    it.with_lives += request->lives.size == sizeof(struct wire_life) &&
                     request->lives_row_bytes == sizeof(struct wire_life) && request->place == 99;
    call->reply.node_join.verdict = (uint8_t)it.verdict;
    call->reply.node_join.asked = it.joins;
    call->reply.node_join.node = 2;
    call->reply.node_join.first_target = 17;
    call->reply.node_join.map_version = it.map.version;
    call_reply(call, it.join_result);
}

static void changes_answer(struct call *call) {
    call->reply.map_changes.version = it.map.version;
    call->bulk_in.size = 0;
    if (call->request.map_changes.known_version < it.map.version) {
        assert_int_equal(cluster_map_change_encode(&it.before, &it.map, &call->bulk_in), 0);
    }
    call_reply(call, 0);
}

/* A manager of the version before does not know these. */
static void newer_take(struct call *call) {
    it.changes_gets += call->header.opcode == OP_MAP_CHANGES;
    if (!it.pushes) {
        call_reply(call, -ERR_NOT_SUPPORTED);
    } else if (call->header.opcode == OP_MAP_CHANGES) {
        changes_answer(call);
    } else {
        assert_null(it.waiting);
        assert_int_not_equal(call->request.map_wait.who, 0);
        it.waiting = call;
    }
}

static void waiting_answer(void) {
    it.waiting->reply.map_wait.version = it.map.version;
    call_reply(TAKE_PTR(it.waiting), 0);
}

static void manager_take(struct call *call) {
    if (call->header.opcode == OP_MAP_WAIT || call->header.opcode == OP_MAP_CHANGES) {
        newer_take(call);
        return;
    }
    it.joins += call->header.opcode == OP_NODE_JOIN;
    it.map_gets += call->header.opcode == OP_MAP_GET;
    it.asked_anybody += call->header.log.value == LOG_MEMBER.value;
    if (it.holds) {
        assert_null(it.held);
        it.held = call;
    } else if (call->header.opcode == OP_NODE_JOIN) {
        join_answer(call);
    } else {
        assert_int_equal(call->header.opcode, OP_MAP_GET);
        call->bulk_in.size = 0;
        if (call->request.map_get.known_version < it.map.version) {
            cluster_map_encode(&it.map, &call->bulk_in);
        }
        call_reply(call, 0);
    }
}

static void manager_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *message = first;

        first = message->next;
        if (message->kind == CALL_DONE_KIND) {
            call_done_message(message);
        } else {
            manager_take(CONTAINER_OF(message, struct call, message));
        }
    }
}

static void take_away(void *context, const struct cluster_map *map) {
    (void)context;
    it.took_away = map->version;
    it.took_away_count++;
}

static int take_map(void *context, const struct cluster_map *map) {
    (void)context;
    assert_int_equal(it.took_away, map->version);
    it.taken[it.taken_count++ % ARRAY_SIZE(it.taken)] = map->version;
    it.key_number = MAX(it.key_number, map->capability_number);
    return it.take;
}

static void take_line(void *context, const char *line) {
    (void)context;
    it.lines++;
    snprintf(it.line, sizeof it.line, "%s", line);
}

static size_t put_lives(void *context, uint8_t *ret_lives) {
    const struct wire_life life = {.log = 5, .term = 3, .life_high = 1, .life_low = 2};

    (void)context;
    memcpy(ret_lives, &life, sizeof life);
    return sizeof life;
}

static void take_stage(void *context, const struct registration *registration) {
    (void)context;
    it.stage = registration->stage;
    it.stages++;
}

static uint64_t worker_now(struct worker *worker) {
    return env_now_ns(worker->context);
}

static uint32_t tell_number(void *context) {
    (void)context;
    return it.key_number;
}

static void member_begin(const struct cluster_map *known) {
    const struct member_options options = {.env = it.env,
                                           .rpc = it.rpc,
                                           .key = {7, 8},
                                           .target_count = 3,
                                           .address = "10.0.0.2:7400",
                                           .map = known,
                                           .finds_manager = it.finds_manager,
                                           .place = 99,
                                           .hooks = {.map = take_map,
                                                     .map_takes = take_away,
                                                     .lives = it.has_lives ? put_lives : NULL,
                                                     .registered = take_stage,
                                                     .key_number = tell_number,
                                                     .log = take_line}};

    assert_int_equal(member_new(&options, &it.member), 0);
}

static int set_up(void **state) {
    static const struct target_id osts[] = {{ANY_TARGET}};

    (void)state;
    memset(&it, 0, sizeof it);
    it.sim = sim_new(1);
    it.process = sim_process_new(it.sim, "node");
    it.env = sim_process_env(it.process);
    worker_init(&it.worker);
    it.worker.now_ns = worker_now;
    it.worker.context = it.env;
    worker_bind(&it.worker);
    actor_init(&it.manager, "manager", manager_step);
    it.map.cluster_id[0] = 1;
    cluster_map_single(&it.map, (struct target_id){2}, osts, 1);
    if (log_table_new(4, &it.logs) < 0 || log_table_add(it.logs, LOG_MANAGER, &it.manager) < 0 ||
        log_table_add(it.logs, LOG_MEMBER, &it.manager) < 0) {
        return -1;
    }
    const struct rpc_options rpc = {.transport = &transport_inproc_ops,
                                    .transport_context = it.logs,
                                    .env = it.env,
                                    .resend_ns = NS_PER_S,
                                    .logs_max = 4};
    return rpc_new(&rpc, &it.rpc);
}

static int tear_down(void **state) {
    (void)state;
    member_free(it.member);
    rpc_free(it.rpc);
    log_table_free(it.logs);
    worker_bind(NULL);
    sim_free(it.sim);
    return 0;
}

static void note_flag(void *context) {
    *(bool *)context = true;
}

static bool is_set(void *context) {
    return *(bool *)context;
}

static void pass(uint64_t ns) {
    for (uint64_t at = 0; at < ns; at += TICK_MS * NS_PER_MS) {
        bool flag = false;

        sim_schedule(it.sim, NULL, TICK_MS * NS_PER_MS, note_flag, &flag);
        sim_run_until(it.sim, UINT64_MAX, is_set, &flag);
        member_tick(it.member);
        while (worker_run_one(&it.worker)) {
        }
    }
}

static void told(struct member_question *question) {
    *(bool *)question->context = true;
}

static void note_stopped(void *context, int result) {
    *(bool *)context = result == 0;
}

static struct member_state state_of(struct cluster_map *map) {
    bool done = false;
    struct member_question question = {.map = map, .done = told, .context = &done};

    member_ask(it.member, &question);
    while (worker_run_one(&it.worker)) {
    }
    assert_true(done);
    return question.state;
}

/* Numbers and a map at once; its targets and its address when they are there. */
static void test_a_node_is_told_and_tells(void **state) {
    struct cluster_map *map = calloc(1, sizeof *map);

    (void)state;
    member_begin(NULL);
    assert_int_equal(state_of(map).node.value, 0);
    assert_int_equal(map->version, 0);
    pass(NS_PER_S);
    assert_int_equal(it.asked.key_high, 7);
    assert_int_equal(it.asked.key_low, 8);
    assert_int_equal(it.asked.target_count, 3);
    assert_false(it.asked.ready);
    assert_string_equal(it.address, "");
    struct member_state now = state_of(map);
    assert_int_equal(now.node.value, 2);
    assert_int_equal(now.first_target, 17);
    assert_int_equal(now.map_version, it.map.version);
    assert_int_equal(map->version, it.map.version);
    assert_int_equal(map->cluster_id[0], 1);
    assert_false(now.told);
    member_ready(it.member);
    pass(TICK_MS * NS_PER_MS);
    assert_true(state_of(NULL).told);
    assert_string_equal(it.address, "10.0.0.2:7400");
    free(map);
}

/* Once a second, and a map only when there is a newer one. */
static void test_newer_maps_are_fetched(void **state) {
    (void)state;
    member_begin(&it.map);
    pass(3 * NS_PER_S);
    assert_in_range(it.joins, 2, 4);
    assert_int_equal(it.map_gets, 0);
    it.map.version = 9;
    pass(2 * NS_PER_S);
    assert_int_equal(it.map_gets, 1);
    assert_int_equal(it.taken_count, 1);
    assert_int_equal(it.taken[0], 9);
    it.map.version = 8; /* Another one's answer that was long on its way. */
    pass(2 * NS_PER_S);
    assert_int_equal(it.taken_count, 1);
    assert_int_equal(state_of(NULL).map_version, 9);
}

static void map_grow(void) {
    it.before = it.map;
    it.map.version++;
    assert_int_equal(cluster_map_add_ost(&it.map, (struct node_id){1}, (struct target_id){99},
                                         (struct log_id){99}),
                     0);
}

static void taken_check(void) {
    struct cluster_map *map = calloc(1, sizeof *map);

    assert_int_equal(state_of(map).map_version, it.map.version);
    assert_int_equal(cluster_map_crc(map), cluster_map_crc(&it.map));
    free(map);
}

/* Within a tick, by what it adds; the next question comes a second behind the last one. */
static void test_a_newer_map_is_told_of(void **state) {
    (void)state;
    it.pushes = true;
    member_begin(&it.map);
    pass(5 * NS_PER_S + NS_PER_S / 2);
    assert_non_null(it.waiting);
    assert_int_equal(it.waiting->request.map_wait.known_version, it.map.version);
    map_grow();
    uint32_t joins = it.joins;
    waiting_answer();
    pass(TICK_MS * NS_PER_MS);
    assert_int_equal(it.joins, joins);
    assert_int_equal(it.taken_count, 1);
    assert_int_equal(it.map_gets, 0);
    taken_check();
    pass(3 * TICK_MS * NS_PER_MS);
    assert_non_null(it.waiting);
    waiting_answer(); /* With nothing new. */
    pass(3 * TICK_MS * NS_PER_MS);
    assert_null(it.waiting);
    pass(NS_PER_S);
    assert_non_null(it.waiting);
    waiting_answer();
}

/* They are of another map than the one in use: it comes as a whole. */
static void test_changes_of_another_map_are_not_taken(void **state) {
    struct cluster_map *other = calloc(1, sizeof *other);

    (void)state;
    it.pushes = true;
    *other = it.map;
    other->revoked[other->revoked_count++] = 5;
    member_begin(other);
    map_grow();
    pass(NS_PER_S / 2);
    assert_int_equal(it.changes_gets, 1);
    assert_int_equal(it.map_gets, 1);
    taken_check();
    free(other);
}

/* A manager that knows nothing of it is asked seldom, and each second as ever. */
static void test_a_manager_of_the_version_before_is_asked_for_maps(void **state) {
    (void)state;
    member_begin(&it.map);
    map_grow();
    pass(2 * NS_PER_S);
    assert_int_equal(it.map_gets, 1);
    taken_check();
}

/* A question that waits for a map is answered when that is used, when its time is over, and when
 * the member stops; then the state says what is. */
static void test_a_map_is_waited_for(void **state) {
    bool done[3] = {false}, stopped = false;
    struct member_question questions[3];

    (void)state;
    member_begin(&it.map);
    uint64_t now_ns = env_now_ns(it.env);
    for (uint32_t i = 0; i < 3; i++) {
        questions[i] = (struct member_question){.version = i < 2 ? 5 : 6,
                                                .end_ns = now_ns + (i == 1 ? 1 : 60) * NS_PER_S,
                                                .done = told,
                                                .context = &done[i]};
        member_ask(it.member, &questions[i]);
    }
    it.take = -ERR_NO_SPACE;
    it.map.version = 5;
    pass(NS_PER_S / 2);
    assert_false(done[0] || done[1] || done[2]);
    pass(NS_PER_S);
    assert_true(done[1] && !done[0] && !done[2]);
    assert_int_equal(questions[1].state.map_version, 1);
    assert_int_equal(questions[1].state.map_problem, -ERR_NO_SPACE);
    it.take = 0;
    pass(2 * NS_PER_S);
    assert_true(done[0] && !done[2]);
    assert_int_equal(questions[0].state.map_version, 5);
    member_stop_start(it.member, note_stopped, &stopped);
    pass(TICK_MS * NS_PER_MS);
    assert_true(done[2] && stopped);
    assert_int_equal(questions[2].state.map_version, 5);
}

/* A disk that is full, say: it goes by the older one, and tries again. */
static void test_a_map_that_is_not_taken_is_offered_again(void **state) {
    (void)state;
    member_begin(&it.map);
    it.take = -ERR_NO_SPACE;
    it.map.version = 5;
    pass(4 * NS_PER_S);
    assert_true(it.taken_count >= 3);
    assert_int_equal(it.took_away_count, it.taken_count);
    assert_int_equal(state_of(NULL).map_version, 1);
    assert_int_equal(state_of(NULL).map_problem, -ERR_NO_SPACE);
    assert_int_equal(state_of(NULL).map_newer, 5);
    it.map.version = 6; /* What it takes away is gone as well. */
    pass(3 * NS_PER_S);
    assert_int_equal(it.took_away, 6);
    assert_int_equal(state_of(NULL).map_newer, 6);
    assert_int_equal(state_of(NULL).map_version, 1);
    it.take = 0;
    pass(2 * NS_PER_S);
    assert_int_equal(state_of(NULL).map_version, 6);
    assert_int_equal(state_of(NULL).map_problem, 0);
    assert_int_equal(state_of(NULL).map_newer, 0);
}

/* One line a minute, and one when it is back. */
static void test_silence_is_told_seldom(void **state) {
    (void)state;
    member_begin(&it.map);
    pass(NS_PER_S);
    it.join_result = -ERR_TIMED_OUT;
    pass(150 * NS_PER_S);
    assert_int_equal(it.lines, 3);
    assert_non_null(strstr(it.line, "does not answer"));
    assert_int_equal(state_of(NULL).result, -ERR_TIMED_OUT);
    it.join_result = 0;
    pass(3 * NS_PER_S);
    assert_int_equal(it.lines, 4);
    assert_non_null(strstr(it.line, "answers again"));
}

/* By which it signs when it asks, as the map that it has taken says. */
static void test_the_number_of_keys_is_told(void **state) {
    (void)state;
    it.key_number = 1;
    member_begin(&it.map);
    pass(NS_PER_S);
    assert_int_equal(it.asked.capability_number, 1);
    it.map.version = 5;
    it.map.capability_number = 2;
    pass(4 * NS_PER_S);
    assert_int_equal(it.asked.map_version, 5);
    assert_int_equal(it.asked.capability_number, 2);
}

static void test_a_refusal_is_told_once(void **state) {
    (void)state;
    member_begin(&it.map);
    it.join_result = -ERR_OTHER_CLUSTER;
    pass(90 * NS_PER_S);
    assert_int_equal(it.lines, 1);
    assert_non_null(strstr(it.line, "another cluster"));
    assert_true(it.joins > 60);
}

/* Whoever is reached has a map; from then on the manager is asked. */
static void test_one_that_knows_nobody_asks_anybody(void **state) {
    (void)state;
    it.finds_manager = true;
    it.holds = true;
    member_begin(NULL);
    pass(2 * NS_PER_S);
    assert_int_equal(it.asked_anybody, 1);
    assert_int_equal(it.joins, 0);
    it.holds = false;
    manager_take(it.held);
    pass(3 * NS_PER_S);
    assert_int_equal(it.taken_count, 1);
    assert_true(it.joins > 0);
    it.map.version++;
    pass(3 * NS_PER_S);
    assert_int_equal(it.taken_count, 2);
    assert_int_equal(it.asked_anybody, 2); /* The held one counts twice. */
}

/* Of a manager that gathers joins for a while (manager/gather.c): it is asked once, and nobody
 * calls it silent. */
static void test_an_answer_may_take_a_while(void **state) {
    (void)state;
    it.holds = true;
    member_begin(NULL);
    pass(3 * NS_PER_S);
    assert_non_null(it.held);
    assert_int_equal(it.joins, 1);
    it.holds = false;
    manager_take(it.held);
    pass(TICK_MS * NS_PER_MS);
    assert_int_equal(state_of(NULL).node.value, 2);
    assert_int_equal(it.lines, 0);
}

static void note_answer(struct call *call) {
    call->reply_to = NULL;
}

/* With what was asked there: the newest map that it has, or that the other's is. */
static void test_a_member_answers_with_its_map(void **state) {
    struct cluster_map *map = calloc(1, sizeof *map);
    struct buffer bytes = {malloc(sizeof *map), 0, sizeof *map};
    struct call call = {.message.kind = CALL_MESSAGE_KIND, .bulk_in = bytes};

    (void)state;
    it.map.version = 5;
    member_begin(&it.map);
    for (uint64_t known = 4; known <= 5; known++) {
        call.header.opcode = OP_MAP_GET;
        call.request.map_get.known_version = known;
        call.reply_to = note_answer;
        actor_post(member_actor(it.member), &call.message);
        pass(NS_PER_S / 10);
        assert_null(call.reply_to);
        assert_int_equal(call.result, 0);
        assert_int_equal(call.reply.map_get.version, 5);
        assert_int_equal(call.bulk_in.size > 0, known < 5);
        if (known < 5) {
            bytes.size = call.bulk_in.size;
            assert_int_equal(cluster_map_decode((struct bytes){bytes.data, bytes.size}, map), 0);
            assert_int_equal(map->version, 5);
        }
    }
    call.reply_to = note_answer;
    call.header.opcode = OP_NODE_JOIN;
    actor_post(member_actor(it.member), &call.message);
    pass(NS_PER_S / 10);
    assert_int_equal(call.result, -ERR_NOT_SUPPORTED);
    free(bytes.data);
    free(map);
}

/* Told at once; from then on silence is nothing to it. */
static void test_lives_are_registered(void **state) {
    (void)state;
    it.has_lives = true;
    it.verdict = LIVES_REGISTERED;
    member_begin(&it.map);
    pass(TICK_MS * NS_PER_MS);
    assert_int_equal(it.with_lives, 1);
    assert_int_equal(it.stage, REGISTRATION_REGISTERED);
    pass(2 * NS_PER_S);
    assert_int_equal(it.asked.asked, it.joins - 1);
    it.join_result = -ERR_TIMED_OUT;
    pass(20 * NS_PER_S);
    assert_int_equal(it.stages, 1);
}

/* One that waits asks each tick, takes nothing else of the answers, and gives up waiting only when
 * no answer comes any more. */
static void test_one_that_waits_asks_often(void **state) {
    (void)state;
    it.has_lives = true;
    it.verdict = LIVES_WAIT;
    member_begin(&it.map);
    pass(4 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_WAITING);
    assert_in_range(it.joins, 30, 41);
    assert_int_equal(state_of(NULL).node.value, 0);
    it.join_result = -ERR_TIMED_OUT;
    pass(5 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_WAITING);
    pass(2 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_ALONE);
    it.join_result = 0;
    pass(2 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_ALONE); /* It serves on while it is asked to wait. */
    assert_int_equal(it.stages, 2);
    it.verdict = LIVES_REGISTERED;
    pass(2 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_REGISTERED);
}

/* Without a word of the manager it serves after a second; what is refused then is refused for good,
 * and nothing is asked any more. */
static void test_a_manager_that_is_away_holds_nobody_up(void **state) {
    (void)state;
    it.has_lives = true;
    it.verdict = LIVES_OLDER;
    it.join_result = -ERR_UNREACHABLE;
    member_begin(&it.map);
    pass(NS_PER_S / 2);
    assert_int_equal(it.stages, 0);
    pass(NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_ALONE);
    it.join_result = 0;
    pass(2 * NS_PER_S);
    assert_int_equal(it.stage, REGISTRATION_REFUSED);
    assert_int_equal(it.stages, 2);
    uint32_t joins = it.joins;
    it.verdict = LIVES_REGISTERED;
    pass(5 * NS_PER_S);
    assert_int_equal(it.joins, joins);
    assert_int_equal(it.stage, REGISTRATION_REFUSED);
}

/* One that is there, and takes nobody's lives. */
static void test_an_error_holds_nobody_up(void **state) {
    (void)state;
    it.has_lives = true;
    it.join_result = -ERR_OLD_COPY;
    member_begin(&it.map);
    pass(TICK_MS * NS_PER_MS);
    assert_int_equal(it.stage, REGISTRATION_ALONE);
    assert_int_equal(it.stages, 1);
}

static void stop_done(void *context, int result) {
    (void)context;
    it.stopped = result == 0;
}

/* The question for a newer map is called off; its answer is awaited. */
static void test_a_stop_ends_the_waiting(void **state) {
    (void)state;
    it.pushes = true;
    member_begin(&it.map);
    pass(2 * NS_PER_S);
    assert_non_null(it.waiting);
    member_stop_start(it.member, stop_done, NULL);
    pass(NS_PER_S);
    assert_false(it.stopped);
    assert_int_equal(call_given_up(it.waiting, 0), -ERR_INTERRUPTED);
    call_reply(TAKE_PTR(it.waiting), -ERR_INTERRUPTED);
    pass(NS_PER_S);
    assert_true(it.stopped);
    assert_null(it.waiting);
}

/* What the manager holds lies in the member's memory. */
static void test_a_stop_waits_for_what_is_asked(void **state) {
    (void)state;
    member_begin(&it.map);
    it.holds = true;
    pass(2 * NS_PER_S);
    assert_non_null(it.held);
    member_stop_start(it.member, stop_done, NULL);
    pass(NS_PER_S);
    assert_false(it.stopped);
    call_reply(it.held, -ERR_CLOSED);
    pass(NS_PER_S);
    assert_true(it.stopped);
    assert_int_equal(it.joins, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_node_is_told_and_tells),
        TEST(newer_maps_are_fetched),
        TEST(a_map_is_waited_for),
        TEST(a_map_that_is_not_taken_is_offered_again),
        TEST(silence_is_told_seldom),
        TEST(the_number_of_keys_is_told),
        TEST(a_refusal_is_told_once),
        TEST(an_answer_may_take_a_while),
        TEST(a_newer_map_is_told_of),
        TEST(changes_of_another_map_are_not_taken),
        TEST(a_manager_of_the_version_before_is_asked_for_maps),
        TEST(a_stop_waits_for_what_is_asked),
        TEST(a_stop_ends_the_waiting),
        TEST(one_that_knows_nobody_asks_anybody),
        TEST(a_member_answers_with_its_map),
        TEST(lives_are_registered),
        TEST(one_that_waits_asks_often),
        TEST(a_manager_that_is_away_holds_nobody_up),
        TEST(an_error_holds_nobody_up),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
