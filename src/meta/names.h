/* Order of names in a directory: a keyed hash of 51 bits, then a rank that tells names of one hash
 * apart. hash and rank are the index of a D row's key; a cookie of readdir is that plus 3, since 1
 * and 2 are "." and "..". The highest hash is not used, so cookies stay below 2^63.
 *
 * Ranks of one hash are dense enough to be walked without a scan: row r carries DENTRY_MORE when
 * row r + 1 exists, and a removed name leaves a hole as long as it has rows behind it.
 *
 * Pure, any thread. */
#pragma once
#include "base/siphash.h"
#include "base/types.h"

enum { NAME_HASH_BITS = 51, NAME_RANK_BITS = 12, NAME_RANKS_MAX = 1 << NAME_RANK_BITS };
enum { COOKIE_START = 0, COOKIE_SELF = 1, COOKIE_PARENT = 2, COOKIE_OFFSET = 3 };

struct name_hash {
    struct siphash_key key;
    uint8_t bits; /* NAME_HASH_BITS; fewer in tests of collisions */
};

enum name_kind { NAME_PLAIN, NAME_SELF, NAME_PARENT };

/* Index of the name's rank 0. */
uint64_t name_index(const struct name_hash *hash, struct bytes name);

/* 0; -ERR_INVALID for none, NUL or '/'; -ERR_NAME_TOO_LONG. */
MUST_CHECK int name_check(struct bytes name);
enum name_kind name_kind(struct bytes name);

static inline uint64_t cookie_of(uint64_t index) {
    return index + COOKIE_OFFSET;
}
/* First index behind a cookie that cookie_of or COOKIE_ made; -ERR_INVALID for those that nobody
 * can have got. */
MUST_CHECK int cookie_next_index(uint64_t cookie, uint64_t *ret_index);
