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

    if (padded_bytes > space)
        return 1;
    if (request->shoal.plus) {
        struct abi_entry_out *out = (void *)at;

        /* Node 0: nothing is said about it. The kernel counts no reference for "." and "..". */
        memset(out, 0, sizeof(*out));
        if (entry->attributes && !is_dots(entry->name, entry->name_bytes))
            encode_entry(request->front, out, entry->attributes);
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
    return 0;
}

static int list(struct fuse_request *request, bool plus) {
    const struct abi_read_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_READDIR, in->handle);

    if (r < 0)
        return r;
    request->shoal.plus = plus;
    request->shoal.offset = in->offset;
    request->shoal.entry = entry_add;
    request->shoal.entry_context = request;
    request->data = request_payload(request);
    return VERDICT_SUBMIT;
}

int fuse_op_readdir(struct fuse_request *request) {
    return list(request, false);
}

int fuse_op_readdirplus(struct fuse_request *request) {
    return list(request, true);
}

int fuse_op_readdir_finish(struct fuse_request *request) {
    (void)request;
    return VERDICT_REPLY;
}
