/* Opening and closing; which opens the kernel's page cache serves.
 *
 * Direct I/O costs a third to a half of what the page cache costs, and shows each write to the
 * servers before it is acknowledged; small files that are only read gain from one request that
 * fetches all, and programs from pages they share. So, where the kernel keeps direct and cached
 * opens of a file right with each other (features.direct):
 *
 *     opened with O_DIRECT, or for writing      direct
 *     opened by execve                          cached
 *     read only, above 1 MiB                    direct
 *     read only, while it has writers           direct, where writes are parallel
 *     read only, else                           cached or direct, as kept.h says
 *
 * A parallel write keeps cached opens of its file waiting, in the kernel and deaf to signals, and
 * its program can make it last: by a buffer in memory that does not come, from a file system of its
 * own say. So whoever only reads does not depend on those who write. (A program that is being
 * written to is not executed, so that is the same for execve.)
 *
 * Elsewhere all opens are cached (and written through), and O_DIRECT is the kernel's business. */
#include "front/fuse/ops.h"
#include <errno.h>

enum { CACHED_BYTES_MAX = 1 << 20 };

static uint32_t flags_of(uint32_t linux_flags) {
    static const uint32_t access[] = {
        [LINUX_READ_ONLY] = SHOAL_OPEN_READ,
        [LINUX_WRITE_ONLY] = SHOAL_OPEN_WRITE,
        [2] = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE,
        [3] = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE, /* for ioctl, with the rights of both */
    };
    uint32_t flags = access[linux_flags & LINUX_ACCESS_MODE];

    if (linux_flags & LINUX_TRUNCATE)
        flags |= SHOAL_OPEN_TRUNCATE;
    if (linux_flags & LINUX_EXCLUSIVE)
        flags |= SHOAL_OPEN_EXCLUSIVE;
    /* To execute is no right to read, and takes none. */
    if (linux_flags & LINUX_EXECUTE)
        flags = SHOAL_OPEN_EXECUTE;
    /* O_APPEND is the kernel's business: it sends the offset with each write. */
    return flags;
}

/* Once more with the caller's groups, the handle is there already. */
static int take_handle(struct fuse_request *request) {
    if (!request->handle)
        request->handle = handle_take(&request->front->handles, request_header(request)->uid);
    if (!request->handle)
        return -ENFILE;
    request->set_id = atomic_load(&request->front->set_id_change);
    return VERDICT_SUBMIT;
}

int fuse_op_open(struct fuse_request *request) {
    const struct abi_open_in *in = request_body(request);

    request_prepare(request, SHOAL_OPEN)->flags = flags_of(in->flags);
    return take_handle(request);
}

int fuse_op_create(struct fuse_request *request) {
    const struct abi_create_in *in = request_body(request);
    struct shoal_request *shoal;

    set_id_learn(request, in->mode);
    shoal = request_prepare(request, SHOAL_CREATE);
    shoal->mode = (in->mode & MODE_PERMISSIONS) | MODE_REGULAR;
    shoal->flags = flags_of(in->flags) | SHOAL_OPEN_CREATE;
    return take_handle(request);
}

/* The kernel's word for the name is "/"; with O_EXCL there will never be one. */
int fuse_op_tmpfile(struct fuse_request *request) {
    int r = fuse_op_create(request);

    request->shoal.name = NULL;
    request->shoal.name_bytes = 0;
    request->shoal.flags |= SHOAL_OPEN_UNNAMED;
    return r;
}

int fuse_op_opendir(struct fuse_request *request) {
    request_prepare(request, SHOAL_OPEN)->flags = SHOAL_OPEN_READ | SHOAL_OPEN_DIRECTORY;
    return take_handle(request);
}

static bool is_create(const struct fuse_request *request) {
    return request->op->start == fuse_op_create || request->op->start == fuse_op_tmpfile;
}

/* Flags of the request: those of open(2), and the protocol's own. */
static uint32_t linux_flags_of(const struct fuse_request *request, uint32_t *ret_open_flags) {
    const struct abi_open_in *open = request_body(request);
    const struct abi_create_in *create = request_body(request);

    *ret_open_flags = is_create(request) ? create->open_flags : open->open_flags;
    return is_create(request) ? create->flags : open->flags;
}

static uint32_t direct_flags_of(const struct features *features) {
    return features->parallel_writes ? ABI_OPEN_DIRECT | ABI_OPEN_PARALLEL_WRITES : ABI_OPEN_DIRECT;
}

/* Of one that only reads, and need not be direct. */
static uint32_t pages_flags_of(const struct fuse_request *request, uint32_t linux_flags) {
    struct front *front = request->front;
    bool may_pass = front->features.direct && !(linux_flags & LINUX_EXECUTE);

    switch (kept_use_begin(&front->kept, &request->handle->pages, &request->shoal.attributes,
                           request_header(request)->pid, may_pass)) {
    case KEPT_PAST:
        return direct_flags_of(&front->features);
    case KEPT_THERE:
        return ABI_OPEN_KEEP_CACHE;
    default:
        return 0;
    }
}

static uint32_t reply_flags_of(const struct fuse_request *request, uint32_t linux_flags) {
    const struct features *features = &request->front->features;
    bool large =
        request->shoal.attributes.size > CACHED_BYTES_MAX && !(linux_flags & LINUX_EXECUTE);
    bool held = features->parallel_writes &&
                handle_has_writers(&request->front->handles, request->handle->ino);

    if (features->direct &&
        (request->handle->writable || (linux_flags & LINUX_DIRECT) || large || held))
        return direct_flags_of(features) | (request->handle->writable ? 0 : ABI_OPEN_NO_FLUSH);
    if (request->handle->writable)
        return 0;
    return pages_flags_of(request, linux_flags) | ABI_OPEN_NO_FLUSH;
}

static int close_again(struct fuse_request *request, int error) {
    request->stage = STAGE_RELEASE;
    request->error = error;
    request_prepare(request, SHOAL_RELEASE)->file = request->handle->file;
    return VERDICT_SUBMIT;
}

/* attributes are those of the open itself, also when set-id bits were cleared since. */
static int reply_open(struct fuse_request *request) {
    uint32_t linux_flags = 0;
    uint32_t open_flags;
    uint32_t flags = 0;
    struct abi_open_out *out;

    if (request->answered) /* Its program waits no more, and has no use for it. */
        return close_again(request, -EINTR);
    if (request->op->start != fuse_op_opendir) {
        linux_flags = linux_flags_of(request, &open_flags);
        flags = reply_flags_of(request, linux_flags);
    }
    if (is_create(request)) {
        struct abi_create_out *create = request_reply_body(request, sizeof(*create));

        encode_entry(request, &create->entry, &request->shoal.attributes);
        out = &create->open;
    } else {
        out = request_reply_body(request, sizeof(*out));
    }
    request->handle->direct = flags & ABI_OPEN_DIRECT;
    request->handle->synchronous = linux_flags & LINUX_DATA_SYNC;
    out->handle = handle_open(&request->front->handles, request->handle);
    out->flags = flags;
    return VERDICT_REPLY;
}

/* For someone without privilege, so that a file that was there loses its set-id bits as well. */
static bool is_truncated_by_others(const struct fuse_request *request) {
    uint32_t open_flags;
    uint32_t linux_flags;

    if (request->op->start == fuse_op_opendir || (request->shoal.flags & SHOAL_OPEN_MADE))
        return false;
    linux_flags = linux_flags_of(request, &open_flags);
    return (linux_flags & LINUX_TRUNCATE) && (open_flags & ABI_OPEN_KILL_SET_ID);
}

static int opened(struct fuse_request *request) {
    const struct shoal_request *shoal = &request->shoal;
    struct handle *handle = request->handle;
    bool directory = request->op->start == fuse_op_opendir;

    handle->file = shoal->file;
    handle->ino = is_create(request) ? shoal->attributes.ino : request_header(request)->nodeid;
    handle->writable = !directory && (shoal->flags & SHOAL_OPEN_WRITE);
    if (handle->writable)
        handle_count_writer(&request->front->handles, handle);
    atomic_store(&handle->set_id, set_id_in_mode(shoal->attributes.mode) ? 0 : request->set_id);
    if (is_truncated_by_others(request)) {
        if (set_id_must_go(request))
            return set_id_clear(request);
        /* The server may have cleared them with the truncation. A reply to OPEN can't tell. */
        if (!is_create(request))
            request_forget_attributes(request, handle->ino);
    } else if (!directory && !is_create(request) &&
               told_differs(&request->front->told, &shoal->attributes)) {
        request_forget_attributes(request, handle->ino);
    }
    return reply_open(request);
}

/* The reply to CREATE carries attributes, and set_id_clear's answer has the new ones. */
int fuse_op_open_finish(struct fuse_request *request) {
    int r;

    switch (request->stage) {
    case STAGE_START:
        return opened(request);
    case STAGE_CLEAR:
        r = set_id_next(request);
        if (r == VERDICT_REPLY)
            return reply_open(request);
        return close_again(request, r);
    default:
        return request->error;
    }
}

int fuse_op_release(struct fuse_request *request) {
    const struct abi_close_in *in = request_body(request);
    int r = request_prepare_handle(request, SHOAL_RELEASE, in->handle);

    if (r == VERDICT_SUBMIT) {
        kept_use_end(&request->front->kept, &request->handle->pages);
        handle_put(&request->front->handles, request->handle);
        request->handle = NULL;
    }
    return r;
}
