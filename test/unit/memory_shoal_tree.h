/* The stand-in's file system: inodes, names, data.
 *
 *     inodes:  by number, in chunks of a table          names: one hash table over (parent, name)
 *     directory: its entries in order of creation; cookie = place + 3; gone ones leave NULL
 *     file: chunks of 64 KiB; NULL is a hole
 *
 * tree_lock guards names and all attributes but size and times; data_lock(inode) those and data. */
#pragma once
#include <pthread.h>
#include <shoal/shoal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    CHUNK_BYTES = 65536,
    SLAB_BYTES = 32 << 20,
    INODES_PER_TABLE = 4096,
    TABLES_MAX = 65536,
    NAME_BUCKETS = 1 << 20,
    DATA_LOCKS = 64,
    TREE_OPERATION_MAX = SHOAL_SEEK,
    COOKIE_FIRST = 3, /* "." and ".." have 1 and 2 */
};

struct tree_inode;

struct tree_name {
    struct tree_name *next; /* in the bucket */
    struct tree_inode *parent;
    struct tree_inode *child;
    size_t place;
    uint64_t hash;
    size_t bytes;
    char text[];
};

struct tree_inode {
    struct shoal_attributes attributes;
    _Atomic uint32_t open_count;
    struct tree_inode *parent; /* of a directory */
    struct tree_name **entries;
    size_t entry_count; /* places in use */
    size_t entry_space;
    size_t live_count; /* entries there are */
    char *target;      /* of a symbolic link */
    uint8_t **chunks;
    size_t chunk_count;
};

/* Free chunks, linked by their first word; more come from slabs in huge pages. */
struct tree_chunks {
    pthread_mutex_t mutex;
    void *free;
    uint8_t *slab; /* the newest, used up to slab_used; its last chunk links the one before */
    size_t slab_used;
};

struct tree {
    pthread_rwlock_t lock;
    pthread_rwlock_t data_locks[DATA_LOCKS];
    struct tree_inode **tables[TABLES_MAX];
    uint64_t ino_next;
    _Atomic uint64_t inode_count;
    _Atomic uint64_t open_count;  /* files opened and not released */
    _Atomic size_t misalignment;  /* of the last write's data, to a page */
    _Atomic size_t listing_bytes; /* that the last readdir asked for */
    struct tree_chunks chunks;
    struct tree_name *names[NAME_BUCKETS];
};

struct tree *tree_new(uint32_t root_mode);
void tree_free(struct tree *tree);
pthread_rwlock_t *tree_data_lock(struct tree *tree, const struct tree_inode *inode);
int64_t tree_now_ns(void);

struct tree_inode *tree_find(struct tree *tree, uint64_t ino);
struct tree_name *tree_name_find(struct tree *tree, const struct tree_inode *parent,
                                 const char *text, size_t bytes);
struct tree_inode *tree_inode_add(struct tree *tree, uint32_t mode);
void tree_name_add(struct tree *tree, struct tree_inode *parent, const char *text, size_t bytes,
                   struct tree_inode *child);
/* Takes the name away; links are the caller's to count. */
void tree_name_remove(struct tree *tree, struct tree_name *name);
/* Frees it when it has neither links nor users. */
void tree_inode_drop(struct tree *tree, struct tree_inode *inode);

/* Under the data lock. */
size_t tree_read(const struct tree_inode *inode, uint64_t offset, uint8_t *data, size_t bytes);
void tree_write(struct tree *tree, struct tree_inode *inode, uint64_t offset, const uint8_t *data,
                size_t bytes);
void tree_resize(struct tree *tree, struct tree_inode *inode, uint64_t bytes);

/* Does what the request says and answers its result. */
int64_t tree_run(struct tree *tree, struct shoal_request *request);

void *memory_need(void *memory);
