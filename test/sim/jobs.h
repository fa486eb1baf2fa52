/* Seeds played by several processes at once, their reports in the order of the seeds.
 *
 *     child k: seeds k, k + n, k + 2n, .. --pipe--> parent: reads the pipes in turn
 *
 * A child that dies reports the seed that it was at as a failure, and another one goes on behind
 * it: an assertion that fails costs one seed.
 *
 * Thread: the caller's; each child has one.  Memory: the heap. */
#pragma once
#include "totals.h"

struct jobs;

struct jobs_options {
    const uint64_t *seeds;
    size_t seed_count;
    unsigned process_count; /* 0: plays them here */
    void (*play)(void *context, uint64_t seed, struct seed_report *ret_report);
    void *context;
};

struct jobs *jobs_new(const struct jobs_options *options);
/* The report of the next seed; false when there is none any more. */
bool jobs_next(struct jobs *jobs, struct seed_report *ret_report);
/* Ends the children. */
void jobs_free(struct jobs *jobs);
