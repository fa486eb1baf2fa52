/* Whose request is begun next, where more than one user's wait.
 *
 *     kernel's queue --read--> FIFO of user a --.
 *      (one FIFO       '-----> FIFO of user b ---+-- each in turn --> begun
 *       of all)        '-----> FIFO of root   --'    unless he has his share at work
 *
 * The kernel hands requests out in the order in which they came, so the one request of a user
 * stood behind all of a storm of another. So where two users have asked within a minute, and a
 * thread finds the next request waiting, it first reads what the kernel has, and begins one of each
 * user in turn. Elsewhere requests are begun as they are read, and this costs one comparison.
 *
 * A share: of the requests of a mount one user has half at work at most, all users but root 15 of
 * 16; and of large ones (READs of more than 32 KiB, WRITEs, FALLOCATEs and COPY_FILE_RANGEs of more
 * than 64 KiB, READDIRs) one has as many as there are threads, since each is work of up to 1 MiB
 * that others wait behind, here and at the daemon; that for a second, as it costs streams on few
 * CPUs a third, and who looks now and then must not.
 * What is beyond waits for his own to end. Counted are requests that went through the FIFOs. Once
 * no large one of a user has been begun or has ended for 100 ms, one more of his may be: so what a
 * server that is away has holds up no others.
 *
 * Nothing that is at work waits for one that is not: a request holds nothing before it is begun,
 * what it holds then is given back at the servers' answers or by their patience, and neither takes
 * another request of this mount. RELEASE, FORGET and INTERRUPT, by which others get what they wait
 * for, are never put here. One whose program was interrupted is the next of its user, whatever he
 * has at work, but for large ones that move: so a killed program waits for no server that is away,
 * and who interrupts his own gets no more turns than others. A thread that
 * has put one looks until none is left, or sleeps where the end of any request wakes it; so none is
 * forgotten.
 *
 * Users are told apart by their number's lowest bits: two that are equal in these take turns as
 * one.
 *
 * Thread: any; a lock, taken only where requests are put and taken. Memory: fixed, no more than
 * this. */
#pragma once
#include "base/err.h"
#include "env/env.h"
#include <pthread.h>
#include <stdatomic.h>

enum { FAIR_USERS = 64 };
#define FAIR_STUCK_NS (100 * NS_PER_MS) /* without a move of a user's large ones */
#define FAIR_TOLD_NS (60 * NS_PER_S)
#define FAIR_MIXED_NS (60 * NS_PER_S) /* for so long after two users were seen, they take turns, */
#define FAIR_LARGE_NS NS_PER_S        /* and so long large ones are few */

struct fuse_request;

struct turn {
    struct fuse_request *first, *last; /* guarded by mutex */
    uint32_t uid;                      /* who came last; likewise */
    _Atomic uint32_t begun;            /* at work */
    _Atomic uint32_t large;            /* of these, READs and WRITEs of much */
    uint32_t stuck;                    /* of those, that a server which is away has; by mutex */
    _Atomic uint64_t moved_ns;         /* when one of those was begun, or ended */
    _Atomic uint64_t met;              /* who met his share since it was told of, user + 1; or 0 */
    uint64_t told_ns;                  /* when that was */
};

struct fair {
    struct env *env;
    uint32_t requests_max;
    uint32_t large_max; /* of a user at work */
    _Atomic uint32_t last_uid;
    _Atomic uint64_t mixed_ns;    /* when another than the last user asked; 0: never */
    _Atomic uint32_t count;       /* that wait here */
    _Atomic uint32_t others;      /* at work, of all but root */
    _Atomic bool interrupted;     /* one that waits here may be */
    _Atomic uint64_t put_count;   /* that ever waited here */
    _Atomic uint64_t share_count; /* times that a user was passed over, as he had his share */
    _Atomic uint64_t last_met;    /* who met his share last, user + 1; 0: nobody yet */
    pthread_mutex_t mutex;
    uint64_t waiting; /* whose FIFO is not empty, a bit each; guarded by mutex */
    unsigned next;    /* whose turn it is; likewise */
    struct turn users[FAIR_USERS];
};

void fair_init(struct fair *fair, struct env *env, uint32_t requests_max, unsigned thread_count);
void fair_deinit(struct fair *fair);
uint32_t fair_of_user(const struct fair *fair);

/* Whether two users have asked within FAIR_MIXED_NS, so that none should take long at a time. */
bool fair_is_mixed(struct fair *fair);

/* One that was read, by its header: true where it is to be put, as others may wait. at_once: it was
 * there when the thread looked. */
bool fair_wanted(struct fair *fair, const struct fuse_request *request, size_t in_bytes,
                 bool at_once);
/* It is no longer the caller's. */
void fair_put(struct fair *fair, struct fuse_request *request, size_t in_bytes);
/* The next one to be begun, its in_bytes in it; NULL: none, or none that may. */
struct fuse_request *fair_take(struct fair *fair);
/* One that was taken has ended; called before it may be used anew. */
void fair_end(struct fair *fair, struct fuse_request *request);

/* Whether there is somebody to tell of now who met his share, and who: at most once in FAIR_TOLD_NS
 * of each. One thread at a time. */
bool fair_to_tell(struct fair *fair, uint64_t now_ns, uint32_t *ret_uid);

/* Whether one waits. */
static inline bool fair_wait(struct fair *fair) {
    return atomic_load_explicit(&fair->count, memory_order_relaxed) > 0;
}
