/* The contract is in rebuild_rows.h.
 *
 *     fsck_list{SESSIONS}, {ENDED}, of a metadata target {SLOTS}, page by page --> rebuilt
 *     sync: what was listed is on disk, so no power takes back what the manager goes by */
#include "node/rebuild_rows.h"
#include "kv/ended_list.h"
#include "meta/group_format.h"
#include "meta/meta_format.h"
#include "node/local_cluster.h"
#include "rpc/call_origin.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 64 * 1024 };
static_assert((int)ENDED_BITS == (int)REBUILT_BITS, "a row is a stretch");

int rebuild_asker_open(struct rebuild_asker *asker, const struct caller_options *options,
                       char problem[512]) {
    actor_init(&asker->origin, "rebuild", call_origin_step);
    asker->is_entered = true;
    return caller_open(&asker->caller, options, problem);
}

void rebuild_asker_close(struct rebuild_asker *asker) {
    if (asker->is_entered) {
        caller_leave(&asker->caller);
        caller_close(&asker->caller);
        asker->is_entered = false;
    }
}

static void note_done(struct call *call) {
    struct rebuild_asker *asker = call->context;

    asker->done = true;
}

/* Whoever refuses this cluster, or this key, does so for as long as it is asked. */
static int others_ask(struct rebuild_asker *asker, struct call *call, uint64_t patience_ns) {
    struct caller *caller = &asker->caller;
    uint64_t end_ns = env_now_ns(caller->env) + patience_ns;

    call->origin = &asker->origin;
    call->done = note_done;
    call->context = asker;
    call->deadline_ns = end_ns;
    asker->done = false;
    caller->said[0] = '\0';
    call_start(caller->rpc, call);
    caller_run(caller);
    while (!asker->done && env_now_ns(caller->env) < end_ns) {
        caller_turn(caller);
    }
    if (asker->done) {
        return call->result;
    }
    call_cancel(call);
    while (!asker->done) {
        caller_turn(caller);
    }
    return -ERR_TIMED_OUT;
}

int rebuild_ask(struct rebuild_asker *asker, struct call *call, uint64_t patience_ns) {
    return asker->cluster ? local_cluster_ask(asker->cluster, call)
                          : others_ask(asker, call, patience_ns);
}

/* What is being asked of one log. */
struct listing {
    struct rebuild_asker *asker;
    struct rebuilt *rebuilt;
    const struct map_target *target;
    struct log_id log;
    uint64_t patience_ns;
    uint8_t *page;
    struct rebuilt_life life;
};

struct row {
    struct kv_key key;
    struct bytes value;
};

/* Takes the first row off. The two kinds of targets frame rows differently; one whose checksum is
 * wrong has no value. */
static int row_take(const struct listing *listing, struct bytes *rest, struct row *ret_row) {
    bool is_meta = listing->target->kind == TARGET_MDT;
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

static int session_take(struct listing *listing, const struct row *row) {
    struct rebuilt_session session = {.id = {kv_key_split(&row->key).id}};
    struct session_row known;
    struct store_session stored;

    if (listing->target->kind == TARGET_MDT) {
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

static int ended_take(struct listing *listing, const struct row *row) {
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

static int slots_take(struct listing *listing, const struct row *row) {
    struct slots_row slots;

    if (row->value.size != sizeof slots || row->value.data[0] != META_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&slots, row->value.data, sizeof slots);
    const struct rebuilt_slots told = {
        .first = (uint32_t)kv_key_split(&row->key).id,
        .count = slots.count,
        .handover = slots.handover,
        .of = slots.state == SLOTS_MINE ? listing->log : (struct log_id){slots.given_to}};
    return rebuilt_slots_add(listing->rebuilt, listing->log, &told);
}

typedef int take_fn(struct listing *listing, const struct row *row);

static int page_take(struct listing *listing, struct bytes rest, take_fn *take,
                     struct kv_key *ret_last) {
    struct row row;
    int r = 0;

    while (r == 0 && rest.size > 0) {
        r = row_take(listing, &rest, &row);
        if (r == 0) {
            *ret_last = row.key;
            r = take(listing, &row);
        }
    }
    return r;
}

static int rows_list(struct listing *listing, uint32_t what, take_fn *take) {
    struct kv_key cursor;
    bool has_cursor = false;
    bool end = false;
    int r = 0;

    while (r == 0 && !end) {
        struct call call = {
            .header = {.opcode = OP_FSCK_LIST, .log = listing->log},
            .request.fsck_list = {.what = what,
                                  .cursor = {cursor.bytes, has_cursor ? KV_KEY_BYTES : 0},
                                  .bytes_max = PAGE_BYTES},
            .bulk_in = {.data = listing->page, .capacity = PAGE_BYTES}};

        r = rebuild_ask(listing->asker, &call, listing->patience_ns);
        if (r < 0) {
            break;
        }
        const struct fsck_list_reply *reply = &call.reply.fsck_list;
        end = reply->end;
        listing->life.term = reply->term;
        listing->life.life = (struct log_life){reply->life_high, reply->life_low};
        if (call.bulk_in.size == 0 && !end) {
            return -ERR_MALFORMED;
        }
        r = page_take(listing, (struct bytes){call.bulk_in.data, call.bulk_in.size}, take, &cursor);
        has_cursor = true;
    }
    return r;
}

static int log_list(struct listing *listing) {
    struct call sync = {.header = {.opcode = OP_SYNC, .log = listing->log}};
    int r = rows_list(listing, FSCK_SESSIONS, session_take);

    if (r == 0) {
        r = rows_list(listing, FSCK_ENDED, ended_take);
    }
    if (r == 0 && listing->target->kind == TARGET_MDT) {
        r = rows_list(listing, FSCK_SLOTS, slots_take);
    }
    if (r == 0) {
        r = rebuild_ask(listing->asker, &sync, listing->patience_ns);
    }
    return r == 0 ? rebuilt_life_add(listing->rebuilt, &listing->life) : r;
}

int rebuild_rows_ask(struct rebuild_asker *asker, struct rebuilt *rebuilt,
                     const struct map_target *target, uint64_t patience_ns) {
    struct log_id log = cluster_map_log_of(rebuilt->map, target->id);
    struct listing listing = {.asker = asker,
                              .rebuilt = rebuilt,
                              .target = target,
                              .log = log,
                              .patience_ns = patience_ns,
                              .page = malloc(PAGE_BYTES),
                              .life = {.log = log, .node = target->node.value}};
    int r = listing.page ? log_list(&listing) : -ERR_NO_MEMORY;

    free(listing.page);
    return r;
}
