/* One story from beginning to end. */
#include "story_player.h"
#include "holds.h"
#include "kv/kv_mem.h"
#include "kv/log_format.h"
#include "layout/layout.h"
#include "meta/crossing_internal.h"
#include "meta/rows.h"
#include "newcomers.h"
#include "pools.h"
#include "shares.h"
#include "story_lines.h"
#include "strays.h"
#include "whole.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    DATA_BYTES = 200000,
    STEP_S = 30,
    WAIT_MS = 3000,
    TIMEOUT_MS = 20000,
    SLICE_MS = 50,
    SLICES = STEP_S * 1000 / SLICE_MS,
    NAMES_MAX = 32,
    PLACES_TRIED = 64,
    PER_MILLION = 1000000,
    NODES_REACHED = 2,
};

/* A client, which asks one thing at a time. */
struct hand {
    struct player *player;
    struct shoal_request request;
    struct step asked;
    struct shoal_file *file; /* that it has open */
    uint64_t ino;            /* of the file that it has opened last */
    uint64_t asked_ns, answered_ns;
    bool answered;
    uint8_t data[DATA_BYTES];
};

struct named {
    const char *name;
    uint64_t ino;
};

struct player {
    const struct story *story;
    struct world *world;
    FILE *trace;
    bool is_quiet; /* nothing goes into it */
    struct hand hands[WORLD_CLIENTS_MAX];
    struct named names[NAMES_MAX]; /* as they were first */
    uint32_t name_count;
    const struct step *step;
    uint64_t base; /* what was counted when the step began */
    uint16_t awaited;
    bool is_sent;
    uint16_t held;
    uint64_t held_ns;
    struct cluster_map *map; /* that was kept */
    struct newcomers *newcomers;
    char problem[STORY_PROBLEM_BYTES];
};

static void *allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

static struct node *node_of(struct world *world, enum story_node which) {
    return which >= ON_CLIENT    ? &world->clients[which - ON_CLIENT]
           : which == ON_MANAGER ? world->manager
           : which >= ON_OST     ? &world->osts[which - ON_OST]
                                 : &world->mdts[which - ON_MDT];
}

static void be_quiet(struct player *player, bool is_quiet) {
    player->is_quiet = is_quiet;
    player->world->options.tell = is_quiet ? NULL : player->trace;
    sim_trace_to(player->world->sim, is_quiet ? NULL : player->trace);
}

__attribute__((format(printf, 2, 3))) static void trace_tell(const struct player *player,
                                                             const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    if (!player->is_quiet) {
        (void)vfprintf(player->trace, format, arguments);
    }
    va_end(arguments);
}

static bool wait_for_ns(struct player *player, uint64_t time_ns, bool (*until)(void *context),
                        void *context) {
    struct sim *sim = player->world->sim;

    return sim_run_until(sim, sim_now_ns(sim) + time_ns, until, context) == SIM_DONE;
}

static bool wait_for(struct player *player, bool (*until)(void *context), void *context) {
    return wait_for_ns(player, STEP_S * NS_PER_S, until, context);
}

static bool run_ms(struct player *player, uint64_t time_ms) {
    return !wait_for_ns(player, time_ms * NS_PER_MS, NULL, NULL);
}

/* Each request as it leaves: how much later it is to come. */
static uint64_t request_sent(void *context, const struct call *call) {
    struct player *player = context;
    uint16_t opcode = call->header.opcode;

    player->is_sent = player->is_sent || opcode == player->awaited;
    return opcode == player->held ? player->held_ns : 0;
}

static bool is_sent(void *context) {
    return ((struct player *)context)->is_sent;
}

/* Who asks. */

static void answered(struct shoal_request *request) {
    struct hand *hand = request->context;

    hand->answered = true;
    hand->answered_ns = sim_now_ns(hand->player->world->sim);
}

static bool is_answered(void *context) {
    return ((struct hand *)context)->answered;
}

static int hand_interrupted(struct shoal_request *request) {
    const struct hand *hand = request->context;
    uint64_t gone_ns = hand->asked_ns + hand->asked.gone_ms * NS_PER_MS;

    return sim_now_ns(hand->player->world->sim) >= gone_ns ? SHOAL_ABANDONED : 0;
}

static bool have_sessions(void *context) {
    struct player *player = context;
    struct world *world = player->world;
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        count += node_client(&world->clients[i]) != NULL;
    }
    return count == world->options.client_count;
}

static const struct named *name_find(const struct player *player, const char *name) {
    for (uint32_t i = 0; i < player->name_count; i++) {
        if (strcmp(player->names[i].name, name) == 0) {
            return &player->names[i];
        }
    }
    return NULL;
}

/* NULL: the root. */
static uint64_t ino_of(const struct player *player, const char *name) {
    const struct named *named = name ? name_find(player, name) : NULL;

    assert(named || !name);
    return named ? named->ino : SHOAL_INO_ROOT;
}

static void name_keep(struct player *player, const char *name, uint64_t ino) {
    if (!name_find(player, name)) {
        assert(player->name_count < NAMES_MAX);
        player->names[player->name_count++] = (struct named){name, ino};
    }
}

static bool opens(const struct step *step) {
    return step->operation == SHOAL_CREATE || step->operation == SHOAL_OPEN;
}

static struct shoal_request request_of(const struct player *player, struct hand *hand,
                                       const struct step *step) {
    struct shoal_request request = {
        .operation = step->operation,
        .ino = step->name ? ino_of(player, step->in)
               : step->of ? ino_of(player, step->of)
                          : hand->ino,
        .name = step->name,
        .name_bytes = step->name ? strlen(step->name) : 0,
        .new_ino = ino_of(player, step->new_in),
        .new_name = step->new_name,
        .new_name_bytes = step->new_name ? strlen(step->new_name) : 0,
        .file = step->name || step->of ? NULL : hand->file,
        .mode = step->mode ? step->mode : 0644,
        .flags = opens(step) ? SHOAL_OPEN_READ | SHOAL_OPEN_WRITE : 0,
        .offset = step->offset,
        .data = hand->data,
        .size = step->size,
        .done = answered,
        .interrupted = step->gone_ms > 0 ? hand_interrupted : NULL,
        .context = hand,
    };

    if (step->operation == SHOAL_WRITE) {
        memset(hand->data, step->byte, step->size);
    } else if (step->operation == SHOAL_SETATTR) {
        request.set = step->mode ? SHOAL_SET_MODE : SHOAL_SET_SIZE;
        request.attributes.mode = step->mode;
        request.attributes.size = step->size;
    }
    return request;
}

static bool is_as_written(const struct hand *hand, const struct step *step) {
    if (hand->request.result != (int64_t)step->size) {
        return false;
    }
    for (size_t i = 0; i < step->size; i++) {
        if (hand->data[i] != step->byte) {
            return false;
        }
    }
    return true;
}

/* The first client needs no name: most stories have no other. */
static void line_begin(const struct player *player, char mark, uint32_t client) {
    trace_tell(player, "%c ", mark);
    if (client > 0) {
        trace_tell(player, "client%" PRIu32 " ", client);
    }
}

static void hand_begin(struct player *player, const struct step *step) {
    struct hand *hand = &player->hands[step->client];
    struct node *client = &player->world->clients[step->client];

    hand->player = player;
    hand->answered = false;
    hand->asked = *step;
    hand->asked_ns = sim_now_ns(player->world->sim);
    hand->request = request_of(player, hand, step);
    line_begin(player, '>', step->client);
    trace_tell(player, "%s %s %s %" PRIu64 "\n", step->verb, step->name ? step->name : "",
               step->new_name ? step->new_name : "", step->size);
    node_enter(client);
    shoal_submit(node_client(client), &hand->request);
    node_leave(client);
}

static void answer_keep(struct player *player, struct hand *hand) {
    const struct shoal_request *request = &hand->request;
    const struct step *step = &hand->asked;
    bool names = step->operation == SHOAL_LOOKUP || step->operation == SHOAL_MKDIR ||
                 step->operation == SHOAL_CREATE;

    if (step->operation == SHOAL_RELEASE) {
        hand->file = NULL;
    } else if (request->result == 0 && opens(step)) {
        hand->file = request->file;
        hand->ino = request->attributes.ino;
    }
    if (request->result == 0 && names) {
        name_keep(player, step->name, request->attributes.ino);
    }
}

static bool is_as_told(struct player *player, const struct hand *hand) {
    const struct step *step = &hand->asked;
    uint64_t took_ms = (hand->answered_ns - hand->asked_ns) / NS_PER_MS;
    const struct shoal_request *request = &hand->request;

    if (step->ms > 0 && took_ms > step->ms) {
        snprintf(player->problem, sizeof player->problem,
                 "%s %s has taken %" PRIu64 " ms, may take %" PRIu64, step->verb,
                 step->name ? step->name : "", took_ms, step->ms);
        return false;
    }
    if (step->told > 0 && request->result == 0 && request->attributes.size != step->told) {
        snprintf(player->problem, sizeof player->problem,
                 "%s is told a size of %" PRIu64 ", it is %" PRIu64, step->verb,
                 request->attributes.size, step->told);
        return false;
    }
    return (request->result < 0) == step->fails &&
           (step->operation != SHOAL_READ || is_as_written(hand, step));
}

static bool hand_end(struct player *player, uint32_t client) {
    struct hand *hand = &player->hands[client];

    if (!wait_for(player, is_answered, hand)) {
        return false;
    }
    line_begin(player, '<', client);
    trace_tell(player, "%" PRId64 "\n", hand->request.result);
    answer_keep(player, hand);
    return is_as_told(player, hand);
}

static bool hand_ask(struct player *player, const struct step *step) {
    hand_begin(player, step);
    return hand_end(player, step->client);
}

/* Where a target's part of a file begins is drawn, as are groups of directories: it is made until
 * it is where the story needs it. */

static bool is_placed(const struct player *player, enum story_node where, uint64_t ino) {
    struct world *world = player->world;
    struct node *node = node_of(world, where);
    struct pool_version pool;

    if (node->role == NODE_MDT) {
        return world_mdt_of(world, ino) == node;
    }
    struct layout layout = {.pool_version = world->map.pool_count,
                            .chunk_bytes = world->options.chunk_bytes,
                            .seed = (uint32_t)ino,
                            .stripe_count = STRIPE_ALL};
    if (!cluster_map_pool(&world->map, layout.pool_version, &pool)) {
        return false;
    }
    const struct map_chain *chain = cluster_map_chain(&world->map, layout_chain(&layout, &pool, 0));
    return chain && chain->members[0].value == node->target_id;
}

/* False: it cannot be made, or not be removed again. */
static bool place_try(struct player *player, const struct step *step, bool *ret_placed) {
    bool is_file = node_of(player->world, step->node)->role == NODE_OST;
    const struct step make = {.operation = is_file ? SHOAL_CREATE : SHOAL_MKDIR,
                              .verb = "",
                              .name = step->name,
                              .in = step->in,
                              .mode = is_file ? 0644 : 0755};
    const struct step close = {.operation = SHOAL_RELEASE, .verb = ""};
    const struct step remove = {.operation = is_file ? SHOAL_UNLINK : SHOAL_RMDIR,
                                .verb = "",
                                .name = step->name,
                                .in = step->in};

    if (!hand_ask(player, &make)) {
        return false;
    }
    *ret_placed = is_placed(player, step->node, player->hands[0].request.attributes.ino);
    if (*ret_placed) {
        return true;
    }
    player->name_count--;
    /* Targets for which much is under way are not drawn for a while. */
    return (!is_file || hand_ask(player, &close)) && hand_ask(player, &remove) &&
           run_ms(player, SLICE_MS);
}

static bool place_find(struct player *player, const struct step *step) {
    bool goes_on = true;
    bool placed = false;

    trace_tell(player, "> %s is made on %s\n", step->name,
               sim_process_name(node_of(player->world, step->node)->process));
    be_quiet(player, true);
    for (int i = 0; i < PLACES_TRIED && goes_on && !placed; i++) {
        goes_on = place_try(player, step, &placed);
    }
    be_quiet(player, false);
    return placed;
}

/* What befalls nodes. */

static void trace_node(struct player *player, const char *what, const struct node *node,
                       const struct node *other) {
    trace_tell(player, "> %s %s%s%s\n", what, sim_process_name(node->process),
               other ? " from " : "", other ? sim_process_name(other->process) : "");
}

static void links_cut(struct player *player, struct node *node, const struct node *to, bool both) {
    trace_node(player, both ? "splits" : "keeps what leaves", node, to);
    world_cut(player->world, node, to);
    if (both) {
        world_cut(player->world, to, node);
    }
}

static void node_isolate(struct player *player, struct node *node) {
    struct world *world = player->world;

    trace_node(player, "cuts off", node, NULL);
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (&world->nodes[i] != node) {
            world_cut(world, node, &world->nodes[i]);
            world_cut(world, &world->nodes[i], node);
        }
    }
}

static void disk_slow(struct player *player, struct node *node, uint64_t time_ms) {
    struct sim_faults *faults = sim_process_faults(node->process);

    trace_node(player, time_ms > 0 ? "slows the disk of" : "hurries the disk of", node, NULL);
    faults->slow_per_million = time_ms > 0 ? PER_MILLION : 0;
    faults->slow_ns = time_ms * NS_PER_MS;
}

static bool log_flip(struct player *player, struct node *node) {
    trace_tell(player, "> flips a bit of %s's log\n", sim_process_name(node->process));
    return sim_disk_flip_bit(node->process, "kv/log", (uint64_t)DISK_LOG_REGION_START * 8);
}

static bool row_damage(struct player *player) {
    struct kv_key key = key_inode((struct ino){player->hands[0].ino});

    trace_tell(player, "> damages the row of an inode\n");
    return kv_mem_store_damage(player->world->mdts->store, &key) == 0;
}

static bool is_refused(struct player *player, struct node *node) {
    char problem[256];
    int r = node_try(node, problem);

    trace_tell(player, "< %s: %s\n", err_name(r), problem);
    return r == -ERR_CORRUPT;
}

/* Moments, and what has been. */

static bool is_promised(const struct group *group) {
    struct list_node *first = list_first(&group->promises.prepared);

    return first &&
           CONTAINER_OF(first, struct promise, node)->position <= kv_synced_position(group->kv);
}

static bool is_so(void *context) {
    const struct player *player = context;
    struct world *world = player->world;
    struct node *node = node_of(world, player->step->node);
    const struct group *group = node->role == NODE_MDT ? node_group(node) : NULL;

    switch (player->step->state) {
    case IS_PROMISED:
        return group && is_promised(group);
    case IS_DECIDED:
        return group && !list_is_empty(&group->crossings.decided);
    case IS_KEPT:
        return group && group->counters.totals.promises_kept > player->base;
    case IS_ENDED:
        return group && group->crossings.count == 0;
    case IS_GIVEN:
        return group && slots_mine(&group->slots) < SLOT_COUNT;
    case IS_EVICTED:
        return world_evictions(world) > 0;
    case IS_LISTED:
        return group && group->sessions.evicting_count + group->counters.totals.evictions > 0;
    case IS_GROWN:
        return node->map && node->map->pool_count > 1;
    case ARE_REACHED:
        return newcomers_registered(player->newcomers) >= NODES_REACHED;
    }
    return false;
}

static bool state_await(struct player *player, const struct step *step) {
    struct node *node = node_of(player->world, step->node);
    const struct group *group = node->role == NODE_MDT ? node_group(node) : NULL;

    player->base = group ? group->counters.totals.promises_kept : 0;
    return wait_for(player, is_so, player);
}

static bool message_await(struct player *player, uint16_t opcode) {
    player->awaited = opcode;
    player->is_sent = false;
    return wait_for(player, is_sent, player);
}

static uint64_t under_way(struct world *world) {
    uint64_t count = 0;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        const struct group *group = node_group(&world->mdts[i]);

        count += group ? group->crossings.count : 0;
    }
    return count;
}

static uint64_t counter_of(const struct world *world, enum story_count what) {
    switch (what) {
    case COUNT_EVICTED:
        return world->hearing_sum.silent_evicted;
    case COUNT_HELD:
        return world->hearing_sum.silent_held;
    case COUNT_CROSSINGS:
        return world->group_sum.crossings;
    case COUNT_AGAIN:
        return world->group_sum.crossings_again;
    case COUNT_GONE:
        return world->group_sum.promises_gone;
    case COUNT_FOUND:
        return world->group_sum.promises_found;
    case COUNT_RESENT:
        return world->link_sum.again;
    case COUNT_WRITES:
        return world->ost_sum.writes;
    case COUNT_UNDER_WAY:
        break;
    }
    return 0;
}

/* Sums are of lives that are over: those of the living are added for a moment. */
static uint64_t counted(struct player *player, enum story_count what) {
    struct world *world = player->world;

    if (what == COUNT_UNDER_WAY) {
        return under_way(world);
    }
    struct world *kept = allocate(sizeof *kept);
    *kept = *world;
    world_sum(world);
    uint64_t count = counter_of(world, what);
    *world = *kept;
    free(kept);
    return count;
}

static bool count_check(struct player *player, const struct step *step) {
    uint64_t count = counted(player, step->count);

    if (count < step->least || count > step->most) {
        snprintf(player->problem, sizeof player->problem,
                 "step %zu counts %" PRIu64 ", must be %" PRIu64 " to %" PRIu64,
                 (size_t)(step - player->story->steps) + 1, count, step->least, step->most);
        return false;
    }
    return true;
}

/* Nodes that join. */

static bool nodes_start(struct player *player) {
    struct world *world = player->world;

    for (uint32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];

        if (!node_is_absent(node) && node->incarnation == 0 && !node_start(node, UINT64_MAX)) {
            snprintf(player->problem, sizeof player->problem, "%s", world->failure);
            return false;
        }
    }
    return true;
}

static bool all_are_numbered(const struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (node_is_absent(&world->nodes[i])) {
            return false;
        }
    }
    return true;
}

static bool nodes_join(struct player *player) {
    trace_tell(player, "> nodes join\n");
    player->newcomers = newcomers_new(player->world, player->world->options.seed);
    for (int i = 0; i < SLICES && !all_are_numbered(player->world); i++) {
        (void)run_ms(player, SLICE_MS);
    }
    return all_are_numbered(player->world) && nodes_start(player);
}

static bool have_joined(struct player *player) {
    return newcomers_are_done(player->newcomers) &&
           shares_are_dealt(player->world, player->problem) && pools_are_settled(player->world);
}

static bool nodes_joined(struct player *player) {
    const char *failure = NULL;
    bool done = false;

    newcomers_end(player->newcomers);
    for (int i = 0; i < SLICES && !done && !player->problem[0]; i++) {
        (void)run_ms(player, SLICE_MS);
        failure = newcomers_failure(player->newcomers);
        done = failure || have_joined(player);
    }
    if (failure || (!done && !player->problem[0])) {
        snprintf(player->problem, sizeof player->problem, "%s",
                 failure ? failure : "slots are not dealt as the map says");
    }
    return !player->problem[0];
}

/* In the end. */
static void whole_await(struct player *player) {
    char left[200];

    be_quiet(player, true);
    for (int i = 0; i < SLICES && !strays_are_settled(player->world, left); i++) {
        (void)run_ms(player, SLICE_MS);
    }
    if (!strays_are_settled(player->world, left)) {
        snprintf(player->problem, sizeof player->problem,
                 "opens, orders or halves are left after %d s: %s", STEP_S, left);
    } else if (whole_check(player->world, player->problem)) {
        holds_check(player->world, STEP_S, player->problem);
    }
}

static bool map_step(struct player *player, enum step_kind kind, struct node *node) {
    if (kind == STEP_KEEP_MAP) {
        player->map = allocate(sizeof *player->map);
        *player->map = *node->map;
    } else {
        trace_node(player, "puts an old map back to", node, NULL);
        *node->map = *player->map;
    }
    return true;
}

static bool node_step(struct player *player, const struct step *step, struct node *node) {
    struct world *world = player->world;

    switch (step->kind) {
    case STEP_KILL:
        node_kill(node);
        return true;
    case STEP_POWER:
        node_power(node);
        return true;
    case STEP_START:
        return node_start(node, UINT64_MAX);
    case STEP_STOP:
        trace_node(player, "stops", node, NULL);
        node_stop(node);
        return true;
    case STEP_GO_ON:
        trace_node(player, "continues", node, NULL);
        node_go_on(node);
        return true;
    case STEP_CUT:
    case STEP_SPLIT:
        links_cut(player, node, node_of(world, step->to), step->kind == STEP_SPLIT);
        return true;
    case STEP_ALONE:
        node_isolate(player, node);
        return true;
    case STEP_SLOW:
        disk_slow(player, node, step->ms);
        return true;
    case STEP_FLIP:
        return log_flip(player, node);
    case STEP_REFUSED:
        return is_refused(player, node);
    default:
        return map_step(player, step->kind, node);
    }
}

static bool step_play(struct player *player, const struct step *step) {
    struct hand *hand = &player->hands[step->client];

    switch (step->kind) {
    case STEP_ASK:
        return hand_ask(player, step);
    case STEP_BEGIN:
        hand_begin(player, step);
        return true;
    case STEP_END:
        return hand_end(player, step->client);
    case STEP_WAITS:
        return !hand->answered;
    case STEP_PLACE:
        return place_find(player, step);
    case STEP_HEAL:
        trace_tell(player, "> heals\n");
        world_heal(player->world);
        return true;
    case STEP_HOLD:
        player->held = step->opcode;
        player->held_ns = step->ms * NS_PER_MS;
        return true;
    case STEP_RUN:
        return run_ms(player, step->ms);
    case STEP_WAIT:
        return run_ms(player, WAIT_MS);
    case STEP_SENT:
        return message_await(player, step->opcode);
    case STEP_UNTIL:
        return state_await(player, step);
    case STEP_COUNT:
        return count_check(player, step);
    case STEP_JOIN:
        return nodes_join(player);
    case STEP_JOINED:
        return nodes_joined(player);
    case STEP_DAMAGE:
        return row_damage(player);
    case STEP_NONE:
        return false;
    default:
        return node_step(player, step, node_of(player->world, step->node));
    }
}

static void story_run(struct player *player) {
    if (!nodes_start(player)) {
        return;
    }
    if (!wait_for(player, have_sessions, player)) {
        snprintf(player->problem, sizeof player->problem, "the client gets no session");
        return;
    }
    sim_trace_to(player->world->sim, player->trace);
    for (size_t i = 0; i < STORY_STEPS_MAX; i++) {
        const struct step *step = &player->story->steps[i];

        if (step->kind == STEP_NONE) {
            break;
        }
        player->step = step;
        if (!step_play(player, step)) {
            size_t used = strlen(player->problem);

            snprintf(player->problem + used, sizeof player->problem - used,
                     "%sstep %zu went wrong (%" PRId64 ")", used > 0 ? "; " : "", i + 1,
                     player->hands[step->client].request.result);
            return;
        }
    }
    if (player->story->is_whole) {
        whole_await(player);
    }
}

static uint64_t timeout_ns(uint64_t time_ms) {
    return (time_ms > 0 ? time_ms : TIMEOUT_MS) * NS_PER_MS;
}

static struct world_options options_of(const struct story *story, FILE *tell) {
    return (struct world_options){
        .seed = 1,
        .mdt_count = MAX(story->mdt_count, 1U),
        .ost_count = MAX(story->ost_count, 1U),
        .client_count = MAX(story->client_count, 1U),
        .late_mdt = story->late_mdt,
        .late_ost = story->late_ost,
        .sync_interval_ns = NS_PER_S,
        .checkpoint_ns = story->checkpoint_ns,
        .ring_bytes = 128 * KIB,
        .log_rings = 8,
        .data_bytes_max = 16 * MIB,
        .chunk_bytes = 64 * KIB,
        .session_timeout_ns = timeout_ns(story->session_ms),
        .request_timeout_ns = timeout_ns(story->request_ms),
        .schedule_ns_max = NS_PER_US,
        .streams = story->streams,
        .lane_connect_ns = 2 * NS_PER_S,
        .lane_silent_ns = NS_PER_S,
        .lane_idle_ns = 60 * NS_PER_S,
        .tell = tell,
    };
}

char *story_tell(const struct story *story, char problem[STORY_PROBLEM_BYTES]) {
    struct player *player = allocate(sizeof *player);
    char *trace = NULL;
    size_t size;

    player->trace = open_memstream(&trace, &size);
    const struct world_options options = options_of(story, player->trace);
    player->story = story;
    player->world = world_new(&options);
    player->world->sent = request_sent;
    player->world->sent_context = player;
    story_run(player);
    sim_trace_to(player->world->sim, NULL);
    world_free(player->world);
    newcomers_free(player->newcomers);
    fclose(player->trace);
    char *kept = story_lines(trace, story->is_brief);
    free(trace);
    free(player->map);
    memcpy(problem, player->problem, sizeof player->problem);
    free(player);
    return kept;
}
