/* What must hold of a group's engine: behind an opening, around a step, within a transaction.
 *
 * Thread: one.  Memory: the group's. */
#pragma once
#include "kv/log_format.h"
#include "model.h"

struct group;

/* What an opening is about to find. */
struct group_findings {
    uint64_t opens; /* of files, until then */
    struct log_superblock superblock;
    bool ring, log;
};

/* When the last sync point ended, the last checkpoint began, or else the life did; since when the
 * base has been full. And what tells that they have, as it was seen last. */
struct group_times {
    uint64_t rested_ns, begun_ns, full_ns;
    uint64_t sync_points, begun;
    bool full;
};

/* A step of the engine. */
void group_step(struct group *group);
/* A life begins. */
void group_step_begin(struct group *group);
/* Behind a step that somebody else has taken. */
void group_step_note(struct group *group);
/* Before an opening, and behind it. */
struct group_findings group_find(struct group *group);
void group_check_opened(struct group *group, const struct group_findings *found);
/* The row reads as the operation, staged last, leaves it; old: as it was before. */
void group_check_staged(struct group *group, const struct model_operation *operation,
                        struct bytes old);
/* A transaction of nothing leaves nothing. */
void group_stage_nothing(struct group *group);
