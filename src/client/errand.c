/* Sending, and what an error asks for; the picture is in errand.h. */
#include "client/errand.h"
#include "client/client_internal.h"
#include "client/loss.h"
#include <assert.h>
#include <string.h>

static void errand_answered(struct call *call);

void errand_init(struct errand *errand, struct shard *shard, void (*done)(struct errand *errand),
                 uint64_t deadline_ns) {
    memset(errand, 0, sizeof *errand);
    errand->shard = shard;
    errand->done = done;
    errand->call.origin = &shard->actor;
    errand->call.done = errand_answered;
    errand->call.deadline_ns = deadline_ns;
}

/* Of a pool version, or a chain, that the map does not name, a newer map does. */
static int errand_find_peer(struct errand *errand, const struct router *router) {
    uint32_t chain;
    int r;

    switch (errand->route) {
    case ERRAND_TO_SLOT:
        return router_slot(router, errand->call.header.slot, &errand->peer);
    case ERRAND_TO_CHUNK:
        r = router_chunk(router, errand->layout, errand->chunk, &chain);
        return r < 0 ? r : router_chain(router, chain, &errand->peer);
    case ERRAND_TO_PEER:
        break;
    }
    return 0;
}

/* Each shard keeps its own, and tells the others of it once a millisecond, so that they don't write
 * to one line with each answer: epochs are nanoseconds. Answers come in the shard's steps alone,
 * but a request is first sent by the thread that makes it. */
static void epoch_note(struct shard *shard, uint64_t epoch) {
    _Atomic uint64_t *shared = &shard->client->epoch;
    uint64_t told = atomic_load_explicit(shared, memory_order_relaxed);

    if (epoch > atomic_load_explicit(&shard->epoch, memory_order_relaxed)) {
        atomic_store_explicit(&shard->epoch, epoch, memory_order_relaxed);
    }
    while (epoch > told + NS_PER_MS &&
           !atomic_compare_exchange_weak_explicit(shared, &told, epoch, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static uint64_t epoch_of(const struct shard *shard) {
    uint64_t own = atomic_load_explicit(&shard->epoch, memory_order_relaxed);
    uint64_t shared = atomic_load_explicit(&shard->client->epoch, memory_order_relaxed);

    return MAX(own, shared);
}

static void errand_send(struct errand *errand) {
    struct shoal_client *client = errand->shard->client;
    struct call_header *header = &errand->call.header;
    int r;

    assert(!list_contains(&errand->node) && errand->call.origin == &errand->shard->actor);
    /* A request is counted where it began, what is part of the mending here. */
    assert(!errand->plain || router_is_read(&errand->shard->readers));
    errand->map_version = router_map(&client->router)->version;
    r = errand_find_peer(errand, &client->router);
    if (r) {
        errand->call.result = r;
        session_stall(&client->session, errand);
        return;
    }
    errand->generation = atomic_load_explicit(&errand->peer->generation, memory_order_acquire);
    header->log = errand->peer->log;
    header->term = atomic_load_explicit(&errand->peer->term, memory_order_acquire);
    if (header->term == 0 && !errand->plain) {
        errand->call.result = -ERR_UNKNOWN_SESSION; /* As it would answer: we never were there. */
        session_stall(&client->session, errand);
        return;
    }
    header->map_version = errand->map_version;
    header->epoch = epoch_of(errand->shard);
    call_start(client->options.rpc, &errand->call);
}

static void errand_finish(struct errand *errand) {
    assert(!list_contains(&errand->node));
    if (!errand->call.keeps_number) {
        call_abandon(&errand->call);
    }
    errand->done(errand);
}

bool errand_is_over(const struct errand *errand) {
    uint64_t term = errand->call.header.term;

    return errand->call.result == 0 && term > 0 &&
           term <= atomic_load_explicit(&errand->peer->over_term, memory_order_acquire);
}

static void errand_resume(struct errand *errand);

/* What a metadata target said before it started anew may have been lost since, and looks newer than
 * what it says now. */
static bool errand_is_overtaken(const struct errand *errand) {
    const struct call *call = &errand->call;
    uint64_t term = atomic_load_explicit(&errand->peer->term, memory_order_acquire);

    return call->result == 0 && !errand->plain && errand->peer->kind == TARGET_MDT &&
           (call->header.term != term || errand_is_over(errand)) &&
           !wire_is_mutation(call->header.opcode);
}

/* What is worth another try at once, as -ERR_BUSY, the call has tried again by itself. */
static void errand_answered(struct call *call) {
    struct errand *errand = CONTAINER_OF(call, struct errand, call);
    struct shoal_client *client = errand->shard->client;
    enum err_action action = call->result < 0 ? err_action(call->result) : ERR_ACTION_FAIL;
    bool mends = action == ERR_ACTION_REFRESH ||
                 (action == ERR_ACTION_REOPEN && call->result != -ERR_BAD_CAPABILITY);

    loss_note(&errand->peer->ledger, call);
    epoch_note(errand->shard, call->server_epoch);
    if (call->result == -ERR_FENCED) {
        client_session_fence(&client->session, call->header.session);
    }
    if (errand_is_overtaken(errand)) {
        call->bulk_in.size = 0;
        errand_resume(errand);
    } else if (mends && !errand->plain) {
        session_stall(&client->session, errand);
    } else {
        errand_finish(errand);
    }
}

static void errand_resume(struct errand *errand) {
    struct shard *shard = errand->shard;
    uint64_t deadline_ns = errand->call.deadline_ns;

    atomic_fetch_add_explicit(&shard->retries, 1, memory_order_relaxed);
    if (env_now_ns(shard->client->options.env) >= deadline_ns) {
        errand->call.result = -ERR_TIMED_OUT;
        errand_finish(errand);
        return;
    }
    errand_send(errand);
}

void errand_return(struct errand *errand) {
    if (errand->call.result) {
        errand_finish(errand);
    } else {
        errand_resume(errand);
    }
}

void errand_start_slot(struct errand *errand, uint16_t opcode, struct slot slot) {
    errand->route = ERRAND_TO_SLOT;
    errand->call.header.opcode = opcode;
    errand->call.header.slot = slot;
    errand_send(errand);
}

void errand_start_chunk(struct errand *errand, uint16_t opcode, struct slot slot,
                        const struct layout *layout, uint64_t chunk) {
    errand->route = ERRAND_TO_CHUNK;
    errand->layout = layout;
    errand->chunk = chunk;
    errand->call.header.opcode = opcode;
    errand->call.header.slot = slot;
    errand_send(errand);
}

void errand_start_peer(struct errand *errand, uint16_t opcode, struct peer *peer) {
    errand->route = ERRAND_TO_PEER;
    errand->peer = peer;
    errand->call.header.opcode = opcode;
    errand_send(errand);
}
