/* Whether a group has room for more: its base, and the file system that it lies on.
 *
 *     has room --more than FULL_PERCENT used--> full --less than FREE_PERCENT--> has room
 *
 * Of what there is for use, as of storage targets: of a base that may take what is free below it is
 * what it takes through both. A full group takes no new directories of others, where others have
 * room (draw.h), and what is made in those that it has until its log can keep no more. A start has
 * room, until it is above the upper mark. */
#pragma once
#include "layout/cluster_map.h"

enum { ROOM_FULL_PERCENT = 95, ROOM_FREE_PERCENT = 85 };

struct group;

struct room {
    bool is_full;                       /* the group itself */
    uint64_t look_ns;                   /* when that is looked at again */
    bool group_is_full[MAP_GROUPS_MAX]; /* by the map's index, as the manager has told last */
};

/* At each tick; it looks once a second. */
void room_tick(struct group *group);
