/* What a node tells the manager of the lives of its logs, and what is said of them
 * (docs/internals/identity.md). */
#pragma once
#include "wire/wire_rows.h"

/* Of a log that its sender serves: drawn at a start of it, under that term, which is on disk.
 * Little-endian, one behind the other. */
struct wire_life {
    uint64_t log;
    uint64_t term;
    uint64_t life_high;
    uint64_t life_low;
};
_Static_assert(sizeof(struct wire_life) == 32, "no padding");
/* Of each log of a node: 64 OSTs, 8 groups. */
enum {
    WIRE_LIVES_MAX = 64 + 8,
    WIRE_LIVES_BYTES_MAX = WIRE_LIVES_MAX * WIRE_ROW_GROWTH * WIRE_LIFE_BYTES_MIN
};

/* Of a log whose life was registered since a number of starts. term: of that life; 0: nobody has
 * registered one, so it may have started at any time. Little-endian, one behind the other. */
struct wire_start {
    uint64_t log;
    uint64_t term;
};
_Static_assert(sizeof(struct wire_start) == 16, "no padding");

/* WAIT: the life that is registered has spoken a short while ago and is asked whether it still
 * runs. RUNS: it does, at another place. OLDER: another life of a term as high or higher is
 * registered. From WAIT on they are not registered. */
enum lives_verdict { LIVES_NOT_TOLD, LIVES_REGISTERED, LIVES_WAIT, LIVES_RUNS, LIVES_OLDER };
