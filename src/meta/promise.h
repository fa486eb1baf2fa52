/* The participant's side of transactions across logs: halves that are promised here, from the
 * prepare to the commit, and marks of those that are done, until the coordinator has said that they
 * have ended everywhere. Each is a T row (docs/internals/halves.md).
 *
 *     prepare --record on disk--> PREPARED --commit--> COMMITTED --below, or ended--> gone
 *                                     '----abort, or the coordinator does not know it--> gone
 *
 * Marks go when the coordinator says that all numbers below some one have ended. While one does not
 * end, as a participant of it is away, those behind it would stay: once there are
 * PROMISE_MARKS_MANY the coordinator is asked about each, the oldest first, and one that it has no
 * more has ended. What tells late copies of its prepare is then its number: a prepare at or below
 * the highest mark that went so, of which there is no trace, is refused; one that was no late copy
 * begins anew.
 *
 * Of one coordinator there are PROMISES_OF_ONE_MAX at most, so that one that is away, or does not
 * end what it has begun, leaves room for those of others.
 *
 * Where the coordinator is lost for good the participants ask one another (promise_lost.c).
 *
 * Thread: the group's step.  Memory: one a transaction under way, up to PROMISES_MAX. */
#pragma once
#include "layout/cluster_map.h"
#include "meta/half.h"
#include "meta/stakes.h"
#include "rpc/call.h"

enum { PROMISES_MAX = 8192, PROMISES_OF_ONE_MAX = PROMISES_MAX / 4 };
enum { PROMISE_BUCKETS = 1024, PROMISE_STAKES_MAX = 2 * HALVES_MAX };
enum { PROMISE_MARKS_MANY = 1024, PROMISE_MARK_ASKS = 16 /* of one coordinator at a time */ };
#define PROMISE_ASK_NS (5 * NS_PER_S)
#define PROMISE_MARK_ASK_NS NS_PER_S

struct cross_id {
    uint64_t log;
    uint64_t term;
    uint64_t number;
};

struct promise {
    struct list_node bucket_node;
    struct list_node node; /* of those prepared, of its coordinator's marks, or of those below */
    struct cross_id id;
    bool committed;
    bool gone;         /* from all lists; its call is out */
    uint64_t position; /* of the record that made it */
    uint64_t turn;     /* of its coordinator, that it shows; 0: none, or of an earlier life */
    uint64_t asked_ns;
    struct call call; /* that asks */
    bool asking;
    bool is_mark_ask;     /* counted by its coordinator's mark_asks */
    bool wanted;          /* somebody waits for its end */
    bool to_be_kept;      /* it is in to_keep */
    bool holds_orphan;    /* it may give a name to a file that has none, and is open no more */
    uint8_t others_asked; /* its coordinator is lost: so many participants are done with, */
    uint32_t losses;      /* by a map with so many lost targets */
    struct promises *promises;
    struct ino made;
    uint32_t stake_count;
    struct stake stakes[PROMISE_STAKES_MAX];
    uint8_t participants[PARTICIPANTS_MAX * sizeof(uint64_t)];
    uint8_t participants_bytes;
    uint16_t halves_bytes;
    uint8_t halves[HALVES_BYTES_MAX];
};

/* A log that coordinates. */
struct promise_source {
    uint64_t log;
    bool is_lost;        /* for good, by the group's map */
    uint64_t below_term; /* all before this one have ended */
    uint64_t below_number;
    uint64_t past_term; /* the highest mark that has gone because it had ended */
    uint64_t past_number;
    uint32_t count;    /* of its promises and marks */
    struct list marks; /* in the order in which they were made or asked about */
    uint32_t mark_asks;
};

struct promises {
    struct group *group;
    struct list buckets[PROMISE_BUCKETS];
    struct list prepared;
    struct list to_drop;
    struct list asking_still; /* gone; their call is not back */
    struct list to_keep; /* prepared; another participant of a lost coordinator's has done it */
    struct promise_source sources[MAP_GROUPS_MAX];
    uint32_t source_count;
    uint32_t losses; /* targets that the group's map names lost */
    uint32_t count;
    uint32_t calls_out;
    struct promise *spare; /* of the prepare that runs */
    bool cancelled;
};

void promises_init(struct promises *promises, struct group *group);
void promises_deinit(struct promises *promises);
/* (start) */
MUST_CHECK int promises_load(struct promises *promises, const struct kv_key *key,
                             const struct transaction_row *row, struct bytes halves);
void promises_tick(struct group *group);
void promises_step(struct group *group);
void promises_cancel(struct promises *promises);
/* The group has another map. */
void promises_map_read(struct group *group);
/* Somebody waits for what it holds; takes a stake's owner. */
void promise_is_waited_for(struct group *group, const void *owner);

/* Whether the inode, which has no name and is open no more, may get one by what is promised: then
 * it stays until that has ended. */
bool promises_hold_orphan(struct group *group, struct ino ino);

/* Effects of cross_prepare, cross_commit and cross_abort. */
void promise_made(struct group *group, uint64_t position);
void promise_kept(struct group *group, struct promise *promise);
void promise_gone(struct group *group, struct promise *promise);
struct promise *promise_find(struct promises *promises, const struct cross_id *id);
/* Whether there is room for one more of that log, which has begun to ask. */
bool promises_have_room(struct group *group, uint64_t log);
/* It may have been done here, and its mark be gone. */
bool promises_past(const struct promises *promises, const struct cross_id *id);
/* All of the coordinator's before this one have ended; false: so has this one. */
bool promises_below(struct group *group, const struct cross_id *id, uint64_t below_term,
                    uint64_t below_number);
