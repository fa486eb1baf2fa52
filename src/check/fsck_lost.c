/* What is lost with a target. Files of which something was on a storage target: by their sizes and
 * layouts, as which chunks there were, only that target knew. Of a metadata target it is named here
 * itself; names of what it had, and what has no name any more as that was there, are told where
 * names are checked. */
#include "check/fsck_lost.h"
#include "layout/map_lost.h"
#include <inttypes.h>
#include <stdio.h>

bool fsck_ost_is_lost(const struct fsck *fsck, uint32_t ost) {
    return cluster_map_is_lost(fsck->cluster->map, fsck_ost(fsck, ost));
}

bool fsck_mdt_is_lost(const struct fsck *fsck, uint32_t index) {
    return cluster_map_group_is_lost(fsck->cluster->map, &fsck->cluster->map->groups[index]);
}

bool fsck_ino_is_lost(const struct fsck *fsck, uint64_t ino) {
    return cluster_map_slot_is_lost(fsck->cluster->map, ino_slot((struct ino){ino}));
}

bool fsck_any_mdt_is_lost(const struct fsck *fsck) {
    for (uint32_t i = 0; i < fsck->cluster->map->group_count; i++) {
        if (fsck_mdt_is_lost(fsck, i)) {
            return true;
        }
    }
    return false;
}

static void mdts_tell(struct fsck *fsck) {
    char where[64];

    for (uint32_t i = 0; i < fsck->cluster->map->group_count; i++) {
        if (fsck_mdt_is_lost(fsck, i)) {
            snprintf(where, sizeof where, "target %" PRIu32, fsck_mdt(fsck, i).value);
            fsck_problem(fsck, "lost-metadata", where,
                         "a metadata target that was declared lost: the files and directories "
                         "that it had are gone");
        }
    }
}

static bool any_is_lost(const struct cluster_map *map) {
    for (uint32_t i = 0; i < map->target_count; i++) {
        if (map->targets[i].state == TARGET_LOST) {
            return true;
        }
    }
    return false;
}

/* How many lost targets have a place in the file; *ret_first: one of them. */
static uint32_t lost_count(const struct cluster_map *map, const struct inode_row *inode,
                           struct target_id *ret_first) {
    struct layout layout = inode_layout(inode);
    struct pool_version pool;
    uint32_t count = 0;

    if (inode->data_state != DATA_CHUNKED || !layout_is_valid(&layout) ||
        !cluster_map_pool(map, layout.pool_version, &pool)) {
        return 0;
    }
    /* Neighbouring chunks lie on different chains. */
    uint64_t chunks = (inode->size + layout.chunk_bytes - 1) / layout.chunk_bytes;
    for (uint32_t i = 0; i < MIN(chunks, layout_width(&layout, &pool)); i++) {
        uint32_t chain = layout_chain(&layout, &pool, i);

        if (cluster_map_chain_is_lost(map, chain)) {
            *ret_first = cluster_map_chain(map, chain)->members[0];
            count++;
        }
    }
    return count;
}

static void file_check(struct fsck *fsck, const struct fsck_row *row) {
    const struct inode_row *inode;
    char where[FSCK_WHERE_BYTES];
    struct target_id first;

    if (inode_row_check(row->value, &inode) < 0) {
        return; /* That is told elsewhere. */
    }
    uint32_t count = lost_count(fsck->cluster->map, inode, &first);
    if (count == 0) {
        return;
    }
    fsck_where_ino(fsck, kv_key_split(&row->key).id, where);
    if (count == 1) {
        fsck_problem(fsck, "lost-data", where,
                     "a part of it was on target %" PRIu32
                     ", which is lost, and answers EIO: put it back from a copy, or remove it",
                     first.value);
    } else {
        fsck_problem(fsck, "lost-data", where,
                     "parts of it were on target %" PRIu32 " and %" PRIu32
                     " others, which are lost, and answer EIO: put it back from a copy, or remove "
                     "it",
                     first.value, count - 1);
    }
}

int fsck_lost(struct fsck *fsck) {
    struct fsck_list list;
    struct fsck_row row;
    int r = any_is_lost(fsck->cluster->map) ? 0 : -ERR_NOT_FOUND;

    mdts_tell(fsck);
    fsck_list_begin_all(&list, fsck, FSCK_INODES);
    while (r == 0 && (r = fsck_list_next(&list, &row)) == 0) {
        file_check(fsck, &row);
        fsck_progress(fsck);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}
