/* The contract is in rebuild_pages.h. */
#include "node/rebuild_pages.h"
#include "kv/ended_list.h"
#include "meta/rows.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <string.h>

static_assert((int)ENDED_BITS == (int)REBUILT_BITS, "a row is a stretch");
static_assert((int)ROW_SESSION == (int)STORE_ROW_SESSION && (int)ROW_ENDED == (int)STORE_ROW_ENDED,
              "both kinds of targets have them under the same types");

struct row {
    struct kv_key key;
    struct bytes value;
};

/* Takes the first row off. One whose checksum is wrong has no value. */
static int row_take(const struct rebuild_pages *pages, struct bytes *rest, struct row *ret_row) {
    bool is_meta = pages->kind == TARGET_MDT;
    size_t head = is_meta ? sizeof(uint16_t) + KV_KEY_BYTES : sizeof(struct store_fsck_row);
    struct store_fsck_row row;
    size_t value_bytes;

    if (rest->size < head) {
        return -ERR_MALFORMED;
    }
    if (is_meta) {
        value_bytes = load_le16(rest->data);
        row.row_bytes = (uint32_t)(head + value_bytes);
        memcpy(row.key, rest->data + sizeof(uint16_t), KV_KEY_BYTES);
    } else {
        memcpy(&row, rest->data, sizeof row);
        value_bytes = row.value_bytes;
    }
    if (value_bytes == FSCK_ROW_IS_BAD) {
        return -ERR_CORRUPT;
    }
    if (row.row_bytes < head || row.row_bytes > rest->size || value_bytes > row.row_bytes - head) {
        return -ERR_MALFORMED;
    }
    memcpy(ret_row->key.bytes, row.key, KV_KEY_BYTES);
    ret_row->value = (struct bytes){rest->data + head, value_bytes};
    rest->data += row.row_bytes;
    rest->size -= row.row_bytes;
    return 0;
}

static int session_take(struct rebuild_pages *pages, uint64_t id, struct bytes value) {
    struct rebuilt_session session = {.id = {id}};
    const struct session_row *known;
    struct store_session stored;

    if (pages->kind == TARGET_MDT) {
        int r = session_row_check(value, &known);

        if (r < 0 || known->state != SESSION_LIVE) {
            return r; /* The list of the ended names it. */
        }
        session.node = known->node;
        session.incarnation = known->incarnation;
    } else {
        if (value.size != sizeof stored || value.data[0] != STORE_FORMAT) {
            return -ERR_CORRUPT;
        }
        memcpy(&stored, value.data, sizeof stored);
        session.node = stored.node;
        session.incarnation = stored.incarnation;
    }
    return rebuilt_session_add(pages->rebuilt, &session);
}

static int ended_take(struct rebuild_pages *pages, uint64_t id, struct bytes value) {
    struct ended_row head;

    if (id > 0) {
        return rebuilt_ended_add(pages->rebuilt, id - 1, value);
    }
    if (value.size != sizeof head || value.data[0] != ENDED_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&head, value.data, sizeof head);
    return rebuilt_list_add(pages->rebuilt, head.number, head.lowest);
}

static int slots_take(struct rebuild_pages *pages, uint64_t id, struct bytes value) {
    const struct slots_row *slots;
    int r = slots_row_check(value, &slots);

    if (r == 0 && id >= SLOT_COUNT) {
        r = -ERR_CORRUPT;
    }
    if (r < 0) {
        return r;
    }
    const struct rebuilt_slots told = {
        .first = (uint32_t)id,
        .count = slots->count,
        .handover = slots->handover,
        .of = slots->state == SLOTS_MINE ? pages->log : (struct log_id){slots->given_to}};
    return rebuilt_slots_add(pages->rebuilt, pages->log, &told);
}

static const struct {
    uint32_t what;
    enum row_type type;
    int (*take)(struct rebuild_pages *pages, uint64_t id, struct bytes value);
} kinds[] = {{FSCK_SESSIONS, ROW_SESSION, session_take},
             {FSCK_ENDED, ROW_ENDED, ended_take},
             {FSCK_SLOTS, ROW_SLOTS, slots_take}};

static int one_take(struct rebuild_pages *pages, const struct row *row) {
    struct kv_key_fields key = kv_key_split(&row->key);

    if (pages->has_last && kv_key_compare(&row->key, &pages->last) <= 0) {
        return -ERR_MALFORMED;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (kinds[i].what == pages->what && kinds[i].type == key.type &&
            key.space == KV_SPACE_OWNER) {
            pages->last = row->key;
            pages->has_last = true;
            return kinds[i].take(pages, key.id, row->value);
        }
    }
    return -ERR_MALFORMED;
}

int rebuild_pages_take(struct rebuild_pages *pages, struct bytes page) {
    struct row row;
    int r = 0;

    while (r == 0 && page.size > 0) {
        r = row_take(pages, &page, &row);
        r = r < 0 ? r : one_take(pages, &row);
    }
    return r;
}
