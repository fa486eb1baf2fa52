/* A library that stands before the C library in a program's search order (linked with, which does
 * what LD_PRELOAD does): each write, flush, change of size or of name of a file of the base is
 * counted, and one of them fails as it is told. It knows beside what of the data file is on disk,
 * so that a loss of power can be played.
 *
 * The state is the caller's, in memory that processes share: who opens the file next goes on with
 * it. One thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAULT_BLOCK_BYTES = 4096,
    FAULT_BLOCKS = 64, /* of a data file, at most */
    FAULT_PATH_BYTES = 256,
};

enum fault_kind {
    FAULT_NONE,
    FAULT_SHORT,  /* half is written and answered; else as EIO */
    FAULT_ENOSPC, /* nothing is done, here and below */
    FAULT_EDQUOT,
    FAULT_EIO,
    FAULT_EIO_DONE, /* EIO, and yet all is done and on disk */
    FAULT_EIO_LOST, /* EIO: clean in the page cache, not on disk; EIO, where nothing is flushed */
    FAULT_KILL_BEFORE,
    FAULT_KILL_HALF,  /* half is written, or on disk */
    FAULT_KILL_AFTER, /* a write that syncs is in the page cache only */
    FAULT_KINDS
};

struct faults {
    char root[FAULT_PATH_BYTES]; /* calls on files below count */
    char name[FAULT_PATH_BYTES]; /* the data file */
    uint64_t calls;              /* till now */
    uint64_t at;                 /* the call that fails; 0: none */
    uint64_t width;              /* so many calls in a row fail */
    enum fault_kind kind;
    uint64_t struck; /* calls that failed */
    /* The data file, and its name, as far as they are on disk. */
    bool named;
    uint64_t disk_bytes;
    bool dirty[FAULT_BLOCKS]; /* in the page cache, not on disk */
    uint8_t disk[FAULT_BLOCKS][FAULT_BLOCK_BYTES];
};

/* NULL: calls go through. */
void faults_use(struct faults *faults);
