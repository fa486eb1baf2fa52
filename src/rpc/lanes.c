/* The lanes of a process: threads, peers, which lane a call takes. One lane's life is in lane.c. */
#include "env/env.h"
#include "keys/key_file.h"
#include "rpc/lane_away.h"
#include "rpc/lane_share.h"
#include "rpc/log_table.h"
#include "rpc/transport_inproc.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct lane_thread *bound_thread;

void lane_thread_bind(struct lane_thread *thread) {
    bound_thread = thread;
}

/* The log's route, or the free one where it would be; NULL: there are as many as there may be. */
static struct lane_route *route_find(struct lanes *lanes, struct log_id log) {
    for (uint64_t i = 0; i < LANE_ROUTES; i++) {
        struct lane_route *route = &lanes->routes[(log.value + i) % LANE_ROUTES];
        uint64_t key = atomic_load_explicit(&route->log, memory_order_acquire);

        if (key == 0 || key == log.value) {
            return route;
        }
    }
    return NULL;
}

int lanes_route(struct lanes *lanes, struct log_id log, uint32_t peer) {
    struct lane_route *route = route_find(lanes, log);

    if (!route) {
        return -ERR_TOO_MANY_OPEN;
    }
    atomic_store_explicit(&route->peer, peer, memory_order_relaxed);
    atomic_store_explicit(&route->log, log.value, memory_order_release);
    return 0;
}

static uint32_t peer_of(struct lanes *lanes, struct log_id log) {
    struct lane_route *route = route_find(lanes, log);

    return route && atomic_load_explicit(&route->log, memory_order_acquire) == log.value
               ? atomic_load_explicit(&route->peer, memory_order_relaxed)
               : atomic_load_explicit(&lanes->default_peer, memory_order_relaxed);
}

void lane_thread_send(struct lane_thread *thread, struct call *call) {
    struct lanes *lanes = thread->lanes;
    uint32_t peer = peer_of(lanes, call->header.log);

    if (peer >= atomic_load_explicit(&lanes->peer_count, memory_order_acquire)) {
        rpc_answered(call->rpc, call, -ERR_STALE_MAP);
        return;
    }
    if (!thread->lanes_to[peer]) {
        struct lane *lane = malloc(sizeof *lane);

        if (!lane) {
            rpc_answered(call->rpc, call, -ERR_NO_MEMORY);
            return;
        }
        lane_begin(lane, thread, &lanes->peers[peer]);
        thread->lanes_to[peer] = lane;
    }
    struct lane *lane = thread->lanes_to[peer];
    bool is_shut = lane->state == LANE_IDLE || lane->state == LANE_RESTING;
    struct lane_thread *sharer = is_shut && lane_is_surplus(lane) ? lane_sharer(lane) : NULL;

    if (sharer) {
        lane_thread_hand(sharer, call);
    } else {
        lane_send(lane, call);
    }
}

static void lanes_send(void *context, struct call *call) {
    struct lanes *lanes = context;
    struct lane_thread *thread = bound_thread;

    if (lanes->options.logs && transport_inproc_try(lanes->options.logs, call)) {
        return;
    }
    if (thread) {
        assert(thread->lanes == lanes);
        lane_thread_send(thread, call);
    } else if (lanes->options.keeps) {
        lanes_take_homeless(lanes, call);
    } else {
        rpc_answered(call->rpc, call, -ERR_CLOSED); /* It is leaving. */
    }
}

static void homeless_close(struct lanes *lanes) {
    struct call *call = calls_take(&lanes->homeless);

    while (call) {
        struct call *next = TAKE_PTR(call->transport_context);

        rpc_answered(call->rpc, call, -ERR_CLOSED);
        call = next;
    }
}

static bool homeless_send(struct lane_thread *home) {
    struct call *call = calls_take(&home->lanes->homeless);
    bool did = call != NULL;

    while (call) {
        struct call *next = TAKE_PTR(call->transport_context);

        lane_thread_send(home, call);
        call = next;
    }
    return did;
}

void lanes_take_homeless(struct lanes *lanes, struct call *call) {
    struct lane_thread *home;

    calls_push(&lanes->homeless, call);
    if (atomic_load(&lanes->home_state) == HOME_GONE) {
        homeless_close(lanes);
        return;
    }
    home = atomic_load(&lanes->home);
    if (home) {
        lane_thread_wake(home);
    }
}

void lanes_set_home(struct lanes *lanes, struct lane_thread *thread) {
    assert(lanes->options.keeps && bound_thread == thread);
    atomic_store(&lanes->home, thread);
    atomic_store(&lanes->home_state, HOME_THERE);
}

bool lanes_anybody_away(const struct lanes *lanes) {
    return atomic_load_explicit(&lanes->away_count, memory_order_relaxed) > 0;
}

/* NULL: the log is served here, or nobody is known to serve it. */
static const struct lane_peer *peer_that_serves(struct lanes *lanes, struct log_id log) {
    if (lanes->options.logs && log_table_find(lanes->options.logs, log)) {
        return NULL;
    }
    uint32_t peer = peer_of(lanes, log);
    return peer < atomic_load_explicit(&lanes->peer_count, memory_order_acquire)
               ? &lanes->peers[peer]
               : NULL;
}

static bool lanes_is_away(void *context, struct log_id log) {
    struct lanes *lanes = context;

    if (log.value == 0 || !lanes_anybody_away(lanes)) {
        return lanes_anybody_away(lanes);
    }
    const struct lane_peer *peer = peer_that_serves(lanes, log);
    return peer && atomic_load_explicit(&peer->said, memory_order_relaxed);
}

static bool lanes_has_waited(void *context, const struct call *call) {
    struct lanes *lanes = context;
    const struct lane_peer *peer = peer_that_serves(lanes, call->header.log);

    return peer && call_has_waited(peer, call, env_now_ns(lanes->options.env));
}

const struct transport_ops lanes_ops = {
    .send = lanes_send, .is_away = lanes_is_away, .has_waited = lanes_has_waited, .reliable = true};

int lanes_new(const struct lanes_options *options, struct lanes **ret_lanes) {
    struct lanes *lanes = calloc(1, sizeof *lanes);

    if (!lanes) {
        return -ERR_NO_MEMORY;
    }
    lanes->options = *options;
    lanes->default_peer = LANE_PEERS_MAX; /* none */
    lanes->options.connect_ns = options->connect_ns ? options->connect_ns : 5 * NS_PER_S;
    lanes->options.silent_ns = options->silent_ns ? options->silent_ns : 5 * NS_PER_S;
    lanes->options.idle_ns = options->idle_ns ? options->idle_ns : 60 * NS_PER_S;
    lanes->options.rest_ns = options->rest_ns ? options->rest_ns : 20 * NS_PER_MS;
    *ret_lanes = lanes;
    return 0;
}

void lanes_free(struct lanes *lanes) {
    if (!lanes) {
        return;
    }
    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        free(atomic_load(&lanes->threads[i]));
    }
    for (uint32_t i = 0; i < atomic_load(&lanes->peer_count); i++) {
        struct lane_addresses *list = atomic_load(&lanes->peers[i].addresses);

        while (list) {
            struct lane_addresses *before = list->before;

            free(list);
            list = before;
        }
    }
    free(lanes);
}

static int addresses_check(const struct lanes *lanes, const struct address *addresses,
                           uint32_t address_count) {
    if (address_count > LANE_ADDRESSES_MAX) {
        return -ERR_INVALID;
    }
    for (uint32_t i = 0; i < address_count; i++) {
        if (addresses[i].kind != ADDRESS_UNIX && !lanes->options.tls) {
            return -ERR_ACCESS;
        }
    }
    return 0;
}

static bool addresses_are(const struct lane_addresses *list, const struct address *addresses,
                          uint32_t address_count) {
    bool same = list->count == address_count;

    for (uint32_t i = 0; same && i < address_count; i++) {
        same = address_is(&list->addresses[i], &addresses[i]);
    }
    return same;
}

int lanes_peer_move(struct lanes *lanes, uint32_t peer, const struct address *addresses,
                    uint32_t address_count) {
    struct lane_peer *one = &lanes->peers[peer];
    struct lane_addresses *newest = atomic_load_explicit(&one->addresses, memory_order_relaxed);
    struct lane_addresses *list;
    int r = addresses_check(lanes, addresses, address_count);

    if (r < 0 || (newest && addresses_are(newest, addresses, address_count))) {
        return r;
    }
    list = malloc(sizeof *list);
    if (!list) {
        return -ERR_NO_MEMORY;
    }
    list->before = newest;
    list->count = address_count;
    for (uint32_t i = 0; i < address_count; i++) {
        list->addresses[i] = addresses[i];
    }
    atomic_store_explicit(&one->addresses, list, memory_order_release);
    return 0;
}

int lanes_peer_add(struct lanes *lanes, const struct address *addresses, uint32_t address_count,
                   const char *name, uint32_t *ret_peer) {
    uint32_t peer = atomic_load_explicit(&lanes->peer_count, memory_order_relaxed);

    if (peer == LANE_PEERS_MAX) {
        return -ERR_TOO_MANY_OPEN;
    }
    int r = lanes_peer_move(lanes, peer, addresses, address_count);
    if (r < 0) {
        return r;
    }
    snprintf(lanes->peers[peer].name, LANE_NAME_BYTES, "%s", name);
    *ret_peer = peer;
    atomic_store_explicit(&lanes->peer_count, peer + 1, memory_order_release);
    return 0;
}

void lanes_peer_is(struct lanes *lanes, uint32_t peer, struct node_id node) {
    atomic_store_explicit(&lanes->peers[peer].node, node.value, memory_order_relaxed);
}

int lanes_peer_refusal(struct lanes *lanes, uint32_t peer) {
    struct lane_peer *one = &lanes->peers[peer];
    const struct lane_addresses *list = atomic_load(&one->addresses);
    uint32_t enough = KEY_FILE_KEYS_MAX * MAX(list->count, 1U);

    return atomic_load(&one->refusals) >= enough ? atomic_load(&one->refusal) : 0;
}

void lanes_set_default(struct lanes *lanes, uint32_t peer) {
    atomic_store(&lanes->default_peer, peer);
}

/* One that was freed before, or a new one; NULL: none is left, or no memory. */
static struct lane_thread *thread_take(struct lanes *lanes) {
    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);
        struct lane_thread *none = NULL;
        bool is_taken = false;

        if (!thread) {
            thread = calloc(1, sizeof *thread);
            if (!thread) {
                return NULL;
            }
            thread->index = i;
            thread->is_taken = true;
            if (atomic_compare_exchange_strong(&lanes->threads[i], &none, thread)) {
                return thread;
            }
            free(thread);
        } else if (atomic_compare_exchange_strong(&thread->is_taken, &is_taken, true)) {
            return thread;
        }
    }
    return NULL;
}

int lane_thread_new(struct lanes *lanes, const struct lane_waker *waker,
                    struct lane_thread **ret_thread) {
    struct lane_thread *thread = thread_take(lanes);

    if (!thread) {
        return -ERR_NO_MEMORY;
    }
    thread->lanes = lanes;
    /* `wake` last: who is about to wake the one before it finds none, or all of the new one. */
    thread->waker.context = waker->context;
    thread->waker.expect = waker->expect;
    atomic_store(&thread->waker.wake, atomic_load(&waker->wake));
    list_init(&thread->dirty);
    list_init(&thread->used);
    atomic_store(&thread->is_bound, true); /* Others may wake it from now on. */
    *ret_thread = thread;
    return 0;
}

void lane_thread_free(struct lane_thread *thread) {
    struct lanes *lanes = thread ? thread->lanes : NULL;
    struct list_node *node;

    if (!thread) {
        return;
    }
    if (bound_thread == thread) {
        bound_thread = NULL; /* What is called from here on is answered at once. */
    }
    while ((node = list_first(&thread->used))) {
        lane_finish(CONTAINER_OF(node, struct lane, used));
    }
    memset(thread->lanes_to, 0, sizeof thread->lanes_to);
    if (atomic_load(&lanes->home) == thread) {
        atomic_store(&lanes->home, NULL);
        atomic_store(&lanes->home_state, HOME_GONE);
        homeless_close(lanes);
    }
    atomic_store(&thread->waker.wake, NULL);
    /* Who has seen it just before is within one system call of being done with it. */
    while (atomic_load(&thread->wakers) > 0) {
    }
    lane_thread_unbind(thread);
}

void lane_thread_wake(struct lane_thread *thread) {
    void (*wake)(void *context);

    atomic_store(&thread->tick_due, true);
    atomic_fetch_add(&thread->wakers, 1);
    wake = atomic_load(&thread->waker.wake);
    if (wake) {
        wake(thread->waker.context);
    }
    atomic_fetch_sub(&thread->wakers, 1);
}

void lanes_tick(struct lanes *lanes) {
    uint64_t now_ns = env_now_ns(lanes->options.env);
    bool looks = now_ns - lanes->looked_ns >= lanes->options.idle_ns / 4;

    if (looks) {
        lanes->looked_ns = now_ns;
    }
    lanes_away_say(lanes, now_ns);
    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);

        if (!thread) {
            break;
        }
        if (atomic_load(&thread->is_bound) &&
            (atomic_load_explicit(&thread->call_count, memory_order_relaxed) > 0 ||
             atomic_load_explicit(&thread->probe_count, memory_order_relaxed) > 0 || looks)) {
            lane_thread_wake(thread);
        }
    }
}

void lanes_clock(struct lanes *lanes, struct lane_clock *ret_clock) {
    struct lane_clock most = {0};

    for (uint32_t i = 0; i < atomic_load(&lanes->peer_count); i++) {
        int64_t ahead_ns = atomic_load(&lanes->peers[i].clock_ahead_ns);

        if (i == 0 || llabs(ahead_ns) > llabs(most.ahead_ns)) {
            most.ahead_ns = ahead_ns;
            memcpy(most.name, lanes->peers[i].name, sizeof most.name);
        }
    }
    *ret_clock = most;
}

void lanes_stats(struct lanes *lanes, struct lane_stats *ret_stats) {
    struct lane_stats stats = {.connected_count = atomic_load(&lanes->connected_count),
                               .broken_count = atomic_load(&lanes->broken_count),
                               .silent_count = atomic_load(&lanes->silent_count),
                               .replaced_count = atomic_load(&lanes->replaced_count),
                               .again_count = atomic_load(&lanes->again_count)};

    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);

        if (thread) {
            stats.open_count += atomic_load(&thread->open_count);
            stats.awaited_count += atomic_load(&thread->call_count);
        }
    }
    *ret_stats = stats;
}

static bool thread_tick(struct lane_thread *thread) {
    struct list_node *node;
    uint64_t now_ns;

    if (!atomic_exchange_explicit(&thread->tick_due, false, memory_order_acquire)) {
        return false;
    }
    now_ns = env_now_ns(thread->lanes->options.env);
    for (node = thread->used.head.next; node != &thread->used.head; node = node->next) {
        lane_tick(CONTAINER_OF(node, struct lane, used), now_ns);
    }
    return true;
}

bool lane_thread_is_needed(const struct lane_thread *thread) {
    return atomic_load_explicit(&thread->open_count, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&thread->probe_count, memory_order_relaxed) > 0;
}

bool lane_thread_turn(struct lane_thread *thread) {
    bool did = thread_tick(thread);
    struct list_node *node;

    if (thread == atomic_load_explicit(&thread->lanes->home, memory_order_relaxed)) {
        did = homeless_send(thread) || did;
    }
    did = lane_thread_take_handed(thread) || did;
    while ((node = list_pop_front(&thread->dirty))) {
        lane_flush(CONTAINER_OF(node, struct lane, dirty));
        did = true;
    }
    return did;
}
