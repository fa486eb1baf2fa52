/* sync: answers when what the position names, or all there is now, is on disk. */
#include "meta/group_internal.h"
#include "meta/operations.h"

int op_sync(struct transaction *transaction, struct call *call) {
    struct group *group = transaction->group;
    uint64_t position = call->request.sync.position;

    /* Whoever has seen an earlier term is to hear first what our new start has cost. */
    if (call->header.term != 0 && call->header.term != group->term) {
        return -ERR_STALE_TERM;
    }
    group->promised_epoch = group->numbers.epoch;
    if (position > 0 && position <= kv_synced_position(group->kv)) {
        call->reply.sync.synced_position = kv_synced_position(group->kv);
        return 0;
    }
    transaction->after_sync = true;
    return 0;
}
