/* Set-user-ID and set-group-ID bits go when someone without privilege changes a file's content.
 *
 * The kernel leaves that to us for direct I/O, and says with each write that its caller has no
 * privilege, whatever the file's mode is. Asking for the mode before each write would double their
 * cost, so each handle remembers the value of front->set_id_change at which its file had no such
 * bits; only a SETATTR that may set one raises that counter. (One that comes through another mount
 * is noticed with the next open: close-to-open.)
 *
 *     start --known--> REPLY        LOOK (getattr) --no bits--> REPLY
 *       '-- not known --> LOOK        '-- bits --> CLEAR (setattr as root) --> REPLY
 *
 * Then the kernel is told to forget the mode it knows: an execve right after the write must not
 * honour the bits. */
#include "front/fuse/ops.h"

/* As Linux has it: set-group-ID without group execution marks something else and stays. */
bool set_id_in_mode(uint32_t mode) {
    return (mode & MODE_TYPE) == MODE_REGULAR &&
           ((mode & MODE_SET_UID) ||
            (mode & (MODE_SET_GID | MODE_GROUP_EXECUTE)) == (MODE_SET_GID | MODE_GROUP_EXECUTE));
}

/* A call on the inode that must not hang on the caller's rights. */
static struct shoal_request *prepare_as_root(struct fuse_request *request,
                                             enum shoal_operation operation) {
    struct shoal_request *shoal = request_prepare(request, operation);

    shoal->ino = request->handle->ino;
    shoal->identity = (struct shoal_identity){0};
    return shoal;
}

int set_id_start(struct fuse_request *request) {
    uint32_t change = atomic_load(&request->front->set_id_change);

    if (atomic_load_explicit(&request->handle->set_id, memory_order_relaxed) == change)
        return VERDICT_REPLY;
    request->set_id = change;
    request->stage = STAGE_LOOK;
    prepare_as_root(request, SHOAL_GETATTR);
    return VERDICT_SUBMIT;
}

int set_id_clear(struct fuse_request *request) {
    request->stage = STAGE_CLEAR;
    prepare_as_root(request, SHOAL_SETATTR)->set = SHOAL_SET_KILL_SUID;
    return VERDICT_SUBMIT;
}

int set_id_next(struct fuse_request *request) {
    struct front *front = request->front;

    if (request->shoal.result < 0)
        return (int)request->shoal.result;
    if (request->stage == STAGE_LOOK && set_id_in_mode(request->shoal.attributes.mode))
        return set_id_clear(request);
    if (request->stage == STAGE_CLEAR)
        front->channel->forget_attributes(front->channel, request->handle->ino);
    atomic_store_explicit(&request->handle->set_id, request->set_id, memory_order_relaxed);
    return VERDICT_REPLY;
}
