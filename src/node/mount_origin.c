/* The contract is in mount_origin.h. */
#include "node/mount_origin.h"
#include <inttypes.h>
#include <stdio.h>

void mount_origin_make(const struct config *config, const struct mount_place *place,
                       const uint64_t drawn[2], struct mount_origin *ret_origin) {
    char *name = ret_origin->name;

    if (config && config->node != 0) {
        ret_origin->node = (struct node_id){config->node};
        snprintf(name, MOUNT_ORIGIN_BYTES, "mount %016" PRIx64 "%016" PRIx64 ",%s %s",
                 config->node_key[0], config->node_key[1], place->space, place->path);
    } else {
        ret_origin->node = (struct node_id){0};
        snprintf(name, MOUNT_ORIGIN_BYTES, "mount %016" PRIx64 "%016" PRIx64 " %s", drawn[0],
                 drawn[1], place->path);
    }
}
