/* Floors: of a log of which the session awaits nothing more, all that was answered may be forgotten
 * there. Mutations say so of those before them; of the last ones an idle session says it itself,
 * once each has been quiet from one look to the next.
 *
 *     the last one ends --(a look)--> quiet --(the next look, no number drawn since)--> told, again
 *     each second until what the first answer depends on is on disk there
 *
 * Who is told, and knows us no longer, is attached anew: there is something to be said to it. */
#include "base/bug.h"
#include "client/client_internal.h"
#include "rpc/sequence.h"
#include <assert.h>

enum { FLOOR_LOOK_MS = 400, FLOOR_AGAIN_S = 1, FLOOR_PATIENCE_S = 5 };

/* Power could take it until it is on disk, and nobody would tell it again. */
static void floor_heard(struct session *session, struct peer *peer) {
    const struct call *call = &peer->floor_call;

    if (peer->floor_position == 0) {
        peer->floor_position = call->server_position;
    }
    if (call->reply.session_floor.synced >= peer->floor_position) {
        rpc_floor_told(session->client->options.rpc, peer->log, peer->floor);
    } else {
        peer->floor_wait_ns = env_now_ns(session->client->options.env) + FLOOR_AGAIN_S * NS_PER_S;
    }
}

/* An answer of before the last attachment says nothing of what the log has now. */
static void floor_answered(struct call *call) {
    struct peer *peer = CONTAINER_OF(call, struct peer, floor_call);
    struct session *session = call->context;
    bool current =
        peer->stage == PEER_ATTACHED && peer->told_generation == atomic_load(&peer->generation);

    assert(peer->telling && session->floors_under_way > 0);
    peer->telling = false;
    session->floors_under_way--;
    if (current && call->result == 0) {
        peer->return_ns = 0; /* It knows us in this term. */
    }
    if (current && call->result == 0 && !peer->asks_only) {
        floor_heard(session, peer);
    } else if (current && !session->stopping && session->stage == SESSION_RUNNING &&
               (call->result == -ERR_STALE_TERM || call->result == -ERR_UNKNOWN_SESSION)) {
        atomic_fetch_add_explicit(&session->returns, peer->asks_only, memory_order_relaxed);
        peer_mend(session, peer, call->result);
    }
    session_over(session);
}

/* asks_only: whether it knows us; what it has heard is not noted. */
static void floor_tell(struct session *session, struct peer *peer, uint64_t now_ns,
                       bool asks_only) {
    struct call *call = &peer->floor_call;

    *call = (struct call){0};
    call->header.opcode = OP_SESSION_FLOOR;
    call->header.log = peer->log;
    call->header.term = atomic_load(&peer->term);
    call->origin = &session->actor;
    call->done = floor_answered;
    call->context = session;
    call->deadline_ns = now_ns + FLOOR_PATIENCE_S * NS_PER_S;
    peer->telling = true;
    peer->told_generation = atomic_load(&peer->generation);
    peer->asks_only = asks_only;
    session->floors_under_way++;
    call_start(session->client->options.rpc, call);
}

static bool floor_is_due(struct session *session, struct peer *peer, uint64_t now_ns) {
    uint64_t generation = atomic_load(&peer->generation);
    uint64_t floor = 0;

    if (!rpc_floor_is_due(session->client->options.rpc, peer->log, &floor) || BUG(SILENT_FLOOR)) {
        return false;
    }
    if (floor != peer->floor || generation != peer->floor_generation) {
        peer->floor = floor;
        peer->floor_generation = generation;
        peer->floor_position = 0;
        peer->floor_wait_ns = 0;
    }
    return now_ns >= peer->floor_wait_ns;
}

/* Asks a target that has started anew whether it knows us; one that could not be attached since is
 * tried once more. */
static void peer_come_back(struct session *session, struct peer *peer, uint64_t now_ns) {
    peer->return_ns = now_ns + FLOOR_AGAIN_S * NS_PER_S;
    if (atomic_load(&peer->is_lost)) {
        peer->return_ns = 0;
    } else if (peer->stage == PEER_NEW) {
        peer_mend_new(session, peer);
    } else if (peer->stage == PEER_ATTACHED && !peer->telling) {
        floor_tell(session, peer, now_ns, true);
    }
}

void floors_tell(struct session *session, uint64_t now_ns) {
    const struct router *router = &session->client->router;

    if (now_ns - session->floors_ns < FLOOR_LOOK_MS * NS_PER_MS) {
        return;
    }
    session->floors_ns = now_ns;
    for (uint32_t i = 0; i < router->peer_count; i++) {
        struct peer *peer = &router->peers[i];

        if (peer->stage == PEER_ATTACHED && !peer->telling && !atomic_load(&peer->is_lost) &&
            floor_is_due(session, peer, now_ns)) {
            floor_tell(session, peer, now_ns, false);
        }
        if (peer->return_ns != 0 && now_ns >= peer->return_ns) {
            peer_come_back(session, peer, now_ns);
        }
    }
}
