/* Seeds played by several processes at once, their reports in the order of the seeds.
 *
 *     child k: seeds k, k + n, k + 2n, .. --pipe--> parent: reads the pipes in turn
 *
 * A child that dies reports the seed that it was at as a failure, and another one goes on behind
 * it: an assertion that fails costs one seed. So does a seed that takes minutes of a processor: it
 * does not end.
 *
 * Thread: the caller's; each child has one.  Memory: the heap. */
#pragma once
#include "base/types.h"

struct jobs;

struct jobs_options {
    const char *program; /* its name, for what is said */
    const uint64_t *seeds;
    size_t seed_count;
    unsigned process_count; /* 0: plays them here, where jobs_end_with may not be called */
    size_t report_bytes;    /* plain bytes: they go through pipes */
    void (*play)(void *context, uint64_t seed, void *ret_report);
    /* The process that played the seed is gone; the report says so. It is zeros. */
    void (*died)(void *context, uint64_t seed, const char *how, void *ret_report);
    void *context;
};

struct jobs *jobs_new(const struct jobs_options *options);
/* The report of the next seed; false when there is none any more. */
bool jobs_next(struct jobs *jobs, void *ret_report);
/* In a child: what it has found of its seed, after which it cannot go on; another one does. */
_Noreturn void jobs_end_with(const void *report);
/* Ends the children. */
void jobs_free(struct jobs *jobs);
