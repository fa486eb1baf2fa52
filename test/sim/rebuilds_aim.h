/* What the manager is amid, and what it has given so far: for rebuilds.c, which takes its log. */
#pragma once
#include "base/types.h"

struct manager;

/* ANY: of no kind that is looked for. */
enum rebuilds_amid { AMID_BEGIN, AMID_END, AMID_HANDOVER, AMID_KINDS, AMID_ANY = AMID_KINDS };

/* Numbers that are not to be given a second time. */
struct rebuilds_given {
    uint64_t map_version;
    uint64_t next_session;
    uint64_t ended_number; /* of the list */
    uint64_t handover;
};

/* Within its process (node_enter): a session begins whose row is not on disk; an end is not told to
 * all; slots are on their way. */
bool rebuilds_is_amid(const struct manager *manager, enum rebuilds_amid kind);
void rebuilds_given_get(const struct manager *manager, struct rebuilds_given *ret_given);
/* It has read its rows, and what it was made of is on its disk. */
bool rebuilds_is_loaded(const struct manager *manager);
