/* What all requests of one mount share. Pure: the device is reached by the three calls below only.
 *
 * Thread: any; set up before the first request, torn down after the last.
 * Memory: front, handles and statistics at start; see request_pool.h for the buffers. */
#pragma once
#include "env/env.h"
#include "front/fuse/ahead.h"
#include "front/fuse/handle.h"
#include "front/fuse/interrupts.h"
#include "front/fuse/negotiate.h"
#include "front/fuse/request_pool.h"
#include "front/fuse/statistics.h"
#include "front/fuse/kept.h"
#include "front/fuse/told.h"
#include "front/fuse/fair.h"

enum { OPERATION_COUNT = 54 }; /* numbers of ops.def are below */

struct front;
struct fuse_request;

/* What stands between the requests and the kernel, or a test in its place. */
struct front_channel {
    /* Sends the reply that lies in the request (request.h); never fails for the sender. */
    void (*reply)(struct front_channel *channel, struct fuse_request *request);
    /* Tells the kernel to ask anew for the attributes of an inode. */
    void (*forget_attributes)(struct front_channel *channel, uint64_t ino);
    /* A listing is wanted ahead: lets a thread call ahead_run that has nothing else to do, and is
     * not the one of this index; none may be. */
    void (*ahead)(struct front_channel *channel, unsigned thread_index);
    /* Requests were put back while request_pool's waiting_count was not 0. */
    void (*wake)(struct front_channel *channel);
    /* One that lies in memory of the channel (request's entry) has ended, not within
     * fuse_request_run: it is the channel's again. Else never called. */
    void (*ended)(struct front_channel *channel, struct fuse_request *request);
};

struct front {
    struct shoal_client *client;
    struct env *env;
    struct front_channel *channel;
    struct features features;
    uint64_t entry_timeout_ns;
    uint64_t attributes_timeout_ns;
    struct request_pool requests;
    struct handle_table handles;
    struct told_table told;
    struct kept_table kept;
    struct interrupts interrupts;
    struct fair fair;
    struct ahead ahead;
    _Atomic bool is_over; /* the mount is gone: nobody waits for a reply any more */
    /* Rises after each SETATTR that may have set a set-id bit. A handle that carries the present
     * value was seen without such bits since, so a write by it needn't ask (ops_set_id.c). */
    _Atomic uint32_t set_id_change;
    unsigned thread_count;
    struct statistics (*statistics)[OPERATION_COUNT]; /* of each thread */
};

struct front_options {
    struct shoal_client *client;
    struct env *env;
    struct front_channel *channel;
    struct request_pool_options requests;
    uint32_t handles_max;
    uint64_t entry_timeout_ns;
    uint64_t attributes_timeout_ns;
    unsigned thread_count;
    uint64_t memory_bytes; /* of the machine */
};

/* -ERR_NO_MEMORY. features are the caller's to fill in. */
MUST_CHECK int front_init(struct front *front, const struct front_options *options);
/* All requests must be back, but those of pieces that are listed ahead. */
void front_deinit(struct front *front);
