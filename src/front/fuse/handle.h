/* What the kernel has open: a table of handles. What the kernel keeps of one is
 * generation:32 | index + 1:32, so that a wrong or old number is found out.
 *
 * Thread: any, without locks; the kernel sends nothing more about a handle once it sent RELEASE.
 * Memory: taken at start; entries that were never used are not resident. */
#pragma once
#include "base/err.h"
#include "base/index_pool.h"
#include "base/user_shares.h"
#include "front/fuse/kept.h"
#include <shoal/shoal.h>

struct handle {
    struct shoal_file *file;
    uint64_t ino;
    uint32_t uid; /* who has opened it */
    bool writable;
    bool counted;     /* among the writers of its file */
    bool synchronous; /* opened with O_SYNC or O_DSYNC */
    bool direct;      /* the kernel keeps out of what is read and written */
    struct kept_use pages;
    _Atomic uint32_t set_id;     /* see front.h, set_id_change */
    _Atomic uint32_t generation; /* odd while open */
};

enum { WRITERS_SLOTS = 8192 };

struct handle_table {
    struct handle *handles;
    _Atomic uint32_t *writers; /* handles that write, by a hash of the inode's number */
    struct index_pool free;
    struct user_shares shares;
};

MUST_CHECK int handle_table_init(struct handle_table *table, uint32_t handles_max);
void handle_table_deinit(struct handle_table *table);

static inline bool handle_is_open(struct handle *handle) {
    return atomic_load_explicit(&handle->generation, memory_order_relaxed) & 1;
}

/* A handle that isn't open yet; NULL when all are in use, or as many as this user may have. */
struct handle *handle_take(struct handle_table *table, uint32_t uid);
/* It writes, to its ino: from now on, until it is put back, its file has writers. */
void handle_count_writer(struct handle_table *table, struct handle *handle);
/* Now and then also true of a file that has none. */
bool handle_has_writers(const struct handle_table *table, uint64_t ino);
/* Opens it and answers its number. */
uint64_t handle_open(struct handle_table *table, struct handle *handle);
/* Puts it back, open or not. */
void handle_put(struct handle_table *table, struct handle *handle);
/* NULL for a number that isn't that of an open handle. */
struct handle *handle_find(struct handle_table *table, uint64_t number);
/* The next open handle from *at on (0 at first), put back already, its file in *ret_file; false
 * when none is left. For the end of a mount, when nobody else is at work. */
bool handle_evict(struct handle_table *table, uint32_t *at, struct shoal_file **ret_file);
