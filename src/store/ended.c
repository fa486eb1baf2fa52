/* The list of the sessions that have ended, as this OST has it (docs/internals/identity.md): its
 * number, the lowest session that lives, and above that one bit a session.
 *
 *     names of a message: bit set, what the session has here dropped, in one record each
 *       --> number and lowest --> all of it on disk --> answered with the number
 *
 * A bit is never taken back, so messages may come in any order and more than once; the number goes
 * on only by one that begins where it stands. Who answers with another one than he is told is told
 * again from there. Without a list, number 0, nobody is attached.
 *
 * Thread: the OST's. */
#include "base/bug.h"
#include "store/ended_format.h"
#include "store/operations.h"
#include <assert.h>

enum { ENDED_NAMES, ENDED_BELOW, ENDED_NUMBER, ENDED_TRIM, ENDED_SYNC, ENDED_NAMES_A_STEP = 64 };

static const struct sessions_ended_request *body_of(const struct request *request) {
    return &request->call->request.sessions_ended;
}

static struct kv_key row_key(uint64_t session) {
    return store_owner_key(STORE_ROW_ENDED, 1 + session / STORE_ENDED_BITS, 0);
}

static int byte_get(struct ost *ost, uint64_t session, uint8_t *ret_byte) {
    struct kv_key key = row_key(session);
    size_t at = session % STORE_ENDED_BITS / 8;
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r == 0 || r == -ERR_NOT_FOUND) {
        *ret_byte = r == 0 && at < value.size ? value.data[at] : 0;
        r = 0;
    }
    return r;
}

int ost_session_is_ended(struct ost *ost, uint64_t session, bool *ret_ended) {
    uint8_t byte = UINT8_MAX;
    int r = session < ost->ended.lowest ? 0 : byte_get(ost, session, &byte);

    if (r == 0) {
        *ret_ended = byte >> session % 8 & 1;
    }
    return r;
}

int ost_ended_load(struct ost *ost) {
    struct kv_key key = store_owner_key(STORE_ROW_ENDED, 0, 0);
    struct store_ended row;
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r < 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (value.size != sizeof row || value.data[0] != STORE_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&row, value.data, sizeof row);
    ost->ended.number = row.number;
    ost->ended.lowest = row.lowest;
    ost->ended.first_row = row.first_row;
    return 0;
}

/* In a transaction: all that the session has here. */
static int drop_stage(struct ost *ost, uint64_t session) {
    struct kv_key session_key = store_owner_key(STORE_ROW_SESSION, session, 0);
    struct kv_key fence_key = store_owner_key(STORE_ROW_FENCE, session, 0);
    int r = kv_outcome_drop(ost->kv, (struct session_id){session});

    if (r == 0 && ost_sessions_find(&ost->sessions, session) && !BUG(HALF_LIST)) {
        r = kv_delete(ost->kv, &session_key);
    }
    return r < 0 ? r : kv_delete(ost->kv, &fence_key);
}

/* names: its bit is set, too; else it is below the lowest that is about to be told. */
static int end_one(struct ost *ost, struct request *request, uint64_t session, bool names) {
    const struct kv_need need = {.rows = 3,
                                 .value_bytes = STORE_ENDED_BITS / 8,
                                 .record_bytes = 3 * KV_ROW_RECORD_BYTES + 1,
                                 .drops = true,
                                 .session = {session}};
    struct kv_key key = row_key(session);
    uint8_t byte = 0;
    int r = names ? byte_get(ost, session, &byte) : 0;

    r = r < 0 ? r : request_begin(ost, request, &need);
    if (r != 0) {
        return r;
    }
    byte |= (uint8_t)(1U << session % 8);
    r = names ? kv_patch(ost->kv, &key, session % STORE_ENDED_BITS / 8, (struct bytes){&byte, 1})
              : 0;
    r = r < 0 ? r : drop_stage(ost, session);
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    (void)kv_commit(ost->kv);
    if (!BUG(HALF_LIST)) {
        sessions_remove(&ost->sessions, session);
    }
    ost->ended.position = kv_position(ost->kv) + 1;
    return 0;
}

/* The next session that the message names, from request->cursor on; 0: none. */
static uint64_t next_name(struct request *request) {
    const struct sessions_ended_request *body = body_of(request);
    const uint8_t *bits = body->names.data;
    uint64_t at = request->cursor;

    if (body->first == 0) {
        return at < body->names.size / 8 ? load_le64(bits + 8 * at) : 0;
    }
    while (at < 8 * (uint64_t)body->names.size && !(bits[at / 8] >> at % 8 & 1)) {
        at++;
    }
    request->cursor = at;
    return at < 8 * (uint64_t)body->names.size ? body->first + at : 0;
}

static int names_end(struct ost *ost, struct request *request) {
    uint64_t session;

    for (int i = 0; (session = next_name(request)) != 0; i++) {
        bool ended = false;
        int r = ost_session_is_ended(ost, session, &ended);

        if (r == 0 && !ended && i >= ENDED_NAMES_A_STEP) {
            request_yield(ost, request);
            return REQUEST_WAITS;
        }
        r = r < 0 || ended ? r : end_one(ost, request, session, true);
        if (r != 0) {
            return r;
        }
        request->cursor++;
    }
    return 0;
}

/* A session that has a fence, or is attached, below the lowest that the message tells; 0: none. */
static int below_find(struct ost *ost, uint64_t lowest, uint64_t *ret_session) {
    struct kv_key from = store_owner_key(STORE_ROW_FENCE, 0, 0);
    struct kv_key to = store_owner_key(STORE_ROW_FENCE, lowest, 0);
    struct kv_cursor cursor;
    struct bytes value;

    kv_cursor_init(&cursor, &from, &to);
    int r = kv_next(ost->kv, &cursor, &value);
    if (r == 0) {
        *ret_session = kv_key_split(&cursor.key).id;
    }
    if (r == -ERR_NOT_FOUND) {
        *ret_session = ost_sessions_below(&ost->sessions, lowest);
        r = 0;
    }
    return r;
}

/* Whoever is told all of the list is not told the names below its lowest. */
static int below_end(struct ost *ost, struct request *request) {
    const struct sessions_ended_request *body = body_of(request);
    uint64_t session = 0;
    int r = 0;

    while (body->first != 0 && body->lowest > ost->ended.lowest &&
           (r = below_find(ost, body->lowest, &session)) == 0 && session != 0) {
        r = end_one(ost, request, session, false);
        if (r != 0) {
            break;
        }
        session = 0;
    }
    return r;
}

static int number_put(struct ost *ost, struct request *request) {
    const struct sessions_ended_request *body = body_of(request);
    struct kv_key key = store_owner_key(STORE_ROW_ENDED, 0, 0);
    struct store_ended row = {.format = STORE_FORMAT,
                              .number = body->number,
                              .lowest = MAX(ost->ended.lowest, body->lowest),
                              .first_row = ost->ended.first_row};
    const struct kv_need need = {
        .rows = 1, .value_bytes = sizeof row, .record_bytes = KV_ROW_RECORD_BYTES + sizeof row};

    if (body->from != ost->ended.number || body->number == body->from) {
        return 0;
    }
    int r = request_begin(ost, request, &need);
    if (r != 0) {
        return r;
    }
    r = kv_put(ost->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    (void)kv_commit(ost->kv);
    ost->ended.number = row.number;
    ost->ended.lowest = row.lowest;
    ost->ended.position = kv_position(ost->kv) + 1;
    return 0;
}

/* Rows of bits that are all below the lowest; where that is cut short it is done the next time. */
static int rows_trim(struct ost *ost, struct request *request) {
    const struct kv_need need = {.rows = 1, .record_bytes = KV_ROW_RECORD_BYTES};
    uint64_t end = ost->ended.lowest / STORE_ENDED_BITS;
    int r = 0;

    for (; ost->ended.first_row < end; ost->ended.first_row++) {
        struct kv_key key = row_key(ost->ended.first_row * STORE_ENDED_BITS);
        struct bytes value;

        r = kv_get(ost->kv, &key, &value);
        if (r == -ERR_NOT_FOUND) {
            r = 0;
            continue;
        }
        r = r < 0 ? r : request_begin(ost, request, &need);
        if (r != 0) {
            break;
        }
        r = kv_delete(ost->kv, &key);
        if (r < 0) {
            kv_abort(ost->kv);
            break;
        }
        (void)kv_commit(ost->kv);
    }
    return r;
}

static int message_check(const struct sessions_ended_request *body) {
    bool good = body->number >= body->from && (body->first != 0 || body->names.size % 8 == 0);

    for (size_t i = 0; good && body->first == 0 && i < body->names.size; i += 8) {
        good = load_le64(body->names.data + i) != 0;
    }
    return good ? 0 : -ERR_INVALID;
}

static int step(struct ost *ost, struct request *request) {
    static int (*const steps[])(struct ost *ost, struct request *request) = {
        [ENDED_NAMES] = names_end,
        [ENDED_BELOW] = below_end,
        [ENDED_NUMBER] = number_put,
        [ENDED_TRIM] = rows_trim,
    };
    int r = message_check(body_of(request));

    while (r == 0 && request->stage < ENDED_SYNC) {
        r = steps[request->stage](ost, request);
        request->stage += r == 0;
    }
    return r;
}

void ended_run(struct ost *ost, struct request *request) {
    if (request->stage == ENDED_SYNC) {
        request->call->reply.sessions_ended.number = ost->ended.number;
        request_finish(ost, request, request->sync_result);
        return;
    }
    int r = step(ost, request);
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        (void)kv_seal(ost->kv);
        request_sync(ost, request, ost->ended.position);
    }
}
