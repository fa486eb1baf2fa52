/* /dev/fuse: reading requests, sending replies and notifications.
 *
 * A reply goes to the descriptor that its request was read from, so each is kept open until the
 * last request has ended. Thread: any; read by one thread per descriptor. */
#pragma once
#include "front/fuse/front.h"
#include "front/fuse/fuse.h"
#include <stdatomic.h>

struct channel_dev {
    struct front_channel channel;
    int descriptor;
    void (*wake)(void *context);
    void (*ahead)(void *context, unsigned thread_index);
    void (*abort)(void *context); /* ends the connection; from any thread of the mount */
    void *context;
    atomic_int failure; /* -errno, why the threads left a connection that lived; 0: they did not */
};

/* wake and ahead are called for front_channel's. -ERR_NO_DEVICE, -ERR_NOT_PERMITTED. */
MUST_CHECK int channel_dev_open(struct channel_dev *dev, struct fuse_problem *problem);
void channel_dev_close(struct channel_dev *dev);
/* Whether the kernel still sends requests: not once the last mount of it is gone. */
bool channel_dev_connected(struct channel_dev *dev);
/* Answers the INIT that mounting has queued. request is any of the pool. */
MUST_CHECK int channel_dev_negotiate(struct channel_dev *dev, struct fuse_request *request,
                                     const struct negotiate_options *options,
                                     struct fuse_problem *problem);
/* A further descriptor of the same mount; its reads don't sleep when nonblocking. */
MUST_CHECK int channel_dev_clone(struct channel_dev *dev, bool nonblocking, int *ret_descriptor);
/* Reads the next request; *ret_bytes is 0 when there was none after all. -ERR_PENDING: none yet, on
 * a nonblocking descriptor. -ERR_CLOSED: the mount is gone. */
MUST_CHECK int channel_dev_read(int descriptor, struct fuse_request *request, size_t *ret_bytes);
