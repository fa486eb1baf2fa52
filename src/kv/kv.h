/* The engine of a metadata group, an OST and the manager: a state that is the fold of a log.
 *
 *     kv_begin .. kv_put/patch/delete/note .. kv_commit   (many)   kv_seal
 *          |                                                 |         |
 *          |    changes (B+tree in memory) <---- applied ----+         v
 *          v                                            one record in the ring (shared memory)
 *     kv_get: changes -> frozen -> base                      | sync point (fsync, 1 s, half full)
 *                                                            v
 *              base (LMDB or memory) <--- checkpoint --- disk log (overwritten in place)
 *
 * Keys are 24 bytes and sort by memcmp (kv_key.h). Values are up to KV_VALUE_BYTES_MAX.
 *
 * Thread: one actor's step. Completions of I/O call options.wake from any thread; then kv_step.
 * Memory: taken at open from options; values returned stay valid until the next kv_commit,
 * kv_abort, kv_seal or kv_step. */
#pragma once
#include "base/list.h"
#include "kv/kv_admit.h"
#include "kv/kv_key.h"
#include "kv/kv_options.h"

enum {
    KV_VALUE_BYTES_MAX = 1946,
    KV_REPLY_BYTES_MAX = 384,
    KV_NOTE_BYTES_MAX = 64,
    KV_ROW_RECORD_BYTES = 34, /* that a row takes in a record, besides its value or patch */
    KV_NOTE_RECORD_BYTES = 8  /* that a note does, besides its bytes */
};
/* An outcome: what a mutation answered, kept until its session no longer awaits it. */
struct kv_outcome {
    struct slot slot;
    struct session_id session;
    uint64_t sequence; /* 0: only the floor is told */
    uint64_t floor;    /* lowest sequence that the session still awaits from this log */
    int result;
    struct bytes reply;
};

/* Recovers: base, disk log, ring; flushes the new term. Before it serves, the owner takes a sync
 * point (kv_sync to kv_position), which makes what the ring held durable. (start)
 * -ERR_CORRUPT, -ERR_NEWER_FORMAT: ret_problem says what is broken: the log below a later
 * durable_upto, or the base. -ERR_IN_USE: the ring has another size and what the log lacks. */
MUST_CHECK int kv_open(const struct kv_options *options, struct kv **ret_kv, char ret_problem[256]);
/* Takes a sync point and, with space, a checkpoint; removes the ring. The owner mutates nothing
 * from here on, and reads nothing once done was called. */
void kv_stop_start(struct kv *kv, void (*done)(void *context, int result), void *context);
/* Nothing is in flight: before its start, after stop's done, or after kv_idle. Takes NULL. */
void kv_close(struct kv *kv);
/* Whether no I/O and no job of the engine's is in flight; wake follows each one's end. */
bool kv_is_idle(const struct kv *kv);
/* For the simulator, whose processes die: takes memory back, whatever is in flight. */
void kv_abandon(struct kv *kv);

/* 0, -ERR_NOT_FOUND, -ERR_PENDING (wake follows when the row is there), -ERR_CORRUPT, -ERR_IO. Sees
 * what the open transaction has staged. */
MUST_CHECK int kv_get(struct kv *kv, const struct kv_key *key, struct bytes *ret_value);

/* Ascending walk over [from, to), not of what is staged: first call with cursor->key = from. Moves
 * on, also when it answers -ERR_PENDING; who waits keeps his cursor: behind a thousand deleted rows
 * the first ones may be out of memory again. -ERR_NOT_FOUND at the end, -ERR_CORRUPT when it has
 * moved past a row of wrong checksum. */
struct kv_cursor {
    struct kv_key key;
    struct kv_key end;
    bool inclusive; /* true before the first row: key itself may match */
    /* So many deleted rows it passes at a time, then it answers -ERR_PENDING and wakes. 0: all */
    uint32_t skips_max;
};
void kv_cursor_init(struct kv_cursor *cursor, const struct kv_key *from, const struct kv_key *to);
MUST_CHECK int kv_next(struct kv *kv, struct kv_cursor *cursor, struct bytes *ret_value);
/* The last row of [from, to), likewise. -ERR_NOT_FOUND, -ERR_PENDING. */
MUST_CHECK int kv_last(struct kv *kv, const struct kv_key *from, const struct kv_key *to,
                       struct kv_key *ret_key, struct bytes *ret_value);

/* A transaction: all of it becomes part of the open record at kv_commit, nothing at kv_abort.
 * Staging beyond what was granted is the owner's mistake. Values are copied. */
void kv_begin(struct kv *kv, const struct kv_grant *grant);
MUST_CHECK int kv_put(struct kv *kv, const struct kv_key *key, struct bytes value);
/* Overwrites value[offset, offset + patch.size), growing the row with zeros as needed (also from
 * nothing). The row must have been read in this step. */
MUST_CHECK int kv_patch(struct kv *kv, const struct kv_key *key, size_t offset, struct bytes patch);
MUST_CHECK int kv_delete(struct kv *kv, const struct kv_key *key);
MUST_CHECK int kv_note(struct kv *kv, struct bytes note); /* comes back by replay_note */
MUST_CHECK int kv_outcome_put(struct kv *kv, const struct kv_outcome *outcome);
/* Answers the position of the record that will hold it. */
uint64_t kv_commit(struct kv *kv);
void kv_abort(struct kv *kv);
/* Closes the open record, if any, into the ring: now its transactions survive kill -9 and replies
 * that depend on them may leave. Answers the newest position. */
uint64_t kv_seal(struct kv *kv);
/* -ERR_NOT_FOUND: run it; -ERR_OUTDATED: below the floor. */
MUST_CHECK int kv_outcome_get(struct kv *kv, struct slot slot, struct session_id session,
                              uint64_t sequence, struct kv_outcome *ret_outcome);
/* An outcome of sequence 0 with this floor would raise what is kept of the session. */
bool kv_floor_is_due(const struct kv *kv, struct session_id session, uint64_t floor);
/* Forgets an ended session's. */
MUST_CHECK int kv_outcome_drop(struct kv *kv, struct session_id session);
uint32_t kv_outcomes_max(const struct kv *kv);
uint32_t kv_outcomes_of(const struct kv *kv, struct session_id session); /* that are kept */
struct log_id kv_log_id(const struct kv *kv);
struct log_life kv_life(const struct kv *kv);     /* of this open */
uint64_t kv_position(const struct kv *kv);        /* newest sealed record */
uint64_t kv_synced_position(const struct kv *kv); /* durable up to here */
uint64_t kv_term(const struct kv *kv);            /* rises at each open */
/* What that term acknowledged beyond this is gone: the least that a start since has found. 0: too
 * many have been since; UINT64_MAX: none. */
uint64_t kv_survived_position(const struct kv *kv, uint64_t term);
uint16_t kv_losses(const struct kv *kv); /* starts that found neither a stop nor a ring */
int kv_failure(const struct kv *kv);     /* 0, or what undid all since kv_seal; from any thread */

/* Wait until position is durable (a sync point is begun when none covers it). done runs from
 * kv_step, or at once when it is durable already, or there is no record of that position and none
 * is open that will have it: -ERR_INVALID. result: 0 or the error that stopped the log. */
struct kv_waiter {
    struct queue_node node;
    uint64_t position;
    void (*done)(struct kv_waiter *waiter, int result);
};
void kv_sync(struct kv *kv, struct kv_waiter *waiter, uint64_t position);

/* Within a transaction: space in the ring's data area, in one piece, freed by the sync point that
 * covers its record. *ret_offset names it in a note; kv_data_at finds it after recovery. */
void *kv_data_allocate(struct kv *kv, size_t size_bytes, uint64_t *ret_offset);
void *kv_data_at(struct kv *kv, uint64_t offset, size_t size_bytes);
void kv_data_synced(struct kv *kv, int result);
void kv_step(struct kv *kv); /* progress: call on wake and on every tick */
struct kv_counters {
    uint64_t records, record_bytes, sync_points, checkpoints_begun, checkpoints, checkpoint_rows;
    uint64_t replayed_records, replayed_ring_records, duplicates_refused, pending_reads, stalls;
    uint64_t sync_points_unasked; /* by the clock, a ring half full or a checkpoint alone */
    uint64_t outcomes_refused, changes_bytes, ring_used_bytes, disk_log_used_bytes;
    struct kv_levels levels;
};
void kv_counters_get(const struct kv *kv, struct kv_counters *ret_counters);
/* Of the base, not of what is not in it yet: bytes that rows take, and that they may take beyond
 * these, by its own limit and by what is free on the file system below. */
struct kv_space {
    uint64_t used_bytes;
    uint64_t available_bytes; /* 2^56 at most; 0: a checkpoint waits for space */
};
void kv_space_get(struct kv *kv, struct kv_space *ret_space);
/* For tests: walks over everything; false, and what is wrong, where something does not hold that
 * always must between two steps. */
MUST_CHECK bool kv_check(const struct kv *kv, char ret_problem[256]);
