/* The contract and the picture are in again.h. */
#include "client/again.h"
#include "client/client_internal.h"
#include <assert.h>

#define AGAIN_NS NS_PER_S

/* A request counts from before it looks whether the session was evicted. */
static bool are_requests_at_work(const struct shoal_client *client) {
    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        const struct router_readers *readers = &client->shards[i].readers;

        if (atomic_load(&readers->counts[0]) + atomic_load(&readers->counts[1]) > 0) {
            return true;
        }
    }
    return false;
}

static void files_let_go(struct session *session) {
    struct shoal_client *client = session->client;

    session->again.shards_left = CLIENT_SHARDS;
    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        client->shards[i].going.kind = SHARD_LET_GO;
        actor_post(&client->shards[i].actor, &client->shards[i].going);
    }
}

/* What opens were presented to is over; so is the incarnation, by which files are fenced. */
static void again_begin(struct session *session, uint64_t now_ns) {
    struct router *router = &session->client->router;

    for (uint32_t i = 0; i < router->peer_count; i++) {
        router->peers[i].present_term = 0;
    }
    session->again.tried_ns = now_ns;
    session->again.is_beginning = true;
    session->client->options.incarnation += 2;
    session_begin(session);
}

void again_tick(struct session *session) {
    struct again *again = &session->again;
    uint64_t now_ns = env_now_ns(session->client->options.env);

    assert(session->stage == SESSION_RUNNING);
    if (!session->client->options.began_again || !atomic_load(&session->fenced) ||
        again->shards_left > 0 || session->renewing || map_follower_is_fetching(&session->maps) ||
        session->floors_under_way > 0 || peers_are_busy(session) ||
        are_requests_at_work(session->client)) {
        return;
    }
    if (!again->have_let_go) {
        files_let_go(session);
    } else if (again->tried_ns == 0 || now_ns - again->tried_ns >= AGAIN_NS) {
        again_begin(session, now_ns);
    }
}

void again_let_go(struct session *session) {
    assert(session->again.shards_left > 0);
    session->again.shards_left--;
    session->again.have_let_go = session->again.shards_left == 0;
}

/* A stop that came meanwhile goes on by who has called this: the end is left to the manager. */
void again_begun(struct session *session, int result) {
    const struct client_options *options = &session->client->options;

    session->again.is_beginning = false;
    session->stage = SESSION_RUNNING;
    atomic_store(&session->revoked, result == -ERR_REVOKED);
    if (session->stopping) {
        session->ended = true;
        session->end_result = -ERR_FENCED;
    } else if (result == 0) {
        session->again = (struct again){.shards_left = 0};
        atomic_store(&session->fenced, false);
        options->began_again(options->map_context);
    }
}

void shard_let_go(struct shard *shard) {
    struct session *session = &shard->client->session;

    for (uint32_t bucket = 0; bucket <= shard->bucket_mask; bucket++) {
        for (struct open_file *file = shard->buckets[bucket]; file; file = file->next) {
            assert(!file->alone && file->reads_in_flight + file->writes_in_flight == 0);
            file->gone = file->evicted = true;
        }
        shard->buckets[bucket] = NULL;
    }
    shard->going.kind = SESSION_LET_GO;
    actor_post(&session->actor, &shard->going);
}
