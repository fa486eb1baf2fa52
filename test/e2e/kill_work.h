/* The kill test's operations: chosen by chance, run through the mount, told to the model. */
#pragma once
#include "kill_tree.h"

/* Begins each WORK_MARK_EVERY bytes of a write: who looks at the wire must not find it there. */
#define WORK_MARK "not on the wire!"
enum { WORK_MARK_EVERY = 64 };

enum work_kind {
    WORK_CREATE,
    WORK_OPEN,
    WORK_WRITE,
    WORK_READ,
    WORK_RESIZE, /* ftruncate */
    WORK_FSYNC,
    WORK_CLOSE,
    WORK_MAKE, /* mkdir, mknod, symlink */
    WORK_LINK,
    WORK_UNLINK,
    WORK_RMDIR,
    WORK_RENAME,
    WORK_TRUNCATE,
    WORK_CHMOD,
    WORK_CHOWN,
    WORK_UTIMES,
    WORK_SYNC,
    WORK_UNNAMED, /* open with O_TMPFILE */
    WORK_NAME,    /* linkat of an open file */
};

struct work {
    enum work_kind kind;
    struct place from;
    struct place to;
    struct open_file *handle;
    struct model_inode *inode; /* that bytes or attributes are changed of */
    uint32_t flags;            /* of open or rename, or the owner */
    uint32_t mode;             /* with type */
    uint64_t offset;
    uint64_t size;
    uint64_t seed;  /* of the bytes */
    uint64_t first; /* of these, the one at offset */
    int64_t mtime_ns;
    int fd;    /* what open answered */
    int error; /* errno, 0 for success */
    uint64_t written;
};

/* False: nothing suits just now. */
bool work_choose(struct tree *tree, struct work *ret_work);
/* Fills error, fd and written. */
void work_run(struct tree *tree, struct work *work);
/* Does the same to the model; answers the errno that the operation must have had. */
int work_apply(struct tree *tree, struct work *work);
/* What a read or a look at an open file must give; complains. */
void work_verify(struct tree *tree, const struct work *work);
/* The byte of a write at an offset within it. */
uint8_t work_byte(uint64_t seed, uint64_t index);
const char *work_name(const struct work *work);
