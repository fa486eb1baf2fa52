/* Walks over the rows of targets. */
#include "strays.h"
#include "layout/layout.h"
#include "layout/map_lost.h"
#include "losses.h"
#include "meta/inode.h"
#include "meta/rows.h"
#include "store/store_format.h"
#include "walk.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int row_get(struct world *world, struct kv_key key, struct walk *ret_walk) {
    struct kv_key to = key;

    to.bytes[KV_KEY_BYTES - 1]++;
    walk_begin(ret_walk, world_mdt_of(world, kv_key_split(&key).id), key, to);
    int r = walk_next(ret_walk);
    return r == 0 && kv_key_compare(&ret_walk->cursor.key, &key) != 0 ? -ERR_NOT_FOUND : r;
}

/* The first row of that type; NULL: there is none. */
static const struct node *row_any(struct world *world, enum row_type type, struct walk *ret_walk) {
    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        if (node_is_lost(&world->mdts[i])) {
            continue;
        }
        walk_begin(ret_walk, &world->mdts[i], key_owner(type, 0, 0, 0),
                   key_owner(type, UINT64_MAX, UINT32_MAX, UINT64_MAX));
        if (walk_next(ret_walk) != -ERR_NOT_FOUND) {
            return &world->mdts[i];
        }
    }
    return NULL;
}

static bool log_is_lost(const struct cluster_map *map, uint64_t log) {
    bool lost = false;

    for (uint32_t i = 0; i < map->target_count; i++) {
        lost = lost || (log != 0 && cluster_map_lost_log(map, i).value == log);
    }
    return lost;
}

/* Marks stay until the next message of their coordinator; where that is lost, nothing stays. */
static const struct node *promise_any(struct world *world, struct walk *ret_walk) {
    const struct transaction_row *row;
    struct bytes halves;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        if (node_is_lost(&world->mdts[i])) {
            continue;
        }
        walk_begin(ret_walk, &world->mdts[i], key_owner(ROW_TRANSACTION, 0, 0, 0),
                   key_owner(ROW_TRANSACTION, UINT64_MAX, UINT32_MAX, UINT64_MAX));
        while (walk_next(ret_walk) == 0) {
            if (transaction_row_check((struct bytes){ret_walk->value, ret_walk->size}, &row,
                                      &halves) < 0 ||
                row->state != TRANSACTION_COMMITTED ||
                log_is_lost(&world->map, kv_key_split(&ret_walk->cursor.key).id)) {
                return &world->mdts[i];
            }
        }
    }
    return NULL;
}

bool strays_are_settled(struct world *world, char left[200]) {
    static const enum row_type types[] = {ROW_WRITER, ROW_ORPHAN, ROW_MOVE, ROW_ORDER,
                                          ROW_DECISION};
    const struct node *of = NULL;
    struct walk walk;

    for (size_t i = 0; !of && i < ARRAY_SIZE(types); i++) {
        of = row_any(world, types[i], &walk);
    }
    of = of ? of : promise_any(world, &walk);
    if (of) {
        struct kv_key_fields at = kv_key_split(&walk.cursor.key);

        snprintf(left, 200, "row %c %" PRIx64 " %" PRIu32 " %" PRIu64 " of %s", at.type, at.id,
                 at.generation, at.index, sim_process_name(of->process));
    }
    return !of;
}

/* Whether power loss took all that was known of it. */
static bool is_lost(struct world *world, struct ino ino, uint32_t generation) {
    const struct lost_row *row;
    struct walk walk;
    bool lost = false;

    walk_begin(&walk, world_mdt_of(world, ino.value), key_owner(ROW_LOST, 0, 0, 0),
               key_owner(ROW_LOST, UINT64_MAX, UINT32_MAX, UINT64_MAX));
    while (walk_next(&walk) == 0) {
        if (lost_row_check((struct bytes){walk.value, walk.size}, &row) == 0) {
            lost = lost || lost_row_has(row, ino, generation);
        }
    }
    return lost;
}

enum owner { OWNER_FILE, OWNER_SCRUB, OWNER_NOBODY };

/* Of what a lost metadata target had nobody can say that it is nobody's. */
static enum owner owner_of(struct world *world, struct ino ino, uint32_t generation) {
    const struct inode_row *row;
    struct walk walk;

    if (node_is_lost(world_mdt_of(world, ino.value))) {
        return OWNER_FILE;
    }
    int r = row_get(world, key_inode(ino), &walk);

    if (r == 0 && inode_row_check((struct bytes){walk.value, walk.size}, &row) == 0) {
        bool own = row->data_state == DATA_CHUNKED && row->chunk_generation == generation;

        return own ? OWNER_FILE : OWNER_SCRUB;
    }
    return is_lost(world, ino, generation) ? OWNER_SCRUB : OWNER_NOBODY;
}

/* What heads promise is what the target keeps: in its row, and in memory. */
static bool promised_check(struct node *ost, uint64_t promised, char failure[600]) {
    struct store_promised total = {0};
    struct ost_counters counters;
    struct walk walk;

    walk_begin(&walk, ost, store_owner_key(STORE_ROW_PROMISED, 0, 0),
               store_owner_key(STORE_ROW_PROMISED, 0, 1));
    if (walk_next(&walk) == 0) {
        memcpy(&total, walk.value, MIN(walk.size, sizeof total));
    }
    ost_counters_get(node_ost(ost), &counters);
    if (total.block_count == promised && counters.promised_blocks == promised) {
        return true;
    }
    snprintf(failure, 600,
             "%s has promised %" PRIu64 " blocks by its row, %" PRIu64
             " by its memory, and %" PRIu64 " by its chunks",
             sim_process_name(ost->process), total.block_count, counters.promised_blocks, promised);
    return false;
}

static uint64_t promised_of(const struct walk *walk) {
    struct store_head head = {0};

    if (kv_key_split(&walk->cursor.key).index % (1 << STORE_INDEX_BITS) == 0) {
        memcpy(&head, walk->value, MIN(walk->size, sizeof head));
    }
    return head.promised;
}

static bool ost_check(struct world *world, struct node *ost, uint64_t *count, char failure[600]) {
    struct kv_key_fields last = {0};
    uint64_t promised = 0;
    struct walk walk;
    int r;

    walk_begin(&walk, ost, kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT}),
               kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT + 1}));
    while ((r = walk_next(&walk)) == 0) {
        struct kv_key_fields at = kv_key_split(&walk.cursor.key);

        promised += at.type == STORE_ROW_CHUNK ? promised_of(&walk) : 0;
        if (at.type != STORE_ROW_CHUNK || (at.id == last.id && at.generation == last.generation)) {
            continue;
        }
        last = at;
        enum owner owner = owner_of(world, (struct ino){at.id}, at.generation);
        *count += owner == OWNER_SCRUB;
        if (owner == OWNER_NOBODY) {
            snprintf(failure, 600,
                     "%s has chunks of inode %" PRIx64 ", generation %" PRIu32
                     ", which belong to no file, and no scrub may take them",
                     sim_process_name(ost->process), at.id, at.generation);
            return false;
        }
    }
    if (r != -ERR_NOT_FOUND) {
        snprintf(failure, 600, "the chunks of %s cannot be listed: %s",
                 sim_process_name(ost->process), err_name(r));
    }
    return r == -ERR_NOT_FOUND && promised_check(ost, promised, failure);
}

bool strays_check(struct world *world, uint64_t *ret_count, char failure[600]) {
    bool good = true;

    *ret_count = 0;
    for (uint32_t i = 0; good && i < world->options.ost_count; i++) {
        good =
            node_is_lost(&world->osts[i]) || ost_check(world, &world->osts[i], ret_count, failure);
    }
    return good;
}

bool strays_are_elsewhere(struct world *world, const struct node *away, char failure[600]) {
    uint64_t count = 0;
    bool good = true;

    for (uint32_t i = 0; good && i < world->options.ost_count; i++) {
        struct node *ost = &world->osts[i];

        good = ost == away || node_is_lost(ost) || ost_check(world, ost, &count, failure);
    }
    return good;
}

static bool inode_needs(struct world *world, struct ino ino, const struct node *away) {
    const struct inode_row *row;
    struct pool_version pool;
    struct walk walk;

    if (row_get(world, key_inode(ino), &walk) < 0 ||
        inode_row_check((struct bytes){walk.value, walk.size}, &row) < 0) {
        return false;
    }
    struct layout layout = inode_layout(row);
    bool named = cluster_map_pool(&world->map, layout.pool_version, &pool);
    uint32_t width = named ? layout_width(&layout, &pool) : 0;
    for (uint32_t i = 0; i < width; i++) {
        const struct map_chain *chain =
            cluster_map_chain(&world->map, layout_chain_at(&layout, &pool, i));

        if (chain && chain->members[0].value == away->target_id) {
            return true;
        }
    }
    return !named;
}

bool strays_writers_need(struct world *world, const struct node *away, char failure[600]) {
    struct walk walk;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        if (node_is_lost(&world->mdts[i])) {
            continue;
        }
        walk_begin(&walk, &world->mdts[i], key_owner(ROW_WRITER, 0, 0, 0),
                   key_owner(ROW_WRITER, UINT64_MAX, UINT32_MAX, UINT64_MAX));
        while (walk_next(&walk) == 0) {
            struct kv_key_fields at = kv_key_split(&walk.cursor.key);

            if (!inode_needs(world, (struct ino){at.id}, away)) {
                snprintf(failure, 600, "inode %" PRIx64 " is still open for session %" PRIu64,
                         at.id, at.index);
                return false;
            }
        }
    }
    return true;
}
