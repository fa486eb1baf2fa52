/* Calls that their callers have given up: those that wait here end with that, at a tick, and the
 * others are counted. What they set in motion goes on: an eviction to its end, a session that
 * nobody has heard of until it has been silent for too long, or its beginning is asked for
 * again. */
#include "manager/manager_internal.h"

/* How many wait on. */
static uint32_t list_give_up(struct list *calls, uint64_t now_ns) {
    uint32_t count = 0;

    for (struct list_node *node = list_first(calls), *next; node; node = next) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = call_given_up(call, now_ns);

        next = list_next(calls, node);
        if (r < 0) {
            list_remove(node);
            call_reply(call, r);
        }
        count += r == 0;
    }
    return count;
}

/* One whose end has no room for its record ends when there is; who asked for it is told so. */
static uint32_t session_give_up(struct manager_session *session, uint64_t now_ns, bool is_full) {
    int r = session->begin_call ? call_given_up(session->begin_call, now_ns) : 0;
    uint32_t count = list_give_up(&session->end_calls, now_ns);
    struct list_node *node;

    while (is_full && session->stage == STAGE_LIVE &&
           (node = list_pop_front(&session->end_calls))) {
        call_reply(CONTAINER_OF(node, struct call, server_node), -ERR_NO_SPACE);
        count--;
    }
    if (r < 0) {
        call_reply(TAKE_PTR(session->begin_call), r);
    }
    return count + (session->begin_call != NULL);
}

static uint32_t sessions_give_up(struct manager *manager, uint64_t now_ns, bool is_full) {
    struct session_table *table = &manager->sessions;
    const struct list *waiting[] = {&table->beginning, &table->ending, &table->marking,
                                    &table->telling};
    uint32_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
        for (struct manager_session *session = session_first(waiting[i]); session;
             session = session_next(waiting[i], session)) {
            count += session_give_up(session, now_ns, is_full);
        }
    }
    return count;
}

void manager_give_up(struct manager *manager) {
    struct list *calls[] = {
        &manager->early_calls,    &manager->begin_calls,    &manager->life_calls,
        &manager->living_calls,   &manager->join_calls,     &manager->joining_calls,
        &manager->revoke_calls,   &manager->revoking_calls, &manager->renew_calls,
        &manager->renewing_calls, &manager->lose_calls,     &manager->losing_calls};
    uint64_t now_ns = env_now_ns(manager->env);
    struct kv_counters counters;
    uint32_t count = 0;

    kv_counters_get(manager->kv, &counters);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        count += list_give_up(calls[i], now_ns);
    }
    count += sessions_give_up(manager, now_ns, counters.levels.full_ns > 0);
    manager_room_tell(&manager->room, &counters.levels, count);
}
