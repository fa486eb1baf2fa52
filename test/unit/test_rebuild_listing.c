/* What a log is asked for a manager to be rebuilt, page by page, and what its answers add. */
#include "unit.h"
#include "kv/ended_list.h"
#include "meta/group_format.h"
#include "meta/meta_format.h"
#include "node/rebuild_listing.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <stdlib.h>
#include <string.h>

enum { MDT = 2, OST = 10, MDT_PLACE = 0, OST_PLACE = 1, NODE = 7, INCARNATION = 70, TERM = 5 };

struct desk {
    struct cluster_map map;
    struct rebuilt *rebuilt;
    struct rebuild_listing listing;
    struct call call;
};

static int setup(void **state) {
    const struct target_id ost = {OST};
    struct desk *desk = calloc(1, sizeof *desk);

    desk->map.cluster_id[0] = 1;
    cluster_map_single(&desk->map, (struct target_id){MDT}, &ost, 1);
    assert_int_equal(rebuilt_new(&desk->map, &desk->rebuilt), 0);
    *state = desk;
    return 0;
}

static int teardown(void **state) {
    struct desk *desk = *state;

    rebuild_listing_deinit(&desk->listing);
    rebuilt_free(desk->rebuilt);
    free(desk);
    return 0;
}

static void begin(struct desk *desk, uint32_t place) {
    rebuild_listing_deinit(&desk->listing);
    assert_int_equal(rebuild_listing_init(&desk->listing, desk->rebuilt, &desk->map.targets[place]),
                     0);
}

/* The next question is this one. */
static void asked(struct desk *desk, uint32_t what) {
    assert_true(rebuild_listing_next(&desk->listing, &desk->call));
    assert_int_equal(desk->call.header.opcode, OP_FSCK_LIST);
    assert_int_equal(desk->call.request.fsck_list.what, what);
    assert_int_equal(desk->call.header.log.value, desk->listing.life.log.value);
}

static int answer(struct desk *desk, bool end) {
    desk->call.reply.fsck_list =
        (struct fsck_list_reply){.end = end, .term = TERM, .life_high = 1, .life_low = 2};
    return rebuild_listing_take(&desk->listing, &desk->call);
}

/* A row, as the kind of target frames it. */
static void row_add(struct desk *desk, struct kv_key key, const void *value, uint16_t size) {
    struct buffer *page = &desk->call.bulk_in;
    uint8_t *to = page->data + page->size;

    if (desk->listing.kind == TARGET_MDT) {
        store_le16(to, size);
        memcpy(to + 2, key.bytes, KV_KEY_BYTES);
        memcpy(to + 2 + KV_KEY_BYTES, value, size);
        page->size += 2 + KV_KEY_BYTES + size;
    } else {
        struct store_fsck_row head = {.value_bytes = size};

        head.row_bytes = (uint32_t)(sizeof head + (size + 7U) / 8 * 8);
        memcpy(head.key, key.bytes, KV_KEY_BYTES);
        memcpy(to, &head, sizeof head);
        memcpy(to + sizeof head, value, size);
        page->size += head.row_bytes;
    }
}

static struct kv_key key_of(enum store_row type, uint64_t id) {
    return store_owner_key(type, id, 0);
}

static void session_add(struct desk *desk, uint64_t id, enum session_state state) {
    const struct session_row row = {
        .format = META_FORMAT, .state = (uint8_t)state, .node = NODE, .incarnation = INCARNATION};

    row_add(desk, key_of(STORE_ROW_SESSION, id), &row, sizeof row);
}

static void ended_add(struct desk *desk, uint64_t number, uint64_t lowest) {
    const struct ended_row row = {.format = ENDED_FORMAT, .number = number, .lowest = lowest};

    row_add(desk, key_of(STORE_ROW_ENDED, 0), &row, sizeof row);
}

/* The page is full: it goes on behind its last row. What ends the listing is a sync. */
static void test_a_metadata_target(void **state) {
    struct desk *desk = *state;
    const uint8_t bits[] = {0, 1U << 4};
    const struct slots_row slots = {
        .format = META_FORMAT, .state = SLOTS_MINE, .count = 100, .handover = 9};

    begin(desk, MDT_PLACE);
    asked(desk, FSCK_SESSIONS);
    assert_int_equal(desk->call.request.fsck_list.cursor.size, 0);
    session_add(desk, 11, SESSION_LIVE);
    session_add(desk, 12, SESSION_LIVE);
    assert_int_equal(answer(desk, false), 0);
    asked(desk, FSCK_SESSIONS);
    const struct kv_key last = key_of(STORE_ROW_SESSION, 12);
    assert_int_equal(desk->call.request.fsck_list.cursor.size, KV_KEY_BYTES);
    assert_memory_equal(desk->call.request.fsck_list.cursor.data, last.bytes, KV_KEY_BYTES);
    session_add(desk, 13, SESSION_EVICTING);
    assert_int_equal(answer(desk, true), 0);
    asked(desk, FSCK_ENDED);
    assert_int_equal(desk->call.request.fsck_list.cursor.size, 0);
    ended_add(desk, 40, 3);
    row_add(desk, key_of(STORE_ROW_ENDED, 1), bits, sizeof bits);
    assert_int_equal(answer(desk, true), 0);
    asked(desk, FSCK_SLOTS);
    row_add(desk, key_of('R', 200), &slots, sizeof slots);
    assert_int_equal(answer(desk, true), 0);
    assert_true(rebuild_listing_next(&desk->listing, &desk->call));
    assert_int_equal(desk->call.header.opcode, OP_SYNC);
    assert_int_equal(desk->rebuilt->life_count, 0);
    assert_int_equal(rebuild_listing_take(&desk->listing, &desk->call), 0);
    assert_false(rebuild_listing_next(&desk->listing, &desk->call));
    assert_int_equal(desk->rebuilt->life_count, 1);
    assert_int_equal(desk->rebuilt->lives[0].term, TERM);
    assert_int_equal(desk->rebuilt->handover, 9);
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->session_count, 1); /* 12 has ended, 13 says so itself */
    assert_int_equal(desk->rebuilt->sessions[0].id.value, 11);
    assert_int_equal(desk->rebuilt->sessions[0].node, NODE);
    assert_int_equal(desk->rebuilt->sessions[0].incarnation, INCARNATION);
}

/* It has no slots. */
static void test_a_storage_target(void **state) {
    struct desk *desk = *state;
    const struct store_session row = {
        .format = STORE_FORMAT, .node = NODE, .incarnation = INCARNATION};

    begin(desk, OST_PLACE);
    asked(desk, FSCK_SESSIONS);
    row_add(desk, key_of(STORE_ROW_SESSION, 21), &row, sizeof row);
    assert_int_equal(answer(desk, true), 0);
    asked(desk, FSCK_ENDED);
    assert_int_equal(answer(desk, true), 0);
    assert_true(rebuild_listing_next(&desk->listing, &desk->call));
    assert_int_equal(desk->call.header.opcode, OP_SYNC);
    assert_int_equal(rebuild_listing_take(&desk->listing, &desk->call), 0);
    assert_false(rebuild_listing_next(&desk->listing, &desk->call));
    assert_int_equal(desk->rebuilt->session_count, 1);
}

static int taken(struct desk *desk, uint32_t place, size_t cut) {
    int r;

    desk->call.bulk_in.size -= cut;
    r = answer(desk, true);
    begin(desk, place);
    asked(desk, FSCK_SESSIONS);
    return r;
}

static void test_what_makes_no_sense(void **state) {
    static const uint32_t places[] = {MDT_PLACE, OST_PLACE};
    struct desk *desk = *state;
    const uint8_t value[24] = {META_FORMAT, SESSION_LIVE};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        begin(desk, places[i]);
        asked(desk, FSCK_SESSIONS);
        assert_int_equal(answer(desk, false), -ERR_MALFORMED); /* nothing, and more is to come */
        begin(desk, places[i]);
        asked(desk, FSCK_SESSIONS);
        row_add(desk, key_of(STORE_ROW_SESSION, 1), value, 3);
        assert_int_equal(taken(desk, places[i], 0), -ERR_CORRUPT); /* too short a row */
        row_add(desk, key_of(STORE_ROW_SESSION, 1), value, i == 0 ? 24 : 16);
        assert_int_equal(taken(desk, places[i], 0), -ERR_CORRUPT); /* no incarnation */
        row_add(desk, key_of(STORE_ROW_SESSION, 1), value, 24);
        assert_int_equal(taken(desk, places[i], 1), -ERR_MALFORMED); /* cut off */
        row_add(desk, key_of(STORE_ROW_SESSION, 1), value, 24);
        assert_int_equal(taken(desk, places[i], desk->call.bulk_in.size - 5), -ERR_MALFORMED);
    }
    assert_int_equal(desk->rebuilt->session_count, 0);
}

/* A row whose checksum was wrong; a log that refuses. */
static void test_errors(void **state) {
    struct desk *desk = *state;

    begin(desk, MDT_PLACE);
    asked(desk, FSCK_SESSIONS);
    session_add(desk, 1, SESSION_LIVE);
    store_le16(desk->call.bulk_in.data, FSCK_ROW_IS_BAD);
    assert_int_equal(answer(desk, true), -ERR_CORRUPT);
    desk->call.result = -ERR_CLOSED;
    assert_int_equal(answer(desk, true), -ERR_CLOSED);
    assert_int_equal(desk->rebuilt->life_count, 0);
    asked(desk, FSCK_SESSIONS); /* Nothing was taken: it is the same question. */
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_metadata_target),
        TEST(a_storage_target),
        TEST(what_makes_no_sense),
        TEST(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
