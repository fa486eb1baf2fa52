/* Our names for the kernel's protocol against <linux/fuse.h> of the building machine, which knows
 * them up to its version. */
#include "unit.h"
#include "front/fuse/fuse_abi_body.h"
#include "front/fuse/fuse_abi_forget.h"
#include "front/fuse/ops.h"
#include <sys/stat.h>
#include <linux/fuse.h>

#define SAME_SIZE(ours, theirs) assert_int_equal(sizeof(struct ours), sizeof(struct theirs))
#define SAME_PLACE(ours, field, theirs, other)                                                     \
    assert_int_equal(offsetof(struct ours, field), offsetof(struct theirs, other))

static void test_headers(void **state) {
    (void)state;
    SAME_SIZE(abi_in_header, fuse_in_header);
    SAME_PLACE(abi_in_header, opcode, fuse_in_header, opcode);
    SAME_PLACE(abi_in_header, unique, fuse_in_header, unique);
    SAME_PLACE(abi_in_header, nodeid, fuse_in_header, nodeid);
    SAME_PLACE(abi_in_header, uid, fuse_in_header, uid);
    SAME_PLACE(abi_in_header, gid, fuse_in_header, gid);
    SAME_PLACE(abi_in_header, pid, fuse_in_header, pid);
    SAME_SIZE(abi_out_header, fuse_out_header);
    SAME_PLACE(abi_out_header, error, fuse_out_header, error);
    SAME_PLACE(abi_out_header, unique, fuse_out_header, unique);
    SAME_SIZE(abi_init_in, fuse_init_in);
    SAME_PLACE(abi_init_in, flags, fuse_init_in, flags);
    SAME_PLACE(abi_init_in, flags_high, fuse_init_in, flags2);
    SAME_SIZE(abi_init_out, fuse_init_out);
    SAME_PLACE(abi_init_out, background_max, fuse_init_out, max_background);
    SAME_PLACE(abi_init_out, congestion_threshold, fuse_init_out, congestion_threshold);
    SAME_PLACE(abi_init_out, write_bytes_max, fuse_init_out, max_write);
    SAME_PLACE(abi_init_out, time_granularity_ns, fuse_init_out, time_gran);
    SAME_PLACE(abi_init_out, pages_max, fuse_init_out, max_pages);
    SAME_PLACE(abi_init_out, flags_high, fuse_init_out, flags2);
}

static void test_attributes(void **state) {
    (void)state;
    SAME_SIZE(abi_attributes, fuse_attr);
    SAME_PLACE(abi_attributes, ino, fuse_attr, ino);
    SAME_PLACE(abi_attributes, size, fuse_attr, size);
    SAME_PLACE(abi_attributes, blocks, fuse_attr, blocks);
    SAME_PLACE(abi_attributes, atime, fuse_attr, atime);
    SAME_PLACE(abi_attributes, mtime, fuse_attr, mtime);
    SAME_PLACE(abi_attributes, ctime, fuse_attr, ctime);
    SAME_PLACE(abi_attributes, atime_ns, fuse_attr, atimensec);
    SAME_PLACE(abi_attributes, mtime_ns, fuse_attr, mtimensec);
    SAME_PLACE(abi_attributes, ctime_ns, fuse_attr, ctimensec);
    SAME_PLACE(abi_attributes, mode, fuse_attr, mode);
    SAME_PLACE(abi_attributes, nlink, fuse_attr, nlink);
    SAME_PLACE(abi_attributes, uid, fuse_attr, uid);
    SAME_PLACE(abi_attributes, gid, fuse_attr, gid);
    SAME_PLACE(abi_attributes, rdev, fuse_attr, rdev);
    SAME_PLACE(abi_attributes, block_bytes, fuse_attr, blksize);
    SAME_PLACE(abi_attributes, flags, fuse_attr, flags);
    SAME_SIZE(abi_entry_out, fuse_entry_out);
    SAME_PLACE(abi_entry_out, nodeid, fuse_entry_out, nodeid);
    SAME_PLACE(abi_entry_out, generation, fuse_entry_out, generation);
    SAME_PLACE(abi_entry_out, entry_valid, fuse_entry_out, entry_valid);
    SAME_PLACE(abi_entry_out, attributes_valid, fuse_entry_out, attr_valid);
    SAME_PLACE(abi_entry_out, entry_valid_ns, fuse_entry_out, entry_valid_nsec);
    SAME_PLACE(abi_entry_out, attributes_valid_ns, fuse_entry_out, attr_valid_nsec);
    SAME_PLACE(abi_entry_out, attributes, fuse_entry_out, attr);
    SAME_SIZE(abi_attributes_out, fuse_attr_out);
    SAME_PLACE(abi_attributes_out, valid, fuse_attr_out, attr_valid);
    SAME_PLACE(abi_attributes_out, valid_ns, fuse_attr_out, attr_valid_nsec);
    SAME_PLACE(abi_attributes_out, attributes, fuse_attr_out, attr);
    SAME_SIZE(abi_getattr_in, fuse_getattr_in);
    SAME_PLACE(abi_getattr_in, flags, fuse_getattr_in, getattr_flags);
    SAME_PLACE(abi_getattr_in, handle, fuse_getattr_in, fh);
    SAME_SIZE(abi_setattr_in, fuse_setattr_in);
    SAME_PLACE(abi_setattr_in, valid, fuse_setattr_in, valid);
    SAME_PLACE(abi_setattr_in, handle, fuse_setattr_in, fh);
    SAME_PLACE(abi_setattr_in, size, fuse_setattr_in, size);
    SAME_PLACE(abi_setattr_in, atime, fuse_setattr_in, atime);
    SAME_PLACE(abi_setattr_in, mtime, fuse_setattr_in, mtime);
    SAME_PLACE(abi_setattr_in, atime_ns, fuse_setattr_in, atimensec);
    SAME_PLACE(abi_setattr_in, mtime_ns, fuse_setattr_in, mtimensec);
    SAME_PLACE(abi_setattr_in, mode, fuse_setattr_in, mode);
    SAME_PLACE(abi_setattr_in, uid, fuse_setattr_in, uid);
    SAME_PLACE(abi_setattr_in, gid, fuse_setattr_in, gid);
    SAME_SIZE(abi_open_in, fuse_open_in);
    SAME_PLACE(abi_open_in, flags, fuse_open_in, flags);
    SAME_PLACE(abi_open_in, open_flags, fuse_open_in, open_flags);
}

static void test_names_and_opens(void **state) {
    (void)state;
    SAME_SIZE(abi_interrupt_in, fuse_interrupt_in);
    SAME_PLACE(abi_interrupt_in, unique, fuse_interrupt_in, unique);
    SAME_SIZE(abi_open_out, fuse_open_out);
    SAME_PLACE(abi_open_out, handle, fuse_open_out, fh);
    SAME_PLACE(abi_open_out, flags, fuse_open_out, open_flags);
    SAME_SIZE(abi_create_in, fuse_create_in);
    SAME_PLACE(abi_create_in, flags, fuse_create_in, flags);
    SAME_PLACE(abi_create_in, mode, fuse_create_in, mode);
    SAME_PLACE(abi_create_in, umask, fuse_create_in, umask);
    SAME_PLACE(abi_create_in, open_flags, fuse_create_in, open_flags);
    SAME_SIZE(abi_mknod_in, fuse_mknod_in);
    SAME_PLACE(abi_mknod_in, mode, fuse_mknod_in, mode);
    SAME_PLACE(abi_mknod_in, rdev, fuse_mknod_in, rdev);
    SAME_PLACE(abi_mknod_in, umask, fuse_mknod_in, umask);
    SAME_SIZE(abi_mkdir_in, fuse_mkdir_in);
    SAME_PLACE(abi_mkdir_in, mode, fuse_mkdir_in, mode);
    SAME_PLACE(abi_mkdir_in, umask, fuse_mkdir_in, umask);
    SAME_SIZE(abi_rename_in, fuse_rename_in);
    SAME_PLACE(abi_rename_in, new_parent, fuse_rename_in, newdir);
    SAME_SIZE(abi_rename2_in, fuse_rename2_in);
    SAME_PLACE(abi_rename2_in, new_parent, fuse_rename2_in, newdir);
    SAME_PLACE(abi_rename2_in, flags, fuse_rename2_in, flags);
    SAME_SIZE(abi_link_in, fuse_link_in);
    SAME_PLACE(abi_link_in, nodeid, fuse_link_in, oldnodeid);
    SAME_SIZE(abi_read_in, fuse_read_in);
    SAME_PLACE(abi_read_in, handle, fuse_read_in, fh);
    SAME_PLACE(abi_read_in, offset, fuse_read_in, offset);
    SAME_PLACE(abi_read_in, size, fuse_read_in, size);
    SAME_PLACE(abi_read_in, flags, fuse_read_in, flags);
    SAME_SIZE(abi_write_in, fuse_write_in);
    SAME_PLACE(abi_write_in, handle, fuse_write_in, fh);
    SAME_PLACE(abi_write_in, offset, fuse_write_in, offset);
    SAME_PLACE(abi_write_in, size, fuse_write_in, size);
    SAME_PLACE(abi_write_in, write_flags, fuse_write_in, write_flags);
    SAME_PLACE(abi_write_in, flags, fuse_write_in, flags);
}

static void test_data_and_lists(void **state) {
    (void)state;
    SAME_SIZE(abi_write_out, fuse_write_out);
    SAME_PLACE(abi_write_out, size, fuse_write_out, size);
    SAME_SIZE(abi_handle_in, fuse_fsync_in);
    SAME_PLACE(abi_handle_in, handle, fuse_fsync_in, fh);
    SAME_SIZE(abi_close_in, fuse_release_in);
    SAME_PLACE(abi_close_in, handle, fuse_release_in, fh);
    SAME_SIZE(abi_fallocate_in, fuse_fallocate_in);
    SAME_PLACE(abi_fallocate_in, handle, fuse_fallocate_in, fh);
    SAME_PLACE(abi_fallocate_in, offset, fuse_fallocate_in, offset);
    SAME_PLACE(abi_fallocate_in, length, fuse_fallocate_in, length);
    SAME_PLACE(abi_fallocate_in, mode, fuse_fallocate_in, mode);
    SAME_SIZE(abi_lseek_in, fuse_lseek_in);
    SAME_PLACE(abi_lseek_in, handle, fuse_lseek_in, fh);
    SAME_PLACE(abi_lseek_in, offset, fuse_lseek_in, offset);
    SAME_PLACE(abi_lseek_in, whence, fuse_lseek_in, whence);
    SAME_SIZE(abi_lseek_out, fuse_lseek_out);
    SAME_PLACE(abi_lseek_out, offset, fuse_lseek_out, offset);
    SAME_SIZE(abi_access_in, fuse_access_in);
    SAME_PLACE(abi_access_in, mask, fuse_access_in, mask);
    SAME_SIZE(abi_dirent, fuse_dirent);
    SAME_PLACE(abi_dirent, ino, fuse_dirent, ino);
    SAME_PLACE(abi_dirent, cookie, fuse_dirent, off);
    SAME_PLACE(abi_dirent, name_bytes, fuse_dirent, namelen);
    SAME_PLACE(abi_dirent, type, fuse_dirent, type);
    SAME_SIZE(abi_invalidate_inode, fuse_notify_inval_inode_out);
    SAME_PLACE(abi_invalidate_inode, ino, fuse_notify_inval_inode_out, ino);
    SAME_PLACE(abi_invalidate_inode, offset, fuse_notify_inval_inode_out, off);
    SAME_PLACE(abi_invalidate_inode, length, fuse_notify_inval_inode_out, len);
    assert_int_equal(sizeof(struct abi_close_in), sizeof(struct fuse_flush_in));
    assert_int_equal(sizeof(struct abi_forget_in), sizeof(struct fuse_forget_in));
    assert_int_equal(sizeof(struct abi_forget_batch_in), sizeof(struct fuse_batch_forget_in));
    assert_int_equal(sizeof(struct abi_forget_one), sizeof(struct fuse_forget_one));
    SAME_SIZE(abi_statfs_out, fuse_statfs_out);
    assert_int_equal(offsetof(struct abi_statfs_out, block_bytes),
                     offsetof(struct fuse_kstatfs, bsize));
    assert_int_equal(offsetof(struct abi_statfs_out, fragment_bytes),
                     offsetof(struct fuse_kstatfs, frsize));
    assert_int_equal(offsetof(struct abi_dirent_plus, dirent),
                     offsetof(struct fuse_direntplus, dirent));
}

static void test_flags(void **state) {
    static const struct {
        uint64_t ours;
        uint64_t theirs;
    } flags[] = {
        {ABI_INIT_ASYNC_READ, FUSE_ASYNC_READ},
        {ABI_INIT_ATOMIC_TRUNCATE, FUSE_ATOMIC_O_TRUNC},
        {ABI_INIT_BIG_WRITES, FUSE_BIG_WRITES},
        {ABI_INIT_AUTO_INVALIDATE, FUSE_AUTO_INVAL_DATA},
        {ABI_INIT_READDIRPLUS, FUSE_DO_READDIRPLUS},
        {ABI_INIT_READDIRPLUS_AUTO, FUSE_READDIRPLUS_AUTO},
        {ABI_INIT_ASYNC_DIRECT, FUSE_ASYNC_DIO},
        {ABI_INIT_WRITEBACK_CACHE, FUSE_WRITEBACK_CACHE},
        {ABI_INIT_PARALLEL_DIRECTORY, FUSE_PARALLEL_DIROPS},
        {ABI_INIT_MAX_PAGES, FUSE_MAX_PAGES},
        {ABI_INIT_KILL_PRIVILEGES, FUSE_HANDLE_KILLPRIV_V2},
        {ABI_INIT_EXTENDED, FUSE_INIT_EXT},
#ifdef FUSE_DIRECT_IO_ALLOW_MMAP
        {ABI_INIT_DIRECT_MMAP, FUSE_DIRECT_IO_ALLOW_MMAP},
#endif
        {ABI_OPEN_DIRECT, FOPEN_DIRECT_IO},
        {ABI_OPEN_KEEP_CACHE, FOPEN_KEEP_CACHE},
        {ABI_OPEN_NO_FLUSH, FOPEN_NOFLUSH},
        {ABI_OPEN_PARALLEL_WRITES, FOPEN_PARALLEL_DIRECT_WRITES},
        {ABI_SET_MODE, FATTR_MODE},
        {ABI_SET_UID, FATTR_UID},
        {ABI_SET_GID, FATTR_GID},
        {ABI_SET_SIZE, FATTR_SIZE},
        {ABI_SET_ATIME, FATTR_ATIME},
        {ABI_SET_MTIME, FATTR_MTIME},
        {ABI_SET_HANDLE, FATTR_FH},
        {ABI_SET_ATIME_NOW, FATTR_ATIME_NOW},
        {ABI_SET_MTIME_NOW, FATTR_MTIME_NOW},
        {ABI_SET_KILL_SET_ID, FATTR_KILL_SUIDGID},
        {ABI_GETATTR_HANDLE, FUSE_GETATTR_FH},
        {ABI_WRITE_KILL_SET_ID, FUSE_WRITE_KILL_SUIDGID},
        {ABI_OPEN_KILL_SET_ID, FUSE_OPEN_KILL_SUIDGID},
        {ABI_NOTIFY_INVALIDATE_INODE, FUSE_NOTIFY_INVAL_INODE},
        {MODE_TYPE, S_IFMT},
        {MODE_REGULAR, S_IFREG},
        {MODE_DIRECTORY, S_IFDIR},
        {MODE_SET_UID, S_ISUID},
        {MODE_SET_GID, S_ISGID},
        {MODE_GROUP_EXECUTE, S_IXGRP},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        assert_int_equal(flags[i].ours, flags[i].theirs);
}

static void test_numbers_of_operations(void **state) {
    static const struct {
        const char *name;
        unsigned number;
    } table[] = {
#define THEIRS(name) {#name, FUSE_##name}
        THEIRS(LOOKUP),      THEIRS(FORGET),       THEIRS(GETATTR),      THEIRS(SETATTR),
        THEIRS(READLINK),    THEIRS(SYMLINK),      THEIRS(MKNOD),        THEIRS(MKDIR),
        THEIRS(UNLINK),      THEIRS(RMDIR),        THEIRS(RENAME),       THEIRS(LINK),
        THEIRS(OPEN),        THEIRS(READ),         THEIRS(WRITE),        THEIRS(STATFS),
        THEIRS(RELEASE),     THEIRS(FSYNC),        THEIRS(SETXATTR),     THEIRS(GETXATTR),
        THEIRS(LISTXATTR),   THEIRS(REMOVEXATTR),  THEIRS(FLUSH),        THEIRS(OPENDIR),
        THEIRS(READDIR),     THEIRS(RELEASEDIR),   THEIRS(FSYNCDIR),     THEIRS(GETLK),
        THEIRS(SETLK),       THEIRS(SETLKW),       THEIRS(ACCESS),       THEIRS(CREATE),
        THEIRS(INTERRUPT),   THEIRS(BMAP),         THEIRS(DESTROY),      THEIRS(IOCTL),
        THEIRS(POLL),        THEIRS(NOTIFY_REPLY), THEIRS(BATCH_FORGET), THEIRS(FALLOCATE),
        THEIRS(READDIRPLUS), THEIRS(RENAME2),      THEIRS(LSEEK),        THEIRS(COPY_FILE_RANGE),
        THEIRS(SYNCFS),      THEIRS(TMPFILE),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_non_null(ops[table[i].number].name);
        assert_string_equal(ops[table[i].number].name, table[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),         cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_names_and_opens), cmocka_unit_test(test_data_and_lists),
        cmocka_unit_test(test_flags),           cmocka_unit_test(test_numbers_of_operations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
