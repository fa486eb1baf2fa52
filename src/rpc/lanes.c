/* The lanes of a process: threads, peers, which lane a call takes. One lane's life is in lane.c. */
#include "env/env.h"
#include "keys/key_file.h"
#include "rpc/lane_internal.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct lane_thread *bound_thread;

void lane_thread_bind(struct lane_thread *thread) {
    bound_thread = thread;
}

static void lanes_send(void *context, struct call *call) {
    struct lanes *lanes = context;
    struct lane_thread *thread = bound_thread;
    uint32_t peer = lanes->default_peer;

    if (!thread) {
        rpc_answered(call->rpc, call, -ERR_CLOSED); /* It is leaving. */
        return;
    }
    assert(thread->lanes == lanes);
    if (peer >= atomic_load_explicit(&lanes->peer_count, memory_order_acquire)) {
        rpc_answered(call->rpc, call, -ERR_STALE_MAP);
        return;
    }
    if (!thread->lanes_to[peer].thread) {
        lane_begin(&thread->lanes_to[peer], thread, &lanes->peers[peer]);
    }
    lane_send(&thread->lanes_to[peer], call);
}

const struct transport_ops lanes_ops = {.send = lanes_send, .reliable = true};

int lanes_new(const struct lanes_options *options, struct lanes **ret_lanes) {
    struct lanes *lanes = calloc(1, sizeof *lanes);

    if (!lanes) {
        return -ERR_NO_MEMORY;
    }
    lanes->options = *options;
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
    free(lanes);
}

int lanes_peer_add(struct lanes *lanes, const struct address *addresses, uint32_t address_count,
                   const char *name, uint32_t *ret_peer) {
    uint32_t peer = atomic_load_explicit(&lanes->peer_count, memory_order_relaxed);

    if (peer == LANE_PEERS_MAX) {
        return -ERR_TOO_MANY_OPEN;
    }
    if (address_count == 0 || address_count > LANE_ADDRESSES_MAX) {
        return -ERR_INVALID;
    }
    for (uint32_t i = 0; i < address_count; i++) {
        if (addresses[i].kind != ADDRESS_UNIX && !lanes->options.tls) {
            return -ERR_ACCESS;
        }
    }
    memcpy(lanes->peers[peer].addresses, addresses, address_count * sizeof *addresses);
    lanes->peers[peer].address_count = address_count;
    snprintf(lanes->peers[peer].name, LANE_NAME_BYTES, "%s", name);
    *ret_peer = peer;
    atomic_store_explicit(&lanes->peer_count, peer + 1, memory_order_release);
    return 0;
}

int lanes_peer_refusal(struct lanes *lanes, uint32_t peer) {
    struct lane_peer *one = &lanes->peers[peer];
    uint32_t enough = KEY_FILE_KEYS_MAX * one->address_count;

    return atomic_load(&one->refusals) >= enough ? atomic_load(&one->refusal) : 0;
}

void lanes_set_default(struct lanes *lanes, uint32_t peer) {
    lanes->default_peer = peer;
}

/* One that was freed before, or a new one; NULL: none is left, or no memory. */
static struct lane_thread *thread_take(struct lanes *lanes) {
    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);
        struct lane_thread *none = NULL;
        bool is_bound = false;

        if (!thread) {
            thread = calloc(1, sizeof *thread);
            if (!thread) {
                return NULL;
            }
            thread->index = i;
            thread->is_bound = true;
            if (atomic_compare_exchange_strong(&lanes->threads[i], &none, thread)) {
                return thread;
            }
            free(thread);
        } else if (atomic_compare_exchange_strong(&thread->is_bound, &is_bound, true)) {
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
    thread->waker = *waker;
    list_init(&thread->dirty);
    *ret_thread = thread;
    return 0;
}

void lane_thread_free(struct lane_thread *thread) {
    if (!thread) {
        return;
    }
    if (bound_thread == thread) {
        bound_thread = NULL; /* What is called from here on is answered at once. */
    }
    for (uint32_t i = 0; i < LANE_PEERS_MAX; i++) {
        if (thread->lanes_to[i].thread) {
            lane_finish(&thread->lanes_to[i]);
        }
    }
    atomic_store(&thread->waker.wake, NULL);
    /* Who has seen it just before is within one system call of being done with it. */
    while (atomic_load(&thread->wakers) > 0) {
    }
    atomic_store(&thread->is_bound, false);
}

static void thread_wake(struct lane_thread *thread) {
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
    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);

        if (!thread) {
            break;
        }
        if (atomic_load(&thread->is_bound) &&
            (atomic_load_explicit(&thread->call_count, memory_order_relaxed) > 0 || looks)) {
            thread_wake(thread);
        }
    }
}

void lanes_stats(struct lanes *lanes, struct lane_stats *ret_stats) {
    struct lane_stats stats = {.connected_count = atomic_load(&lanes->connected_count),
                               .broken_count = atomic_load(&lanes->broken_count)};

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
    uint64_t now_ns;

    if (!atomic_exchange_explicit(&thread->tick_due, false, memory_order_acquire)) {
        return false;
    }
    now_ns = env_now_ns(thread->lanes->options.env);
    for (uint32_t i = 0; i < LANE_PEERS_MAX; i++) {
        if (thread->lanes_to[i].thread) {
            lane_tick(&thread->lanes_to[i], now_ns);
        }
    }
    return true;
}

bool lane_thread_turn(struct lane_thread *thread) {
    bool did = thread_tick(thread);
    struct list_node *node;

    while ((node = list_pop_front(&thread->dirty))) {
        lane_flush(CONTAINER_OF(node, struct lane, dirty));
        did = true;
    }
    return did;
}
