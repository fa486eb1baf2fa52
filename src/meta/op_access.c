/* access: whether a mask of rights would be granted. */
#include "meta/inode.h"
#include "meta/operations.h"

int op_access(struct transaction *transaction, struct call *call) {
    const struct access_request *request = &call->request.access;
    const struct inode_row *row;

    if (request->mask & ~(uint32_t)(ACCESS_READ | ACCESS_WRITE | ACCESS_EXECUTE)) {
        return -ERR_INVALID;
    }
    int r = inode_get(transaction, request->ino, &row);
    return r < 0 ? r : permission_check(&request->who, inode_ownership(row), request->mask);
}
