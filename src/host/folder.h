/* A directory of this machine, the root of a real env: locks in it, whole files, listings, space.
 * What a program's start and end need beside env.h. Everything here blocks; paths are relative to
 * the root. Threads: any. */
#pragma once
#include "env/env.h"

/* An exclusive lock on a file, which it makes when missing and in which it leaves the process id.
 * The lock ends with folder_lock_close or the process, however that dies; the file stays, without
 * an id after a close. It has FOLDER_LOCK_BYTES, or none before it was held for the first time. */
enum { FOLDER_LOCK_BYTES = 16 };
struct folder_lock;
MUST_CHECK int folder_lock_open(struct env *env, const char *path, struct folder_lock **ret_lock);
void folder_lock_close(struct folder_lock *lock);
/* The process id in its text; -ERR_MALFORMED. */
MUST_CHECK int folder_lock_parse(struct bytes text, int *ret_process_id);
/* Who holds it; -ERR_NOT_FOUND when nobody does. */
MUST_CHECK int folder_lock_holder(struct env *env, const char *path, int *ret_process_id);

/* The whole file in memory that the caller frees, with a NUL behind it that is not counted.
 * -ERR_FILE_TOO_BIG above limit_bytes. */
MUST_CHECK int folder_file_read(struct env *env, const char *path, size_t limit_bytes,
                                char **ret_data, size_t *ret_size_bytes);
/* Replaces path by a file with this content, durable on return: after a crash at any moment it has
 * its old content or its new. The mode is 0600. */
MUST_CHECK int folder_file_write(struct env *env, const char *path, const void *data,
                                 size_t size_bytes);
/* As folder_file_write, for what is good until the machine stops only: nobody waits for a disk. */
MUST_CHECK int folder_file_note(struct env *env, const char *path, const void *data,
                                size_t size_bytes);
/* As folder_file_write, but -ERR_EXISTS when there is such a file, which stays as it is. */
MUST_CHECK int folder_file_write_new(struct env *env, const char *path, const void *data,
                                     size_t size_bytes);
/* Behind path, the name of what these write before it gets its own. */
#define FOLDER_FILE_NEW_SUFFIX ".tmp"

enum folder_kind { FOLDER_KIND_FILE, FOLDER_KIND_DIRECTORY, FOLDER_KIND_OTHER };
struct folder_entry {
    const char *name;
    enum folder_kind kind;
    uint64_t size_bytes; /* of a file */
};

/* Calls each for all entries but "." and "..", in no order, until it answers other than 0, which
 * is then the result. */
MUST_CHECK int folder_list(struct env *env, const char *path,
                           int (*each)(void *context, const struct folder_entry *entry),
                           void *context);
/* Removes the entry and all that is below it; follows no symbolic link. */
MUST_CHECK int folder_tree_remove(struct env *env, const char *path);

/* A number for the root's inode under this boot of the machine: no other directory that is there
 * meanwhile, on this machine or elsewhere, has the same. */
MUST_CHECK int folder_place(struct env *env, uint64_t *ret_place);

struct folder_space {
    uint64_t total_bytes;
    uint64_t free_bytes;  /* for this user */
    const char *fs_name;  /* "ext4", "btrfs", ...; "unknown" */
    bool in_memory;       /* nothing of it survives a restart of the machine */
    bool copies_on_write; /* an overwrite of allocated space may still find none */
};
MUST_CHECK int folder_space_get(struct env *env, struct folder_space *ret_space);
