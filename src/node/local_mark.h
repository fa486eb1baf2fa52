/* The file `in-use`, there from before a cluster serves until it has ended cleanly, so that the
 * next start knows of an unclean end.
 *
 *     boot id in hex   serving: killed in this boot, it leaves its rings in memory
 *     empty            stopping: its rings go, one after the other
 *
 * Any other text, of a boot that is over too, tells of an unclean end and no more. */
#pragma once
#include "env/env.h"

#define LOCAL_MARK_NAME "in-use"

struct local_mark {
    bool unclean;    /* there was one */
    bool was_served; /* ... which tells of a death while it served, not of one that was stopped */
    bool rings_left; /* ... which says that there must be rings */
};

MUST_CHECK int local_mark_read(struct env *env, struct local_mark *ret_mark);
/* On a full disk the one that is there already is as good, and an empty one better than none. */
MUST_CHECK int local_mark_serving(struct env *env, const struct local_mark *mark);
void local_mark_stopping(struct env *env);
/* Takes it away, unless `unclean` says that it must stay. */
void local_mark_end(struct env *env, const struct local_mark *mark);
