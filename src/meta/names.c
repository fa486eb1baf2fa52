/* Hashes and cookies of names. */
#include "meta/names.h"
#include "base/err.h"
#include <string.h>

uint64_t name_index(const struct name_hash *hash, struct bytes name) {
    uint64_t value = siphash(&hash->key, name.data, name.size) >> (64 - NAME_HASH_BITS);
    uint64_t highest = (UINT64_C(1) << NAME_HASH_BITS) - 1;

    value &= highest << (NAME_HASH_BITS - hash->bits);
    return MIN(value, highest - 1) << NAME_RANK_BITS;
}

int name_check(struct bytes name) {
    if (name.size == 0) {
        return -ERR_INVALID;
    }
    if (name.size > NAME_BYTES_MAX) {
        return -ERR_NAME_TOO_LONG;
    }
    if (memchr(name.data, '\0', name.size) || memchr(name.data, '/', name.size)) {
        return -ERR_INVALID;
    }
    return 0;
}

enum name_kind name_kind(struct bytes name) {
    if (name.size > 2 || name.data[0] != '.') {
        return NAME_PLAIN;
    }
    if (name.size == 1) {
        return NAME_SELF;
    }
    return name.data[1] == '.' ? NAME_PARENT : NAME_PLAIN;
}

int cookie_next_index(uint64_t cookie, uint64_t *ret_index) {
    if (cookie >> 63) {
        return -ERR_INVALID;
    }
    *ret_index = cookie < COOKIE_OFFSET ? 0 : cookie - COOKIE_OFFSET + 1;
    return 0;
}
