/* How many of a mount's handles a user may have open: half of them, and all others but root
 * together 15 of 16, so that whatever one user does others still open files, and root always does.
 *
 * Users are told apart by their number's lowest bits: two that are equal in these share.
 *
 * Thread: any, without locks; shares_to_tell one at a time. Memory: fixed, at start. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <stdatomic.h>

enum { SHARES_USERS = 1 << 14, SHARES_TOLD = 64 };
#define SHARES_TOLD_NS (60 * NS_PER_S) /* a user, at most once in so long */

struct shares {
    uint32_t handles_max;
    _Atomic uint32_t others;  /* open by all but root */
    _Atomic uint32_t *counts; /* of these, by user */
    /* Who was refused since it was told of, user + 1, by his lowest bits; and when that was. */
    _Atomic uint64_t refused[SHARES_TOLD];
    uint64_t told_ns[SHARES_TOLD];
    _Atomic uint64_t last_refused; /* user + 1; 0: nobody yet */
};

MUST_CHECK int shares_init(struct shares *shares, uint32_t handles_max);
void shares_deinit(struct shares *shares);
uint32_t shares_of_user(const struct shares *shares);

/* One handle more; false: he has his share. */
bool shares_take(struct shares *shares, uint32_t uid);
void shares_put(struct shares *shares, uint32_t uid);
/* Whether there is somebody to tell of now, and who. */
bool shares_to_tell(struct shares *shares, uint64_t now_ns, uint32_t *ret_uid);
