/* See session.h; session_attach, session_floor and fences. */
#include "store/operations.h"
#include <assert.h>
#include <stdlib.h>

enum { SESSION_ROWS = 2, SESSION_RECORD_BYTES = 256 };

int ost_sessions_init(struct sessions *sessions, uint32_t count_max) {
    uint32_t size = 16;

    while (size < 2 * (uint64_t)count_max) {
        size *= 2;
    }
    *sessions = (struct sessions){.mask = size - 1, .count_max = count_max};
    sessions->entries = calloc(size, sizeof *sessions->entries);
    sessions->counters = calloc(count_max, sizeof *sessions->counters);
    if (!index_pool_init(&sessions->places, count_max) || !sessions->entries ||
        !sessions->counters) {
        ost_sessions_deinit(sessions);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void ost_sessions_deinit(struct sessions *sessions) {
    index_pool_deinit(&sessions->places);
    free(sessions->counters);
    free(sessions->entries);
    *sessions = (struct sessions){0};
}

static uint32_t home_of(const struct sessions *sessions, uint64_t session) {
    return (uint32_t)((session * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & sessions->mask;
}

/* The session's entry, or the empty one where it would be put. */
static struct session_entry *entry_of(const struct sessions *sessions, uint64_t session) {
    uint32_t at = home_of(sessions, session);

    while (sessions->entries[at].session && sessions->entries[at].session != session) {
        at = (at + 1) & sessions->mask;
    }
    return &sessions->entries[at];
}

const struct session_entry *ost_sessions_find(const struct sessions *sessions, uint64_t session) {
    const struct session_entry *entry = session ? entry_of(sessions, session) : NULL;

    return entry && entry->session ? entry : NULL;
}

uint32_t ost_session_window(const struct sessions *sessions, struct session_id session) {
    const struct session_entry *entry = ost_sessions_find(sessions, session.value);

    return entry ? entry->window : 0;
}

bool ost_session_is_from(const struct sessions *sessions, const struct call *call) {
    const struct session_entry *entry = ost_sessions_find(sessions, call->header.session.value);

    return !entry || call_is_from(call, &entry->sender);
}

void ost_session_sender_set(struct sessions *sessions, const struct call *call) {
    uint64_t session = call->request.session_attach.session;

    assert(ost_sessions_find(sessions, session));
    entry_of(sessions, session)->sender = call_sender_of(call);
}

uint64_t ost_sessions_within(const struct sessions *sessions, uint64_t from, uint64_t end) {
    if (end - from <= sessions->mask) { /* Fewer numbers than places: they are looked up. */
        for (uint64_t session = from; session < end; session++) {
            if (ost_sessions_find(sessions, session)) {
                return session;
            }
        }
        return 0;
    }
    for (uint32_t i = 0; i <= sessions->mask; i++) {
        uint64_t session = sessions->entries[i].session;

        if (session != 0 && session >= from && session < end) {
            return session;
        }
    }
    return 0;
}

struct session_counters *ost_sessions_counters(const struct sessions *sessions,
                                               struct session_id session) {
    const struct session_entry *entry = ost_sessions_find(sessions, session.value);

    return entry ? &sessions->counters[entry->place] : NULL;
}

void ost_sessions_counters_get(struct sessions *sessions, struct session_counters_list *list) {
    uint32_t used_count = index_pool_used(&sessions->places);

    for (uint32_t i = 0; i < used_count; i++) {
        if (sessions->counters[i].session.value) {
            session_counters_add(list, &sessions->counters[i]);
        }
    }
}

int sessions_put(struct sessions *sessions, struct session_entry session) {
    struct session_entry *entry = entry_of(sessions, session.session);
    struct session_counters *counters;

    assert(session.session > 0 && 2 * (uint64_t)sessions->count <= sessions->mask + UINT64_C(1));
    assert(!entry->session || sessions->counters[entry->place].session.value == session.session);
    if (!entry->session && sessions->count == sessions->count_max) {
        return -ERR_BUSY;
    }
    if (!entry->session) {
        sessions->count++;
        entry->place = index_pool_take(&sessions->places);
        assert(entry->place != INDEX_NONE);
        sessions->counters[entry->place] = (struct session_counters){0};
    }
    windows_give_back(&sessions->windows, entry->window);
    windows_take(&sessions->windows, session.window);
    session.place = entry->place;
    *entry = session;
    counters = &sessions->counters[entry->place];
    counters->session.value = session.session;
    counters->incarnation = session.incarnation;
    counters->node = session.node;
    return 0;
}

void sessions_remove(struct sessions *sessions, uint64_t session) {
    struct session_entry *entry = entry_of(sessions, session);
    uint32_t hole = (uint32_t)(entry - sessions->entries);

    if (!entry->session) {
        return;
    }
    assert(sessions->count > 0 && sessions->counters[entry->place].session.value == session);
    sessions->count--;
    windows_give_back(&sessions->windows, entry->window);
    sessions->counters[entry->place].session.value = 0;
    index_pool_put(&sessions->places, entry->place);
    /* Those behind move up, as far as their home allows, so that no search ends too early. */
    for (uint32_t at = (hole + 1) & sessions->mask; sessions->entries[at].session;
         at = (at + 1) & sessions->mask) {
        uint32_t home = home_of(sessions, sessions->entries[at].session);

        if (((at - home) & sessions->mask) >= ((at - hole) & sessions->mask)) {
            sessions->entries[hole] = sessions->entries[at];
            hole = at;
        }
    }
    sessions->entries[hole] = (struct session_entry){0};
}

/* The highest incarnation that is fenced; 0 when none is. */
static int fence_get(struct ost *ost, uint64_t session, uint64_t *ret_incarnation) {
    struct kv_key key = store_owner_key(STORE_ROW_FENCE, session, 0);
    struct store_fence fence = {0};
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r == 0) {
        if (value.size != sizeof fence) {
            return -ERR_CORRUPT;
        }
        memcpy(&fence, value.data, sizeof fence);
    }
    if (r == 0 || r == -ERR_NOT_FOUND) {
        *ret_incarnation = fence.incarnation;
        r = 0;
    }
    return r;
}

int ost_session_check(struct ost *ost, uint64_t session, uint64_t incarnation) {
    const struct session_entry *entry = ost_sessions_find(&ost->sessions, session);
    uint64_t fenced = 0;
    bool ended = false;

    if (entry && entry->incarnation == incarnation) {
        return 0;
    }
    int r = fence_get(ost, session, &fenced);
    r = r < 0 ? r : ended_list_has(&ost->ended, session, &ended);
    if (r < 0) {
        return r;
    }
    /* A newer incarnation is attached: this one is over. */
    if (ended || fenced >= incarnation || (entry && entry->incarnation > incarnation)) {
        return -ERR_FENCED;
    }
    return -ERR_UNKNOWN_SESSION;
}

static int fence_stage(struct ost *ost, struct session_entry fence, bool removes) {
    struct kv_key fence_key = store_owner_key(STORE_ROW_FENCE, fence.session, 0);
    struct kv_key session_key = store_owner_key(STORE_ROW_SESSION, fence.session, 0);
    struct store_fence row = {.format = STORE_FORMAT, .incarnation = fence.incarnation};
    int r = kv_put(ost->kv, &fence_key, (struct bytes){(const uint8_t *)&row, sizeof row});

    return r == 0 && removes ? kv_delete(ost->kv, &session_key) : r;
}

int ost_session_fence(struct ost *ost, struct request *request, struct session_entry fence,
                      uint64_t *ret_position) {
    const struct session_entry *entry = ost_sessions_find(&ost->sessions, fence.session);
    bool removes = entry && entry->incarnation <= fence.incarnation;
    uint64_t fenced = 0;
    bool ended = false;
    int r = fence_get(ost, fence.session, &fenced);

    r = r < 0 ? r : ended_list_has(&ost->ended, fence.session, &ended);
    if (r < 0) {
        return r;
    }
    if (ended) {
        *ret_position = ost->ended.position;
        return 0;
    }
    if (fenced < fence.incarnation || removes) {
        const struct kv_need need = {.rows = SESSION_ROWS,
                                     .value_bytes = SESSION_RECORD_BYTES,
                                     .record_bytes = SESSION_RECORD_BYTES};

        r = request_begin(ost, request, &need);
        if (r != 0) {
            return r;
        }
        fence.incarnation = MAX(fence.incarnation, fenced);
        r = fence_stage(ost, fence, removes);
        if (r < 0) {
            kv_abort(ost->kv);
            return r;
        }
        (void)kv_commit(ost->kv);
        if (removes) {
            sessions_remove(&ost->sessions, fence.session);
        }
        ost->fenced_position = kv_seal(ost->kv);
    }
    /* One that was there already needs no sync point of what others have written since. */
    *ret_position = ost->fenced_position;
    return 0;
}

/* What the predecessors of a session have sent, and nobody has read yet, would overwrite what it
 * writes: the list that names them comes first. Who waits for it leaves requests to the list. */
static int list_wait(struct ost *ost, struct request *request) {
    if (ost->stop_stage != STOP_NONE) {
        return -ERR_CLOSED;
    }
    if (list_count(&ost->kv_waiting) >= ost->options.requests_max / 4) {
        return -ERR_BUSY;
    }
    request_wait(request, &ost->kv_waiting);
    return REQUEST_WAITS;
}

static int attach(struct ost *ost, struct request *request) {
    const struct session_attach_request *body = &request->call->request.session_attach;
    struct kv_key key = store_owner_key(STORE_ROW_SESSION, body->session, 0);
    struct store_session row = {.format = STORE_FORMAT,
                                .window = windows_offer(&ost->sessions.windows),
                                .node = body->node,
                                .incarnation = body->incarnation};

    if (body->session == 0 || body->incarnation == 0) {
        return -ERR_INVALID;
    }
    int r =
        ticket_admit(&ost->ticket_signer, (struct ticket_session){body->session, body->incarnation},
                     body->ticket, request->call->identity);
    if (r < 0) {
        return r;
    }
    r = ost_session_check(ost, body->session, body->incarnation);
    if (r != -ERR_UNKNOWN_SESSION) {
        return r;
    }
    if (ost->ended.number == 0 || ost->ended.number < body->ended) {
        return list_wait(ost, request);
    }
    if (!ost_sessions_find(&ost->sessions, body->session) &&
        ost->sessions.count == ost->sessions.count_max) {
        return -ERR_BUSY;
    }
    const struct kv_need need = {
        .rows = 1, .value_bytes = SESSION_RECORD_BYTES, .record_bytes = SESSION_RECORD_BYTES};
    r = request_begin(ost, request, &need);
    if (r != 0) {
        return r;
    }
    r = kv_put(ost->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    (void)kv_commit(ost->kv);
    r = sessions_put(&ost->sessions, (struct session_entry){.session = body->session,
                                                            .incarnation = body->incarnation,
                                                            .node = body->node,
                                                            .window = row.window});
    assert(r == 0); /* Its row is in the log: there was a place for it. */
    return r;
}

void attach_run(struct ost *ost, struct request *request) {
    int r = attach(ost, request);

    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        const struct session_attach_request *body = &request->call->request.session_attach;
        const struct session_entry *entry = ost_sessions_find(&ost->sessions, body->session);
        uint64_t known = body->known_term;

        ost_session_sender_set(&ost->sessions, request->call);
        request->call->reply.session_attach = (struct session_attach_reply){
            .term = kv_term(ost->kv),
            .recovered_position = kv_survived_position(ost->kv, known),
            .life_high = kv_life(ost->kv).high,
            .life_low = kv_life(ost->kv).low,
            .window = MAX(entry->window, (uint16_t)WINDOW_LEAST)};
        request_finish(ost, request, 0);
    }
}

static int floor_raise(struct ost *ost, struct request *request) {
    const struct call_header *header = &request->call->header;
    const struct kv_outcome floor = {.session = header->session, .floor = header->floor};
    const struct kv_need need = {
        .session = header->session, .floor = header->floor, .floors = true};
    int r = request_begin(ost, request, &need);

    if (r != 0) {
        return r;
    }
    r = kv_outcome_put(ost->kv, &floor);
    if (r < 0) {
        kv_abort(ost->kv);
    } else {
        (void)kv_commit(ost->kv);
    }
    return r;
}

void floor_run(struct ost *ost, struct request *request) {
    const struct call_header *header = &request->call->header;
    int r = ost_session_check(ost, header->session.value, header->incarnation);

    if (r == 0 && kv_floor_is_due(ost->kv, header->session, header->floor)) {
        r = floor_raise(ost, request);
    }
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        request->call->reply.session_floor.synced = kv_synced_position(ost->kv);
        request_finish(ost, request, 0);
    }
}
