/* What every target is asked: how much room there is, and a sync point.
 *
 * Metadata targets are synced before storage targets are asked to: a small file's bytes may move
 * from one to the other meanwhile (meta/op_inline.c), and the former, once asked, lets none go that
 * are not on disk at the latter. */
#include "client/client_internal.h"
#include "client/fan.h"
#include "client/loss.h"
#include <assert.h>

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
    if (r == 0 && piece->take) {
        piece->take(operation, &errand->call);
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

    if (!peer) {
        return false;
    }
    if (operation->stage != STATFS_ASKED &&
        (peer->kind == TARGET_MDT) != (operation->stage == SYNC_OF_MDTS)) {
        return false;
    }
    errand_start_peer(errand, operation->stage == STATFS_ASKED ? OP_STATFS : OP_SYNC, peer);
    return true;
}

/* Storage targets have the bytes, metadata targets the files. */
static void everywhere_take(struct operation *operation, const struct call *call) {
    struct shoal_statfs *sum = &operation_request(operation)->statfs;
    const struct statfs_reply *reply = &call->reply.statfs;

    sum->bytes_total += reply->bytes_total;
    sum->bytes_free += reply->bytes_free;
    sum->bytes_available += reply->bytes_available;
    sum->files_total += reply->files_total;
    sum->files_free += reply->files_free;
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
    if (!fan_advance(operation, everywhere_send, statfs ? everywhere_take : NULL)) {
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
