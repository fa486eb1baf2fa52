/* Joins that come close together make one version of the map.
 *
 *     joins      | | |  |   |  |  | |||||||||||||||||||||||||||||| |||||        |  |
 *     versions   ^ ^ ^  ^   ^  ^  ^ ^       ^       ^       ^       ^           ^  ^
 *                at once: AT_ONCE of them   then one a pause     at once again, a while later
 *
 * A version costs each node a message and a flush. So the pause is as long as there are nodes, up
 * to PAUSE_MAX_NS: of four it is less than a tick, which nobody notices, of a thousand that start
 * together few versions come. What is made for another reason (revoke.c, lose.c, spaces.c,
 * signing.c, slots.c) waits for nobody, and takes along what is gathered; so does a node that has
 * moved, as others wait for its address.
 *
 * It is a bucket of AT_ONCE tokens, which gets one back each pause: so a node that joins a quiet
 * cluster, which takes two or three versions, waits for none of them.
 *
 * Who asks waits meanwhile, unanswered: so nothing is promised that a crash could take back, and
 * nothing of this outlives a start. PAUSE_MAX_NS is less than they wait for an answer (5 s), and
 * than a life stands that says nothing (lives.c). */
#include "manager/gather.h"
#include "base/bug.h"

enum { AT_ONCE = 8 };
#define NODE_PAUSE_NS (20 * NS_PER_MS)
#define PAUSE_MAX_NS (3 * NS_PER_S)

static uint64_t pause_ns(const struct manager *manager) {
    uint64_t node_ns = manager->options.join_pause_ns;

    node_ns = node_ns > 0 ? node_ns : NODE_PAUSE_NS;
    return MIN(node_ns * manager->map->node_count, PAUSE_MAX_NS);
}

static uint32_t token_count(const struct manager *manager) {
    return manager->options.joins_at_once > 0 ? manager->options.joins_at_once : AT_ONCE;
}

static bool has_token(struct manager *manager) {
    struct manager_gather *gather = &manager->gather;
    uint64_t now_ns = env_now_ns(manager->env);

    while (gather->taken > 0 && now_ns - gather->back_ns >= pause_ns(manager)) {
        gather->taken--;
        gather->back_ns += pause_ns(manager);
    }
    return gather->taken < token_count(manager);
}

/* Others call it at an address where it is no more. */
static bool is_moved(const struct map_node *node, const struct node_join_request *request) {
    return node && request->ready && node->address[0] && !manager_address_is_told(node, request);
}

/* By a link that broke, or by one whose patience is over. */
static bool is_copy(const struct call *call, const struct call *other) {
    const struct node_join_request *a = &call->request.node_join;
    const struct node_join_request *b = &other->request.node_join;

    return a->key_high == b->key_high && a->key_low == b->key_low &&
           memcmp(call->life, other->life, sizeof call->life) == 0;
}

/* Within a process each call is there once, and in the memory of who awaits it. */
static void copy_discard(struct manager *manager, const struct call *call) {
    bool is_near = (call->life[0] | call->life[1]) == 0;
    struct list_node *node = is_near ? NULL : list_first(&manager->join_calls);

    while (node && !is_copy(call, CONTAINER_OF(node, struct call, server_node))) {
        node = list_next(&manager->join_calls, node);
    }
    if (node) {
        list_remove(node);
        call_discard(CONTAINER_OF(node, struct call, server_node));
    }
}

void manager_gather_join(struct manager *manager, struct call *call, const struct map_node *node) {
    struct manager_gather *gather = &manager->gather;

    copy_discard(manager, call);
    gather->is_urgent = is_moved(node, &call->request.node_join) ||
                        (gather->is_urgent && !list_is_empty(&manager->join_calls));
    list_push_back(&manager->join_calls, &call->server_node);
    if (!manager_gather_is_due(manager)) {
        atomic_fetch_add_explicit(&gather->joins, 1, memory_order_relaxed);
    }
}

bool manager_gather_is_due(struct manager *manager) {
    const struct manager_gather *gather = &manager->gather;

    if (list_is_empty(&manager->join_calls)) {
        return false;
    }
    if (gather->is_urgent || gather->is_closed) {
        return true;
    }
    return has_token(manager) && !(BUG(LEFT_JOINS) && manager_joins_gathered(manager) > 0);
}

/* One that could not wait takes what is left. */
void manager_gather_version(struct manager *manager) {
    struct manager_gather *gather = &manager->gather;

    if (gather->taken == 0) {
        gather->back_ns = env_now_ns(manager->env);
    }
    gather->taken = MIN(gather->taken + 1, token_count(manager));
}

void manager_gather_close(struct manager *manager) {
    manager->gather.is_closed = true;
}

uint64_t manager_joins_gathered(const struct manager *manager) {
    return atomic_load_explicit(&manager->gather.joins, memory_order_relaxed);
}
