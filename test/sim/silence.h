/* The manager's node is cut off from all others for longer than a session may be silent, in one
 * seed of four; and the oracle of that.
 *
 * The oracle: a manager that hears fewer than half of its nodes evicts nobody for silence, nor in
 * the first timeout after it hears them again. It knows when the cut began and ended, which nodes
 * the manager has answered before, and how many evictions there were; not what the manager thinks
 * that it hears. Of one that was stopped so late that it can't know of the cut it says nothing, nor
 * of one that has lost a node to a power cut meanwhile and knows too few.
 *
 * Thread: the world's. Memory: the caller's. */
#pragma once
#include "base/prng.h"
#include "newcomers.h"
#include "world.h"

enum silence_kind { SILENCE_BOTH, SILENCE_INWARD, SILENCE_OUTWARD, SILENCE_KINDS };

struct silence {
    struct world *world;
    const struct newcomers *newcomers;
    struct prng prng;   /* of its own, so that it changes nothing of other seeds */
    bool is_due;        /* this seed has one, which has not begun yet */
    uint64_t begins_at; /* operations submitted by then */
    enum silence_kind kind;
    uint64_t cut_ns;      /* 0: there was none */
    uint64_t heal_ns;     /* when it ends, or has ended */
    uint64_t started_ns;  /* the manager, last */
    uint64_t stopped_ns;  /* when it was, last, before the cut ended; 0: never */
    bool knew_few;        /* the manager, during the cut */
    uint64_t incarnation; /* of the manager, as it was looked at last */
    uint64_t evictions;   /* likewise */
    uint64_t cuts[SILENCE_KINDS];
};

/* operations: of the whole seed. */
void silence_init(struct silence *silence, struct world *world, const struct newcomers *newcomers,
                  uint64_t operations);
/* Cuts, if it is time, while there is no other partition: when that is to be healed. 0: not now. */
uint64_t silence_begin(struct silence *silence, uint64_t submitted);
/* Every few milliseconds. False: failure says what is wrong. */
bool silence_look(struct silence *silence, char failure[600]);
/* Nothing more is to be seen. */
bool silence_is_over(const struct silence *silence);
