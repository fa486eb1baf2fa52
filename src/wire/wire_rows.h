/* Rows of one kind, one behind the other, as bulk or in a field of bytes. The message says how long
 * one of them is, so that a row may grow at its end, as a body may: what a newer version has added
 * is skipped, what an older one lacks is zero. */
#pragma once
#include "base/err.h"
#include <assert.h>
#include <string.h>

/* Of versions that do not say it. None is shorter; one of a later version is twice as long at the
 * most, as there is space for no more where they come to. */
enum {
    WIRE_LIFE_BYTES_MIN = 32,
    WIRE_START_BYTES_MIN = 16,
    WIRE_SPACE_BYTES_MIN = 24,
    WIRE_SLOTS_BYTES_MIN = 16,
    WIRE_LOAD_BYTES_MIN = 16,
    WIRE_FENCE_BYTES_MIN = 16,
    WIRE_ROW_GROWTH = 2
};

struct wire_rows {
    struct bytes bytes;
    uint32_t row_bytes; /* as the message says; 0: row_bytes_min */
    uint32_t row_bytes_min;
    uint32_t count_max;
};

static inline uint32_t wire_rows_each(const struct wire_rows *rows) {
    return rows->row_bytes > 0 ? rows->row_bytes : rows->row_bytes_min;
}

/* Of those that are checked, as of the next. */
static inline uint32_t wire_rows_count(const struct wire_rows *rows) {
    return (uint32_t)(rows->bytes.size / wire_rows_each(rows));
}

/* -ERR_MALFORMED: too short, not whole, or too many. */
MUST_CHECK static inline int wire_rows_check(const struct wire_rows *rows) {
    bool is_good = wire_rows_each(rows) >= rows->row_bytes_min &&
                   rows->bytes.size % wire_rows_each(rows) == 0 &&
                   wire_rows_count(rows) <= rows->count_max;

    return is_good ? 0 : -ERR_MALFORMED;
}

static inline void wire_rows_get(const struct wire_rows *rows, uint32_t index, void *ret_row,
                                 size_t ret_row_bytes) {
    size_t known = MIN((size_t)wire_rows_each(rows), ret_row_bytes);

    assert(index < wire_rows_count(rows));
    memset(ret_row, 0, ret_row_bytes);
    memcpy(ret_row, rows->bytes.data + (size_t)index * wire_rows_each(rows), known);
}
