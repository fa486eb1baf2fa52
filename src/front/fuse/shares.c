/* The contract is in shares.h. */
#include "front/fuse/shares.h"
#include <assert.h>
#include <stdlib.h>

enum { OF_USER = 2, OF_ROOT = 16 }; /* one in so many */

int shares_init(struct shares *shares, uint32_t handles_max) {
    shares->handles_max = handles_max;
    shares->counts = calloc(SHARES_USERS, sizeof *shares->counts);
    return shares->counts ? 0 : -ERR_NO_MEMORY;
}

void shares_deinit(struct shares *shares) {
    free((void *)shares->counts);
    shares->counts = NULL;
}

uint32_t shares_of_user(const struct shares *shares) {
    return MAX(shares->handles_max / OF_USER, UINT32_C(1));
}

static uint32_t of_others(const struct shares *shares) {
    return shares->handles_max - shares->handles_max / OF_ROOT;
}

static bool count_take(_Atomic uint32_t *count, uint32_t most) {
    if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < most)
        return true;
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

bool shares_take(struct shares *shares, uint32_t uid) {
    _Atomic uint32_t *count = &shares->counts[uid % SHARES_USERS];

    if (uid == 0)
        return true;
    if (!count_take(count, shares_of_user(shares))) {
        atomic_store_explicit(&shares->refused[uid % SHARES_TOLD], (uint64_t)uid + 1,
                              memory_order_relaxed);
        atomic_store_explicit(&shares->last_refused, (uint64_t)uid + 1, memory_order_relaxed);
        return false;
    }
    if (count_take(&shares->others, of_others(shares)))
        return true;
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

void shares_put(struct shares *shares, uint32_t uid) {
    if (uid == 0)
        return;
    uint32_t before =
        atomic_fetch_sub_explicit(&shares->counts[uid % SHARES_USERS], 1, memory_order_relaxed);
    uint32_t all = atomic_fetch_sub_explicit(&shares->others, 1, memory_order_relaxed);

    assert(before > 0 && all > 0);
}

bool shares_to_tell(struct shares *shares, uint64_t now_ns, uint32_t *ret_uid) {
    for (uint32_t i = 0; i < SHARES_TOLD; i++) {
        bool too_soon = shares->told_ns[i] > 0 && now_ns - shares->told_ns[i] < SHARES_TOLD_NS;

        if (too_soon || atomic_load_explicit(&shares->refused[i], memory_order_relaxed) == 0)
            continue;
        *ret_uid = (uint32_t)(atomic_exchange(&shares->refused[i], 0) - 1);
        shares->told_ns[i] = now_ns;
        return true;
    }
    return false;
}
