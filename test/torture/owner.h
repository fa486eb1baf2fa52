/* What owns an engine under torture: a model of a group, or the real store.
 *
 * The schedule calls act and turn; when an engine has opened on what a crash has left, check
 * compares it with what was told before the crash, and the others take it through its first sync
 * point, a checkpoint and a stop.
 *
 * Thread: one.  Memory: the owner's. */
#pragma once
#include "kv/kv.h"
#include "machine.h"
#include "totals.h"

struct owner;

struct owner_ops {
    /* A fresh engine on what is there; checks nothing. */
    int (*open)(struct owner *owner, char problem[256]);
    /* The process dies. */
    void (*abandon)(struct owner *owner);
    /* Ends well; then NULL is open. */
    void (*close)(struct owner *owner);
    void (*stop)(struct owner *owner, void (*done)(void *context, int result), void *context);
    /* One thing that clients want, as drawn. */
    void (*act)(struct owner *owner);
    /* Completions have come, or time: the engine goes on. */
    void (*turn)(struct owner *owner);
    /* It has opened after a crash before event `point`, by power or not. */
    void (*check)(struct owner *owner, size_t point, bool power);
    /* The schedule goes on with what has opened; a crash (or a stop) lies behind. */
    void (*resume)(struct owner *owner);
    /* The machine loses power: what was only sealed is owed no more. */
    void (*powered)(struct owner *owner);
    /* Clients do what they must: raise floors, ask for the largest of each class, and again.
     * True: all was taken. */
    bool (*content)(struct owner *owner);
    /* Behind that: what is left is what clients still await. */
    void (*left)(struct owner *owner);
    /* The settings of the next life are drawn, its ring's sizes among them. */
    void (*settings)(struct owner *owner);
    /* Other sizes of the ring only. */
    void (*resize)(struct owner *owner, struct prng *prng);
    /* The ring shall have these sizes; false: they are those that are set. */
    bool (*ring_be)(struct owner *owner, size_t ring_bytes, size_t data_bytes);
    /* Those that it had at an event. */
    void (*settings_of)(struct owner *owner, size_t point);
    /* The part of the ring's data area that a note names. */
    void (*named)(struct bytes note, uint64_t *ret_offset, uint64_t *ret_size);
    void (*free)(struct owner *owner);
};

struct owner {
    const struct owner_ops *ops;
    const char *name;
    struct machine *machine;
    struct prng *prng; /* of the schedule */
    uint64_t *counts;  /* of the totals of this owner, or what nobody looks at */
    struct kv *kv;     /* NULL between lives */
    bool opening;
    bool holds_up;   /* a life of many sync points, of all classes, and of no checkpoint */
    bool may_flood;  /* memory for changes may be filled within one step */
    bool in_batch;   /* many clients come at once, of all classes */
    bool recovering; /* what happens now is not of the schedule: its model stays as it is */
    const char *ring_name, *log_path;
    size_t ring_bytes, data_bytes; /* of the ring of the life at hand, or the last one */
    uint16_t losses;               /* that the disk log counted before the opening */
    bool may_lose;                 /* a start that failed went by one superblock: it counted one */
    uint64_t found; /* the position that the first opening behind a crash has found */
    unsigned base;  /* of the machine's */
    char waits[80]; /* what for, as a failure has it */
};

/* A fresh engine on what is there. A ring that has other sizes than are set, and holds what the
 * disk log lacks, is refused, and opens with its own. Answers what became of the one that was
 * found: TOTAL_RINGS_SMALLER, TOTAL_RINGS_LARGER, TOTAL_RINGS_KEPT, or TOTAL_COUNT. */
enum total owner_open(struct owner *owner);
/* Whether the ring that is there has other sizes than are set; from then on they are. */
bool owner_ring_differs(struct owner *owner);
/* Of time and turns; each turn lets what is under way go on. */
void owner_wait(struct owner *owner, bool (*done)(struct owner *owner), const char *what);
/* Everything there is, made durable; a checkpoint; the end. */
void owner_sync(struct owner *owner);
void owner_checkpoint(struct owner *owner);
void owner_stop(struct owner *owner);
/* A stop as things are: disks may be full or fail, the log may have failed. Answers its result. */
int owner_end(struct owner *owner);
/* Nothing stands in the way any more: all of it moves within the time that it may take. */
void owner_lively(struct owner *owner);
void owner_kv_check(struct owner *owner);
/* The newer whole one that its log has on disk; zeros: none is there. */
struct log_superblock;
struct log_superblock owner_superblock(const struct owner *owner);
