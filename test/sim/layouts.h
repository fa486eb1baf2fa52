/* Layouts that are set of files which may be open. In a third of the seeds, by a generator of their
 * own, one question of eight sets that of one of the files that were made last, by whichever client
 * asks next. Where it has no chunks yet, those that anybody makes of it from then on must be where
 * all look for them, which the oracle of data judges; and go with the file (strays.h).
 *
 * Thread: the world's.  Memory: the caller's. */
#pragma once
#include "base/prng.h"

struct shoal_request;

struct layouts {
    bool draws;
    struct prng prng;
    uint64_t set;  /* that succeeded */
    uint64_t open; /* of these, of files that somebody had open then */
};

void layouts_init(struct layouts *layouts, uint64_t seed);
/* Whether the question of that number is about a layout. */
bool layouts_is_due(const struct layouts *layouts, uint64_t number);
/* Of the files that were made, which. */
uint32_t layouts_file(struct layouts *layouts, uint32_t file_count);
void layouts_ask(struct layouts *layouts, uint64_t ino, struct shoal_request *ret_request);
