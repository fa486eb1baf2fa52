/* Values of the rows in space 0, the group's own; the keys are in meta_format.h. And what stands in
 * front of the replies that a group has the engine keep as outcomes. */
#pragma once
#include "meta/meta_format.h"

struct __attribute__((packed)) group_row {
    uint8_t format;
    uint8_t hash_bits; /* of names; 51 but in tests */
    uint8_t reserved[6];
    uint8_t cluster_id[16];
    uint64_t hash_key[2];
    uint32_t group;
    uint32_t target;
};
static_assert(sizeof(struct group_row) == 48, "group_row is on disk");

/* Goes with each record. */
struct __attribute__((packed)) counters_row {
    uint8_t format;
    uint8_t reserved;
    uint8_t ino_next[6];          /* the first counter that was not used yet */
    uint64_t ino_reserved;        /* counters below are used only once this is on disk */
    uint64_t generation_reserved; /* of chunks; likewise */
    uint64_t epoch;
    uint64_t inode_count;
    uint64_t generation_next; /* the first that was not used yet */
    uint64_t directory_count; /* of the inodes */
};
static_assert(sizeof(struct counters_row) == 56, "counters_row is on disk");

/* A range of slots, from the key's id on; see slots.h. */
enum slots_state { SLOTS_MINE = 1, SLOTS_GIVEN = 2 };

struct __attribute__((packed)) slots_row {
    uint8_t format;
    uint8_t state; /* enum slots_state */
    uint8_t reserved[2];
    uint32_t count;
    uint32_t opened; /* the first ones of the range, for ever; 0: given */
    uint32_t reserved2;
    uint64_t handover; /* number of the hand-over that made it so; 0: the format */
    uint64_t given_to; /* log; 0: mine */
};
static_assert(sizeof(struct slots_row) == 32, "slots_row is on disk");

/* EVICTING: the list of the ended names it, and something that it had open is not closed yet. */
enum session_state { SESSION_LIVE = 1, SESSION_EVICTING = 2 };

struct __attribute__((packed)) session_row {
    uint8_t format;
    uint8_t state;   /* enum session_state */
    uint16_t window; /* that it was granted (kv/windows.h) */
    uint32_t node;
    uint64_t epoch;
    uint64_t incarnation;
};
static_assert(sizeof(struct session_row) == 24, "session_row is on disk");

/* KNOWN: of a session that has attached since that loss: all that it had open is known. SET: of one
 * that has ended, and did not; storage targets have to refuse it. See fences.h. */
enum fence_state { FENCE_KNOWN = 1, FENCE_SET = 2 };

struct __attribute__((packed)) fence_row {
    uint8_t format;
    uint8_t state;   /* enum fence_state */
    uint16_t losses; /* kv_losses then */
    uint32_t reserved;
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t number; /* of the list of the ended, by which it is named; 0: not told, or KNOWN */
};
static_assert(sizeof(struct fence_row) == 32, "fence_row is on disk");

/* Before the first loss there is none, nor after a life of a version that knew of none. */
struct __attribute__((packed)) over_row {
    uint8_t format;
    uint8_t reserved;
    uint16_t losses; /* kv_losses when nobody of before the last one was awaited or fenced */
    uint32_t reserved2;
    uint64_t epoch;
    uint64_t everywhere; /* number of the list of the ended that all OSTs have, as was told */
};
static_assert(sizeof(struct over_row) == 24, "over_row is on disk");

/* Value of O and W: the key says it all. */
struct __attribute__((packed)) mark_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t epoch;
};
static_assert(sizeof(struct mark_row) == 16, "mark_row is on disk");

/* The first start after a loss writes it: inodes with these counters may have been made and lost,
 * and chunks of these generations may be there though nothing of them is known here. None of them
 * is ever used again. One row a loss, of which the engine counts 65,535. */
struct __attribute__((packed)) lost_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t epoch;
    uint64_t counter_from;
    uint64_t counter_to;      /* exclusive */
    uint64_t generation_from; /* counters, of which numbers_generation_of makes generations */
    uint64_t generation_to;   /* exclusive */
};
static_assert(sizeof(struct lost_row) == 48, "lost_row is on disk");

/* The value of Q, and of M: what becomes a Q row when the move fails. The third part of a Q row's
 * key: truncate_seq of a cut, which stays below ORDER_DELETE_BIT, or the generation that is deleted
 * with that bit (~0 where it was written before). */
enum order_kind { ORDER_DELETE = 1, ORDER_CUT = 2 };
#define ORDER_DELETE_BIT (UINT32_C(1) << 31)

struct __attribute__((packed)) order_row {
    uint8_t format;
    uint8_t kind; /* enum order_kind */
    uint16_t stripe_count;
    uint32_t chunk_generation;
    uint64_t epoch;
    uint64_t truncate_size;
    uint32_t truncate_seq;
    uint32_t pool_version;
    uint32_t chunk_bytes;
    uint32_t seed;
};
static_assert(sizeof(struct order_row) == 40, "order_row is on disk");

/* What stands in front of the encoded reply in a stored outcome. */
enum outcome_flag { OUTCOME_AFTER_SYNC = 1 };
enum { OUTCOME_CLOSES = 0x10000 }; /* in open_flags: the open was taken */

struct __attribute__((packed)) outcome_head {
    uint8_t format;
    uint8_t flags; /* enum outcome_flag */
    uint16_t opcode;
    uint32_t reserved;
    uint64_t term;
    uint64_t ino; /* whose open the operation gave or took */
    uint32_t open_flags;
    uint32_t reserved2;
};
static_assert(sizeof(struct outcome_head) == 32, "outcome_head is on disk");
