/* Attaching to servers, and again after they have started anew; the picture is in peer.h. */
#include "client/client_internal.h"
#include "rpc/sequence.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void peer_attach(struct session *session, struct peer *peer);
static void peer_present(struct session *session, struct peer *peer);

/* Those without a patience wait on for one that is away, or has no room for our opens: they are
 * mended at a tick. */
static bool errand_waits_on(const struct errand *errand, int result) {
    return errand->call.patience_ns == 0 &&
           (result == -ERR_AWAY || result == -ERR_NO_MEMORY || result == -ERR_TOO_MANY_OPEN);
}

/* That nobody has answered the attachment for its patience says nothing of those that stalled after
 * it began: each ends by its own, and meanwhile it is tried again at a tick. */
static bool errand_is_in_time(const struct session *session, const struct errand *errand,
                              int result) {
    uint64_t deadline_ns = errand->call.deadline_ns;

    return result == -ERR_TIMED_OUT && !session->stopping && deadline_ns != UINT64_MAX &&
           env_now_ns(session->client->options.env) < deadline_ns;
}

static void peer_give_back(const struct session *session, struct peer *peer, int result) {
    struct list_node *last = peer->stalled.head.previous;
    struct list_node *node = NULL;

    while (node != last && (node = list_pop_front(&peer->stalled)) != NULL) {
        struct errand *errand = CONTAINER_OF(node, struct errand, node);

        if (errand_waits_on(errand, result) || errand_is_in_time(session, errand, result)) {
            list_push_back(&peer->stalled, node);
        } else {
            session_give_back(errand, result);
        }
    }
}

/* The next thing to do for a peer whose round is not complete. */
static void peer_go_on(struct session *session, struct peer *peer) {
    if (!peer->attached) {
        peer_attach(session, peer);
    } else if (!peer->presented) {
        peer_present(session, peer);
    } else {
        peer->stage = PEER_ATTACHED;
        atomic_fetch_add_explicit(&peer->generation, 1, memory_order_release);
        peer_give_back(session, peer, 0);
        client_session_attached(session, 0);
    }
}

static void peer_fail(struct session *session, struct peer *peer, int result) {
    if (result == -ERR_FENCED) {
        client_session_fence(session, client_session(session->client));
    }
    peer->stage = PEER_NEW;
    peer_give_back(session, peer, result);
    client_session_attached(session, result);
}

static struct log_life life_of(const struct session_attach_reply *reply) {
    return (struct log_life){reply->life_high, reply->life_low};
}

/* Whether who answers is who we knew, or a later start of it. Else it has the log from a copy of
 * what the other one had: it lacks what that one has acknowledged since. */
static bool peer_is_successor(const struct peer *peer, const struct session_attach_reply *reply) {
    uint64_t term = atomic_load(&peer->term);

    return reply->term > term || (reply->term == term && log_life_is(life_of(reply), peer->life));
}

/* An attachment waits for a target that is away, which may be back without the key of the ticket
 * that it was begun with. */
static bool has_newer_ticket(const struct session *session, const struct peer *peer) {
    struct bytes ticket = session_ticket(session);

    return ticket.size != peer->ticket_bytes || memcmp(ticket.data, peer->ticket, ticket.size) != 0;
}

static void attach_answered(struct call *call) {
    struct peer *peer = CONTAINER_OF(call, struct peer, call);
    struct session *session = call->context;

    assert(peer->stage == PEER_ATTACHING && !peer->attached);
    if (call->result == -ERR_STALE_TERM) {
        /* It has started anew since it was told of our opens. */
        peer->mended_term = atomic_load(&peer->term);
        peer_present(session, peer);
        session_over(session);
        return;
    }
    if (call->result == -ERR_BAD_TICKET && has_newer_ticket(session, peer)) {
        peer->stage = PEER_NEW;
        peer_attach(session, peer);
        return;
    }
    if (call->result) {
        peer_fail(session, peer, call->result);
        session_over(session);
        return;
    }
    if (!peer_is_successor(peer, &call->reply.session_attach)) {
        peer_fail(session, peer, -ERR_TWO_LIVES);
        session_over(session);
        return;
    }
    /* What the start has cost is known before anything is sent to the new term. */
    ledger_restart(&peer->ledger, call->reply.session_attach.term,
                   call->reply.session_attach.recovered_position);
    atomic_store_explicit(&peer->term, call->reply.session_attach.term, memory_order_release);
    peer->life = life_of(&call->reply.session_attach);
    rpc_window_set(session->client->options.rpc, peer->log, call->reply.session_attach.window);
    peer->attached = true;
    peer_go_on(session, peer);
    session_over(session);
}

static void peer_attach(struct session *session, struct peer *peer) {
    const struct client_options *options = &session->client->options;
    struct bytes ticket = session_ticket(session);
    struct call *call = &peer->call;

    assert(peer->stage != PEER_ATTACHING && !peer->attached && peer->shards_left == 0);
    memcpy(peer->ticket, ticket.data, ticket.size);
    peer->ticket_bytes = ticket.size;
    peer->stage = PEER_ATTACHING;
    peer->was_tried = true;
    *call = (struct call){0};
    call->header.opcode = OP_SESSION_ATTACH;
    call->header.log = peer->log;
    call->header.term = peer->presented ? peer->present_term : 0;
    call->request.session_attach = (struct session_attach_request){
        .session = atomic_load(&session->id),
        .incarnation = options->incarnation,
        .node = options->node.value,
        .known_term = atomic_load(&peer->ledger.term),
        .ticket = {peer->ticket, peer->ticket_bytes},
        .ended = session->ended_number,
    };
    call->origin = &session->actor;
    call->done = attach_answered;
    call->context = session;
    call->deadline_ns = env_now_ns(options->env) + options->request_timeout_ns;
    call->patience_ns = session_patience_ns(session);
    call_start(options->rpc, call);
}

/* why: -ERR_UNKNOWN_SESSION: it does not know us, so there is nothing to present to before we are
 * attached; -ERR_STALE_TERM: it does, and waits for our opens. Before the first map nothing is
 * open. */
void peer_mend(struct session *session, struct peer *peer, int why) {
    if (peer->stage != PEER_NEW && peer->stage != PEER_ATTACHED) {
        return;
    }
    peer->attached = false;
    peer->mended_term = atomic_load(&peer->term);
    peer->presented = peer->kind != TARGET_MDT || session->stage != SESSION_RUNNING;
    if (session->stage == SESSION_RUNNING && peer->mended_term != 0) {
        atomic_fetch_add_explicit(&session->reattachments, 1, memory_order_relaxed);
    }
    if (why == -ERR_STALE_TERM && !peer->presented) {
        peer_present(session, peer);
    } else {
        peer_attach(session, peer);
    }
}

void peer_stall(struct session *session, struct errand *errand) {
    struct peer *peer = errand->peer;

    if (atomic_load(&session->fenced)) {
        session_give_back(errand, -ERR_FENCED);
    } else if (errand->generation != atomic_load(&peer->generation)) {
        session_give_back(errand, 0); /* Mended since it was sent. */
    } else {
        list_push_back(&peer->stalled, &errand->node);
        peer_mend(session, peer, errand->call.result);
    }
}

bool peers_are_busy(const struct session *session) {
    const struct router *router = &session->client->router;

    for (uint32_t i = 0; i < router->peer_count; i++) {
        enum peer_stage stage = router->peers[i].stage;

        if (stage == PEER_ATTACHING || stage == PEER_REOPENING) {
            return true;
        }
    }
    return false;
}

void peers_cancel(struct session *session) {
    struct router *router = &session->client->router;

    for (uint32_t i = 0; i < router->peer_count; i++) {
        if (router->peers[i].stage == PEER_ATTACHING) {
            call_cancel(&router->peers[i].call);
        }
        if (router->peers[i].telling) {
            call_cancel(&router->peers[i].floor_call);
        }
    }
}

/* Who knew us may have started anew since: who attaches without having presented its opens says
 * that it has none. One that does not know us after all answers that by itself. */
void peer_mend_new(struct session *session, struct peer *peer) {
    peer_mend(session, peer,
              atomic_load(&peer->term) != 0 ? -ERR_STALE_TERM : -ERR_UNKNOWN_SESSION);
}

void peers_expire(struct session *session, int result) {
    struct router *router = &session->client->router;

    for (uint32_t i = 0; i < router->peer_count; i++) {
        struct list *stalled = &router->peers[i].stalled;
        struct list_node *node = list_first(stalled);

        while (node) {
            struct errand *errand = CONTAINER_OF(node, struct errand, node);

            int r = session_stalled_over(session, errand, router->peers[i].log, result);

            node = list_next(stalled, node);
            if (r) {
                list_remove(&errand->node);
                session_give_back(errand, r);
            }
        }
        if (router->peers[i].stage == PEER_NEW && !list_is_empty(stalled) && !session->stopping) {
            peer_mend_new(session, &router->peers[i]);
        }
    }
}

/* Every shard presents its own, all at once; what is presented to one peer does not wait for what
 * is to another, which may be away. Their places stay for the next time. */
static void peer_present(struct session *session, struct peer *peer) {
    assert(peer->shards_left == 0);
    if (!peer->reopenings) {
        peer->reopenings = calloc(CLIENT_SHARDS, sizeof *peer->reopenings);
    }
    if (!peer->reopenings) {
        peer_fail(session, peer, -ERR_NO_MEMORY);
        return;
    }
    peer->stage = PEER_REOPENING;
    /* Not the one that we are attached to: it is the same where the server alone forgot us. */
    uint64_t over = peer->mended_term;

    over -= peer->attached && over > 0 && over == atomic_load(&peer->term) ? 1 : 0;
    atomic_store_explicit(&peer->over_term, over, memory_order_release);
    peer->present_term = 0;
    peer->shards_left = CLIENT_SHARDS;
    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        struct reopening *reopening = &peer->reopenings[i];

        reopening->peer = peer;
        reopening->shard = &session->client->shards[i];
        reopening->bucket = 0;
        reopening->file = NULL;
        reopening->result = 0;
        reopening->term = 0;
        reopening->message.kind = SHARD_REOPEN;
        actor_post(&reopening->shard->actor, &reopening->message);
    }
}

/* All opens must be presented to one term: a server that starts anew has forgotten the first. */
static bool term_is_one(uint64_t *term, uint64_t other) {
    if (*term == 0) {
        *term = other;
    }
    return other == 0 || *term == other;
}

/* A peer that did not know us after all is attached first, then told. */
void peer_presented(struct session *session, struct message *message) {
    struct reopening *reopening = CONTAINER_OF(message, struct reopening, message);
    struct peer *peer = reopening->peer;

    assert(peer->stage == PEER_REOPENING);
    assert(peer->shards_left > 0 && !reopening->file);
    if (reopening->result && peer->present_result == 0) {
        peer->present_result = reopening->result;
    }
    if (!term_is_one(&peer->present_term, reopening->term) && peer->present_result == 0) {
        peer->present_result = -ERR_STALE_TERM;
    }
    if (--peer->shards_left > 0) {
        return;
    }
    int r = peer->present_result;

    peer->present_result = 0;
    if (r == 0 || (r == -ERR_UNKNOWN_SESSION && !peer->attached)) {
        peer->presented = r == 0;
        peer_go_on(session, peer);
    } else if (r == -ERR_STALE_TERM) {
        /* Once more from the beginning. */
        peer->mended_term = atomic_load(&peer->term);
        peer_present(session, peer);
    } else {
        peer_fail(session, peer, r);
    }
    session_over(session);
}

/* The file after the cursor's that is open and served by the peer; NULL at the end. */
static struct open_file *reopening_next(const struct shard *shard, struct reopening *reopening) {
    struct open_file *file = reopening->file ? reopening->file->next : NULL;
    struct peer *peer;

    if (!reopening->file) {
        file = shard->buckets[0];
    }
    for (;;) {
        while (!file && reopening->bucket < shard->bucket_mask) {
            file = shard->buckets[++reopening->bucket];
        }
        if (!file || ((file->writer_count > 0 || file->reader_count > 0) &&
                      router_slot(&shard->client->router, ino_slot(file->ino), &peer) == 0 &&
                      peer == reopening->peer)) {
            return file;
        }
        file = file->next;
    }
}

static void reopening_end(struct reopening *reopening) {
    reopening->message.kind = SESSION_PRESENTED;
    actor_post(&reopening->shard->client->session.actor, &reopening->message);
}

/* Whether an error of a reopen is about its inode alone, and lasts: who uses that is answered the
 * same, and nobody else waits. With any other error the server does not know of the open: were we
 * attached then, the file would count as closed. */
static bool is_of_its_inode(int result) {
    return result == -ERR_STALE || result == -ERR_BAD_HANDLE || result == -ERR_CORRUPT ||
           result == -ERR_MALFORMED || result == -ERR_INVALID || result == -ERR_OLDER_FORMAT ||
           result == -ERR_NEWER_FORMAT;
}

/* The requests of a file that the server has not got any more are answered with -ERR_STALE: a
 * storage target does not know better, and would take what nobody ever removes. */
static void reopening_answered(struct errand *errand) {
    struct reopening *reopening = CONTAINER_OF(errand, struct reopening, errand);
    struct shard *shard = reopening->shard;
    int r = errand->call.result;

    if (r == 0) {
        file_restarted(reopening->file, &errand->call.reply.reopen);
        atomic_fetch_add_explicit(&shard->reopened, 1, memory_order_relaxed);
        r = term_is_one(&reopening->term, errand->call.reply.reopen.term) ? 0 : -ERR_STALE_TERM;
    }
    if (r == -ERR_STALE) {
        reopening->file->gone = true; /* Its creation was lost. */
    }
    if (r < 0 && !is_of_its_inode(r)) {
        reopening->result = r;
        file_unpin(reopening->file);
        reopening->file = NULL;
        reopening_end(reopening);
        return;
    }
    shard_reopen(reopening);
}

static void reopening_go_on(struct reopening *reopening) {
    struct shard *shard = reopening->shard;
    const struct client_options *options = &shard->client->options;
    struct open_file *file = reopening_next(shard, reopening);

    if (file) {
        file_pin(file);
    }
    if (reopening->file) {
        file_unpin(reopening->file);
    }
    reopening->file = file;
    if (!file) {
        reopening_end(reopening);
        return;
    }
    errand_init(&reopening->errand, shard, reopening_answered,
                env_now_ns(options->env) + options->request_timeout_ns);
    reopening->errand.plain = true;
    reopening->errand.call.patience_ns = options->request_timeout_ns;
    file_reopen_fill(file, &reopening->errand.call.request.reopen);
    errand_start_peer(&reopening->errand, OP_REOPEN, reopening->peer);
}

/* No request of the file may be under way that keeps the map. */
void shard_reopen(struct reopening *reopening) {
    struct shard *shard = reopening->shard;
    struct router *router = &shard->client->router;
    uint32_t parity = router_enter(router, &shard->readers);

    reopening_go_on(reopening);
    router_leave(&shard->readers, parity);
}
