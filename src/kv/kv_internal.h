/* Inside of the engine, shared by kv*.c only: what its parts do for each other. */
#pragma once
#include "kv/kv_state.h"

/* kv.c; what: what could not be done, as a line of the log has it. */
void kv_fail(struct kv *kv, const char *what, int result);
void kv_wake(struct kv *kv);
/* The row as changes, frozen and base have it, without what the transaction staged. */
MUST_CHECK int kv_read(struct kv *kv, const struct kv_key *key, bool may_pend,
                       struct bytes *ret_value);
/* Submits kv->log.io; kv->io_finished is set and the owner woken when it is done. */
void kv_log_submit(struct kv *kv);

/* kv_warm.c: whether to wait until a job has read what a get of the key, or with `walks` a next
 * from it, finds in the base; wake follows. */
MUST_CHECK bool kv_must_warm(struct kv *kv, const struct kv_key *key, bool walks);
MUST_CHECK int kv_warmth_init(struct kv *kv);
bool kv_warmth_is_idle(const struct kv *kv);
void kv_warmth_step(struct kv *kv);

/* kv_transaction.c: closes the open record, if any. */
void kv_seal_open(struct kv *kv);
/* Applies one operation to changes and outcomes. Room was set aside. */
MUST_CHECK int kv_apply(struct kv *kv, const struct record_operation *operation);
/* Deletes the row of a superfluous outcome where that leaves what is promised. */
bool kv_outcome_row_delete(void *context, struct session_id session, uint64_t sequence);

/* kv_admit.c: the account. Whether the log has room for what the ring holds up to ring_end, as what
 * is left of the running sync point and one more, and then for this much. */
bool kv_log_has_room(const struct kv *kv, uint64_t ring_end, uint64_t more_bytes);
/* Whether rows can be taken into changes and leave room for what the engine itself must add: rows
 * of outcomes at the next freeze, and the chunk of the generation behind it. */
bool kv_changes_have_room(const struct kv *kv, size_t rows, size_t value_bytes, size_t keep_bytes);
void kv_changes_set_aside(struct kv *kv, size_t rows, size_t value_bytes);
size_t kv_changes_used_bytes(const struct kv *kv);
struct kv_levels kv_levels_of(const struct kv *kv);

/* kv_sync.c */
void kv_sync_want(struct kv *kv);
void kv_sync_step(struct kv *kv);
bool kv_sync_is_idle(const struct kv *kv);

/* kv_checkpoint.c */
void kv_checkpoint_want(struct kv *kv);
void kv_checkpoint_step(struct kv *kv);
/* (start) Flushes the log and brings all changes, which it holds up to `position`, to the base. The
 * log's tail stays. -ERR_NO_SPACE: as much of it as there was room for; steps go on with it. */
MUST_CHECK int kv_checkpoint_now(struct kv *kv, uint64_t position);
/* (start) The pool's memory has moved. */
void kv_checkpoint_moved(struct kv *kv, ptrdiff_t moved_bytes);

/* kv_recover.c */
MUST_CHECK int kv_recover(struct kv *kv, char problem[256]);
/* A guess: whether the rows of so many bytes of records find room in memory. */
bool kv_replay_will_fit(const struct kv *kv, uint64_t record_bytes);
MUST_CHECK int kv_replay_record(void *replay, const struct log_record *record);
/* kv_recover_ring.c: the ring's part of it. */
MUST_CHECK int kv_recover_ring(struct kv *kv, struct kv_replay *replay);
struct kv_key kv_applied_key(void);
struct kv_key kv_outcome_key(struct session_id session, uint64_t sequence);
