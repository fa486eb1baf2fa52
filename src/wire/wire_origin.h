/* Whose session it is, as begin and renew tell it (`origin`):
 *
 *     name                       any bytes: node, key and name say whose predecessors are meant
 *     name, 0, u64 place         where the directory is that the node has its key from
 *
 * The place is that of folder_place (host/folder.h), little-endian and not 0: two machines, two
 * boots of one, and two copies of a directory have different ones. A version before tells none. */
#pragma once
#include "base/endian.h"
#include "base/types.h"
#include <string.h>

enum { WIRE_ORIGIN_PLACE_BYTES = 1 + 8 };

struct wire_origin {
    struct bytes name;
    uint64_t place; /* 0: not told */
};

static inline struct wire_origin wire_origin_read(struct bytes told) {
    struct wire_origin origin = {.name = told};
    size_t size = told.size - MIN(told.size, (size_t)WIRE_ORIGIN_PLACE_BYTES);

    if (told.size >= WIRE_ORIGIN_PLACE_BYTES && told.data[size] == 0) {
        origin.place = load_le64(told.data + size + 1);
    }
    origin.name.size = origin.place != 0 ? size : told.size;
    return origin;
}

/* Answers the size; ret has room for name and place. */
static inline size_t wire_origin_write(const struct wire_origin *origin, uint8_t *ret) {
    size_t size = origin->name.size;

    if (size > 0) {
        memcpy(ret, origin->name.data, size);
    }
    if (origin->place == 0) {
        return size;
    }
    ret[size] = 0;
    store_le64(ret + size + 1, origin->place);
    return size + WIRE_ORIGIN_PLACE_BYTES;
}
