/* One seed: a world is drawn, played, broken, mended, and looked at. */
#pragma once
#include "totals.h"

/* A seed goes another way from some moment on: all its generators are drawn anew there. */
struct run_turn {
    uint64_t at_ns;           /* of the world's time */
    uint64_t lot;             /* by this; 0: it goes its own way to the end */
    _Atomic uint64_t *now_ns; /* follows the world's time, or NULL */
};

/* What carries the calls: drawn by the seed, else as `./dev sim` was told. Before seeds. */
enum run_carrier { CARRIER_DRAWN, CARRIER_PACKETS, CARRIER_STREAMS };
void run_carry_by(enum run_carrier carrier);

/* Plays the seed once; trace (NULL for none) gets every event, turn may be NULL. The report tells
 * all. */
void run_seed(uint64_t seed, FILE *trace, const struct run_turn *turn,
              struct seed_report *ret_report);
