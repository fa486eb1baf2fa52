/* Effects. */
#include "meta/effects.h"
#include "meta/group_internal.h"
#include "meta/leftovers.h"
#include <assert.h>

/* A copy of what was heard of before changes nothing. */
static void open_by_name(struct open_entry *entry, uint64_t name) {
    if (name <= entry->name) {
        return;
    }
    if (list_contains(&entry->shut)) {
        list_remove(&entry->shut);
    }
    entry->name = name;
    entry->named = true;
}

static void apply_open(struct group *group, struct session *session, const struct effect *effect) {
    assert(session->state == SESSION_LIVE);
    struct open_entry *entry = opens_get(&group->opens, effect->ino, session, effect->uid);

    if (effect->name != 0) {
        open_by_name(entry, effect->name);
    } else if (effect->flags & OPEN_WRITE) {
        entry->write_count++;
        entry->has_row = true;
    } else {
        entry->read_count++;
    }
}

static void apply_close(struct group *group, struct session *session, const struct effect *effect) {
    struct open_entry *entry = opens_find(&group->opens, effect->ino, session);

    if (!entry) {
        return;
    }
    if (effect->name != 0) {
        entry->named = entry->named && entry->name > effect->name;
        entry->name = MAX(entry->name, effect->name);
    } else if (effect->flags & OPEN_WRITE) {
        entry->write_count -= entry->write_count > 0;
        entry->has_row = entry->write_count > 0;
        entry->move_count = entry->has_row ? entry->move_count : 0;
        entry->presented = entry->presented && entry->has_row;
    } else {
        entry->read_count -= entry->read_count > 0;
    }
    opens_trim(&group->opens, entry);
}

static void apply_reopen(struct group *group, struct session *session,
                         const struct effect *effect) {
    assert(session->state == SESSION_LIVE && !session->attached);
    struct open_entry *entry = opens_get(&group->opens, effect->ino, session, effect->uid);

    opens_own(&group->opens, entry, effect->uid);
    entry->read_count = effect->counts[0];
    entry->write_count = effect->counts[1];
    entry->presented = entry->write_count > 0;
    entry->named = effect->name != 0;
    entry->name = MAX(entry->name, effect->name);
    entry->has_row = entry->has_row || entry->write_count > 0;
    opens_trim(&group->opens, entry);
}

static void apply_moves(struct group *group, struct session *session, const struct effect *effect) {
    struct open_entry *entry = opens_find(&group->opens, effect->ino, session);

    assert(entry && (entry->has_row || effect->counts[0] == 0));
    entry->move_count = effect->counts[0];
}

/* A new session's row was written in this transaction, an old one's is there. */
static void apply_attach(struct transaction *transaction, const struct effect *effect) {
    struct group *group = transaction->group;
    struct session_id id = {effect->ino.value};
    struct session *session = sessions_find(&group->sessions, id);

    if (!session) {
        const struct session_attach_request *request = &transaction->call->request.session_attach;
        struct session_row row = {.state = SESSION_LIVE,
                                  .window = windows_offer(&group->sessions.windows),
                                  .node = request->node,
                                  .incarnation = request->incarnation};
        session = sessions_add(&group->sessions, id, &row);
    }
    assert(session && session->state == SESSION_LIVE);
    if (!session->attached) {
        leftovers_find(group, session);
    }
    session_attached(&group->sessions, session);
    session->sender = call_sender_of(transaction->call);
}

static void apply_ended(struct transaction *transaction) {
    struct group *group = transaction->group;

    assert(transaction->held && !list_contains(&transaction->call->server_node));
    list_push_back(&group->ended.calls, &transaction->call->server_node);
    group->moved = true;
}

static void apply_slots(struct slots *slots, uint64_t position) {
    for (uint32_t i = 0; i < slots->moved_count; i++) {
        slots_change(slots, &slots->moved[i], position);
    }
    slots->moved_count = 0;
}

void effect_apply(struct transaction *transaction, const struct effect *effect, uint64_t position) {
    struct group *group = transaction->group;

    switch (effect->kind) {
    case EFFECT_OPEN:
        apply_open(group, transaction->session, effect);
        break;
    case EFFECT_CLOSE:
        apply_close(group, transaction->session, effect);
        break;
    case EFFECT_REOPEN:
        apply_reopen(group, transaction->session, effect);
        break;
    case EFFECT_ORDER:
        queue_order_made(&group->orders);
        break;
    case EFFECT_ATTACH:
        apply_attach(transaction, effect);
        break;
    case EFFECT_SETTLE:
        settle_begin(group, effect->ino, NULL);
        break;
    case EFFECT_COUNT:
        settle_count(group, effect->ino);
        break;
    case EFFECT_ENDED:
        apply_ended(transaction);
        break;
    case EFFECT_MOVES:
        apply_moves(group, transaction->session, effect);
        break;
    case EFFECT_PROMISED:
        promise_made(group, position);
        break;
    case EFFECT_KEPT:
        promise_kept(group, transaction->promise);
        break;
    case EFFECT_DROPPED:
        promise_gone(group, transaction->promise);
        break;
    case EFFECT_SLOTS:
        apply_slots(&group->slots, position);
        break;
    }
}
