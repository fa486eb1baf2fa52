/* Listing directories. The entries are put into the payload as the library hands them over:
 *
 *     READDIR      { abi_dirent | name | zeros to a multiple of 8 } ...
 *     READDIRPLUS  { abi_entry_out | abi_dirent | name | zeros to a multiple of 8 } ...
 */
#include "base/types.h"
#include "front/fuse/ops.h"
#include <string.h>

static bool is_dots(const char *name, size_t name_bytes) {
    return name[0] == '.' && (name_bytes == 1 || (name_bytes == 2 && name[1] == '.'));
}

static int entry_add(void *context, const struct shoal_entry *entry) {
    struct fuse_request *request = context;
    const struct abi_read_in *in = request_body(request);
    size_t space = MIN(in->size, request->front->features.write_bytes_max) - request->data_bytes;
    size_t head_bytes = request->shoal.plus ? sizeof(struct abi_entry_out) : 0;
    size_t bytes = head_bytes + sizeof(struct abi_dirent) + entry->name_bytes;
    size_t padded_bytes = (bytes + 7) & ~(size_t)7;
    uint8_t *at = request_payload(request) + request->data_bytes;

    if (padded_bytes > space) {
        request->full = true;
        return 1;
    }
    if (request->shoal.plus) {
        struct abi_entry_out *out = (void *)at;

        /* Node 0: nothing is said about it. The kernel counts no reference for "." and "..". */
        memset(out, 0, sizeof(*out));
        if (entry->attributes && !is_dots(entry->name, entry->name_bytes))
            (request->ahead ? encode_entry_ahead : encode_entry)(request, out, entry->attributes);
    }
    *(struct abi_dirent *)(void *)(at + head_bytes) = (struct abi_dirent){
        .ino = entry->ino,
        .cookie = entry->cookie,
        .name_bytes = (uint32_t)entry->name_bytes,
        .type = entry->type,
    };
    memcpy(at + bytes - entry->name_bytes, entry->name, entry->name_bytes);
    memset(at + bytes, 0, padded_bytes - bytes);
    request->data_bytes += padded_bytes;
    request->cookie = entry->cookie;
    return 0;
}

void fuse_op_list_prepare(struct fuse_request *request, uint32_t opcode) {
    const struct abi_read_in *in = request_body(request);

    request->full = false;
    request->ahead = false;
    request->data_bytes = 0;
    request->shoal.plus = opcode == OPCODE_READDIRPLUS;
    /* With attributes what the server tells of an entry is an eighth shorter, and more. */
    request->shoal.size = request->shoal.plus ? in->size - in->size / 8 : in->size;
    request->shoal.offset = in->offset;
    request->shoal.entry = entry_add;
    request->shoal.entry_context = request;
    request->data = request_payload(request);
}

int fuse_op_readdir(struct fuse_request *request) {
    const struct abi_read_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_READDIR, in->handle);

    if (r < 0)
        return r;
    r = ahead_take(request);
    if (r == VERDICT_SUBMIT)
        fuse_op_list_prepare(request, request_header(request)->opcode);
    else if (r == VERDICT_REPLY)
        r = fuse_op_readdir_finish(request);
    return r;
}

int fuse_op_readdir_finish(struct fuse_request *request) {
    if (request->full && request->data_bytes > 0)
        ahead_want(request, request->cookie);
    return VERDICT_REPLY;
}

int fuse_op_releasedir(struct fuse_request *request) {
    const struct abi_close_in *in = request_body(request);

    return ahead_close(request, in->handle) ? fuse_op_release(request) : VERDICT_WAIT;
}
