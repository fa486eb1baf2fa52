/* The contract is in fsck_usage.h. */
#include "check/fsck_usage.h"
#include "check/fsck_away.h"
#include "check/fsck_table.h"
#include "layout/map_lost.h"
#include <inttypes.h>
#include <stdlib.h>

struct usage_slot {
    uint64_t ino; /* 0: free */
    uint64_t blocks;
};

/* Open addressing, at most three quarters full. */
struct fsck_usage {
    uint32_t mask;
    uint32_t count;
    bool is_full;    /* files that are not in it may have chunks, too */
    bool is_damaged; /* problems were told before, which may explain differences */
    struct usage_slot slots[];
};

struct fsck_usage *fsck_usage_new(size_t bytes) {
    uint32_t slots = 64;

    while (slots * 2 * sizeof(struct usage_slot) <= bytes) {
        slots *= 2;
    }
    struct fsck_usage *usage = calloc(1, sizeof *usage + slots * sizeof usage->slots[0]);
    if (usage) {
        usage->mask = slots - 1;
    }
    return usage;
}

void fsck_usage_free(struct fsck_usage *usage) {
    free(usage);
}

static struct usage_slot *slot_of(struct fsck_usage *usage, uint64_t ino) {
    uint32_t at = (uint32_t)fsck_hash(ino) & usage->mask;

    while (usage->slots[at].ino != 0 && usage->slots[at].ino != ino) {
        at = (at + 1) & usage->mask;
    }
    return &usage->slots[at];
}

void fsck_usage_add(struct fsck_usage *usage, uint64_t ino, uint32_t blocks) {
    struct usage_slot *slot = slot_of(usage, ino);

    if (slot->ino == 0 && usage->count > usage->mask / 4 * 3) {
        usage->is_full = true;
        return;
    }
    usage->count += slot->ino == 0;
    slot->ino = ino;
    slot->blocks += blocks;
}

/* What targets answer of one file. */
struct usage_answer {
    uint64_t blocks;
    uint32_t losses;
    bool is_void; /* a target is lost, or no map names them */
};

static int target_ask(struct fsck *fsck, uint64_t ino, const struct inode_row *row,
                      struct target_id target, struct usage_answer *answer) {
    struct call *call = &fsck->call;

    *call = (struct call){.header.opcode = OP_CHUNK_LENGTH,
                          .request.chunk_length = {.ino = {ino},
                                                   .generation = row->chunk_generation,
                                                   .chunk_bytes = row->chunk_bytes,
                                                   .truncate_seq = row->truncate_seq,
                                                   .truncate_size = row->truncate_size}};
    int r = fsck_ask(fsck, target);
    if (r == 0) {
        answer->blocks += call->reply.chunk_length.bytes_used / BLOCK_BYTES;
        answer->losses += call->reply.chunk_length.losses;
    }
    return r;
}

/* Nobody is asked where the sum will lack something. */
static int targets_look(struct fsck *fsck, const struct layout *layout,
                        const struct pool_version *pool, bool *ret_void) {
    const struct cluster_map *map = fsck->cluster->map;
    int r = 0;

    for (uint32_t i = 0; i < layout_width(layout, pool); i++) {
        uint32_t chain = layout_chain_at(layout, pool, i);

        *ret_void = *ret_void || cluster_map_chain_is_lost(map, chain);
        if (r == 0) {
            r = fsck_is_there(fsck, cluster_map_chain(map, chain)->members[0]);
        }
    }
    return *ret_void ? 0 : r;
}

static int targets_ask(struct fsck *fsck, uint64_t ino, const struct inode_row *row,
                       struct usage_answer *ret_answer) {
    const struct cluster_map *map = fsck->cluster->map;
    struct layout layout = inode_layout(row);
    struct pool_version pool;
    int r;

    *ret_answer = (struct usage_answer){0};
    if (!cluster_map_pool(map, layout.pool_version, &pool)) {
        ret_answer->is_void = true;
        return 0;
    }
    r = targets_look(fsck, &layout, &pool, &ret_answer->is_void);
    for (uint32_t i = 0; r == 0 && !ret_answer->is_void && i < layout_width(&layout, &pool); i++) {
        uint32_t chain = layout_chain_at(&layout, &pool, i);

        r = target_ask(fsck, ino, row, cluster_map_chain(map, chain)->members[0], ret_answer);
    }
    return r;
}

static bool is_sure(const struct inode_row *row) {
    return row->data_state == DATA_CHUNKED && (row->flags & INODE_COUNTED) &&
           !(row->flags & INODE_CUT_PENDING);
}

/* Whether its metadata target has lost power since the file's end was sure: then writes may be
 * there of which it has lost all. */
static int is_behind_loss(struct fsck *fsck, uint64_t ino, const struct inode_row *inode,
                          bool *ret_behind) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    *ret_behind = false;
    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, ino), FSCK_LOST);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        *ret_behind = *ret_behind || kv_key_split(&row.key).id > inode->losses;
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int difference_tell(struct fsck *fsck, uint64_t ino, const struct inode_row *row,
                           const struct usage_answer *answer) {
    char where[FSCK_WHERE_BYTES];
    bool behind;
    int r = is_behind_loss(fsck, ino, row, &behind);

    if (r < 0 || behind || answer->losses > 0 || fsck->usage->is_damaged) {
        fsck->counts.miscounted += r == 0;
        return r;
    }
    fsck_problem(fsck, "block-count", fsck_where_ino(fsck, ino, where),
                 "it counts %" PRIu64 " blocks, and its storage targets have %" PRIu64,
                 inode_blocks(row), answer->blocks);
    return 0;
}

/* *ret_still: nobody has it open for writing, and its row is the same before and behind. */
static int file_look(struct fsck *fsck, uint64_t ino, struct inode_row *row,
                     struct usage_answer *answer, bool *ret_still) {
    struct inode_row behind = {0};
    bool written = false;

    int r = targets_ask(fsck, ino, row, answer);
    r = r < 0 ? r : fsck_is_written(fsck, ino, &written);
    r = r < 0 ? r : fsck_inode_get(fsck, ino, &behind);
    if (r == 0) {
        *ret_still = !written && memcmp(row, &behind, sizeof behind) == 0;
        *row = behind;
    }
    return r;
}

static int file_check(struct fsck *fsck, uint64_t ino) {
    struct usage_answer answer = {0};
    struct inode_row row;
    bool still = false;
    int r = fsck_inode_get(fsck, ino, &row);

    for (int i = 0; r == 0 && !still && is_sure(&row) && i < FSCK_LOOKS_MAX; i++) {
        r = file_look(fsck, ino, &row, &answer, &still);
    }
    if (r < 0) {
        return fsck_is_row_error(r) ? 0 : r;
    }
    bool differs = still && !answer.is_void && answer.blocks != inode_blocks(&row);
    return differs ? difference_tell(fsck, ino, &row, &answer) : 0;
}

/* Whether the table can't say that it is right. */
static bool is_suspect(struct fsck_usage *usage, uint64_t ino, struct bytes value) {
    const struct inode_row *row;

    if (inode_row_check(value, &row) < 0 || !is_sure(row)) {
        return false;
    }
    const struct usage_slot *slot = slot_of(usage, ino);
    return slot->ino == 0 ? usage->is_full || inode_blocks(row) > 0
                          : slot->blocks != inode_blocks(row);
}

int fsck_usages(struct fsck *fsck) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    fsck->usage->is_damaged = fsck->counts.problems > 0;
    fsck_list_begin_all(&list, fsck, FSCK_INODES);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        uint64_t ino = kv_key_split(&row.key).id;

        if (is_suspect(fsck->usage, ino, row.value)) {
            r = fsck_pass_by(fsck, file_check(fsck, ino));
            if (r < 0) {
                return r;
            }
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}
