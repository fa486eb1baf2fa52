/* The label of a data file. */
#pragma once
#include "base/types.h"

#define STORE_LABEL_MAGIC "SHOALDAT"

/* Block 0 of the data file, zeros behind it. Written once the state row is on disk; then the row
 * says so: neither index nor data file without the other is taken for a new target. */
struct __attribute__((packed)) store_label {
    uint8_t magic[8];
    uint32_t format;
    uint32_t target;
    uint64_t label;
    uint32_t reserved;
    uint32_t crc; /* of all before it */
};
_Static_assert(sizeof(struct store_label) == 32, "stored");
