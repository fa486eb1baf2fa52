/* The manager's actor: opening, dispatch, ticks, the end. */
#include "manager/manager_internal.h"
#include "manager/ended.h"
#include "manager/gather.h"
#include "manager/heard.h"
#include "manager/lives.h"
#include "manager/lose.h"
#include "manager/map_changes.h"
#include "manager/map_waits.h"
#include "manager/met.h"
#include "manager/rebuilt.h"
#include "manager/rebuilt_rows.h"
#include "manager/renew.h"
#include "manager/revoke.h"
#include "manager/slots.h"
#include "manager/signing.h"
#include "manager/spaces.h"
#include <assert.h>
#include <stdlib.h>

static void wake(void *context) {
    struct manager *manager = context;

    if (!atomic_exchange(&manager->wake_posted, true)) {
        actor_post(&manager->actor, &manager->wake);
    }
}

static void answer(struct manager *manager, struct call *call) {
    switch (call->header.opcode) {
    case OP_SESSION_BEGIN:
        manager_begin(manager, call);
        break;
    case OP_SESSION_RENEW:
        manager_renew(manager, call);
        break;
    case OP_SESSION_END:
        manager_end(manager, call);
        break;
    case OP_NODE_JOIN:
        manager_join(manager, call);
        break;
    case OP_KEY_REVOKE:
        manager_revoke(manager, call);
        break;
    case OP_KEY_RENEW:
        manager_renewals_take(manager, call);
        break;
    case OP_TARGET_LOSE:
        manager_lose(manager, call);
        break;
    case OP_LOG_STARTS:
        manager_lives_starts_get(manager, call);
        break;
    case OP_MAP_GET:
        manager_map_get(manager, call);
        break;
    case OP_MAP_WAIT:
        manager_map_wait(manager, call);
        break;
    case OP_MAP_CHANGES:
        manager_map_changes_get(manager, call);
        break;
    default:
        call_reply(call, -ERR_NOT_SUPPORTED);
    }
}

static void take_call(struct manager *manager, struct call *call) {
    if (manager->stopping) {
        call_reply(call, -ERR_CLOSED);
    } else if (!manager->loaded) {
        list_push_back(&manager->early_calls, &call->server_node);
    } else if (manager->failure < 0) {
        call_reply(call, manager->failure);
    } else {
        answer(manager, call);
    }
}

static void load_synced(struct kv_waiter *waiter, int result) {
    (void)result; /* kv_failure tells */
    CONTAINER_OF(waiter, struct manager, load_waiter)->load_waiting = false;
}

/* What the ring held beyond the disk log is on disk before anybody is told of it. */
static int load_sync(struct manager *manager) {
    int r = kv_failure(manager->kv);

    if (r < 0 || kv_position(manager->kv) == kv_synced_position(manager->kv)) {
        return r;
    }
    if (!manager->load_waiting) {
        manager->load_waiting = true;
        manager->load_waiter.done = load_synced;
        kv_sync(manager->kv, &manager->load_waiter, kv_position(manager->kv));
    }
    return -ERR_PENDING;
}

static int load_rows(struct manager *manager) {
    int r = manager->rows_loaded ? 0 : manager_rebuilt_write(manager);

    if (r == 0 && !manager->rows_loaded) {
        r = manager_slots_load(manager);
    }
    if (r == 0 && !manager->rows_loaded) {
        r = manager_map_load(manager);
    }

    if (r == 0 && !manager->rows_loaded) {
        r = manager_sessions_load(manager);
    }
    if (r == 0 && !manager->rows_loaded) {
        r = manager_lives_load(manager);
    }
    manager->rows_loaded = r == 0;
    return r;
}

/* Rows are read in the first steps, since a read may have to wait; none once the log stops. */
static void load_step(struct manager *manager) {
    if (manager->loaded || manager->stop_started) {
        return;
    }
    int r = load_rows(manager);
    r = r < 0 ? r : load_sync(manager);
    if (r == -ERR_PENDING) {
        return;
    }
    manager->loaded = true;
    manager->failure = r;
    if (r == 0) {
        manager_heard_map(manager);
        manager_losses_follow(manager);
        atomic_store(&manager->nameless_count, manager->sessions.nameless_count);
    }
    struct list_node *node;
    while ((node = list_pop_front(&manager->early_calls))) {
        take_call(manager, CONTAINER_OF(node, struct call, server_node));
    }
}

static void take_message(struct manager *manager, struct message *message) {
    switch (message->kind) {
    case CALL_MESSAGE_KIND:
        take_call(manager, CONTAINER_OF(message, struct call, message));
        break;
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case MANAGER_TICK:
        atomic_store(&manager->tick_posted, false);
        rpc_tick(manager->options.rpc);
        manager_give_up(manager);
        manager_map_waits_tick(manager);
        if (manager->loaded && !manager->stopping && manager->failure == 0) {
            manager_expire(manager);
            manager_renewals_tick(manager);
            manager_slots_tick(manager);
            manager_ended_tell(manager);
        }
        break;
    case MANAGER_WAKE:
        atomic_store(&manager->wake_posted, false);
        break;
    case MANAGER_QUIET:
        manager->is_quiet = true;
        manager_map_waits_close(manager);
        manager_gather_close(manager);
        break;
    case MANAGER_MET:
        manager_met_answer(manager, CONTAINER_OF(message, struct manager_met, message));
        break;
    case MANAGER_STOP:
        manager->stopping = true;
        manager_ended_cancel(manager);
        break;
    default:
        break;
    }
}

static void stopped(void *context, int result) {
    struct manager *manager = context;

    manager->stop_done(manager->stop_context, result);
}

/* A call that a target holds lies in our memory, so its answer is waited for. */
static void stop_step(struct manager *manager) {
    if (!manager->stopping || manager->stop_started || !manager_slots_stop(manager) ||
        manager_ended_is_telling(manager)) {
        return;
    }
    manager->stop_started = true;
    kv_stop_start(manager->kv, stopped, manager);
}

static void step(struct actor *actor, struct message *first) {
    struct manager *manager = CONTAINER_OF(actor, struct manager, actor);

    while (first) {
        struct message *message = first;

        first = message->next;
        take_message(manager, message);
    }
    load_step(manager);
    kv_step(manager->kv);
    load_step(manager); /* Its sync point may have ended. */
    if (manager->failure == 0) {
        manager->failure = kv_failure(manager->kv);
    }
    if (manager->failure < 0 || manager->stopping) {
        manager_refuse(manager, manager->failure < 0 ? manager->failure : -ERR_CLOSED);
        stop_step(manager);
    } else if (manager->loaded) {
        manager_lives_step(manager);
        manager_nodes_step(manager);
        manager_sessions_step(manager);
    }
}

static int take_memory(struct manager *manager) {
    const struct siphash_key no_key = {{0}}; /* It is empty until rows are loaded. */
    uint32_t sessions_max = manager->options.sessions_max;

    manager->map = calloc(1, sizeof *manager->map);
    manager->tellers = calloc(MAP_PLACES_MAX, sizeof *manager->tellers);
    if (!manager->map || !manager->tellers) {
        return -ERR_NO_MEMORY;
    }
    int r = session_table_init(&manager->sessions, sessions_max, sessions_max, no_key);
    r = r < 0 ? r : manager_map_changes_new(manager);
    r = r < 0 ? r : manager_map_waits_new(manager);
    r = r < 0 ? r : manager_slots_new(manager);
    r = r < 0 ? r : manager_heard_new(manager);
    r = r < 0 ? r : manager_lives_new(manager);
    r = r < 0 ? r : manager_signing_new(manager);
    r = r < 0 ? r : manager_renewals_new(manager);
    return r < 0 ? r : manager_spaces_new(manager);
}

int manager_open(const struct manager_options *options, struct manager **ret_manager,
                 char ret_problem[256]) {
    struct manager *manager = calloc(1, sizeof *manager);
    struct kv_options kv = options->kv;

    ret_problem[0] = '\0';
    if (!manager) {
        return -ERR_NO_MEMORY;
    }
    manager->options = *options;
    if (options->session_timeout_ns == 0) {
        manager->options.session_timeout_ns = MANAGER_TIMEOUT_DEFAULT_S * NS_PER_S;
    }
    if (options->renew_wait_ns == 0) {
        manager->options.renew_wait_ns = MANAGER_RENEW_WAIT_DEFAULT_S * NS_PER_S;
    }
    manager->env = options->env;
    manager->options.sessions_max =
        options->sessions_max > 0 ? options->sessions_max : MANAGER_SESSIONS_DEFAULT;
    list_init(&manager->begin_calls);
    list_init(&manager->early_calls);
    list_init(&manager->life_calls);
    list_init(&manager->living_calls);
    list_init(&manager->join_calls);
    list_init(&manager->joining_calls);
    list_init(&manager->revoke_calls);
    list_init(&manager->revoking_calls);
    list_init(&manager->renew_calls);
    list_init(&manager->renewing_calls);
    list_init(&manager->lose_calls);
    list_init(&manager->losing_calls);
    manager->tick.kind = MANAGER_TICK;
    manager->wake.kind = MANAGER_WAKE;
    manager->quiet.kind = MANAGER_QUIET;
    manager->stop.kind = MANAGER_STOP;
    ticket_signer_init(&manager->signer, options->keys);
    actor_init(&manager->actor, "manager", step);
    kv.env = options->env;
    kv.hooks = (struct kv_hooks){.wake = wake};
    kv.hook_context = manager;
    int r = take_memory(manager);
    if (r == 0) {
        cluster_map_copy(manager->map, options->rebuilt ? options->rebuilt->map : options->map);
        r = kv_open(&kv, &manager->kv, ret_problem);
    }
    if (r < 0) {
        manager_abandon(manager);
        return r;
    }
    *ret_manager = manager;
    return 0;
}

void manager_close(struct manager *manager) {
    assert(!manager || !manager->kv || kv_is_idle(manager->kv));
    manager_abandon(manager);
}

void manager_abandon(struct manager *manager) {
    if (manager) {
        kv_abandon(manager->kv);
        signer_deinit(&manager->signer);
        session_table_deinit(&manager->sessions);
        free(manager->tellers);
        free(manager->map);
        free(manager->next_map);
        manager_map_changes_free(manager);
        manager_map_waits_free(manager);
        manager_slots_free(manager);
        manager_heard_free(manager);
        manager_lives_free(manager);
        manager_signing_free(manager);
        manager_renewals_free(manager);
        manager_spaces_free(manager);
        free(manager);
    }
}

struct kv *manager_kv(struct manager *manager) {
    return manager->kv;
}

struct actor *manager_actor(struct manager *manager) {
    return &manager->actor;
}

void manager_tick(struct manager *manager) {
    if (!atomic_exchange(&manager->tick_posted, true)) {
        actor_post(&manager->actor, &manager->tick);
    }
}

void manager_quiet(struct manager *manager) {
    actor_post(&manager->actor, &manager->quiet);
}

void manager_stop_start(struct manager *manager, void (*done)(void *context, int result),
                        void *context) {
    manager->stop_done = done;
    manager->stop_context = context;
    actor_post(&manager->actor, &manager->stop);
}

const struct cluster_map *manager_map(const struct manager *manager) {
    return manager->map;
}

uint32_t manager_ending_count(const struct manager *manager) {
    return atomic_load_explicit(&manager->ending_count, memory_order_relaxed);
}

uint32_t manager_nameless_count(const struct manager *manager) {
    return atomic_load_explicit(&manager->nameless_count, memory_order_relaxed);
}

uint32_t manager_map_waits(const struct manager *manager) {
    return atomic_load_explicit(&manager->maps_waiting, memory_order_relaxed);
}

uint32_t manager_session_count(const struct manager *manager) {
    return manager->sessions.count;
}
