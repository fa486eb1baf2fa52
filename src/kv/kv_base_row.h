/* How a base keeps a value: the value's bytes, then a CRC-32C of key and value, little-endian. So
 * bytes that rotted and rows that lie under a wrong key are found when they are read. */
#pragma once
#include "base/crc32c.h"
#include "base/err.h"
#include "kv/kv_key.h"

enum { BASE_ROW_CRC_BYTES = 4 };

/* Fills to, which has room for value and CRC. */
static inline void base_row_write(uint8_t *to, const struct kv_key *key, struct bytes value) {
    if (value.size > 0) {
        memcpy(to, value.data, value.size);
    }
    store_le32(to + value.size,
               crc32c(crc32c(0, key->bytes, KV_KEY_BYTES), value.data, value.size));
}

/* Answers -ERR_CORRUPT when the bytes are not what base_row_write made of this key. */
MUST_CHECK static inline int base_row_check(const struct kv_key *key, struct bytes stored,
                                            struct bytes *ret_value) {
    struct bytes value = {stored.data, stored.size - BASE_ROW_CRC_BYTES};

    if (stored.size < BASE_ROW_CRC_BYTES ||
        load_le32(value.data + value.size) !=
            crc32c(crc32c(0, key->bytes, KV_KEY_BYTES), value.data, value.size)) {
        return -ERR_CORRUPT;
    }
    *ret_value = value;
    return 0;
}
