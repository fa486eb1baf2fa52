/* Values of the rows of transactions across logs; their keys are in meta_format.h. */
#pragma once
#include "meta/meta_format.h"

/* A transaction across logs (docs/internals/halves.md). One row a participant: what it has
 * promised, with the halves behind it, or that it has done it. */
enum transaction_state { TRANSACTION_PREPARED = 1, TRANSACTION_COMMITTED = 2 };

struct __attribute__((packed)) transaction_row {
    uint8_t format;
    uint8_t state; /* enum transaction_state */
    uint16_t halves_bytes;
    uint8_t log_count; /* participants, all of them; 8 bytes each stand before the halves */
    uint8_t reserved[3];
    uint64_t epoch;
    uint8_t data[];
};
static_assert(sizeof(struct transaction_row) == 16, "transaction_row is on disk");

enum { PARTICIPANTS_MAX = 5 };

/* The coordinator's: it is decided. */
struct __attribute__((packed)) decision_row {
    uint8_t format;
    uint8_t log_count;
    uint8_t reserved[6];
    uint64_t epoch;
    int64_t decided_ns;
    uint64_t logs[PARTICIPANTS_MAX];
};
static_assert(sizeof(struct decision_row) == 64, "decision_row is on disk");

/* In the log that has slot 0. */
struct __attribute__((packed)) count_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t epoch;
    uint64_t moves;
};
static_assert(sizeof(struct count_row) == 24, "count_row is on disk");
