/* What FORGET and BATCH_FORGET say: so many look-ups of an inode are nothing to the kernel now. */
#pragma once
#include <stdint.h>

struct abi_forget_in {
    uint64_t lookup_count;
};

/* Followed by count of the next. */
struct abi_forget_batch_in {
    uint32_t count, reserved;
};

struct abi_forget_one {
    uint64_t nodeid, lookup_count;
};
