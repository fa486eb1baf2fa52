/* libshoal's path layer: synchronous calls by path, as POSIX has them.
 *
 * A place says who asks and where relative paths begin. Paths are up to 4,096 bytes, their names up
 * to 255; "..", symbolic links (40 at most) and trailing slashes mean what POSIX says.
 *
 * Errors: -(errno of Linux). Threads: any thread may call; none may from inside a request's done.
 * Memory: paths and buffers are borrowed for the call. */
#pragma once
#include "shoal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_place {
    struct shoal_client *client;
    struct shoal_identity identity;
    uint64_t directory; /* inode number where relative paths begin; 0: the root */
};

/* A thread that makes many calls may say so: what a call needs of a thread is then set up once, not
 * each time. Leave before the thread ends and before the client goes. */
SHOAL_EXPORT int shoal_thread_enter(struct shoal_client *client);
SHOAL_EXPORT void shoal_thread_leave(struct shoal_client *client);

/* Files. flags: SHOAL_OPEN_; mode: permission of a file that is made (no umask is taken off). */
SHOAL_EXPORT int shoal_path_open(const struct shoal_place *place, const char *path, uint32_t flags,
                                 uint32_t mode, struct shoal_file **ret_file);
/* Closes in any case; tells what went wrong with the last size and time. Takes NULL. */
SHOAL_EXPORT int shoal_path_close(const struct shoal_place *place, struct shoal_file *file);
/* Bytes read, fewer only at the end of the file; 0 behind it. What data holds behind them, up to
 * size, is not said. */
SHOAL_EXPORT int64_t shoal_path_read(const struct shoal_place *place, struct shoal_file *file,
                                     void *data, size_t size, uint64_t offset);
/* All bytes, or an error. A file opened with SHOAL_OPEN_APPEND takes no notice of the offset. */
SHOAL_EXPORT int64_t shoal_path_write(const struct shoal_place *place, struct shoal_file *file,
                                      const void *data, size_t size, uint64_t offset);
SHOAL_EXPORT int shoal_path_fsync(const struct shoal_place *place, struct shoal_file *file);

/* Attributes. stat follows a symbolic link at the end, lstat does not; the changes follow it. */
SHOAL_EXPORT int shoal_path_stat(const struct shoal_place *place, const char *path,
                                 struct shoal_attributes *ret_attributes);
SHOAL_EXPORT int shoal_path_lstat(const struct shoal_place *place, const char *path,
                                  struct shoal_attributes *ret_attributes);
SHOAL_EXPORT int shoal_path_truncate(const struct shoal_place *place, const char *path,
                                     uint64_t size);
SHOAL_EXPORT int shoal_path_chmod(const struct shoal_place *place, const char *path, uint32_t mode);
/* UINT32_MAX leaves one of them as it is. */
SHOAL_EXPORT int shoal_path_chown(const struct shoal_place *place, const char *path, uint32_t uid,
                                  uint32_t gid);
/* times: of access and of change of data; NULL: now. */
SHOAL_EXPORT int shoal_path_utimens(const struct shoal_place *place, const char *path,
                                    const int64_t times_ns[2]);

/* Names. */
SHOAL_EXPORT int shoal_path_mkdir(const struct shoal_place *place, const char *path, uint32_t mode);
SHOAL_EXPORT int shoal_path_rmdir(const struct shoal_place *place, const char *path);
SHOAL_EXPORT int shoal_path_unlink(const struct shoal_place *place, const char *path);
/* flags: SHOAL_RENAME_. */
SHOAL_EXPORT int shoal_path_rename(const struct shoal_place *place, const char *from,
                                   const char *to, uint32_t flags);
/* A symbolic link at the end of `from` is linked itself. */
SHOAL_EXPORT int shoal_path_link(const struct shoal_place *place, const char *from, const char *to);
SHOAL_EXPORT int shoal_path_symlink(const struct shoal_place *place, const char *target,
                                    const char *path);
/* Bytes of the target, without a NUL; cut at size. */
SHOAL_EXPORT int64_t shoal_path_readlink(const struct shoal_place *place, const char *path,
                                         char *target, size_t size);

/* Directories. */
struct shoal_directory;
SHOAL_EXPORT int shoal_path_opendir(const struct shoal_place *place, const char *path,
                                    struct shoal_directory **ret_directory);
/* 1 and the next entry, with "." and ".."; 0 at the end. Its name ends in NUL and is valid until
 * the next call; attributes are NULL. */
SHOAL_EXPORT int shoal_path_readdir(struct shoal_directory *directory,
                                    struct shoal_entry *ret_entry);
/* Takes NULL. */
SHOAL_EXPORT void shoal_path_closedir(struct shoal_directory *directory);

#ifdef __cplusplus
}
#endif
