/* The manager's actor: its step, what callers ask, its beginning and end. */
#include "manager/manager.h"
#include "manager/manager_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SESSIONS_DEFAULT = 4096,
    TIMEOUT_DEFAULT_S = 30,
    SESSIONS_LOW = 256,
    /* Of one change: a row and what stands around it. */
    RECORD_BYTES = 512
};

static void post_once(struct manager *manager, atomic_bool *posted, struct message *message) {
    if (!atomic_exchange(posted, true)) {
        actor_post(&manager->actor, message);
    }
}

static void wake_hook(void *context) {
    struct manager *manager = context;

    post_once(manager, &manager->wake_posted, &manager->wake);
}

static void manager_fail(struct manager *manager, int result) {
    if (manager->stage != MANAGER_FAILED) {
        manager->stage = MANAGER_FAILED;
        manager->failure = result;
    }
}

static void sync_done(struct kv_waiter *waiter, int result) {
    struct manager *manager = CONTAINER_OF(waiter, struct manager, waiter);

    manager->waiting = false;
    if (result) {
        manager_fail(manager, result);
    }
    wake_hook(manager);
}

void manager_answer_synced(struct manager *manager, struct call *call, uint64_t position) {
    call->server_position = position;
    manager->sync_wanted = MAX(manager->sync_wanted, call->server_position);
    list_push_back(&manager->answered, &call->server_node);
}

static void answers_leave(struct manager *manager) {
    uint64_t synced = kv_synced_position(manager->kv);
    struct list_node *node = list_first(&manager->answered);

    while (node) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        bool failed = manager->stage == MANAGER_FAILED;

        node = list_next(&manager->answered, node);
        if (failed || call->server_position <= synced) {
            list_remove(&call->server_node);
            call_reply(call, failed ? manager->failure : 0);
        }
    }
}

static void sync_ask(struct manager *manager) {
    if (!manager->waiting && manager->stage != MANAGER_FAILED &&
        manager->sync_wanted > kv_synced_position(manager->kv)) {
        manager->waiting = true;
        manager->waiter.done = sync_done;
        kv_sync(manager->kv, &manager->waiter, manager->sync_wanted);
    }
}

/* Numbers are drawn only from what is known to be reserved on disk. */
static void numbers_step(struct manager *manager) {
    bool low = manager->session_usable - manager->session_next < SESSIONS_LOW;

    if (kv_synced_position(manager->kv) >= manager->reserved_position) {
        manager->session_usable = manager->session_reserved;
    }
    if (low && manager->session_usable == manager->session_reserved &&
        kv_admit(manager->kv, KV_CLASS_CONTROL, RECORD_BYTES, 0) && store_reserve(manager) == 0) {
        manager->sync_wanted = MAX(manager->sync_wanted, manager->reserved_position);
    }
}

static void origin_hash(const struct manager *manager, struct bytes origin, uint64_t ret_hash[2]) {
    for (uint64_t i = 0; i < 2; i++) {
        struct siphash_key key = {
            {manager->map->name_hash_key[0] ^ i, manager->map->name_hash_key[1]}};

        ret_hash[i] = siphash(&key, origin.data, origin.size);
    }
}

static bool same_origin(const struct member *member, uint32_t node, const uint64_t origin[2]) {
    return member->node_id == node && member->origin[0] == origin[0] &&
           member->origin[1] == origin[1];
}

/* One more session: 0 when it is recorded, -ERR_BUSY when that has to wait. */
static int begin_record(struct manager *manager, struct call *call, const uint64_t origin[2]) {
    const struct session_begin_request *asked = &call->request.session_begin;
    struct member *member;
    int r;

    if (manager->session_next >= manager->session_usable) {
        return -ERR_PENDING;
    }
    member = members_add(&manager->members, manager->session_next);
    if (!member) {
        return -ERR_BUSY;
    }
    member->manager = manager;
    member->node_id = asked->node;
    member->incarnation = asked->incarnation;
    member->origin[0] = origin[0];
    member->origin[1] = origin[1];
    member->state = MEMBER_LIVE;
    member->renewed_ns = manager->now_ns;
    r = store_member(manager, member);
    if (r) {
        members_remove(&manager->members, member);
        return -ERR_PENDING;
    }
    member->position = manager->recorded;
    manager->session_next++;
    manager->counters.begins++;
    call->reply.session_begin.session = member->id;
    call->reply.session_begin.map_version = manager->map->version;
    manager_answer_synced(manager, call, member->position);
    return 0;
}

/* -ERR_PENDING: a predecessor is still there. A second copy of a begin that was carried out finds
 * its own session. */
static int begin_run(struct manager *manager, struct call *call) {
    const struct session_begin_request *asked = &call->request.session_begin;
    struct list_node *node = list_first(&manager->members.all);
    uint64_t origin[2];
    bool predecessor = false;

    if (asked->incarnation == 0 || asked->origin.size == 0) {
        return -ERR_INVALID;
    }
    origin_hash(manager, asked->origin, origin);
    for (; node; node = list_next(&manager->members.all, node)) {
        struct member *member = CONTAINER_OF(node, struct member, node);

        if (!same_origin(member, asked->node, origin)) {
            continue;
        }
        if (member->state == MEMBER_LIVE && member->incarnation == asked->incarnation) {
            call->reply.session_begin.session = member->id;
            call->reply.session_begin.map_version = manager->map->version;
            manager_answer_synced(manager, call, member->position);
            return 0;
        }
        predecessor = true;
        if (eviction_begin(manager, member)) {
            break; /* No room in the log now. */
        }
    }
    return predecessor ? -ERR_PENDING : begin_record(manager, call, origin);
}

static bool same_begin(const struct call *a, const struct call *b) {
    const struct session_begin_request *left = &a->request.session_begin;
    const struct session_begin_request *right = &b->request.session_begin;

    return left->node == right->node && left->incarnation == right->incarnation &&
           left->origin.size == right->origin.size && left->origin.size > 0 &&
           memcmp(left->origin.data, right->origin.data, left->origin.size) == 0;
}

/* A network may bring a request twice: the copy goes, the first one is answered. */
static bool begin_is_copy(const struct manager *manager, const struct call *call) {
    const struct list_node *node = list_first(&manager->begins);

    for (; node; node = list_next(&manager->begins, node)) {
        if (same_begin(call, CONTAINER_OF(node, struct call, server_node))) {
            return true;
        }
    }
    return false;
}

static void begins_step(struct manager *manager) {
    struct list_node *node = list_first(&manager->begins);

    while (node) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        node = list_next(&manager->begins, node);
        if (!kv_admit(manager->kv, KV_CLASS_CONTROL, 2 * RECORD_BYTES, 0)) {
            return;
        }
        list_remove(&call->server_node);
        int r = begin_run(manager, call);
        if (r == -ERR_PENDING) {
            list_insert_between(&call->server_node,
                                node ? node->previous : manager->begins.head.previous,
                                node ? node : &manager->begins.head);
        } else if (r) {
            call_reply(call, r);
        }
    }
}

/* Numbers that were given belong to sessions that are over; others are nobody's yet. */
static int member_missing(const struct manager *manager, uint64_t id) {
    return id > 0 && id < manager->session_next ? -ERR_FENCED : -ERR_UNKNOWN_SESSION;
}

static int renew_run(struct manager *manager, struct call *call) {
    const struct session_renew_request *asked = &call->request.session_renew;
    struct member *member = members_find(&manager->members, asked->session);

    if (!member) {
        return member_missing(manager, asked->session);
    }
    if (member->state != MEMBER_LIVE || member->incarnation != asked->incarnation) {
        return -ERR_FENCED;
    }
    member->renewed_ns = manager->now_ns;
    manager->counters.renewals++;
    call->reply.session_renew.map_version = manager->map->version;
    return 0;
}

/* 0 once all is over, -ERR_PENDING while the call waits for that. */
static int end_run(struct manager *manager, struct call *call) {
    const struct session_end_request *asked = &call->request.session_end;
    struct member *member = members_find(&manager->members, asked->session);
    int r;

    if (!member) {
        return member_missing(manager, asked->session) == -ERR_FENCED ? 0 : -ERR_UNKNOWN_SESSION;
    }
    if (member->incarnation != asked->incarnation) {
        return -ERR_FENCED;
    }
    r = eviction_begin(manager, member);
    if (r) {
        return -ERR_BUSY;
    }
    manager->counters.ends += list_is_empty(&member->enders);
    list_push_back(&member->enders, &call->server_node);
    return -ERR_PENDING;
}

static int map_run(struct manager *manager, struct call *call) {
    call->bulk_in.size = 0;
    call->reply.map_get.version = manager->map->version;
    if (call->request.map_get.known_version >= manager->map->version) {
        return 0;
    }
    if (call->bulk_in.capacity < cluster_map_size(manager->map)) {
        return -ERR_TOO_SMALL;
    }
    cluster_map_encode(manager->map, &call->bulk_in);
    return 0;
}

static void call_run(struct manager *manager, struct call *call) {
    int r;

    switch (call->header.opcode) {
    case OP_SESSION_BEGIN:
        if (begin_is_copy(manager, call)) {
            call_discard(call);
        } else {
            list_push_back(&manager->begins, &call->server_node);
        }
        return;
    case OP_SESSION_RENEW:
        r = renew_run(manager, call);
        break;
    case OP_SESSION_END:
        r = end_run(manager, call);
        break;
    case OP_MAP_GET:
        r = map_run(manager, call);
        break;
    default:
        r = -ERR_NOT_SUPPORTED;
    }
    if (r != -ERR_PENDING) {
        call_reply(call, r);
    }
}

static void calls_step(struct manager *manager) {
    struct list_node *node;

    while (manager->stage != MANAGER_LOADING &&
           (node = list_pop_front(&manager->arrived)) != NULL) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        if (manager->stage == MANAGER_SERVING) {
            call_run(manager, call);
        } else {
            call_reply(call, manager->stage == MANAGER_FAILED ? manager->failure : -ERR_CLOSED);
        }
    }
}

/* What waits for an eviction that will not end any more. */
static void waiting_fail(struct manager *manager, int result) {
    struct list_node *node;
    struct list_node *at = list_first(&manager->members.all);

    while ((node = list_pop_front(&manager->begins)) != NULL) {
        call_reply(CONTAINER_OF(node, struct call, server_node), result);
    }
    for (; at; at = list_next(&manager->members.all, at)) {
        struct member *member = CONTAINER_OF(at, struct member, node);

        while ((node = list_pop_front(&member->enders)) != NULL) {
            call_reply(CONTAINER_OF(node, struct call, server_node), result);
        }
    }
}

static void load(struct manager *manager) {
    int r = load_step(manager);

    if (r == 0) {
        manager->stage = MANAGER_SERVING;
        manager->sync_wanted = kv_position(manager->kv);
    } else if (r != -ERR_PENDING) {
        manager_fail(manager, r);
    }
}

static void kv_stopped(void *context, int result) {
    struct manager *manager = context;

    manager->stop_done(manager->stop_context, result);
}

/* A call that a target holds is ours, so its answer is waited for. */
static bool is_calling(const struct manager *manager) {
    const struct list_node *node = list_first(&manager->members.all);

    for (; node; node = list_next(&manager->members.all, node)) {
        if (CONTAINER_OF(node, struct member, node)->calling) {
            return true;
        }
    }
    return false;
}

static void stop_step(struct manager *manager) {
    if (manager->stop_done && !manager->stop_started && !manager->waiting && !is_calling(manager)) {
        manager->stop_started = true;
        kv_stop_start(manager->kv, kv_stopped, manager);
    }
}

static bool message_take(struct manager *manager, struct message *message) {
    switch (message->kind) {
    case CALL_MESSAGE_KIND:
        list_push_back(&manager->arrived,
                       &CONTAINER_OF(message, struct call, message)->server_node);
        break;
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case MANAGER_TICK:
        atomic_store(&manager->tick_posted, false);
        rpc_tick(manager->options.rpc);
        return true;
    case MANAGER_WAKE:
        atomic_store(&manager->wake_posted, false);
        break;
    case MANAGER_STOP:
        manager->stage = manager->stage == MANAGER_FAILED ? MANAGER_FAILED : MANAGER_STOPPING;
        break;
    default:
        assert(false);
    }
    return false;
}

static void work_step(struct manager *manager, bool ticked) {
    if (manager->stage == MANAGER_LOADING) {
        load(manager);
    }
    calls_step(manager);
    if (manager->stage == MANAGER_SERVING) {
        numbers_step(manager);
        evictions_step(manager, ticked);
        begins_step(manager);
    }
    (void)kv_seal(manager->kv);
    if (kv_failure(manager->kv)) {
        manager_fail(manager, kv_failure(manager->kv));
    }
    if (manager->stage == MANAGER_FAILED || manager->stage == MANAGER_STOPPING) {
        waiting_fail(manager, manager->stage == MANAGER_FAILED ? manager->failure : -ERR_CLOSED);
    }
    sync_ask(manager);
    answers_leave(manager);
    stop_step(manager);
}

static void manager_step(struct actor *actor, struct message *first) {
    struct manager *manager = CONTAINER_OF(actor, struct manager, actor);
    bool ticked = false;

    manager->now_ns = env_now_ns(manager->options.env);
    while (first) {
        struct message *message = first;

        first = message->next;
        ticked = message_take(manager, message) || ticked;
    }
    kv_step(manager->kv);
    work_step(manager, ticked);
    kv_step(manager->kv);
}

static int manager_init(struct manager *manager, const struct manager_options *options) {
    manager->options = *options;
    if (manager->options.session_timeout_ns == 0) {
        manager->options.session_timeout_ns = TIMEOUT_DEFAULT_S * NS_PER_S;
    }
    if (manager->options.sessions_max == 0) {
        manager->options.sessions_max = SESSIONS_DEFAULT;
    }
    manager->options.kv.env = options->env;
    manager->options.kv.hooks = (struct kv_hooks){.wake = wake_hook};
    manager->options.kv.hook_context = manager;
    actor_init(&manager->actor, "manager", manager_step);
    manager->tick = (struct message){.kind = MANAGER_TICK, .message_class = MESSAGE_CONTROL};
    manager->wake = (struct message){.kind = MANAGER_WAKE, .message_class = MESSAGE_CONTROL};
    manager->stop = (struct message){.kind = MANAGER_STOP, .message_class = MESSAGE_CONTROL};
    list_init(&manager->arrived);
    list_init(&manager->begins);
    list_init(&manager->answered);
    manager->now_ns = env_now_ns(options->env);
    manager->map = calloc(1, sizeof *manager->map);
    int r = members_init(&manager->members, manager->options.sessions_max);
    return manager->map ? r : -ERR_NO_MEMORY;
}

int manager_open(const struct manager_options *options, struct manager **ret_manager,
                 char ret_problem[256]) {
    struct manager *manager = calloc(1, sizeof *manager);
    int r;

    ret_problem[0] = '\0';
    if (!manager) {
        return -ERR_NO_MEMORY;
    }
    r = manager_init(manager, options);
    r = r ? r : kv_open(&manager->options.kv, &manager->kv, ret_problem);
    if (r == 0) {
        manager->problem = ret_problem;
        r = load_step(manager);
        manager->problem = NULL;
    }
    if (r && r != -ERR_PENDING) {
        manager_close(manager);
        return r;
    }
    manager->sync_wanted = kv_position(manager->kv);
    manager->stage = r ? MANAGER_LOADING : MANAGER_SERVING;
    *ret_manager = manager;
    return 0;
}

void manager_close(struct manager *manager) {
    if (!manager) {
        return;
    }
    kv_close(manager->kv);
    members_deinit(&manager->members);
    free(manager->map_bytes);
    free(manager->map);
    free(manager);
}

struct actor *manager_actor(struct manager *manager) {
    return &manager->actor;
}

void manager_tick(struct manager *manager) {
    post_once(manager, &manager->tick_posted, &manager->tick);
}

const struct cluster_map *manager_map(const struct manager *manager) {
    return manager->stage == MANAGER_LOADING ? NULL : manager->map;
}

void manager_stop_start(struct manager *manager, void (*done)(void *context, int result),
                        void *context) {
    manager->stop_done = done;
    manager->stop_context = context;
    actor_post(&manager->actor, &manager->stop);
}

void manager_counters_get(const struct manager *manager, struct manager_counters *ret_counters) {
    *ret_counters = manager->counters;
    ret_counters->session_count = manager->members.count;
}
