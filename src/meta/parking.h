/* Calls that met PENDING and will run again from their beginning.
 *
 * Those that wait for a row are tried when the engine wakes the group, oldest first, as theirs are
 * the rows that were asked for first. Those that wait for the group itself (numbers, a size that is
 * asked for, a cut under way) are tried when something of that kind has ended.
 *
 * A mutation that is parked is found by its number, too: of two copies of it one goes on.
 *
 * Thread: the group's step.  Memory: none; calls are linked. */
#pragma once
#include "rpc/call.h"
#include <assert.h>

enum { PARKING_BUCKETS = 1024 };

struct parking {
    struct list rows[MESSAGE_CLASS_COUNT];
    struct list group[MESSAGE_CLASS_COUNT];
    uint32_t count;
    struct list mutations[PARKING_BUCKETS]; /* all that are parked, by session and sequence */
    uint64_t looks;                         /* at one of these, in search of a copy */
};

void parking_init(struct parking *parking);
void parking_put(struct parking *parking, struct list *list, struct call *call);
struct call *parking_take(struct parking *parking, struct list *list);
/* Takes another copy of this mutation that is parked; NULL: none is. */
struct call *parking_take_copy(struct parking *parking, const struct call *call);
/* Puts all of `front`, which are parked, before those of the list, in order. */
void parking_put_back(struct list *front, struct list *list);
