/* statfs: files of this group; bytes are the OSTs' to tell. */
#include "meta/group_internal.h"
#include "meta/operations.h"

int op_statfs(struct transaction *transaction, struct call *call) {
    const struct numbers *numbers = &transaction->group->numbers;
    uint64_t left = (UINT64_C(1) << INO_COUNTER_BITS) - numbers->inos.next;

    call->reply.statfs.files_free = left;
    call->reply.statfs.files_total = left + numbers->inode_count;
    return 0;
}
