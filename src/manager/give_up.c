/* Calls that their callers have given up: those that wait here end with that, at a tick. What they
 * set in motion goes on: an eviction to its end, a session that nobody has heard of until it has
 * been silent for too long, or its beginning is asked for again. */
#include "manager/manager_internal.h"

static void list_give_up(struct list *calls, uint64_t now_ns) {
    for (struct list_node *node = list_first(calls), *next; node; node = next) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = call_given_up(call, now_ns);

        next = list_next(calls, node);
        if (r < 0) {
            list_remove(node);
            call_reply(call, r);
        }
    }
}

/* One whose end has no room for its record ends when there is; who asked for it is told so. */
static void session_give_up(struct manager_session *session, uint64_t now_ns, bool is_full) {
    int r = session->begin_call ? call_given_up(session->begin_call, now_ns) : 0;
    struct list_node *node;

    list_give_up(&session->end_calls, now_ns);
    while (is_full && session->stage == STAGE_LIVE &&
           (node = list_pop_front(&session->end_calls))) {
        call_reply(CONTAINER_OF(node, struct call, server_node), -ERR_NO_SPACE);
    }
    if (r < 0) {
        call_reply(TAKE_PTR(session->begin_call), r);
    }
}

void manager_give_up(struct manager *manager) {
    struct session_table *table = &manager->sessions;
    const struct list *waiting[] = {&table->beginning, &table->ending, &table->marking,
                                    &table->telling};
    uint64_t now_ns = env_now_ns(manager->env);
    struct kv_counters counters;

    kv_counters_get(manager->kv, &counters);
    list_give_up(&manager->early_calls, now_ns);
    list_give_up(&manager->begin_calls, now_ns);
    list_give_up(&manager->life_calls, now_ns);
    list_give_up(&manager->living_calls, now_ns);
    list_give_up(&manager->join_calls, now_ns);
    list_give_up(&manager->joining_calls, now_ns);
    list_give_up(&manager->revoke_calls, now_ns);
    list_give_up(&manager->revoking_calls, now_ns);
    list_give_up(&manager->renew_calls, now_ns);
    list_give_up(&manager->renewing_calls, now_ns);
    list_give_up(&manager->lose_calls, now_ns);
    list_give_up(&manager->losing_calls, now_ns);
    for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
        for (struct manager_session *session = session_first(waiting[i]); session;
             session = session_next(waiting[i], session)) {
            session_give_up(session, now_ns, counters.levels.full_ns > 0);
        }
    }
}
