/* A thread that stands aside for the program that it serves, on that program's CPU.
 *
 * A program that waits for each of its requests leaves its CPU idle meanwhile, on which a thread
 * could serve it for two changes of context. What stands against it is that the scheduler wakes the
 * program on another CPU, which is idle, as its own has the thread that answers; and where idle
 * CPUs halt, as those of virtual machines do, that wake-up takes 20 us. But a CPU that has only
 * threads of SCHED_IDLE counts as idle (sched_idle_cpu() in select_idle_sibling(),
 * kernel/sched/fair.c, Linux 5.4 and later), and of idle CPUs the program's own comes first. So the
 * thread takes that policy, and the program comes back where it was, before the thread at once.
 *
 * Such a thread has next to nothing of a CPU that others want, and may have locks. So a watcher
 * looks at each of them every 4 ms: one that has begun nothing since gets its policy back, and any
 * CPU. If it wanted one, it stands aside again only after a while, twice as long each time. Threads
 * that the kernel makes for its I/O have its policy from it, and are freed likewise.
 *
 *     none --requests of one program--> entering --policy--> aside --+
 *      ^                                  ^--watcher: policy back    |
 *      +-- others ask, large data ------------------------------------+
 *      +-- watcher: policy and CPUs back -- ending <--watcher: nothing begun since its last look
 *
 * Over /dev/fuse the thread goes to the program's CPU (/proc/PID/stat), and looks for it again when
 * the program does not come back there. Over io_uring a queue is its CPU's own.
 *
 * It is not used where waking a thread on another CPU takes less than ASIDE_DEAR_NS, which the
 * watcher measures at first and, as long as threads want to stand aside, now and then; nor where
 * the process may not take back its policy (CAP_SYS_NICE, or RLIMIT_NICE), or has another one than
 * SCHED_OTHER. Over io_uring it is used below ASIDE_DEAR_MANY_NS only while no other thread has
 * begun a request of another program: threads of several CPUs that stand aside at once cost more
 * there than they bring. test/model/aside.pml proves that no thread is left without a CPU.
 *
 * Threads: aside_join and what follows it by the thread that it is about. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include "env/env.h"
#include <stdatomic.h>

struct aside;

enum aside_state { ASIDE_NONE, ASIDE_ENTERING, ASIDE_YES, ASIDE_ENDING };

struct aside_thread {
    struct aside *all; /* NULL: it never stands aside */
    int thread_id;
    bool follows; /* the program, from CPU to CPU */
    _Atomic int state;
    _Atomic uint64_t begun;         /* requests, */
    _Atomic uint64_t asked;         /* those of programs */
    _Atomic uint64_t served_count;  /* of them, while it stood aside */
    _Atomic uint64_t entered_count; /* times that it stood aside */
    _Atomic uint32_t program;       /* that asked last; 0: none */
    uint64_t since_ns;
    _Atomic uint64_t not_before_ns; /* it stands aside again */
    /* The watcher's. */
    uint64_t backoff_ns;
    uint64_t seen;
    /* The thread's. */
    int cpu;
    unsigned streak;       /* its program's requests, one after the other */
    bool was_aside;        /* at the last of them */
    uint64_t others_asked; /* what other programs had of other threads, when it looked */
    unsigned others;
    unsigned misses;
    unsigned moves;
};

/* Waking another CPU, and being woken by it, is worth avoiding from here on, for one program and,
 * by threads of several CPUs over io_uring, for many: halted CPUs of virtual machines take 8 to 30
 * us for it, those that poll for a while 4. */
enum { ASIDE_DEAR_NS = 6000, ASIDE_DEAR_MANY_NS = 15000 };

/* Begins to watch count threads at most, which may not stand aside where that needs a right that
 * the process has not: then it only measures. NULL: memory or a thread is missing, and nothing is
 * lost but speed. env: for the time. dear_ns, many_ns: ASIDE_DEAR_NS, ASIDE_DEAR_MANY_NS; 0: always
 * dear enough, UINT64_MAX: never. */
struct aside *aside_open(struct env *env, unsigned count, uint64_t dear_ns, uint64_t many_ns);
/* All threads have parted from it. Takes NULL. */
void aside_close(struct aside *aside);
/* Threads may stand aside. Takes NULL. */
bool aside_may(const struct aside *aside);
/* What it takes to wake a thread on another CPU and to be woken by it, when that was measured last,
 * nanoseconds; 0: not known. Takes NULL. */
uint64_t aside_wakeup_ns(const struct aside *aside);
/* The calling thread may stand aside from now on, where any may; follows: to the CPU of its
 * program. */
void aside_join(struct aside *aside, struct aside_thread *thread, bool follows);

/* The request of a program (0: the kernel's own) is taken up. alone: this thread serves all that
 * comes this way, and the request is short. at_once: it was there when the thread looked. */
void aside_took(struct aside_thread *thread, uint32_t program, bool alone, bool at_once);
/* There was no request when the thread looked. */
void aside_missed(struct aside_thread *thread);
/* As it was before. */
void aside_leave(struct aside_thread *thread);
/* Likewise, for good: the thread may end, and aside_close be called. */
void aside_part(struct aside_thread *thread);

static inline bool aside_is(const struct aside_thread *thread) {
    return atomic_load_explicit(&thread->state, memory_order_relaxed) != ASIDE_NONE;
}

/* A field of the text of /proc/ID/stat behind the name, which may hold anything: its first letter,
 * and its number. 0, and nothing is written: there is no such field. */
char aside_stat_field(const char *text, unsigned field, int *ret_number);

/* One program asks, as far as this thread knows. */
bool aside_serves_one(const struct aside_thread *thread);
