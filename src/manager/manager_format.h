/* Rows of the manager, all in the owner's space (kv/kv_key.h); little-endian.
 *
 *     C counter     id 0                 u64 next session id
 *                   id 1                 u64 number of the list of the ended
 *     M map         index = piece        bytes of the encoded map, MANAGER_PIECE_BYTES a piece
 *     S session     id = session         struct manager_session_row, origin */
#pragma once
#include "base/types.h"
#include "kv/kv_key.h"

enum {
    MANAGER_ROW_COUNTER = 'C',
    MANAGER_ROW_MAP = 'M',
    MANAGER_ROW_SESSION = 'S',
    MANAGER_PIECE_BYTES = 1800,
    MANAGER_ORIGIN_BYTES_MAX = 1800,
    MANAGER_ROW_FORMAT = 1,
};

enum manager_session_state { MANAGER_SESSION_LIVE = 1, MANAGER_SESSION_EVICTING = 2 };

struct manager_session_row {
    uint8_t format;
    uint8_t state;
    uint8_t reserved[2];
    uint32_t node;
    uint64_t incarnation;
};
_Static_assert(sizeof(struct manager_session_row) == 16, "no padding");

static inline struct kv_key manager_key(uint8_t type, uint64_t id, uint64_t index) {
    return kv_key_make(
        (struct kv_key_fields){.space = KV_SPACE_OWNER, .type = type, .id = id, .index = index});
}
