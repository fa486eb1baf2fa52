/* A bit of a target's disk log flips while the target is down.
 *
 *     log: [superblocks | .. old .. tail [batch][batch][batch] head .. older laps ..]
 *                                        `- known to be durable -' the last one may be a torn tail
 *
 * The log is read before and after by the engine's own code, and a start is tried. Damage of what
 * a later batch knew to be durable must be found and the start refused; damage where nothing is
 * needed must not be. Then the bit is put back, as from a copy, and the seed goes on.
 *
 * Thread: the world's. */
#pragma once
#include "world.h"

enum { ROT_PROBLEM_BYTES = 400 };

struct rot_counters {
    uint64_t flipped;
    uint64_t refused; /* starts, for the damage */
    uint64_t torn;    /* the log ended earlier, and nobody could know that it had gone on */
};

/* The node is down, and has a log. False: damage was not found, or found where there is none. */
bool rot_play(struct node *node, struct prng *prng, struct rot_counters *counters,
              char problem[ROT_PROBLEM_BYTES]);
