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
 * Set-group-ID without group execution goes by the writer: it stays for members of the file's
 * group, so such a file is asked for with each write.
 *
 * Then the kernel is told to forget the mode it knows: an execve right after the write must not
 * honour the bits. */
#include "env/env_groups.h"
#include "front/fuse/ops.h"

enum { GROUPS_MAX = 1024 };

bool set_id_in_mode(uint32_t mode) {
    return (mode & MODE_TYPE) == MODE_REGULAR && (mode & (MODE_SET_UID | MODE_SET_GID));
}

/* Set-group-ID without group execution makes nobody act for the group. */
static bool marks_only(uint32_t mode) {
    return (mode & (MODE_SET_GID | MODE_GROUP_EXECUTE)) == MODE_SET_GID;
}

/* The bit would be dropped without a word for someone who isn't in the file's group. */
void set_id_learn(struct fuse_request *request, uint32_t mode) {
    if (mode & MODE_SET_GID)
        (void)request_learn_groups(request);
}

static bool is_member(const struct fuse_request *request, uint32_t gid) {
    const struct abi_in_header *header = request_header(request);
    uint32_t groups[GROUPS_MAX];
    size_t count = 0;

    if (header->uid == 0 || header->gid == gid)
        return true;
    if (env_groups_get((int)header->pid, GROUPS_MAX, groups, &count) < 0)
        return false;
    for (size_t i = 0; i < MIN(count, (size_t)GROUPS_MAX); i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* As Linux has it since 6.2: where it only marks, members of the file's group leave it. */
bool set_id_must_go(const struct fuse_request *request) {
    const struct shoal_attributes *attributes = &request->shoal.attributes;

    return set_id_in_mode(attributes->mode) &&
           ((attributes->mode & MODE_SET_UID) || !marks_only(attributes->mode) ||
            !is_member(request, attributes->gid));
}

/* A call on the inode that must not hang on the caller's rights. */
static struct shoal_request *prepare_as_root(struct fuse_request *request,
                                             enum shoal_operation operation) {
    struct shoal_request *shoal = request_prepare(request, operation);

    if (request->handle)
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

/* The server leaves a bit that only marks to root and to members. */
int set_id_clear(struct fuse_request *request) {
    const struct abi_in_header *header = request_header(request);
    const struct shoal_attributes *attributes = &request->shoal.attributes;
    bool as_stranger = marks_only(attributes->mode) && !is_member(request, attributes->gid);
    struct shoal_request *shoal = prepare_as_root(request, SHOAL_SETATTR);

    request->stage = STAGE_CLEAR;
    shoal->set = SHOAL_SET_KILL_SUID;
    if (as_stranger)
        shoal->identity = (struct shoal_identity){.uid = header->uid, .gid = header->gid};
    return VERDICT_SUBMIT;
}

int set_id_next(struct fuse_request *request) {
    if (request->shoal.result < 0)
        return (int)request->shoal.result;
    if (request->stage == STAGE_LOOK && set_id_in_mode(request->shoal.attributes.mode))
        return set_id_must_go(request) ? set_id_clear(request) : VERDICT_REPLY;
    if (request->stage == STAGE_CLEAR)
        request_forget_attributes(request, request->handle->ino);
    atomic_store_explicit(&request->handle->set_id, request->set_id, memory_order_relaxed);
    return VERDICT_REPLY;
}
