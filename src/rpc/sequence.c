/* The contract and the idea are in sequence.h. */
#include "rpc/sequence.h"
#include <assert.h>
#include <stdlib.h>

void rpc_session_free(struct rpc_session *session) {
    if (session) {
        free(session->links);
        free(session);
    }
}

struct rpc_session *rpc_session_new(uint32_t logs_max) {
    struct rpc_session *session = calloc(1, sizeof *session);

    if (!session) {
        return NULL;
    }
    session->link_count = logs_max;
    session->links = aligned_alloc(_Alignof(struct rpc_link), logs_max * sizeof *session->links);
    if (!session->links) {
        rpc_session_free(session);
        return NULL;
    }
    rpc_session_reset(session, (struct session_id){0}, 0);
    return session;
}

static void link_reset(struct rpc_link *link, struct rpc_session *session) {
    link->session = session;
    atomic_store_explicit(&link->drawn, 0, memory_order_relaxed);
    atomic_store_explicit(&link->passed, 0, memory_order_relaxed);
    /* What has no session is granted nothing, and asked for no outcomes. */
    atomic_store_explicit(&link->window, session->id.value == 0 ? RPC_WINDOW : RPC_WINDOW_LEAST,
                          memory_order_relaxed);
    atomic_store_explicit(&link->waiting_count, 0, memory_order_relaxed);
    link->told = 0;
    link->quiet = 0;
    for (uint32_t i = 0; i < RPC_WINDOW; i++) {
        atomic_store_explicit(&link->ended[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&link->key, 0, memory_order_relaxed);
}

void rpc_session_reset(struct rpc_session *session, struct session_id id, uint64_t incarnation) {
    session->id = id;
    session->incarnation = incarnation;
    for (uint32_t i = 0; i < session->link_count; i++) {
        link_reset(&session->links[i], session);
    }
}

struct rpc_link *rpc_session_link(struct rpc_session *session, struct log_id log) {
    uint64_t wanted = log.value;

    assert(wanted != 0);
    for (uint32_t i = 0; i < session->link_count; i++) {
        struct rpc_link *link = &session->links[(wanted + i) % session->link_count];
        uint64_t key = atomic_load_explicit(&link->key, memory_order_relaxed);

        if (key == 0 && atomic_compare_exchange_strong_explicit(
                            &link->key, &key, wanted, memory_order_relaxed, memory_order_relaxed)) {
            return link;
        }
        if (key == wanted) {
            return link;
        }
    }
    return NULL;
}

uint64_t rpc_link_draw(struct rpc_link *link) {
    uint64_t drawn = atomic_load_explicit(&link->drawn, memory_order_relaxed);

    do {
        if (drawn - atomic_load(&link->passed) >= atomic_load(&link->window)) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&link->drawn, &drawn, drawn + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return drawn + 1;
}

bool rpc_link_end(struct rpc_link *link, uint64_t sequence) {
    bool moved = false;
    uint64_t passed;

    /* Sequentially consistent, here and below: of two that end at the same time one must see the
     * other's mark, or the floor would stay; and who raises it the count of those that wait. */
    atomic_store(&link->ended[sequence % RPC_WINDOW], sequence);
    passed = atomic_load(&link->passed);
    while (atomic_load(&link->ended[(passed + 1) % RPC_WINDOW]) == passed + 1) {
        if (atomic_compare_exchange_weak(&link->passed, &passed, passed + 1)) {
            passed++;
            moved = true;
        }
    }
    return moved && atomic_load(&link->waiting_count) > 0;
}

bool rpc_link_window_set(struct rpc_link *link, uint32_t window) {
    atomic_store(&link->window, MIN(MAX(window, (uint32_t)RPC_WINDOW_LEAST), (uint32_t)RPC_WINDOW));
    return atomic_load(&link->waiting_count) > 0;
}

uint64_t rpc_link_floor(struct rpc_link *link) {
    return atomic_load_explicit(&link->passed, memory_order_relaxed) + 1;
}
