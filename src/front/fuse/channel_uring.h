/* FUSE over io_uring (Linux 6.14; Documentation/filesystems/fuse/fuse-io-uring.rst there): requests
 * come to the CPU that asked, and one call commits a reply and waits for what comes next.
 *
 *     kernel: queue of the caller's CPU --> entry of that queue --> thread of that CPU: runs it
 *                  ^                                                   |            |
 *                  '---- commit and fetch, by that thread only --------'   ended by another thread:
 *                                                                          outbox, wake
 *
 * Where users take turns (fair.h) what has come waits for its turn, and whichever thread's loop is
 * free begins it; the reply goes by the thread of its queue all the same.
 *
 * An entry is a command that the kernel keeps until it has a request for it, and the memory of one
 * request of the pool, whose it is for good. There is a queue for each CPU that may ever be: a CPU
 * that is off, or that this process may not use, has one entry, served by the first thread. A queue
 * that has few entries left gets another one. FORGET and INTERRUPT come by the device, which one
 * more thread reads.
 *
 * Once INIT is answered the kernel keeps every request until all queues have an entry, so all that
 * can be refused (rings, memory) is had before: channel_uring_new, and each thread's ring.
 *
 * An entry is the kernel's again with its one reply. What opens a file may be answered before it
 * ends, where its program is interrupted while a server is away: so it is copied to a request of
 * the pool, and the entry only carries it (request's carrier).
 *
 * Thread: as said at each.  Memory: requests of the pool, as they are needed. */
#pragma once
#include "front/fuse/channel_dev.h"

struct channel_thread;
struct channel_uring;

/* Whether the kernel's module is set to offer it to mounts that are made now. */
bool channel_uring_offered(void);
/* It is set not to; false also where that can't be read, for want of a descriptor. */
bool channel_uring_is_off(void);
/* Whether it has that setting. */
bool channel_uring_is_known(void);
/* Sets it, until the machine starts anew; false: this kernel has no such setting, or this process
 * may not. Other servers of FUSE have to ask for it, too. */
bool channel_uring_offer(bool offers);
/* How many CPUs may ever be, of the kernel's list of them ("0-3,5"). 0: not known, or there are
 * gaps: the kernel has as many queues as CPUs, and takes the CPU's number for that of its queue. */
unsigned channel_uring_cpus(const char *list);
/* -ERR_NO_MEMORY; -ERR_NOT_SUPPORTED where the kernel's CPUs can't be told, or the pool has too few
 * requests for their entries and the threads of the front. features of the front need not be known
 * yet. */
MUST_CHECK int channel_uring_new(struct front *front, struct channel_dev *dev,
                                 struct channel_uring **ret_uring, struct fuse_problem *problem);
/* Behind the threads. Takes NULL. */
void channel_uring_free(struct channel_uring *uring);
/* That serve queues. */
unsigned channel_uring_threads(const struct channel_uring *uring);
/* (the thread) Serves its queues until the mount is gone. INIT was answered. */
void channel_uring_serve(struct channel_uring *uring, struct channel_thread *thread);
/* Any thread: front_channel's. The reply of a request that an entry brought; its end. */
void channel_uring_reply(struct fuse_request *request);
void channel_uring_ended(struct fuse_request *request);
