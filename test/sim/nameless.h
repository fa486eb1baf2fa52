/* Files that one asker alone makes without a name, writes, and gives one, or not.
 *
 *     mkdir -> create -> write -> link -> release -> lookup -> unlink -> getattr (gone) -> rmdir
 *                          |        '-- not allowed: as without --.         ^
 *                          '-----------------------> release ---------------'
 *
 * The file is made in the root and named in the directory, or the other way round: so the two may
 * be kept by different targets. Who is given a name has it, with one link and all that was written;
 * who is not is gone with its last close. Only a power failure of a metadata target since its life
 * began may have made it otherwise. A question that is given up, or refused for a reason that a
 * fault explains, ends the life: the file is closed and left alone, wherever it has come to.
 *
 * Thread: the world's.  Memory: the caller's. */
#pragma once
#include "base/types.h"

struct shoal_request;
struct shoal_file;

enum { NAMELESS_NAME_BYTES = 32, NAMELESS_BYTES_MAX = 40000, NAMELESS_PROBLEM_BYTES = 200 };

enum nameless_stage {
    NAMELESS_NONE,
    NAMELESS_PLACE, /* the directory is there */
    NAMELESS_MADE,
    NAMELESS_WRITTEN,
    NAMELESS_NAMED,
    NAMELESS_CLOSED, /* and named */
    NAMELESS_FOUND,
    NAMELESS_REFUSED, /* it was given none; or: */
    NAMELESS_SPOILED,
    NAMELESS_GONE,
    NAMELESS_OVER,
};

/* Zeroed at the start. */
struct nameless {
    enum nameless_stage stage;
    char place[NAMELESS_NAME_BYTES]; /* of the directory */
    char name[NAMELESS_NAME_BYTES];
    uint64_t number;
    uint64_t directory;
    uint64_t ino;
    uint64_t size;
    bool size_told; /* by its close */
    struct shoal_file *file;
    uint64_t began_ns;
};

/* The next question; buffer of NAMELESS_BYTES_MAX is the asker's until the answer. */
void nameless_ask(struct nameless *nameless, uint64_t number, uint64_t now_ns, void *buffer,
                  struct shoal_request *ret_request);
/* lost_ns: when a metadata target lost power last; 0: never. False: it cannot be. */
bool nameless_answered(struct nameless *nameless, const struct shoal_request *request,
                       uint64_t lost_ns, char problem[NAMELESS_PROBLEM_BYTES]);
/* Nobody knows what became of what was asked, or a fault explains its refusal. */
void nameless_left(struct nameless *nameless);
/* The client is gone. */
void nameless_forget(struct nameless *nameless);
