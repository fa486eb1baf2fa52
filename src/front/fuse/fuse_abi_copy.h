/* Facts of the kernel's FUSE protocol: COPY_FILE_RANGE, which is answered as WRITE is, and
 * COPY_FILE_RANGE_64 (7.45, Linux 6.18). */
#pragma once
#include <assert.h>
#include <stdint.h>

struct abi_copy_in {
    uint64_t handle, offset, nodeid_to, handle_to, offset_to, length, flags;
};

struct abi_copy_64_out {
    uint64_t bytes;
};

static_assert(sizeof(struct abi_copy_in) == 56, "the kernel's");
