/* The list of the ended sessions at a group (kv/ended_list.h), as the manager tells it:
 *
 *     sessions_ended --> calls --> each session that it names and that was here: S row EVICTING, in
 *       one record with its bit --> number --> on disk --> the reply
 *                                    '--> from then on eviction.c sees to what it had open
 *
 * One message at a time, in stretches; others get their turns between them.
 *
 * Thread: the group's step. */
#pragma once
#include "kv/ended_list.h"

struct group;

struct ended {
    struct ended_list list;
    struct list calls;      /* sessions_ended: the first is at work, */
    struct ended_work work; /* and has come so far */
};

void ended_init(struct ended *ended);
/* What a start has to read of it. -ERR_PENDING, -ERR_CORRUPT. */
MUST_CHECK int ended_load(struct group *group);
/* Goes on with the messages that have come. */
void ended_step(struct group *group);
