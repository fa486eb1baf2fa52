/* What one thread of the kill test knows of the file system: a model of what was acknowledged to
 * it, the bytes of its files, what it has open.
 *
 *     MOUNT/own-N/...       only this thread's
 *     MOUNT/shared-0...     all threads'; each sees and makes only names that begin with "N-"
 *
 * So each thread's model is exact although the threads meet in the servers and in directories.
 * Thread: one owner. */
#pragma once
#include "base/prng.h"
#include "../model_fs.h"
#include <sys/types.h>

enum { SHARED_COUNT = 3, HANDLES_MAX = 6, KILL_PATH_BYTES = 4096, KILL_PROBLEM_BYTES = 4096 + 512 };

struct content {
    uint8_t *data; /* capacity bytes, zero beyond the file's size */
    size_t capacity;
    int64_t mtime_ns; /* as set; 0: whatever the server says */
};

struct open_file {
    int fd; /* -1: free */
    struct model_inode *inode;
    uint32_t flags; /* MODEL_READ, MODEL_WRITE */
    bool append;
};

struct tree {
    const char *mount;
    unsigned thread;
    struct prng prng;
    struct model_fs *fs; /* its root stands for the mount, and knows the directories above only */
    struct open_file handles[HANDLES_MAX];
    uint64_t names_made;
    char problem[KILL_PROBLEM_BYTES]; /* what broke, in one line; empty: nothing */
};

extern const struct model_who tree_root;

/* A name that exists, or may: chosen by chance. */
struct place {
    struct model_inode *parent;
    uint8_t name[NAME_BYTES_MAX];
    size_t name_bytes;
};

void tree_init(struct tree *tree, const char *mount, unsigned thread, uint64_t seed);
/* Makes the directories of the model's root, where they are missing. */
void tree_make_roots(struct tree *tree);
void tree_deinit(struct tree *tree);

/* The content of a regular file, made when there is none. */
struct content *tree_content(struct model_inode *inode);
/* The bytes [offset, offset + size) become those given; the size is the caller's business. */
void tree_fill(struct model_inode *inode, uint64_t offset, struct bytes bytes);
/* Bytes at and beyond the size become zero. */
void tree_cut(struct model_inode *inode, uint64_t size);

bool tree_is_shared(const struct tree *tree, const struct model_inode *directory);
bool tree_is_mine(const struct tree *tree, const char *name);
/* A new name, or, by chance, one that exists. False: the tree lacks names to choose from. */
bool tree_choose_new(struct tree *tree, struct place *ret_place);
bool tree_choose_old(struct tree *tree, struct place *ret_place);
/* Whether paths stay short enough to be named. */
bool tree_may_move(const struct tree *tree, const struct model_inode *inode,
                   const struct model_inode *parent);
struct model_place tree_place(const struct place *place);
/* What the name stands for, or NULL. */
struct model_inode *tree_look(struct tree *tree, const struct place *place);
/* MOUNT/.../NAME; name of 0 bytes: the directory itself. */
void tree_path(struct tree *tree, const struct model_inode *parent, struct bytes name,
               char ret_path[KILL_PATH_BYTES]);
/* A path of the inode by one of its names; false when it has none. */
bool tree_path_of(struct tree *tree, const struct model_inode *inode,
                  char ret_path[KILL_PATH_BYTES]);
/* All descriptors are closed and forgotten: the daemon they led to is dead. */
void tree_drop_handles(struct tree *tree);
void tree_complain(struct tree *tree, const char *format, ...) PRINTF_LIKE(2, 3);
