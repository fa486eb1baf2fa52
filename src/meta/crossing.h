/* The coordinator's side of a transaction across logs. An operation is written as if all rows were
 * here: what it reads elsewhere is looked at, what it changes there becomes a half.
 *
 *     looks -- run complete --> prepares -- all promised --> deciding run --> record = decision
 *       ^                          |                           |                 | on disk
 *       '------- anew, later <-----+---- CHANGED, a stake -----'              commits, until known
 *
 * An operation that fails on what it has looked at, or that finds nothing to be changed, looks at
 * all of it once more: if nothing has changed, everything was so at one moment, and that is the
 * answer.
 *
 * A crossing belongs to the call until it is decided or given up; what it has promised elsewhere is
 * then committed or aborted without it. See docs/internals/halves.md.
 *
 * Thread: the group's step.  Memory: one a call under way, up to crossings_max. */
#pragma once
#include "layout/cluster_map.h"
#include "meta/half.h"
#include "meta/look.h"
#include "meta/stakes.h"
#include "meta/turns.h"
#include "rpc/call.h"

enum { CROSSINGS_MAX = 4096, CROSSING_TRIES_AT_ONCE = 3, CROSSING_LOOKS_MAX = 2100 };
#define CROSSING_ANSWER_NS (5 * NS_PER_S)

struct crossing;

struct crossings {
    struct group *group;
    struct list all;
    struct list numbered;  /* those that have a number and have not ended, in its order */
    struct list decided;   /* whose record is not on disk yet, in the order of records */
    struct list to_forget; /* known everywhere: the decision's row can go */
    struct list waiting;   /* that begin anew at some tick */
    uint64_t next_number;
    uint64_t last_turn; /* that was asked for */
    uint32_t count;
    uint32_t places[MAP_GROUPS_MAX]; /* of each group of the map; crossing_places.c */
    uint32_t calls_out;
    bool short_of; /* somebody waits for one to go */
    bool cancelled;
};

void crossings_init(struct crossings *crossings, struct group *group);
void crossings_deinit(struct crossings *crossings);
/* (start) A decision of an earlier life. */
MUST_CHECK int crossings_load(struct crossings *crossings, const struct kv_key *key,
                              const struct decision_row *row);
void crossings_tick(struct group *group);
void crossings_step(struct group *group);
void crossings_cancel(struct crossings *crossings);
/* What has not ended begins here: its term, and its number. */
void crossings_lowest(const struct group *group, uint64_t *ret_term, uint64_t *ret_number);
/* For who asks about one: CROSS_UNDECIDED, CROSS_COMMITTED, CROSS_ABORTED. */
uint8_t crossings_state(const struct group *group, uint64_t term, uint64_t number);

/* Whether one more transaction may ask the group of the map for something. */
bool crossings_have_place(const struct group *group, uint32_t index);

/* For operations. */
bool crossing_is_elsewhere(const struct transaction *transaction, struct ino ino);
/* Likewise, and its target is lost for good: nothing of it can be looked at. */
bool crossing_is_lost(const struct transaction *transaction, struct ino ino);
/* The run relies on nothing that was looked at, or promised, elsewhere. */
void crossing_drop(struct transaction *transaction);
/* 0 with what was answered, which stays until the run is over; -ERR_PENDING until then. -ERR_BUSY:
 * too many wait for that log. */
MUST_CHECK int crossing_look(struct transaction *transaction, const struct look_what *what,
                             const struct look_answer **ret_answer);
/* Ways to the root that were looked at count only as long as there was no move since, by the count
 * in transaction->moves: 0, or -ERR_PENDING to begin anew. */
MUST_CHECK int crossing_moves_check(struct transaction *transaction);
/* For a move, where slot 0 is the group's: 0, or -ERR_PENDING until no other's turn stands. */
MUST_CHECK int crossing_turn_check(struct transaction *transaction);
/* The log that serves the ino, by the map; 0: the map does not tell. */
struct log_id crossing_log(const struct transaction *transaction, struct ino ino);
/* Adds a half for that log. */
MUST_CHECK int crossing_half(struct transaction *transaction, struct log_id log,
                             const struct half *half, struct bytes name);
/* The number of the directory that was promised by that log; 0 before the deciding run. */
struct ino crossing_made(const struct transaction *transaction, struct log_id log);
/* The log that has promised a half to a call whose only participant it is; 0: none has yet. */
struct log_id crossing_promised(const struct transaction *transaction);
/* How often the call has begun anew. */
uint32_t crossing_tries(const struct transaction *transaction);

/* For the run of a call. Before: 0, or -ERR_PENDING, or the error that ends it. */
MUST_CHECK int crossing_run_begin(struct transaction *transaction, struct call *call);
/* Behind an operation that succeeded. 0: it is to be committed, with the decision staged;
 * -ERR_PENDING: it goes on, after an abort of what it has staged here. */
MUST_CHECK int crossing_run_end(struct transaction *transaction);
/* An operation has failed. What it has looked at was read at different times, so the error counts
 * only if all of that is still so: true, and the call waits for that, or begins anew. */
bool crossing_run_fails(struct transaction *transaction, int result);
/* An operation has met a stake or PENDING: one that holds promises begins anew. */
void crossing_run_waits(struct transaction *transaction);
/* Its record is sealed at this position. */
void crossing_is_decided(struct transaction *transaction, uint64_t position);
/* Another copy of the call goes on in its stead. */
void crossing_inherit(struct call *older, struct call *call);
/* The call ends otherwise. */
void crossing_leave(struct group *group, struct call *call);
