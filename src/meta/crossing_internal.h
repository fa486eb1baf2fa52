/* What the files of the coordinator's side share: crossing.c (the run of a call), crossing_calls.c
 * (what is sent), crossings.c (all of a group). */
#pragma once
#include "meta/crossing.h"
#include "meta/group_internal.h"

enum crossing_stage {
    CROSSING_LOOKS,
    CROSSING_PREPARES, /* are out */
    CROSSING_PREPARED, /* the next run decides */
    CROSSING_ABORTS,   /* it has no call any more; likewise in those that follow */
    CROSSING_DECIDED,  /* its record is on its way to the disk */
    CROSSING_COMMITS,
    CROSSING_KNOWN, /* its row can go */
};

/* Something that was looked at. */
struct seen {
    enum look_kind kind;
    struct ino ino;
    struct ino ancestor;
    uint8_t name[NAME_BYTES_MAX];
    uint16_t name_bytes;
    struct look_answer answer;
};

/* The halves for one log, as a run makes them. */
struct draft {
    struct log_id log;
    uint16_t size_bytes;
    uint8_t halves[HALVES_BYTES_MAX];
};

/* A participant. */
struct share {
    struct crossing *crossing;
    struct call call;
    struct draft draft;
    bool out;
    bool asked;     /* it may have promised */
    bool promised;  /* it has said so */
    bool known;     /* its commit is on disk */
    bool failed;    /* it has not answered the last time */
    bool has_place; /* among those of its log, from the prepare to the end */
    struct ino made;
};

struct crossing {
    struct crossings *all;
    struct list_node node;          /* of all */
    struct list_node numbered_node; /* see crossings */
    struct list_node wait_node;     /* of decided, to_forget or waiting */
    enum crossing_stage stage;
    struct call *owner;
    uint64_t term; /* and number: 0 until it prepares */
    uint64_t number;
    uint64_t position;
    int64_t decided_ns;
    uint32_t tries;
    uint32_t refusals;     /* of these, those in a row for something that had changed */
    bool unreached;        /* of this one: somebody has not answered */
    bool told;             /* likewise: another one has its turn */
    uint64_t turn;         /* its number; 0: it has asked for none */
    struct call turn_call; /* that gives it back */
    bool turn_out;
    uint32_t wait_ticks;
    bool has_way; /* it has looked at one, when there had been so many moves: */
    uint64_t moves;
    int failure;        /* that the call is to end with */
    int verdict;        /* likewise, once all that was seen is seen again; 1: with success */
    bool sure;          /* it was: a run that changes nothing may succeed */
    struct ino damaged; /* with the verdict, as a transaction's */
    const char *damage;
    uint32_t confirmed;
    bool looking;
    struct call look_call;
    struct seen looked;     /* that is being looked at */
    struct log_id looks_at; /* among whose it has a place; 0: nobody's */
    struct seen *seen;
    uint32_t seen_count;
    uint32_t seen_next; /* what is looked for next is probably there */
    uint32_t seen_room;
    uint8_t logs[PARTICIPANTS_MAX * sizeof(uint64_t)]; /* of the shares, for the prepares */
    uint32_t share_count;
    struct share shares[PARTICIPANTS_MAX];
    uint32_t draft_count;
    struct draft drafts[PARTICIPANTS_MAX];
    uint32_t stake_count;
    struct stake stakes[TOUCHED_MAX];
};

/* NULL: there are too many, or no memory. */
struct crossing *crossing_new(struct group *group, struct call *owner);
/* Nothing of it is out, and no row is left. */
void crossing_free(struct crossing *crossing);
void crossing_unclaim(struct crossing *crossing);
/* Without a call from now on: what may have been promised is aborted, then it goes. */
void crossing_abort(struct crossing *crossing);
/* The call begins anew, at once or some ticks later. */
void crossing_again(struct crossing *crossing);
/* Before its call runs again. */
void crossing_wait(struct crossing *crossing);

/* That of the transaction's call, made when it is needed. */
MUST_CHECK int crossing_need(struct transaction *transaction, struct crossing **ret_crossing);
/* number 0: it has no turn, nor has it asked for one. _want draws one once that is due. */
struct turn_id crossing_turn_id(const struct crossing *crossing);
struct turn_id crossing_turn_want(struct crossing *crossing);
/* Its move ends without a decision. */
void crossing_turn_back(struct crossing *crossing);

/* Whether the log has a place for it (crossing_places.c). */
bool crossing_may_ask(const struct crossing *crossing, struct log_id log);
/* The call ends: it has not, and asks again. */
void crossing_refuse(struct crossing *crossing);
/* It waits for an answer of that log; 0: of none any more. */
void crossing_looks_at(struct crossing *crossing, struct log_id log);
void crossing_share_begins(struct crossing *crossing, struct share *share);
/* Also of one that has no place. */
void crossing_share_ends(struct crossing *crossing, struct share *share);

/* Refused where that is one too many. */
void crossing_look_send(struct crossing *crossing);
/* Looks at the next thing again; behind the last the verdict is the call's end. */
void crossing_confirm(struct crossing *crossing);
void crossing_prepares_send(struct crossing *crossing);
void crossing_turn_back_send(struct crossing *crossing);
/* To those that are not known and have nothing out. */
void crossing_commits_send(struct crossing *crossing);
