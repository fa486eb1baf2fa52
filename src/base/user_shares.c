/* The contract is in user_shares.h. */
#include "base/user_shares.h"
#include <assert.h>
#include <stdlib.h>

enum { OF_USER = 2, OF_ROOT = 16 }; /* one in so many */

int user_shares_init(struct user_shares *shares, uint32_t max) {
    *shares = (struct user_shares){.max = max};
    shares->counts = calloc(SHARES_USERS, sizeof *shares->counts);
    return shares->counts ? 0 : -ERR_NO_MEMORY;
}

void user_shares_deinit(struct user_shares *shares) {
    free((void *)shares->counts);
    shares->counts = NULL;
}

uint32_t user_shares_of_user(const struct user_shares *shares) {
    return MAX(shares->max / OF_USER, UINT32_C(1));
}

static uint32_t of_others(const struct user_shares *shares) {
    return shares->max - shares->max / OF_ROOT;
}

static bool count_take(_Atomic uint32_t *count, uint32_t most) {
    if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < most) {
        return true;
    }
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

static void note_refused(struct user_shares *shares, uint32_t uid) {
    atomic_store_explicit(&shares->refused[uid % SHARES_TOLD], (uint64_t)uid + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&shares->last_refused, (uint64_t)uid + 1, memory_order_relaxed);
}

bool user_shares_take(struct user_shares *shares, uint32_t uid) {
    _Atomic uint32_t *count = &shares->counts[uid % SHARES_USERS];

    if (uid == 0) {
        return true;
    }
    if (!count_take(count, user_shares_of_user(shares))) {
        note_refused(shares, uid);
        return false;
    }
    if (count_take(&shares->others, of_others(shares))) {
        return true;
    }
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

bool user_shares_may(struct user_shares *shares, uint32_t uid) {
    if (uid == 0) {
        return true;
    }
    if (atomic_load_explicit(&shares->counts[uid % SHARES_USERS], memory_order_relaxed) >=
        user_shares_of_user(shares)) {
        note_refused(shares, uid);
        return false;
    }
    return atomic_load_explicit(&shares->others, memory_order_relaxed) < of_others(shares);
}

void user_shares_add(struct user_shares *shares, uint32_t uid) {
    if (uid == 0) {
        return;
    }
    atomic_fetch_add_explicit(&shares->counts[uid % SHARES_USERS], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&shares->others, 1, memory_order_relaxed);
}

void user_shares_put(struct user_shares *shares, uint32_t uid) {
    if (uid == 0) {
        return;
    }
    uint32_t before =
        atomic_fetch_sub_explicit(&shares->counts[uid % SHARES_USERS], 1, memory_order_relaxed);
    uint32_t all = atomic_fetch_sub_explicit(&shares->others, 1, memory_order_relaxed);

    assert(before > 0 && all > 0);
}

bool user_shares_to_tell(struct user_shares *shares, uint64_t now_ns, uint32_t *ret_uid) {
    for (uint32_t i = 0; i < SHARES_TOLD; i++) {
        bool too_soon = shares->told_ns[i] > 0 && now_ns - shares->told_ns[i] < SHARES_TOLD_NS;

        if (too_soon || atomic_load_explicit(&shares->refused[i], memory_order_relaxed) == 0) {
            continue;
        }
        *ret_uid = (uint32_t)(atomic_exchange(&shares->refused[i], 0) - 1);
        shares->told_ns[i] = now_ns;
        return true;
    }
    return false;
}
