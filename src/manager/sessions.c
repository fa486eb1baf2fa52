/* Sessions: their rows and the way from one stage to the next. */
#include "manager/manager_internal.h"
#include "manager/ended.h"
#include "manager/heard.h"
#include "manager/lives.h"
#include "manager/map_waits.h"
#include "manager/met.h"
#include "manager/revoke.h"
#include <assert.h>

#define LISTENING_GAP_NS NS_PER_S

enum { COUNTER_BYTES = 8 };
static_assert(sizeof(struct manager_session_row) + (int)MANAGER_ORIGIN_BYTES_MAX <=
                  (int)KV_VALUE_BYTES_MAX,
              "a session's row has room for its origin");

static_assert((int)TICKET_BYTES_MAX == (int)WIRE_TICKET_BYTES_MAX, "tickets fit their messages");

/* A session's row with its origin, and the counter. */
static struct kv_need begin_need(struct bytes origin) {
    uint32_t value_bytes =
        (uint32_t)(sizeof(struct manager_session_row) + origin.size + COUNTER_BYTES);

    return (struct kv_need){.rows = 2,
                            .value_bytes = value_bytes,
                            .record_bytes = value_bytes + 2 * KV_ROW_RECORD_BYTES};
}

/* A session's row, and the number of its end. */
static const struct kv_need end_need = {.rows = 2,
                                        .value_bytes = COUNTER_BYTES,
                                        .record_bytes = COUNTER_BYTES + 2 * KV_ROW_RECORD_BYTES};

/* Of the mount that has proven it; 0: a member's. */
static uint64_t serial_of(const struct call *call) {
    return call->identity ? call->identity->serial : 0;
}

/* Who names the node and origin of another one's session begins one beside it. */
static struct session_origin origin_of(const struct call *call) {
    const struct session_begin_request *request = &call->request.session_begin;

    const struct wire_origin told = wire_origin_read(request->origin);

    return (struct session_origin){request->node, serial_of(call), told.name, told.place};
}

uint64_t manager_listening_ns(const struct manager *manager) {
    return env_now_ns(manager->env) - manager->unheard_ns;
}

static int put_row(struct manager *manager, const struct manager_session *session) {
    uint8_t value[sizeof(struct manager_session_row) + MANAGER_ORIGIN_BYTES_MAX];
    const struct manager_session_row row = {.format = MANAGER_ROW_FORMAT,
                                            .is_nameless = session->is_nameless,
                                            .node = session->node_id,
                                            .incarnation = session->incarnation,
                                            .serial = session->serial};
    struct kv_key key = manager_key(MANAGER_ROW_SESSION, session->id.value, 0);

    const struct wire_origin origin = {{session->origin, session->origin_bytes}, session->place};
    memcpy(value, &row, sizeof row);
    size_t size = sizeof row + wire_origin_write(&origin, value + sizeof row);
    return kv_put(manager->kv, &key, (struct bytes){value, size});
}

static void flushed(struct kv_waiter *waiter, int result) {
    struct manager_session *session = CONTAINER_OF(waiter, struct manager_session, waiter);

    session->waiting = false;
    if (result < 0) {
        session->manager->failure = result;
    }
}

/* Closes the transaction and lets the session wait until it is durable. */
static void commit_and_wait(struct manager_session *session) {
    struct manager *manager = session->manager;

    (void)kv_commit(manager->kv);
    session->waiting = true;
    session->waiter.done = flushed;
    kv_sync(manager->kv, &session->waiter, kv_seal(manager->kv));
}

static void session_free(struct manager_session *session) {
    struct manager *manager = session->manager;
    struct list_node *node;

    while ((node = list_pop_front(&session->end_calls))) {
        call_reply(CONTAINER_OF(node, struct call, server_node), 0);
    }
    manager->ended_count--;
    session_table_drop(&manager->sessions, session);
}

/* 0 when the record is written and being flushed. */
static int write_begin(struct manager *manager, struct manager_session *session,
                       const struct kv_grant *grant) {
    uint8_t counter[COUNTER_BYTES];
    struct kv_key key = manager_key(MANAGER_ROW_COUNTER, MANAGER_COUNTER_SESSION, 0);

    kv_begin(manager->kv, grant);
    store_le64(counter, manager->next_session + 1);
    int r = kv_put(manager->kv, &key, (struct bytes){counter, sizeof counter});
    r = r < 0 ? r : put_row(manager, session);
    if (r < 0) {
        kv_abort(manager->kv);
        return r;
    }
    manager->next_session++;
    commit_and_wait(session);
    return 0;
}

/* For the session over this connection: in the answer's bulk. */
static int ticket_give(const struct manager_session *session, struct call *call) {
    const struct ticket_session named = {session->id.value, session->incarnation};
    const struct identity member = IDENTITY_OF_MEMBER;
    struct signer *signer = &session->manager->signer;

    call->bulk_in.size = 0;
    if (!signer_has_keys(signer)) {
        return 0;
    }
    if (call->bulk_in.capacity < TICKET_BYTES_MAX) {
        return -ERR_TOO_SMALL;
    }
    call->bulk_in.size =
        ticket_make(signer, named, call->identity ? call->identity : &member, call->bulk_in.data);
    return 0;
}

static void begin_answer(const struct manager_session *session, struct call *call) {
    int r = ticket_give(session, call);

    call->reply.session_begin.session = session->id.value;
    call->reply.session_begin.map_version = session->manager->map->version;
    if (manager_ended_advance(session->manager)) {
        manager_ended_tell(session->manager);
    }
    call->reply.session_begin.ended = session->manager->told_number;
    call->reply.session_begin.starts = manager_lives_starts(session->manager);
    call_reply(call, r);
}

/* It goes in one record with the number of its end; targets are told the list (ended.c). An error
 * of kv_admit: it lives on. */
static int evict(struct manager_session *session) {
    struct manager *manager = session->manager;
    struct kv_key key = manager_key(MANAGER_ROW_SESSION, session->id.value, 0);
    struct kv_grant grant;
    int r = session->stage == STAGE_LIVE
                ? kv_admit(manager->kv, KV_CLASS_RELEASE, &end_need, &grant)
                : -ERR_PENDING;

    if (r < 0) {
        return r;
    }
    kv_begin(manager->kv, &grant);
    r = kv_delete(manager->kv, &key);
    r = r < 0 ? r : manager_ended_put(manager);
    if (r < 0) {
        kv_abort(manager->kv);
        return r;
    }
    session->stage = STAGE_MARKING;
    session_move(session, &manager->sessions.marking);
    manager->ended_count++;
    commit_and_wait(session);
    manager_ended_add(manager, session->id, kv_position(manager->kv));
    session->ended_number = manager->ended_number;
    return 0;
}

static void refuse_all(struct list *calls, int result) {
    struct list_node *node;

    while ((node = list_pop_front(calls))) {
        call_reply(CONTAINER_OF(node, struct call, server_node), result);
    }
}

static bool must_end(const struct manager_session *session) {
    return session->is_revoked || !list_is_empty(&session->end_calls);
}

static void begun(struct manager_session *session) {
    struct manager *manager = session->manager;
    struct session_table *table = &manager->sessions;

    session->stage = STAGE_LIVE;
    session->heard_ns = manager_listening_ns(manager);
    session->is_heard = true;
    session_move(session, must_end(session) ? &table->ending : &table->heard);
    if (session->begin_call) {
        begin_answer(session, TAKE_PTR(session->begin_call));
    }
}

/* Its end is on disk. Groups see to what it had open, so who ends it waits for them; storage
 * targets only let go of what they kept. */
static void ended(struct manager_session *session) {
    session->stage = STAGE_TELLING;
    list_remove(&session->living);
    if (list_is_empty(&session->end_calls)) {
        session_free(session);
    } else {
        session_move(session, &session->manager->sessions.telling);
    }
}

/* Whose session it was is not there any more, as the node has gone on to this place, and nothing
 * was heard of it for as long as a life stands. Of the manager's own node, whose mounts go where
 * their manager does, nothing since its start. */
static bool was_left(const struct manager *manager, const struct manager_session *session,
                     uint64_t place) {
    bool is_own = session->node_id == manager->map->nodes[0].id.value;
    bool is_silent =
        manager_listening_ns(manager) >= session->heard_ns + manager_lives_stands_ns(manager);

    return place != 0 && place == manager_lives_place(manager, session->node_id) &&
           session->stage != STAGE_BEGINNING && (is_silent || (is_own && !session->is_heard));
}

/* At the same place both are of one directory in one boot of one machine. One from another place
 * may be of a copy of the directory, and live. */
static bool is_predecessor(const struct manager *manager, const struct manager_session *session,
                           uint64_t place) {
    return session->place == place || was_left(manager, session, place);
}

/* A second begin of one life is answered with the first one's session. Predecessors are over: their
 * ends have numbers on disk, and a target that has not heard of all up to there attaches nobody new
 * whose session began behind them. */
static bool begin_known(struct manager *manager, struct call *call) {
    const struct session_begin_request *request = &call->request.session_begin;
    bool has_predecessors = false;
    bool must_wait = false;

    const struct session_origin origin = origin_of(call);
    struct manager_session *session = NULL;
    while ((session = session_table_of(&manager->sessions, &origin, session))) {
        if (!is_predecessor(manager, session, origin.place)) {
            continue;
        }
        if (session->incarnation != request->incarnation || session->stage > STAGE_LIVE) {
            if (evict(session) == -ERR_NO_SPACE) {
                call_reply(call, -ERR_NO_SPACE);
                return true;
            }
            must_wait = must_wait || session->stage < STAGE_TELLING;
            has_predecessors = true;
        } else if (session->stage == STAGE_LIVE) {
            begin_answer(session, call);
            return true;
        } else {
            must_wait = true;
        }
    }
    /* Its place is the successor's, where there is no other. */
    must_wait = must_wait || (has_predecessors && session_table_is_full(&manager->sessions));
    if (must_wait) {
        list_push_back(&manager->begin_calls, &call->server_node);
    }
    return must_wait;
}

void manager_begin(struct manager *manager, struct call *call) {
    const struct session_begin_request *request = &call->request.session_begin;

    if (request->origin.size > MANAGER_ORIGIN_BYTES_MAX || request->incarnation == 0) {
        call_reply(call, -ERR_INVALID);
        return;
    }
    if (cluster_map_is_revoked(manager->map, serial_of(call))) {
        call_reply(call, -ERR_REVOKED);
        return;
    }
    if (begin_known(manager, call)) {
        return;
    }
    /* One of a manager that was rebuilt may be its predecessor, and is heard if it lives. Who waits
     * asks again: here he would take the place of those by which it is heard, or silent. */
    if (session_table_has_unheard(&manager->sessions, request->node)) {
        call_reply(call, manager->is_quiet ? -ERR_CLOSED : -ERR_BUSY);
        return;
    }
    if (session_table_is_full(&manager->sessions)) {
        call_reply(call, -ERR_TOO_MANY_SESSIONS);
        return;
    }
    const struct kv_need need = begin_need(request->origin);
    struct kv_grant grant;
    int r = kv_admit(manager->kv, KV_CLASS_REQUEST, &need, &grant);
    if (r == -ERR_NO_SPACE) {
        call_reply(call, r);
        return;
    }
    if (r < 0) {
        list_push_back(&manager->begin_calls, &call->server_node);
        return;
    }
    const struct session_origin origin = origin_of(call);
    struct manager_session *session =
        session_table_add(&manager->sessions, (struct session_id){manager->next_session}, &origin);
    session->manager = manager;
    session->incarnation = request->incarnation;
    session->stage = STAGE_BEGINNING;
    session_move(session, &manager->sessions.beginning);
    r = write_begin(manager, session, &grant);
    if (r < 0) {
        session_table_drop(&manager->sessions, session);
        call_reply(call, r);
        return;
    }
    session->begin_call = call;
}

/* A ticket by an older key, or for another identity, makes place for a new one. */
static int renew_ticket(const struct manager_session *session, struct call *call) {
    const struct session_renew_request *request = &call->request.session_renew;
    const struct ticket_session named = {session->id.value, session->incarnation};
    const struct identity member = IDENTITY_OF_MEMBER;
    struct signer *signer = &session->manager->signer;
    struct identity identity;

    call->bulk_in.size = 0;
    if (!signer_has_keys(signer)) {
        return 0;
    }
    int r = ticket_check(signer, named, request->ticket, &identity);
    if (r < 0) {
        return r;
    }
    bool same = identity_is(&identity, call->identity ? call->identity : &member);
    return same && ticket_is_newest(signer, request->ticket) ? 0 : ticket_give(session, call);
}

/* Its row as it is known now: with the name that this renewal tells where it had none, and the key
 * that it was renewed by. Where there is no room for it, the next renewal tries again. */
static void session_row_renew(struct manager_session *session, struct bytes name) {
    struct manager *manager = session->manager;
    size_t known_bytes = session->origin_bytes + WIRE_ORIGIN_PLACE_BYTES;
    uint32_t value_bytes =
        (uint32_t)(sizeof(struct manager_session_row) + MAX(name.size, known_bytes));
    const struct kv_need need = {
        .rows = 1, .value_bytes = value_bytes, .record_bytes = value_bytes + KV_ROW_RECORD_BYTES};
    bool gets_name = session->is_nameless && name.size > 0 && name.size <= MANAGER_ORIGIN_BYTES_MAX;
    struct kv_grant grant;

    if (session->stage != STAGE_LIVE || (!gets_name && !session->row_is_old) ||
        kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    if (gets_name) {
        const struct wire_origin origin = wire_origin_read(name);

        session_table_name(&manager->sessions, session, &origin);
    }
    session->row_is_old = false;
    kv_begin(manager->kv, &grant);
    int r = put_row(manager, session);
    assert(r == 0); /* It was admitted, and an older value is replaced. */
    (void)kv_commit(manager->kv);
    (void)kv_seal(manager->kv);
}

static void session_heard(struct manager_session *session, const struct call *call) {
    struct session_table *table = &session->manager->sessions;

    session->heard_ns = manager_listening_ns(session->manager);
    session->is_heard = true;
    if (session->serial != serial_of(call)) {
        session_table_serial(table, session, serial_of(call));
        session->row_is_old = true;
    }
    session_row_renew(session, call->request.session_renew.origin);
    if (session->stage == STAGE_LIVE && !must_end(session)) {
        session_move(session, &table->heard);
    }
}

void manager_renew(struct manager *manager, struct call *call) {
    struct manager_session *session =
        session_table_find(&manager->sessions, call->request.session_renew.session);
    int r = 0;

    if (!session) {
        r = -ERR_UNKNOWN_SESSION;
    } else if (session->incarnation != call->request.session_renew.incarnation ||
               session->stage > STAGE_LIVE) {
        r = -ERR_FENCED;
    } else {
        r = cluster_map_is_revoked(manager->map, serial_of(call)) ? -ERR_REVOKED
                                                                  : renew_ticket(session, call);
    }
    if (r == 0) {
        session_heard(session, call);
        manager_met_note(manager, session, &call->request.session_renew);
        call->reply.session_renew.map_version = manager->map->version;
        call->reply.session_renew.starts = manager_lives_starts(manager);
    }
    call_reply(call, r);
}

/* The end of one that is not known has happened already. */
void manager_end(struct manager *manager, struct call *call) {
    struct manager_session *session =
        session_table_find(&manager->sessions, call->request.session_end.session);

    if (!session) {
        call_reply(call, 0);
    } else if (session->incarnation != call->request.session_end.incarnation) {
        call_reply(call, -ERR_FENCED);
    } else if (ticket_admit(&manager->signer,
                            (struct ticket_session){session->id.value, session->incarnation},
                            call->request.session_end.ticket, call->identity) < 0) {
        call_reply(call, -ERR_BAD_TICKET);
    } else {
        list_push_back(&session->end_calls, &call->server_node);
        if (session->stage == STAGE_LIVE) {
            session_move(session, &manager->sessions.ending);
        }
        if (evict(session) == -ERR_NO_SPACE) {
            refuse_all(&session->end_calls, -ERR_NO_SPACE);
        }
    }
}

/* Those that wait for records do so in the order of these. */
static void sessions_move(struct manager *manager) {
    struct session_table *table = &manager->sessions;
    struct manager_session *session;

    while ((session = session_first(&table->beginning)) && !session->waiting) {
        begun(session);
    }
    while ((session = session_first(&table->ending))) {
        int r = evict(session);

        if (r == -ERR_NO_SPACE) {
            refuse_all(&session->end_calls, r);
        }
        if (session->stage == STAGE_LIVE) {
            break; /* There is no room for its record. */
        }
    }
    while ((session = session_first(&table->marking)) && !session->waiting) {
        ended(session);
    }
    while ((session = session_first(&table->telling)) &&
           manager_ended_groups_know(manager, session->ended_number)) {
        session_free(session);
    }
}

void manager_sessions_step(struct manager *manager) {
    sessions_move(manager);
    uint32_t ending = manager->ended_count;

    if (manager_ended_advance(manager)) {
        manager_ended_tell(manager);
    }
    ending += manager_ended_behind(manager);
    atomic_store_explicit(&manager->ending_count, ending, memory_order_relaxed);
    atomic_store_explicit(&manager->nameless_count, manager->sessions.nameless_count,
                          memory_order_relaxed);
    /* Each goes to the end again when it still has to wait. */
    struct list_node *last =
        list_is_empty(&manager->begin_calls) ? NULL : manager->begin_calls.head.previous;
    struct list_node *node;
    while (last && (node = list_pop_front(&manager->begin_calls))) {
        bool is_last = node == last;

        manager_begin(manager, CONTAINER_OF(node, struct call, server_node));
        if (is_last) {
            break;
        }
    }
}

/* Silence counts only while the manager was listening: one that was stopped, or did not get to run,
 * must not take its own silence for everybody's. */
static void forgive_gap(struct manager *manager, uint64_t now) {
    uint64_t gap = manager->ticked_ns > 0 ? now - manager->ticked_ns : 0;

    manager->ticked_ns = now;
    if (gap <= LISTENING_GAP_NS) {
        return;
    }
    manager_heard_forgive(manager, gap, now);
    manager->unheard_ns += gap;
}

static bool is_silent(const struct manager_session *session, uint64_t listening) {
    return listening > session->heard_ns &&
           listening - session->heard_ns > session->manager->options.session_timeout_ns;
}

void manager_expire(struct manager *manager) {
    struct session_table *table = &manager->sessions;
    uint64_t now = env_now_ns(manager->env);
    struct manager_session *session;

    forgive_gap(manager, now);
    bool holds = manager_heard_holds(manager, now);
    uint64_t listening = manager_listening_ns(manager);

    while ((session = session_first(&table->heard)) && is_silent(session, listening)) {
        session_move(session, &table->held);
        if (holds) {
            manager_heard_held(manager);
        }
    }
    while (!holds && (session = session_first(&table->held))) {
        if (evict(session) < 0) {
            break;
        }
        manager_heard_evicted(manager);
    }
}

void manager_refuse(struct manager *manager, int result) {
    struct session_table *table = &manager->sessions;
    const struct list *waiting[] = {&table->beginning, &table->ending, &table->marking,
                                    &table->telling};

    refuse_all(&manager->early_calls, result);
    refuse_all(&manager->begin_calls, result);
    refuse_all(&manager->life_calls, result);
    refuse_all(&manager->living_calls, result);
    refuse_all(&manager->join_calls, result);
    refuse_all(&manager->joining_calls, result);
    refuse_all(&manager->revoke_calls, result);
    refuse_all(&manager->revoking_calls, result);
    refuse_all(&manager->renew_calls, result);
    refuse_all(&manager->renewing_calls, result);
    refuse_all(&manager->lose_calls, result);
    refuse_all(&manager->losing_calls, result);
    manager_map_waits_refuse(manager, result);
    for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
        for (struct manager_session *session = session_first(waiting[i]); session;
             session = session_next(waiting[i], session)) {
            refuse_all(&session->end_calls, result);
            if (session->begin_call) {
                call_reply(TAKE_PTR(session->begin_call), result);
            }
        }
    }
}

static int load_row(struct manager *manager, uint64_t id, struct bytes value) {
    struct session_table *table = &manager->sessions;
    struct manager_session_row row;

    if (value.size < 1) {
        return -ERR_CORRUPT;
    }
    if (value.data[0] != MANAGER_ROW_FORMAT) {
        return value.data[0] > MANAGER_ROW_FORMAT ? -ERR_NEWER_FORMAT : -ERR_OLDER_FORMAT;
    }
    if (value.size < sizeof row || value.size - sizeof row > MANAGER_ORIGIN_BYTES_MAX) {
        return -ERR_CORRUPT;
    }
    memcpy(&row, value.data, sizeof row);
    if (row.is_nameless > 1 || (row.is_nameless && value.size > sizeof row)) {
        return -ERR_CORRUPT;
    }
    const struct wire_origin told =
        wire_origin_read((struct bytes){value.data + sizeof row, value.size - sizeof row});
    const struct session_origin origin = {row.node, row.serial, told.name, told.place};
    struct manager_session *session = session_table_add(table, (struct session_id){id}, &origin);
    session->manager = manager;
    session->incarnation = row.incarnation;
    session->stage = STAGE_LIVE;
    session->heard_ns = manager_listening_ns(manager);
    session_move(session, &table->heard);
    if (row.is_nameless) {
        session_table_unname(table, session);
    }
    return 0;
}

/* How many rows there are: more than may begin, when more might before. */
static int rows_count(struct manager *manager, uint32_t *ret_count) {
    struct kv_key from = manager_key(MANAGER_ROW_SESSION, 0, 0);
    struct kv_key to = manager_key(MANAGER_ROW_SESSION + 1, 0, 0);
    struct kv_cursor cursor;
    struct bytes value;
    int r;

    *ret_count = 0;
    kv_cursor_init(&cursor, &from, &to);
    while ((r = kv_next(manager->kv, &cursor, &value)) == 0) {
        ++*ret_count;
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int rows_load(struct manager *manager) {
    struct kv_key from = manager_key(MANAGER_ROW_SESSION, 0, 0);
    struct kv_key to = manager_key(MANAGER_ROW_SESSION + 1, 0, 0);
    const struct siphash_key key = {{kv_life(manager->kv).high, kv_life(manager->kv).low}};
    uint32_t max = manager->options.sessions_max;
    struct kv_cursor cursor;
    struct bytes value;
    uint32_t count;

    int r = rows_count(manager, &count);
    if (r < 0) {
        return r;
    }
    session_table_deinit(&manager->sessions);
    r = session_table_init(&manager->sessions, max, MAX(max, count), key);
    kv_cursor_init(&cursor, &from, &to);
    while (r == 0 && (r = kv_next(manager->kv, &cursor, &value)) == 0) {
        r = load_row(manager, kv_key_split(&cursor.key).id, value);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int manager_sessions_load(struct manager *manager) {
    struct kv_key counter = manager_key(MANAGER_ROW_COUNTER, MANAGER_COUNTER_SESSION, 0);
    struct bytes value;
    int r = rows_load(manager);

    if (r < 0) {
        return r;
    }
    r = kv_get(manager->kv, &counter, &value);
    manager->next_session = r == 0 && value.size == 8 ? load_le64(value.data) : 1;
    manager_revoked_mark(manager);
    return r == 0 || r == -ERR_NOT_FOUND ? manager_ended_load(manager) : r;
}
