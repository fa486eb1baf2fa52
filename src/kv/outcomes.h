/* What mutations answered, by session and sequence, until the session no longer awaits it.
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
/* True when one more outcome of this session can be kept. */
bool outcomes_has_room(const struct outcomes *outcomes, struct session_id session);

/* Called for what a raised floor, or the end of a session, makes superfluous and is_stored. */
typedef void outcomes_forgotten_fn(void *context, struct session_id session, uint64_t sequence,
                                   bool whole_session);
/* Keeps the outcome and raises the floor; there is room. */
void outcomes_put(struct outcomes *outcomes, const struct kv_outcome *outcome,
                  outcomes_forgotten_fn *forgotten, void *context);
void outcomes_drop(struct outcomes *outcomes, struct session_id session,
                   outcomes_forgotten_fn *forgotten, void *context);

/* Gives each session's floor (sequence 0) and each outcome that the last walk has not given yet, or
 * that has changed since, and counts it as stored when `store` answers 0. Stops at an error. */
MUST_CHECK int outcomes_store(struct outcomes *outcomes,
                              int (*store)(void *context, const struct kv_outcome *outcome),
                              void *context);
/* Takes back one that was stored: of sequence 0, a floor. -ERR_BUSY when there is no room. */
MUST_CHECK int outcomes_restore(struct outcomes *outcomes, const struct kv_outcome *outcome);
uint32_t outcomes_count(const struct outcomes *outcomes);
