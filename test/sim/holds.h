/* The oracle of opens: what metadata targets have open.
 *
 * Once clients are idle, and have nothing left to be told again, each metadata target has open of a
 * session what its client has open, or less: an open that nobody was answered, and that nobody
 * closes, would stay as long as the session does, and a file that is removed meanwhile with it. A
 * row of a writer that a power failure has brought back, as it took the record of a close that was
 * answered, goes soon.
 *
 * Reads the tables of both, between their steps. Thread: the world's. */
#pragma once
#include "world.h"

struct group;

/* Of one inode and session. */
struct held {
    uint64_t session;
    struct ino ino;
    uint32_t read_count;
    uint32_t write_count;
    bool named;
    bool has_row;
};

/* Gives each of them (holds_group.c: a group's sessions are other structs than a client's). */
void holds_of_group(const struct group *group, void (*look)(void *context, const struct held *held),
                    void *context);
/* Lets the clients tell what they have to tell again, within so many seconds of simulated time, and
 * compares. What is wrong then stands in failure. */
void holds_check(struct world *world, uint32_t within_s, char failure[600]);
