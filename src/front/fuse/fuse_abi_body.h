/* Facts of the kernel's FUSE protocol: bodies of requests (abi_x_in) and replies (abi_x_out).
 * Padding and words that we neither read nor set are named reserved. */
#pragma once
#include "front/fuse/fuse_abi.h"
#include "front/fuse/fuse_abi_range.h"

struct abi_attributes {
    uint64_t ino, size, blocks, atime, mtime, ctime;
    uint32_t atime_ns, mtime_ns, ctime_ns;
    uint32_t mode, nlink, uid, gid, rdev, block_bytes, flags;
};

struct abi_entry_out {
    uint64_t nodeid, generation, entry_valid, attributes_valid;
    uint32_t entry_valid_ns, attributes_valid_ns;
    struct abi_attributes attributes;
};

struct abi_attributes_out {
    uint64_t valid;
    uint32_t valid_ns, reserved;
    struct abi_attributes attributes;
};

struct abi_getattr_in {
    uint32_t flags, reserved;
    uint64_t handle;
};

struct abi_setattr_in {
    uint32_t valid, reserved;
    uint64_t handle, size, lock_owner, atime, mtime, ctime;
    uint32_t atime_ns, mtime_ns, ctime_ns, mode, reserved4, uid, gid, reserved5;
};

struct abi_time {
    int64_t s;
    uint32_t ns;
    int32_t reserved;
};

struct abi_statx_in {
    uint32_t getattr_flags, reserved;
    uint64_t handle;
    uint32_t flags, mask;
};

struct abi_statx_out {
    uint64_t valid;
    uint32_t valid_ns, flags;
    uint64_t spare[2];
    uint32_t mask, block_bytes;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare0;
    uint64_t ino, size, blocks, attributes_mask;
    struct abi_time atime, btime, ctime, mtime;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t spare2[14];
};

/* Both halves of the answer to CREATE; OPEN and OPENDIR send the second alone. */
struct abi_open_out {
    uint64_t handle;
    uint32_t flags, reserved;
};

struct abi_create_out {
    struct abi_entry_out entry;
    struct abi_open_out open;
};

struct abi_open_in {
    uint32_t flags, open_flags;
};

struct abi_create_in {
    uint32_t flags, mode, umask, open_flags;
};

struct abi_mknod_in {
    uint32_t mode, rdev, umask, reserved;
};

struct abi_mkdir_in {
    uint32_t mode, umask;
};

struct abi_rename_in {
    uint64_t new_parent;
};

struct abi_rename2_in {
    uint64_t new_parent;
    uint32_t flags, reserved;
};

struct abi_link_in {
    uint64_t nodeid;
};

/* Of READ, READDIR and READDIRPLUS. */
struct abi_read_in {
    uint64_t handle, offset;
    uint32_t size, read_flags;
    uint64_t lock_owner;
    uint32_t flags, reserved;
};

struct abi_write_in {
    uint64_t handle, offset;
    uint32_t size, write_flags;
    uint64_t lock_owner;
    uint32_t flags, reserved;
};

struct abi_write_out {
    uint32_t size, reserved;
};

/* Of FSYNC and FSYNCDIR: what follows the handle isn't read. */
struct abi_handle_in {
    uint64_t handle, reserved;
};

/* Of FLUSH, RELEASE and RELEASEDIR; likewise. */
struct abi_close_in {
    uint64_t handle, reserved[2];
};

struct abi_access_in {
    uint32_t mask, reserved;
};

struct abi_dirent_plus {
    struct abi_entry_out entry;
    struct abi_dirent dirent;
};

static_assert(sizeof(struct abi_entry_out) == 128, "the kernel's");
static_assert(sizeof(struct abi_attributes_out) == 104, "the kernel's");
static_assert(sizeof(struct abi_setattr_in) == 88, "the kernel's");
static_assert(sizeof(struct abi_statx_out) == 288, "the kernel's");
static_assert(sizeof(struct abi_write_in) == 40, "the kernel's");
