/* Operations on attributes. */
#include "base/types.h"
#include "front/fuse/ops.h"
#include <errno.h>

int fuse_op_attributes_finish(struct fuse_request *request) {
    struct abi_attributes_out *out = request_reply_body(request, sizeof(*out));

    encode_attributes_out(request, out, &request->shoal.attributes, request->shoal.age_ns);
    return VERDICT_REPLY;
}

/* A handle that is gone is no obstacle: the inode says as much. */
static void prepare_getattr(struct fuse_request *request, uint32_t flags, uint64_t number) {
    struct handle *handle = NULL;

    if (flags & ABI_GETATTR_HANDLE)
        handle = handle_find(&request->front->handles, number);
    struct shoal_request *shoal = request_prepare(request, SHOAL_GETATTR);

    shoal->file = handle ? handle->file : NULL;
    shoal->age_max_ns = request->front->attributes_timeout_ns;
}

int fuse_op_getattr(struct fuse_request *request) {
    const struct abi_getattr_in *in = request_body(request);

    prepare_getattr(request, in->flags, in->handle);
    return VERDICT_SUBMIT;
}

int fuse_op_statx(struct fuse_request *request) {
    const struct abi_statx_in *in = request_body(request);

    prepare_getattr(request, in->getattr_flags, in->handle);
    return VERDICT_SUBMIT;
}

int fuse_op_statx_finish(struct fuse_request *request) {
    struct abi_statx_out *out = request_reply_body(request, sizeof(*out));

    encode_statx(request, out, &request->shoal.attributes, request->shoal.age_ns);
    return VERDICT_REPLY;
}

static uint32_t set_of(uint32_t valid) {
    static const struct {
        uint32_t valid;
        uint32_t set;
    } table[] = {
        {ABI_SET_MODE, SHOAL_SET_MODE},
        {ABI_SET_UID, SHOAL_SET_UID},
        {ABI_SET_GID, SHOAL_SET_GID},
        {ABI_SET_SIZE, SHOAL_SET_SIZE},
        {ABI_SET_KILL_SET_ID, SHOAL_SET_KILL_SUID},
    };
    uint32_t set = 0;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (valid & table[i].valid)
            set |= table[i].set;
    /* The kernel sends its own time beside NOW; ours are the servers'. */
    if (valid & ABI_SET_ATIME_NOW)
        set |= SHOAL_SET_ATIME_NOW;
    else if (valid & ABI_SET_ATIME)
        set |= SHOAL_SET_ATIME;
    if (valid & ABI_SET_MTIME_NOW)
        set |= SHOAL_SET_MTIME_NOW;
    else if (valid & ABI_SET_MTIME)
        set |= SHOAL_SET_MTIME;
    /* We said that we clear set-id bits, so the kernel leaves that to us when an owner changes. */
    if (valid & (ABI_SET_UID | ABI_SET_GID))
        set |= SHOAL_SET_KILL_SUID;
    return set;
}

/* Times are kept in 64 bits of nanoseconds. One beyond becomes the nearest whole second that fits,
 * which is what the kernel makes of times for file systems that tell it their limits; there is no
 * word for these in its protocol. */
static int64_t time_ns_of(uint64_t s, uint32_t ns) {
    const int64_t limit_s = INT64_MAX / (int64_t)NS_PER_S;
    int64_t asked_s = (int64_t)s;

    if (asked_s >= limit_s)
        return limit_s * (int64_t)NS_PER_S;
    if (asked_s <= -limit_s)
        return -limit_s * (int64_t)NS_PER_S;
    return asked_s * (int64_t)NS_PER_S + (int64_t)ns;
}

int fuse_op_setattr(struct fuse_request *request) {
    const struct abi_setattr_in *in = request_body(request);
    uint32_t set = set_of(in->valid);
    struct handle *handle = NULL;
    struct shoal_request *shoal;

    if (in->valid & ABI_SET_HANDLE) {
        handle = handle_find(&request->front->handles, in->handle);
        if (!handle)
            return -EBADF;
    }
    if (set & SHOAL_SET_MODE)
        set_id_learn(request, in->mode);
    /* The kernel also asks with nothing to set when it would have cleared set-id bits itself. */
    shoal = request_prepare(request, set ? SHOAL_SETATTR : SHOAL_GETATTR);
    shoal->file = handle ? handle->file : NULL;
    shoal->set = set;
    shoal->attributes.mode = in->mode & MODE_PERMISSIONS;
    shoal->attributes.uid = in->uid;
    shoal->attributes.gid = in->gid;
    shoal->attributes.size = in->size;
    shoal->attributes.atime_ns = time_ns_of(in->atime, in->atime_ns);
    shoal->attributes.mtime_ns = time_ns_of(in->mtime, in->mtime_ns);
    return VERDICT_SUBMIT;
}

/* A truncation by a stranger, which has left a bit that only marks. */
static bool is_to_clear(const struct fuse_request *request) {
    const struct abi_setattr_in *in = request_body(request);

    return request->stage == STAGE_START && (in->valid & ABI_SET_SIZE) &&
           (in->valid & ABI_SET_KILL_SET_ID) && set_id_must_go(request);
}

int fuse_op_setattr_finish(struct fuse_request *request) {
    struct shoal_request *shoal = &request->shoal;

    if (shoal->result < 0)
        return (int)shoal->result;
    if (is_to_clear(request))
        return set_id_clear(request);
    if ((shoal->set & SHOAL_SET_MODE) && set_id_in_mode(shoal->attributes.mode))
        atomic_fetch_add(&request->front->set_id_change, 1);
    return fuse_op_attributes_finish(request);
}

int fuse_op_access(struct fuse_request *request) {
    const struct abi_access_in *in = request_body(request);

    request_prepare(request, SHOAL_ACCESS)->mode = in->mask & 7;
    return VERDICT_SUBMIT;
}

int fuse_op_statfs(struct fuse_request *request) {
    request_prepare(request, SHOAL_STATFS);
    return VERDICT_SUBMIT;
}

int fuse_op_statfs_finish(struct fuse_request *request) {
    struct abi_statfs_out *out = request_reply_body(request, sizeof(*out));
    const struct shoal_statfs *from = &request->shoal.statfs;

    out->blocks = from->bytes_total / BLOCK_BYTES;
    out->blocks_free = from->bytes_free / BLOCK_BYTES;
    out->blocks_available = from->bytes_available / BLOCK_BYTES;
    out->files = from->files_total;
    out->files_free = from->files_free;
    out->block_bytes = BLOCK_BYTES;
    out->fragment_bytes = BLOCK_BYTES;
    out->name_bytes_max = SHOAL_NAME_BYTES_MAX;
    return VERDICT_REPLY;
}
