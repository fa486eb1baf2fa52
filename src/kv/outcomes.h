/* What mutations answered, by session and sequence, until the session no longer awaits it.
 *
 *     put --> kept --(stored: a row of the base)--> superfluous --> its row deleted --> gone
 *                \--(not stored)-----------------------------------------------------/
 *
 * A floor, or the end of a session, makes outcomes superfluous. Those that have a row keep their
 * place until the row is deleted; the row of the session's floor goes last, so that recovery knows
 * a superfluous outcome by its floor, or by there being none.
 *
 * Thread: the kv's owner.  Memory: entries and sessions are taken at start; a full table refuses
 * the mutation (-ERR_BUSY), never the outcome of one that ran. */
#pragma once
#include "kv/kv.h"

struct outcomes;

MUST_CHECK int outcomes_new(uint32_t entries_max, uint32_t sessions_max,
                            struct outcomes **ret_outcomes);
void outcomes_free(struct outcomes *outcomes);

/* -ERR_NOT_FOUND, or -ERR_OUTDATED below the session's floor. */
MUST_CHECK int outcomes_find(const struct outcomes *outcomes, struct session_id session,
                             uint64_t sequence, struct kv_outcome *ret_outcome);
/* 0 when one more outcome of this session, that raises its floor to `floor`, can be kept, once one
 * row may be deleted. -ERR_BUSY: behind the floor the session keeps as many as its window allows (8
 * at the least), or all places are taken by what is awaited. */
MUST_CHECK int outcomes_admit(const struct outcomes *outcomes, struct session_id session,
                              uint64_t floor, uint32_t window);
/* (start) The same, by more memory: what there was before must be taken in, whatever the limits. */
MUST_CHECK int outcomes_make_room(struct outcomes *outcomes);
/* A session that awaits nothing below the floor has not told so yet, and can. */
bool outcomes_floor_is_due(const struct outcomes *outcomes, struct session_id session,
                           uint64_t floor);
uint32_t outcomes_kept(const struct outcomes *outcomes, struct session_id session);

/* Deletes the row of a superfluous outcome, of sequence 0 the row of a session's floor. False: not
 * now. */
typedef bool outcomes_delete_fn(void *context, struct session_id session, uint64_t sequence);
/* Keeps the outcome, unless its sequence is 0, and raises the floor; there is room, if need be by
 * deleting one row. */
void outcomes_put(struct outcomes *outcomes, const struct kv_outcome *outcome,
                  outcomes_delete_fn *delete_row, void *context);
/* The session has ended. */
void outcomes_drop(struct outcomes *outcomes, struct session_id session);
/* Deletes rows of what is superfluous until delete_row answers false. */
void outcomes_clean(struct outcomes *outcomes, outcomes_delete_fn *delete_row, void *context);
bool outcomes_are_clean(const struct outcomes *outcomes);

/* Gives each session's floor (sequence 0; UINT64_MAX: it has ended) and each outcome that the last
 * walk has not given yet, or that has changed since, and counts it as stored. Floors of a session
 * come before its outcomes. */
void outcomes_store(struct outcomes *outcomes,
                    void (*store)(void *context, const struct kv_outcome *outcome), void *context);
/* Rows that outcomes_store would give, and the bytes of their replies. */
uint32_t outcomes_unstored_rows(const struct outcomes *outcomes);
size_t outcomes_unstored_bytes(const struct outcomes *outcomes);
/* (start) Takes back one that was stored: first all floors, then all others. False: superfluous,
 * its row may go. There is room. */
bool outcomes_restore(struct outcomes *outcomes, const struct kv_outcome *outcome);
uint32_t outcomes_count(const struct outcomes *outcomes);
/* That all counters and lists are what the entries say; else what is not, in words. */
const char *outcomes_check(const struct outcomes *outcomes);
