/* Checks of what came from disk. */
#include "meta/rows.h"
#include "base/err.h"
#include "layout/cluster_map.h"
#include "meta/numbers.h"
#include <string.h>

/* Size and format of a row of fixed size. */
static int format_check(struct bytes value, size_t size_min, size_t size_max) {
    if (value.size < 1) {
        return -ERR_CORRUPT;
    }
    if (value.data[0] > META_FORMAT) {
        return -ERR_NEWER_FORMAT;
    }
    bool fits = value.size >= size_min && value.size <= size_max;
    return fits && value.data[0] == META_FORMAT ? 0 : -ERR_CORRUPT;
}

static bool is_zero(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* A type that an inode can have. */
static bool type_is_valid(uint32_t type) {
    return type == 1 || type == 2 || type == 4 || type == 6 || type == 8 || type == 10 ||
           type == 12;
}

int partition_row_check(struct bytes value, const struct partition_row **ret_row) {
    int r = format_check(value, sizeof(struct partition_row), sizeof(struct partition_row));
    if (r < 0) {
        return r;
    }
    const struct partition_row *row = (const void *)value.data;
    bool state_ok = row->state >= PARTITION_LIVE && row->state <= PARTITION_DYING;
    if (!state_ok || row->depth > 2 || row->reserved || row->reserved2 || row->reserved3 ||
        !mode_is_directory(row->mode)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int dentry_row_check(struct bytes value, const struct dentry_row **ret_row) {
    size_t head = sizeof(struct dentry_row);
    int r = format_check(value, head, head + NAME_BYTES_MAX);
    if (r < 0) {
        return r;
    }
    const struct dentry_row *row = (const void *)value.data;
    bool hole = row->flags & DENTRY_HOLE;
    bool filled = type_is_valid(row->type) && row->name_bytes > 0 && row->ino != 0;
    if (value.size != head + row->name_bytes || row->reserved ||
        (row->flags & ~(DENTRY_MORE | DENTRY_HOLE)) || hole == filled) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int inode_row_check(struct bytes value, const struct inode_row **ret_row) {
    int r = format_check(value, sizeof(struct inode_row), sizeof(struct inode_row));
    if (r < 0) {
        return r;
    }
    const struct inode_row *row = (const void *)value.data;
    struct layout layout = inode_layout(row);
    bool chunked = row->data_state == DATA_CHUNKED;
    bool chunked_ok =
        chunked ? mode_is_regular(row->mode) && layout_is_valid(&layout)
                : row->blocks_high == 0 && !(row->flags & (INODE_COUNTED | INODE_UNTOUCHED));
    if (row->data_state > DATA_CHUNKED || !chunked_ok || !type_is_valid(row->mode >> 12) ||
        (row->flags & ~INODE_FLAGS_KNOWN) || row->size > FILE_BYTES_MAX ||
        row->partition_depth > 2) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int inline_row_check(struct bytes value, struct bytes *ret_data) {
    size_t head = sizeof(struct inline_row);
    int r = format_check(value, head, head + INLINE_PIECE_BYTES);
    if (r < 0) {
        return r;
    }
    const struct inline_row *row = (const void *)value.data;
    if (!is_zero(row->reserved, sizeof row->reserved)) {
        return -ERR_CORRUPT;
    }
    *ret_data = (struct bytes){row->data, value.size - head};
    return 0;
}

int group_row_check(struct bytes value, const struct group_row **ret_row) {
    int r = format_check(value, sizeof(struct group_row), sizeof(struct group_row));
    if (r < 0) {
        return r;
    }
    const struct group_row *row = (const void *)value.data;
    if (row->hash_bits > 51 || !is_zero(row->reserved, sizeof row->reserved)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int counters_row_check(struct bytes value, const struct counters_row **ret_row) {
    int r = format_check(value, sizeof(struct counters_row), sizeof(struct counters_row));
    if (r < 0) {
        return r;
    }
    const struct counters_row *row = (const void *)value.data;
    if (row->ino_reserved >> INO_COUNTER_BITS || row->reserved ||
        row->generation_next > row->generation_reserved ||
        row->directory_count > row->inode_count) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int slots_row_check(struct bytes value, const struct slots_row **ret_row) {
    int r = format_check(value, sizeof(struct slots_row), sizeof(struct slots_row));
    if (r < 0) {
        return r;
    }
    const struct slots_row *row = (const void *)value.data;
    bool mine = row->state == SLOTS_MINE;
    if ((!mine && row->state != SLOTS_GIVEN) || mine != (row->given_to == 0) || row->count == 0 ||
        row->count > SLOT_COUNT || row->opened > (mine ? row->count : 0) || row->reserved2 ||
        !is_zero(row->reserved, sizeof row->reserved)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int session_row_check(struct bytes value, const struct session_row **ret_row) {
    int r = format_check(value, sizeof(struct session_row), sizeof(struct session_row));
    if (r < 0) {
        return r;
    }
    const struct session_row *row = (const void *)value.data;
    if (row->state < SESSION_LIVE || row->state > SESSION_EVICTING) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int fence_row_check(struct bytes value, const struct fence_row **ret_row) {
    int r = format_check(value, sizeof(struct fence_row), sizeof(struct fence_row));
    if (r < 0) {
        return r;
    }
    const struct fence_row *row = (const void *)value.data;
    if (row->state < FENCE_KNOWN || row->state > FENCE_SET || row->reserved != 0) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int over_row_check(struct bytes value, const struct over_row **ret_row) {
    int r = format_check(value, sizeof(struct over_row), sizeof(struct over_row));
    if (r < 0) {
        return r;
    }
    const struct over_row *row = (const void *)value.data;
    if (row->reserved != 0 || row->reserved2 != 0) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int mark_row_check(struct bytes value, const struct mark_row **ret_row) {
    int r = format_check(value, sizeof(struct mark_row), sizeof(struct mark_row));
    if (r < 0) {
        return r;
    }
    const struct mark_row *row = (const void *)value.data;
    if (!is_zero(row->reserved, sizeof row->reserved)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int lost_row_check(struct bytes value, const struct lost_row **ret_row) {
    int r = format_check(value, sizeof(struct lost_row), sizeof(struct lost_row));
    if (r < 0) {
        return r;
    }
    const struct lost_row *row = (const void *)value.data;
    if (row->counter_from > row->counter_to || row->generation_from > row->generation_to ||
        !is_zero(row->reserved, sizeof row->reserved)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

bool lost_row_has(const struct lost_row *row, struct ino ino, uint32_t generation) {
    uint64_t counter = ino.value & ((UINT64_C(1) << INO_COUNTER_BITS) - 1);
    uint64_t first = numbers_generation_of(row->generation_from);
    /* How far it is behind the first of them: generations begin anew after UINT32_MAX. */
    uint64_t distance = (generation + (uint64_t)UINT32_MAX - first) % UINT32_MAX;

    return (counter >= row->counter_from && counter < row->counter_to) ||
           (generation != 0 && distance < row->generation_to - row->generation_from);
}

int order_row_check(struct bytes value, const struct order_row **ret_row) {
    int r = format_check(value, sizeof(struct order_row), sizeof(struct order_row));
    if (r < 0) {
        return r;
    }
    const struct order_row *row = (const void *)value.data;
    struct layout layout = order_layout(row);
    if (row->kind < ORDER_DELETE || row->kind > ORDER_CUT || !layout_is_valid(&layout)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int transaction_row_check(struct bytes value, const struct transaction_row **ret_row,
                          struct bytes *ret_halves) {
    size_t head = sizeof(struct transaction_row);
    int r = format_check(value, head, SIZE_MAX);
    if (r < 0) {
        return r;
    }
    const struct transaction_row *row = (const void *)value.data;
    size_t logs = row->log_count * sizeof(uint64_t);
    bool committed = row->state == TRANSACTION_COMMITTED;
    if ((!committed && row->state != TRANSACTION_PREPARED) || !is_zero(row->reserved, 3) ||
        row->log_count > PARTICIPANTS_MAX || value.size != head + logs + row->halves_bytes ||
        committed != (row->halves_bytes == 0)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    *ret_halves = (struct bytes){value.data + head + logs, row->halves_bytes};
    return 0;
}

int decision_row_check(struct bytes value, const struct decision_row **ret_row) {
    size_t size = sizeof(struct decision_row);
    int r = format_check(value, size, size);
    if (r < 0) {
        return r;
    }
    const struct decision_row *row = (const void *)value.data;
    if (row->log_count == 0 || row->log_count > PARTICIPANTS_MAX || !is_zero(row->reserved, 6)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int count_row_check(struct bytes value, const struct count_row **ret_row) {
    size_t size = sizeof(struct count_row);
    int r = format_check(value, size, size);
    if (r < 0) {
        return r;
    }
    const struct count_row *row = (const void *)value.data;
    if (!is_zero(row->reserved, 7)) {
        return -ERR_CORRUPT;
    }
    *ret_row = row;
    return 0;
}

int outcome_check(struct bytes value, const struct outcome_head **ret_head,
                  struct bytes *ret_reply) {
    size_t head_bytes = sizeof(struct outcome_head);
    int r = format_check(value, head_bytes, SIZE_MAX);
    if (r < 0) {
        return r;
    }
    const struct outcome_head *head = (const void *)value.data;
    if (head->reserved || head->reserved2 || (head->flags & ~OUTCOME_AFTER_SYNC)) {
        return -ERR_CORRUPT;
    }
    *ret_head = head;
    *ret_reply = (struct bytes){value.data + head_bytes, value.size - head_bytes};
    return 0;
}

uint64_t inode_blocks(const struct inode_row *row) {
    return row->data_state == DATA_CHUNKED ? (uint64_t)row->blocks_high << 32 | row->blocks_low : 0;
}

struct layout inode_layout(const struct inode_row *row) {
    return (struct layout){.pool_version = row->pool_version,
                           .chunk_bytes = row->chunk_bytes,
                           .seed = row->seed,
                           .stripe_count = row->stripe_count,
                           .redundancy = row->redundancy};
}

void inode_layout_set(struct inode_row *row, const struct layout *layout) {
    row->pool_version = layout->pool_version;
    row->chunk_bytes = layout->chunk_bytes;
    row->seed = layout->seed;
    row->stripe_count = layout->stripe_count;
    row->redundancy = layout->redundancy;
}

struct layout order_layout(const struct order_row *row) {
    return (struct layout){.pool_version = row->pool_version,
                           .chunk_bytes = row->chunk_bytes,
                           .seed = row->seed,
                           .stripe_count = row->stripe_count};
}
