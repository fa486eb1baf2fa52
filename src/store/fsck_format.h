/* Rows in the answers of fsck_list; whose rows they are, their keys say (store_format.h). */
#pragma once
#include "kv/kv_key.h"

/* In the answer of fsck_list, before each value; row_bytes is a multiple of 8. */
struct store_fsck_row {
    uint32_t row_bytes;   /* of this, the value and the padding */
    uint32_t value_bytes; /* FSCK_ROW_IS_BAD: no value follows */
    uint8_t key[KV_KEY_BYTES];
};
_Static_assert(sizeof(struct store_fsck_row) == 32, "sent");
