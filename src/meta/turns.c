/* The contract is in turns.h. */
#include "meta/turns.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include <string.h>

static bool is_same(struct turn_id a, struct turn_id b) {
    return a.log == b.log && a.term == b.term && a.number == b.number;
}

static bool is_standing(const struct group *group) {
    const struct turns *turns = &group->turns;

    return turns->holder.number != 0 && (group->now_ns < turns->until_ns || BUG(KEPT_TURN));
}

uint64_t turns_left_ns(const struct group *group, struct turn_id id) {
    const struct turns *turns = &group->turns;

    if (!is_standing(group) || (id.number != 0 && is_same(turns->holder, id))) {
        return 0;
    }
    return turns->until_ns > group->now_ns ? turns->until_ns - group->now_ns : 1;
}

static void place_drop(struct turns *turns, uint32_t at) {
    turns->line_count--;
    memmove(&turns->line[at], &turns->line[at + 1],
            (turns->line_count - at) * sizeof turns->line[0]);
}

/* The line's length: it has no place. */
static uint32_t place_find(const struct turns *turns, struct turn_id id) {
    uint32_t at = 0;

    while (at < turns->line_count && !is_same(turns->line[at].id, id)) {
        at++;
    }
    return at;
}

static void place_take(struct group *group, struct turn_id id) {
    struct turns *turns = &group->turns;
    uint32_t at = place_find(turns, id);

    if (at == TURN_LINE_MAX) {
        return; /* It asks again. */
    }
    if (at == turns->line_count) {
        turns->line[turns->line_count++].id = id;
        group->counters.totals.turns_asked++;
    }
    turns->line[at].asked_ns = group->now_ns;
}

static void silent_drop(struct group *group) {
    struct turns *turns = &group->turns;

    for (uint32_t at = turns->line_count; at-- > 0;) {
        if (group->now_ns - turns->line[at].asked_ns >= TURN_ASKS_NS) {
            place_drop(turns, at);
        }
    }
}

/* For who is not first, or meets a move that is on its way. */
static uint64_t wait_ns(const struct group *group) {
    const struct turns *turns = &group->turns;
    uint64_t end_ns = turns->line_count > 0 ? turns->line[0].asked_ns + TURN_ASKS_NS : 0;

    return end_ns > group->now_ns ? end_ns - group->now_ns : 1;
}

uint64_t turns_ask(struct group *group, struct turn_id id, bool is_free) {
    struct turns *turns = &group->turns;

    turns_tick(group);
    if (is_standing(group) && is_same(turns->holder, id)) {
        return 0;
    }
    silent_drop(group);
    place_take(group, id);
    if (is_standing(group)) {
        return turns_left_ns(group, id);
    }
    if (!is_free || place_find(turns, id) != 0) {
        return wait_ns(group);
    }
    place_drop(turns, 0);
    turns->holder = id;
    turns->until_ns = group->now_ns + TURN_NS;
    group->counters.totals.turns_given++;
    return 0;
}

static void turn_clear(struct group *group) {
    group->turns.holder = (struct turn_id){0};
    group->moved = true; /* Moves of the group's own may wait for that. */
}

void turns_end(struct group *group, struct turn_id id) {
    struct turns *turns = &group->turns;
    uint32_t at = place_find(turns, id);

    if (id.number == 0 || BUG(KEPT_TURN)) {
        return;
    }
    if (at < turns->line_count) {
        place_drop(turns, at);
    }
    if (is_same(turns->holder, id)) {
        turn_clear(group);
    }
}

/* Of a log that is gone, or could not say that it wants no more, a place is left in the line. */
void turns_tick(struct group *group) {
    silent_drop(group);
    if (group->turns.holder.number != 0 && !is_standing(group)) {
        group->counters.totals.turns_run_out++;
        turn_clear(group);
    }
}
