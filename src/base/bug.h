/* Known bugs, built in on purpose, so that tests can prove that they would be caught.
 *
 *     if (ready || BUG(EARLY_THING))      constant false in every ordinary build
 *
 * -Dbug=NAME builds one in for good; -Dbug=any builds all of them in, asleep: bug_choose wakes one
 * (of a daemon: the one that the environment's SHOAL_BUG names). Each is one place in the code. */
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
    X(NO_FLUSH, "no-flush")                 /* the log is not flushed */                           \
    X(LATE_DONE, "late-done")               /* a stop is answered with an I/O in flight */         \
    X(FILLER_HEAD, "filler-head")           /* the filler moves the ring's head by itself */       \
    X(STALE_COUNT, "stale-count")           /* a seal leaves its count of operations behind */     \
    X(FULL_LOG, "full-log")                 /* control and release never ask for log */            \
    X(FULL_OUTCOMES, "full-outcomes")       /* room is asked for before the floor is raised */     \
    X(CUT_FLOORS, "cut-floors")             /* outcomes below their floor are restored */          \
    X(FREEZE_ROOM, "freeze-room")           /* no room is kept for the rows of outcomes */         \
    X(UNASKED, "unasked")                   /* control is granted without being counted */         \
    X(DATA_WRAP, "data-wrap")               /* admission ignores what is skipped of data */        \
    X(TAIL_EARLY, "tail-early")             /* the log's tail moves without its superblock */      \
    X(DROP_ROWS, "drop-rows")               /* a row that finds no room to be deleted stays */     \
    X(OFFSET_32, "offset-32")               /* the ring's offsets have 32 bits */                  \
    X(NEWEST_FIRST, "newest-first")         /* the newest record is named before it is whole */    \
    X(UNFLUSHED_DECISION, "unflushed-decision") /* a commit is told before it is on disk */        \
    X(HALF_LIST, "half-list")                   /* who is named as ended stays attached */         \
    X(DEAF_MDT, "deaf-mdt")                     /* who is named as ended stays at its MDT */       \
    X(SILENT_FLOOR, "silent-floor")             /* an idle session does not tell its floors */     \
    X(DEAF_EVICTION, "deaf-eviction")           /* evicts all while it hears few nodes */          \
    X(EARLY_GIVE, "early-give")                 /* slots are given before that is on disk */       \
    X(LOST_WAITS, "lost-waits")                 /* an order waits for a target that is lost */     \
    X(EARLY_KEY, "early-key")                   /* signs by a key that others may not have */      \
    X(TWO_LIVES, "two-lives")                   /* a life is registered while another stands */    \
    X(EARLY_START, "early-start")               /* a ring begins behind what is not flushed */     \
    X(EARLY_READ, "early-read")                 /* a log is read before all is in it */            \
    X(AWAY_WAITS, "away-waits")                 /* all wait for a storage target that is away */   \
    X(NEW_PATIENCE, "new-patience")             /* patience counts from each call on */            \
    X(KEPT_TURN, "kept-turn")                   /* a turn of moves never ends */                   \
    X(OTHER_BASE, "other-base")                 /* a map's change is applied to any map */         \
    X(UNPUSHED, "unpushed")                     /* who waits for a newer map isn't answered */     \
    X(IDLE_STAYS, "idle-stays")                 /* who is idle does not come back to a target */   \
    X(LEFT_JOINS, "left-joins")                 /* joins that were gathered wait for others */     \
    X(EARLY_NUMBER, "early-number")             /* keys are renewed though a node lags behind */   \
    X(KEPT_PROMISE, "kept-promise")             /* what is spent of promised space stays kept */   \
    X(UNFENCED_LOSS, "unfenced-loss")   /* a file is told though who is evicted may write it */    \
    X(UNSETTLED_SIZE, "unsettled-size") /* an evicted session is closed without its sizes */       \
    X(KEPT_WRITERS, "kept-writers")     /* whose close power took counts as a writer on */         \
    X(EARLY_OVER, "early-over")         /* a loss is over while sessions may write on */           \
    X(LATE_PARENT, "late-parent")       /* attributes that come late hide newer ones */            \
    X(LOST_ALONE, "lost-alone")     /* a lost coordinator's promise is broken without asking */    \
    X(BLIND_COUNT, "blind-count")   /* an evicted writer's blocks are not asked for */             \
    X(KEPT_CALL, "kept-call")       /* a transaction's call that fails is under way for ever */    \
    X(KEPT_OPEN, "kept-open")       /* what an interrupted open was granted is not given back */   \
    X(BLIND_BELIEF, "blind-belief") /* chunks are given back that others may have written */       \
    X(LOW_REBUILT, "low-rebuilt")   /* a rebuilt manager goes on at the highest numbers known */

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
