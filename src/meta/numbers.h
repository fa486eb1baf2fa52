/* Numbers that a group hands out: inos, chunk generations, epochs; and the count of its inodes.
 *
 * Inos and generations are never used twice, also after power loss: they are reserved ahead in
 * blocks, and a number is handed out only when the record of its block is on disk. The last epoch
 * and the count go with each record (numbers_stage, right before it is sealed), so they are exact.
 *
 * Thread: the group's. */
#pragma once
#include "base/types.h"
#include "kv/kv.h"
#include "meta/group_format.h"

enum { NUMBERS_BLOCK = 1 << 20 };

struct number_range {
    uint64_t next;
    uint64_t usable;   /* below it: reserved and on disk */
    uint64_t reserved; /* below it: reserved in some record */
};

struct numbers {
    struct number_range inos;
    struct number_range generations;
    uint64_t epoch;
    uint64_t inode_count;
    uint64_t directory_count;  /* of these */
    uint64_t reserve_position; /* of the record that raised `reserved`; 0: on disk */
    bool changed;              /* since numbers_stage */
    bool stage_reserve;        /* with the next record */
};

/* From the row, all of which is on disk. */
void numbers_load(struct numbers *numbers, const struct counters_row *row);
/* The index-th number from now on: 0, or -ERR_PENDING until more are on disk. */
MUST_CHECK int numbers_ino(const struct numbers *numbers, uint32_t index, uint64_t *ret_counter);
MUST_CHECK int numbers_generation(const struct numbers *numbers, uint32_t index,
                                  uint32_t *ret_generation);
/* What a file's chunks are named by: from the counter, of which one file never sees 2^32. 0 is no
 * generation. */
static inline uint32_t numbers_generation_of(uint64_t counter) {
    return (uint32_t)(counter % UINT32_MAX) + 1;
}
void numbers_used(struct numbers *numbers, uint32_t ino_count, uint32_t generation_count);
/* Inodes, and directories among them, are so many more. Of a row that had too few none are left:
 * what is written with them can be read again, as they are figures for statfs and the draw. */
void numbers_count(struct numbers *numbers, int64_t inodes, int64_t directories);
/* A caller has seen this epoch of some log: those to come are above it. False: it is more than
 * NUMBERS_EPOCH_AHEAD_NS ahead of our clock, and not taken. */
#define NUMBERS_EPOCH_AHEAD_NS (60 * NS_PER_S)
MUST_CHECK bool numbers_epoch_seen(struct numbers *numbers, uint64_t epoch, uint64_t wall_ns);
/* Above all epochs before, and not behind the clock. */
uint64_t numbers_epoch(struct numbers *numbers, uint64_t wall_ns);

/* What the row takes: each transaction that changes numbers leaves room for it behind. */
enum { NUMBERS_ROWS = 1, NUMBERS_RECORD_BYTES = 200 };
/* Puts the row into the open record, in a transaction of its own, when it changed. Without room,
 * which a transaction before it has left, it stays changed. */
void numbers_stage(struct numbers *numbers, struct kv *kv);
/* The synced position moved: true when numbers became usable. */
bool numbers_synced(struct numbers *numbers, uint64_t synced);
/* Used up: somebody waits for reserve_position. */
bool numbers_are_short(const struct numbers *numbers);
