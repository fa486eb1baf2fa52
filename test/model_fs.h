/* A file system in plain memory, as POSIX and Linux define it: what a test or the simulator
 * compares the real one with. Written from the manual pages and fs/namei.c, not from src/.
 *
 * It knows names, types, modes, owners, links, sizes and who has what open; bytes of files are the
 * caller's (context). Times are counted, not told: a counter rises whenever the time must change.
 *
 * Results are 0 or -ERR_ codes of base/err.h. An inode lives as long as it has a name or is open; a
 * pointer to it is valid that long. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { MODEL_SESSIONS = 8 };

enum model_flag {
    MODEL_READ = 1,
    MODEL_WRITE = 2,
    MODEL_TRUNCATE = 4,
    MODEL_DIRECTORY = 8,
    MODEL_EXECUTE = 16,
};
enum model_rename_flag { MODEL_NO_REPLACE = 1, MODEL_EXCHANGE = 2 };
enum model_set {
    MODEL_SET_MODE = 1,
    MODEL_SET_UID = 2,
    MODEL_SET_GID = 4,
    MODEL_SET_SIZE = 8,
    MODEL_SET_ATIME = 16,
    MODEL_SET_MTIME = 32,
    MODEL_SET_ATIME_NOW = 64,
    MODEL_SET_MTIME_NOW = 128,
};

struct model_fs;
struct model_inode;

struct model_entry {
    struct model_entry *next;
    struct model_inode *inode;
    size_t name_bytes;
    uint8_t name[NAME_BYTES_MAX];
};

struct model_inode {
    struct model_inode *next; /* all inodes of the file system */
    uint64_t ino;             /* the real one's, set by the caller after a creation */
    uint32_t mode;            /* with type */
    uint32_t uid;
    uint32_t gid;
    uint32_t rdev;
    uint32_t nlink;    /* of a directory as stat shows it; 0: removed but open, or made unnamed */
    bool may_be_named; /* made without a name, and none so far */
    uint64_t size;     /* of regular files and links */
    uint64_t mtime_changes;
    uint64_t ctime_changes;
    uint32_t read_opens[MODEL_SESSIONS]; /* opens that may not write */
    uint32_t write_opens[MODEL_SESSIONS];
    bool named
        [MODEL_SESSIONS]; /* opened for reading by name: any number of times, ended by one close */
    struct model_inode *parent;  /* of a directory; NULL once removed */
    struct model_entry *entries; /* of a directory */
    size_t entry_count;
    uint8_t *target; /* of a link, size bytes */
    void *context;   /* the caller's; freed by model_options.forget */
};

struct model_who {
    uint32_t uid;
    uint32_t gid;
    const uint32_t *groups;
    size_t group_count;
};

struct model_options {
    uint32_t root_uid;
    uint32_t root_gid;
    uint32_t root_mode;
    void (*forget)(struct model_inode *inode); /* an inode ends; may be NULL */
};

/* Ends the program when there is no memory: it is for tests. */
struct model_fs *model_new(const struct model_options *options);
void model_free(struct model_fs *fs);
struct model_inode *model_root(struct model_fs *fs);
/* NULL when there is none; of all inodes, also removed ones that are open. */
struct model_inode *model_find(struct model_fs *fs, uint64_t ino);
struct model_inode *model_first(struct model_fs *fs);
size_t model_inode_count(const struct model_fs *fs);

/* A name in a directory. parent NULL: an inode that is gone. */
struct model_place {
    const struct model_who *who;
    struct model_inode *parent;
    struct bytes name;
};

int model_lookup(struct model_fs *fs, const struct model_place *place,
                 struct model_inode **ret_inode);

/* mode with type; rdev of devices; target of links. What mknod, mkdir, symlink do by type. */
struct model_new_inode {
    uint32_t mode;
    uint32_t rdev;
    struct bytes target;
};
int model_make(struct model_fs *fs, const struct model_place *place,
               const struct model_new_inode *what, struct model_inode **ret_inode);

/* An open; session < MODEL_SESSIONS. */
struct model_open {
    uint32_t session;
    uint32_t flags;
    uint32_t mode; /* of a file that is made */
    bool exclusive;
    bool by_name; /* if it only reads */
};
int model_create(struct model_fs *fs, const struct model_place *place,
                 const struct model_open *open, struct model_inode **ret_inode, bool *ret_created);
int model_create_unnamed(struct model_fs *fs, const struct model_place *place,
                         const struct model_open *open, struct model_inode **ret_inode);
int model_open(struct model_fs *fs, const struct model_who *who, struct model_inode *inode,
               const struct model_open *open);
bool model_is_open_by(const struct model_inode *inode, uint32_t session);
/* What the session has open by name ends, if there is any. */
void model_close_by_name(struct model_fs *fs, struct model_inode *inode, uint32_t session);
/* One open that had the flags ends; -ERR_BAD_HANDLE when there is none. */
int model_close(struct model_fs *fs, struct model_inode *inode, uint32_t session, uint32_t flags);
/* All opens of a session end. */
void model_session_end(struct model_fs *fs, uint32_t session);

int model_link(struct model_fs *fs, struct model_inode *inode, const struct model_place *place);
int model_unlink(struct model_fs *fs, const struct model_place *place);
int model_rmdir(struct model_fs *fs, const struct model_place *place);
int model_rename(struct model_fs *fs, const struct model_place *from, const struct model_place *to,
                 uint32_t flags);

struct model_change {
    uint32_t set; /* enum model_set */
    uint32_t mode;
    uint32_t uid;
    uint32_t gid;
    uint64_t size;
    uint32_t session;
    bool opened; /* by a file that the session has open for writing */
};
int model_setattr(struct model_fs *fs, const struct model_who *who, struct model_inode *inode,
                  const struct model_change *change);
int model_access(const struct model_who *who, const struct model_inode *inode, uint32_t mask);
/* Bytes up to end were written by an open file; set-id bits go unless who is root. */
void model_written(struct model_inode *inode, const struct model_who *who, uint64_t end);
