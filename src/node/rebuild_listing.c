/* The contract is in rebuild_listing.h. */
#include "node/rebuild_listing.h"
#include "kv/ended_list.h"
#include "meta/group_format.h"
#include "meta/meta_format.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <stdlib.h>
#include <string.h>

static_assert((int)ENDED_BITS == (int)REBUILT_BITS, "a row is a stretch");

struct row {
    struct kv_key key;
    struct bytes value;
};

/* Takes the first row off. The two kinds of targets frame rows differently; one whose checksum is
 * wrong has no value. */
static int row_take(const struct rebuild_listing *listing, struct bytes *rest,
                    struct row *ret_row) {
    bool is_meta = listing->kind == TARGET_MDT;
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

static int session_take(struct rebuild_listing *listing, const struct row *row) {
    struct rebuilt_session session = {.id = {kv_key_split(&row->key).id}};
    struct session_row known;
    struct store_session stored;

    if (listing->kind == TARGET_MDT) {
        if (row->value.size != sizeof known || row->value.data[0] != META_FORMAT) {
            return -ERR_CORRUPT;
        }
        memcpy(&known, row->value.data, sizeof known);
        session.node = known.node;
        session.incarnation = known.incarnation;
        if (known.state != SESSION_LIVE) {
            return 0; /* The list of the ended names it. */
        }
    } else {
        if (row->value.size != sizeof stored) {
            return -ERR_CORRUPT;
        }
        memcpy(&stored, row->value.data, sizeof stored);
        session.node = stored.node;
        session.incarnation = stored.incarnation;
    }
    return rebuilt_session_add(listing->rebuilt, &session);
}

static int ended_take(struct rebuild_listing *listing, const struct row *row) {
    uint64_t id = kv_key_split(&row->key).id;
    struct ended_row head;

    if (id > 0) {
        return rebuilt_ended_add(listing->rebuilt, id - 1, row->value);
    }
    if (row->value.size != sizeof head || row->value.data[0] != ENDED_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&head, row->value.data, sizeof head);
    return rebuilt_list_add(listing->rebuilt, head.number, head.lowest);
}

static int slots_take(struct rebuild_listing *listing, const struct row *row) {
    struct slots_row slots;

    if (row->value.size != sizeof slots || row->value.data[0] != META_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&slots, row->value.data, sizeof slots);
    const struct rebuilt_slots told = {
        .first = (uint32_t)kv_key_split(&row->key).id,
        .count = slots.count,
        .handover = slots.handover,
        .of = slots.state == SLOTS_MINE ? listing->life.log : (struct log_id){slots.given_to}};
    return rebuilt_slots_add(listing->rebuilt, listing->life.log, &told);
}

typedef int take_fn(struct rebuild_listing *listing, const struct row *row);

/* By stage. */
static const struct {
    uint32_t what;
    take_fn *take;
} listed[] = {{FSCK_SESSIONS, session_take}, {FSCK_ENDED, ended_take}, {FSCK_SLOTS, slots_take}};

/* Those that the log has: a storage target has no slots. */
static uint32_t listed_count(const struct rebuild_listing *listing) {
    return ARRAY_SIZE(listed) - (listing->kind != TARGET_MDT);
}

static int page_take(struct rebuild_listing *listing, struct bytes rest) {
    struct row row;
    int r = 0;

    while (r == 0 && rest.size > 0) {
        r = row_take(listing, &rest, &row);
        if (r == 0) {
            listing->cursor = row.key;
            r = listed[listing->stage].take(listing, &row);
        }
    }
    return r;
}

int rebuild_listing_init(struct rebuild_listing *listing, struct rebuilt *rebuilt,
                         const struct map_target *target) {
    *listing = (struct rebuild_listing){
        .rebuilt = rebuilt,
        .kind = (enum target_kind)target->kind,
        .life = {.log = cluster_map_log_of(rebuilt->map, target->id), .node = target->node.value},
        .page = malloc(REBUILD_PAGE_BYTES),
    };
    return listing->page ? 0 : -ERR_NO_MEMORY;
}

void rebuild_listing_deinit(struct rebuild_listing *listing) {
    free(TAKE_PTR(listing->page));
}

bool rebuild_listing_next(const struct rebuild_listing *listing, struct call *ret_call) {
    if (listing->stage > listed_count(listing)) {
        return false;
    }
    *ret_call = (struct call){.header = {.opcode = OP_SYNC, .log = listing->life.log}};
    if (listing->stage < listed_count(listing)) {
        ret_call->header.opcode = OP_FSCK_LIST;
        ret_call->request.fsck_list = (struct fsck_list_request){
            .what = listed[listing->stage].what,
            .cursor = {listing->cursor.bytes, listing->has_cursor ? KV_KEY_BYTES : 0},
            .bytes_max = REBUILD_PAGE_BYTES};
        ret_call->bulk_in = (struct buffer){.data = listing->page, .capacity = REBUILD_PAGE_BYTES};
    }
    return true;
}

int rebuild_listing_take(struct rebuild_listing *listing, const struct call *call) {
    const struct fsck_list_reply *reply = &call->reply.fsck_list;

    if (call->result < 0) {
        return call->result;
    }
    if (call->header.opcode == OP_SYNC) {
        listing->stage++;
        return rebuilt_life_add(listing->rebuilt, &listing->life);
    }
    listing->life.term = reply->term;
    listing->life.life = (struct log_life){reply->life_high, reply->life_low};
    if (call->bulk_in.size == 0 && !reply->end) {
        return -ERR_MALFORMED;
    }
    int r = page_take(listing, (struct bytes){call->bulk_in.data, call->bulk_in.size});
    if (r == 0) {
        listing->has_cursor = !reply->end;
        listing->stage += reply->end;
    }
    return r;
}
