/* What every target is asked: how much room there is, and a sync point.
 *
 * Metadata targets are synced before storage targets are asked to: a small file's bytes may move
 * from one to the other meanwhile (meta/op_inline.c), and the former, once asked, lets none go that
 * are not on disk at the latter. */
#include "client/client_internal.h"
#include "client/fan.h"
#include "client/loss.h"
#include <assert.h>

/* Programs ask at any time, and a file system that looks at each mount must not hang. */
#define STATFS_NS NS_PER_S

void fan_start(struct operation *operation, uint32_t count) {
    assert(operation->in_flight == 0 && !list_contains(&operation->node));
    operation->next = 0;
    operation->end = count;
    operation->in_flight = 0;
    operation->result = 0;
}

static void fan_done(struct errand *errand) {
    struct piece *piece = CONTAINER_OF(errand, struct piece, errand);
    struct operation *operation = piece->operation;
    int r = errand->call.result;

    assert(operation->in_flight > 0 && operation->in_flight <= operation->next);
    if (piece->take) {
        r = piece->take(operation, errand);
    }
    piece_put(&operation->shard->pieces, piece);
    operation->in_flight--;
    if (r && operation->result == 0) {
        operation->result = r;
    }
    if (operation->result) {
        list_remove(&operation->node);
    }
    operation->step(operation);
}

bool fan_advance(struct operation *operation, fan_send_fn *send, fan_take_fn *take) {
    if (list_contains(&operation->node)) {
        return false;
    }
    while (operation->result == 0 && operation->next < operation->end) {
        struct piece *piece = piece_get(&operation->shard->pieces, operation);

        if (!piece) {
            return false;
        }
        piece->take = take;
        operation_errand_init(operation, &piece->errand, fan_done);
        operation->in_flight++;
        if (!send(operation, &piece->errand, (uint32_t)operation->next++)) {
            piece_put(&operation->shard->pieces, piece);
            operation->in_flight--;
        }
    }
    return operation->in_flight == 0;
}

enum { EVERYWHERE_START, STATFS_ASKED, SYNC_OF_MDTS, SYNC_OF_OSTS };

static bool everywhere_send(struct operation *operation, struct errand *errand, uint32_t number) {
    struct peer *peer = router_place(&operation->client->router, number);

    if (!peer || atomic_load(&peer->is_lost)) {
        return false;
    }
    if (operation->stage != STATFS_ASKED &&
        (peer->kind == TARGET_MDT) != (operation->stage == SYNC_OF_MDTS)) {
        return false;
    }
    if (operation->stage == STATFS_ASKED) {
        uint64_t soon_ns = env_now_ns(operation->client->options.env) + STATFS_NS;

        errand->call.deadline_ns = MIN(errand->call.deadline_ns, soon_ns);
        errand->call.patience_ns = MIN(errand->call.patience_ns, STATFS_NS);
    }
    errand_start_peer(errand, operation->stage == STATFS_ASKED ? OP_STATFS : OP_SYNC, peer);
    return true;
}

#define SPACE_FIELDS(F) F(bytes_total) F(bytes_free) F(bytes_available) F(files_total) F(files_free)

/* Storage targets have the bytes, metadata targets the files. Of one that does not answer in time
 * counts what it has said last. */
static int everywhere_take(struct operation *operation, const struct errand *errand) {
    struct shoal_statfs *sum = &operation_request(operation)->statfs;
    struct peer_space *known = &errand->peer->space;
    int r = errand->call.result;

    if (r == 0) {
        const struct statfs_reply *reply = &errand->call.reply.statfs;

#define KEEP(field) atomic_store_explicit(&known->field, reply->field, memory_order_relaxed);
        SPACE_FIELDS(KEEP)
#undef KEEP
    }
    if (r == 0 || r == -ERR_TIMED_OUT || r == -ERR_AWAY) {
#define ADD(field) sum->field += atomic_load_explicit(&known->field, memory_order_relaxed);
        SPACE_FIELDS(ADD)
#undef ADD
        return 0;
    }
    return r == -ERR_TARGET_LOST ? 0 : r;
}

/* Of one that was lost while it was asked, the ledger tells what that costs. */
int sync_take(struct operation *operation, const struct errand *errand) {
    (void)operation;
    return errand->call.result == -ERR_TARGET_LOST ? 0 : errand->call.result;
}

static void everywhere_begin(struct operation *operation, uint32_t stage) {
    operation->stage = stage;
    fan_start(operation, cluster_map_log_places(router_map(&operation->client->router)));
}

void op_everywhere_step(struct operation *operation) {
    bool statfs = operation_request(operation)->operation == SHOAL_STATFS;

    if (operation->stage == EVERYWHERE_START) {
        operation_request(operation)->statfs = (struct shoal_statfs){0};
        everywhere_begin(operation, statfs ? STATFS_ASKED : SYNC_OF_MDTS);
    }
    if (!fan_advance(operation, everywhere_send, statfs ? everywhere_take : sync_take)) {
        return;
    }
    if (operation->stage == SYNC_OF_MDTS && operation->result == 0) {
        everywhere_begin(operation, SYNC_OF_OSTS);
        op_everywhere_step(operation);
        return;
    }
    int lost = statfs || operation->result ? 0 : loss_tell_all(operation);

    operation_finish(operation, operation->result ? operation->result : lost);
}
