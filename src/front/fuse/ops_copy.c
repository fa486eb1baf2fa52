/* copy_file_range: what it copies does not pass through the kernel, nor through the program.
 *
 *     START --set-id bits of the target--> FETCH (read a piece of the source)
 *                                            ^   |
 *                                            |   v
 *                                           ACT (write it) --end, signal, error--> reply
 *
 * The pieces pass through the request's own buffer, one after the other. While the kernel waits it
 * holds the target's lock, so one request copies COPY_BYTES_MAX at most, and no more than it has
 * when a signal comes; and where two users take turns, one piece, as a WRITE has. The program asks
 * again. What was copied before an error is told, and the
 * error with the next request. */
#include "front/fuse/ops.h"
#include <errno.h>

enum { COPY_BYTES_MAX = 16 << 20 };

static bool is_64(const struct fuse_request *request) {
    return request->op->start == fuse_op_copy_64;
}

static int copy_reply(struct fuse_request *request) {
    if (is_64(request)) {
        struct abi_copy_64_out *out = request_reply_body(request, sizeof(*out));

        out->bytes = request->copy.done;
    } else {
        struct abi_write_out *out = request_reply_body(request, sizeof(*out));

        out->size = (uint32_t)request->copy.done;
    }
    return VERDICT_REPLY;
}

/* As a write through this handle would: on disk before it is acknowledged. */
static int copy_end(struct fuse_request *request) {
    if (!request->handle->synchronous || request->copy.done == 0)
        return copy_reply(request);
    request->stage = STAGE_SYNC;
    request_prepare(request, SHOAL_FSYNC)->file = request->handle->file;
    return VERDICT_SUBMIT;
}

static int copy_fetch(struct fuse_request *request) {
    const struct copy *copy = &request->copy;
    uint64_t left = copy->size - copy->done;
    struct shoal_request *shoal;

    if (left == 0)
        return copy_end(request);
    shoal = request_prepare(request, SHOAL_READ);
    request->stage = STAGE_FETCH;
    shoal->file = copy->source->file;
    shoal->offset = copy->from + copy->done;
    shoal->data = request_payload(request);
    shoal->size = MIN(left, (uint64_t)request->front->features.write_bytes_max);
    return VERDICT_SUBMIT;
}

/* What was read, which is less than was asked for at the source's end. */
static int copy_act(struct fuse_request *request) {
    const struct copy *copy = &request->copy;
    uint64_t got = (uint64_t)request->shoal.result;
    struct shoal_request *shoal;

    if (got == 0)
        return copy_end(request);
    shoal = request_prepare(request, SHOAL_WRITE);
    request->stage = STAGE_ACT;
    shoal->file = request->handle->file;
    shoal->offset = copy->to + copy->done;
    shoal->data = request_payload(request);
    shoal->size = got;
    return VERDICT_SUBMIT;
}

static int copy_go_on(struct fuse_request *request) {
    request->copy.done += (uint64_t)request->shoal.result;
    return interrupts_asked(&request->shoal) ? copy_end(request) : copy_fetch(request);
}

/* Read at once: the body may end behind the place at which the pieces are put. */
static int copy_take(struct fuse_request *request) {
    const struct abi_copy_in *in = request_body(request);
    struct front *front = request->front;
    struct handle_table *handles = &front->handles;
    uint64_t most =
        fair_is_mixed(&front->fair) ? front->features.write_bytes_max : (uint64_t)COPY_BYTES_MAX;

    request->handle = handle_find(handles, in->handle_to);
    request->copy = (struct copy){.source = handle_find(handles, in->handle),
                                  .from = in->offset,
                                  .to = in->offset_to,
                                  .size = MIN(in->length, most)};
    if (!request->handle || !request->copy.source)
        return -EBADF;
    return in->flags ? -EINVAL : VERDICT_REPLY;
}

int fuse_op_copy(struct fuse_request *request) {
    int r = copy_take(request);

    if (r == VERDICT_REPLY && request_header(request)->uid != 0)
        r = set_id_start(request);
    return r == VERDICT_REPLY ? copy_fetch(request) : r;
}

int fuse_op_copy_64(struct fuse_request *request) {
    return fuse_op_copy(request);
}

int fuse_op_copy_finish(struct fuse_request *request) {
    int64_t result = request->shoal.result;
    int r;

    if (request->stage == STAGE_LOOK || request->stage == STAGE_CLEAR) {
        r = set_id_next(request);
        return r == VERDICT_REPLY ? copy_fetch(request) : r;
    }
    if (request->stage == STAGE_SYNC)
        return result < 0 ? (int)result : copy_reply(request);
    if (result < 0)
        return request->copy.done > 0 ? copy_end(request) : (int)result;
    return request->stage == STAGE_FETCH ? copy_act(request) : copy_go_on(request);
}
