/* The places that transactions with one log have in the table: a quarter at most. So what waits for
 * one that is away leaves room for all others. One more is answered -ERR_BUSY, and holds nothing:
 * its client asks again.
 *
 *     a look --> counted until that log has answered; over tries, too, when it does not
 *     a prepare --> counted until the log knows of the decision, or has nothing to abort
 *
 * Decisions that a start has found are counted, and are never too many. */
#include "meta/crossing_internal.h"
#include <assert.h>

/* places_count where it has none. */
static uint32_t places_find(const struct crossings *crossings, struct log_id log) {
    uint32_t i = 0;

    while (i < crossings->places_count && crossings->places[i].log != log.value) {
        i++;
    }
    return i;
}

/* False: there have been more logs than a map has, and all are still asked for something. */
static bool places_make(struct crossings *crossings, struct log_id log) {
    uint32_t i = 0;

    while (i < crossings->places_count && crossings->places[i].count > 0) {
        i++;
    }
    if (i == ARRAY_SIZE(crossings->places)) {
        return false;
    }
    crossings->places_count = MAX(crossings->places_count, i + 1);
    crossings->places[i] = (struct crossing_places){.log = log.value};
    return true;
}

static bool place_take(struct crossings *crossings, struct log_id log) {
    uint32_t i = places_find(crossings, log);

    if (i == crossings->places_count && !places_make(crossings, log)) {
        return false;
    }
    crossings->places[places_find(crossings, log)].count++;
    return true;
}

static void place_give(struct crossings *crossings, struct log_id log) {
    uint32_t i = places_find(crossings, log);

    assert(i < crossings->places_count && crossings->places[i].count > 0);
    crossings->places[i].count--;
}

static uint32_t share_max(const struct group *group) {
    return MAX(group->options.crossings_max / 4, 1U);
}

bool crossings_have_place(const struct group *group, struct log_id log) {
    uint32_t i = places_find(&group->crossings, log);

    return i == group->crossings.places_count ||
           group->crossings.places[i].count < share_max(group);
}

bool crossing_may_ask(const struct crossing *crossing, struct log_id log) {
    return crossing->looks_at.value == log.value || crossings_have_place(crossing->all->group, log);
}

void crossing_refuse(struct crossing *crossing) {
    crossing->failure = -ERR_BUSY;
    crossing->all->group->counters.totals.crossings_busy++;
}

void crossing_looks_at(struct crossing *crossing, struct log_id log) {
    struct crossings *crossings = crossing->all;

    if (crossing->looks_at.value == log.value) {
        return;
    }
    if (crossing->looks_at.value != 0) {
        place_give(crossings, crossing->looks_at);
    }
    crossing->looks_at.value = log.value != 0 && place_take(crossings, log) ? log.value : 0;
}

void crossing_share_begins(struct crossing *crossing, struct share *share) {
    assert(!share->has_place);
    share->has_place = place_take(crossing->all, share->draft.log);
}

void crossing_share_ends(struct crossing *crossing, struct share *share) {
    if (share->has_place) {
        share->has_place = false;
        place_give(crossing->all, share->draft.log);
    }
}
