/* Turns of moves, at the group that has slot 0. A directory that gets another parent relies on the
 * count of moves, so one whose way to the root is long may lose against shorter ones for ever. Who
 * has lost MOVE_REFUSALS_MAX times asks for a turn (docs/internals/halves.md):
 *
 *     asks --> line --first, and no turn stands--> TURN --its move ends, gives it back, or 1 s-->
 *                ^                                                                              |
 *                '----- asks again: it is told how long at most the turn of another lasts ------'
 *
 * While a turn stands, no other's move is taken. Nothing of it is on disk: a group that starts anew
 * has none and a line of nobody, and who still needs one asks again.
 *
 * Thread: the group's step. */
#pragma once
#include "base/types.h"

struct group;

enum { TURN_LINE_MAX = 64, MOVE_REFUSALS_MAX = 8 };
#define TURN_NS NS_PER_S
#define TURN_ASKS_NS NS_PER_S /* who has not asked again for so long is in the line no more */

/* number 0: of nobody. */
struct turn_id {
    uint64_t log; /* the coordinator's */
    uint64_t term;
    uint64_t number;
};

struct turn_place {
    struct turn_id id;
    uint64_t asked_ns;
};

struct turns {
    struct turn_id holder;
    uint64_t until_ns;
    struct turn_place line[TURN_LINE_MAX];
    uint32_t line_count;
};

/* 0: a move with that id may be taken. Else for how long at most it may not. */
uint64_t turns_left_ns(const struct group *group, struct turn_id id);
/* Likewise; and it is in the line from now on, or it has the turn, which it gets only where no move
 * of another is on its way (is_free). Asking again changes nothing but its place's age. */
uint64_t turns_ask(struct group *group, struct turn_id id, bool is_free);
/* Its move has ended, or needs no turn any more. */
void turns_end(struct group *group, struct turn_id id);
void turns_tick(struct group *group);
