/* How many of something a user may have at a time: half of all, and all users but root together 15
 * of 16, so that whatever one user does others still get some, and root always does.
 *
 * Users are told apart by their number's lowest bits: two that are equal in these share.
 *
 * Thread: any, without locks; user_shares_to_tell one at a time. Memory: fixed, at start. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <stdatomic.h>

enum { SHARES_USERS = 1 << 14, SHARES_TOLD = 64 };
#define SHARES_TOLD_NS (60 * NS_PER_S) /* a user, at most once in so long */

struct user_shares {
    uint32_t max;
    _Atomic uint32_t others;  /* had by all but root */
    _Atomic uint32_t *counts; /* of these, by user */
    /* Who was refused since it was told of, user + 1, by his lowest bits; and when that was. */
    _Atomic uint64_t refused[SHARES_TOLD];
    uint64_t told_ns[SHARES_TOLD];
    _Atomic uint64_t last_refused; /* user + 1; 0: nobody yet */
};

/* max: of all users together. -ERR_NO_MEMORY. */
MUST_CHECK int user_shares_init(struct user_shares *shares, uint32_t max);
void user_shares_deinit(struct user_shares *shares);
uint32_t user_shares_of_user(const struct user_shares *shares);

/* One more; false: he has his share. */
bool user_shares_take(struct user_shares *shares, uint32_t uid);
/* Whether that would give one: where nobody else takes any meanwhile. */
bool user_shares_may(struct user_shares *shares, uint32_t uid);
/* One more, whatever he has. */
void user_shares_add(struct user_shares *shares, uint32_t uid);
void user_shares_put(struct user_shares *shares, uint32_t uid);
/* Whether there is somebody to tell of now, and who. */
bool user_shares_to_tell(struct user_shares *shares, uint64_t now_ns, uint32_t *ret_uid);
