/* Facts of the kernel's FUSE protocol, version 7.31 to 7.45, under our own names: headers, INIT,
 * flags. Bodies of operations are in fuse_abi_body.h, operation numbers in ops.def.
 *
 *     request:  abi_in_header | fixed body | names, each ended by NUL, or data | extensions
 *     reply:    abi_out_header | body or data
 *
 * All numbers are in the machine's byte order. test_fuse_abi compares what <linux/fuse.h> of the
 * building machine knows. */
#pragma once
#include <assert.h>
#include <stdint.h>

enum {
    ABI_MAJOR = 7,
    ABI_MINOR_MIN = 31, /* Linux 5.4 */
    ABI_MINOR_MAX = 45,
    ABI_ERROR_MAX = 511, /* a reply with a greater errno is refused */
    ABI_PAGE_BYTES = 4096,
    ABI_MINOR_PARALLEL_WRITES = 40, /* Linux 6.9: before it they raced with shared mappings */
};

struct abi_in_header {
    uint32_t bytes, opcode;
    uint64_t unique, nodeid;
    uint32_t uid, gid, pid;
    uint16_t extension_words; /* of 8 bytes, at the end */
    uint16_t padding;
};

struct abi_out_header {
    uint32_t bytes;
    int32_t error; /* 0 or -errno; of a notification: its code */
    uint64_t unique;
};

struct abi_interrupt_in {
    uint64_t unique; /* of the request whose program waits */
};

/* Older kernels send 16 bytes, newer ones up to 64. */
struct abi_init_in {
    uint32_t major, minor, readahead_bytes_max, flags;
    uint32_t flags_high; /* when ABI_INIT_EXTENDED */
    uint32_t unused[11];
};

struct abi_init_out {
    uint32_t major, minor, readahead_bytes_max, flags;
    uint16_t background_max, congestion_threshold;
    uint32_t write_bytes_max, time_granularity_ns;
    uint16_t pages_max, map_alignment;
    uint32_t flags_high, stack_depth_max;
    uint16_t request_timeout_s, unused[11];
};

/* The name follows; the next one starts at a multiple of 8. */
struct abi_dirent {
    uint64_t ino, cookie;
    uint32_t name_bytes, type;
};

struct abi_statfs_out {
    uint64_t blocks, blocks_free, blocks_available, files, files_free;
    uint32_t block_bytes, name_bytes_max, fragment_bytes, reserved[7];
};

struct abi_invalidate_inode {
    uint64_t ino;
    int64_t offset, length; /* offset below 0: attributes only */
};

static_assert(sizeof(struct abi_statfs_out) == 80, "the kernel's");
static_assert(sizeof(struct abi_in_header) == 40, "the kernel's");
static_assert(sizeof(struct abi_out_header) == 16, "the kernel's");
static_assert(sizeof(struct abi_init_in) == 64, "the kernel's");
static_assert(sizeof(struct abi_init_out) == 64, "the kernel's");

/* INIT flags; those from bit 32 on travel in flags_high. */
#define ABI_INIT_ASYNC_READ (UINT64_C(1) << 0)
#define ABI_INIT_ATOMIC_TRUNCATE (UINT64_C(1) << 3)
#define ABI_INIT_EXPORT (UINT64_C(1) << 4)
#define ABI_INIT_BIG_WRITES (UINT64_C(1) << 5)
#define ABI_INIT_AUTO_INVALIDATE (UINT64_C(1) << 12)
#define ABI_INIT_READDIRPLUS (UINT64_C(1) << 13)
#define ABI_INIT_READDIRPLUS_AUTO (UINT64_C(1) << 14)
#define ABI_INIT_ASYNC_DIRECT (UINT64_C(1) << 15)
#define ABI_INIT_WRITEBACK_CACHE (UINT64_C(1) << 16)
#define ABI_INIT_PARALLEL_DIRECTORY (UINT64_C(1) << 18)
#define ABI_INIT_MAX_PAGES (UINT64_C(1) << 22)
#define ABI_INIT_KILL_PRIVILEGES (UINT64_C(1) << 28)
#define ABI_INIT_EXTENDED (UINT64_C(1) << 30)
#define ABI_INIT_DIRECT_MMAP (UINT64_C(1) << 36)
#define ABI_INIT_URING (UINT64_C(1) << 41)

enum abi_open_reply_flag {
    ABI_OPEN_DIRECT = 1 << 0,
    ABI_OPEN_KEEP_CACHE = 1 << 1,
    ABI_OPEN_NO_FLUSH = 1 << 5,
    ABI_OPEN_PARALLEL_WRITES = 1 << 6,
};

/* valid of SETATTR */
enum {
    ABI_SET_MODE = 1 << 0,
    ABI_SET_UID = 1 << 1,
    ABI_SET_GID = 1 << 2,
    ABI_SET_SIZE = 1 << 3,
    ABI_SET_ATIME = 1 << 4,
    ABI_SET_MTIME = 1 << 5,
    ABI_SET_HANDLE = 1 << 6,
    ABI_SET_ATIME_NOW = 1 << 7,
    ABI_SET_MTIME_NOW = 1 << 8,
    ABI_SET_KILL_SET_ID = 1 << 11,
};

enum {
    ABI_GETATTR_HANDLE = 1 << 0,
    ABI_WRITE_KILL_SET_ID = 1 << 2,
    ABI_OPEN_KILL_SET_ID = 1 << 0, /* in the request */
    ABI_NOTIFY_INVALIDATE_INODE = 2,
};

/* open(2) and friends, as Linux numbers them for this machine. */
enum {
    LINUX_ACCESS_MODE = 3,
    LINUX_READ_ONLY = 0,
    LINUX_WRITE_ONLY = 1,
    LINUX_EXECUTE = 0x20, /* the kernel's own: opened by execve */
    LINUX_EXCLUSIVE = 0x80,
    LINUX_TRUNCATE = 0x200,
    LINUX_DATA_SYNC = 0x1000,
#if defined(__aarch64__)
    LINUX_DIRECT = 0x10000,
#else
    LINUX_DIRECT = 0x4000,
#endif
};

/* Bits of a mode, and flags of renameat2. */
enum {
    MODE_TYPE = 0170000,
    MODE_REGULAR = 0100000,
    MODE_DIRECTORY = 0040000,
    MODE_SET_UID = 0004000,
    MODE_SET_GID = 0002000,
    MODE_GROUP_EXECUTE = 0000010,
    MODE_PERMISSIONS = 0007777,
    LINUX_RENAME_NO_REPLACE = 1,
    LINUX_RENAME_EXCHANGE = 2,
};
