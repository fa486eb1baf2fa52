/* The contract is in joins.h. */
#include "joins.h"
#include "newcomers.h"
#include "pools.h"
#include "shares.h"
#include "strays.h"
#include "whole.h"
#include "world.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEED = 1,
    SESSION_S = 10,
    JOIN_S = 30, /* from the crash on; a try lasts 5 s where its other end dies */
    SLICE_MS = 50,
    DIRECTORIES = 6,
    POINTS_MOST = 5000,
};

enum party { PARTY_MANAGER, PARTY_GIVER, PARTY_RECEIVER, PARTY_STORAGE, PARTIES };

static const char *const party_names[PARTIES] = {
    "the manager", "the giver of slots", "the new metadata target", "the new storage target"};

/* Of each way: with fewer nothing was cut. A giver has its rows to write, and to flush. */
static const uint64_t points_least[PARTIES] = {10, 2, 20, 20};

struct trial {
    struct world *world;
    struct newcomers *newcomers;
    struct node *victim;
    uint64_t after; /* operations of the victim */
    bool power;
    bool armed, crashed;
    struct shoal_request request;
    bool answered;
    char failure[600];
};

static struct node *victim_of(struct world *world, enum party party) {
    switch (party) {
    case PARTY_MANAGER:
        return world->manager;
    case PARTY_GIVER:
        return &world->mdts[0];
    case PARTY_RECEIVER:
        return &world->mdts[1];
    case PARTY_STORAGE:
    case PARTIES:
        break;
    }
    return &world->osts[1];
}

/* All that have numbers. The first start of a newcomer may be cut off itself. */
static void start(struct trial *trial, bool arms) {
    struct world *world = trial->world;

    for (uint32_t i = 0; i < world->node_count && !trial->failure[0]; i++) {
        struct node *node = &world->nodes[i];
        uint64_t after = UINT64_MAX;

        if (node_is_up(node) || node_is_absent(node)) {
            continue;
        }
        if (arms && node == trial->victim && !trial->armed) {
            after = trial->after;
            trial->armed = true;
        }
        if (!node_start(node, after)) {
            snprintf(trial->failure, sizeof trial->failure, "%s", world->failure);
        }
    }
}

static bool has_session(void *context) {
    struct trial *trial = context;

    return node_client(&trial->world->clients[0]) != NULL;
}

static bool is_answered(void *context) {
    return ((struct trial *)context)->answered;
}

static bool wait_for(struct trial *trial, bool (*until)(void *context), uint64_t time_s) {
    struct sim *sim = trial->world->sim;

    return sim_run_until(sim, sim_now_ns(sim) + time_s * NS_PER_S, until, trial) == SIM_DONE;
}

static bool all_are_up(struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (!node_is_up(&world->nodes[i])) {
            return false;
        }
    }
    return sim_crashed(world->sim) == NULL;
}

static bool has_joined(struct trial *trial) {
    struct world *world = trial->world;

    return newcomers_are_done(trial->newcomers) && all_are_up(world) &&
           shares_are_dealt(world, trial->failure) && pools_are_settled(world);
}

/* Until all have joined. */
static void join(struct trial *trial) {
    struct sim *sim = trial->world->sim;
    uint64_t end_ns = sim_now_ns(sim) + JOIN_S * NS_PER_S;

    while (!trial->failure[0] && !has_joined(trial)) {
        if (sim_run_until(sim, sim_now_ns(sim) + SLICE_MS * NS_PER_MS, NULL, NULL) == SIM_CRASHED) {
            trial->crashed = true;
            end_ns = sim_now_ns(sim) + JOIN_S * NS_PER_S;
            (trial->power ? node_power : node_kill)(trial->victim);
        }
        start(trial, true);
        if (newcomers_failure(trial->newcomers)) {
            snprintf(trial->failure, sizeof trial->failure, "%s",
                     newcomers_failure(trial->newcomers));
        } else if (sim_now_ns(sim) > end_ns) {
            snprintf(trial->failure, sizeof trial->failure, "they have not joined after %d s",
                     JOIN_S);
        }
    }
}

static void request_done(struct shoal_request *request) {
    ((struct trial *)request->context)->answered = true;
}

/* Directories in the root go to all metadata targets. */
static void make(struct trial *trial) {
    struct node *client = &trial->world->clients[0];

    for (unsigned i = 0; i < DIRECTORIES && !trial->failure[0]; i++) {
        char name[] = {'d', (char)('0' + i), '\0'};

        trial->answered = false;
        trial->request = (struct shoal_request){.operation = SHOAL_MKDIR,
                                                .ino = SHOAL_INO_ROOT,
                                                .name = name,
                                                .name_bytes = 2,
                                                .mode = 0755,
                                                .done = request_done,
                                                .context = trial};
        node_enter(client);
        shoal_submit(node_client(client), &trial->request);
        node_leave(client);
        if (!wait_for(trial, is_answered, JOIN_S) || trial->request.result < 0) {
            snprintf(trial->failure, sizeof trial->failure, "mkdir %s answers %" PRId64, name,
                     trial->answered ? trial->request.result : 0);
        }
    }
}

/* What was answered at its decision is done everywhere. */
static void settle(struct trial *trial) {
    struct sim *sim = trial->world->sim;
    uint64_t end_ns = sim_now_ns(sim) + JOIN_S * NS_PER_S;
    char left[200];

    while (!trial->failure[0] && !strays_are_settled(trial->world, left)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + SLICE_MS * NS_PER_MS, NULL, NULL);
        if (sim_now_ns(sim) > end_ns) {
            snprintf(trial->failure, sizeof trial->failure, "halves are left after %d s: %s",
                     JOIN_S, left);
        }
    }
    if (!trial->failure[0]) {
        (void)whole_check(trial->world, trial->failure);
    }
}

static void trial_run(struct trial *trial) {
    start(trial, false);
    if (!trial->failure[0] && !wait_for(trial, has_session, SESSION_S)) {
        snprintf(trial->failure, sizeof trial->failure, "the client gets no session");
    }
    if (trial->failure[0]) {
        return;
    }
    if (!node_is_absent(trial->victim)) {
        sim_crash_after(trial->victim->process, trial->after);
        trial->armed = true;
    }
    trial->newcomers = newcomers_new(trial->world, SEED);
    newcomers_end(trial->newcomers);
    join(trial);
    sim_crash_after(trial->victim->process, UINT64_MAX);
    make(trial);
    settle(trial);
}

/* Whether it came to the crash. */
static bool point_play(enum party party, bool power, uint64_t after, unsigned *failed) {
    static const struct world_options options = {
        .seed = SEED,
        .mdt_count = 2,
        .ost_count = 2,
        .late_mdt = true,
        .late_ost = true,
        .client_count = 1,
        .sync_interval_ns = NS_PER_S,
        .ring_bytes = 128 * KIB,
        .log_rings = 8,
        .data_bytes_max = 16 * MIB,
        .chunk_bytes = 64 * KIB,
        .session_timeout_ns = 20 * NS_PER_S,
        .lane_silent_ns = NS_PER_S,
        .request_timeout_ns = 20 * NS_PER_S,
        .schedule_ns_max = NS_PER_US,
    };
    struct trial *trial = calloc(1, sizeof *trial);

    if (!trial) {
        abort();
    }
    trial->world = world_new(&options);
    trial->victim = victim_of(trial->world, party);
    trial->after = after;
    trial->power = power;
    trial_run(trial);
    bool crashed = trial->crashed;
    if (trial->failure[0]) {
        (*failed)++;
        printf("joins: %s, %s at operation %" PRIu64 ": %s\n", party_names[party],
               power ? "power" : "kill", after, trial->failure);
    }
    world_free(trial->world);
    newcomers_free(trial->newcomers);
    free(trial);
    return crashed;
}

static uint64_t party_play(enum party party, bool power, unsigned *failed) {
    uint64_t points = 0;

    while (points < POINTS_MOST && point_play(party, power, points, failed)) {
        points++;
    }
    return points;
}

unsigned joins_play(void) {
    unsigned failed = 0;
    uint64_t sum = 0;

    for (enum party party = 0; party < PARTIES; party++) {
        uint64_t kills = party_play(party, false, &failed);
        uint64_t powers = party_play(party, true, &failed);

        printf("joins: %-24s %4" PRIu64 " kills %4" PRIu64 " power failures\n", party_names[party],
               kills, powers);
        if (MIN(kills, powers) < points_least[party] || MAX(kills, powers) == POINTS_MOST) {
            printf("joins: from %" PRIu64 " to %d of each were to be met\n", points_least[party],
                   POINTS_MOST);
            failed++;
        }
        sum += kills + powers;
    }
    printf("%" PRIu64 " passed, %u failed\n", sum - MIN(sum, (uint64_t)failed), failed);
    return failed;
}
