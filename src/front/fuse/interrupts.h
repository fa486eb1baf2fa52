/* What the kernel says of programs that were killed or interrupted while they wait for a reply.
 *
 *     INTERRUPT names a request by its number -----> that is noted in the request
 *     libshoal asks, while a server is away -------> then the request ends with EINTR
 *                                     an open goes on: EINTR to the program now; closed at last
 *     the mount is gone -------------> so do all, and opens
 *
 * An INTERRUPT may be met before its request is, which another thread has read; so those without a
 * request are kept, and each request looks for itself among them. Who comes second of the two sees
 * the other.
 *
 * While all requests are in flight nobody reads. Of a request that an entry of io_uring brings the
 * kernel (up to 6.18 at least) says nothing if the signal came before its bytes were handed out, as
 * it always has where a program that is killed closes its files. So where half of them are, or an
 * entry has brought it, the processes that wait are looked at, each at most once in
 * INTERRUPTS_LOOK_NS.
 *
 * Thread: any. Memory: front's, and three numbers a request. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

enum { INTERRUPTS_KEPT = 32, INTERRUPTS_LOOK_NS = 200000000 };

struct front;
struct fuse_request;
struct shoal_request;

struct interrupts {
    _Atomic uint64_t numbers[INTERRUPTS_KEPT]; /* 0: none */
    _Atomic uint32_t count;                    /* of them; counted before one is kept */
    _Atomic uint32_t next;
};

/* The program that waits for the request of this number was interrupted. */
void interrupts_note(struct front *front, uint64_t number);
/* A request was read: it has its number, and may have been interrupted. */
void interrupts_meet(struct fuse_request *request, uint64_t number);
/* libshoal's question. */
int interrupts_asked(struct shoal_request *shoal);
