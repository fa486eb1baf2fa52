/* Directories within a transaction: the partition with its copy of the access attributes, and
 * entries by name.
 *
 * All answer -ERR_PENDING and errors of the engine besides what is said. */
#pragma once
#include "meta/permission.h"
#include "meta/transaction.h"

static inline struct ownership partition_ownership(const struct partition_row *row) {
    return (struct ownership){row->mode, row->uid, row->gid};
}

/* -ERR_NOT_FOUND when there is no such inode, -ERR_NOT_DIRECTORY when it is something else. */
MUST_CHECK int directory_get(struct transaction *transaction, struct ino ino,
                             const struct partition_row **ret_row);

enum { LINKS_MAX = INT32_MAX, DIRECTORIES_MAX = INT32_MAX - 2 };

/* An entry, or where one of that name would go. */
struct dentry {
    uint64_t index; /* hash and rank */
    struct ino ino;
    uint64_t epoch;
    uint8_t type;
    uint8_t flags;   /* DENTRY_ of the row at index; 0 when there is none */
    bool flag_below; /* a new entry makes the row one rank below say MORE */
};

/* 0 with the entry; -ERR_NOT_FOUND with the place for a new one. "." and ".." are no entries. */
MUST_CHECK int dentry_find(struct transaction *transaction, struct ino directory, struct bytes name,
                           struct dentry *ret_dentry);

/* Whether that place is one: false where all ranks of the name's hash are taken. */
bool dentry_has_place(const struct transaction *transaction, struct bytes name,
                      const struct dentry *dentry);

/* Staging. The directory's counts and times are left to directory_changed. dentry_add:
 * -ERR_NO_SPACE where there is no place. */
MUST_CHECK int dentry_add(struct transaction *transaction, struct ino directory, struct bytes name,
                          const struct dentry *dentry);
MUST_CHECK int dentry_replace(struct transaction *transaction, struct ino directory,
                              struct bytes name, const struct dentry *dentry);
MUST_CHECK int dentry_remove(struct transaction *transaction, struct ino directory,
                             const struct dentry *dentry);

/* What entries were made (+) or removed (-) in a directory. */
struct directory_change {
    int files;
    int directories;
};
/* Counts, mtime and ctime of the directory. -ERR_TOO_MANY_LINKS. */
MUST_CHECK int directory_changed(struct transaction *transaction, struct ino directory,
                                 const struct partition_row *row, struct directory_change change);

static inline struct directory_change change_of(uint8_t type, int count) {
    bool directory = type == MODE_DIRECTORY >> 12;

    return (struct directory_change){directory ? 0 : count, directory ? count : 0};
}

/* A name in a directory, as requests give it, and what was found there. */
struct place {
    struct ino parent;
    struct bytes name;
    const struct credentials *who;
    const struct partition_row *directory; /* from here on: filled by the functions below */
    struct dentry dentry;
};

/* Finds the entry: 0, -ERR_NOT_FOUND (and dentry says where it would be), or what Linux answers
 * before it looks: name too long, no directory, no search permission. "." and ".." are found too,
 * but are no entries that could be changed. */
MUST_CHECK int place_find(struct transaction *transaction, struct place *place);
/* For those who make an entry: 0 when there is none and one may be made; -ERR_EXISTS. */
MUST_CHECK int place_find_free(struct transaction *transaction, struct place *place);
/* Whether the entry found may go from its directory: -ERR_ACCESS, -ERR_NOT_PERMITTED. */
static inline int place_may_remove(const struct place *place, const struct inode_row *victim) {
    return permission_remove(place->who, partition_ownership(place->directory), victim->uid);
}
/* Takes away a name whose inode is lost for good, and nothing else, as nothing else is left.
 * directory: for rmdir, else for unlink: -ERR_NOT_DIRECTORY, -ERR_IS_DIRECTORY. Nobody knows whose
 * the inode was: under the sticky bit only the directory's owner may. */
MUST_CHECK int place_remove_lost(struct transaction *transaction, const struct place *place,
                                 bool directory);
