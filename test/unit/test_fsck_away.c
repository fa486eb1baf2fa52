/* A check of two metadata and two storage targets whose rows are made up, of which each goes away
 * at each of its questions in turn, and doesn't come back. What is whole never seems damaged; what
 * is damaged is found where all that it takes is there; who is away is asked nothing more. */
#include "unit.h"
#include "check/fsck_internal.h"
#include "check/scrub.h"
#include "meta/half_format.h"
#include "meta/meta_format.h"
#include "store/fsck_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A = 1, B = 2, OST0 = 3, OST1 = 4, TARGETS = 4, ROWS_MAX = 64, VALUE_BYTES_MAX = 1040 };
enum { KINDS_MAX = 16, CHUNK_BYTES = 65536, BLOCK = 5, LEAKED = 9 };

struct row {
    uint32_t target, what;
    struct kv_key key;
    size_t size;
    uint8_t value[VALUE_BYTES_MAX];
};

static struct {
    struct cluster_map map;
    uint64_t now_ns;
    struct row rows[ROWS_MAX];
    uint32_t row_count;
    uint32_t gone, gone_at;      /* the target that goes away at its question of that number */
    uint32_t asked[TARGETS + 1]; /* of each target */
    uint32_t deleted;            /* orders to delete chunks */
    uint32_t kept;               /* chunks that a scrub has said to stay */
    uint32_t changes;            /* of a chunk, to come: one behind each answer that lists some */
    uint32_t kept_at;            /* B carries out what it has promised at that question; 0: never */
    char found[KINDS_MAX][32];   /* kinds of problems */
    uint32_t found_count;
    struct fsck_target targets[MAP_TARGETS_MAX];
} it;

static struct ino ino_of(uint32_t mdt, uint64_t number) {
    return ino_make((struct slot){(uint16_t)(mdt - 1)}, number);
}

static int row_compare(const void *a, const void *b) {
    return kv_key_compare(&((const struct row *)a)->key, &((const struct row *)b)->key);
}

static void put(uint32_t target, uint32_t what, struct kv_key key, const void *value, size_t size) {
    struct row *row = &it.rows[it.row_count++];

    assert_true(it.row_count <= ROWS_MAX && size <= sizeof row->value);
    *row = (struct row){.target = target, .what = what, .key = key, .size = size};
    memcpy(row->value, value, size);
}

static struct row *row_find(uint32_t what, struct ino ino) {
    for (uint32_t i = 0; i < it.row_count; i++) {
        if (it.rows[i].what == what && kv_key_split(&it.rows[i].key).id == ino.value) {
            return &it.rows[i];
        }
    }
    return NULL;
}

static struct row *row_of(uint32_t target, struct kv_key key) {
    for (uint32_t i = 0; i < it.row_count; i++) {
        if (it.rows[i].target == target && kv_key_compare(&it.rows[i].key, &key) == 0) {
            return &it.rows[i];
        }
    }
    return NULL;
}

static void inode_put(uint32_t mdt, struct ino ino, struct inode_row row) {
    row.format = META_FORMAT;
    row.epoch = 1;
    put(mdt, FSCK_INODES, key_inode(ino), &row, sizeof row);
}

static void directory_put(uint32_t mdt, struct ino ino, struct ino parent) {
    const struct partition_row partition = {
        .format = META_FORMAT, .state = PARTITION_LIVE, .mode = MODE_DIRECTORY | 0755};

    inode_put(
        mdt, ino,
        (struct inode_row){.nlink = 2, .mode = MODE_DIRECTORY | 0755, .parent = parent.value});
    put(mdt, FSCK_PARTITIONS, key_partition(ino), &partition, sizeof partition);
}

/* With a name of one letter, which is counted in its directory. */
static void name_put(uint32_t mdt, struct ino directory, char name, struct ino ino, bool is_dir) {
    uint8_t value[sizeof(struct dentry_row) + 1];
    const struct dentry_row row = {.format = META_FORMAT,
                                   .type = (is_dir ? MODE_DIRECTORY : MODE_REGULAR) >> 12,
                                   .name_bytes = 1,
                                   .ino = ino.value};
    struct row *counts = row_find(FSCK_PARTITIONS, directory);
    struct partition_row partition;

    memcpy(value, &row, sizeof row);
    value[sizeof row] = (uint8_t)name;
    put(mdt, FSCK_DENTRIES, key_dentry(directory, (uint64_t)name << 12), value, sizeof value);
    memcpy(&partition, counts->value, sizeof partition);
    partition.file_count += !is_dir;
    partition.directory_count += is_dir;
    memcpy(counts->value, &partition, sizeof partition);
}

/* The slots are the target's, or, with a log, given to that. */
static void slots_put(uint32_t mdt, uint32_t first, uint32_t count, uint32_t opened,
                      uint64_t given_to) {
    const struct slots_row row = {.format = META_FORMAT,
                                  .state = given_to ? SLOTS_GIVEN : SLOTS_MINE,
                                  .count = count,
                                  .opened = opened,
                                  .handover = given_to != 0,
                                  .given_to = given_to};

    put(mdt, FSCK_SLOTS, key_owner(ROW_SLOTS, first, 0, 0), &row, sizeof row);
}

static uint32_t ost_of(const struct layout *layout, uint64_t chunk) {
    struct pool_version pool;

    assert_true(cluster_map_pool(&it.map, layout->pool_version, &pool));
    uint32_t chain = layout_chain(layout, &pool, chunk);
    return cluster_map_chain(&it.map, chain)->members[0].value;
}

static struct kv_key chunk_key(struct ino ino, uint64_t chunk, uint64_t row) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = store_bucket(ino),
                                              .type = STORE_ROW_CHUNK,
                                              .id = ino.value,
                                              .generation = 1,
                                              .index = chunk << STORE_INDEX_BITS | row});
}

static void chunk_put(uint32_t ost, struct ino ino, uint64_t chunk, uint64_t block) {
    const struct store_head head = {.format = STORE_FORMAT,
                                    .chunk_bytes = CHUNK_BYTES,
                                    .length = BLOCK_BYTES,
                                    .block_count = block != 0};
    struct store_segment segment = {.format = STORE_FORMAT};

    put(ost, FSCK_CHUNKS, chunk_key(ino, chunk, 0), &head, STORE_HEAD_BYTES);
    if (block != 0) {
        store_entry_set(&segment.entries[0], block, 0);
        put(ost, FSCK_CHUNKS, chunk_key(ino, chunk, 1), &segment, sizeof segment);
    }
}

/* One chunk on each storage target, at this block. */
static void file_put(uint32_t mdt, struct ino ino, uint64_t block) {
    const struct layout layout = {
        .pool_version = 1, .chunk_bytes = CHUNK_BYTES, .stripe_count = 2, .redundancy = 1};
    struct inode_row row = {.nlink = 1,
                            .mode = MODE_REGULAR | 0644,
                            .flags = INODE_COUNTED,
                            .data_state = DATA_CHUNKED,
                            .chunk_generation = 1,
                            .size = 2 * CHUNK_BYTES,
                            .blocks_low = 2};

    inode_layout_set(&row, &layout);
    inode_put(mdt, ino, row);
    for (uint64_t chunk = 0; chunk < 2; chunk++) {
        chunk_put(ost_of(&layout, chunk), ino, chunk, block);
    }
}

static void bitmap_put(uint32_t ost, bool leaks) {
    struct store_bitmap bitmap = {.format = STORE_FORMAT};

    bitmap.bits[0] = 1 | 1 << BLOCK | 1 << (BLOCK + 1);
    bitmap.bits[LEAKED / 8] |= leaks ? 1 << LEAKED % 8 : 0;
    put(ost, FSCK_BLOCKS, store_owner_key(STORE_ROW_BITMAP, 0, 0), &bitmap, sizeof bitmap);
}

/* Names lead from each metadata target to the other one, and files of both to both storage targets.
 * Damage: a name on each metadata target whose inode that same one misses, a chunk of A's whose
 * inode is missing, and a block in use, on the first storage target. */
static void rows_make(bool damaged) {
    struct ino sub = ino_of(B, 10);
    struct ino deep = ino_of(A, 11);
    struct ino twice = ino_of(B, 12);
    struct ino file = ino_of(A, 13);
    struct ino other = ino_of(B, 14);

    it.row_count = 0;
    slots_put(A, 0, 1, 1, 0);
    slots_put(B, 1, 1, 1, 0);
    directory_put(A, INO_ROOT, INO_ROOT);
    directory_put(B, sub, INO_ROOT);
    directory_put(A, deep, sub);
    name_put(A, INO_ROOT, 's', sub, true);
    name_put(B, sub, 'd', deep, true);
    inode_put(B, twice, (struct inode_row){.nlink = 2, .mode = MODE_REGULAR | 0644});
    name_put(A, INO_ROOT, 't', twice, false);
    name_put(B, sub, 't', twice, false);
    file_put(A, file, BLOCK);
    name_put(A, INO_ROOT, 'f', file, false);
    file_put(B, other, BLOCK + 1);
    name_put(A, deep, 'o', other, false);
    bitmap_put(OST0, damaged);
    bitmap_put(OST1, false);
    if (damaged) {
        name_put(A, INO_ROOT, 'x', ino_of(A, 20), false);
        name_put(B, sub, 'x', ino_of(B, 21), false);
        chunk_put(OST0, ino_of(A, 22), 0, 0);
    }
    qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
}

static void row_give(const struct row *row, struct buffer *out) {
    bool is_store = row->target >= OST0;
    size_t head = is_store ? sizeof(struct store_fsck_row) : sizeof(uint16_t) + KV_KEY_BYTES;
    uint8_t *to = out->data + out->size;

    memcpy(to + head, row->value, row->size);
    out->size += head + row->size;
    if (is_store) {
        struct store_fsck_row told = {
            (uint32_t)(head + (row->size + 7) / 8 * 8), (uint32_t)row->size, {0}};

        memcpy(told.key, row->key.bytes, KV_KEY_BYTES);
        memcpy(to, &told, sizeof told);
        out->size += told.row_bytes - head - row->size;
    } else {
        store_le16(to, (uint16_t)row->size);
        memcpy(to + sizeof(uint16_t), row->key.bytes, KV_KEY_BYTES);
    }
}

/* Two rows an answer, so that a target goes away in the middle of each list. */
static void list_give(uint32_t target, struct call *call) {
    const struct fsck_list_request *request = &call->request.fsck_list;
    uint32_t given = 0;

    call->reply.fsck_list.end = true;
    for (uint32_t i = 0; i < it.row_count; i++) {
        const struct row *row = &it.rows[i];

        if (row->target != target || row->what != request->what ||
            (request->cursor.size > 0 &&
             memcmp(row->key.bytes, request->cursor.data, KV_KEY_BYTES) <= 0)) {
            continue;
        }
        if (given == 2 || call->bulk_in.size + row->size + 64 > request->bytes_max) {
            call->reply.fsck_list.end = false;
            return;
        }
        row_give(row, &call->bulk_in);
        given++;
    }
}

/* The name leads where the promise says, which is no more. */
static void promise_keep(void) {
    struct ino directory = ino_of(B, 10);

    for (uint32_t i = 0; i < it.row_count; i++) {
        struct row *row = &it.rows[i];

        if (row->what == FSCK_TRANSACTIONS) {
            row->target = 0;
        } else if (row->what == FSCK_DENTRIES && kv_key_split(&row->key).id == directory.value &&
                   row->value[sizeof(struct dentry_row)] == 'y') {
            store_le64(row->value + offsetof(struct dentry_row, ino), ino_of(A, 16).value);
        }
    }
}

/* A's file gets a block more, or loses it. */
static void chunk_change(void) {
    for (uint32_t i = 0; i < it.row_count; i++) {
        struct row *row = &it.rows[i];
        struct kv_key_fields fields = kv_key_split(&row->key);
        struct store_head head = {0};
        struct store_segment segment;

        if (row->target != OST0 || row->what != FSCK_CHUNKS || fields.id != ino_of(A, 13).value) {
            continue;
        }
        if (chunk_row_of(&fields) == 0) {
            memcpy(&head, row->value, row->size);
            head.version++;
            head.block_count = head.block_count == 1 ? 2 : 1;
            memcpy(row->value, &head, row->size);
        } else if (chunk_row_of(&fields) == 2) {
            memcpy(&segment, row->value, sizeof segment);
            bool has = store_entry_block(&segment.entries[0]) != 0;
            store_entry_set(&segment.entries[0], has ? 0 : BLOCK, 0);
            memcpy(row->value, &segment, sizeof segment);
        }
    }
}

static int answer(struct call *call) {
    uint32_t target = (uint32_t)call->header.log.value;

    it.asked[target]++;
    if (target == B && it.asked[B] == it.kept_at) {
        promise_keep();
    }
    if (it.gone == target && it.asked[target] >= it.gone_at) {
        assert_int_equal(it.asked[target], it.gone_at);
        return it.gone_at % 2 ? -ERR_AWAY : -ERR_TIMED_OUT;
    }
    if (call->header.opcode == OP_STATFS) {
        call->reply.statfs.bytes_total = (uint64_t)STORE_BITMAP_BITS * BLOCK_BYTES;
    } else if (call->header.opcode == OP_CHUNK_LENGTH) {
        call->reply.chunk_length.bytes_used = BLOCK_BYTES;
    } else if (call->header.opcode == OP_FSCK_LIST) {
        list_give(target, call);
        if (target == OST0 && call->request.fsck_list.what == FSCK_CHUNKS && it.changes > 0) {
            it.changes--;
            chunk_change();
        }
    } else if (call->header.opcode == OP_CHUNK_DELETE) {
        it.deleted++;
        call->reply.chunk_delete.end = true;
    }
    return 0;
}

static void ask(void *context, struct call *calls, uint32_t count) {
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(calls[i].deadline_ns > it.now_ns);
        calls[i].result = answer(&calls[i]);
    }
}

static void rest(void *context) {
    (void)context;
    it.now_ns += NS_PER_S;
}

static uint64_t now_ns(struct env *env) {
    (void)env;
    return it.now_ns;
}

static void problem(void *context, const char *kind, const char *where, const char *meaning) {
    (void)context;
    (void)meaning;
    assert_true(it.found_count < KINDS_MAX);
    snprintf(it.found[it.found_count++], sizeof it.found[0], "%s %.8s", kind, where);
}

static void progress(void *context, const char *line) {
    (void)context;
    (void)line;
}

static bool never(void *context) {
    (void)context;
    return false;
}

static struct fsck_cluster cluster_here(void) {
    static const struct env_ops ops = {.now_ns = now_ns};
    static struct env env = {.ops = &ops};

    return (struct fsck_cluster){.env = &env,
                                 .map = &it.map,
                                 .targets = it.targets,
                                 .patience_ns = 1,
                                 .answer_ns = NS_PER_S,
                                 .ask = ask,
                                 .rest = rest};
}

static struct fsck_counts check(uint32_t gone, uint32_t gone_at) {
    const struct fsck_cluster cluster = cluster_here();
    const struct fsck_report report = {.problem = problem, .progress = progress, .stopped = never};
    struct fsck_counts counts;
    uint64_t unjudged = 0;

    it.gone = gone;
    it.gone_at = gone_at;
    it.found_count = 0;
    memset(it.asked, 0, sizeof it.asked);
    memset(it.targets, 0, sizeof it.targets);
    assert_int_equal(fsck_run_all(&cluster, &report, true, &counts), 0);
    assert_int_equal(counts.problems, it.found_count);
    for (uint32_t i = 0; i < it.map.target_count; i++) {
        bool is_gone = it.map.targets[i].id.value == gone && it.asked[gone] >= gone_at;

        assert_int_equal(it.targets[i].silence < 0, is_gone);
        assert_true(it.targets[i].answered == (!is_gone || gone_at > 1));
        unjudged += it.targets[i].unjudged;
    }
    assert_int_equal(counts.unjudged, unjudged);
    return counts;
}

static uint32_t found(const char *kind) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < it.found_count; i++) {
        count += strncmp(it.found[i], kind, strlen(kind)) == 0;
    }
    return count;
}

static void map_make(void) {
    const struct target_id osts[] = {{OST0}, {OST1}};
    struct cluster_map *map = &it.map;

    cluster_map_single(map, (struct target_id){A}, osts, 2);
    map->targets[map->target_count] = map->targets[0];
    map->targets[map->target_count++].id = (struct target_id){B};
    map->groups[1] = map->groups[0];
    map->groups[1].id.value++;
    map->groups[1].members[0] = (struct target_id){B};
    map->group_count = 2;
    map->slot_groups[B - 1] = 1;
    map->groups[0].log.value = A;
    map->groups[1].log.value = B;
    for (uint32_t i = 0; i < map->target_count; i++) {
        if (map->targets[i].kind == TARGET_OST) {
            map->targets[i].log.value = map->targets[i].id.value;
        }
    }
}

static int set_up(void **state) {
    (void)state;
    memset(&it, 0, sizeof it);
    it.now_ns = NS_PER_S;
    map_make();
    return 0;
}

static void count_kept(void *context, uint64_t ino, uint32_t ost) {
    (void)context;
    (void)ino;
    (void)ost;
    it.kept++;
}

static bool deleted_once(void *context) {
    (void)context;
    return it.deleted > 0;
}

/* Each at each of its questions. */
static void test_no_false_finding(void **state) {
    (void)state;
    rows_make(false);
    assert_int_equal(check(0, 0).unjudged, 0);
    assert_int_equal(it.found_count, 0);
    for (uint32_t target = A; target <= TARGETS; target++) {
        uint64_t unjudged = 0;
        uint32_t at = 1;

        do {
            struct fsck_counts counts = check(target, at);

            assert_int_equal(it.found_count, 0);
            unjudged += counts.unjudged;
        } while (it.asked[target] >= at++);
        assert_true(at > 10 && unjudged > 0);
    }
}

static void test_damage_is_found_beside(void **state) {
    (void)state;
    rows_make(true);
    for (uint32_t target = 0; target <= TARGETS; target++) {
        uint32_t at = 1;

        do {
            uint32_t names = 2;
            uint32_t places = 1;

            (void)check(target, at);
            bool all = it.asked[target] < at;
            /* What it had told before it went may have been enough. */
            assert_in_range(found("missing-inode"), names - (!all && target <= B), names);
            assert_in_range(found("orphan-chunk"), all || target == B || target == OST1, places);
            assert_in_range(found("lost-blocks"), all || target != OST0, places);
            assert_int_equal(it.found_count,
                             found("missing-inode") + found("orphan-chunk") + found("lost-blocks"));
        } while (target > 0 && it.asked[target] >= at++);
    }
}

/* Names of files may be anywhere; a directory's is where its parent is. */
static void test_what_silence_keeps(void **state) {
    (void)state;
    rows_make(false);
    assert_int_equal(check(B, 1).unjudged, 6);
    assert_int_equal(it.targets[it.map.target_count - 1].unjudged, 6);
    row_find(FSCK_INODES, ino_of(A, 13))->value[offsetof(struct inode_row, nlink)] = 2;
    (void)check(B, 1);
    assert_int_equal(it.found_count, 0);
    (void)check(OST0, 1);
    assert_int_equal(found("link-count"), 1);
    row_find(FSCK_INODES, ino_of(A, 13))->value[offsetof(struct inode_row, nlink)] = 0;
    (void)check(B, 1);
    assert_int_equal(found("link-count"), 1);
    rows_make(false);
    row_find(FSCK_INODES, ino_of(A, 11))->target = 0; /* It is missing, and names what B has. */
    (void)check(B, 1);
    assert_int_equal(found("lost-name"), 1);
    assert_int_equal(found("lost-directory"), 1);
    assert_int_equal(it.found_count, 2);
}

/* A has moved a file over another name of a second one, and B is to hear of it: there the name
 * still leads to that one, which has a link less by now. */
static void move_put(void) {
    struct ino second = ino_of(A, 15);
    struct ino moved = ino_of(A, 16);
    const uint64_t log = B;
    const struct transaction_row row = {.format = META_FORMAT,
                                        .state = TRANSACTION_PREPARED,
                                        .halves_bytes = sizeof(struct half) + 1,
                                        .log_count = 1};
    const struct half half = {.format = META_FORMAT,
                              .kind = HALF_NAME,
                              .type = MODE_REGULAR >> 12,
                              .old_type = MODE_REGULAR >> 12,
                              .name_bytes = 1,
                              .ino = ino_of(B, 10).value,
                              .from = second.value,
                              .to = moved.value};
    uint8_t promise[sizeof row + sizeof log + sizeof half + 1];

    memcpy(promise, &row, sizeof row);
    memcpy(promise + sizeof row, &log, sizeof log);
    memcpy(promise + sizeof row + sizeof log, &half, sizeof half);
    promise[sizeof promise - 1] = 'y';
    inode_put(A, second, (struct inode_row){.nlink = 1, .mode = MODE_REGULAR | 0644});
    inode_put(A, moved, (struct inode_row){.nlink = 1, .mode = MODE_REGULAR | 0644});
    name_put(A, INO_ROOT, 'y', second, false);
    name_put(B, ino_of(B, 10), 'y', second, false);
    put(B, FSCK_TRANSACTIONS, key_owner(ROW_TRANSACTION, A, 1, 1), promise, sizeof promise);
    qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
}

/* What B has told before it goes is not held against the others. */
static void test_what_it_had_promised(void **state) {
    (void)state;
    rows_make(false);
    move_put();
    assert_int_equal(check(0, 0).unsettled, 2);
    assert_int_equal(it.found_count, 0);
    for (uint32_t at = 1; at == 1 || it.asked[B] >= at - 1; at++) {
        (void)check(B, at);
        assert_int_equal(it.found_count, 0);
    }
}

/* Whenever B hears of it: a name that had been counted by then is not held against the inode. Until
 * it hears of it so late that all looks are over. */
static void test_what_is_promised_and_kept_meanwhile(void **state) {
    uint64_t unsettled = 0;

    (void)state;
    for (it.kept_at = 1; unsettled == 0; it.kept_at++) {
        rows_make(false);
        move_put();
        unsettled = check(0, 0).unsettled;
        assert_int_equal(it.found_count, 0);
    }
    assert_true(it.kept_at > 20);
    it.kept_at = 0;
}

/* Another list's answer takes the memory of a list in its middle: the names behind one that a
 * transaction is about to make true are counted all the same. */
static void test_a_list_within_another(void **state) {
    (void)state;
    rows_make(false);
    move_put();
    /* Before all other names of B's, in an answer with the next one; its inode is not there yet. */
    name_put(B, ino_of(B, 10), 'a', ino_of(A, 30), false);
    struct row *promise = row_find(FSCK_TRANSACTIONS, (struct ino){A});
    row_find(FSCK_INODES, ino_of(A, 16))->target = 0; /* It is about another one here. */
    store_le64(promise->value + sizeof(struct transaction_row) + sizeof(uint64_t) +
                   offsetof(struct half, to),
               ino_of(A, 30).value);
    qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
    (void)check(0, 0);
    assert_int_equal(it.found_count, 0);
}

/* Rows of a chunk come in two answers, between which it is written to. */
static void test_a_chunk_that_changes(void **state) {
    const struct store_segment none = {.format = STORE_FORMAT};
    struct ino file = ino_of(A, 13);

    (void)state;
    for (int more = 0; more < 3; more++) {
        rows_make(false);
        for (uint64_t chunk = 0; chunk < 2; chunk++) {
            put(OST0, FSCK_CHUNKS, chunk_key(file, chunk, 2), &none, sizeof none);
            if (!row_of(OST0, chunk_key(file, chunk, 0))) {
                it.row_count--;
            }
        }
        qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
        it.changes = more == 1 ? 10 : more == 2 ? UINT32_MAX : 0;
        struct fsck_counts counts = check(0, 0);
        assert_int_equal(found("index"), 0);
        if (more < 2) {
            assert_int_equal(it.found_count + counts.unsettled, 0);
        } else {
            assert_true(counts.unsettled > 0);
        }
    }
    it.changes = 0;
    rows_make(false);
    struct row *head = row_of(OST0, chunk_key(file, 0, 0));
    head = head ? head : row_of(OST0, chunk_key(file, 1, 0));
    head->value[offsetof(struct store_head, block_count)] = 2;
    (void)check(0, 0);
    assert_int_equal(found("index"), 1);
}

/* Of a chunk whose inode A does not know, with a number of which it once lost those. */
static bool scrub_deletes(struct ino made) {
    const struct lost_row lost = {.format = META_FORMAT, .counter_from = 20, .counter_to = 1000};
    const struct fsck_cluster cluster = cluster_here();
    struct scrub scrub = {.cluster = &cluster, .stopped = deleted_once, .kept = count_kept};

    put(A, FSCK_LOST, key_owner(ROW_LOST, 1, 0, 0), &lost, sizeof lost);
    chunk_put(OST0, made, 0, 0);
    qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
    it.deleted = it.kept = 0;
    /* Rows stay here, so it is stopped once it has deleted. */
    int r = scrub_run(&scrub);
    assert_int_equal(r, it.deleted > 0 ? -ERR_CLOSED : 0);
    return it.deleted > 0;
}

static void test_scrub_goes_by_slots(void **state) {
    struct ino made = ino_make((struct slot){5}, 40);

    (void)state;
    rows_make(false);
    slots_put(A, 5, 1, 1, 0);
    assert_true(scrub_deletes(made));
    /* Given to a group which joined since the map was taken, it may be a living file's. */
    rows_make(false);
    slots_put(A, 5, 1, 0, 99);
    assert_false(scrub_deletes(made));
    assert_int_equal(it.kept, 0);
    /* Nor can A have lost what it never drew. */
    rows_make(false);
    slots_put(A, 5, 1, 0, 0);
    assert_false(scrub_deletes(made));
    assert_int_equal(it.kept, 1);
    /* A version that lists no slots. */
    rows_make(false);
    assert_false(scrub_deletes(made));
    assert_int_equal(it.kept, 0);
}

/* A's directory names a file of a group that the map does not have, where there is a name of a file
 * of A's and one of its chunks on a chain of a newer pool. */
static void test_no_finding_by_an_old_map(void **state) {
    const struct layout layout = {
        .pool_version = 9, .chunk_bytes = CHUNK_BYTES, .stripe_count = 1, .redundancy = 1};
    struct ino made = ino_make((struct slot){5}, 40);
    struct ino file = ino_of(A, 13);
    struct ino newer = ino_of(A, 17);

    (void)state;
    for (uint64_t given_to = 99;; given_to = 0) {
        struct inode_row row = {.nlink = 1,
                                .mode = MODE_REGULAR | 0644,
                                .data_state = DATA_CHUNKED,
                                .chunk_generation = 1,
                                .size = BLOCK_BYTES};

        rows_make(false);
        slots_put(A, 5, 1, given_to == 0, given_to);
        name_put(A, INO_ROOT, 'n', made, false);
        chunk_put(OST0, made, 0, 0);
        row_find(FSCK_INODES, file)->value[offsetof(struct inode_row, nlink)] = 2;
        inode_layout_set(&row, &layout);
        inode_put(A, newer, row);
        name_put(A, INO_ROOT, 'w', newer, false);
        chunk_put(OST1, newer, 0, 0);
        qsort(it.rows, it.row_count, sizeof it.rows[0], row_compare);
        struct fsck_counts counts = check(0, 0);
        if (given_to == 0) {
            break;
        }
        assert_int_equal(it.found_count, 0);
        assert_int_equal(counts.unsettled, 3);
    }
    assert_int_equal(found("missing-inode"), 1);
    assert_int_equal(found("orphan-chunk"), 1);
    assert_int_equal(found("link-count"), 1);
    assert_int_equal(it.found_count, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_false_finding, set_up),
        cmocka_unit_test_setup(test_damage_is_found_beside, set_up),
        cmocka_unit_test_setup(test_what_silence_keeps, set_up),
        cmocka_unit_test_setup(test_what_it_had_promised, set_up),
        cmocka_unit_test_setup(test_what_is_promised_and_kept_meanwhile, set_up),
        cmocka_unit_test_setup(test_a_list_within_another, set_up),
        cmocka_unit_test_setup(test_a_chunk_that_changes, set_up),
        cmocka_unit_test_setup(test_scrub_goes_by_slots, set_up),
        cmocka_unit_test_setup(test_no_finding_by_an_old_map, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
