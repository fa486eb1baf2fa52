/* What transactions across logs hold of a group's names and inodes, in memory.
 *
 *     claim     the coordinator's, from its first prepare to the decision: nobody else changes it
 *     promise   a participant's, from its prepare to commit or abort: nobody else changes it, or
 *               reads it, as nobody here knows which of the two it will be
 *
 * Who meets one waits (-ERR_PENDING), holding nothing; an operation that comes from another
 * coordinator does not wait: it is told (-ERR_CHANGED) and begins anew (docs/internals/halves.md).
 *
 * Thread: the group's step.  Memory: stakes are linked; their owners have them. */
#pragma once
#include "base/list.h"
#include "kv/kv_key.h"
#include "meta/names.h"

struct promise;
struct transaction;

enum stake_kind {
    STAKE_NAME,   /* of a directory, all of one hash */
    STAKE_WITHIN, /* a directory in which a name is held: it may not go; many may hold that */
    STAKE_INODE,
    STAKE_MOVED, /* an inode's parent */
    STAKE_COUNT, /* the count of moves */
};

enum stake_use { STAKE_READ, STAKE_CHANGE };

struct stake_what {
    enum stake_kind kind;
    uint64_t ino;  /* of the inode or directory; 0: of the count */
    uint64_t hash; /* of a name */
};

struct stake {
    struct list_node node;
    struct stake_what what;
    const void *owner; /* a promise or a crossing */
    bool claim;
};

enum { STAKE_BUCKETS = 1024 };

struct stakes {
    struct list buckets[STAKE_BUCKETS];
    uint32_t count;
    uint64_t looks; /* at one of them, in search of those that are in the way */
};

void stakes_init(struct stakes *stakes);
void stakes_add(struct stakes *stakes, struct stake *stake);
void stakes_remove(struct stakes *stakes, struct stake *stake);

static inline struct stake_what stake_name(struct ino directory, uint64_t index) {
    return (struct stake_what){STAKE_NAME, directory.value, index / NAME_RANKS_MAX};
}
static inline struct stake_what stake_of(enum stake_kind kind, struct ino ino) {
    return (struct stake_what){kind, ino.value, 0};
}

/* For who reads or changes that: 0, -ERR_PENDING, -ERR_CHANGED. What belongs to the size of a file
 * (reopen, settle, eviction) passes. */
MUST_CHECK int stakes_meet(struct transaction *transaction, struct stake_what what,
                           enum stake_use use);
/* Who has promised to change the inode; NULL: nobody. */
struct promise *stakes_promise_of(struct stakes *stakes, struct ino ino);
/* Before a row is staged: what it is a row of is noted with the transaction, so that a coordinator
 * can claim it. */
MUST_CHECK int stakes_touch(struct transaction *transaction, const struct kv_key *key);
