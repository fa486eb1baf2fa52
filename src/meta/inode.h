/* Inodes within a transaction: rows, attributes, capabilities, the end of an inode.
 *
 * All answer -ERR_PENDING and errors of the engine besides what is said. */
#pragma once
#include "meta/permission.h"
#include "meta/transaction.h"

static inline struct ownership inode_ownership(const struct inode_row *row) {
    return (struct ownership){row->mode, row->uid, row->gid};
}

/* Whether link may give it a name: it has one, or it was made without, to be given one some time.
 * No directory is the parent of such a file. */
static inline bool inode_may_be_named(const struct inode_row *row) {
    return row->nlink > 0 || (mode_is_regular(row->mode) && row->parent == 0);
}

/* -ERR_STALE when there is none. For operations whose coordinator this group is it may be
 * elsewhere: they get what it was when they looked. */
MUST_CHECK int inode_get(struct transaction *transaction, struct ino ino,
                         const struct inode_row **ret_row);
MUST_CHECK int inode_put(struct transaction *transaction, struct ino ino,
                         const struct inode_row *row);
#define INODE_PATCH(transaction, ino, row, from, to)                                               \
    __extension__({                                                                                \
        struct kv_key patch_key_ = key_inode(ino);                                                 \
        TRANSACTION_PATCH(transaction, &patch_key_, row, from, to);                                \
    })

/* Sets epoch and ctime of a copy that is about to be put or patched; ctime never goes back. */
void inode_touch(const struct transaction *transaction, struct inode_row *row);

/* Attributes of the inode; partition is a directory's (NULL for others). */
void attributes_fill(struct ino ino, const struct inode_row *row,
                     const struct partition_row *partition, struct attributes *ret_attributes);
/* The same, reading the partition when it is a directory, and waiting while the size of a file is
 * being asked of the OSTs. */
MUST_CHECK int attributes_read(struct transaction *transaction, struct ino ino,
                               const struct inode_row *row, struct attributes *ret_attributes);
/* -ERR_PENDING while nobody knows how long the file is. */
MUST_CHECK int inode_size_known(struct transaction *transaction, struct ino ino,
                                const struct inode_row *row);

/* RIGHT_ bits by what the session has open, with the coming open of open_flags. */
uint32_t rights_of(const struct transaction *transaction, struct ino ino, uint32_t open_flags);
/* The answer then waits until the truncation that it tells of is on disk: an OST that has seen it
 * has cut fsynced bytes. Of chunks that only their maker may write to it says nothing. */
void capability_fill(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                     uint32_t rights, struct capability *ret_capability);
/* 0 or -ERR_BAD_HANDLE. */
MUST_CHECK int inode_is_open(const struct transaction *transaction, struct ino ino,
                             uint32_t open_flag);

/* A new inode of that owner and type, for a file system's default layout or its parent's. */
struct inode_row inode_make(const struct transaction *transaction, struct ownership owner,
                            struct ino ino, const struct partition_row *parent);

/* One link less: the changed row is put, or the inode goes, or becomes an orphan if it may be open
 * somewhere. *ret_nlink: what is left. A directory is freed with its partition. */
MUST_CHECK int inode_unlink(struct transaction *transaction, struct ino ino,
                            const struct inode_row *row, uint32_t *ret_nlink);
/* Deletes all rows of the inode, and stages the order to delete its chunks. */
MUST_CHECK int inode_free(struct transaction *transaction, struct ino ino,
                          const struct inode_row *row);
/* Nobody names it, and nobody has it open any more: freed, but where a transaction across logs may
 * give it a name: then the sweep looks at it when that has ended. */
MUST_CHECK int inode_end(struct transaction *transaction, struct ino ino,
                         const struct inode_row *row, bool *ret_freed);
/* It has no name, and is freed when nobody has it open: its O row. */
MUST_CHECK int inode_orphan(struct transaction *transaction, struct ino ino);
/* A name of it is another now; index: hash and rank. */
struct link_move {
    struct ino from;
    uint64_t from_index;
    struct ino to;
    uint64_t to_index;
};
/* One link more, here or elsewhere: that of `to`. */
MUST_CHECK int inode_link(struct transaction *transaction, struct ino ino,
                          const struct inode_row *row, const struct link_move *move);
/* Likewise: its parent follows, if that was its first name, or it is a directory. */
MUST_CHECK int inode_moved(struct transaction *transaction, struct ino ino,
                           const struct inode_row *row, const struct link_move *move);
/* An order about the chunks of the inode; kind: enum order_kind. */
struct order_row order_make(const struct transaction *transaction, const struct inode_row *row,
                            uint8_t kind);
MUST_CHECK int order_put(struct transaction *transaction, struct ino ino,
                         const struct order_row *order);
