/* What a group counts: operations and their latency per opcode, and totals of what the machinery
 * around them did. Thread: the group's step; others get copies by group_stats_start. */
#pragma once
#include "rpc/operation_counters.h"

struct group_totals {
    uint64_t restarts;   /* operations that met PENDING and were run again */
    uint64_t duplicates; /* requests that were answered from their outcome */
    uint64_t refused;    /* by the session's state or term */
    uint64_t old_maps;   /* requests about a slot that is another group's */
    uint64_t waited;     /* requests that met a full log */
    uint64_t pauses;     /* of listings, so that others had their turn */
    uint64_t orders_done;
    uint64_t orders_put_aside; /* until a storage target that was away has returned */
    uint64_t settled;
    uint64_t settles_put_off; /* likewise */
    uint64_t counted;         /* files whose blocks were asked for alone (usage.h) */
    uint64_t orphans_freed;
    uint64_t writers_left; /* rows of writers that no open stood behind, closed (leftovers.h) */
    uint64_t chunks_given_back; /* of files, by who had made them (untouched.h); those of requests
                                   that begin anew again */
    uint64_t chunks_kept;       /* likewise, as others might have written to them */
    uint64_t evictions;
    uint64_t fences;           /* of these, whose opens before a loss of the log were not known */
    uint64_t fencing_settles;  /* questions for a length that had storage targets refuse them */
    uint64_t losses_over;      /* of the log's end: all that were there then are known or refused */
    uint64_t ends_over;        /* sizes told as they were at such a one, while others are fenced */
    uint64_t crossings;        /* transactions across logs that were decided here */
    uint64_t crossings_again;  /* that had to begin anew */
    uint64_t crossings_busy;   /* that were put off, as too many wait for one log */
    uint64_t crossings_full;   /* times that all places were taken */
    uint64_t promises_kept;    /* of other groups' transactions */
    uint64_t promises_gone;    /* likewise, aborted */
    uint64_t promises_refused; /* likewise, as too many of one log stand here */
    uint64_t promises_found;   /* by the start, not decided */
    uint64_t decisions_found;  /* likewise, of which not all knew */
    uint64_t promises_lost_kept; /* their coordinator is lost: done, as another participant had */
    uint64_t promises_lost_gone; /* likewise: given up, as none had */
    uint64_t shares_lost;        /* participants of own transactions that are lost, so they know */
    uint64_t turns_asked;        /* places in the line for a turn, where slot 0 is (turns.h) */
    uint64_t turns_given;
    uint64_t turns_run_out; /* that ended by the clock */
};

struct counters {
    struct operation_counters operations[OPCODE_COUNT];
    struct group_totals totals;
};
