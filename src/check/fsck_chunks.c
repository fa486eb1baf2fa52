/* The index of an OST: each chunk whole in itself, and some inode's, of its generation, where the
 * layout has it. One walk in order of inodes, so an inode is asked for once an OST.
 *
 * Chunks come before their inode knows of them (a file that moves to chunks: its M row is there as
 * long as they may become the file's) and go after it (the queue of orders). So what seems stray is
 * kept, and judged when all else is done. */
#include "check/fsck_away.h"
#include "check/fsck_lost.h"
#include "check/fsck_slots.h"
#include "check/fsck_usage.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STRAY_WAIT_MS = 3000 };

struct chunk_walk {
    struct fsck *fsck;
    uint32_t ost;
    struct fsck_chunk id; /* of the rows at hand */
    bool has_head;
    uint64_t version; /* the head's; 0: has none */
    uint32_t head_blocks;
    uint32_t blocks; /* named by segments */
    uint32_t chunk_bytes;
    uint32_t length;
    uint32_t truncate_seq;
    uint64_t promised;         /* of all chunks of the target so far */
    uint32_t stray_generation; /* told last, once a generation and OST; 0: none of this file's */
    bool is_long;              /* told once a file and OST */
    uint64_t ino;              /* whose row is known */
    int ino_result;
    struct inode_row inode;
};

static struct fsck_chunk id_of(const struct kv_key *key) {
    struct kv_key_fields fields = kv_key_split(key);

    return (struct fsck_chunk){{fields.id}, fields.generation, chunk_of(&fields)};
}

static bool id_is(const struct fsck_chunk *a, const struct fsck_chunk *b) {
    return a->ino.value == b->ino.value && a->generation == b->generation && a->chunk == b->chunk;
}

static const char *where_chunk(struct fsck *fsck, uint32_t ost, const struct fsck_chunk *id,
                               char where[FSCK_WHERE_BYTES]) {
    char file[FSCK_WHERE_BYTES];
    int size =
        snprintf(where, FSCK_WHERE_BYTES, "%.1100s", fsck_where_ino(fsck, id->ino.value, file));

    snprintf(where + size, FSCK_WHERE_BYTES - (size_t)size, ", chunk %" PRIu64 " on ost%" PRIu32,
             id->chunk, ost);
    return where;
}

static struct kv_key head_key(const struct fsck_chunk *id) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = store_bucket(id->ino),
                                              .type = STORE_ROW_CHUNK,
                                              .id = id->ino.value,
                                              .generation = id->generation,
                                              .index = id->chunk << STORE_INDEX_BITS});
}

static bool head_get(struct bytes value, struct store_head *ret_head) {
    struct store_head head = {0};

    if (value.size != sizeof head && value.size != STORE_HEAD_BYTES) {
        return false;
    }
    memcpy(&head, value.data, value.size);
    bool promises = head.promise != STORE_PROMISE_NONE;
    *ret_head = head;
    return head.format == (promises ? STORE_FORMAT_PROMISING : STORE_FORMAT) &&
           promises == (value.size == sizeof head) && head.promise <= STORE_PROMISE_SOME &&
           head.chunk_bytes <= (uint32_t)STORE_CHUNK_BLOCKS_MAX * BLOCK_BYTES &&
           head.length <= head.chunk_bytes && head.promised <= head.chunk_bytes / BLOCK_BYTES &&
           (promises || head.promised == 0);
}

static void row_add(struct chunk_walk *walk, const struct fsck_row *row) {
    struct kv_key_fields fields = kv_key_split(&row->key);

    if (chunk_row_of(&fields) == 0) {
        struct store_head head;

        walk->has_head = head_get(row->value, &head);
        walk->version = walk->has_head ? head.version : 0;
        walk->head_blocks = walk->has_head ? head.block_count : 0;
        walk->chunk_bytes = walk->has_head ? head.chunk_bytes : 0;
        walk->length = walk->has_head ? head.length : 0;
        walk->truncate_seq = walk->has_head ? head.truncate_seq : 0;
        walk->promised += walk->has_head ? head.promised : 0;
        return;
    }
    if (!store_row_is_segment(chunk_row_of(&fields))) {
        return;
    }
    struct store_segment segment = fsck_segment(row->value);
    for (size_t i = 0; i < BLOCKS_PER_SEGMENT; i++) {
        walk->blocks += store_entry_block(&segment.entries[i]) != 0;
    }
}

static void walk_begin(struct chunk_walk *walk, const struct fsck_chunk *id) {
    walk->id = *id;
    walk->has_head = false;
    walk->version = 0;
    walk->head_blocks = 0;
    walk->blocks = 0;
    walk->length = 0;
}

/* All rows of one chunk. They fit one answer, but come in several where the target has to wait for
 * some: between those it may change. */
static int chunk_load(struct chunk_walk *walk, const struct fsck_chunk *id, bool *ret_found) {
    struct kv_key from = head_key(id);
    struct fsck_list list;
    struct fsck_row row;
    int r;

    walk_begin(walk, id);
    *ret_found = false;
    fsck_list_begin(&list, walk->fsck, fsck_ost(walk->fsck, walk->ost), FSCK_CHUNKS);
    fsck_list_from(&list, &from);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct fsck_chunk got = id_of(&row.key);

        if (!id_is(&got, id)) {
            return 0;
        }
        *ret_found = true;
        row_add(walk, &row);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static bool is_whole(const struct chunk_walk *walk) {
    return walk->has_head && walk->head_blocks == walk->blocks;
}

static void index_tell(const struct chunk_walk *walk) {
    char where[FSCK_WHERE_BYTES];

    where_chunk(walk->fsck, walk->ost, &walk->id, where);
    if (walk->has_head) {
        fsck_problem(walk->fsck, "index", where,
                     "its head counts %" PRIu32 " blocks, its segments name %" PRIu32,
                     walk->head_blocks, walk->blocks);
    } else {
        fsck_problem(walk->fsck, "index", where,
                     "the row of the chunk is missing or makes no sense: it reads as a hole");
    }
}

/* Each change gives the head another version: where that is the same before the segments were read
 * and behind them, they were read as they are. */
static int chunk_recheck(const struct chunk_walk *from) {
    struct chunk_walk before = *from;

    for (int i = 0; i < FSCK_LOOKS_MAX; i++) {
        struct chunk_walk now = {.fsck = from->fsck, .ost = from->ost};
        bool found;

        int r = chunk_load(&now, &from->id, &found);
        if (r < 0 || !found || is_whole(&now)) {
            return r;
        }
        if (now.has_head == before.has_head && now.version == before.version) {
            index_tell(&before);
            return 0;
        }
        before = now;
    }
    from->fsck->counts.unsettled++;
    return 0;
}

/* NULL when the inode has this chunk, and here. */
static const char *stray_reason(const struct fsck *fsck, uint32_t ost, const struct fsck_chunk *id,
                                int inode_result, const struct inode_row *inode) {
    if (inode_result < 0) {
        return inode_result == -ERR_NOT_FOUND ? "its inode does not exist" : NULL;
    }
    if (inode->data_state != DATA_CHUNKED) {
        return "its file has no chunks";
    }
    if (inode->chunk_generation != id->generation) {
        return "its file has chunks of another generation";
    }
    struct layout layout = inode_layout(inode);
    struct pool_version pool;
    if (!cluster_map_pool(fsck->cluster->map, layout.pool_version, &pool)) {
        return NULL; /* It is newer than the map. */
    }
    uint32_t chain_id = layout_chain(&layout, &pool, id->chunk);
    const struct map_chain *chain = cluster_map_chain(fsck->cluster->map, chain_id);
    for (uint32_t i = 0; chain && i < chain->member_count; i++) {
        if (chain->members[i].value == fsck_ost(fsck, ost).value) {
            return NULL;
        }
    }
    return "the layout of its file has it elsewhere";
}

static bool is_beyond(const struct chunk_walk *walk, const struct inode_row *inode) {
    uint64_t end = walk->id.chunk * walk->chunk_bytes + walk->length;

    return walk->length > 0 && inode->data_state == DATA_CHUNKED &&
           inode->truncate_seq == walk->truncate_seq &&
           inode->chunk_generation == walk->id.generation && end > inode->size;
}

int fsck_is_written(struct fsck *fsck, uint64_t ino, bool *ret_written) {
    struct kv_key from = key_owner(ROW_WRITER, ino, 0, 0);
    struct fsck_list list;
    struct fsck_row row;

    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, ino), FSCK_WRITERS);
    fsck_list_from(&list, &from);
    int r = fsck_list_next(&list, &row);
    *ret_written = r == 0 && kv_key_split(&row.key).id == ino;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Whoever writes owes the size until the close, whose record raises it. So the chunk is looked at
 * first, then whether anyone writes, then the size. No problem: a power loss may take back the
 * metadata target's records and not a storage target's. */
static int size_recheck(struct chunk_walk *walk) {
    struct inode_row inode;
    bool written;

    int r = fsck_is_written(walk->fsck, walk->id.ino.value, &written);
    if (r < 0 || written) {
        return r;
    }
    r = fsck_inode_get(walk->fsck, walk->id.ino.value, &inode);
    walk->fsck->counts.beyond += r == 0 && is_beyond(walk, &inode);
    return fsck_is_row_error(r) ? 0 : r;
}

static int owner_check(struct chunk_walk *walk) {
    uint64_t ino = walk->id.ino.value;

    if (walk->ino != ino) {
        walk->ino_result = fsck_inode_get(walk->fsck, ino, &walk->inode);
        walk->ino = ino;
        walk->stray_generation = 0;
        walk->is_long = false;
        if (walk->ino_result < 0 && !fsck_is_row_error(walk->ino_result)) {
            return fsck_pass_by(walk->fsck, walk->ino_result);
        }
    }
    if (walk->stray_generation == walk->id.generation ||
        !stray_reason(walk->fsck, walk->ost, &walk->id, walk->ino_result, &walk->inode)) {
        return 0;
    }
    walk->stray_generation = walk->id.generation;
    if (fsck_ino_is_lost(walk->fsck, walk->id.ino.value)) {
        walk->fsck->kept++; /* Nobody can say any more that it is nobody's. */
    } else if (walk->fsck->stray_count < FSCK_SUSPECTS_MAX) {
        walk->fsck->strays[walk->fsck->stray_count++] = (struct fsck_stray){walk->ost, walk->id};
    } else {
        walk->fsck->counts.unsettled++;
    }
    return 0;
}

/* Answers use the list's memory, so the walk goes on with a list of its own behind the chunk. */
static int chunk_end(struct chunk_walk *walk, struct fsck_list *list) {
    const struct fsck_chunk next = {walk->id.ino, walk->id.generation, walk->id.chunk + 1};

    walk->fsck->counts.chunks++;
    walk->fsck->counts.blocks += walk->blocks;
    int r = owner_check(walk);
    if (r == 0 && walk->ino_result == 0 && walk->inode.chunk_generation == walk->id.generation) {
        fsck_usage_add(walk->fsck->usage, walk->id.ino.value, walk->head_blocks);
    }
    bool is_long = walk->ino_result == 0 && !walk->is_long && is_beyond(walk, &walk->inode);
    if (r < 0 || (is_whole(walk) && !is_long)) {
        return r;
    }
    r = is_whole(walk) ? 0 : chunk_recheck(walk);
    if (r == 0 && is_long) {
        walk->is_long = true;
        r = fsck_pass_by(walk->fsck, size_recheck(walk));
    }
    struct kv_key from = head_key(&next);
    fsck_list_from(list, &from);
    return r < 0 ? r : 1;
}

int fsck_chunks(struct fsck *fsck, uint32_t ost) {
    struct chunk_walk walk = {.fsck = fsck, .ost = ost};
    struct fsck_list list;
    struct fsck_row row;
    bool inside = false;
    int r;

    fsck_list_begin(&list, fsck, fsck_ost(fsck, ost), FSCK_CHUNKS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct fsck_chunk id = id_of(&row.key);

        if (inside && !id_is(&id, &walk.id)) {
            inside = false;
            r = chunk_end(&walk, &list);
            if (r < 0) {
                return r;
            }
            if (r > 0) {
                continue;
            }
        }
        if (!inside) {
            walk_begin(&walk, &id);
            inside = true;
        }
        row_add(&walk, &row);
    }
    if (r == -ERR_NOT_FOUND) {
        r = inside ? chunk_end(&walk, &list) : 0;
    }
    return r < 0 ? r : fsck_promised(fsck, ost, walk.promised);
}

/* Whether somebody moves the inode's bytes to chunks of this generation. */
static int is_moving(struct fsck *fsck, const struct fsck_chunk *id, bool *ret_moving) {
    struct kv_key from = key_owner(ROW_MOVE, id->ino.value, id->generation, 0);
    const struct order_row *order;
    struct fsck_list list;
    struct fsck_row row;

    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, id->ino.value), FSCK_MOVES);
    fsck_list_from(&list, &from);
    int r = fsck_list_next(&list, &row);
    struct kv_key_fields fields = r == 0 ? kv_key_split(&row.key) : (struct kv_key_fields){0};
    *ret_moving = r == 0 && fields.id == id->ino.value && fields.generation == id->generation &&
                  order_row_check(row.value, &order) == 0;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* Whether an order to delete these chunks is in the queue. */
static int is_queued(struct fsck *fsck, const struct fsck_chunk *id, bool *ret_queued) {
    const struct order_row *order;
    struct fsck_list list;
    struct fsck_row row;
    int r;

    *ret_queued = false;
    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, id->ino.value), FSCK_QUEUE);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        if (kv_key_split(&row.key).index == id->ino.value &&
            order_row_check(row.value, &order) == 0 && order->kind == ORDER_DELETE &&
            order->chunk_generation == id->generation) {
            *ret_queued = true;
            return 0;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* In this order: the record that ends a move makes its chunks the inode's or orders to delete them,
 * and an inode that is gone has its order until the chunk is gone. A target that does not have the
 * slot, which it may have given away since, does not know whether there is an inode. */
int fsck_stray_look(struct fsck *fsck, const struct fsck_stray *stray, const char **ret_reason) {
    struct chunk_walk walk = {.fsck = fsck, .ost = stray->ost};
    struct inode_row inode;
    bool moving = false;
    bool queued = false;
    bool found = false;

    *ret_reason = NULL;
    int r = is_moving(fsck, &stray->id, &moving);
    if (r < 0 || moving) {
        return r;
    }
    r = fsck_inode_get(fsck, stray->id.ino.value, &inode);
    if (r < 0 && !fsck_is_row_error(r)) {
        return r;
    }
    *ret_reason = stray_reason(fsck, stray->ost, &stray->id, r, &inode);
    if (!*ret_reason) {
        return 0;
    }
    if (r == -ERR_NOT_FOUND) {
        struct fsck_slot slot;

        r = fsck_slot_get(fsck, stray->id.ino.value, &slot);
        if (r < 0 || !slot.is_its) {
            fsck->counts.unsettled += r == 0;
            *ret_reason = NULL;
            return r;
        }
    }
    r = is_queued(fsck, &stray->id, &queued);
    if (r == 0 && !queued) {
        r = chunk_load(&walk, &stray->id, &found);
    }
    if (r < 0 || queued || !found) {
        *ret_reason = NULL;
    }
    return r;
}

static void kept_tell(struct fsck *fsck) {
    if (fsck->kept > 0) {
        fsck_problem(fsck, "lost-metadata", "storage targets",
                     "chunks of %" PRIu64 " files (of each storage target) that lost metadata "
                     "targets had: their blocks stay in use, as nobody can say any more that they "
                     "are nobody's",
                     fsck->kept);
    }
}

int fsck_strays(struct fsck *fsck) {
    struct env *env = fsck->cluster->env;
    uint64_t deadline_ns = env_now_ns(env) + STRAY_WAIT_MS * NS_PER_MS;
    uint32_t at = fsck->cluster->unscrubbed ? fsck->stray_count : 0;

    fsck->counts.unjudged += at;
    while (at < fsck->stray_count) {
        const struct fsck_stray *stray = &fsck->strays[at];
        char where[FSCK_WHERE_BYTES];
        const char *reason;

        int r = fsck_pass_by(fsck, fsck_stray_look(fsck, stray, &reason));
        if (r < 0) {
            return r;
        }
        if (fsck->report->stopped(fsck->report->context)) {
            return -ERR_CLOSED;
        }
        bool waits = reason && env_now_ns(env) < deadline_ns;
        if (waits) {
            fsck->cluster->rest(fsck->cluster->context);
        } else if (reason) {
            fsck_problem(fsck, "orphan-chunk", where_chunk(fsck, stray->ost, &stray->id, where),
                         "%s: its blocks are lost space", reason);
        }
        at += !waits;
    }
    kept_tell(fsck);
    return 0;
}
