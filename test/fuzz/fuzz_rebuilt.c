/* Rows that a manager is rebuilt from: pages of them, as targets list them. What is taken keeps to
 * what a manager goes by; what is refused does, too, as far as it went before.
 *
 * An input is u8, whether a metadata target lists them, u8 of what, and pages: u16 size, bytes. */
#include "fuzz.h"
#include "kv/ended_list.h"
#include "meta/rows.h"
#include "node/rebuild_pages.h"
#include "store/fsck_format.h"
#include "store/store_format.h"

enum { MDT = 1, OTHER_MDT = 9, OST = 2, PAGES_MAX = 8 };

static struct cluster_map map;

static void map_make(void) {
    const struct target_id ost = {OST};

    memset(&map, 0, sizeof map);
    map.cluster_id[0] = 9;
    cluster_map_single(&map, (struct target_id){MDT}, &ost, 1);
    int r = cluster_map_add_mdt(&map, (struct node_id){1}, (struct target_id){OTHER_MDT});
    assert(r == 0);
    map.version = 4;
}

static void check_sessions(const struct rebuilt *rebuilt) {
    for (uint32_t i = 0; i < rebuilt->session_count; i++) {
        const struct rebuilt_session *session = &rebuilt->sessions[i];

        assert(session->id.value > 0 && session->incarnation > 0);
        assert(session->id.value <= rebuilt->session_highest);
        assert(!rebuilt->is_finished || session->id.value < rebuilt->next_session);
        assert(!rebuilt->is_finished || session->id.value >= rebuilt->session_lowest);
        assert(!rebuilt->is_finished || i == 0 ||
               session->id.value > rebuilt->sessions[i - 1].id.value);
    }
}

static void check_ended(const struct rebuilt *rebuilt) {
    for (uint32_t i = 0; i < rebuilt->ended_count; i++) {
        assert(i == 0 || rebuilt->ended[i].index > rebuilt->ended[i - 1].index);
    }
}

static void check_slots(const struct rebuilt *rebuilt) {
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint32_t handover = rebuilt->map->slot_handovers[slot];

        assert(rebuilt->map->slot_groups[slot] < rebuilt->map->group_count);
        assert(handover <= rebuilt->handover);
        assert(!rebuilt->is_given[slot] || handover > 0);
    }
}

static void check_all(const struct rebuilt *rebuilt) {
    check_sessions(rebuilt);
    check_ended(rebuilt);
    check_slots(rebuilt);
}

/* The numbers that it goes on with lie above all that was told. */
static void check_finish(struct rebuilt *rebuilt) {
    uint64_t highest = rebuilt->session_highest;
    uint64_t number = rebuilt->ended_number, handover = rebuilt->handover;
    int r = rebuilt_finish(rebuilt);

    check_all(rebuilt);
    if (r < 0) {
        assert(r == -ERR_CORRUPT && !rebuilt->is_finished && rebuilt->session_count > 0);
        assert(highest - rebuilt->sessions[0].id.value > REBUILT_SPAN_MAX);
        return;
    }
    assert(rebuilt->next_session > highest && rebuilt->ended_number > number);
    assert(rebuilt->handover > handover && rebuilt->handover <= UINT32_MAX);
    assert(rebuilt->map->version > map.version);
}

void fuzz_rebuilt_rows(struct bytes in) {
    static const uint32_t whats[] = {FSCK_SESSIONS, FSCK_ENDED, FSCK_SLOTS};
    struct wire_cursor cursor = fuzz_cursor(in);
    bool is_meta = wire_take_number(&cursor, 1) & 1;
    struct rebuild_pages list = {.kind = is_meta ? TARGET_MDT : TARGET_OST,
                                 .what = whats[wire_take_number(&cursor, 1) % ARRAY_SIZE(whats)]};
    int r;

    map_make();
    list.log = cluster_map_log_of(&map, (struct target_id){is_meta ? MDT : OST});
    r = rebuilt_new(&map, &list.rebuilt);
    assert(r == 0);
    for (int i = 0; i < PAGES_MAX && r == 0 && cursor.size > 0; i++) {
        size_t size = MIN((size_t)wire_take_number(&cursor, 2), cursor.size);
        struct kv_key before = list.last;
        bool has_before = list.has_last;
        const uint8_t *page = wire_take(&cursor, size);

        r = page ? rebuild_pages_take(&list, (struct bytes){page, size}) : -ERR_MALFORMED;
        assert(r == 0 || r == -ERR_MALFORMED || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT);
        assert(list.has_last || !has_before);
        assert(!has_before || kv_key_compare(&list.last, &before) >= 0);
        check_all(list.rebuilt);
    }
    check_finish(list.rebuilt);
    rebuilt_free(list.rebuilt);
}

static void give_row(struct buffer *out, bool is_meta, const struct kv_key *key,
                     struct bytes value) {
    struct store_fsck_row row = {(uint32_t)(sizeof row + value.size), (uint32_t)value.size, {0}};

    if (is_meta) {
        wire_give_number(out, value.size, 2);
        wire_give(out, key->bytes, KV_KEY_BYTES);
    } else {
        memcpy(row.key, key->bytes, KV_KEY_BYTES);
        wire_give(out, &row, sizeof row);
    }
    wire_give(out, value.data, value.size);
}

/* Two pages of a row each, whose keys are those of these ids. */
static void seed_list(const struct fuzz_seeds *seeds, bool is_meta, uint8_t what,
                      struct bytes value) {
    static const uint8_t types[] = {ROW_SESSION, ROW_ENDED, ROW_SLOTS};
    uint8_t space[512], page[256];
    struct buffer out = {space, 0, sizeof space};

    wire_give_number(&out, is_meta, 1);
    wire_give_number(&out, what, 1);
    for (uint64_t id = 5; id < 700; id += 600) {
        const struct kv_key key = key_owner((enum row_type)types[what], id, 0, 0);
        struct buffer rows = {page, 0, sizeof page};

        give_row(&rows, is_meta, &key, value);
        wire_give_number(&out, rows.size, 2);
        wire_give(&out, page, rows.size);
    }
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

static void seed_head(const struct fuzz_seeds *seeds) {
    const struct ended_row head = {.format = ENDED_FORMAT, .number = 9, .lowest = 3};
    const struct kv_key key = key_owner(ROW_ENDED, 0, 0, 0);
    uint8_t space[256], page[128];
    struct buffer out = {space, 0, sizeof space}, rows = {page, 0, sizeof page};

    give_row(&rows, false, &key, (struct bytes){(const uint8_t *)&head, sizeof head});
    wire_give_number(&out, 0, 1);
    wire_give_number(&out, 1, 1);
    wire_give_number(&out, rows.size, 2);
    wire_give(&out, page, rows.size);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

void seed_rebuilt_rows(const struct fuzz_seeds *seeds) {
    static const uint8_t bits[3] = {1, 2, 0x80};
    const struct session_row session = {
        .format = META_FORMAT, .state = SESSION_LIVE, .node = 1, .incarnation = 7};
    const struct store_session stored = {.format = STORE_FORMAT, .node = 1, .incarnation = 7};
    const struct slots_row given = {.format = META_FORMAT,
                                    .state = SLOTS_GIVEN,
                                    .count = 100,
                                    .handover = 3,
                                    .given_to = 12345};

    seed_list(seeds, true, 0, (struct bytes){(const uint8_t *)&session, sizeof session});
    seed_list(seeds, false, 0, (struct bytes){(const uint8_t *)&stored, sizeof stored});
    seed_list(seeds, false, 1, (struct bytes){bits, sizeof bits});
    seed_list(seeds, true, 1, (struct bytes){bits, sizeof bits});
    seed_list(seeds, true, 2, (struct bytes){(const uint8_t *)&given, sizeof given});
    seed_head(seeds);
}
