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
#include "env/env.h"
#include "kv/kv_key.h"

enum { KV_VALUE_BYTES_MAX = 1946, KV_REPLY_BYTES_MAX = 384, KV_NOTE_BYTES_MAX = 64 };
struct kv;
struct kv_base_ops;
/* An outcome: what a mutation answered, kept until its session no longer awaits it. */
struct kv_outcome {
    struct slot slot;
    struct session_id session;
    uint64_t sequence;
    uint64_t floor; /* lowest sequence that the session still awaits from this log */
    int result;
    struct bytes reply;
};

struct kv_hooks { /* each may be NULL but wake */
    void (*wake)(void *context);
    /* A sync point begins: make durable all data that records up to cut name, then call
     * kv_data_synced once (now or later, from the step). */
    void (*data_sync)(void *context, uint64_t cut);
    void (*synced)(void *context, uint64_t synced);
    /* During kv_open: a note of a record; in_ring: its data may be in the ring's data area only. */
    int (*replay_note)(void *context, struct bytes note, uint64_t position, bool in_ring);
};
struct kv_options {
    struct env *env;
    const char *directory;   /* for disk log and base, relative to the env's root */
    const char *shared_name; /* of the ring; no other log's on this machine */
    bool ring_expected;      /* no ring is a loss, told by a line */
    const struct kv_base_ops *base;
    void *base_store;       /* kv_mem: its struct kv_mem_store */
    const char *root;       /* file system path of the env's root; LMDB only */
    uint8_t owner_id[16];   /* the target's id: a ring of another target is not replayed */
    size_t ring_bytes;      /* records; 32 MiB by default, at least 64 KiB */
    size_t ring_data_bytes; /* small writes; 0 for none */
    const char *ring_bytes_name, *ring_data_bytes_name; /* as settings, for messages; or NULL */
    uint64_t disk_log_bytes;    /* 512 MiB by default, at least 8 x ring_bytes */
    size_t changes_bytes_max;   /* hard limit of changes in memory; soft at half */
    uint64_t base_memory_bytes; /* base read in the step while its file is smaller than this */
    uint64_t sync_interval_ns;  /* 1 s by default */
    uint64_t checkpoint_ns;     /* between checkpoints, at most; 0: only when memory or log fill */
    uint32_t outcomes_max;      /* kept at a time; 0: 65,536 */
    void (*log)(void *context, const char *line); /* or NULL */
    void *log_context, *hook_context;
    struct kv_hooks hooks;
};
/* Recovers: base, disk log, ring; flushes the new term. Before it serves, the owner takes a sync
 * point (kv_sync to kv_position), which makes what the ring held durable. (start)
 * -ERR_CORRUPT, -ERR_NEWER_FORMAT: ret_problem says what is broken: the log below a later
 * durable_upto, or the base. -ERR_IN_USE: the ring has another size and what the log lacks. */
MUST_CHECK int kv_open(const struct kv_options *options, struct kv **ret_kv, char ret_problem[256]);
/* Takes a sync point and, with space, a checkpoint; removes the ring. No mutation follows. */
void kv_stop_start(struct kv *kv, void (*done)(void *context, int result), void *context);
void kv_close(struct kv *kv); /* durable or not; takes NULL */

/* 0, -ERR_NOT_FOUND, -ERR_PENDING (wake follows when the row is there), -ERR_CORRUPT, -ERR_IO. Sees
 * what the open transaction has staged. */
MUST_CHECK int kv_get(struct kv *kv, const struct kv_key *key, struct bytes *ret_value);

/* Ascending walk over [from, to), not of what is staged: first call with cursor->key = from. Moves
 * on; -ERR_NOT_FOUND at the end, -ERR_CORRUPT when it has moved past a row of wrong checksum. */
struct kv_cursor {
    struct kv_key key;
    struct kv_key end;
    bool inclusive; /* true before the first row: key itself may match */
};
void kv_cursor_init(struct kv_cursor *cursor, const struct kv_key *from, const struct kv_key *to);
MUST_CHECK int kv_next(struct kv *kv, struct kv_cursor *cursor, struct bytes *ret_value);
/* The last row of [from, to), likewise. -ERR_NOT_FOUND, -ERR_PENDING. */
MUST_CHECK int kv_last(struct kv *kv, const struct kv_key *from, const struct kv_key *to,
                       struct kv_key *ret_key, struct bytes *ret_value);

/* A transaction: all of it becomes part of the open record at kv_commit, nothing at kv_abort.
 * The staging calls answer -ERR_NO_SPACE when record or ring cannot take more; the owner then
 * aborts. Values are copied. */
void kv_begin(struct kv *kv);
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
/* Forgets an ended session's. */
MUST_CHECK int kv_outcome_drop(struct kv *kv, struct session_id session);
/* Message classes share log space: requests get to 3/4 of the ring, release to 7/8, the rest is
 * control's and background's. True when record_bytes more (and data_bytes of data) fit. When
 * false, a sync point or checkpoint is under way and wake follows. */
enum kv_class { KV_CLASS_CONTROL, KV_CLASS_RELEASE, KV_CLASS_REQUEST, KV_CLASS_BACKGROUND };
bool kv_admit(struct kv *kv, enum kv_class message_class, size_t record_bytes, size_t data_bytes);
/* kv_admit said no: the checkpoint that would help meets a full disk. Some may ask _last then. */
bool kv_is_out_of_space(const struct kv *kv);
bool kv_admit_last(const struct kv *kv, size_t record_bytes);
uint64_t kv_position(const struct kv *kv);        /* newest sealed record */
uint64_t kv_synced_position(const struct kv *kv); /* durable up to here */
uint64_t kv_term(const struct kv *kv);            /* rises at each open */
/* What that term acknowledged beyond this is gone: the least that a start since has found. 0: too
 * many have been since; UINT64_MAX: none. */
uint64_t kv_survived_position(const struct kv *kv, uint64_t term);
uint16_t kv_losses(const struct kv *kv); /* starts that found neither a stop nor a ring */
int kv_failure(const struct kv *kv);     /* 0, or what undid all since kv_seal; from any thread */

/* Wait until position is durable (a sync point is begun when none covers it). done runs from
 * kv_step, or at once when it is durable already. result: 0 or the error that stopped the log. */
struct kv_waiter {
    struct queue_node node;
    uint64_t position;
    void (*done)(struct kv_waiter *waiter, int result);
};
void kv_sync(struct kv *kv, struct kv_waiter *waiter, uint64_t position);

/* Space in the ring's data area, freed by the sync point that covers the open record; NULL: full.
 * *ret_offset names it in a note; kv_data_at finds it after recovery. */
void *kv_data_allocate(struct kv *kv, size_t size_bytes, uint64_t *ret_offset);
void *kv_data_at(struct kv *kv, uint64_t offset, size_t size_bytes);
void kv_data_synced(struct kv *kv, int result);
void kv_step(struct kv *kv); /* progress: call on wake and on every tick */
struct kv_counters {
    uint64_t records, record_bytes, sync_points, checkpoints_begun, checkpoints, checkpoint_rows;
    uint64_t replayed_records, replayed_ring_records, duplicates_refused, pending_reads, stalls;
    uint64_t changes_bytes, ring_used_bytes, disk_log_used_bytes;
};
void kv_counters_get(const struct kv *kv, struct kv_counters *ret_counters);
