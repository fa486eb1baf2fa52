/* What a program's start and end need of the file system, beside env.h: locks, whole files,
 * listings, space. For commands and fronts, with the real env only; everything here blocks.
 * Paths are relative to the env's root where an env is given. */
#pragma once
#include "env/env.h"

/* An exclusive lock on a file, which it makes when missing and in which it leaves the process id.
 * The lock ends with env_lock_close or the process, however that dies; the file stays, without
 * an id after a close. It has ENV_LOCK_BYTES, or none before it was held for the first time. */
enum { ENV_LOCK_BYTES = 16 };
struct env_lock;
MUST_CHECK int env_lock_open(struct env *env, const char *path, struct env_lock **ret_lock);
void env_lock_close(struct env_lock *lock);
/* Who holds it; -ERR_NOT_FOUND when nobody does. */
MUST_CHECK int env_lock_holder(struct env *env, const char *path, int *ret_process_id);

/* The whole file in memory that the caller frees, with a NUL behind it that is not counted.
 * -ERR_FILE_TOO_BIG above limit_bytes. */
MUST_CHECK int env_file_read(struct env *env, const char *path, size_t limit_bytes, char **ret_data,
                             size_t *ret_size_bytes);
/* Replaces path by a file with this content, durable on return: after a crash at any moment it has
 * its old content or its new. The mode is 0600. */
MUST_CHECK int env_file_write(struct env *env, const char *path, const void *data,
                              size_t size_bytes);
/* Likewise, but -ERR_EXISTS when there is such a file, which stays as it is. */
MUST_CHECK int env_file_write_new(struct env *env, const char *path, const void *data,
                                  size_t size_bytes);
/* Behind path, the name of what these write before it gets its own. */
#define ENV_FILE_NEW_SUFFIX ".tmp"

enum env_kind { ENV_KIND_FILE, ENV_KIND_DIRECTORY, ENV_KIND_OTHER };
struct env_entry {
    const char *name;
    enum env_kind kind;
    uint64_t size_bytes; /* of a file */
};

/* Calls each for all entries but "." and "..", in no order, until it answers other than 0, which
 * is then the result. */
MUST_CHECK int env_directory_list(struct env *env, const char *path,
                                  int (*each)(void *context, const struct env_entry *entry),
                                  void *context);
/* Removes the entry and all that is below it; follows no symbolic link. */
MUST_CHECK int env_tree_remove(struct env *env, const char *path);

struct env_space {
    uint64_t total_bytes;
    uint64_t free_bytes;  /* for this user */
    const char *fs_name;  /* "ext4", "btrfs", ...; "unknown" */
    bool in_memory;       /* nothing of it survives a restart of the machine */
    bool copies_on_write; /* an overwrite of allocated space may still find none */
};
MUST_CHECK int env_space_get(struct env *env, struct env_space *ret_space);
/* What new regions of shared memory may take (UINT64_MAX: no limit), and the directory that they
 * lie in, cut to the size; for messages. */
MUST_CHECK int env_shared_space(struct env *env, uint64_t *ret_free_bytes, size_t size_bytes,
                                char *ret_place);

/* Makes the directory and those above it as needed; path is not relative to any root. */
MUST_CHECK int env_path_make(const char *path);
/* The absolute path, free of symbolic links, that the caller frees. */
MUST_CHECK int env_path_resolve(const char *path, char **ret_path);
/* The inode number of what path names; a symbolic link's own. */
MUST_CHECK int env_path_ino(const char *path, uint64_t *ret_ino);
