/* Rows as a version to come sends them: each goes on with bytes that are not known here. And
 * lengths of rows that no version sends. */
#pragma once
#include "unit.h"
#include "wire/wire_rows.h"

enum { ROW_MORE = 8 };

static inline struct bytes rows_longer(struct bytes rows, size_t row_bytes, uint8_t *ret_space) {
    size_t longer = row_bytes + ROW_MORE;
    size_t count = rows.size / row_bytes;

    memset(ret_space, 0xee, count * longer);
    for (size_t i = 0; i < count; i++) {
        memcpy(ret_space + i * longer, rows.data + i * row_bytes, row_bytes);
    }
    return (struct bytes){ret_space, count * longer};
}

/* Of one row or several of row_bytes; 0: there is no other one. */
static inline uint16_t rows_wrong(uint32_t index, size_t row_bytes) {
    const size_t wrong[] = {1, row_bytes / 2, row_bytes - 1, row_bytes + 1, 999, UINT16_MAX};

    return index < ARRAY_SIZE(wrong) ? (uint16_t)wrong[index] : 0;
}
