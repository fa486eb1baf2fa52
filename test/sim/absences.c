/* The contract is in absences.h. */
#include "absences.h"
#include "base/prng.h"
#include "kv/log_format.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CHANCE = 2,
    CALLS = 512,           /* of a client, that are looked at */
    AT_ONCE_MS = 500,      /* ticks, and the time between two looks */
    SETTLE_MS = 1000,      /* what was on its way from a target that went has come by then */
    STAYS_MS_LEAST = 2000, /* beyond that */
    STAYS_MS_MOST = 4000,
    ENOUGH = 30 /* answers at once: programs that get errors only would eat up the seed's work */
};

struct known_call {
    const struct call *call; /* NULL: none; its memory may be another call's since, */
    struct log_id log;       /* which these tell */
    uint64_t sequence;
    struct node *server;
    uint64_t sent_ns;
    bool at_once; /* its patience was over before */
};

/* Of a client. */
struct caller {
    uint64_t incarnation; /* its calls are gone with it */
    struct known_call calls[CALLS];
    uint64_t given_up[WORLD_NODES_MAX]; /* incarnation of the server that was gone; 0: none */
    uint64_t terms[WORLD_NODES_MAX];    /* by which it calls; 0: it has not yet */
    uint32_t forgotten;                 /* times that a log could not say what it lost meanwhile */
};

struct absences {
    struct world *world;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    bool is_due;
    uint64_t begins_at; /* operations submitted by then */
    uint64_t end_ns;
    uint64_t down_ns[WORLD_NODES_MAX]; /* since when; 0: it is up */
    struct caller callers[WORLD_CLIENTS_MAX];
    uint64_t given_up, at_once;
};

struct absences *absences_new(struct world *world, uint64_t operations) {
    const struct world_options *options = &world->options;
    struct absences *absences = calloc(1, sizeof *absences);

    if (!absences) {
        abort();
    }
    absences->world = world;
    prng_init(&absences->prng, options->seed ^ UINT64_C(0x616273656e6365));
    absences->is_due =
        options->request_timeout_ns < 10 * NS_PER_S && prng_chance(&absences->prng, 1, CHANCE);
    absences->begins_at = prng_between(&absences->prng, operations / 8, operations / 2);
    return absences;
}

void absences_free(struct absences *absences) {
    free(absences);
}

/* So long a target must have been away for what is known of it to be all. */
static uint64_t settled_ns(const struct absences *absences) {
    const struct world_options *options = &absences->world->options;

    uint64_t known_ns = options->streams ? options->lane_connect_ns : options->lane_silent_ns;

    return MAX(options->request_timeout_ns, 2 * known_ns) + SETTLE_MS * NS_PER_MS;
}

struct node *absences_begin(struct absences *absences, uint64_t submitted) {
    struct world *world = absences->world;
    struct node *node;

    if (!absences->is_due || submitted < absences->begins_at) {
        return NULL;
    }
    node = prng_chance(&absences->prng, 1, 2)
               ? &world->osts[prng_below(&absences->prng, world->options.ost_count)]
               : &world->mdts[prng_below(&absences->prng, world->options.mdt_count)];
    if (!node_is_up(node)) {
        return NULL;
    }
    absences->is_due = false;
    absences->end_ns = sim_now_ns(world->sim) + settled_ns(absences) +
                       prng_between(&absences->prng, STAYS_MS_LEAST, STAYS_MS_MOST) * NS_PER_MS;
    return node;
}

uint64_t absences_end_ns(const struct absences *absences) {
    return absences->at_once >= ENOUGH ? 0 : absences->end_ns;
}

static struct node *server_of(struct world *world, struct log_id log) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];

        if ((node->role == NODE_MDT || node->role == NODE_OST) && node->target_id > 0 &&
            node_log(node).value == log.value) {
            return node;
        }
    }
    return NULL;
}

static struct caller *caller_of(struct absences *absences, const struct node *client) {
    struct caller *caller = &absences->callers[client->index];

    if (caller->incarnation != client->incarnation || !client->life) {
        *caller = (struct caller){.incarnation = client->incarnation};
    }
    return caller;
}

/* Its place: that of the same call when it left before, or a free one. */
static struct known_call *place_of(struct caller *caller, const struct call *call) {
    struct known_call *place = NULL;

    for (uint32_t i = 0; i < CALLS; i++) {
        if (caller->calls[i].call == call) {
            return &caller->calls[i];
        }
        place = !place && !caller->calls[i].call ? &caller->calls[i] : place;
    }
    return place;
}

/* A log remembers what its last starts found. */
static void term_look(struct caller *caller, size_t server, uint64_t term) {
    if (term == 0) {
        return;
    }
    caller->forgotten += caller->terms[server] > 0 && term > caller->terms[server] + LOG_STARTS;
    caller->terms[server] = term;
}

void absences_sent(struct absences *absences, const struct node *client, const struct call *call) {
    struct world *world = absences->world;
    struct node *server = server_of(world, call->header.log);
    struct known_call *place;

    if (client->role != NODE_CLIENT || !server) {
        return;
    }
    struct caller *caller = caller_of(absences, client);
    term_look(caller, (size_t)(server - world->nodes), call->header.term);
    if (call->patience_ns == 0) {
        return;
    }
    place = place_of(caller, call);
    if (place) {
        *place = (struct known_call){.call = call,
                                     .log = call->header.log,
                                     .sequence = call->header.sequence,
                                     .server = server,
                                     .sent_ns = sim_now_ns(world->sim),
                                     .at_once = !node_is_up(server) &&
                                                caller->given_up[server - world->nodes] ==
                                                    server->incarnation};
    }
}

/* It is over: what that says of its server. */
static void call_over(struct absences *absences, struct caller *caller, struct known_call *known) {
    struct world *world = absences->world;
    size_t server = (size_t)(known->server - world->nodes);
    uint64_t down_ns = absences->down_ns[server];

    if (known->call->result == -ERR_AWAY && down_ns > 0 &&
        sim_now_ns(world->sim) - down_ns >= settled_ns(absences)) {
        caller->given_up[server] = known->server->incarnation;
        absences->given_up++;
        absences->at_once += known->at_once;
    }
    known->call = NULL;
}

static bool is_another(const struct known_call *known) {
    return known->call->header.log.value != known->log.value ||
           known->call->header.sequence != known->sequence;
}

static bool caller_look(struct absences *absences, const struct node *client, char failure[600]) {
    struct caller *caller = caller_of(absences, client);
    uint64_t now_ns = sim_now_ns(absences->world->sim);

    for (uint32_t i = 0; i < CALLS; i++) {
        struct known_call *known = &caller->calls[i];

        if (!known->call) {
            continue;
        }
        if (!list_contains(&known->call->rpc_node)) {
            call_over(absences, caller, known);
        } else if (is_another(known)) {
            known->call = NULL;
        } else if (client->is_stopped || node_is_up(known->server)) {
            known->at_once = false;
        } else if (known->at_once && now_ns - known->sent_ns > AT_ONCE_MS * NS_PER_MS) {
            (void)snprintf(
                failure, 600,
                "client %u waits %.3f s for target %u, which has been away for %.3f s, "
                "longer than it waits for anybody (%.3f s)",
                client->index, (double)(now_ns - known->sent_ns) / 1e9, known->server->target_id,
                (double)(now_ns - absences->down_ns[known->server - absences->world->nodes]) / 1e9,
                (double)absences->world->options.request_timeout_ns / 1e9);
            return false;
        }
    }
    return true;
}

bool absences_look(struct absences *absences, char failure[600]) {
    struct world *world = absences->world;
    bool is_good = true;

    for (uint32_t i = 0; i < world->node_count; i++) {
        bool is_up = node_is_up(&world->nodes[i]);

        absences->down_ns[i] = is_up                       ? 0
                               : absences->down_ns[i] == 0 ? sim_now_ns(world->sim)
                                                           : absences->down_ns[i];
    }
    for (uint32_t i = 0; i < world->options.client_count && is_good; i++) {
        is_good = caller_look(absences, &world->clients[i], failure);
    }
    return is_good;
}

uint32_t absences_forgotten(struct absences *absences, const struct node *client) {
    return caller_of(absences, client)->forgotten;
}

uint64_t absences_given_up(const struct absences *absences) {
    return absences->given_up;
}

uint64_t absences_at_once(const struct absences *absences) {
    return absences->at_once;
}
