/* Evictions, a stretch in each step. */
#include "meta/eviction.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/open.h"
#include <assert.h>

enum { EVICTION_CLOSES_A_STEP = 32, EVICTION_LOOKS_A_STEP = 128 };

bool eviction_holds(const struct group *group, struct ino ino) {
    return group->rpc && opens_any_evicted_writer(&group->opens, ino);
}

int eviction_close_stage(struct transaction *transaction, struct session *session, struct ino ino,
                         const struct inode_row *row) {
    const struct group *group = transaction->group;
    const struct open_entry *entry = opens_find(&group->opens, ino, session);
    int r = 0;

    if (!entry) {
        return 0;
    }
    if (entry->has_row) {
        r = open_writer_lose(transaction, entry);
    }
    bool last =
        !opens_any_other(&group->opens, ino, entry) && group->sessions.unattached_count == 0;
    bool ends = row && row->nlink == 0 && last;
    return r == 0 && ends ? inode_end(transaction, ino, row, &ends) : r;
}

void eviction_close_apply(struct group *group, struct session *session, struct ino ino) {
    struct open_entry *entry = opens_find(&group->opens, ino, session);

    assert(session->state == SESSION_EVICTING);
    if (entry) {
        entry->name = 0;
        entry->named = false;
        entry->read_count = 0;
        entry->write_count = 0;
        entry->has_row = false;
        entry->move_count = 0;
        session->evict_count -= session->evict_count > 0;
        opens_trim(&group->opens, entry);
    }
}

/* SETTLES: a job for its size is not over. WAITS: for anything else. */
enum close_result { CLOSED, SETTLES, WAITS, NO_SETTLE, NO_ROOM };

/* Ends one open, or says why not yet. */
static enum close_result close_one(struct group *group, struct session *session,
                                   struct open_entry *entry) {
    struct transaction transaction;
    const struct inode_row *row = NULL;
    struct ino ino = entry->ino;

    group->sessions.evicting_looks++;
    if (settle_is_running(group, ino)) {
        return SETTLES;
    }
    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &open_lose_need) < 0) {
        return NO_ROOM;
    }
    int r = inode_get(&transaction, ino, &row);
    /* A damaged inode must not keep the session; its rows stay, for fsck to name. */
    r = r == -ERR_STALE || r == -ERR_CORRUPT ? 0 : r;
    /* Of a file that goes with this close nobody will ask the size. */
    bool stays = row && (row->nlink > 0 || opens_any_other(&group->opens, ino, entry));
    bool wrote = entry->has_row && stays && row->data_state == DATA_CHUNKED && !BUG(UNSETTLED_SIZE);
    /* What it writes for a move must not come after the order to delete that. */
    bool fences = wrote || (row && entry->move_count > 0);
    if (r == 0 && fences && group->rpc) {
        transaction_abort(&transaction);
        if (!settle_has_room(group, ino)) {
            return NO_SETTLE;
        }
        settle_begin(group, ino, session);
        return SETTLES;
    }
    r = r < 0 ? r : eviction_close_stage(&transaction, session, ino, row);
    if (r < 0) {
        transaction_abort(&transaction);
        return WAITS;
    }
    (void)transaction_commit(&transaction);
    eviction_close_apply(group, session, ino);
    return CLOSED;
}

/* From now on only the list of the ended names it. */
static int end_stage(struct transaction *transaction, const struct session *session) {
    struct kv_key key = key_owner(ROW_SESSION, session->id.value, 0, 0);
    int r = transaction_delete(transaction, &key);

    r = r < 0 ? r : fences_end_stage(transaction, session);
    return r < 0 ? r : kv_outcome_drop(transaction->group->kv, session->id);
}

static void session_end(struct group *group, struct session *session) {
    struct transaction transaction;
    const struct kv_need need = {
        .rows = 2, .record_bytes = 400, .session = session->id, .drops = true};

    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need) < 0) {
        return;
    }
    int r = end_stage(&transaction, session);
    if (r < 0) {
        transaction_abort(&transaction);
        return;
    }
    assert(session->evict_position <= kv_synced_position(group->kv));
    (void)transaction_commit(&transaction);
    sessions_drop(&group->sessions, session);
    group->counters.totals.evictions++;
    group->moved = true;
}

/* Each open has been found to wait for a settle job since one has ended: until another one does, or
 * for a tick, there is nothing to be done. Else each message would cost a look at all of them, as
 * long as a storage target is away. */
static bool rests(const struct group *group, struct session *session) {
    const struct settle *settle = &group->settle;

    if (session->evict_settles != settle->ended_count) {
        session->evict_settles = settle->ended_count;
        session->evict_waits = 0;
    }
    return session->evict_unseen == 0 && session->evict_waits >= session->evict_count &&
           !settle->ticked;
}

/* What one look has shown; false: those behind it would be no better off. */
static bool looked(struct session *session, enum close_result result) {
    bool settles = result == SETTLES || result == NO_SETTLE;

    session->evict_waits = settles ? session->evict_waits + 1 : 0;
    if (result == NO_SETTLE && session->evict_unseen == 0) {
        session->evict_waits = session->evict_count;
        return false;
    }
    return result != NO_ROOM;
}

/* Opens that wait go to the end, so that each has its turn, and what needs no storage target that
 * is away is closed soon; a session may have very many. While some have not been looked at, a lack
 * of settle jobs stops none of those that need none. True: more can be done at once. */
static bool opens_close(struct group *group, struct session *session) {
    struct list_node *node = list_first(&session->opens);
    const struct list_node *moved = NULL; /* the first one */
    enum close_result result = CLOSED;
    int looks = 0;
    int closed = 0;

    if (!session->evict_began) {
        session->evict_began = true;
        session->evict_count = list_count(&session->opens);
        session->evict_unseen = session->evict_count;
    }
    if (rests(group, session)) {
        return false;
    }
    while (node && node != moved && closed < EVICTION_CLOSES_A_STEP &&
           looks++ < EVICTION_LOOKS_A_STEP) {
        struct open_entry *entry = CONTAINER_OF(node, struct open_entry, by_session);
        struct list_node *next = list_next(&session->opens, node);

        result = close_one(group, session, entry);
        if (!looked(session, result)) {
            return false;
        }
        session->evict_unseen -= session->evict_unseen > 0;
        if (result != CLOSED) {
            list_remove(node);
            list_push_back(&session->opens, node);
            moved = moved ? moved : node;
        }
        closed += result == CLOSED;
        node = next;
    }
    return node && (closed == EVICTION_CLOSES_A_STEP || session->evict_unseen > 0);
}

static void session_step(struct group *group, struct session *session) {
    if (session->evict_position > kv_synced_position(group->kv)) {
        group_sync_want(group, session->evict_position);
        return;
    }
    bool again = opens_close(group, session);

    if (list_is_empty(&session->opens)) {
        session_end(group, session);
    } else if (again) {
        group_again(group);
    }
}

void eviction_step(struct group *group) {
    const struct list *evicting = &group->sessions.evicting;
    struct list_node *node = list_first(evicting);

    while (node) {
        struct list_node *next = list_next(evicting, node);

        session_step(group, CONTAINER_OF(node, struct session, evicting));
        node = next;
    }
}
