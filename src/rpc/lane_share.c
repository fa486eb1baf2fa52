/* Calls that go by another thread's lane: a gate grants a process fewer lanes than it has threads
 * when many processes call it.
 *
 *     thread without a lane --> handed, of a thread whose lane is open --> its turn --> its lane
 *
 * WELCOME tells how many lanes are granted, also where it refuses one more. What is known so is
 * believed for as long as a lane may be idle; then the next call tries a lane of its own.
 *
 * A thread may end at any moment: who hands it a call looks afterwards whether it is still there,
 * and it looks once more when it is not. So one of them finds the call, and hands it on.
 *
 * Thread: any; the list is taken by the thread, or when that has ended. */
#include "rpc/lane_share.h"
#include "rpc/transport.h"

void lane_note_grant(struct lane *lane, uint32_t lane_count) {
    struct lane_peer *peer = lane->peer;

    atomic_store_explicit(&peer->granted_ns, lane_now(lane), memory_order_relaxed);
    atomic_store_explicit(&peer->granted, lane_count, memory_order_relaxed);
}

bool lane_is_surplus(const struct lane *lane) {
    struct lane_peer *peer = lane->peer;
    uint32_t granted = atomic_load_explicit(&peer->granted, memory_order_relaxed);

    return granted > 0 &&
           atomic_load_explicit(&peer->open_count, memory_order_relaxed) >= granted &&
           lane_now(lane) - atomic_load_explicit(&peer->granted_ns, memory_order_relaxed) <
               lane->thread->lanes->options.idle_ns;
}

static uint32_t open_threads_count(const struct lane_peer *peer) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < ARRAY_SIZE(peer->open_threads); i++) {
        count += (uint32_t)__builtin_popcountll(atomic_load(&peer->open_threads[i]));
    }
    return count;
}

/* Each thread goes by the same one for as long as nothing changes, and all are used alike. */
struct lane_thread *lane_sharer(const struct lane *lane) {
    const struct lane_peer *peer = lane->peer;
    uint32_t count = open_threads_count(peer);
    uint32_t left = count > 0 ? lane->thread->index % count : 0;
    struct lane_thread *sharer = NULL;

    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        bool is_open = atomic_load(&peer->open_threads[i / 64]) >> i % 64 & 1;

        if (is_open && i != lane->thread->index) {
            sharer = atomic_load(&lane->thread->lanes->threads[i]);
            if (left-- == 0) {
                break;
            }
        }
    }
    return sharer;
}

void calls_push(_Atomic(struct call *) *calls, struct call *call) {
    struct call *before = atomic_load(calls);

    do {
        call->transport_context = before;
    } while (!atomic_compare_exchange_weak(calls, &before, call));
}

struct call *calls_take(_Atomic(struct call *) *calls) {
    struct call *newest = atomic_exchange(calls, NULL);
    struct call *oldest = NULL;

    while (newest) {
        struct call *older = newest->transport_context;

        newest->transport_context = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

/* What was handed to a thread that has ended. */
static void handed_move(struct lane_thread *thread) {
    struct call *call = calls_take(&thread->handed);

    while (call) {
        struct call *next = TAKE_PTR(call->transport_context);

        lanes_hand_on(thread, call);
        call = next;
    }
}

void lane_thread_hand(struct lane_thread *thread, struct call *call) {
    call->is_handed = true;
    calls_push(&thread->handed, call);
    lane_thread_wake(thread);
    if (!atomic_load(&thread->is_bound)) {
        handed_move(thread);
    }
}

void lanes_hand_on(const struct lane_thread *from, struct call *call) {
    struct lanes *lanes = from->lanes;

    for (uint32_t i = 0; i < LANE_THREADS_MAX; i++) {
        struct lane_thread *thread = atomic_load(&lanes->threads[i]);

        if (thread && thread != from && atomic_load(&thread->is_bound)) {
            lane_thread_hand(thread, call);
            return;
        }
    }
    if (lanes->options.keeps) {
        lanes_take_homeless(lanes, call);
    } else {
        rpc_answered(call->rpc, call, -ERR_CLOSED);
    }
}

void lane_thread_unbind(struct lane_thread *thread) {
    atomic_store(&thread->is_bound, false);
    handed_move(thread);
    atomic_store(&thread->is_taken, false);
}

bool lane_thread_take_handed(struct lane_thread *thread) {
    struct call *call = calls_take(&thread->handed);
    bool did = call != NULL;

    while (call) {
        struct call *next = TAKE_PTR(call->transport_context);

        lane_thread_send(thread, call);
        call = next;
    }
    return did;
}
