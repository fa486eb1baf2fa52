/* What another group has a group promise, in tests that say no more of it: that a directory is made
 * in the root. */
#pragma once
#include "layout/layout.h"
#include "meta/half.h"

static inline struct half half_of_make(uint64_t number) {
    return (struct half){.format = META_FORMAT,
                         .kind = HALF_MAKE,
                         .mode = 040755,
                         .chunk_bytes = CHUNK_BYTES_DEFAULT,
                         .stripe_count = 1,
                         .to = INO_ROOT.value,
                         .to_index = number << 12};
}
