/* The load of one mount of a cluster that faults are made in: threads that work, each with an exact
 * model of what is acknowledged to it, and one that shares files with the other mounts.
 *
 * Memory: the state is a file that the test maps, too; a thread writes its own part only. */
#pragma once
#include "kill_check.h"
#include <stdatomic.h>

enum {
    CHAOS_THREADS_MAX = 8,
    CHAOS_COUNTS = WORK_SYNC + 1,
    CHAOS_SLOW_MAX = 4096,
    CHAOS_MOUNTS_MAX = 8,
    CHAOS_SHARED_FILES = 2, /* of each mount */
    CHAOS_SLOW_NS = 100000000,
};

/* A call that took longer than CHAOS_SLOW_NS. */
struct chaos_slow {
    uint64_t began_ns;
    uint64_t ended_ns;
};

struct chaos_state {
    _Atomic uint64_t began_ns; /* of the call in flight, 0: none */
    _Atomic uint64_t call_count;
    _Atomic uint64_t slow_count; /* the newest CHAOS_SLOW_MAX of them are kept */
    /* What was done, by enum work_kind; of the sharer writes, reads, and reads under a name that
     * nobody wrote to meanwhile. */
    _Atomic uint64_t counts[CHAOS_COUNTS];
    struct chaos_slow slow[CHAOS_SLOW_MAX];
};

/* A file that one mount writes and the others read: versions of it, in memory of all of them. */
struct chaos_shared {
    _Atomic uint64_t begun;
    _Atomic uint64_t closed;
};

/* Around each call on the mount. */
void chaos_begin(struct chaos_state *state);
void chaos_end(struct chaos_state *state);

struct chaos_share {
    const char *mount;
    struct chaos_shared *files; /* CHAOS_SHARED_FILES of each mount */
    unsigned mount_index;
    unsigned mount_count;
    struct prng prng;
    struct chaos_state *state;
    char problem[KILL_PROBLEM_BYTES]; /* empty: nothing broke */
};

/* Makes this mount's files; all of them must be there before anyone reads. */
void chaos_share_make(struct chaos_share *share);
/* Writes one of its own, or reads one of another mount. */
void chaos_share_step(struct chaos_share *share);
/* Each file, through a mount, has the version that was closed last; nobody writes meanwhile. */
void chaos_share_check(struct chaos_share *share, const char *mount);
