/* What OSTs have on disk of what they have done for orders. Each is asked by itself, with one call
 * at a time: of two, an answer to the one would count for what was done since, which only the other
 * covers. An order that comes to wait gets a number; an OST that answers has on disk all orders up
 * to the number that was the last when it was asked. */
#include "meta/queue_internal.h"
#include <assert.h>
#include <stdlib.h>

enum { BITS = 64 };

/* A call under way, and how far its answer counts. */
struct order_sync {
    struct call call;
    struct group *group;
    struct ost_peer *peer;
    uint64_t number;
    bool out;
};

static bool is_out(const struct ost_peer *peer) {
    return peer->sync && peer->sync->out;
}

bool order_is_owed_by(const struct order_job *job, const struct ost_peer *peer) {
    return job->owed[peer->index / BITS] >> peer->index % BITS & 1;
}

void order_begin_anew(struct order_job *job) {
    job->stage = ORDER_SEND;
    job->again = false;
    job->passed = false;
    job->refused = false;
    job->chain_index = 0;
    job->resume_chunk = 0;
    for (uint32_t i = 0; i < ORDER_OWED_WORDS; i++) {
        job->owed[i] = 0;
    }
}

/* An OST has started anew before a sync point was heard of, and may have lost what it had done:
 * those orders are given again from their beginning. They change nothing where they were done. */
static void orders_again(struct group *group, struct ost_peer *peer) {
    peer->term = 0;
    peer->position = 0;
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        struct order_job *job = &group->orders.jobs[i];

        if (job->stage == ORDER_IDLE || !order_is_owed_by(job, peer)) {
            continue;
        }
        if (job->stage == ORDER_ASKING) {
            job->again = true;
        } else if (job->stage != ORDER_ENDING) {
            order_begin_anew(job);
        }
    }
}

void order_owe(struct order_job *job, struct ost_peer *peer, uint64_t term, uint64_t position) {
    assert(job->stage == ORDER_ASKING && job->peer == peer);
    if (peer->term != 0 && peer->term != term) {
        orders_again(job->queue->group, peer);
    }
    peer->term = term;
    peer->position = MAX(peer->position, position);
    peer->dirty = true;
    job->owed[peer->index / BITS] |= UINT64_C(1) << peer->index % BITS;
}

static bool has_synced(const struct ost_peer *peer, uint64_t number) {
    return peer->synced_number >= number || (!peer->dirty && !is_out(peer));
}

static struct ost_peer *peer_at(const struct group *group, uint32_t word, uint64_t bits) {
    return &group->ost_peers.table[word * BITS + (uint32_t)__builtin_ctzll(bits)];
}

bool order_is_synced(struct group *group, struct order_job *job) {
    bool synced = true;

    assert(job->stage == ORDER_WAITING && job->number > 0);
    if (job->looked == job->queue->answers) {
        return false;
    }
    job->looked = job->queue->answers;
    for (uint32_t word = 0; word < ORDER_OWED_WORDS; word++) {
        for (uint64_t bits = job->owed[word]; bits; bits &= bits - 1) {
            if (has_synced(peer_at(group, word, bits), job->number)) {
                job->owed[word] &= ~(bits & -bits);
            } else {
                synced = false;
            }
        }
    }
    return synced;
}

bool order_waits_for_away(const struct group *group, const struct order_job *job) {
    for (uint32_t word = 0; word < ORDER_OWED_WORDS; word++) {
        for (uint64_t bits = job->owed[word]; bits; bits &= bits - 1) {
            if (ost_peer_is_away(peer_at(group, word, bits))) {
                return true;
            }
        }
    }
    return false;
}

static void sync_answered(struct call *call) {
    struct order_sync *sync = call->context;
    struct ost_peer *peer = sync->peer;

    assert(sync->out && peer->sync == sync);
    sync->out = false;
    sync->group->orders.answers++;
    ost_peer_answered(sync->group, peer, call->result);
    if (call->result == -ERR_STALE_TERM) {
        orders_again(sync->group, peer);
    } else if (call->result == 0 || call->result == -ERR_TARGET_LOST) {
        peer->synced_number = sync->number;
    } else {
        peer->dirty = true; /* asked again at a tick */
    }
}

/* One that has nothing to sync answers at once: its first position is on disk. */
static void sync_send(struct group *group, struct ost_peer *peer) {
    struct order_sync *sync = peer->sync ? peer->sync : calloc(1, sizeof *sync);

    if (!sync) {
        return; /* Tried again in the next step. */
    }
    peer->sync = sync;
    sync->group = group;
    sync->peer = peer;
    sync->number = group->orders.number;
    sync->out = true;
    sync->call.header.opcode = OP_SYNC;
    sync->call.header.log = peer->log;
    sync->call.header.term = peer->term;
    sync->call.origin = &group->actor;
    sync->call.done = sync_answered;
    sync->call.context = sync;
    sync->call.request.sync.position = MAX(peer->position, UINT64_C(1));
    peer->dirty = false;
    ost_peer_asked(group, peer);
    call_start(group->rpc, &sync->call);
}

void order_syncs_step(struct group *group, uint32_t waiting_count, bool hurry) {
    struct order_queue *queue = &group->orders;
    bool due = waiting_count > 0 && (queue->ticked || queue->urgent || hurry);

    for (uint32_t i = 0; (due || queue->ticked) && i < group->ost_peers.count; i++) {
        struct ost_peer *peer = group->ost_peers.known[i];

        if (!is_out(peer) && ((due && peer->dirty) || ost_peer_is_away(peer))) {
            sync_send(group, peer);
        }
    }
    queue->urgent = queue->urgent && !due;
}

uint32_t order_syncs_out(const struct group *group) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->ost_peers.count; i++) {
        count += is_out(group->ost_peers.known[i]);
    }
    return count;
}

void order_syncs_cancel(struct group *group) {
    for (uint32_t i = 0; i < group->ost_peers.count; i++) {
        if (is_out(group->ost_peers.known[i])) {
            call_cancel(&group->ost_peers.known[i]->sync->call);
        }
    }
}
