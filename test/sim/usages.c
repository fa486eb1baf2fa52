/* The contract is in usages.h. */
#include "usages.h"
#include "layout/layout.h"
#include "losses.h"
#include "meta/rows.h"
#include "store/store_format.h"
#include "walk.h"
#include <inttypes.h>
#include <string.h>

/* Blocks that the heads of a target count for the file. */
static uint64_t blocks_at(struct node *ost, struct ino ino, uint32_t generation) {
    struct kv_key_fields from = {.space = KV_SPACE_SLOT,
                                 .slot = store_bucket(ino),
                                 .type = STORE_ROW_CHUNK,
                                 .id = ino.value,
                                 .generation = generation};
    struct kv_key_fields to = from;
    struct walk walk;
    uint64_t blocks = 0;

    to.index = UINT64_MAX;
    walk_begin(&walk, ost, kv_key_make(from), kv_key_make(to));
    while (walk_next(&walk) == 0) {
        struct store_head head = {0};

        if (kv_key_split(&walk.cursor.key).index % (1 << STORE_INDEX_BITS) == 0) {
            memcpy(&head, walk.value, MIN(walk.size, sizeof head));
            blocks += head.block_count;
        }
    }
    return blocks;
}

static bool target_is_sound(struct node *ost) {
    if (node_is_lost(ost)) {
        return false;
    }
    node_enter(ost);
    bool sound = kv_losses(ost_kv(node_ost(ost))) == 0;
    node_leave(ost);
    return sound;
}

static struct node *ost_of_chain(struct world *world, uint32_t chain) {
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        if (world->osts[i].target_id == chain) {
            return &world->osts[i];
        }
    }
    return NULL;
}

/* False: nothing can be said of the file. */
static bool blocks_of(struct world *world, struct ino ino, const struct inode_row *row,
                      uint64_t *ret_blocks) {
    struct layout layout = inode_layout(row);
    struct pool_version pool;

    *ret_blocks = 0;
    if (!cluster_map_pool(&world->map, layout.pool_version, &pool)) {
        return false;
    }
    for (uint32_t i = 0; i < layout_width(&layout, &pool); i++) {
        struct node *ost = ost_of_chain(world, layout_chain_at(&layout, &pool, i));

        if (!ost || !target_is_sound(ost)) {
            return false;
        }
        *ret_blocks += blocks_at(ost, ino, row->chunk_generation);
    }
    return true;
}

static bool inode_check(struct node *mdt, struct ino ino, const struct inode_row *row,
                        struct usages *usages, char failure[600]) {
    uint64_t blocks;

    node_enter(mdt);
    bool sure_end = row->losses == kv_losses(group_kv(node_group(mdt)));
    node_leave(mdt);
    if (!(row->flags & INODE_COUNTED)) {
        usages->unsure++;
    } else if (!sure_end || row->flags & INODE_CUT_PENDING ||
               !blocks_of(mdt->world, ino, row, &blocks)) {
        usages->excused++;
    } else if (blocks == inode_blocks(row)) {
        usages->compared++;
    } else {
        snprintf(failure, 600,
                 "inode %" PRIx64 ", generation %" PRIu32 ", counts %" PRIu64
                 " blocks, and its storage targets have %" PRIu64,
                 ino.value, row->chunk_generation, inode_blocks(row), blocks);
        return false;
    }
    return true;
}

static bool mdt_check(struct node *mdt, struct usages *usages, char failure[600]) {
    const struct inode_row *row;
    struct walk walk;
    bool good = true;

    walk_begin(&walk, mdt, kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT}),
               kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT + 1}));
    while (good && walk_next(&walk) == 0) {
        struct kv_key_fields at = kv_key_split(&walk.cursor.key);

        if (at.type == ROW_INODE &&
            inode_row_check((struct bytes){walk.value, walk.size}, &row) == 0 &&
            row->data_state == DATA_CHUNKED) {
            good = inode_check(mdt, (struct ino){at.id}, row, usages, failure);
        }
    }
    return good;
}

bool usages_check(struct world *world, struct usages *usages, char failure[600]) {
    bool good = true;

    for (uint32_t i = 0; good && i < world->options.mdt_count; i++) {
        good = node_is_lost(&world->mdts[i]) || mdt_check(&world->mdts[i], usages, failure);
    }
    return good;
}

void usages_sum(const struct usages *usages, const struct world *world,
                uint64_t counts[TOTAL_COUNT]) {
    counts[TOTAL_USAGES] = usages->compared;
    counts[TOTAL_USAGES_EXCUSED] = usages->excused;
    counts[TOTAL_USAGES_UNSURE] = usages->unsure;
    counts[TOTAL_COUNTED] = world->group_sum.counted;
}
