/* Evictions: every target forgets a session, storage targets first, so that nothing can be written
 * any more when metadata targets ask how long its files are.
 *
 *     LIVE --flushed--> EVICTING --session_evict to each target, in turn--> gone, flushed
 *
 * A target that cannot be reached is asked again with each tick. After a restart all targets are
 * asked anew: they answer a second time as they did the first. */
#include "manager/manager_internal.h"

int eviction_begin(struct manager *manager, struct member *member) {
    enum member_state before = member->state;
    int r;

    if (before == MEMBER_EVICTING) {
        return 0;
    }
    member->state = MEMBER_EVICTING;
    r = store_member(manager, member);
    if (r) {
        member->state = before;
        return r;
    }
    member->position = manager->recorded;
    manager->sync_wanted = MAX(manager->sync_wanted, member->position);
    manager->counters.evictions++;
    return 0;
}

/* The number-th target in the order of eviction; NULL behind the last. */
static const struct map_target *eviction_target(const struct cluster_map *map, uint32_t number) {
    static const uint8_t kinds[] = {TARGET_OST, TARGET_MDT};

    for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
        for (uint32_t i = 0; i < map->target_count; i++) {
            if (map->targets[i].kind == kinds[kind] && number-- == 0) {
                return &map->targets[i];
            }
        }
    }
    return NULL;
}

static void eviction_answered(struct call *call) {
    struct member *member = CONTAINER_OF(call, struct member, call);
    int r = call->result;

    call_abandon(call);
    member->calling = false;
    /* A target that knows of a newer incarnation, or of none, has nothing to forget. */
    if (r == 0 || r == -ERR_UNKNOWN_SESSION || r == -ERR_OUTDATED || r == -ERR_FENCED) {
        member->target++;
    } else {
        member->resting = true;
    }
}

static void eviction_ask(struct manager *manager, struct member *member,
                         const struct map_target *target) {
    struct call *call = &member->call;

    member->calling = true;
    *call = (struct call){0};
    call->header.opcode = OP_SESSION_EVICT;
    call->header.target = target->id;
    call->request.session_evict.session = member->id;
    call->request.session_evict.incarnation = member->incarnation;
    call->origin = &manager->actor;
    call->done = eviction_answered;
    call_start(manager->options.rpc, call);
}

static void eviction_end(struct manager *manager, struct member *member) {
    struct list_node *node;

    if (store_member_gone(manager, member)) {
        member->resting = true;
        return;
    }
    while ((node = list_pop_front(&member->enders)) != NULL) {
        manager_answer_synced(manager, CONTAINER_OF(node, struct call, server_node),
                              manager->recorded);
    }
    members_remove(&manager->members, member);
}

static void eviction_step(struct manager *manager, struct member *member) {
    const struct map_target *target = eviction_target(manager->map, member->target);

    if (member->calling || member->resting || kv_synced_position(manager->kv) < member->position) {
        return;
    }
    if (target && manager->stage == MANAGER_SERVING) {
        eviction_ask(manager, member, target);
    } else {
        eviction_end(manager, member);
    }
}

static bool is_silent(const struct manager *manager, const struct member *member) {
    return member->state == MEMBER_LIVE &&
           manager->now_ns - member->renewed_ns >= manager->options.session_timeout_ns;
}

void evictions_step(struct manager *manager, bool ticked) {
    struct list_node *node = list_first(&manager->members.all);

    while (node) {
        struct member *member = CONTAINER_OF(node, struct member, node);

        node = list_next(&manager->members.all, node);
        if (ticked) {
            member->resting = false;
        }
        if (ticked && is_silent(manager, member) && eviction_begin(manager, member) == 0) {
            manager->counters.timeouts++;
        }
        if (member->state == MEMBER_EVICTING) {
            eviction_step(manager, member);
        }
    }
}
