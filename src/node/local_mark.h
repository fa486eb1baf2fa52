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

enum { LOCAL_MARK_BOOT_BYTES = 16, LOCAL_MARK_BYTES = 2 * LOCAL_MARK_BOOT_BYTES + 1 };

struct local_mark {
    bool unclean;    /* there was one */
    bool was_served; /* ... which tells of a death while it served, not of one that was stopped */
    bool rings_left; /* ... which says that there must be rings */
};

/* Of one that serves in the boot with this id; a NUL stands behind it. */
void local_mark_print(const uint8_t boot_id[LOCAL_MARK_BOOT_BYTES],
                      char ret_text[LOCAL_MARK_BYTES + 1]);
/* What the file's text says in that boot. */
void local_mark_parse(const uint8_t boot_id[LOCAL_MARK_BOOT_BYTES], struct bytes text,
                      struct local_mark *ret_mark);
MUST_CHECK int local_mark_read(struct env *env, struct local_mark *ret_mark);
/* On a full disk the one that is there already is as good, and an empty one better than none. */
MUST_CHECK int local_mark_serving(struct env *env, const struct local_mark *mark);
void local_mark_stopping(struct env *env);
/* Takes it away, unless `unclean` says that it must stay. */
void local_mark_end(struct env *env, const struct local_mark *mark);
