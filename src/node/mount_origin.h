/* The name by which the manager knows the predecessor of a mount's session, to end it: a mount of
 * the same directory, from the same mount namespace, at the same place.
 *
 *     "mount " key of the node "," mount namespace " " place     of a node's directory
 *     "mount " drawn " " place                                   of what no other mount follows
 *
 * Numbers of namespaces are the same on machines that were started alike, and so are paths: the
 * node tells them apart, and copies of its directory the place that a session tells besides
 * (wire/wire_origin.h). By an address nothing is known that a clone of the machine would not have,
 * and of a directory that is to join no node: each such mount is one more. */
#pragma once
#include "base/types.h"
#include "node/config.h"

enum { MOUNT_ORIGIN_BYTES = 4096 + 128 };

struct mount_origin {
    struct node_id node; /* 0: of none */
    char name[MOUNT_ORIGIN_BYTES];
};

/* Where it is mounted: namespace as /proc/self/ns/mnt says. */
struct mount_place {
    const char *space;
    const char *path;
};

/* config: the directory's; NULL: it is mounted by an address. drawn: at random. */
void mount_origin_make(const struct config *config, const struct mount_place *place,
                       const uint64_t drawn[2], struct mount_origin *ret_origin);
