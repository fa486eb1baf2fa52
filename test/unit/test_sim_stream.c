/* Simulated streams: the cases of all outsides, and the faults. */
#include "env/sim_stream.h"
#include "stream_stage.h"
#include <stdlib.h>

enum { PART = 40000, MUCH = 200000, SEEDS = 20 };

struct world {
    struct stage stage;
    struct sim *sim;
    struct sim_process *client;
    struct sim_process *server;
};

static bool world_run(struct stage *stage, bool (*until)(void *context), void *context) {
    struct world *world = stage->outside;
    uint64_t end_ns = sim_now_ns(world->sim) + 600 * NS_PER_S;

    return sim_run_until(world->sim, end_ns, until, context) == SIM_DONE;
}

static void world_settle(struct stage *stage) {
    struct world *world = stage->outside;

    (void)sim_run_until(world->sim, sim_now_ns(world->sim) + NS_PER_S, NULL, NULL);
}

/* Until all deadlines have passed. */
static void world_calm(struct world *world) {
    (void)sim_run_until(world->sim, sim_now_ns(world->sim) + 600 * NS_PER_S, NULL, NULL);
}

static struct world *world_new(uint64_t seed) {
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->sim = sim_new(seed);
    world->client = sim_process_new(world->sim, "client");
    world->server = sim_process_new(world->sim, "server");
    world->stage = (struct stage){.client = sim_process_env(world->client),
                                  .server = sim_process_env(world->server),
                                  .run = world_run,
                                  .settle = world_settle,
                                  .tcp = "server:0",
                                  .host = "server",
                                  .unix_path = "unix:/run/socket",
                                  .outside = world};
    return world;
}

static void world_free(struct world *world) {
    sim_free(world->sim);
    free(world);
}

static int set_up(void **state) {
    *state = &world_new(1)->stage;
    return 0;
}

static int limited_set_up(void **state) {
    struct world *world = world_new(1);

    sim_stream_limit(world->server, 2);
    *state = &world->stage;
    return 0;
}

static int tear_down(void **state) {
    struct stage *stage = *state;

    world_free(stage->outside);
    return 0;
}

static struct world *world_of(void **state) {
    struct stage *stage = *state;

    return stage->outside;
}

/* All that a pair sends arrives, by any seed, however it is cut and delayed. */
static void test_seeds(void **state) {
    uint64_t hashes[2];

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (int again = 0; again < 2; again++) {
            struct world *world = world_new(seed);
            struct sim_stream_faults *faults = sim_stream_faults(world->sim);
            struct prng *prng = sim_prng(world->sim);
            void *stage = &world->stage;

            faults->slow_per_million = 100000;
            faults->slow_ns = prng_below(prng, 10 * NS_PER_MS);
            faults->segment_bytes_max = (uint32_t)prng_between(prng, 1000, 100000);
            faults->buffer_bytes = (uint32_t)prng_between(prng, 20000, 200000);
            case_both_ways(&stage);
            case_end_behind_last_byte(&stage);
            hashes[again] = sim_trace_hash(world->sim);
            assert_true(sim_counter(world->sim, "segments slow") > 0);
            world_free(world);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

struct waiting {
    const struct end *end;
    size_t size;
};

static bool until_size(void *context) {
    const struct waiting *waiting = context;

    return waiting->end->size >= waiting->size;
}

/* Bytes wait at a cut and arrive after it, in both directions, and so does a connection. */
static void test_cut(void **state) {
    struct world *world = world_of(state);
    struct sim_process *sides[] = {world->client, world->server};

    for (int direction = 0; direction < 2; direction++) {
        struct pair pair = {0};
        struct end late = {0};

        pair_open(&pair, &world->stage, world->stage.tcp);
        sim_stream_cut(sides[direction], sides[1 - direction], true);
        end_send(&pair.ends[direction], PART);
        assert_int_equal(end_connect(&late, world->stage.client, &pair.host.address, UINT64_MAX),
                         0);
        world_settle(&world->stage);
        assert_int_equal(pair.ends[1 - direction].size, 0);
        assert_int_equal(late.opened, 0);
        end_close(&late);
        if (direction == 0) {
            sim_stream_cut(sides[direction], sides[1 - direction], false);
        } else {
            sim_stream_heal(world->sim);
        }
        stage_until(&world->stage, until_size, &(struct waiting){&pair.ends[1 - direction], PART});
        assert_pattern(&pair.ends[1 - direction], PART);
        pair_close(&pair, &world->stage);
    }
    assert_true(sim_counter(world->sim, "segments cut off") > 0);
}

/* What arrives is not acknowledged across a cut the other way: the sender's room stays taken. */
static void test_cut_of_answers(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_stream_cut(world->server, world->client, true);
    end_send(&pair.ends[0], MUCH);
    world_settle(&world->stage);
    assert_int_equal(pair.ends[0].sent, 64 * KIB);
    assert_pattern(&pair.ends[1], 64 * KIB);
    sim_stream_heal(world->sim);
    stage_until(&world->stage, until_size, &(struct waiting){&pair.ends[1], MUCH});
    pair_close(&pair, &world->stage);
}

/* A sender gives up once its bytes have been held for the settable time; the other side notices
 * when it sends. */
static void test_give_up(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};

    sim_stream_faults(world->sim)->give_up_ns = 30 * NS_PER_S;
    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_stream_cut(world->client, world->server, true);
    uint64_t start_ns = sim_now_ns(world->sim);
    end_send(&pair.ends[0], 1000);
    stage_until(&world->stage, until_ended, &pair.ends[0]);
    assert_int_equal(pair.ends[0].reason, -ERR_TIMED_OUT);
    assert_true(sim_now_ns(world->sim) - start_ns >= 30 * NS_PER_S);
    assert_int_equal(pair.ends[1].ended, 0);
    sim_stream_heal(world->sim);
    world_settle(&world->stage);
    assert_int_equal(pair.ends[1].ended + pair.ends[1].readable, 0);
    end_send(&pair.ends[1], 1000);
    stage_until(&world->stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, -ERR_RESET);
    assert_int_equal(sim_counter(world->sim, "streams given up"), 1);
    pair_close(&pair, &world->stage);
}

/* A reset that is lost on a cut leaves a stream that is half there, until its owner sends. */
static void test_reset_cut_off(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_stream_cut(world->client, world->server, true);
    env_stream_reset(pair.ends[0].stream);
    pair.ends[0].stream = NULL;
    world_settle(&world->stage);
    sim_stream_heal(world->sim);
    world_settle(&world->stage);
    assert_int_equal(pair.ends[1].ended, 0);
    assert_int_equal(sim_counter(world->sim, "resets cut off"), 1);
    end_send(&pair.ends[1], 1000);
    stage_until(&world->stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, -ERR_RESET);
    pair_close(&pair, &world->stage);
}

static bool until_either_ended(void *context) {
    const struct pair *pair = context;

    return pair->ends[0].ended && pair->ends[1].ended;
}

/* Both sides learn of a reset on the way; what arrived before is a beginning of what was sent. */
static void test_random_resets(void **state) {
    struct world *world = world_of(state);
    unsigned whole = 0;

    sim_stream_faults(world->sim)->reset_per_million = 100000;
    for (int i = 0; i < 50; i++) {
        struct pair pair = {0};

        pair_open(&pair, &world->stage, world->stage.tcp);
        end_send(&pair.ends[0], PART);
        world_settle(&world->stage);
        assert_int_equal(pair.ends[0].ended, pair.ends[1].ended);
        assert_pattern(&pair.ends[1], pair.ends[1].size);
        assert_true(pair.ends[1].size == PART || pair.ends[1].ended);
        whole += pair.ends[1].size == PART;
        if (pair.ends[0].ended) {
            assert_int_equal(pair.ends[0].reason, -ERR_RESET);
            assert_true(until_either_ended(&pair));
        }
        pair_close(&pair, &world->stage);
    }
    assert_in_range(whole, 1, 49);
    assert_true(sim_counter(world->sim, "streams reset at random") > 0);
}

/* A stopped process reads nothing, its streams stay; what comes for it waits in its buffers. */
static void test_stop(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};
    struct end second = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_stop(world->server);
    end_send(&pair.ends[0], MUCH);
    world_settle(&world->stage);
    assert_int_equal(pair.ends[0].sent, 64 * KIB);
    assert_int_equal(pair.ends[1].size, 0);
    /* Its kernel takes connections for it. */
    assert_int_equal(end_connect(&second, world->stage.client, &pair.host.address, UINT64_MAX), 0);
    stage_until(&world->stage, until_opened, &second);
    end_finish(&second);
    uint64_t went_on_ns = sim_now_ns(world->sim);
    pair.host.closes = true;
    sim_continue(world->server);
    stage_until(&world->stage, until_size, &(struct waiting){&pair.ends[1], MUCH});
    assert_pattern(&pair.ends[1], MUCH);
    assert_true(pair.ends[1].stream->readable_ns >= went_on_ns);
    pair_close(&pair, &world->stage);
}

/* A process that is stopped while it is reset does not read what came before, when it goes on. */
static void test_stop_and_reset(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_stop(world->server);
    end_send(&pair.ends[0], 1000);
    world_settle(&world->stage);
    env_stream_reset(pair.ends[0].stream);
    pair.ends[0].stream = NULL;
    world_settle(&world->stage);
    sim_continue(world->server);
    stage_until(&world->stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, -ERR_RESET);
    assert_int_equal(pair.ends[1].size, 0);
    pair_close(&pair, &world->stage);
}

/* A process that is killed: its streams end at the other side, what connects is refused. */
static void test_kill(void **state) {
    unsigned resets = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world *world = world_new(seed);
        struct pair pair = {0};
        struct end next = {0};

        pair_open(&pair, &world->stage, world->stage.tcp);
        end_send(&pair.ends[1], 1000);
        sim_kill(world->server);
        stage_until(&world->stage, until_ended, &pair.ends[0]);
        assert_true(pair.ends[0].reason == 0 || pair.ends[0].reason == -ERR_RESET);
        assert_pattern(&pair.ends[0], pair.ends[0].reason ? pair.ends[0].size : pair.ends[1].sent);
        resets += pair.ends[0].reason == -ERR_RESET;
        assert_int_equal(end_connect(&next, world->stage.client, &pair.host.address, UINT64_MAX),
                         0);
        stage_until(&world->stage, until_ended, &next);
        assert_int_equal(next.reason, -ERR_REFUSED);
        end_finish(&next);
        pair_close(&pair, &world->stage);
        world_calm(world);
        assert_int_equal(sim_stream_count(world->sim), 0);
        world_free(world);
    }
    assert_in_range(resets, 1, 19);
}

/* A machine that loses its power is silent; who sends learns of it once it is back. */
static void test_power(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};
    struct end next = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_power(world->server);
    end_send(&pair.ends[0], 1000);
    assert_int_equal(end_connect(&next, world->stage.client, &pair.host.address, NS_PER_S), 0);
    stage_until(&world->stage, until_ended, &next);
    assert_int_equal(next.reason, -ERR_TIMED_OUT);
    end_finish(&next);
    assert_int_equal(pair.ends[0].ended, 0);
    (void)sim_restart(world->server);
    stage_until(&world->stage, until_ended, &pair.ends[0]);
    assert_int_equal(pair.ends[0].reason, -ERR_RESET);
    pair_close(&pair, &world->stage);
    world_calm(world);
    assert_int_equal(sim_stream_count(world->sim), 0);
}

/* Who sends nothing to it is not told. */
static void test_power_unnoticed(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};

    pair_open(&pair, &world->stage, world->stage.tcp);
    sim_power(world->server);
    (void)sim_restart(world->server);
    world_calm(world);
    assert_int_equal(pair.ends[0].ended, 0);
    end_send(&pair.ends[0], 1);
    stage_until(&world->stage, until_ended, &pair.ends[0]);
    assert_int_equal(pair.ends[0].reason, -ERR_RESET);
    pair_close(&pair, &world->stage);
}

/* A connecting stream waits for a host that is not there, and connects when it is back. */
static void test_connect_after_power(void **state) {
    struct world *world = world_of(state);
    struct end end = {0};
    struct host host = {.closes = true};
    struct host again = {.closes = true};
    char text[ADDRESS_TEXT_BYTES];

    host_open(&host, world->stage.server, world->stage.tcp);
    address_format(&host.address, text);
    sim_power(world->server);
    host_close(&host, world->stage.server);
    assert_int_equal(end_connect(&end, world->stage.client, &host.address, UINT64_MAX), 0);
    world_settle(&world->stage);
    assert_int_equal(end.opened + end.ended, 0);
    struct env *env = sim_restart(world->server);
    host_open(&again, env, text);
    stage_until(&world->stage, until_opened, &end);
    stage_until(&world->stage, until_ended, &end);
    end_finish(&end);
    host_close(&again, env);
}

/* Whom a Unix socket's other end sees. */
static void test_identity(void **state) {
    struct world *world = world_of(state);
    struct pair pair = {0};
    struct env_stream_peer who;

    sim_stream_identity(world->client, 1000, 100);
    pair_open(&pair, &world->stage, world->stage.unix_path);
    assert_int_equal(world->stage.server->streams->peer(pair.ends[1].stream, &who), 0);
    assert_int_equal(who.uid, 1000);
    assert_int_equal(who.gid, 100);
    pair_close(&pair, &world->stage);
}

#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down),
#define FAULT_CASES(X)                                                                             \
    X(test_cut)                                                                                    \
    X(test_cut_of_answers)                                                                         \
    X(test_give_up)                                                                                \
    X(test_reset_cut_off)                                                                          \
    X(test_random_resets)                                                                          \
    X(test_stop)                                                                                   \
    X(test_stop_and_reset)                                                                         \
    X(test_power)                                                                                  \
    X(test_power_unnoticed)                                                                        \
    X(test_connect_after_power)                                                                    \
    X(test_identity)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(case_limit, limited_set_up, tear_down),
        cmocka_unit_test(test_seeds), cmocka_unit_test(test_kill),
        STREAM_CASES(IN_WORLD) FAULT_CASES(IN_WORLD)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
