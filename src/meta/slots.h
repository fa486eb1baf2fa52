/* The slots of a group, and which of them it has opened: directories are made in opened slots only.
 *
 *     never used --slots_stage--> opened in some record --slots_synced--> opened, for ever
 *     never used --slots_give---> given to another group, for as long as no later hand-over says
 *
 * So nearly all slots stay never used for long, and those can be given to other groups: no number
 * was ever drawn there, and no request can name one. A range's slots are opened in order from its
 * first; SLOTS_OPEN_MIN are at the format, another follows when those that are hold more than
 * SLOT_DIRECTORIES directories each. One R row a range, never deleted; a range that changes in part
 * becomes two. What is changed is told once its record is synced (docs/internals/handover.md).
 *
 * Thread: the group's. Memory: in the struct. */
#pragma once
#include "base/types.h"
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "meta/group_format.h"

enum {
    SLOTS_OPEN_MIN = 16,
    SLOT_DIRECTORIES = 1024,
    SLOT_RANGES_MAX = 1024,
    SLOTS_MOVED_MAX = 16 /* ranges that one message gives or takes */
};

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
    uint64_t open_position; /* of the last record that opens some; 0: none is on its way */
    /* For op_slots.c: what the transaction under way changes, and what a message has told. */
    uint32_t moved_count;
    struct slot_range moved[SLOTS_MOVED_MAX];
    struct slot_range told[SLOT_RANGES_MAX];
};

/* (start) A row of the log, in order of their keys: -ERR_CORRUPT when it does not follow the one
 * before, or there are too many. */
MUST_CHECK int slots_load(struct slots *slots, uint64_t place, const struct slots_row *row);
/* The row of a range of slots that a new group has. */
struct slots_row slots_row_first(uint32_t count);
/* One of those that are opened, by a number drawn at random. There is one. */
struct slot slots_draw(const struct slots *slots, uint64_t random);
/* 0 when it is this group's, else -ERR_STALE_MAP. */
MUST_CHECK int slots_check(const struct slots *slots, struct slot slot);
/* Of one that isn't: the hand-over that made it so; -1: it never was. */
int64_t slots_handover(const struct slots *slots, struct slot slot);
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

/* How many are opened, or in some record. */
uint32_t slots_opening(const struct slots *slots);
/* How many are this group's. */
uint32_t slots_mine(const struct slots *slots);
/* How many it could give. */
uint32_t slots_unopened(const struct slots *slots);
/* What was given by this hand-over; else up to `count` of those that were never opened, the last
 * ones first. How many ranges: 0, there is nothing to give, or no place for more ranges. */
uint32_t slots_choose(const struct slots *slots, uint64_t handover, uint32_t count, bool *ret_given,
                      struct slot_range ret_ranges[SLOTS_MOVED_MAX]);
/* What of these slots has to change that the hand-over makes them this group's: as much of it as
 * one message may. How many ranges; *ret_more: there is more of it. */
uint32_t slots_missing(const struct slots *slots, const struct slot_range *wanted,
                       uint32_t wanted_count, bool *ret_more,
                       struct slot_range ret_ranges[SLOTS_MOVED_MAX]);
/* The rows that make a range as it says: up to three, as the range that it is part of has a rest
 * before and behind. What it is part of is one range, or none. */
uint32_t slots_rows(const struct slots *slots, const struct slot_range *range,
                    struct slot_range ret_rows[3]);
struct slots_row slots_row_of(const struct slot_range *range);
/* That the rows are in the record at the position. */
void slots_change(struct slots *slots, const struct slot_range *range, uint64_t position);
