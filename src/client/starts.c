/* Metadata targets that have started anew: whoever was attached comes back by itself, as what is
 * removed there is kept until all have said what they have open.
 *
 *     renewal: another number of starts --> log_starts --> of each target that is named, and to
 *     which we are attached in an earlier term, or an unknown one, or may be: a floor is told it,
 *     at a moment of the second behind that, again each second --> it is mended as the answer says
 *
 * The moment is drawn from who we are, so that not all come in one. */
#include "base/bug.h"
#include "client/client_internal.h"
#include "wire/wire_lives.h"
#include <string.h>

_Static_assert(sizeof((struct session){0}.starts_space) >=
                   MAP_GROUPS_MAX * WIRE_ROW_GROWTH * WIRE_START_BYTES_MIN,
               "all metadata targets");

static void peer_return(struct session *session, const struct wire_start *start, uint64_t now_ns) {
    struct peer *peer = router_peer(&session->client->router, (struct log_id){start->log});
    uint64_t term = peer ? atomic_load(&peer->term) : 0;
    uint64_t drawn;

    if (!peer || peer->kind != TARGET_MDT || !peer->was_tried || BUG(IDLE_STAYS) ||
        (start->term != 0 && start->term <= term)) {
        return;
    }
    drawn = (session->client->options.incarnation ^ start->log) * UINT64_C(0x9e3779b97f4a7c15);
    peer->return_ns = now_ns + (drawn >> 32) * NS_PER_S / ((uint64_t)1 << 32);
}

static void starts_answered(struct call *call) {
    struct session *session = call->context;
    uint64_t now_ns = env_now_ns(session->client->options.env);

    const struct wire_rows rows = {.bytes = {session->starts_space, call->bulk_in.size},
                                   .row_bytes = call->reply.log_starts.row_bytes,
                                   .row_bytes_min = WIRE_START_BYTES_MIN,
                                   .count_max = MAP_GROUPS_MAX};
    struct wire_start start;

    session->asking_starts = false;
    int r = call->result == 0 ? wire_rows_check(&rows) : call->result;
    for (uint32_t i = 0; r == 0 && i < wire_rows_count(&rows); i++) {
        wire_rows_get(&rows, i, &start, sizeof start);
        peer_return(session, &start, now_ns);
    }
    if (r == 0) {
        session->starts = call->reply.log_starts.starts;
    }
    session_over(session);
}

void session_starts_cancel(struct session *session) {
    if (session->asking_starts) {
        call_cancel(&session->starts_call);
    }
}

void session_starts_told(struct session *session, uint64_t starts) {
    struct call *call = &session->starts_call;

    /* A manager of the version before tells none, also behind one of this version. */
    if (starts == 0 || starts == session->starts || session->asking_starts || session->stopping) {
        return;
    }
    session->asking_starts = true;
    *call = (struct call){
        .request.log_starts.known = session->starts,
        .bulk_in = {.data = session->starts_space, .capacity = sizeof session->starts_space}};
    session_call(session, call, OP_LOG_STARTS, starts_answered);
}
