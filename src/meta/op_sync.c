/* sync: answers when what the position names, or all there is now, is on disk. */
#include "meta/group_internal.h"
#include "meta/operations.h"

int op_sync(struct transaction *transaction, struct call *call) {
    struct group *group = transaction->group;
    uint64_t position = call->request.sync.position;

    if (position > 0 && position <= kv_synced_position(group->kv)) {
        call->reply.sync.synced_position = kv_synced_position(group->kv);
        return 0;
    }
    transaction->after_sync = true;
    return 0;
}
