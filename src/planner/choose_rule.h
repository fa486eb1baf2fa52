/* One rule of the chooser, as users write it:
 *
 *     CONDITION : POINTS : REASON
 *     nodes > 128 and network == tcp : -2 : wants RDMA at that size
 *
 * CONDITION is `always`, or comparisons joined by `and`. A comparison has an input's name, one of
 * == != < <= > >=, and a value with its unit; a choice knows == and != only. POINTS are -9 to 9,
 * but not 0, or `no`: the system is out. `off` in place of the whole takes a rule away.
 *
 * Thread: the caller's.  Memory: none of its own. */
#pragma once
#include "planner/plan.h"

struct choose_rule {
    bool applies;
    bool excludes;
    int points;
    const char *reason; /* the rest of the text */
};

/* All of the text is checked, also behind a comparison that is false. `values` is the struct that
 * `inputs` describes. -ERR_MALFORMED with *problem filled, without the rule's name. */
MUST_CHECK int choose_rule_read(const struct plan_model *model, const void *values,
                                const char *text, struct choose_rule *ret_rule,
                                struct plan_problem *problem);
