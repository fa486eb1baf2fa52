/* One seed: a world is drawn, played, broken, mended, and looked at. */
#pragma once
#include "base/types.h"
#include <stdio.h>

/* What happened, summed up over seeds. */
struct run_totals {
    uint64_t submitted, succeeded, failed, lost, crashes;
    uint64_t pending_reads, duplicates_refused, checkpoints, replayed_records, opens_cut;
};

/* Plays the seed; trace (NULL for none) gets every event. Adds to totals; gives the hash of all
 * that happened. False: ret_failure says what broke. */
bool run_seed(uint64_t seed, FILE *trace, struct run_totals *totals, uint64_t *ret_hash,
              char ret_failure[700]);
