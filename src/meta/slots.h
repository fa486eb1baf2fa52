/* The slots of a group, and which of them it has opened: directories are made in opened slots only.
 *
 *     never used --slots_stage--> opened in some record --slots_synced--> opened, for ever
 *
 * So nearly all slots stay never used for long, and those can be given to other groups: no number
 * was ever drawn there, and no request can name one. A range's slots are opened in order from its
 * first; SLOTS_OPEN_MIN are at the format, another follows when those that are hold more than
 * SLOT_DIRECTORIES directories each. One R row a range, never deleted.
 *
 * Thread: the group's. Memory: in the struct. */
#pragma once
#include "base/types.h"
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "meta/group_format.h"

enum { SLOTS_OPEN_MIN = 16, SLOT_DIRECTORIES = 1024, SLOT_RANGES_MAX = 256 };

struct slot_range {
    uint32_t first;
    uint32_t count;
    uint32_t opened;  /* and on disk */
    uint32_t opening; /* in some record; at least `opened` */
    bool mine;
    uint64_t handover;      /* number of the hand-over that made it so; 0: the format */
    struct log_id given_to; /* unless it is mine */
};

struct slots {
    struct slot_range ranges[SLOT_RANGES_MAX]; /* in order, without overlap */
    uint32_t range_count;
    uint32_t opened;        /* of all ranges that are mine */
    uint64_t open_position; /* of the record that opens another; 0: none is on its way */
};

/* (start) A row of the log, in order of their keys: -ERR_CORRUPT when it does not follow the one
 * before, or there are too many. */
MUST_CHECK int slots_load(struct slots *slots, uint32_t first, const struct slots_row *row);
/* The row of a range of slots that a new group has. */
struct slots_row slots_row_first(uint32_t count);
/* One of those that are opened, by a number drawn at random. There is one. */
struct slot slots_draw(const struct slots *slots, uint64_t random);
/* 0 when it is this group's, else -ERR_STALE_MAP. */
MUST_CHECK int slots_check(const struct slots *slots, struct slot slot);
/* Whether there is no other group. */
static inline bool slots_has_all(const struct slots *slots) {
    return slots->range_count == 1 && slots->ranges[0].mine && slots->ranges[0].count == SLOT_COUNT;
}
/* Whether a number may be drawn there. */
bool slots_is_opened(const struct slots *slots, struct slot slot);

/* Puts a row into the open record, in a transaction of its own, when the opened slots hold so many
 * directories that another must be opened. Without room it is tried again with the next. */
void slots_stage(struct slots *slots, struct kv *kv, uint64_t directory_count);
/* The synced position moved. */
void slots_synced(struct slots *slots, uint64_t synced);
