/* /dev/fuse: reading requests, sending replies and notifications. */
#include "front/fuse/channel_dev.h"
#include "front/fuse/channel_uring.h"
#include "front/fuse/problem.h"
#include "front/fuse/request.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEVICE "/dev/fuse"
#define DEVICE_CLONE _IOR(229, 0, uint32_t)

enum { OPCODE_INIT = 26, FUSE_MAJOR = 10, FUSE_MINOR = 229 };

static_assert(LINUX_ACCESS_MODE == O_ACCMODE && LINUX_WRITE_ONLY == O_WRONLY, "this machine's");
static_assert(LINUX_EXCLUSIVE == O_EXCL && LINUX_TRUNCATE == O_TRUNC, "this machine's");
static_assert(LINUX_DIRECT == O_DIRECT && LINUX_DATA_SYNC == O_DSYNC, "this machine's");

/* Errors are ENOENT, the caller was killed, and ENODEV, the mount is gone: nobody waits then. Of
 * any other the kernel tells the caller EIO. */
static void dev_reply(struct front_channel *channel, struct fuse_request *request) {
    struct abi_out_header *out = request_reply(request);
    struct iovec parts[] = {
        {out, sizeof(*out) + request->body_bytes},
        {(void *)(uintptr_t)request->data, request->data_bytes},
    };

    (void)channel;
    if (request->entry || request->carrier) {
        channel_uring_reply(request);
        return;
    }
    if (request->data_bytes > 0)
        (void)!writev(request->descriptor, parts, 2);
    else
        (void)!write(request->descriptor, out, parts[0].iov_len);
}

/* No page is touched, so this may be said while the kernel waits for a reply about the inode. */
static void dev_forget_attributes(struct front_channel *channel, uint64_t ino) {
    struct channel_dev *dev = CONTAINER_OF(channel, struct channel_dev, channel);
    struct {
        struct abi_out_header header;
        struct abi_invalidate_inode body;
    } notice = {
        .header = {.bytes = sizeof(notice), .error = ABI_NOTIFY_INVALIDATE_INODE},
        .body = {.ino = ino, .offset = -1},
    };

    (void)!write(dev->descriptor, &notice, sizeof(notice));
}

static void dev_ended(struct front_channel *channel, struct fuse_request *request) {
    (void)channel;
    channel_uring_ended(request);
}

static void dev_ahead(struct front_channel *channel, unsigned thread_index) {
    struct channel_dev *dev = CONTAINER_OF(channel, struct channel_dev, channel);

    dev->ahead(dev->context, thread_index);
}

static void dev_wake(struct front_channel *channel) {
    struct channel_dev *dev = CONTAINER_OF(channel, struct channel_dev, channel);

    dev->wake(dev->context);
}

int channel_dev_open(struct channel_dev *dev, struct fuse_problem *problem) {
    dev->channel = (struct front_channel){
        .reply = dev_reply,
        .ended = dev_ended,
        .forget_attributes = dev_forget_attributes,
        .ahead = dev_ahead,
        .wake = dev_wake,
    };
    dev->descriptor = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (dev->descriptor >= 0) {
        struct stat attributes;

        if (fstat(dev->descriptor, &attributes) == 0 && S_ISCHR(attributes.st_mode) &&
            attributes.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR))
            return 0;
        channel_dev_close(dev);
        return problem_set(problem, -ERR_NO_DEVICE,
                           "%s is something else: make it with mknod %s c %d %d", DEVICE, DEVICE,
                           FUSE_MAJOR, FUSE_MINOR);
    }
    if (errno == EACCES || errno == EPERM)
        return problem_set(problem, -ERR_NOT_PERMITTED, "%s: permission denied; run as root",
                           DEVICE);
    return problem_set(problem, -ERR_NO_DEVICE,
                       "%s: %s; mounting needs the kernel's FUSE: modprobe fuse", DEVICE,
                       strerror(errno));
}

void channel_dev_close(struct channel_dev *dev) {
    if (dev->descriptor >= 0)
        (void)close(dev->descriptor);
    dev->descriptor = -1;
}

bool channel_dev_connected(struct channel_dev *dev) {
    struct pollfd state = {.fd = dev->descriptor, .events = POLLIN};

    return poll(&state, 1, 0) == 0 || !(state.revents & POLLERR);
}

static void negotiate_reply(struct channel_dev *dev, struct fuse_request *request, int error,
                            const struct abi_init_out *body) {
    struct abi_out_header *out = request_reply(request);

    request->descriptor = dev->descriptor;
    request->data_bytes = 0;
    request->body_bytes = 0;
    if (error == 0)
        memcpy(request_reply_body(request, sizeof(*body)), body, sizeof(*body));
    *out = (struct abi_out_header){
        .bytes = (uint32_t)(sizeof(*out) + request->body_bytes),
        .error = error,
        .unique = request_header(request)->unique,
    };
    dev_reply(&dev->channel, request);
}

int channel_dev_negotiate(struct channel_dev *dev, struct fuse_request *request,
                          const struct negotiate_options *given, struct fuse_problem *problem) {
    struct negotiate_options options = *given;
    const struct abi_in_header *header = request_header(request);
    const struct abi_init_in *in = request_body(request);
    struct abi_init_out out = {0};
    size_t bytes = 0;
    int r;

    options.page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    for (;;) {
        request->front->features.write_bytes_max = options.write_bytes_max;
        r = channel_dev_read(dev->descriptor, request, &bytes);
        if (r == 0 && bytes == 0)
            continue;
        if (r < 0 || bytes < sizeof(*header) || header->opcode != OPCODE_INIT)
            return problem_set(problem, -ERR_IO, "%s: the kernel did not begin with INIT", DEVICE);
        r = negotiate(&options, in, bytes - sizeof(*header), &out, &request->front->features);
        if (r != -ERR_CONFLICT)
            break;
        negotiate_reply(dev, request, 0, &out);
    }
    negotiate_reply(dev, request, r < 0 ? -EPROTO : 0, &out);
    if (r < 0)
        return problem_set(problem, r,
                           "the kernel's FUSE protocol %u.%u is too old; Linux 5.4 is the least",
                           in->major, in->minor);
    return 0;
}

int channel_dev_clone(struct channel_dev *dev, bool nonblocking, int *ret_descriptor) {
    int clone = open(DEVICE, O_RDWR | O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0));
    uint32_t original = (uint32_t)dev->descriptor;

    if (clone < 0)
        return errno == EMFILE || errno == ENFILE ? -ERR_TOO_MANY_OPEN : -ERR_NO_DEVICE;
    if (ioctl(clone, DEVICE_CLONE, &original) < 0) {
        (void)close(clone);
        return -ERR_NO_DEVICE;
    }
    *ret_descriptor = clone;
    return 0;
}

int channel_dev_read(int descriptor, struct fuse_request *request, size_t *ret_bytes) {
    void *at = request->buffer + BUFFER_HEAD_BYTES - BUFFER_PREFIX_BYTES;
    size_t space = BUFFER_PREFIX_BYTES + request->front->features.write_bytes_max;
    ssize_t bytes = read(descriptor, at, space);

    if (bytes >= 0) {
        *ret_bytes = (size_t)bytes;
        return 0;
    }
    switch (errno) {
    case EINTR:
    case ENOENT: /* the caller was killed meanwhile */
    case ENOMEM: /* the kernel has ended the request with EIO: there was no page for it */
    case EFAULT:
        *ret_bytes = 0;
        return 0;
    case EAGAIN:
        return -ERR_PENDING;
    default:
        return -ERR_CLOSED;
    }
}
