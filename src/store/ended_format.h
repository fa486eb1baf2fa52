/* The list of the ended sessions in an OST's rows, of type E: id 0 is its head, id 1 + n bits of
 * the sessions from n * STORE_ENDED_BITS on, 1 = ended; a row may be shorter, the rest is 0. */
#pragma once
#include "base/types.h"

enum { STORE_ENDED_BITS = 4096 };

/* How far it has the list of the ended sessions; rows of bits before first_row are gone. */
struct __attribute__((packed)) store_ended {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t number, lowest, first_row;
};
_Static_assert(sizeof(struct store_ended) == 32, "stored");
