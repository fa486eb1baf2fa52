/* Listings that go on ahead of their program: while the kernel and the program take in what a
 * READDIR was answered, another thread lists what comes next.
 *
 *     answered, as it is full -> WANTED -> FILLING -> READY -> the next READDIR takes it
 *                                  |         |
 *                                  |         '- one that comes now waits, and so does the close
 *                                  '- one that comes now lists by itself
 *
 * What is taken must not take the kernel back: it believes the answer to what it has asked last,
 * and this one is from before it asked. So nothing else may have been answered by this mount since
 * it was begun that tells of names or attributes (ahead_told), be it that something has changed or
 * that another mount's change was met. And it may be as old as AHEAD_NS, for which the kernel may
 * keep it so much shorter. Else it is dropped, and all is as without. (Listings don't drop each
 * other's: of another mount's change one may tell by so much later than another has.)
 *
 * Thread: any. Memory: a request of the pool for each slot in use. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include "front/fuse/fuse_abi_body.h"
#include <pthread.h>

enum { AHEAD_SLOTS = 4 }; /* directories of a mount that are listed ahead at a time */

#define AHEAD_NS (100 * NS_PER_MS)
/* For so long nothing is listed ahead where that was in vain. */
#define AHEAD_REST_NS (100 * NS_PER_MS)
/* Or for so many times as long as it took, where it was too slow. */
enum { AHEAD_SLOW_RESTS = 32 };

struct front;
struct fuse_request;

enum ahead_state { AHEAD_IDLE, AHEAD_WANTED, AHEAD_FILLING, AHEAD_READY };

struct ahead_slot {
    enum ahead_state state;
    bool dropped;                /* what it fills is of no use any more */
    struct abi_in_header header; /* as the READDIR would have it that is to come */
    struct abi_read_in in;
    struct fuse_request *request; /* FILLING, READY: has the entries */
    struct fuse_request *waiting; /* FILLING: requests that go on behind it, by their next */
    uint32_t changes;             /* by when it was begun */
    uint64_t begun_ns;            /* or wanted */
};

struct ahead {
    pthread_mutex_t mutex;
    _Atomic uint32_t used_count;               /* slots that are not idle */
    _Atomic uint32_t changes;                  /* answers that ahead_told was called for */
    _Atomic uint64_t rest_ns;                  /* until then nothing is wanted */
    _Atomic uint64_t begun_count, taken_count; /* listings, since the start */
    struct ahead_slot slots[AHEAD_SLOTS];
};

void ahead_init(struct ahead *ahead);
void ahead_deinit(struct ahead *ahead);

/* A READDIR that has come: VERDICT_REPLY, it has its entries; VERDICT_WAIT, it is started again
 * when it can; VERDICT_SUBMIT, it is to be listed. */
MUST_CHECK int ahead_take(struct fuse_request *request);
/* A READDIR is about to be answered, and ended at cookie, for lack of room: what follows is listed
 * by the channel's next idle thread, if there is one. */
void ahead_want(struct fuse_request *request, uint64_t cookie);
/* The directory's handle is about to be closed by this request; false: it waits, and is started
 * again. */
MUST_CHECK bool ahead_close(struct fuse_request *request, uint64_t handle);
/* A request other than a listing is about to be answered, or the kernel to be told to forget: what
 * was listed before may be older than what the kernel knows then. */
void ahead_told(struct front *front);

/* For a channel's idle threads: begins one that is wanted; false: none is. */
bool ahead_run(struct front *front, unsigned thread_index);
