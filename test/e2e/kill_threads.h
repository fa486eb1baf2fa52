/* The threads of the kill test: each works on a tree of its own until the round ends, and compares
 * it then.
 *
 * Thread: the main one makes, begins and joins them.  Memory: static, for one set of them. */
#pragma once
#include "kill_work.h"
#include <stdatomic.h>

enum { KILL_THREADS_MAX = 16, KILL_HANG_S = 120 };

struct kill_threads {
    unsigned count;
    atomic_bool killed;  /* who serves the mount was: what is at work may fail */
    atomic_bool stopped; /* no operation begins any more */
    /* One was acknowledged, whose call began then; by its thread, right behind the call. */
    void (*acknowledged)(struct kill_threads *threads, uint64_t began_ms);
    void (*broken)(struct kill_threads *threads); /* one has stopped all; NULL: nobody waits */
    void *context;
};

void kill_threads_make(struct kill_threads *threads, const char *mount, struct prng *prng);
/* They work until one is killed or all are stopped. */
void kill_threads_begin(struct kill_threads *threads);
/* Waits for their ends, KILL_HANG_S at most, and gives up where something broke. */
void kill_threads_join(struct kill_threads *threads, const char *what);
/* Closes all descriptors. */
void kill_threads_close(struct kill_threads *threads);
/* All compare what is mounted at the place with what they know, an operation in flight first. */
void kill_threads_compare(struct kill_threads *threads, const char *mount, const char *what);
