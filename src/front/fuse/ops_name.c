/* Operations on names, and those that we refuse. */
#include "front/fuse/fuse_abi_forget.h"
#include "front/fuse/ops.h"
#include <errno.h>
#include <string.h>

int fuse_op_silent(struct fuse_request *request) {
    (void)request;
    return VERDICT_SILENT;
}

/* It has no reply, so one that says less than it should is passed over. */
int fuse_op_forget(struct fuse_request *request) {
    if (request->in_bytes >= sizeof(struct abi_in_header) + sizeof(struct abi_forget_in))
        kept_forget(&request->front->kept, request_header(request)->nodeid);
    return VERDICT_SILENT;
}

int fuse_op_forget_batch(struct fuse_request *request) {
    const struct abi_forget_batch_in *in = request_body(request);
    const struct abi_forget_one *one = (const void *)(in + 1);
    size_t bytes = request->in_bytes - sizeof(struct abi_in_header);
    size_t there = bytes >= sizeof(*in) ? (bytes - sizeof(*in)) / sizeof(*one) : 0;

    for (size_t i = 0; i < there && i < in->count; i++)
        kept_forget(&request->front->kept, one[i].nodeid);
    return VERDICT_SILENT;
}

int fuse_op_nothing(struct fuse_request *request) {
    (void)request;
    return VERDICT_REPLY;
}

int fuse_op_interrupt(struct fuse_request *request) {
    const struct abi_interrupt_in *in = request_body(request);

    interrupts_note(request->front, in->unique);
    return VERDICT_SILENT;
}

/* The kernel asks once and then does without: xattrs and poll have its own defaults. */
int fuse_op_unknown(struct fuse_request *request) {
    (void)request;
    return -ENOSYS;
}

int fuse_op_ioctl(struct fuse_request *request) {
    (void)request;
    return -ENOTTY;
}

int fuse_op_entry_finish(struct fuse_request *request) {
    struct abi_entry_out *out = request_reply_body(request, sizeof(*out));

    encode_entry(request, out, &request->shoal.attributes);
    return VERDICT_REPLY;
}

/* READ and READLINK: what the call put into the payload. */
int fuse_op_data_finish(struct fuse_request *request) {
    if ((uint64_t)request->shoal.result > request->shoal.size)
        return -EIO;
    request->data = request_payload(request);
    request->data_bytes = (size_t)request->shoal.result;
    return VERDICT_REPLY;
}

static bool name_is(const struct fuse_request *request, const char *text) {
    return strcmp(request->names[0].text, text) == 0;
}

/* The kernel asks for "." and ".." only where it has a handle of what it has forgotten: for an
 * inode of any type by its number alone, and for a directory's parent, as which nobody's rights
 * count. */
int fuse_op_lookup(struct fuse_request *request) {
    if (name_is(request, ".")) {
        request_prepare(request, SHOAL_GETATTR);
    } else {
        struct shoal_request *shoal = request_prepare(request, SHOAL_LOOKUP);

        if (name_is(request, ".."))
            shoal->identity = (struct shoal_identity){0};
    }
    return VERDICT_SUBMIT;
}

int fuse_op_readlink(struct fuse_request *request) {
    struct shoal_request *shoal = request_prepare(request, SHOAL_READLINK);

    shoal->data = request_payload(request);
    shoal->size = ABI_PAGE_BYTES - 1;
    return VERDICT_SUBMIT;
}

int fuse_op_symlink(struct fuse_request *request) {
    struct shoal_request *shoal = request_prepare(request, SHOAL_SYMLINK);

    shoal->data = (void *)(uintptr_t)request->names[1].text;
    shoal->size = request->names[1].bytes;
    return VERDICT_SUBMIT;
}

int fuse_op_mknod(struct fuse_request *request) {
    const struct abi_mknod_in *in = request_body(request);
    struct shoal_request *shoal;

    set_id_learn(request, in->mode);
    shoal = request_prepare(request, SHOAL_MKNOD);
    shoal->mode = in->mode;
    shoal->rdev = in->rdev;
    return VERDICT_SUBMIT;
}

int fuse_op_mkdir(struct fuse_request *request) {
    const struct abi_mkdir_in *in = request_body(request);
    struct shoal_request *shoal = request_prepare(request, SHOAL_MKDIR);

    shoal->mode = (in->mode & MODE_PERMISSIONS) | MODE_DIRECTORY;
    return VERDICT_SUBMIT;
}

int fuse_op_unlink(struct fuse_request *request) {
    request_prepare(request, SHOAL_UNLINK);
    return VERDICT_SUBMIT;
}

int fuse_op_rmdir(struct fuse_request *request) {
    request_prepare(request, SHOAL_RMDIR);
    return VERDICT_SUBMIT;
}

static int rename_prepare(struct fuse_request *request, uint64_t new_parent, uint32_t flags) {
    struct shoal_request *shoal = request_prepare(request, SHOAL_RENAME);

    shoal->new_ino = new_parent;
    shoal->new_name = request->names[1].text;
    shoal->new_name_bytes = request->names[1].bytes;
    shoal->flags = flags;
    return VERDICT_SUBMIT;
}

int fuse_op_rename(struct fuse_request *request) {
    const struct abi_rename_in *in = request_body(request);

    return rename_prepare(request, in->new_parent, 0);
}

int fuse_op_rename2(struct fuse_request *request) {
    const struct abi_rename2_in *in = request_body(request);
    uint32_t flags = 0;

    if (in->flags & ~(uint32_t)(LINUX_RENAME_NO_REPLACE | LINUX_RENAME_EXCHANGE))
        return -EINVAL;
    if (in->flags & LINUX_RENAME_NO_REPLACE)
        flags |= SHOAL_RENAME_NO_REPLACE;
    if (in->flags & LINUX_RENAME_EXCHANGE)
        flags |= SHOAL_RENAME_EXCHANGE;
    return rename_prepare(request, in->new_parent, flags);
}

/* The header names the new parent, the body the file. */
int fuse_op_link(struct fuse_request *request) {
    const struct abi_link_in *in = request_body(request);
    struct shoal_request *shoal = request_prepare(request, SHOAL_LINK);

    shoal->new_ino = shoal->ino;
    shoal->ino = in->nodeid;
    shoal->new_name = request->names[0].text;
    shoal->new_name_bytes = request->names[0].bytes;
    return VERDICT_SUBMIT;
}
