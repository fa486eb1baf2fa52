/* Rows of the manager; keys are those of kv/kv_key.h, all in space 0 and slot 0.
 *
 *     type          id       generation  index
 *     C counters    0        0           0        session numbers reserved
 *     M map         0        0           piece    bytes of the map, MANAGER_PIECE_BYTES a piece
 *     S session     session  0           0        who, and how far its end has come
 *
 * Values are packed, little-endian and begin with their format. */
#pragma once
#include "base/types.h"
#include <assert.h>

enum {
    MANAGER_FORMAT = 1,
    MANAGER_ROW_COUNTERS = 'C',
    MANAGER_ROW_MAP = 'M',
    MANAGER_ROW_SESSION = 'S',
    MANAGER_PIECE_BYTES = 1792
};

struct __attribute__((packed)) manager_counters_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t sessions_reserved; /* numbers below are used only once this is on disk */
    uint64_t map_bytes;
};
static_assert(sizeof(struct manager_counters_row) == 24, "on disk");

struct __attribute__((packed)) manager_map_row {
    uint8_t format;
    uint8_t reserved[7];
    uint8_t bytes[];
};
static_assert(sizeof(struct manager_map_row) == 8, "on disk");

enum member_state { MEMBER_LIVE = 1, MEMBER_EVICTING = 2 };

/* origin: two keyed hashes, so that a path of any length is told from others. */
struct __attribute__((packed)) manager_session_row {
    uint8_t format;
    uint8_t state; /* enum member_state */
    uint8_t reserved[2];
    uint32_t node;
    uint64_t incarnation;
    uint64_t origin[2];
};
static_assert(sizeof(struct manager_session_row) == 32, "on disk");
