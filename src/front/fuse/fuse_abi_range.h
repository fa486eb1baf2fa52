/* Bodies of requests about ranges of a file. */
#pragma once
#include <stdint.h>

struct abi_fallocate_in {
    uint64_t handle, offset, length;
    uint32_t mode, reserved;
};

enum { ABI_ALLOCATE_KEEP_SIZE = 1, ABI_ALLOCATE_PUNCH_HOLE = 2, ABI_ALLOCATE_ZERO_RANGE = 16 };

struct abi_lseek_in {
    uint64_t handle, offset;
    uint32_t whence, reserved;
};

struct abi_lseek_out {
    uint64_t offset;
};

enum { ABI_SEEK_DATA = 3, ABI_SEEK_HOLE = 4 };
