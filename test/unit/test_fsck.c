/* A check of targets whose rows are made up: more places of which it is not sure than it keeps.
 * Those beyond count as unsettled, and another check tells of them once the first ones are mended.
 */
#include "unit.h"
#include "check/fsck_internal.h"
#include "meta/inode_format.h"
#include "meta/meta_format.h"
#include "store/fsck_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MORE = 100, /* than it keeps */
    MANY = FSCK_SUSPECTS_MAX + MORE,
    BITMAP_ROWS = MANY / STORE_BITMAP_BITS + 1,
    ANSWER_ROWS = 16,
    KINDS = FSCK_SLOTS + 1,
};

/* Keys in order. */
struct table {
    struct kv_key *keys;
    uint32_t count;
};

static struct {
    struct cluster_map map;
    uint64_t now_ns;
    struct table tables[KINDS];
    uint64_t blocks_used; /* of the data file, from the first on; no chunk has any */
    uint64_t blocks_from; /* but those before this one */
    uint32_t orphan_chunks, lost_blocks, others; /* problems that were told */
    char lost_where[64], lost_meaning[128];
} it;

static uint64_t now_ns(struct env *env) {
    (void)env;
    return it.now_ns;
}

static struct store_bitmap bitmap_of(uint64_t row) {
    struct store_bitmap bitmap = {.format = STORE_FORMAT};

    for (uint64_t bit = 0; bit < STORE_BITMAP_BITS; bit++) {
        uint64_t block = row * STORE_BITMAP_BITS + bit;
        bool used = block == 0 || (block >= it.blocks_from && block < it.blocks_used);

        bitmap.bits[bit / 8] = (uint8_t)(bitmap.bits[bit / 8] | used << bit % 8);
    }
    return bitmap;
}

/* A file has lost its last name when it is looked at by itself; somebody has it open. */
static size_t value_make(uint32_t what, const struct kv_key *key, bool by_itself, uint8_t *value) {
    const struct store_head head = {.format = STORE_FORMAT, .chunk_bytes = 65536};
    const struct inode_row row = {.format = META_FORMAT,
                                  .nlink = by_itself ? 0 : 1,
                                  .epoch = by_itself ? 2 : 1,
                                  .mode = MODE_REGULAR | 0644};

    if (what == FSCK_BLOCKS) {
        struct store_bitmap bitmap = bitmap_of(kv_key_split(key).index);

        memcpy(value, &bitmap, sizeof bitmap);
        return sizeof bitmap;
    }
    if (what == FSCK_CHUNKS) {
        memcpy(value, &head, STORE_HEAD_BYTES);
        return STORE_HEAD_BYTES;
    }
    if (what == FSCK_SLOTS) {
        const struct slots_row slots = {
            .format = META_FORMAT, .state = SLOTS_MINE, .count = SLOT_COUNT};

        memcpy(value, &slots, sizeof slots);
        return sizeof slots;
    }
    if (what == FSCK_ORPHANS) {
        const struct mark_row mark = {.format = META_FORMAT};

        memcpy(value, &mark, sizeof mark);
        return sizeof mark;
    }
    assert_int_equal(what, FSCK_INODES);
    memcpy(value, &row, sizeof row);
    return sizeof row;
}

static void row_give(uint32_t what, const struct kv_key *key, bool by_itself, struct buffer *out) {
    bool is_store = what == FSCK_CHUNKS || what == FSCK_BLOCKS;
    size_t head = is_store ? sizeof(struct store_fsck_row) : sizeof(uint16_t) + KV_KEY_BYTES;
    uint8_t *row = out->data + out->size;
    size_t size = value_make(what, key, by_itself, row + head);

    if (is_store) {
        struct store_fsck_row told = {(uint32_t)(head + (size + 7) / 8 * 8), (uint32_t)size, {0}};

        memcpy(told.key, key->bytes, KV_KEY_BYTES);
        memcpy(row, &told, sizeof told);
        out->size += told.row_bytes;
    } else {
        store_le16(row, (uint16_t)size);
        memcpy(row + sizeof(uint16_t), key->bytes, KV_KEY_BYTES);
        out->size += head + size;
    }
}

static uint32_t first_behind(const struct table *table, struct bytes cursor) {
    uint32_t low = 0;
    uint32_t high = cursor.size > 0 ? table->count : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memcmp(table->keys[middle].bytes, cursor.data, KV_KEY_BYTES) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int answer(struct call *call) {
    const struct fsck_list_request *request = &call->request.fsck_list;
    const struct table *table = &it.tables[request->what % KINDS];

    if (call->header.opcode == OP_SYNC) {
        return 0;
    }
    if (call->header.opcode == OP_STATFS) {
        call->reply.statfs.bytes_total = (uint64_t)BITMAP_ROWS * STORE_BITMAP_BITS * BLOCK_BYTES;
        return 0;
    }
    assert_int_equal(call->header.opcode, OP_FSCK_LIST);
    bool by_itself = request->bytes_max == FSCK_POINT_BYTES;
    uint32_t at = first_behind(table, request->cursor);
    uint32_t end = MIN(table->count, at + (by_itself ? 1U : ANSWER_ROWS));
    for (; at < end; at++) {
        row_give(request->what, &table->keys[at], by_itself, &call->bulk_in);
    }
    call->reply.fsck_list.end = at == table->count;
    return 0;
}

static void ask(void *context, struct call *calls, uint32_t count) {
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        calls[i].result = answer(&calls[i]);
    }
}

static void rest(void *context) {
    (void)context;
    it.now_ns += NS_PER_S / 10;
}

static void problem(void *context, const char *kind, const char *where, const char *meaning) {
    (void)context;
    it.orphan_chunks += strcmp(kind, "orphan-chunk") == 0;
    it.lost_blocks += strcmp(kind, "lost-blocks") == 0;
    it.others += strcmp(kind, "orphan-chunk") != 0 && strcmp(kind, "lost-blocks") != 0;
    if (strcmp(kind, "lost-blocks") == 0) {
        snprintf(it.lost_where, sizeof it.lost_where, "%s", where);
        snprintf(it.lost_meaning, sizeof it.lost_meaning, "%.40s", meaning);
    }
}

static void progress(void *context, const char *line) {
    (void)context;
    (void)line;
}

static bool never(void *context) {
    (void)context;
    return false;
}

static struct fsck_counts check(void) {
    static const struct env_ops ops = {.now_ns = now_ns};
    struct env env = {.ops = &ops};
    const struct fsck_cluster cluster = {.env = &env, .map = &it.map, .ask = ask, .rest = rest};
    const struct fsck_report report = {.problem = problem, .progress = progress, .stopped = never};
    struct fsck_counts counts;

    it.orphan_chunks = it.lost_blocks = it.others = 0;
    assert_int_equal(fsck_run_all(&cluster, &report, false, &counts), 0);
    assert_int_equal(it.others, 0);
    assert_int_equal(counts.problems, it.orphan_chunks + it.lost_blocks);
    return counts;
}

static int compare(const void *a, const void *b) {
    return kv_key_compare(a, b);
}

static void table_make(uint32_t what, uint32_t count, struct kv_key (*key_of)(uint32_t number)) {
    struct table *table = &it.tables[what];

    *table = (struct table){calloc(count, sizeof *table->keys), count};
    assert_non_null(table->keys);
    for (uint32_t i = 0; i < count; i++) {
        table->keys[i] = key_of(i);
    }
    qsort(table->keys, count, sizeof *table->keys, compare);
}

static struct kv_key bitmap_key(uint32_t number) {
    return store_owner_key(STORE_ROW_BITMAP, 0, number);
}

static struct ino ino_of(uint32_t number) {
    return (struct ino){1000 + (uint64_t)number};
}

static struct kv_key head_key(uint32_t number) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = store_bucket(ino_of(number)),
                                              .type = STORE_ROW_CHUNK,
                                              .id = ino_of(number).value,
                                              .generation = 1});
}

static struct kv_key file_key(uint32_t number) {
    return key_inode(ino_of(number));
}

static struct kv_key orphan_key(uint32_t number) {
    return key_owner(ROW_ORPHAN, ino_of(number).value, 0, 0);
}

static struct kv_key slots_key(uint32_t number) {
    return key_owner(ROW_SLOTS, number, 0, 0);
}

static int set_up(void **state) {
    const struct target_id ost = {2};

    (void)state;
    memset(&it, 0, sizeof it);
    it.now_ns = NS_PER_S;
    cluster_map_single(&it.map, (struct target_id){1}, &ost, 1);
    table_make(FSCK_BLOCKS, BITMAP_ROWS, bitmap_key);
    table_make(FSCK_SLOTS, 1, slots_key);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (uint32_t what = 0; what < KINDS; what++) {
        free(it.tables[what].keys);
    }
    return 0;
}

/* In use and nobody's; block 0 bears the label. */
static void test_very_many_blocks(void **state) {
    (void)state;
    it.blocks_used = 1 + FSCK_SUSPECTS_MAX;
    assert_int_equal(check().unsettled, 0);
    assert_int_equal(it.lost_blocks, 1);
    it.blocks_used = 1 + MANY;
    for (int times = 0; times < 2; times++) {
        assert_int_equal(check().unsettled, MORE);
        assert_int_equal(it.lost_blocks, 1);
        assert_string_equal(it.lost_where, "ost0, block 1");
        assert_int_equal(strncmp(it.lost_meaning, "65536 blocks from here on are", 29), 0);
    }
    it.blocks_from = 1 + FSCK_SUSPECTS_MAX;
    assert_int_equal(check().unsettled, 0);
    assert_int_equal(it.lost_blocks, 1);
    assert_string_equal(it.lost_where, "ost0, block 65537");
    assert_int_equal(strncmp(it.lost_meaning, "100 blocks from here on are", 27), 0);
    it.blocks_from = it.blocks_used;
    assert_int_equal(check().unsettled, 0);
    assert_int_equal(it.lost_blocks, 0);
}

/* Chunks of files that there are not. */
static void test_very_many_chunks(void **state) {
    struct table *table = &it.tables[FSCK_CHUNKS];

    (void)state;
    table_make(FSCK_CHUNKS, MANY, head_key);
    assert_int_equal(check().unsettled, MORE);
    assert_int_equal(it.orphan_chunks, FSCK_SUSPECTS_MAX);
    memmove(table->keys, table->keys + FSCK_SUSPECTS_MAX, MORE * sizeof *table->keys);
    table->count = MORE;
    assert_int_equal(check().unsettled, 0);
    assert_int_equal(it.orphan_chunks, MORE);
    table->count = 0;
    assert_int_equal(check().unsettled, 0);
    assert_int_equal(it.orphan_chunks, 0);
}

/* Files that are removed while it counts their names. */
static void test_very_many_files(void **state) {
    (void)state;
    table_make(FSCK_INODES, MANY, file_key);
    table_make(FSCK_ORPHANS, MANY, orphan_key);
    struct fsck_counts counts = check();
    assert_int_equal(counts.files, MANY);
    assert_int_equal(counts.problems, 0);
    assert_int_equal(counts.unsettled, MORE);
    it.tables[FSCK_INODES].count = FSCK_SUSPECTS_MAX;
    it.tables[FSCK_ORPHANS].count = FSCK_SUSPECTS_MAX;
    assert_int_equal(check().unsettled, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(very_many_blocks),
        TEST(very_many_chunks),
        TEST(very_many_files),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
