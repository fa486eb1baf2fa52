/* One run of an operation, or of a step of the group's own jobs: reads of rows, staged changes of
 * rows, staged effects in memory. All of it takes effect at transaction_commit, nothing before.
 *
 * A read answers -ERR_PENDING when the row is not in memory; the operation passes that on and runs
 * again from its beginning. A row that was read stays valid until commit or abort, also across
 * staging, whose room was set aside at the beginning: it fails only with the log itself.
 *
 * Thread: the group's.  Memory: on the stack of the group's step. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include "kv/kv.h"
#include "meta/rows.h"
#include "meta/stakes.h"
#include "wire/wire_types.h"

struct call;
struct crossing;
struct group;
struct promise;
struct session;

enum effect_kind {
    EFFECT_OPEN,     /* the session opens ino with flags; the W row is staged by the operation */
    EFFECT_CLOSE,    /* the session closes one open of ino that had flags */
    EFFECT_REOPEN,   /* the session has ino open as often as counts says */
    EFFECT_ORDER,    /* an order row was made */
    EFFECT_SETTLE,   /* the size of ino must be asked of the OSTs */
    EFFECT_COUNT,    /* they must be asked how many blocks they have of ino */
    EFFECT_ATTACH,   /* the session of ino's value (not an ino) is attached */
    EFFECT_ENDED,    /* the call tells of sessions that have ended */
    EFFECT_MOVES,    /* the session has counts[0] moves of ino to chunks under way */
    EFFECT_PROMISED, /* the halves of the call are promised */
    EFFECT_KEPT,     /* transaction->promise is done */
    EFFECT_DROPPED,  /* transaction->promise is gone */
    EFFECT_SLOTS,    /* slots.moved is so from now on */
};

struct effect {
    enum effect_kind kind;
    struct ino ino;
    uint32_t flags;
    uint32_t counts[2];
    uint32_t uid;  /* of an open: who asks for it */
    uint64_t name; /* of an open or close by name; 0: it is counted */
};

/* Orders and orphans of a transaction's halves among them; stakes of one operation. */
enum { EFFECTS_MAX = 8, TOUCHED_MAX = 8 };

struct transaction {
    struct group *group;
    struct call *call;         /* NULL in the group's own jobs */
    struct session *session;   /* NULL there and for calls that need none */
    uint64_t epoch;            /* of all that it changes */
    int64_t now_ns;            /* since 1970 */
    bool staging;              /* between kv_begin and commit or abort */
    bool changed;              /* something is staged */
    bool stalled;              /* PENDING is for something that the group itself does */
    bool yields;               /* PENDING is for others' turn */
    bool after_sync;           /* the answer leaves when the record is on disk */
    bool at_sync;              /* likewise, and nobody asks for that: the next sync point will do */
    uint64_t sync_position;    /* likewise, of an earlier record; 0: none */
    bool repeatable;           /* running it again is right: no outcome is kept */
    bool held;                 /* the reply is left to a job of the group */
    bool met_stake;            /* PENDING is for a transaction across logs */
    bool outdated;             /* PENDING is for looks that must be taken anew */
    uint64_t moves;            /* the count of moves, before this one; see count.h */
    struct crossing *crossing; /* of the call; NULL: nothing of it is elsewhere so far */
    struct promise *promise;   /* that is being kept */
    int answer;                /* what a run that succeeded answers: 0 but for a lost race */
    struct ino damaged;        /* what it has found wrong, for the line in the log */
    const char *damage;        /* in words; NULL: nothing */
    uint32_t inos_used;
    uint32_t generations_used;
    int64_t inode_delta;
    int64_t directory_delta; /* of these */
    uint32_t effect_count;
    uint32_t touched_count;
    struct stake_what touched[TOUCHED_MAX]; /* what it has staged rows of */
    struct effect effects[EFFECTS_MAX];
};

/* One that stages nothing. */
void transaction_begin_read(struct transaction *transaction, struct group *group);
/* One that stages up to `need`. -ERR_PENDING, -ERR_NO_SPACE, -ERR_BUSY: as kv_admit says, and
 * nothing has begun. */
MUST_CHECK int transaction_begin(struct transaction *transaction, struct group *group,
                                 enum kv_class message_class, const struct kv_need *need);
/* The end of a run that has staged nothing: its effects. */
void transaction_end_read(struct transaction *transaction);
/* Answers the position of the record. */
uint64_t transaction_commit(struct transaction *transaction);
void transaction_abort(struct transaction *transaction);

MUST_CHECK int transaction_get(struct transaction *transaction, const struct kv_key *key,
                               struct bytes *ret_value);
MUST_CHECK int transaction_put(struct transaction *transaction, const struct kv_key *key,
                               const void *row, size_t size_bytes);
MUST_CHECK int transaction_patch(struct transaction *transaction, const struct kv_key *key,
                                 size_t offset, struct bytes patch);
MUST_CHECK int transaction_delete(struct transaction *transaction, const struct kv_key *key);
/* The next row of [cursor, end); does not see what this transaction staged. */
MUST_CHECK int transaction_next(struct transaction *transaction, struct kv_cursor *cursor,
                                struct bytes *ret_value);
/* A walk that has to wait, with nothing in its answer yet, goes on where it was when its call runs
 * again: behind many deleted rows it would else never arrive. */
void transaction_walk_keep(struct call *call, const struct kv_cursor *cursor);
void transaction_walk_resume(const struct call *call, struct kv_cursor *cursor);
/* A walk that has gone on for long enough lets others run and goes on behind its row, with what its
 * answer has by then. */
MUST_CHECK int transaction_walk_yield(struct transaction *transaction,
                                      const struct kv_cursor *cursor);
/* The call runs again behind that. */
bool transaction_walk_goes_on(const struct call *call);
MUST_CHECK int transaction_outcome(struct transaction *transaction,
                                   const struct kv_outcome *outcome);

void transaction_effect(struct transaction *transaction, struct effect effect);
/* For an operation that has to wait for something else than a row. */
MUST_CHECK static inline int transaction_stall(struct transaction *transaction) {
    transaction->stalled = true;
    return -ERR_PENDING;
}
/* For an operation that meets rows that are whole each by itself and contradict one another: it
 * ends with -ERR_CORRUPT, and the log gets a line with inode and words. */
MUST_CHECK static inline int transaction_damage(struct transaction *transaction, struct ino ino,
                                                const char *damage) {
    transaction->damaged = ino;
    transaction->damage = damage;
    return -ERR_CORRUPT;
}
/* Draw numbers; -ERR_PENDING until there are any on disk. */
MUST_CHECK int transaction_ino(struct transaction *transaction, struct slot slot,
                               struct ino *ret_ino);
MUST_CHECK int transaction_generation(struct transaction *transaction, uint32_t *ret_generation);

/* Fields from `from` up to, not including, `to` of a changed copy of a row, as one patch. */
#define TRANSACTION_PATCH(transaction, key, row, from, to)                                         \
    transaction_patch(                                                                             \
        transaction, key, offsetof(__typeof__(*(row)), from),                                      \
        (struct bytes){(const uint8_t *)(row) + offsetof(__typeof__(*(row)), from),                \
                       offsetof(__typeof__(*(row)), to) - offsetof(__typeof__(*(row)), from)})
