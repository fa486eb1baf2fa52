/* Rows of the manager, all in the owner's space (kv/kv_key.h); little-endian.
 *
 *     C counter     id 0                 u64 next session id
 *                   id 1                 u64 number of the list of the ended
 *     H hand-over   id 0                 struct manager_handover_row, of the last one
 *                   id the giver's log   likewise, of one that was set aside
 *     L life        id = log               struct manager_life_row: the last one that registered
 *     M map         index = piece        bytes of the encoded map, MANAGER_PIECE_BYTES a piece
 *     S session     id = session         struct manager_session_row, origin: it lives */
#pragma once
#include "base/types.h"
#include "kv/kv_key.h"

enum {
    MANAGER_ROW_COUNTER = 'C',
    MANAGER_ROW_HANDOVER = 'H',
    MANAGER_ROW_LIFE = 'L',
    MANAGER_ROW_MAP = 'M',
    MANAGER_ROW_SESSION = 'S',
    MANAGER_PIECE_BYTES = 1800,
    MANAGER_ORIGIN_BYTES_MAX = 1800,
    MANAGER_ROW_FORMAT = 2,
    MANAGER_COUNTER_SESSION = 0,
    MANAGER_COUNTER_ENDED = 1,
};

struct manager_session_row {
    uint8_t format;
    uint8_t is_nameless; /* of a manager that was rebuilt: its origin is not known, and none here */
    uint8_t reserved[2];
    uint32_t node;
    uint64_t incarnation;
    /* Of the mount's key that it was begun by, or told its origin by; 0: a member's. */
    uint64_t serial;
};
_Static_assert(sizeof(struct manager_session_row) == 24, "no padding");

/* On disk before the giver is asked, which is asked again after a start, unless the map has it. */
struct manager_handover_row {
    uint8_t format;
    uint8_t recorded; /* with the map that has it */
    uint8_t reserved[2];
    uint32_t number; /* 0: there was none */
    uint64_t from;   /* log; 0: there was none */
    uint64_t to;     /* likewise */
    uint32_t count;  /* of slots, at most */
    uint32_t reserved2;
};
_Static_assert(sizeof(struct manager_handover_row) == 32, "no padding");

/* On disk before the life is told that it is registered. */
struct manager_life_row {
    uint8_t format;
    uint8_t reserved[3];
    uint32_t node;
    uint64_t term;
    uint64_t life_high;
    uint64_t life_low;
    uint64_t place; /* of the directory that it runs on; 0: unknown */
};
_Static_assert(sizeof(struct manager_life_row) == 40, "no padding");

static inline struct kv_key manager_key(uint8_t type, uint64_t id, uint64_t index) {
    return kv_key_make(
        (struct kv_key_fields){.space = KV_SPACE_OWNER, .type = type, .id = id, .index = index});
}
