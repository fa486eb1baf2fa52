/* What one seed did to its owners, and what many seeds did together.
 *
 * Over TOTALS_SEEDS_MIN seeds every total that must count stands at TOTALS_LEAST at least, for each
 * owner that has it, and no place of the matrix of stages is empty: so a state that is no longer
 * met is found.
 *
 * Thread: one.  Memory: the caller's, and the heap for the hashes. */
#pragma once
#include "base/types.h"
#include <stdio.h>

/* Enumerator, text, which owners must have it: 1 the group, 2 the store. */
#define TOTALS(X)                                                                                  \
    X(SEEDS, "seeds", 0)                                                                           \
    X(TRANSACTIONS, "transactions", 3)                                                             \
    X(ABORTS, "aborts", 1)                                                                         \
    X(PENDING, "PENDING restarts", 3)                                                              \
    X(GRANTS_AGAIN, "grants used again", 1)                                                        \
    X(NOTES, "notes with data", 3)                                                                 \
    X(DROPS, "sessions dropped", 1)                                                                \
    X(RECORDS, "records", 3)                                                                       \
    X(STORES, "stores into the ring", 3)                                                           \
    X(WRAPS, "laps of the ring", 3)                                                                \
    X(SYNC_POINTS, "sync points", 3)                                                               \
    X(CHECKPOINTS, "checkpoints", 3)                                                               \
    X(CONTROL_WAITS, "waits of control", 1)                                                        \
    X(RELEASE_WAITS, "waits of release", 1)                                                        \
    X(BACKGROUND_WAITS, "waits of background", 1)                                                  \
    X(FREEING_WAITS, "waits of freeing", 1)                                                        \
    X(REQUEST_WAITS, "waits of requests", 3)                                                       \
    X(CONTROL_FULL, "no space for control", 1)                                                     \
    X(RELEASE_FULL, "no space for release", 1)                                                     \
    X(BACKGROUND_FULL, "no space for background", 1)                                               \
    X(FREEING_FULL, "no space for freeing", 1)                                                     \
    X(REQUEST_FULL, "no space for requests", 3)                                                    \
    X(BUSY, "outcomes refused", 1)                                                                 \
    X(FLOODS, "memory filled within a step", 1)                                                    \
    X(STUCK_ROWS, "rows without room to be deleted", 1)                                            \
    X(FAILURES, "logs that failed", 3)                                                             \
    X(LIVES, "lives", 3)                                                                           \
    X(STOPS, "stops", 3)                                                                           \
    X(STOPS_IN_WEATHER, "stops in bad weather", 3)                                                 \
    X(STOPS_FAILED, "stops of logs that failed", 3)                                                \
    X(RINGS_BY_KILL, "lives with another ring behind a kill", 3)                                   \
    X(RINGS_BY_STOP, "lives with another ring behind a stop", 3)                                   \
    X(RINGS_SMALLER, "rings that give way to smaller ones", 3)                                     \
    X(RINGS_LARGER, "rings that give way to larger ones", 3)                                       \
    X(RINGS_KEPT, "rings kept for what they hold", 3)                                              \
    X(LIVELY, "mended, and all moves", 3)                                                          \
    X(EVENTS, "events", 0)                                                                         \
    X(RECOVERIES, "recoveries", 3)                                                                 \
    X(KILLED, "kills", 3)                                                                          \
    X(POWER_LOST, "power, all lost", 3)                                                            \
    X(POWER_KEPT, "power, all kept", 3)                                                            \
    X(POWER_ONE_LOST, "power, one block lost", 3)                                                  \
    X(POWER_ONE_KEPT, "power, one block kept", 3)                                                  \
    X(POWER_ONE_TORN, "power, one block torn", 3)                                                  \
    X(POWER_MIXED, "power, mixed", 3)                                                              \
    X(CUT_OPEN, "cut inside open", 3)                                                              \
    X(CUT_AGAIN, "openings cut again", 3)                                                          \
    X(CUT_SEAL, "cut inside seal", 3)                                                              \
    X(CUT_RELEASE, "cut inside release", 3)                                                        \
    X(CUT_STORE, "stores cut in two", 3)                                                           \
    X(CUT_FILLER, "cut behind a filler without a record", 1)                                       \
    X(CUT_FILLED, "cut behind a filler and its record", 1)

enum total {
#define TOTAL_ENUMERATOR(name, text, owners) TOTAL_##name,
    TOTALS(TOTAL_ENUMERATOR)
#undef TOTAL_ENUMERATOR
        TOTAL_COUNT
};

enum owner_kind { OWNER_GROUP, OWNER_STORE, OWNER_KIND_COUNT };

enum {
    TOTALS_SEEDS_MIN = 2000, /* from so many on the totals are checked */
    TOTALS_LEAST = 100,
    TOTALS_SMALL_RECOVERIES = 100000,
    TOTALS_STEPPED_SEEDS = 50, /* from so many on, where each store is one instruction's: */
    TOTALS_STEPPED_STORES = 200000,
    TOTALS_STEPPED_RECOVERIES = 2000,
    TOTALS_STEPPED_KILLS = 1000,
    TOTALS_SYNC_STAGES = 4,
    TOTALS_CHECKPOINT_STAGES = 5,
    TOTALS_FAILURE_BYTES = 700,
};

struct counts {
    uint64_t of[TOTAL_COUNT];
    uint64_t cut[TOTALS_SYNC_STAGES][TOTALS_CHECKPOINT_STAGES];
};

/* Plain bytes: goes through pipes. */
struct seed_report {
    uint64_t seed;
    uint64_t hash;
    struct counts counts[OWNER_KIND_COUNT];
    bool clean;
    char failure[TOTALS_FAILURE_BYTES]; /* when not clean */
};

struct totals {
    uint64_t seeds, failed;
    struct counts counts[OWNER_KIND_COUNT];
};

void totals_add(struct totals *totals, const struct seed_report *report);
/* What the rules are about. */
enum totals_of { TOTALS_OF_SEEDS, TOTALS_OF_SMALL, TOTALS_OF_STEPPED };
/* Prints totals and rules; answers how many of the rules about many seeds are broken. */
unsigned totals_print(const struct totals *totals, enum totals_of what, FILE *file);
