/* Windows: how many mutations a session may have under way at a log, granted when it attaches.
 *
 *     places of the outcome table:   8 a session, whoever comes | granted above that | spare
 *
 * Who attaches gets a 64th of what is spare, at least 8 in all and 2,048 at the most, and keeps it
 * until its end. So the first ones get much, later ones less, none too little, and all that may be
 * under way has a place: no mutation is refused for want of one.
 *
 * Thread: the kv's owner. */
#pragma once
#include "base/types.h"

enum { WINDOW_LEAST = 8, WINDOW_MOST = 2048, WINDOW_SHARE = 64 };

struct windows {
    uint64_t places;  /* above 8 a session */
    uint64_t granted; /* of them; more than there are after the table was made smaller */
};

static inline void windows_init(struct windows *windows, uint32_t outcomes_max,
                                uint32_t sessions_max) {
    uint64_t least = (uint64_t)WINDOW_LEAST * sessions_max;

    *windows = (struct windows){.places = outcomes_max > least ? outcomes_max - least : 0};
}

/* What the next session would get. */
static inline uint16_t windows_offer(const struct windows *windows) {
    uint64_t spare = windows->places - MIN(windows->granted, windows->places);

    return (uint16_t)MIN(MAX(spare / WINDOW_SHARE, UINT64_C(8)), (uint64_t)WINDOW_MOST);
}

/* A session has this window from now on, or from before this start; 0 is as good as 8. */
static inline void windows_take(struct windows *windows, uint16_t window) {
    windows->granted += window - MIN(window, (uint16_t)WINDOW_LEAST);
}

/* The session has ended. */
static inline void windows_give_back(struct windows *windows, uint16_t window) {
    windows->granted -= window - MIN(window, (uint16_t)WINDOW_LEAST);
}
