/* Files that one asker alone writes, fsyncs, closes and unlinks or renames another one over, and
 * what they hold when a power failure of the metadata target brings one back: all of it, as it had
 * been fsynced. A name that another file was renamed to is always one of the two.
 *
 *     create -> write -> fsync -> release -> unlink --> lookup (gone, or back) -> open -> read
 *                          `-> mknod of the other one -> rename -> lookup (it, or back) -> ..
 *
 * Errors on the way give the file up; they are others' to judge.
 *
 * Thread: the world's.  Memory: the caller's. */
#pragma once
#include "base/types.h"

struct shoal_request;
struct shoal_file;

enum { VICTIM_NAME_BYTES = 32, VICTIM_BYTES_MAX = 100000, VICTIM_PROBLEM_BYTES = 200 };

enum victim_stage {
    VICTIM_NONE,
    VICTIM_MADE,
    VICTIM_WRITTEN,
    VICTIM_SYNCED,
    VICTIM_CLOSED,
    VICTIM_COVERED, /* the file that is renamed over it is there */
    VICTIM_UNLINKED,
    VICTIM_BACK,
    VICTIM_OPEN,
};

/* Zeroed at the start. */
struct victim {
    enum victim_stage stage;
    char name[VICTIM_NAME_BYTES];
    char cover[VICTIM_NAME_BYTES];
    uint64_t cover_ino; /* 0: it is unlinked */
    bool spoiled;       /* a write or fsync of it failed: it is closed and left alone */
    struct shoal_file *file;
    uint64_t ino;
    uint64_t number;
    uint64_t size;
    uint64_t unlinked_ns; /* when that, or the rename, was asked for */
    uint32_t look_count;
};

/* The next question; buffer of VICTIM_BYTES_MAX is the asker's until the answer. */
void victim_ask(struct victim *victim, uint64_t number, uint64_t now_ns, void *buffer,
                struct shoal_request *ret_request);
/* lost_ns: when the metadata target lost power last; 0: never. False: it cannot be. */
bool victim_answered(struct victim *victim, const struct shoal_request *request, uint64_t lost_ns,
                     char problem[VICTIM_PROBLEM_BYTES]);
/* The answer says nothing: what is open of it goes back next, and it is left alone. */
void victim_left(struct victim *victim);
void victim_forget(struct victim *victim);
