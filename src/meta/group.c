/* The group's actor: its step, its sync points, its beginning and end. */
#include "meta/eviction.h"
#include "layout/map_lost.h"
#include "layout/map_slots.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/leftovers.h"
#include "meta/open.h"
#include "meta/run.h"
#include "rpc/lost_logs.h"
#include <assert.h>
#include <stdlib.h>

void group_sync_want(struct group *group, uint64_t position) {
    group->sync_wanted = MAX(group->sync_wanted, position);
}

void group_answer(struct group *group, struct call *call, int result) {
    assert(!list_contains(&call->server_node));
    crossing_leave(group, call);
    group->counters.totals.old_maps += result == -ERR_STALE_MAP;
    call->result = result;
    list_push_back(&group->answered, &call->server_node);
}

void group_seal(struct group *group) {
    /* Each record of its would keep the log from ending. */
    if (group->stage != GROUP_STOPPING) {
        slots_stage(&group->slots, group->kv, group->numbers.directory_count);
    }
    numbers_stage(&group->numbers, group->kv);
    (void)(BUG(EARLY_REPLY) ? 0 : kv_seal(group->kv));
}

static void signal_post(struct group *group, struct signal *signal) {
    if (!atomic_exchange(&signal->posted, true)) {
        actor_post(&group->actor, &signal->message);
    }
}

static void wake_hook(void *context) {
    struct group *group = context;

    signal_post(group, &group->wake);
}

void group_again(struct group *group) {
    signal_post(group, &group->wake);
}

static void synced_hook(void *context, uint64_t synced) {
    struct group *group = context;

    (void)synced;
    group->synced_moved = true;
}

/* Nothing more is taken of the list of the ended: who tells it is told. */
static void ended_calls_answer(struct group *group, int result) {
    struct list_node *node;

    while ((node = list_pop_front(&group->ended.calls))) {
        group_answer(group, CONTAINER_OF(node, struct call, server_node), result);
    }
}

static void group_fail(struct group *group, int result) {
    if (group->stage != GROUP_FAILED) {
        group->stage = GROUP_FAILED;
        group->failure = result;
        ended_calls_answer(group, result);
        group->woken = true;
        group->moved = true;
    }
}

static void sync_done(struct kv_waiter *waiter, int result) {
    struct group *group = CONTAINER_OF(waiter, struct group, sync_waiter);

    assert(group->sync_waiting);
    group->sync_waiting = false;
    group->synced_moved = true;
    if (result < 0) {
        group_fail(group, result);
    }
}

/* One waiter at a time: who comes while it waits joins the next sync point. */
static void sync_ask(struct group *group) {
    if (group->sync_waiting || group->sync_wanted <= kv_synced_position(group->kv) ||
        group->stage == GROUP_FAILED) {
        return;
    }
    group->sync_waiting = true;
    group->sync_waiter.done = sync_done;
    kv_sync(group->kv, &group->sync_waiter, group->sync_wanted);
}

static void reply(struct group *group, struct call *call, int result, uint64_t now_ns) {
    operation_counters_record(group->counters.operations, call->header.opcode, result,
                              now_ns - call->started_ns);
    session_counters_record(call, result, now_ns - call->started_ns);
    /* Nobody waits for a commit: it is answered with the next sync point. */
    if (call->header.opcode != OP_CROSS_COMMIT) {
        slow_log_answer(&group->slow, call, result, now_ns);
    }
    call->server_term = group->term;
    call->server_epoch = group->numbers.epoch;
    call_reply(call, result);
}

static void answer_synced(struct group *group) {
    uint64_t synced = kv_synced_position(group->kv);
    struct list_node *node = list_first(&group->awaiting_sync);
    uint64_t now_ns = node ? env_now_ns(group->env) : 0;

    while (node) {
        struct list_node *next = list_next(&group->awaiting_sync, node);
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        if (group->stage == GROUP_FAILED || call->server_position <= synced) {
            list_remove(node);
            if (call->header.opcode == OP_SYNC) {
                call->reply.sync.synced_position = synced;
                group->promised_epoch = group->numbers.epoch;
            }
            reply(group, call, group->stage == GROUP_FAILED ? group->failure : call->result,
                  now_ns);
        }
        node = next;
    }
}

/* What ran and waits for its record to be durable: that goes on, but its caller is told that nobody
 * knows. */
static void list_give_up(struct group *group, struct list *held) {
    for (struct list_node *node = list_first(held), *next; node; node = next) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = call_given_up(call, group->now_ns);

        next = list_next(held, node);
        if (r < 0) {
            list_remove(node);
            reply(group, call, r, group->now_ns);
        }
    }
}

static void held_give_up(struct group *group) {
    struct ended *ended = &group->ended;
    const struct list_node *first = list_first(&ended->calls);

    list_give_up(group, &group->awaiting_sync);
    list_give_up(group, &ended->calls);
    if (list_first(&ended->calls) != first) {
        ended->work = (struct ended_work){0};
    }
    run_give_up(group);
}

/* A log that has stopped took the open record with it: what ran in this step did not happen. */
static void failure_check(struct group *group) {
    int failure = kv_failure(group->kv);

    if (failure < 0) {
        group_fail(group, failure);
    }
}

static void replies_leave(struct group *group) {
    uint64_t position = kv_position(group->kv);
    uint64_t now_ns = list_is_empty(&group->answered) ? 0 : env_now_ns(group->env);
    struct list_node *node;

    failure_check(group);

    while ((node = list_pop_front(&group->answered))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        call->server_position = position;
        reply(group, call, group->stage == GROUP_FAILED ? group->failure : call->result, now_ns);
    }
}

static void list_await_sync(struct group *group, struct list *answered) {
    struct list_node *node;

    while ((node = list_pop_front(answered))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        call->server_position = kv_position(group->kv);
        call->disk_ns = group->now_ns;
        list_push_back(&group->awaiting_sync, node);
    }
}

static void replies_await_sync(struct group *group) {
    if (!list_is_empty(&group->answered_after_sync)) {
        group_sync_want(group, kv_position(group->kv));
    }
    list_await_sync(group, &group->answered_after_sync);
    list_await_sync(group, &group->answered_at_sync);
}

static void stats_fill(struct group *group, struct group_stats *stats) {
    kv_counters_get(group->kv, &stats->kv);
    stats->inode_count = group->numbers.inode_count;
    stats->directory_count = group->numbers.directory_count;
    stats->slot_count = slots_mine(&group->slots);
    stats->slots_opened = group->slots.opened;
    stats->position = kv_position(group->kv);
    stats->synced_position = kv_synced_position(group->kv);
    stats->term = group->term;
    stats->session_count = group->sessions.count;
    stats->away_count = group->sessions.unattached_count;
    stats->open_count = group->opens.count;
    stats->opens_met = group->opens.shares.last_refused;
    stats->order_count = group->orders.busy_count;
    stats->parked_count = group->parking.count;
    stats->waiting_count = group->parking.count;
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        stats->waiting_count += list_count(&group->full[i]) + list_count(&group->arrived[i]);
    }
    stats->totals = group->counters.totals;
    if (stats->operations) {
        for (size_t i = 0; i < OPCODE_COUNT; i++) {
            stats->operations[i] = group->counters.operations[i];
        }
    }
    sessions_counters_get(&group->sessions, &stats->clients);
    stats->done(stats);
}

bool group_awaits(const struct group *group, struct session_id id) {
    const struct session *session = sessions_find(&group->sessions, id);

    return session && session->state == SESSION_LIVE && !session->attached;
}

static void kv_stopped(void *context, int result) {
    struct group *group = context;

    group->stop_done(group->stop_context, group->stage == GROUP_FAILED ? group->failure : result);
}

static uint32_t calls_out(const struct group *group) {
    return queue_calls_out(group) + settle_calls_out(&group->settle) + group->crossings.calls_out +
           group->promises.calls_out;
}

/* The log may end once nobody waits for a position in it and no call of ours is out. */
static void stop_step(struct group *group) {
    bool stopping = group->stop_done && !group->stop_started;

    if (!stopping || group->sync_waiting || !list_is_empty(&group->awaiting_sync) ||
        calls_out(group) > 0) {
        return;
    }
    assert(list_is_empty(&group->answered) && list_is_empty(&group->answered_after_sync));
    group->stop_started = true;
    kv_stop_start(group->kv, kv_stopped, group);
}

static void stop_begin(struct group *group) {
    group->stop_done = group->stop_asked;
    if (group->stage != GROUP_FAILED) {
        group->stage = GROUP_STOPPING;
        ended_calls_answer(group, -ERR_CLOSED);
    }
    queue_cancel(group);
    settle_cancel(&group->settle);
    crossings_cancel(&group->crossings);
    promises_cancel(&group->promises);
    group->woken = true;
    group->moved = true;
}

/* Groups keep their places in all versions. */
void group_map_read(struct group *group) {
    const struct cluster_map *map = group->map;
    uint32_t index = cluster_map_group_of(map, group->options.target);

    group->map_group = index < map->group_count ? index : MAP_GROUPS_MAX;
    for (uint32_t i = 0; i < map->group_count; i++) {
        group->group_is_lost[i] = cluster_map_group_is_lost(map, &map->groups[i]);
    }
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot += cluster_map_slots_alike(map, slot)) {
        if (map->slot_groups[slot] < map->group_count) {
            group->group_has_slots[map->slot_groups[slot]] = true;
        }
    }
    for (uint32_t i = 0; group->rpc && i < map->target_count; i++) {
        rpc_log_lose(group->rpc, cluster_map_lost_log(map, i));
    }
    promises_map_read(group);
}

bool group_knows_lost(const struct group *group, struct log_id log) {
    return group->rpc && lost_logs_have(rpc_lost_logs(group->rpc), log);
}

bool group_map_says_lost(const struct group *group, uint64_t log) {
    for (uint32_t i = 0; group->promises.losses > 0 && i < group->map->group_count; i++) {
        if (group->map->groups[i].log.value == log) {
            return group->group_is_lost[i];
        }
    }
    return false;
}

bool group_log_is_lost(const struct group *group, uint64_t log) {
    return group_knows_lost(group, (struct log_id){log}) || group_map_says_lost(group, log);
}

bool group_is_lost_itself(const struct group *group) {
    return (group->map_group < MAP_GROUPS_MAX && group->group_is_lost[group->map_group]) ||
           group_knows_lost(group, kv_log_id(group->kv));
}

static void map_take(struct group *group) {
    struct cluster_map *map = atomic_exchange(&group->given_map, NULL);

    if (!map || map->version <= group->map->version) {
        free(map);
        return;
    }
    free(group->own_map);
    group->own_map = map;
    group->map = map;
    group_map_read(group);
    group->orders.ticked = true;
    group->settle.ticked = true;
}

static void take_in(struct group *group, struct message *message) {
    switch (message->kind) {
    case CALL_MESSAGE_KIND:
        run_arrived(group, CONTAINER_OF(message, struct call, message));
        break;
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case GROUP_TICK:
        atomic_store(&group->tick.posted, false);
        group->orders.ticked = true;
        group->settle.ticked = true;
        ost_peers_tick(group);
        held_give_up(group);
        crossings_tick(group);
        promises_tick(group);
        turns_tick(group);
        slow_log_tick(&group->slow, group->now_ns);
        room_tick(group);
        open_shares_tell(group);
        if (group->rpc) {
            rpc_tick(group->rpc);
        }
        break;
    case GROUP_WAKE:
        atomic_store(&group->wake.posted, false);
        group->woken = true;
        break;
    case GROUP_GO_ON:
        atomic_store(&group->go_on.posted, false);
        break;
    case GROUP_MAP:
        atomic_store(&group->map_given.posted, false);
        map_take(group);
        break;
    case GROUP_STATS:
        stats_fill(group, CONTAINER_OF(message, struct group_stats, message));
        break;
    case GROUP_STOP:
        stop_begin(group);
        break;
    default:
        assert(message->kind == GROUP_STOP); /* No one sends another kind. */
    }
}

/* The group's own work: goes on as far as it can without waiting. */
static void jobs_step(struct group *group) {
    if (group->stage == GROUP_LOADING) {
        char problem[256];
        int r = load_step(group, problem);

        if (r < 0 && r != -ERR_PENDING) {
            group_fail(group, r);
        } else if (r == 0) {
            assert(group->load_stage == LOAD_DONE && group->parking.count == 0);
            group->stage = GROUP_SERVING;
        }
    }
    if (group->stage == GROUP_SERVING) {
        ended_step(group);
        fences_step(group);
        eviction_step(group);
        sweep_step(group);
        leftovers_step(group);
        settle_step(group);
        queue_step(group);
        crossings_step(group);
        promises_step(group);
    }
}

static void calls_run(struct group *group) {
    enum run_what what = (group->woken ? RUN_ROWS : 0) | (group->moved ? RUN_GROUP : 0);

    if (group->stage == GROUP_LOADING) {
        return;
    }
    group->woken = false;
    group->moved = false;
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        run_class(group, (enum message_class)i, what);
    }
    if (run_yielded(group)) {
        signal_post(group, &group->go_on);
    }
}

static void group_step(struct actor *actor, struct message *first) {
    struct group *group = CONTAINER_OF(actor, struct group, actor);

    group->now_ns = env_now_ns(group->env);
    group->wall_ns = MAX(group->wall_ns, env_wall_ns(group->env));
    while (first) {
        struct message *message = first;

        first = first->next;
        take_in(group, message);
    }
    kv_step(group->kv);
    do {
        if (group->synced_moved) {
            group->synced_moved = false;
            slots_synced(&group->slots, kv_synced_position(group->kv));
            if (numbers_synced(&group->numbers, kv_synced_position(group->kv))) {
                group->moved = true;
            }
            answer_synced(group);
        }
        jobs_step(group);
        calls_run(group);
        group_seal(group);
        replies_leave(group);
        replies_await_sync(group);
        answer_synced(group);
        sync_ask(group);
        stop_step(group);
        kv_step(group->kv);
        /* A start that waits for a row clears nothing: that is seen to when it is there. */
    } while ((group->moved && group->stage != GROUP_LOADING) || group->synced_moved);
    assert(list_is_empty(&group->answered) && list_is_empty(&group->answered_after_sync) &&
           list_is_empty(&group->answered_at_sync));
}

static void signal_init(struct signal *signal, enum group_message kind) {
    signal->message = (struct message){.kind = (uint16_t)kind, .message_class = MESSAGE_CONTROL};
    atomic_init(&signal->posted, false);
}

static int take_memory(struct group *group) {
    const struct group_options *options = &group->options;

    int r = sessions_init(&group->sessions, options->sessions_max);
    r = r < 0 ? r : opens_init(&group->opens, options->opens_max);
    r = r < 0 ? r : fences_init(&group->fences);
    r = r < 0 ? r : ost_peers_init(&group->ost_peers);
    r = r < 0 ? r : queue_init(&group->orders, group);
    return r < 0 ? r : settle_init(&group->settle, group);
}

static void group_init(struct group *group, const struct group_options *options) {
    group->options = *options;
    group->options.sessions_max = options->sessions_max ? options->sessions_max : SESSIONS_DEFAULT;
    group->options.opens_max = options->opens_max ? options->opens_max : OPENS_DEFAULT;
    group->options.kv.env = options->env;
    group->options.kv.hooks = (struct kv_hooks){.wake = wake_hook, .synced = synced_hook};
    group->options.kv.hook_context = group;
    group->options.move_refusals =
        options->move_refusals ? options->move_refusals : MOVE_REFUSALS_MAX;
    group->options.crossings_max = options->crossings_max ? options->crossings_max : CROSSINGS_MAX;
    group->options.settles_later_max =
        options->settles_later_max ? options->settles_later_max : SETTLES_LATER_MAX;
    group->options.listing_step = options->listing_step ? options->listing_step : LISTING_STEP;
    group->env = options->env;
    group->map = options->map;
    group->rpc = options->rpc;
    group->slow = (struct slow_log){.limit_ns = options->slow_request_ns,
                                    .target = options->target,
                                    .log = options->kv.log,
                                    .log_context = options->kv.log_context};
    ticket_signer_init(&group->ticket_signer, options->keys);
    signer_init(&group->signer, options->keys, SIGNER_OF_CAPABILITIES, 1);
    actor_init(&group->actor, "group", group_step);
    signal_init(&group->tick, GROUP_TICK);
    signal_init(&group->wake, GROUP_WAKE);
    signal_init(&group->go_on, GROUP_GO_ON);
    signal_init(&group->map_given, GROUP_MAP);
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        list_init(&group->full[i]);
        list_init(&group->arrived[i]);
    }
    parking_init(&group->parking);
    ended_init(&group->ended);
    stakes_init(&group->stakes);
    crossings_init(&group->crossings, group);
    promises_init(&group->promises, group);
    list_init(&group->answered);
    list_init(&group->answered_after_sync);
    list_init(&group->answered_at_sync);
    list_init(&group->awaiting_sync);
    list_init(&group->yielded);
}

int group_open(const struct group_options *options, struct group **ret_group,
               char ret_problem[256]) {
    struct group *group = calloc(1, sizeof *group);

    ret_problem[0] = '\0';
    if (!group) {
        return -ERR_NO_MEMORY;
    }
    group_init(group, options);
    int r = take_memory(group);
    r = r < 0 ? r : kv_open(&group->options.kv, &group->kv, ret_problem);
    if (r == 0) {
        windows_init(&group->sessions.windows, kv_outcomes_max(group->kv),
                     group->options.sessions_max);
    }
    r = r < 0 ? r : start_read(group, ret_problem);
    if (r < 0) {
        group_abandon(group);
        return r;
    }
    *ret_group = group;
    return 0;
}

struct kv *group_kv(struct group *group) {
    return group->kv;
}

const struct group_totals *group_totals(const struct group *group) {
    return &group->counters.totals;
}

struct actor *group_actor(struct group *group) {
    return &group->actor;
}

void group_tick(struct group *group) {
    signal_post(group, &group->tick);
}

int group_map_set(struct group *group, const struct cluster_map *map) {
    struct cluster_map *copy = malloc(sizeof *copy);

    if (!copy) {
        return -ERR_NO_MEMORY;
    }
    cluster_map_copy(copy, map);
    free(atomic_exchange(&group->given_map, copy));
    signal_post(group, &group->map_given);
    return 0;
}

void group_stats_start(struct group *group, struct group_stats *stats) {
    stats->message = (struct message){.kind = GROUP_STATS, .message_class = MESSAGE_CONTROL};
    actor_post(&group->actor, &stats->message);
}

void group_stop_start(struct group *group, void (*done)(void *context, int result), void *context) {
    group->stop_asked = done;
    group->stop_context = context;
    group->stop = (struct message){.kind = GROUP_STOP, .message_class = MESSAGE_CONTROL};
    actor_post(&group->actor, &group->stop);
}

void group_close(struct group *group) {
    assert(!group || !group->kv || kv_is_idle(group->kv));
    assert(!group || !group->kv || calls_out(group) == 0);
    group_abandon(group);
}

void group_abandon(struct group *group) {
    if (!group) {
        return;
    }
    kv_abandon(group->kv);
    crossings_deinit(&group->crossings);
    promises_deinit(&group->promises);
    settle_deinit(&group->settle);
    fences_deinit(&group->fences);
    queue_deinit(&group->orders);
    ost_peers_deinit(&group->ost_peers);
    opens_deinit(&group->opens);
    sessions_deinit(&group->sessions);
    signer_deinit(&group->signer);
    signer_deinit(&group->ticket_signer);
    free(group->own_map);
    free(atomic_load(&group->given_map));
    free(group);
}
