/* The list of the ended sessions at an OST (kv/ended_list.h): with a session's name goes what the
 * OST has of it, in one record: its row, its outcomes, its fence.
 *
 * Thread: the OST's. */
#include "base/bug.h"
#include "store/operations.h"
#include <assert.h>

/* Of a run: the context of the list's owner. */
struct taking {
    struct ost *ost;
    struct request *request;
};

static int taking_begin(void *context, const struct kv_need *need) {
    const struct taking *taking = context;

    return request_begin(taking->ost, taking->request, need);
}

static void taking_commit(void *context) {
    (void)kv_commit(((struct taking *)context)->ost->kv);
}

static void taking_abort(void *context) {
    kv_abort(((struct taking *)context)->ost->kv);
}

static int session_drop(void *context, uint64_t session) {
    struct ost *ost = ((struct taking *)context)->ost;
    struct kv_key session_key = store_owner_key(STORE_ROW_SESSION, session, 0);
    struct kv_key fence_key = store_owner_key(STORE_ROW_FENCE, session, 0);
    int r = kv_outcome_drop(ost->kv, (struct session_id){session});

    if (r == 0 && ost_sessions_find(&ost->sessions, session) && !BUG(HALF_LIST)) {
        r = kv_delete(ost->kv, &session_key);
    }
    return r < 0 ? r : kv_delete(ost->kv, &fence_key);
}

static void session_dropped(void *context, uint64_t session) {
    if (!BUG(HALF_LIST)) {
        sessions_remove(&((struct taking *)context)->ost->sessions, session);
    }
}

/* One that has a fence, or is attached. */
static int within_find(void *context, uint64_t from, uint64_t end, uint64_t *ret_session) {
    struct ost *ost = ((struct taking *)context)->ost;
    struct kv_key first = store_owner_key(STORE_ROW_FENCE, from, 0);
    struct kv_key to = store_owner_key(STORE_ROW_FENCE, end, 0);
    struct kv_cursor cursor;
    struct bytes value;

    kv_cursor_init(&cursor, &first, &to);
    int r = kv_next(ost->kv, &cursor, &value);
    if (r == 0) {
        *ret_session = kv_key_split(&cursor.key).id;
    }
    if (r == -ERR_NOT_FOUND) {
        /* Who stays would be found again for ever. */
        *ret_session = BUG(HALF_LIST) ? 0 : ost_sessions_within(&ost->sessions, from, end);
        r = 0;
    }
    return r;
}

static const struct ended_owner owner = {
    .row_type = STORE_ROW_ENDED,
    .need = {.rows = 2, .record_bytes = 2 * KV_ROW_RECORD_BYTES, .drops = true},
    .begin = taking_begin,
    .commit = taking_commit,
    .abort = taking_abort,
    .end = session_drop,
    .ended = session_dropped,
    .within = within_find,
};

int ost_ended_load(struct ost *ost) {
    int r = ended_list_load(&ost->ended, ost->kv, &owner);
    uint64_t session;

    /* A check behind the list: who is below its lowest is not served, whoever has left its row. */
    while (r == 0 && (session = ost_sessions_within(&ost->sessions, 1, ost->ended.lowest)) != 0) {
        sessions_remove(&ost->sessions, session);
    }
    return r;
}

static int take(struct ost *ost, struct request *request) {
    const struct sessions_ended_request *body = &request->call->request.sessions_ended;
    const struct ended_news news = {.from = body->from,
                                    .number = body->number,
                                    .lowest = body->lowest,
                                    .first = body->first,
                                    .names = body->names};
    struct ended_work work = {request->stage, request->cursor};
    struct taking taking = {ost, request};
    int r = ended_list_take(&ost->ended, &work, &news, &taking);

    request->stage = work.stage;
    request->cursor = work.cursor;
    return r;
}

void ended_run(struct ost *ost, struct request *request) {
    if (request->more != 0) {
        request_finish(ost, request, request->sync_result);
        return;
    }
    int r = take(ost, request);
    if (r == ENDED_YIELDS) {
        request_yield(ost, request);
        return;
    }
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        /* What it stands for is on disk with the position, or before. */
        request->call->reply.sessions_ended.number = ost->ended.number;
        request->more = 1;
        (void)kv_seal(ost->kv);
        request_sync(ost, request, ost->ended.position);
    }
}
