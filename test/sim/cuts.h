/* Transactions across logs that a crash has met, by how far they had come: at the coordinator, and
 * at a participant. */
#pragma once
#include "base/types.h"

struct group;

struct cuts {
    uint64_t looks;     /* an answer to what it looks at is awaited */
    uint64_t prepares;  /* answers to prepares are */
    uint64_t decisions; /* the record is not on disk yet */
    uint64_t commits;   /* not all know of it */
    uint64_t promises;  /* halves that are promised */
    uint64_t marks;     /* that are done; the coordinator has not said that all has ended */
};

/* The group's process is about to crash. */
void cuts_add(struct cuts *cuts, const struct group *group);
