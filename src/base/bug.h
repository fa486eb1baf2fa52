/* Known bugs, built in on purpose, so that tests can prove that they would be caught.
 *
 *     if (ready || BUG(EARLY_THING))      constant false in every ordinary build
 *
 * -Dbug=NAME builds one in for good; -Dbug=any builds all of them in, asleep, and bug_choose wakes
 * one. Each is one place in the code. */
#pragma once
#include "base/types.h"

/* Enumerator, name of the command line. */
#define BUGS(X)                                                                                    \
    X(NONE, "none")                         /* */                                                  \
    X(EARLY_REPLY, "early-reply")           /* an answer before its record is in the ring */       \
    X(EARLY_REUSE, "early-reuse")           /* a freed block written before its sync point */      \
    X(LOST_OUTCOME, "lost-outcome")         /* outcomes are not kept over a restart */             \
    X(EARLY_RECORD, "early-record")         /* a record on disk before its data */                 \
    X(EARLY_CHECKPOINT, "early-checkpoint") /* a checkpoint past the synced position */            \
    X(EARLY_FREE, "early-free")             /* an order to OSTs before its record is on disk */    \
    X(NO_FLUSH, "no-flush")                 /* the log is not flushed */

enum bug {
#define BUG_ENUMERATOR(name, text) BUG_##name,
    BUGS(BUG_ENUMERATOR)
#undef BUG_ENUMERATOR
};

#if defined(SHOAL_BUG_ANY)
extern enum bug bug_chosen; /* set before any thread starts */
#elif defined(SHOAL_BUG)
#define bug_chosen SHOAL_BUG
#else
#define bug_chosen BUG_NONE
#endif
#define BUG(name) (bug_chosen == BUG_##name)

/* False: no such bug, or this build does not have it. */
bool bug_choose(const char *name);
