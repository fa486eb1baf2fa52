/* Operations on the content of open files. */
#include "front/fuse/ops.h"
#include <errno.h>

enum { READ_BLOCK_BYTES = 4096 };

/* The last block is read whole, as there is room: a part of one would be read by itself. */
static size_t read_bytes(const struct fuse_request *request, const struct abi_read_in *in) {
    size_t whole = (in->size + READ_BLOCK_BYTES - 1) / READ_BLOCK_BYTES * READ_BLOCK_BYTES;

    return in->offset % READ_BLOCK_BYTES == 0 && whole <= request->front->features.write_bytes_max
               ? whole
               : in->size;
}

int fuse_op_read(struct fuse_request *request) {
    const struct abi_read_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_READ, in->handle);

    if (r < 0)
        return r;
    if (in->size > request->front->features.write_bytes_max)
        return -EINVAL;
    kept_use_read(&request->front->kept, &request->handle->pages, request->handle->ino, in->offset,
                  in->size);
    request->shoal.offset = in->offset;
    request->shoal.data = request_payload(request);
    request->shoal.size = read_bytes(request, in);
    return VERDICT_SUBMIT;
}

int fuse_op_read_finish(struct fuse_request *request) {
    const struct abi_read_in *in = request_body(request);
    struct shoal_request *shoal = &request->shoal;

    shoal->result = MIN(shoal->result, (int64_t)in->size);
    /* The kernel takes that for the file's end; also by a handle that reads past its pages, where
     * it is mapped or spliced. */
    if ((!request->handle->direct || request->handle->pages.way == KEPT_PAST) &&
        shoal->result >= 0 && (uint64_t)shoal->result < in->size) {
        ahead_told(request->front);
        told_end(&request->front->told, request_header(request)->nodeid,
                 shoal->offset + (uint64_t)shoal->result);
    }
    return fuse_op_data_finish(request);
}

static int write_act(struct fuse_request *request) {
    const struct abi_write_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_WRITE, in->handle);

    if (r < 0)
        return r;
    request->stage = STAGE_ACT;
    request->shoal.offset = in->offset;
    request->shoal.data = request_payload(request);
    request->shoal.size = in->size;
    return VERDICT_SUBMIT;
}

static int write_reply(struct fuse_request *request) {
    const struct abi_write_in *in = request_body(request);
    struct abi_write_out *out = request_reply_body(request, sizeof(*out));

    out->size = in->size;
    return VERDICT_REPLY;
}

int fuse_op_write(struct fuse_request *request) {
    const struct abi_write_in *in = request_body(request);
    int r = VERDICT_REPLY;

    static_assert(sizeof(struct abi_in_header) + sizeof(*in) == BUFFER_PREFIX_BYTES,
                  "so that the payload starts on a page");
    if (request->in_bytes != BUFFER_PREFIX_BYTES + (size_t)in->size)
        return -EIO;
    request->handle = handle_find(&request->front->handles, in->handle);
    if (!request->handle)
        return -EBADF;
    if (in->write_flags & ABI_WRITE_KILL_SET_ID)
        r = set_id_start(request);
    return r == VERDICT_REPLY ? write_act(request) : r;
}

/* O_SYNC and O_DSYNC: for direct I/O the kernel sends no FSYNC behind the write. */
static bool must_sync(const struct fuse_request *request) {
    const struct abi_write_in *in = request_body(request);

    return (in->flags & LINUX_DATA_SYNC) && request->handle->direct;
}

int fuse_op_write_finish(struct fuse_request *request) {
    const struct abi_write_in *in = request_body(request);
    int r;

    switch (request->stage) {
    case STAGE_LOOK:
    case STAGE_CLEAR:
        r = set_id_next(request);
        return r == VERDICT_REPLY ? write_act(request) : r;
    case STAGE_ACT:
        if (request->shoal.result < 0)
            return (int)request->shoal.result;
        if (request->shoal.result != (int64_t)in->size)
            return -EIO;
        if (!must_sync(request))
            return write_reply(request);
        request->stage = STAGE_SYNC;
        return request_prepare_handle(request, SHOAL_FSYNC, in->handle);
    default:
        return request->shoal.result < 0 ? (int)request->shoal.result : write_reply(request);
    }
}

/* close: nothing to settle for who can't have written. */
int fuse_op_flush(struct fuse_request *request) {
    const struct abi_close_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_FLUSH, in->handle);

    if (r == VERDICT_SUBMIT && !request->handle->writable)
        return VERDICT_REPLY;
    return r;
}

int fuse_op_fsync(struct fuse_request *request) {
    const struct abi_handle_in *in = request_body(request);

    return request_prepare_handle(request, SHOAL_FSYNC, in->handle);
}

int fuse_op_syncfs(struct fuse_request *request) {
    request_prepare(request, SHOAL_SYNC);
    return VERDICT_SUBMIT;
}

static int fallocate_act(struct fuse_request *request) {
    const struct abi_fallocate_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_ALLOCATE, in->handle);

    if (r < 0)
        return r;
    request->stage = STAGE_ACT;
    request->shoal.offset = in->offset;
    request->shoal.size = in->length;
    request->shoal.flags = in->mode;
    return VERDICT_SUBMIT;
}

static_assert((int)ABI_ALLOCATE_KEEP_SIZE == (int)SHOAL_KEEP_SIZE &&
                  (int)ABI_ALLOCATE_PUNCH_HOLE == (int)SHOAL_PUNCH_HOLE &&
                  (int)ABI_ALLOCATE_ZERO_RANGE == (int)SHOAL_ZERO_RANGE,
              "passed on as they are");

/* Ranges are neither collapsed nor inserted, nor made unshared. */
static bool fallocate_knows(uint32_t mode) {
    return mode == 0 || mode == ABI_ALLOCATE_KEEP_SIZE ||
           mode == (ABI_ALLOCATE_KEEP_SIZE | ABI_ALLOCATE_PUNCH_HOLE) ||
           (mode & ~(uint32_t)ABI_ALLOCATE_KEEP_SIZE) == ABI_ALLOCATE_ZERO_RANGE;
}

int fuse_op_fallocate(struct fuse_request *request) {
    const struct abi_fallocate_in *in = request_body(request);
    int r = VERDICT_REPLY;

    if (!fallocate_knows(in->mode))
        return -EOPNOTSUPP;
    request->handle = handle_find(&request->front->handles, in->handle);
    if (!request->handle)
        return -EBADF;
    if (request_header(request)->uid != 0)
        r = set_id_start(request);
    return r == VERDICT_REPLY ? fallocate_act(request) : r;
}

int fuse_op_fallocate_finish(struct fuse_request *request) {
    int r;

    if (request->stage == STAGE_ACT)
        return request->shoal.result < 0 ? (int)request->shoal.result : VERDICT_REPLY;
    r = set_id_next(request);
    return r == VERDICT_REPLY ? fallocate_act(request) : r;
}

/* The kernel does the other ways to seek by itself. */
int fuse_op_lseek(struct fuse_request *request) {
    const struct abi_lseek_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_SEEK, in->handle);

    static_assert((int)ABI_SEEK_DATA == (int)SHOAL_SEEK_DATA &&
                      (int)ABI_SEEK_HOLE == (int)SHOAL_SEEK_HOLE,
                  "passed on as they are");
    if (r < 0)
        return r;
    request->shoal.offset = in->offset;
    request->shoal.flags = in->whence;
    return VERDICT_SUBMIT;
}

int fuse_op_lseek_finish(struct fuse_request *request) {
    struct abi_lseek_out *out = request_reply_body(request, sizeof(*out));

    out->offset = (uint64_t)request->shoal.result;
    return VERDICT_REPLY;
}
