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

/* Groups keep their places in all versions of the map. NULL: none of it, which nobody asks. */
static uint32_t *places_of(struct group *group, struct log_id log) {
    for (uint32_t i = 0; i < group->map->group_count; i++) {
        if (group->map->groups[i].log.value == log.value) {
            return &group->crossings.places[i];
        }
    }
    return NULL;
}

static bool place_take(struct group *group, struct log_id log) {
    uint32_t *count = places_of(group, log);

    if (count) {
        ++*count;
    }
    return count != NULL;
}

static void place_give(struct group *group, struct log_id log) {
    uint32_t *count = places_of(group, log);

    assert(count && *count > 0);
    --*count;
}

static bool is_below_share(const struct group *group, uint32_t count) {
    return count < MAX(group->options.crossings_max / 4, 1U);
}

bool crossings_have_place(const struct group *group, uint32_t index) {
    return is_below_share(group, group->crossings.places[index]);
}

bool crossing_may_ask(const struct crossing *crossing, struct log_id log) {
    struct group *group = crossing->all->group;
    const uint32_t *count = places_of(group, log);

    return crossing->looks_at.value == log.value || !count || is_below_share(group, *count);
}

void crossing_refuse(struct crossing *crossing) {
    crossing->failure = -ERR_BUSY;
    crossing->all->group->counters.totals.crossings_busy++;
}

void crossing_looks_at(struct crossing *crossing, struct log_id log) {
    struct group *group = crossing->all->group;

    if (crossing->looks_at.value == log.value) {
        return;
    }
    if (crossing->looks_at.value != 0) {
        place_give(group, crossing->looks_at);
    }
    crossing->looks_at.value = log.value != 0 && place_take(group, log) ? log.value : 0;
}

void crossing_share_begins(struct crossing *crossing, struct share *share) {
    assert(!share->has_place);
    share->has_place = place_take(crossing->all->group, share->draft.log);
}

void crossing_share_ends(struct crossing *crossing, struct share *share) {
    if (share->has_place) {
        share->has_place = false;
        place_give(crossing->all->group, share->draft.log);
    }
}
