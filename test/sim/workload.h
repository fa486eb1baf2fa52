/* What the clients do: random operations, several in flight a client, each told to the oracle when
 * it begins and when it ends.
 *
 * Thread: the world's. */
#pragma once
#include "contents.h"
#include "excuses.h"
#include "trees.h"
#include "world.h"
#include <stdio.h>

struct workload;

struct workload_options {
    uint64_t
        operations;     /* to submit, and as many more as were given up; then clients stop asking */
    uint32_t depth;     /* in flight, a client */
    uint64_t think_ns;  /* between an answer and the next question, at most */
    uint32_t files_max; /* data files that are made */
    uint32_t size_max;  /* of a file */
    bool overwrites;    /* mostly large writes over what is there, so that blocks go round */
    bool unlinks;       /* mostly files that are synced, then unlinked or renamed over */
    bool grows;         /* mostly small files that are synced, then become large */
    bool moves;         /* mostly directories that get another parent, all at once */
    bool wraps;         /* mostly small writes, so that rings come round */
    struct excuses *excuses;
    struct losses *losses; /* or NULL */
    FILE *tell;            /* each question and answer; or NULL */
};

struct workload_counters {
    uint64_t submitted, succeeded, failed, lost;
    uint64_t nameless, named; /* made without a name; given one */
};

struct workload *workload_new(struct world *world, const struct workload_options *options);
void workload_free(struct workload *workload);
/* Looks after the clients: those that have a session get their askers. Between events. */
void workload_look(struct workload *workload);
/* The process of a client is gone, and with it what it had asked. After node_kill or node_power. */
void workload_client_gone(struct workload *workload, struct node *node);
/* A server lost power; NULL: all of them did together, after each was told alone. */
void workload_power(struct workload *workload, const struct node *node);
/* A link was cut just now, for the sake of interrupts.h, which the caller heals after so long; 0:
 * none. */
uint64_t workload_cut(struct workload *workload);
/* NULL, or what an answer was that cannot be. */
const char *workload_failure(const struct workload *workload);
const struct workload_counters *workload_counters_get(const struct workload *workload);
/* What was asked and answered, by enum total (totals.h). */
void workload_sum(const struct workload *workload, uint64_t *counts);
bool workload_is_done(const struct workload *workload);
/* Faults have ended: so many operations more, all of them about names in the trees. From now on no
 * rename may take longer than RULE_MOVE_S. */
void workload_go_on(struct workload *workload, uint64_t operations);
/* Some client has a session. */
bool workload_is_ready(const struct workload *workload);
/* A client that has a session looks at all names of the trees, one after the other, until the
 * workload is idle. Once all has been asked. False: no client has one. */
bool workload_review(struct workload *workload);
/* A client that has a session removes all files that were made, by name, as far as power losses
 * have left them. Then nothing more can be asked. False: no client has one. */
bool workload_remove(struct workload *workload);
/* No question is open, and nobody reviews, measures or removes. */
bool workload_is_idle(const struct workload *workload);
/* The metadata target has taken each close. */
bool workload_is_settled(const struct workload *workload);
/* Asks the size of each file, once all is settled. False: no client has a session. */
bool workload_measure(struct workload *workload);
