/* What one seed did, and what many seeds did together.
 *
 * Rules are of two kinds: those that each seed keeps, checked for each seed, and totals that must
 * have come to something over TOTALS_SEEDS_MIN seeds, so that a fault that has stopped to happen
 * does not go unnoticed. All are printed.
 *
 * Thread: one.  Memory: the caller's, and the heap for the hashes. */
#pragma once
#include "base/types.h"
#include "fulls.h"
#include "totals_list.h"
#include <stdio.h>

enum total {
#define TOTAL_ENUMERATOR(name, text, counts) TOTAL_##name,
    TOTALS(TOTAL_ENUMERATOR)
#undef TOTAL_ENUMERATOR
        TOTAL_COUNT
};

enum {
    TOTALS_SEEDS_MIN = 1000, /* from so many on the totals are checked */
    TOTALS_LEAST = 100,
    TOTALS_LAPS_MAX = 64,
    RULE_CLIENTS_MIN = 3,
    RULE_OSTS_MAX = 4,
    RULE_OPERATIONS_MIN = 2000,
    RULE_SUCCEEDED_MIN = 1000,
    RULE_CRASHES_MIN = 1,
    RULE_ANSWERS_S = 60, /* of simulated time, for what is open when faults have ended */
    RULE_LATE_S = 10,    /* then, for closes that clients have kept */
    RULE_LISTS_S = 30,   /* then, until all targets know who has ended */
    RULE_POOLS_S = 10,   /* then, until the newest pool version is as storage targets are */
    RULE_PUSHES_S = 20,  /* then, until all have the newest map and wait for a newer one */
    RULE_AWAY_S = 10,    /* until what does not need a target that is away has ended */
    RULE_MOVE_S = 10,    /* of a rename, once faults have ended */
    RULE_FLOORS_S = 10,  /* then, until no outcome is kept of an idle session */
    RULE_LAPS = 3,       /* the median of seeds that wrap, from so many of them on: */
    RULE_LAPS_SEEDS = 10,
    RULE_ALIVE_S = 10, /* at the very end, of each operation of one of each kind */
    RULE_WAITS_S = 10, /* then, until nothing waits at any target */
    SEED_FAILURE_BYTES = 700,
};

/* Plain bytes: goes through pipes. */
struct seed_report {
    uint64_t seed;
    uint64_t hash;
    uint64_t counts[TOTAL_COUNT];
    uint64_t answers_ns; /* from the end of faults to the last answer */
    uint64_t alive_ns;   /* of the longest operation at the very end */
    uint64_t waited_ns;  /* then, until nothing waited */
    uint32_t clients;
    uint32_t osts;
    bool smallest;
    bool streams;
    bool wraps;          /* it is to wrap: */
    uint64_t full_pairs; /* limits full at once (fulls.h) */
    uint64_t laps;       /* of the median storage target in a life */
    bool clean;
    char failure[SEED_FAILURE_BYTES]; /* when not clean */
};

/* Breaks a clean report that does not keep a rule. */
void seed_report_check(struct seed_report *report);

struct totals {
    uint64_t seeds;
    uint64_t failed;
    uint64_t counts[TOTAL_COUNT];
    uint64_t smallest;
    uint64_t streams; /* whose calls went by them */
    uint64_t operations_min;
    uint64_t succeeded_min;
    uint64_t crashes_min;
    uint64_t answers_ns_max;
    uint64_t alive_ns_max, waited_ns_max;
    uint32_t clients_min;
    uint32_t osts_min;
    uint32_t osts_max;
    uint64_t pairs[FULL_PAIRS];         /* seeds in which both limits were full at once */
    uint64_t laps[TOTALS_LAPS_MAX + 1]; /* seeds that wrap, by their laps; the last: or more */
    uint64_t *hashes;                   /* of the clean ones */
    size_t hash_count;
    size_t hash_capacity;
};

void totals_add(struct totals *totals, const struct seed_report *report);
/* Prints totals and rules; answers how many of the rules about many seeds are broken. */
unsigned totals_print(const struct totals *totals, FILE *file);
void totals_deinit(struct totals *totals);
