/* What one seed did, and what many seeds did together.
 *
 * Rules are of two kinds: those that each seed keeps, checked for each seed, and totals that must
 * have come to something over TOTALS_SEEDS_MIN seeds, so that a fault that has stopped to happen
 * does not go unnoticed. All are printed.
 *
 * Thread: one.  Memory: the caller's, and the heap for the hashes. */
#pragma once
#include "base/types.h"
#include <stdio.h>

/* Name of the enumerator, the text, and whether it may stand below TOTALS_LEAST in a long run. */
#define TOTALS(X)                                                                                  \
    X(OPERATIONS, "operations", true)                                                              \
    X(SUCCEEDED, "succeeded", true)                                                                \
    X(REFUSED, "refused", false)                                                                   \
    X(LOST, "answers lost", true)                                                                  \
    X(RENAMES, "renames", true)                                                                    \
    X(REPLACED, "renames over a name", true)                                                       \
    X(EXCHANGED, "renames that exchange", true)                                                    \
    X(RENAMES_REFUSED, "renames refused", true)                                                    \
    X(DROPPED, "messages dropped", true)                                                           \
    X(DELAYED, "messages delayed", true)                                                           \
    X(DOUBLED, "messages doubled", true)                                                           \
    X(REORDERED, "messages reordered", true)                                                       \
    X(CUT_OFF, "messages cut off", true)                                                           \
    X(KILLS, "kills", true)                                                                        \
    X(POWERS, "power failures", true)                                                              \
    X(WRITES_CUT, "disk writes cut", true)                                                         \
    X(BLOCKS_LOST, "disk blocks lost", true)                                                       \
    X(BLOCKS_TORN, "disk blocks torn", true)                                                       \
    X(DISKS_SLOW, "slow disk operations", true)                                                    \
    X(DISKS_FULL, "disks full", true)                                                              \
    X(NO_SPACE, "answers of no space", true)                                                       \
    X(NAMES_FULL, "metadata disks full", true)                                                     \
    X(NAMES_NO_SPACE, "answers of no space for names", true)                                       \
    X(LATE_CLOSES, "closes put off for space", false)                                              \
    X(BITS_FLIPPED, "bits flipped", true)                                                          \
    X(BITS_FOUND, "answers of damaged data", true)                                                 \
    X(DAMAGE_CUT, "cuts through damaged data", false)                                              \
    X(LOGS_ROT, "bits of logs flipped", true)                                                      \
    X(LOGS_REFUSED, "starts refused for them", true)                                               \
    X(LOGS_TORN, "of them taken for a torn tail", false)                                           \
    X(KEY_NUMBERS, "numbers of keys", true)                                                        \
    X(CAPABILITIES_CHECKED, "signatures checked", true)                                            \
    X(CAPABILITIES_REFUSED, "capabilities of old keys", true)                                      \
    X(CLOCKS, "clocks skewed", true)                                                               \
    X(PENDING, "PENDING restarts", true)                                                           \
    X(DUPLICATES, "duplicates refused", true)                                                      \
    X(CHECKPOINTS, "checkpoints", true)                                                            \
    X(CHECKPOINTS_CUT, "checkpoints cut", true)                                                    \
    X(REPLAYS, "replays", true)                                                                    \
    X(REPLAYS_CUT, "replays cut", true)                                                            \
    X(RECORDS_REPLAYED, "records replayed", true)                                                  \
    X(STRAYS, "sets of chunks left to a scrub", true)                                              \
    X(JOINS, "answers to nodes that join", true)                                                   \
    X(MAPS, "newer maps that an MDT took", true)                                                   \
    X(MANAGER_CUTS, "cuts of the manager from all", true)                                          \
    X(MANAGER_DEAF, "that it hears nobody", false)                                                 \
    X(MANAGER_MUTE, "that nobody hears it", false)                                                 \
    X(EVICTIONS, "evictions for silence", true)                                                    \
    X(EVICTIONS_HELD, "held back, few nodes heard", true)                                          \
    X(LATE_WRITES, "writes at OSTs that joined", true)                                             \
    X(POOLS_LEFT, "pools that a full OST left", true)                                              \
    X(POOLS_BACK, "pools that one came back to", true)                                             \
    X(SLOTS, "slots handed over", true)                                                            \
    X(SESSIONS_ENDED, "ends of sessions at MDTs", true)                                            \
    X(CROSSINGS, "transactions across logs", true)                                                 \
    X(CROSSINGS_AGAIN, "begun anew", true)                                                         \
    X(PROMISES_KEPT, "promises kept", true)                                                        \
    X(PROMISES_GONE, "promises aborted", true)                                                     \
    X(PROMISES_FOUND, "promises found by starts", true)                                            \
    X(DECISIONS_FOUND, "decisions found by starts", true)                                          \
    X(STALLS, "stalls of full logs", false)                                                        \
    X(WINDOW_WAITS, "waits for a window", true)                                                    \
    X(OUTCOMES_REFUSED, "outcomes refused", false)

enum total {
#define TOTAL_ENUMERATOR(name, text, counts) TOTAL_##name,
    TOTALS(TOTAL_ENUMERATOR)
#undef TOTAL_ENUMERATOR
        TOTAL_COUNT
};

enum {
    TOTALS_SEEDS_MIN = 1000, /* from so many on the totals are checked */
    TOTALS_LEAST = 100,
    RULE_CLIENTS_MIN = 3,
    RULE_OSTS_MAX = 4,
    RULE_OPERATIONS_MIN = 2000,
    RULE_SUCCEEDED_MIN = 1000,
    RULE_CRASHES_MIN = 1,
    RULE_ANSWERS_S = 60, /* of simulated time, for what is open when faults have ended */
    RULE_LATE_S = 10,    /* then, for closes that clients have kept */
    RULE_LISTS_S = 30,   /* then, until all targets know who has ended */
    RULE_POOLS_S = 10,   /* then, until the newest pool version is as storage targets are */
    RULE_FLOORS_S = 10,  /* then, until no outcome is kept of an idle session */
    SEED_FAILURE_BYTES = 700,
};

/* Plain bytes: goes through pipes. */
struct seed_report {
    uint64_t seed;
    uint64_t hash;
    uint64_t counts[TOTAL_COUNT];
    uint64_t answers_ns; /* from the end of faults to the last answer */
    uint32_t clients;
    uint32_t osts;
    bool smallest;
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
    uint64_t operations_min;
    uint64_t succeeded_min;
    uint64_t crashes_min;
    uint64_t answers_ns_max;
    uint32_t clients_min;
    uint32_t osts_min;
    uint32_t osts_max;
    uint64_t *hashes; /* of the clean ones */
    size_t hash_count;
    size_t hash_capacity;
};

void totals_add(struct totals *totals, const struct seed_report *report);
/* Prints totals and rules; answers how many of the rules about many seeds are broken. */
unsigned totals_print(const struct totals *totals, FILE *file);
void totals_deinit(struct totals *totals);
