/* Plays one seed on the files of one directory, seen by one or more mounts, beside a model in
 * memory. What is asked at one step, and of which file, is drawn; what must come of it is known.
 *
 *     DIRECTORY/0/n3    one of FSX_NAMES names in each of two folders, whose files may have
 *     DIRECTORY/1/n11   different layouts
 *
 * A file has a home, the mount by which all is asked of it, until it moves: then it is synced,
 * closed there and opened at another (close-to-open). Thread: one, which owns all of it. */
#pragma once
#include "base/prng.h"
#include "base/types.h"
#include <sys/types.h>

enum {
    FSX_MOUNTS_MAX = 4,
    FSX_FOLDERS = 2,
    FSX_NAMES = 10, /* of a folder */
    FSX_FILES_MAX = 8,
    FSX_HANDLES_MAX = 6, /* of a file */
    FSX_JOURNAL = 30,    /* steps of a file that are told when it is wrong */
    FSX_KINDS_MAX = 48,
    FSX_CAPACITY = 24 * 1024 * 1024, /* bytes of a file at most */
    FSX_PIECE = 2 * 1024 * 1024,     /* that are read or written at once, at most */
};

/* How a handle is open. */
enum fsx_way {
    FSX_PLAIN,
    FSX_APPEND,
    FSX_DIRECT,
    FSX_SYNC,
    FSX_READER,
    FSX_DIRECT_READER,
    FSX_WAYS,
};

struct fsx_handle {
    int fd;
    enum fsx_way way;
};

struct fsx_mapping {
    uint8_t *at; /* NULL: none */
    uint64_t offset;
    uint64_t bytes;
};

struct fsx_note {
    uint64_t step;
    char text[120];
};

struct fsx_file {
    struct fsx *fsx;
    bool used;
    bool may_be_named; /* made without a name, and had none */
    bool dirty;        /* by the mapping; not synced since */
    uint8_t *bytes;    /* FSX_CAPACITY of them, zero beyond size */
    uint64_t size;
    uint64_t limit;   /* which size does not pass */
    uint64_t highest; /* that size or a promise ever was, since it was empty */
    unsigned links;
    unsigned home;
    unsigned handle_count;
    struct fsx_handle handles[FSX_HANDLES_MAX];
    int lurker; /* a reader that stays open at a former home, unused; -1: none */
    struct fsx_mapping mapping;
    uint64_t ino;       /* 0: not seen yet */
    int64_t mtime_ns;   /* as it was seen last */
    int64_t written_ns; /* when the last write or copy that has ended was asked for */
    unsigned number;    /* of all files that were made */
    uint64_t notes;
    struct fsx_note journal[FSX_JOURNAL]; /* the newest is [(notes - 1) % FSX_JOURNAL] */
};

/* A file mapped in here and in the driver. */
struct fsx_state {
    uint64_t began_ns; /* of the call in flight, 0: none */
    uint64_t kind;     /* of that step */
    uint64_t calls;
    uint64_t steps;
    uint64_t kills; /* the driver's: all is compared when it has changed */
    uint64_t ends;  /* the driver's: 1 asks for the end */
    uint64_t met[FSX_KINDS_MAX];
};

struct fsx {
    uint64_t seed;
    struct prng prng;
    struct fsx_state *state;
    const char *mounts[FSX_MOUNTS_MAX]; /* the directory as each mount has it */
    unsigned mount_count;
    bool is_fuse; /* else a local file system, whose st_blocks count more than data */
    bool lacks[FSX_KINDS_MAX];
    bool lacks_direct;
    uint64_t direct_bytes; /* to which a direct read or write is aligned */
    unsigned files_made;
    uint64_t kills_seen;
    int64_t asked_ns; /* of the newest call: the clock of the kernel's own times */
    struct fsx_file files[FSX_FILES_MAX];
    struct fsx_file *names[FSX_FOLDERS * FSX_NAMES]; /* NULL: nothing has it */
    uint8_t *buffer;                                 /* FSX_PIECE and a page, page-aligned */
};

/* A step: false where it had nothing to do, which is no step of its kind. */
typedef bool fsx_step(struct fsx_file *file);

uint64_t fsx_now_ns(void);
/* Around each call, so that the driver sees which was in flight. */
void fsx_begin(struct fsx *fsx);
void fsx_end(struct fsx *fsx);
#define FSX_CALL(owner, call)                                                                      \
    __extension__({                                                                                \
        struct fsx *caller_ = (owner);                                                             \
        fsx_begin(caller_);                                                                        \
        __typeof__(call) called_ = (call);                                                         \
        fsx_end(caller_);                                                                          \
        called_;                                                                                   \
    })

/* What the file goes through now. */
void fsx_note(struct fsx_file *file, const char *format, ...) PRINTF_LIKE(2, 3);
/* One line with seed, step, file and place, then the file's journal; exit status 1. */
_Noreturn void fsx_wrong(struct fsx_file *file, uint64_t offset, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* A call that must not fail: fsx_wrong with its errno if result is negative. */
void fsx_must(struct fsx_file *file, int64_t result, const char *what, uint64_t offset);

static inline uint64_t fsx_below(struct fsx *fsx, uint64_t bound) {
    return prng_below(&fsx->prng, bound);
}

static inline bool fsx_one_in(struct fsx *fsx, uint64_t bound) {
    return prng_below(&fsx->prng, bound) == 0;
}
