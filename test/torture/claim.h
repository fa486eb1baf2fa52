/* What clients were told, in the order of the trace, and what is owed to them.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "base/types.h"

enum claim_kind {
    CLAIM_SEALED,  /* survives kill -9 */
    CLAIM_SYNCED,  /* survives the loss of power */
    CLAIM_POWER,   /* only what was synced is owed any more */
    CLAIM_RESUMED, /* an engine has opened: so much is there, and owed */
};

struct claim {
    enum claim_kind kind;
    uint64_t position;
    size_t event; /* owed by a crash behind it */
};

struct claims {
    struct claim *items;
    size_t count, capacity;
};

/* What a crash may leave. most: what the last opening found. */
struct bounds {
    uint64_t least_by_kill;
    uint64_t least_by_power;
    uint64_t most;
    bool powered; /* power was lost, and none has opened since */
};

void claims_add(struct claims *claims, enum claim_kind kind, uint64_t position, size_t event);
/* `first`: of a log that begins behind it. */
struct bounds claims_bounds(const struct claims *claims, size_t point, uint64_t first);
void claims_deinit(struct claims *claims);
