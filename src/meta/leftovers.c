/* The contract is in leftovers.h. */
#include "meta/leftovers.h"
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/open.h"
#include "meta/untouched.h"
#include "meta/usage.h"

enum { LEFTOVERS_A_STEP = 32 };

static bool is_left(const struct open_entry *entry) {
    return entry->session->state == SESSION_LIVE && entry->has_row && entry->write_count == 0;
}

void leftovers_find(struct group *group, struct session *session) {
    session->answered_below = 0;
    for (struct list_node *node = list_first(&session->opens); node;
         node = list_next(&session->opens, node)) {
        struct open_entry *entry = CONTAINER_OF(node, struct open_entry, by_session);

        if (is_left(entry) && !list_contains(&entry->left) && !BUG(KEPT_WRITERS)) {
            list_push_back(&group->opens.left, &entry->left);
        }
    }
}

/* No open of before it attached can be asked for again: nothing that was answered is kept, or the
 * floor has risen by as much as can have been under way. */
static bool all_is_asked(const struct group *group, struct session *session) {
    if (kv_outcomes_of(group->kv, session->id) == 0) {
        return true;
    }
    if (session->answered_below == 0 && session->floor > 0) {
        session->answered_below = session->floor + MAX(session->window, (uint16_t)WINDOW_LEAST);
    }
    return session->answered_below > 0 && session->floor >= session->answered_below;
}

/* True: the OSTs have said how long it is, or there is nothing to ask. */
static bool end_is_known(struct group *group, struct open_entry *entry,
                         const struct inode_row *row) {
    struct layout layout = inode_layout(row);

    if (entry->end_asked || row->data_state != DATA_CHUNKED || !group->rpc) {
        return true;
    }
    /* Whoever looks at the file waits for a question under way, so none begins that would last. */
    if (!ost_peers_hold(group, &layout) && settle_has_room(group, entry->ino)) {
        settle_begin(group, entry->ino, NULL);
        entry->end_asked = true;
    }
    return false;
}

/* What its close said of blocks is lost. */
static int blocks_lose(struct transaction *transaction, const struct open_entry *entry,
                       const struct inode_row *row) {
    struct inode_row changed = *row;

    usage_unsure(&changed);
    (void)untouched_end(&changed);
    if (usage_is_due(transaction, entry->ino, &changed, entry->session)) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_COUNT, .ino = entry->ino});
    }
    return usage_patch(transaction, entry->ino, row, &changed);
}

static int leftover_stage(struct transaction *transaction, struct open_entry *entry) {
    struct group *group = transaction->group;
    bool any_other = open_entry_reads(entry) || opens_any_other(&group->opens, entry->ino, entry);
    const struct inode_row *row = NULL;

    int r = inode_get(transaction, entry->ino, &row);
    if (r < 0 && r != -ERR_STALE && r != -ERR_CORRUPT) {
        return r;
    }
    /* A damaged inode keeps nothing open; its rows stay, for fsck to name. Of a file that goes with
     * this close nobody will ask the size. */
    row = r == 0 ? row : NULL;
    if (row && (row->nlink > 0 || any_other) && !end_is_known(group, entry, row)) {
        return -ERR_PENDING;
    }
    bool goes = row && row->nlink == 0 && !any_other && group->sessions.unattached_count == 0;
    r = open_writer_lose(transaction, entry);
    if (r == 0 && goes) {
        r = inode_end(transaction, entry->ino, row, &goes);
    }
    return r == 0 && row && !goes ? blocks_lose(transaction, entry, row) : r;
}

static void leftover_apply(struct group *group, struct open_entry *entry) {
    list_remove(&entry->left);
    entry->has_row = false;
    entry->end_asked = false;
    entry->move_count = 0;
    opens_trim(&group->opens, entry);
    group->counters.totals.writers_left++;
    group->moved = true;
}

enum leftover_result { LEFTOVER_OVER, LEFTOVER_WAITS, LEFTOVER_NO_ROOM };

static enum leftover_result leftover_look(struct group *group, struct open_entry *entry) {
    struct transaction transaction;

    if (!is_left(entry)) {
        list_remove(&entry->left);
        entry->end_asked = false;
        return LEFTOVER_OVER;
    }
    if (settle_is_running(group, entry->ino) || !all_is_asked(group, entry->session)) {
        return LEFTOVER_WAITS;
    }
    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &open_lose_need) < 0) {
        return LEFTOVER_NO_ROOM;
    }
    if (leftover_stage(&transaction, entry) < 0) {
        transaction_abort(&transaction);
        return LEFTOVER_WAITS;
    }
    (void)transaction_commit(&transaction);
    leftover_apply(group, entry);
    return LEFTOVER_OVER;
}

/* Who waits goes to the end, so that each has its turn. */
void leftovers_step(struct group *group) {
    struct list *left = &group->opens.left;
    const struct list_node *waits = NULL; /* the first one */
    bool any_over = false;

    for (uint32_t i = 0; i < LEFTOVERS_A_STEP; i++) {
        struct list_node *node = list_first(left);

        if (!node || node == waits) {
            break;
        }
        struct open_entry *entry = CONTAINER_OF(node, struct open_entry, left);
        enum leftover_result result = leftover_look(group, entry);
        if (result == LEFTOVER_NO_ROOM) {
            return;
        }
        if (result == LEFTOVER_WAITS) {
            list_remove(node);
            list_push_back(left, node);
            waits = waits ? waits : node;
        }
        any_over = any_over || result == LEFTOVER_OVER;
    }
    if (any_over && !list_is_empty(left)) {
        group_again(group);
    }
}
