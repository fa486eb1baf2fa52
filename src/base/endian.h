/* Unaligned loads and stores: little-endian for wire and disk, big-endian for sorted keys. */
#pragma once
#include "base/types.h"
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Shoal is built for little-endian machines"
#endif

#define ENDIAN_LITTLE(bits)                                                                        \
    static inline uint##bits##_t load_le##bits(const void *from) {                                 \
        uint##bits##_t value;                                                                      \
        memcpy(&value, from, sizeof value);                                                        \
        return value;                                                                              \
    }                                                                                              \
    static inline void store_le##bits(void *to, uint##bits##_t value) {                            \
        memcpy(to, &value, sizeof value);                                                          \
    }
#define ENDIAN_BIG(bits)                                                                           \
    static inline uint##bits##_t load_be##bits(const void *from) {                                 \
        return __builtin_bswap##bits(load_le##bits(from));                                         \
    }                                                                                              \
    static inline void store_be##bits(void *to, uint##bits##_t value) {                            \
        store_le##bits(to, __builtin_bswap##bits(value));                                          \
    }

ENDIAN_LITTLE(16)
ENDIAN_LITTLE(32)
ENDIAN_LITTLE(64)
ENDIAN_BIG(16)
ENDIAN_BIG(32)
ENDIAN_BIG(64)
#undef ENDIAN_LITTLE
#undef ENDIAN_BIG
