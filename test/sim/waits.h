/* What waits at targets once all is over and nobody asks for anything: nothing.
 *
 * Calls that are parked, orders and those that were put aside, questions for lengths, transactions
 * and promises, calls to others that are under way, evictions, requests and operations of data
 * files, blocks that were freed, records that are not on disk. Each engine is walked over as well
 * (kv_check).
 *
 * Reads targets between their steps; a file for each role, as their structs have one name. Thread:
 * the world's. */
#pragma once
#include "world.h"

struct group;
struct ost;
struct manager;

enum { WAITS_TEXT_BYTES = 200 };

/* Something waits: true, with what, where. */
bool waits_any(const struct world *world, char ret_text[WAITS_TEXT_BYTES]);

struct wait {
    const char *what;
    uint64_t count;
};
enum { WAITS_OF_TARGET = 16 };
/* How many of each; they answer how many kinds there are. */
size_t waits_of_group(const struct group *group, struct wait ret_waits[WAITS_OF_TARGET]);
size_t waits_of_ost(const struct ost *ost, struct wait ret_waits[WAITS_OF_TARGET]);
size_t waits_of_manager(const struct manager *manager, struct wait ret_waits[WAITS_OF_TARGET]);
