/* The contract is in copies.h. */
#include "copies.h"
#include "life.h"
#include "member/registration.h"
#include "rpc/call_origin.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANCE = 3,
    COPIES = 3, /* as many as there are clients at least */
    DIRECTORIES_MAX = 24,
    PAUSE_MS = 200,
    ACT_MS = 800,
    PATIENCE_MS = WORLD_LIFE_STANDS_MS * 8 / 10, /* no answer comes behind the next life, but to a
                                                  * process that was stopped */
    STANDS_MS = WORLD_LIFE_STANDS_MS * 49 / 50,  /* the manager's clock may drift */
    DIES_EACH = 150,                             /* looks */
    KEY = 4711,
};

/* What is copied, and what a copy is of its own: number tells it from all that were there ever. */
struct directory {
    uint32_t number;
    uint32_t boots; /* of the machine */
    uint64_t term;  /* on disk */
    bool is_refused;
};

struct copy {
    struct copies *all;
    struct node *asker;
    bool exists;
    struct directory directory;
    /* The process. */
    bool runs;
    uint64_t process;     /* it is the so-manieth */
    uint64_t incarnation; /* of the asker */
    uint64_t started_ns;
    uint64_t place;
    struct wire_life life;
    struct registration registration;
    /* Its question, which may outlive it. */
    bool is_asking;
    bool is_forgotten; /* what it asked, as the manager that may have answered it is lost */
    uint64_t asking_process;
    uint64_t asking_ns;
    struct wire_life best_then; /* that had been registered when it was asked */
    struct call call;
    struct wire_life told;
    /* What was seen. */
    uint64_t sent_ns;  /* its last question */
    uint64_t heard_ns; /* when that was sent which was answered well last */
    uint64_t heard_place;
    uint64_t heard_term;
};

struct copies {
    struct world *world;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    bool is_due;
    bool is_ending;
    struct actor origins[COPIES];
    struct copy copies[COPIES];
    struct directory backup; /* number 0: none */
    uint32_t directories;
    uint64_t terms[DIRECTORIES_MAX + 1]; /* by number: the highest that was told to the manager */
    uint32_t first_target;               /* 0: no numbers yet */
    struct wire_life best;
    uint64_t made, refused, runs, moved;
    char failure[300];
};

static uint64_t now_of(const struct copies *all) {
    return sim_now_ns(all->world->sim);
}

static void fail(struct copies *all, const struct copy *copy, const char *what) {
    if (!all->failure[0]) {
        snprintf(all->failure, sizeof all->failure,
                 "copy %zu, directory %" PRIu32 ", term %" PRIu64 ": %s",
                 (size_t)(copy - all->copies), copy->directory.number, copy->life.term, what);
    }
}

static bool is_same(const struct wire_life *a, const struct wire_life *b) {
    return a->term == b->term && a->life_high == b->life_high && a->life_low == b->life_low;
}

/* A life at another place that the manager has heard before it registered this one. Whoever has a
 * lower term has been: behind a higher one nobody is heard any more. Who has a higher one was
 * registered later, which takes as long as this life stands; so it has answered before this answer
 * came only where that was read as late as that, by a process that was stopped. */
static bool is_heard_before(const struct copy *other, const struct copy *copy, uint64_t now_ns) {
    bool is_late = now_ns >= copy->asking_ns + STANDS_MS * NS_PER_MS;

    return other != copy && other->heard_ns > 0 && other->heard_place != copy->place &&
           (other->heard_term < copy->life.term || !is_late);
}

/* The manager has taken it for the life that serves. */
static void check_registered(struct copy *copy, bool is_first) {
    struct copies *all = copy->all;
    uint64_t now_ns = now_of(all);

    if (copy->life.term < copy->best_then.term ||
        (copy->life.term == copy->best_then.term && !is_same(&copy->life, &copy->best_then))) {
        fail(all, copy, "registered, but another of that term, or a higher one, was before");
    }
    for (size_t i = 0; is_first && i < COPIES; i++) {
        const struct copy *other = &all->copies[i];
        bool elsewhere = is_heard_before(other, copy, now_ns);

        if (elsewhere && now_ns < other->heard_ns + STANDS_MS * NS_PER_MS) {
            fail(all, copy, "registered, while the manager hears one at another place");
        }
        all->moved += elsewhere;
    }
    if (copy->life.term > all->best.term) {
        all->best = copy->life;
    }
    copy->heard_ns = copy->asking_ns;
    copy->heard_place = copy->place;
    copy->heard_term = copy->life.term;
}

static void check_refused(struct copy *copy) {
    struct copies *all = copy->all;
    bool explained = false;

    if (copy->registration.verdict == LIVES_RUNS) {
        for (size_t i = 0; i < COPIES; i++) {
            const struct copy *other = &all->copies[i];

            explained |= other != copy && other->sent_ns >= copy->started_ns;
        }
    } else {
        for (uint32_t i = 1; i <= all->directories; i++) {
            explained |= i != copy->directory.number && all->terms[i] >= copy->life.term;
        }
    }
    if (!explained) {
        fail(all, copy, "refused for a life that there is not");
    }
    all->refused++;
    all->runs += copy->registration.verdict == LIVES_RUNS;
    copy->directory.is_refused = true;
    copy->runs = false;
}

static void verdict_take(struct copy *copy, const struct node_join_reply *reply) {
    enum registration_stage before = copy->registration.stage;

    (void)registration_answer(&copy->registration, reply, now_of(copy->all));
    if (copy->registration.verdict == LIVES_NOT_TOLD) {
        fail(copy->all, copy, "nothing is said of its lives");
    } else if (copy->registration.verdict == LIVES_REGISTERED) {
        check_registered(copy, before != REGISTRATION_REGISTERED);
    } else if (copy->registration.stage == REGISTRATION_REFUSED) {
        check_refused(copy);
    }
}

static void answered(struct call *call) {
    struct copy *copy = call->context;
    struct copies *all = copy->all;
    bool is_ours = copy->runs && copy->asking_process == copy->process;
    int r = call->result;

    copy->is_asking = false;
    if (copy->is_forgotten) {
        return;
    }
    if (r == 0) {
        all->first_target = call->reply.node_join.first_target;
        if (is_ours && call->request.node_join.lives.size > 0) {
            verdict_take(copy, &call->reply.node_join);
        }
    } else if (r != -ERR_TIMED_OUT && r != -ERR_CLOSED && r != -ERR_IO && r != -ERR_NO_SPACE) {
        fail(all, copy, err_name(r));
    }
}

static void ask(struct copy *copy) {
    struct copies *all = copy->all;
    struct node *asker = copy->asker;

    copy->call =
        (struct call){.header = {.opcode = OP_NODE_JOIN, .log = LOG_MANAGER},
                      .request.node_join = {.key_high = KEY,
                                            .key_low = 1,
                                            .target_count = 1,
                                            .place = copy->place,
                                            .asked = copy->registration.asked},
                      .origin = &all->origins[copy - all->copies],
                      .done = answered,
                      .context = copy,
                      .deadline_ns = env_now_ns(asker->life->env) + PATIENCE_MS * NS_PER_MS};
    if (all->first_target != 0) {
        const struct target_id target = {all->first_target};

        copy->life.log = cluster_map_first_log(&all->world->map, target).value;
        copy->told = copy->life;
        copy->call.request.node_join.lives =
            (struct bytes){(const uint8_t *)&copy->told, sizeof copy->told};
        copy->sent_ns = now_of(all);
        all->terms[copy->directory.number] =
            MAX(all->terms[copy->directory.number], copy->life.term);
    }
    copy->is_asking = true;
    copy->is_forgotten = false;
    copy->asking_process = copy->process;
    copy->asking_ns = now_of(all);
    copy->best_then = all->best;
    node_enter(asker);
    call_start(node_rpc(asker), &copy->call);
    node_leave(asker);
}

/* The term is on disk before anybody hears of it. */
static void process_begin(struct copy *copy) {
    struct copies *all = copy->all;

    copy->runs = true;
    copy->process++;
    copy->started_ns = now_of(all);
    copy->place = (uint64_t)copy->directory.number << 32 | (copy->directory.boots + 1);
    copy->life = (struct wire_life){.term = ++copy->directory.term,
                                    .life_high = prng_next(&all->prng),
                                    .life_low = prng_next(&all->prng)};
    registration_begin(&copy->registration, now_of(all));
}

/* What a process asked that is gone is answered to nobody; nor are steps that it owed run. */
static void asker_look(struct copy *copy) {
    struct copies *all = copy->all;

    if (node_is_up(copy->asker) && copy->asker->incarnation == copy->incarnation) {
        return;
    }
    copy->runs = copy->is_asking = false;
    if (node_is_up(copy->asker)) {
        copy->incarnation = copy->asker->incarnation;
        copy->directory.boots += prng_chance(&all->prng, 1, 2);
        actor_init(&all->origins[copy - all->copies], "copies", call_origin_step);
    }
}

static void copy_go_on(struct copy *copy) {
    struct copies *all = copy->all;

    if (!copy->runs && !copy->is_asking && (all->is_ending || prng_chance(&all->prng, 1, 4))) {
        process_begin(copy);
    } else if (copy->runs && !all->is_ending && prng_chance(&all->prng, 1, DIES_EACH)) {
        copy->runs = false;
    }
    if (copy->runs) {
        (void)registration_tick(&copy->registration, now_of(all));
    }
    /* Only the first one has no numbers yet. */
    if (copy->runs && !copy->is_asking) {
        ask(copy);
    }
}

static void copy_run(void *context) {
    struct copy *copy = context;
    struct copies *all = copy->all;

    asker_look(copy);
    if (copy->exists && !copy->directory.is_refused && node_is_up(copy->asker) &&
        !copy->asker->is_stopped) {
        copy_go_on(copy);
    }
    sim_schedule(all->world->sim, NULL, prng_between(&all->prng, 1, PAUSE_MS) * NS_PER_MS, copy_run,
                 copy);
}

/* Over one that is refused, or where there was none. */
static void directory_put(struct copies *all, struct copy *copy, struct directory directory) {
    if (all->directories < DIRECTORIES_MAX && (!copy->exists || copy->directory.is_refused)) {
        directory.number = ++all->directories;
        directory.boots = 0;
        directory.is_refused = false;
        copy->directory = directory;
        copy->exists = true;
        all->made++;
    }
}

static void act(void *context) {
    struct copies *all = context;
    const struct copy *from = &all->copies[prng_below(&all->prng, COPIES)];
    struct copy *to = &all->copies[prng_below(&all->prng, COPIES)];

    if (all->is_ending) {
        return;
    }
    if (all->first_target != 0 && from->exists && from != to) {
        switch (prng_below(&all->prng, 3)) {
        case 0:
            all->backup = from->directory;
            break;
        case 1:
            if (all->backup.number != 0) {
                directory_put(all, to, all->backup);
            }
            break;
        default:
            directory_put(all, to, from->directory);
        }
    }
    sim_schedule(all->world->sim, NULL, prng_between(&all->prng, 1, ACT_MS) * NS_PER_MS, act, all);
}

struct copies *copies_new(struct world *world) {
    struct copies *all = calloc(1, sizeof *all);

    if (!all) {
        abort();
    }
    all->world = world;
    prng_init(&all->prng, world->options.seed ^ UINT64_C(0x636f70696573));
    all->is_due = prng_chance(&all->prng, 1, CHANCE);
    for (uint32_t i = 0; i < COPIES; i++) {
        all->copies[i] = (struct copy){.all = all, .asker = &world->clients[i]};
        actor_init(&all->origins[i], "copies", call_origin_step);
    }
    if (all->is_due) {
        all->copies[0].exists = true;
        all->copies[0].directory.number = ++all->directories;
        for (uint32_t i = 0; i < COPIES; i++) {
            copy_run(&all->copies[i]);
        }
        act(all);
    }
    return all;
}

void copies_free(struct copies *copies) {
    free(copies);
}

void copies_end(struct copies *copies) {
    copies->is_ending = true;
}

void copies_rebuilt(struct copies *copies, const struct cluster_map *map) {
    uint32_t first_target = 0;

    for (uint32_t i = 0; i < map->node_count; i++) {
        first_target = map->nodes[i].key[0] == KEY ? map->nodes[i].first_target : first_target;
    }
    copies->first_target = first_target;
    copies->best = (struct wire_life){0};
    for (size_t i = 0; i < COPIES; i++) {
        copies->copies[i].is_forgotten = true;
        copies->copies[i].heard_ns = 0;
    }
}

bool copies_are_done(const struct copies *copies) {
    uint32_t serving = 0;
    uint32_t others = 0;

    for (size_t i = 0; copies->is_due && i < COPIES; i++) {
        const struct copy *copy = &copies->copies[i];
        bool serves = copy->runs && copy->registration.stage == REGISTRATION_REGISTERED;

        serving += serves;
        others += copy->exists && !copy->directory.is_refused && !serves;
    }
    return !copies->is_due || (serving == 1 && others == 0);
}

const char *copies_failure(const struct copies *copies) {
    return copies->failure[0] ? copies->failure : NULL;
}

uint64_t copies_made(const struct copies *copies) {
    return copies->made;
}

uint64_t copies_refused(const struct copies *copies) {
    return copies->refused;
}

uint64_t copies_run(const struct copies *copies) {
    return copies->runs;
}

uint64_t copies_moved(const struct copies *copies) {
    return copies->moved;
}
