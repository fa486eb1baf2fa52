/* The contract is in rebuilds.h. Everything is done between events: what is answered is only noted
 * within them. */
#include "rebuilds.h"
#include "env/sim_stream.h"
#include "layout/map_lost.h"
#include "kv/ended_list.h"
#include "life.h"
#include "node/rebuild_listing.h"
#include "rebuilds_aim.h"
#include "renewals.h"
#include "rpc/call_origin.h"
#include "store/store_format.h"
#include "stragglers.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Drawn so that no seed that regressions.txt had before there was this has one. */
#define LOT UINT64_C(0x7265627574e84c)

enum {
    CHANCE = 4,
    ONCE_CHANCE = 4,
    SEED_MOST = 3,
    AGAIN_AFTER = 200,   /* operations, between two */
    AIM_MS = 8000,       /* that a moment is looked for */
    SEEN_MS_LEAST = 500, /* until it is rebuilt: more than a packet is under way */
    SEEN_MS_MOST = 3000,
    PAUSE_MS = 300,  /* until all is asked anew */
    PATIENCE_S = 30, /* a page over the slowest of streams takes more than a node waits */
    SLACK_MS = 300,  /* clocks that drift, ticks, and the time between two looks */
};

enum stage { STAGE_WAITING, STAGE_ASKING, STAGE_OPENING };

/* A session of a client that runs, with a target that has its row. */
struct attached {
    uint64_t session; /* 0: none */
    uint64_t client_life;
    struct node *target;
    uint64_t target_life;
};

/* A number, and the process that it was given to. */
struct given_session {
    uint64_t session;
    uint32_t client;
    uint64_t life;
};

struct rebuilds {
    struct world *world;
    const struct losses *losses;
    struct newcomers *newcomers;
    struct copies *copies;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    uint32_t left;    /* that this seed is to have yet */
    uint64_t begins_at;
    enum rebuilds_amid kind;
    uint64_t any_ns; /* when any moment will do; 0: it is not looked for yet */
    enum stage stage;
    struct rebuilds_given given; /* by the logs that were lost */
    uint64_t asks_ns;            /* not before that */
    struct actor origin;
    uint64_t life; /* of the process that asks */
    struct call call;
    bool is_asking, is_answered;
    struct rebuilt *rebuilt; /* what is gathered; NULL: nothing yet */
    bool is_without;         /* somebody was lost by it */
    uint32_t target;         /* index of the one that is asked */
    struct rebuild_listing listing;
    bool is_listing;
    struct attached attached[WORLD_CLIENTS_MAX];
    uint64_t manager_life; /* incarnation of the one that opens with it */
    uint64_t opened_ns;
    bool is_heard; /* all have heard of its numbers; or it is the first one */
    struct given_session going_on[WORLD_CLIENTS_MAX]; /* session 0: none */
    struct given_session last[WORLD_CLIENTS_MAX];
    struct given_session *known;
    size_t known_count, known_room;
    uint64_t made, amid[AMID_KINDS], again, without, went_on, joined_anew;
    char failure[300];
};

static uint64_t now_of(const struct rebuilds *rebuilds) {
    return sim_now_ns(rebuilds->world->sim);
}

static struct node *manager_of(const struct rebuilds *rebuilds) {
    return rebuilds->world->manager;
}

/* The rarer ones more often; what is handed over is so early. */
static void moment_draw(struct rebuilds *rebuilds, uint64_t begins_at) {
    static const enum rebuilds_amid kinds[] = {AMID_BEGIN, AMID_BEGIN,    AMID_BEGIN,    AMID_BEGIN,
                                               AMID_END,   AMID_HANDOVER, AMID_HANDOVER, AMID_ANY};

    rebuilds->kind = kinds[prng_below(&rebuilds->prng, ARRAY_SIZE(kinds))];
    rebuilds->begins_at = rebuilds->kind == AMID_HANDOVER ? 1 : begins_at;
}

struct rebuilds *rebuilds_new(struct world *world, const struct rebuilds_told *told,
                              uint64_t operations) {
    struct rebuilds *rebuilds = calloc(1, sizeof *rebuilds);

    if (!rebuilds) {
        abort();
    }
    rebuilds->world = world;
    rebuilds->losses = told->losses;
    rebuilds->newcomers = told->newcomers;
    rebuilds->copies = told->copies;
    prng_init(&rebuilds->prng, world->options.seed ^ LOT);
    if (prng_chance(&rebuilds->prng, 1, CHANCE)) {
        rebuilds->left = prng_chance(&rebuilds->prng, 1, ONCE_CHANCE) ? 1 : SEED_MOST;
    }
    rebuilds->is_heard = true;
    moment_draw(rebuilds, prng_between(&rebuilds->prng, operations / 16, operations / 2));
    actor_init(&rebuilds->origin, "rebuilds", call_origin_step);
    return rebuilds;
}

static void gather_drop(struct rebuilds *rebuilds) {
    rebuild_listing_deinit(&rebuilds->listing);
    rebuilds->is_listing = rebuilds->is_answered = false;
    rebuilt_free(TAKE_PTR(rebuilds->rebuilt));
}

void rebuilds_free(struct rebuilds *rebuilds) {
    if (rebuilds) {
        gather_drop(rebuilds);
        free(rebuilds->known);
        free(rebuilds);
    }
}

static struct node *node_of_target(struct world *world, struct target_id target) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];

        if (node->role != NODE_CLIENT && node->target_id == target.value) {
            return node;
        }
    }
    return NULL;
}

/* One that is gone, and that the first node may not have heard of yet. */
static bool loss_is_unheard(const struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *node = &world->nodes[i];

        if (losses_has(rebuilds->losses, node) &&
            !cluster_map_target(world->mdts->map, (struct target_id){node->target_id})) {
            return true;
        }
    }
    return false;
}

/* The moment of the loss, looked for for a while. */
static bool is_moment(struct rebuilds *rebuilds) {
    struct node *manager = manager_of(rebuilds);
    uint64_t now_ns = now_of(rebuilds);

    if (!node_manager(manager)) {
        return false;
    }

    if (rebuilds->any_ns == 0) {
        rebuilds->any_ns = now_ns + AIM_MS * NS_PER_MS;
    }
    node_enter(manager);
    bool is_amid =
        rebuilds_is_loaded(node_manager(manager)) &&
        (now_ns >= rebuilds->any_ns || rebuilds_is_amid(node_manager(manager), rebuilds->kind));
    node_leave(manager);
    return is_amid;
}

static bool is_due(struct rebuilds *rebuilds, uint64_t submitted) {
    const struct node *manager = manager_of(rebuilds);

    return rebuilds->stage == STAGE_WAITING && rebuilds->left > 0 && rebuilds->is_heard &&
           submitted >= rebuilds->begins_at && node_is_up(manager) && !manager->is_stopped &&
           stragglers_are_over(rebuilds->world->stragglers) && !loss_is_unheard(rebuilds) &&
           is_moment(rebuilds);
}

static bool is_loaded(const struct rebuilds *rebuilds) {
    struct node *manager = manager_of(rebuilds);

    return rebuilds->stage == STAGE_OPENING && node_is_up(manager) &&
           manager->incarnation == rebuilds->manager_life && node_manager(manager) &&
           rebuilds_is_loaded(node_manager(manager));
}

bool rebuilds_are_due(struct rebuilds *rebuilds, uint64_t submitted) {
    return is_loaded(rebuilds) || is_due(rebuilds, submitted);
}

static void given_take(struct rebuilds *rebuilds) {
    struct node *manager = manager_of(rebuilds);
    struct rebuilds_given *given = &rebuilds->given;
    struct rebuilds_given now;

    node_enter(manager);
    rebuilds_given_get(node_manager(manager), &now);
    for (int kind = 0; kind < AMID_KINDS; kind++) {
        rebuilds->amid[kind] += rebuilds_is_amid(node_manager(manager), (enum rebuilds_amid)kind);
    }
    node_leave(manager);
    given->map_version = MAX(given->map_version, now.map_version);
    given->next_session = MAX(given->next_session, now.next_session);
    given->ended_number = MAX(given->ended_number, now.ended_number);
    /* That of one that was rebuilt comes to others only with its first hand-over. */
    given->handover = rebuilds->made == 0 ? now.handover : 0;
}

void rebuilds_begin(struct rebuilds *rebuilds) {
    rebuilds->left--;
    rebuilds->any_ns = 0;
    rebuilds->stage = STAGE_ASKING;
    rebuilds->asks_ns =
        now_of(rebuilds) + prng_between(&rebuilds->prng, SEEN_MS_LEAST, SEEN_MS_MOST) * NS_PER_MS;
    gather_drop(rebuilds);
}

static void fail(struct rebuilds *rebuilds, const char *what, int r) {
    snprintf(rebuilds->failure, sizeof rebuilds->failure, "the manager can't be rebuilt: %s: %s",
             what, err_name(r));
}

/* The newest of all that are named: metadata targets, and storage targets as they have heard of
 * keys. False: one of them does not tell now. */
static bool maps_gather(struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;
    struct rebuilt *rebuilt = rebuilds->rebuilt;

    for (uint32_t i = 0; i < rebuilt->map->target_count; i++) {
        const struct map_target *target = &rebuilt->map->targets[i];
        struct node *node = node_of_target(world, target->id);
        bool is_newer = false;

        if (target->state == TARGET_LOST || losses_has(rebuilds->losses, node)) {
            continue;
        }
        if (!node_is_up(node) || node->is_stopped) {
            return false;
        }
        const struct cluster_map *map = node->map ? node->map : renewals_heard(node);
        int r = map ? rebuilt_map_add(rebuilt, map, &is_newer) : 0;
        if (r < 0) {
            fail(rebuilds, sim_process_name(node->process), r);
            return false;
        }
        i = is_newer ? UINT32_MAX : i; /* From the first one on. */
    }
    return true;
}

/* Those that are gone for good. */
static bool losses_gather(struct rebuilds *rebuilds) {
    const struct cluster_map *map = rebuilds->rebuilt->map;
    int r = 0;

    rebuilds->is_without = false;
    for (uint32_t i = 0; r == 0 && i < map->target_count; i++) {
        const struct map_target target = map->targets[i];

        if (target.state != TARGET_LOST &&
            losses_has(rebuilds->losses, node_of_target(rebuilds->world, target.id))) {
            r = rebuilt_lose(rebuilds->rebuilt, target.node);
            rebuilds->is_without = true;
        }
    }
    if (r < 0) {
        fail(rebuilds, "a target that is gone", r);
    }
    return r == 0;
}

/* A row of a target that is open, as far as it is in memory. */
static int row_get(struct node *target, struct kv_key key, struct bytes *ret_value) {
    node_enter(target);
    int r = kv_get(life_kv(target->life), &key, ret_value);
    node_leave(target);
    return r;
}

static bool is_target(const struct node *node) {
    return (node->role == NODE_MDT || node->role == NODE_OST) && node_is_up(node) &&
           life_kv(node->life);
}

static bool has_row(struct node *target, uint64_t session) {
    struct bytes value;

    return row_get(target, store_owner_key(STORE_ROW_SESSION, session, 0), &value) == 0;
}

/* Its list of the ended has the session, or is not in memory. */
static bool may_name(struct node *target, uint64_t session) {
    struct kv_key head = store_owner_key(STORE_ROW_ENDED, 0, 0);
    struct kv_key stretch = store_owner_key(STORE_ROW_ENDED, 1 + session / ENDED_BITS, 0);
    struct ended_row row = {0};
    struct bytes value;
    int r = row_get(target, head, &value);

    if (r == 0 && value.size == sizeof row) {
        memcpy(&row, value.data, sizeof row);
    }
    if (r == -ERR_PENDING || session < row.lowest) {
        return true;
    }
    r = row_get(target, stretch, &value);
    size_t at = session % ENDED_BITS / 8;
    return r == -ERR_PENDING || (r == 0 && at < value.size && (value.data[at] >> session % 8 & 1));
}

/* Before anybody is asked. */
static void attached_note(struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *client = &world->clients[i];
        struct attached *attached = &rebuilds->attached[i];

        *attached = (struct attached){0};
        if (!node_client(client) || client_is_fenced(node_client(client))) {
            continue;
        }
        uint64_t session = client_session(node_client(client)).value;
        for (uint32_t j = 0; j < world->node_count && attached->session == 0; j++) {
            struct node *node = &world->nodes[j];
            const struct target_id id = {node->target_id};

            if (is_target(node) && cluster_map_target(rebuilds->rebuilt->map, id) &&
                has_row(node, session)) {
                *attached =
                    (struct attached){session, client->incarnation, node, node->incarnation};
            }
        }
    }
}

static void gather_begin(struct rebuilds *rebuilds) {
    int r = rebuilt_new(rebuilds->world->mdts->map, &rebuilds->rebuilt);

    if (r < 0) {
        abort();
    }
    rebuilds->target = 0;
    if (!maps_gather(rebuilds) || !losses_gather(rebuilds)) {
        gather_drop(rebuilds);
        return;
    }
    attached_note(rebuilds);
}

static void answered(struct call *call) {
    struct rebuilds *rebuilds = call->context;

    rebuilds->is_asking = false;
    rebuilds->is_answered = true;
}

static void ask(struct rebuilds *rebuilds) {
    struct node *asker = rebuilds->world->mdts;

    rebuilds->call.origin = &rebuilds->origin;
    rebuilds->call.done = answered;
    rebuilds->call.context = rebuilds;
    rebuilds->call.deadline_ns = env_now_ns(asker->life->env) + PATIENCE_S * NS_PER_S;
    rebuilds->is_asking = true;
    node_enter(asker);
    call_start(node_rpc(asker), &rebuilds->call);
    node_leave(asker);
}

/* Whoever is not there, or has no room, is asked again later; what makes no sense is wrong. */
static bool may_pass(int r) {
    return r == -ERR_TIMED_OUT || r == -ERR_AWAY || r == -ERR_CLOSED || r == -ERR_IO ||
           r == -ERR_NO_SPACE || r == -ERR_BUSY;
}

static void answer_take(struct rebuilds *rebuilds) {
    rebuilds->is_answered = false;
    int r = rebuild_listing_take(&rebuilds->listing, &rebuilds->call);
    if (r < 0 && !may_pass(r)) {
        fail(rebuilds, "what a target tells", r);
    } else if (r < 0) {
        if (r == -ERR_TIMED_OUT) { /* A page over slow streams, each of which is reset before. */
            sim_stream_faults(rebuilds->world->sim)->reset_per_million = 0;
        }
        gather_drop(rebuilds);
        rebuilds->asks_ns =
            now_of(rebuilds) + prng_between(&rebuilds->prng, 1, PAUSE_MS) * NS_PER_MS;
    }
}

/* The next call. False: all have told all. */
static bool next_ask(struct rebuilds *rebuilds) {
    const struct cluster_map *map = rebuilds->rebuilt->map;

    for (; rebuilds->target < map->target_count; rebuilds->target++) {
        const struct map_target *target = &map->targets[rebuilds->target];

        if (target->state == TARGET_LOST) {
            continue;
        }
        if (!rebuilds->is_listing &&
            rebuild_listing_init(&rebuilds->listing, rebuilds->rebuilt, target) < 0) {
            abort();
        }
        rebuilds->is_listing = true;
        if (rebuild_listing_next(&rebuilds->listing, &rebuilds->call)) {
            ask(rebuilds);
            return true;
        }
        rebuild_listing_deinit(&rebuilds->listing);
        rebuilds->is_listing = false;
    }
    return false;
}

static void numbers_check(struct rebuilds *rebuilds) {
    const struct rebuilds_given *given = &rebuilds->given;
    const struct rebuilt *rebuilt = rebuilds->rebuilt;
    const struct {
        const char *what;
        uint64_t goes_on, was;
    } rows[] = {{"versions of the map", rebuilt->map->version, given->map_version},
                {"sessions", rebuilt->next_session, given->next_session},
                {"ends", rebuilt->ended_number, given->ended_number},
                {"hand-overs", rebuilt->handover, given->handover}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].goes_on < rows[i].was) {
            snprintf(rebuilds->failure, sizeof rebuilds->failure,
                     "the manager that is rebuilt goes on at %s %" PRIu64
                     ", and the one that was lost had come to %" PRIu64,
                     rows[i].what, rows[i].goes_on, rows[i].was);
        }
    }
}

static const struct rebuilt_session *session_find(const struct rebuilds *rebuilds,
                                                  uint64_t session) {
    for (uint32_t i = 0; i < rebuilds->rebuilt->session_count; i++) {
        if (rebuilds->rebuilt->sessions[i].id.value == session) {
            return &rebuilds->rebuilt->sessions[i];
        }
    }
    return NULL;
}

/* Each of them was begun by a client, in a life that it has had. */
static void found_check(struct rebuilds *rebuilds) {
    const struct world *world = rebuilds->world;

    for (uint32_t i = 0; i < rebuilds->rebuilt->session_count; i++) {
        const struct rebuilt_session *session = &rebuilds->rebuilt->sessions[i];
        uint32_t client = session->node - CLIENT_NODE_FIRST;

        if (client >= world->options.client_count ||
            session->incarnation > world->clients[client].incarnation) {
            snprintf(rebuilds->failure, sizeof rebuilds->failure,
                     "session %" PRIu64 " is found, of node %" PRIu32 " and incarnation %" PRIu64
                     ", and nobody has begun it",
                     session->id.value, session->node, session->incarnation);
        }
    }
}

/* By any of those that are asked. */
static bool is_named(const struct rebuilds *rebuilds, uint64_t session) {
    struct world *world = rebuilds->world;
    bool named = false;

    for (uint32_t i = 0; i < world->node_count; i++) {
        named = named || (is_target(&world->nodes[i]) && may_name(&world->nodes[i], session));
    }
    return named;
}

/* What a target had when it was asked, and has not lost since, is found. */
static void attached_check(struct rebuilds *rebuilds) {
    for (uint32_t i = 0; i < rebuilds->world->options.client_count; i++) {
        const struct attached *attached = &rebuilds->attached[i];
        struct node *client = &rebuilds->world->clients[i];
        bool stands = attached->session != 0 && node_client(client) &&
                      client->incarnation == attached->client_life &&
                      client_session(node_client(client)).value == attached->session &&
                      !client_is_fenced(node_client(client)) && node_is_up(attached->target) &&
                      attached->target->incarnation == attached->target_life;

        if (stands && !session_find(rebuilds, attached->session) &&
            !is_named(rebuilds, attached->session)) {
            snprintf(rebuilds->failure, sizeof rebuilds->failure,
                     "session %" PRIu64 " of %s lives, %s has its row, and it is not found",
                     attached->session, sim_process_name(client->process),
                     sim_process_name(attached->target->process));
        }
    }
}

/* All have told: a manager begins with that. */
static void gathered(struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;
    struct node *manager = manager_of(rebuilds);
    int r = rebuilt_finish(rebuilds->rebuilt);

    if (r < 0) {
        fail(rebuilds, "numbers", r);
        return;
    }
    numbers_check(rebuilds);
    found_check(rebuilds);
    attached_check(rebuilds);
    rebuilds->joined_anew += newcomers_rebuilt(rebuilds->newcomers, rebuilds->rebuilt->map);
    copies_rebuilt(rebuilds->copies, rebuilds->rebuilt->map);
    renewals_rebuilt(world, rebuilds->rebuilt->map);
    node_wipe(manager);
    world->rebuilt = rebuilds->rebuilt;
    rebuilds->manager_life = manager->incarnation + 1;
    rebuilds->stage = STAGE_OPENING;
}

static void asking_go_on(struct rebuilds *rebuilds) {
    struct node *asker = rebuilds->world->mdts;

    /* What a process asked that is gone is answered to nobody; nor are steps that it owed run. */
    if (!node_is_up(asker) || asker->incarnation != rebuilds->life) {
        rebuilds->is_asking = false;
        gather_drop(rebuilds);
        actor_init(&rebuilds->origin, "rebuilds", call_origin_step);
        rebuilds->life = node_is_up(asker) ? asker->incarnation : 0;
    }
    if (rebuilds->is_asking || rebuilds->life == 0 || asker->is_stopped ||
        now_of(rebuilds) < rebuilds->asks_ns) {
        return;
    }
    if (rebuilds->is_answered) {
        answer_take(rebuilds);
    } else if (!rebuilds->rebuilt) {
        gather_begin(rebuilds);
    }
    if (rebuilds->rebuilt && !rebuilds->failure[0] && !next_ask(rebuilds)) {
        gathered(rebuilds);
    }
}

/* Sessions that it has, of clients that run. */
static void opened(struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;

    world->rebuilt = NULL;
    rebuilds->is_heard = false;
    rebuilds->opened_ns = now_of(rebuilds);
    rebuilds->stage = STAGE_WAITING;
    rebuilds->begins_at = 0;
    rebuilds->made++;
    rebuilds->without += rebuilds->is_without;
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *node = &world->clients[i];
        struct shoal_client *client = node_client(node);
        uint64_t session = client ? client_session(client).value : 0;
        bool goes_on = client && !client_is_fenced(client) && session_find(rebuilds, session);

        rebuilds->going_on[i] = (struct given_session){goes_on ? session : 0, i, node->incarnation};
        rebuilds->went_on += goes_on;
    }
}

/* It died before all was on its disk: what is there is no manager's. */
static bool has_died(const struct rebuilds *rebuilds) {
    const struct node *manager = manager_of(rebuilds);

    return rebuilds->stage == STAGE_OPENING && !node_is_up(manager) &&
           manager->incarnation >= rebuilds->manager_life;
}

static void opening_go_on(struct rebuilds *rebuilds) {
    if (has_died(rebuilds)) {
        rebuilds->world->rebuilt = NULL;
        rebuilds->again++;
        rebuilds->stage = STAGE_ASKING;
        gather_drop(rebuilds);
    } else if (is_loaded(rebuilds)) {
        opened(rebuilds);
    }
}

static void known_add(struct rebuilds *rebuilds, struct given_session given) {
    if (rebuilds->known_count == rebuilds->known_room) {
        rebuilds->known_room = rebuilds->known_room > 0 ? 2 * rebuilds->known_room : 64;
        rebuilds->known = realloc(rebuilds->known, rebuilds->known_room * sizeof *rebuilds->known);
        if (!rebuilds->known) {
            abort();
        }
    }
    for (size_t i = 0; i < rebuilds->known_count; i++) {
        const struct given_session *other = &rebuilds->known[i];

        if (other->session == given.session &&
            (other->client != given.client || other->life != given.life)) {
            snprintf(rebuilds->failure, sizeof rebuilds->failure,
                     "session %" PRIu64 " was given to client %" PRIu32 " and to client %" PRIu32,
                     given.session, other->client, given.client);
        }
    }
    rebuilds->known[rebuilds->known_count++] = given;
}

static void clients_look(struct rebuilds *rebuilds) {
    struct world *world = rebuilds->world;
    uint64_t until_ns =
        rebuilds->opened_ns + world->options.session_timeout_ns - SLACK_MS * NS_PER_MS;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *node = &world->clients[i];
        struct shoal_client *client = node_client(node);
        const struct given_session *goes_on = &rebuilds->going_on[i];

        if (!client) {
            continue;
        }
        const struct given_session given = {client_session(client).value, i, node->incarnation};
        if (given.session != 0 &&
            (given.session != rebuilds->last[i].session || given.life != rebuilds->last[i].life)) {
            rebuilds->last[i] = given;
            known_add(rebuilds, given);
        }
        /* By a ticket of a key that is gone it would be refused by any manager. */
        if (client_is_fenced(client) && given.session != 0 && given.session == goes_on->session &&
            given.life == goes_on->life && now_of(rebuilds) < until_ns && !world->rotates) {
            snprintf(rebuilds->failure, sizeof rebuilds->failure,
                     "session %" PRIu64 " of %s was found, and is over %.3f s later", given.session,
                     sim_process_name(node->process),
                     (double)(now_of(rebuilds) - rebuilds->opened_ns) / 1e9);
        }
    }
}

/* Before that its log is not lost again: what nobody has heard of would be given once more. */
static void heard_look(struct rebuilds *rebuilds) {
    const struct manager *manager = node_manager(manager_of(rebuilds));

    rebuilds->is_heard =
        rebuilds->is_heard ||
        (rebuilds->stage == STAGE_WAITING && manager && rebuilds_is_loaded(manager) &&
         rebuilds->world->mdts->map->version >= rebuilds->rebuilt->map->version &&
         manager_ending_count(manager) == 0);
}

bool rebuilds_look(struct rebuilds *rebuilds, uint64_t submitted) {
    if (rebuilds->failure[0]) {
        return false;
    }
    heard_look(rebuilds);
    if (rebuilds->stage == STAGE_ASKING) {
        asking_go_on(rebuilds);
    } else if (rebuilds->stage == STAGE_OPENING) {
        opening_go_on(rebuilds);
    }
    clients_look(rebuilds);
    if (rebuilds->begins_at == 0) {
        moment_draw(rebuilds, submitted + AGAIN_AFTER);
    }
    if (!is_due(rebuilds, submitted)) {
        return false;
    }
    given_take(rebuilds);
    return true;
}

bool rebuilds_has(const struct rebuilds *rebuilds, const struct node *node) {
    return node == manager_of(rebuilds) && (rebuilds->stage == STAGE_ASKING || has_died(rebuilds));
}

bool rebuilds_are_over(const struct rebuilds *rebuilds) {
    return rebuilds->stage == STAGE_WAITING;
}

const char *rebuilds_failure(const struct rebuilds *rebuilds) {
    return rebuilds->failure[0] ? rebuilds->failure : NULL;
}

void rebuilds_sum(const struct rebuilds *rebuilds, uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_REBUILT] = rebuilds->made;
    counts[TOTAL_REBUILT_BEGIN] = rebuilds->amid[AMID_BEGIN];
    counts[TOTAL_REBUILT_END] = rebuilds->amid[AMID_END];
    counts[TOTAL_REBUILT_HANDOVER] = rebuilds->amid[AMID_HANDOVER];
    counts[TOTAL_REBUILT_AGAIN] = rebuilds->again;
    counts[TOTAL_REBUILT_WITHOUT] = rebuilds->without;
    counts[TOTAL_REBUILT_JOINED] = rebuilds->joined_anew;
    counts[TOTAL_REBUILT_SESSIONS] = rebuilds->went_on;
}
