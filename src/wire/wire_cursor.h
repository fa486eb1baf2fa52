/* A bounded read position over untrusted bytes. A read beyond the end gives zeros and marks the
 * cursor bad; the caller checks once, at its end. */
#pragma once
#include "base/endian.h"

struct wire_cursor {
    const uint8_t *data;
    size_t size;
    bool bad;
};

static inline const uint8_t *wire_take(struct wire_cursor *cursor, size_t count) {
    if (cursor->bad || count > cursor->size) {
        cursor->bad = true;
        return NULL;
    }
    const uint8_t *at = cursor->data;

    cursor->data += count;
    cursor->size -= count;
    return at;
}

static inline uint64_t wire_take_number(struct wire_cursor *cursor, size_t count) {
    uint64_t value = 0;
    const uint8_t *at = wire_take(cursor, count);

    if (at) {
        memcpy(&value, at, count);
    }
    return value;
}

/* The writing side: bytes that do not fit mark the buffer as overrun (size > capacity) and are
 * dropped; the caller checks once. */
static inline void wire_give(struct buffer *out, const void *data, size_t count) {
    if (count == 0) {
        return; /* data may be NULL then */
    }
    if (out->size <= out->capacity && count <= out->capacity - out->size) {
        memcpy(out->data + out->size, data, count);
        out->size += count;
    } else {
        out->size = out->capacity + 1;
    }
}

static inline void wire_give_number(struct buffer *out, uint64_t value, size_t count) {
    wire_give(out, &value, count);
}
