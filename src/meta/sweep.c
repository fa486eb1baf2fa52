/* Orphans after a start: inodes without a name that nobody has open any more. They are freed once
 * every session that was known has attached anew, and so presented its opens, or has ended. Once
 * more behind a promise that was given up and would have given one a name, as its last close came
 * meanwhile. */
#include "meta/group_internal.h"
#include "meta/inode.h"
#include <assert.h>

enum { SWEEP_A_STEP = 32 };
static const struct kv_need orphan_need = {.rows = 12, .record_bytes = 1200};

static int orphan_free(struct group *group, struct ino ino) {
    struct transaction transaction;
    const struct inode_row *row;

    if (opens_any(&group->opens, ino) || promises_hold_orphan(group, ino)) {
        return 0;
    }
    if (transaction_begin(&transaction, group, KV_CLASS_BACKGROUND, &orphan_need) < 0) {
        return -ERR_PENDING;
    }
    int r = inode_get(&transaction, ino, &row);
    if (r == 0) {
        r = row->nlink == 0 ? inode_free(&transaction, ino, row) : -ERR_CORRUPT;
    }
    if (r < 0) {
        transaction_abort(&transaction);
        return r;
    }
    (void)transaction_commit(&transaction);
    group->counters.totals.orphans_freed++;
    return 0;
}

void sweep_again(struct group *group) {
    group->sweep_stage = SWEEP_WAITING;
    group->moved = true;
}

static void sweep_begin(struct group *group) {
    struct kv_key from = key_owner(ROW_ORPHAN, 0, 0, 0);
    struct kv_key to = key_owner(ROW_ORPHAN, UINT64_MAX, 0, 0);

    kv_cursor_init(&group->sweep_cursor, &from, &to);
    group->sweep_stage = SWEEP_RUNNING;
}

void sweep_step(struct group *group) {
    if (group->sweep_stage == SWEEP_WAITING && group->sessions.unattached_count == 0) {
        sweep_begin(group);
    }
    for (int i = 0; group->sweep_stage == SWEEP_RUNNING && i < SWEEP_A_STEP; i++) {
        struct kv_cursor cursor = group->sweep_cursor;
        struct bytes value;

        assert(group->sessions.unattached_count == 0);
        int r = kv_next(group->kv, &cursor, &value);
        if (r == -ERR_NOT_FOUND) {
            group->sweep_stage = SWEEP_DONE;
            return;
        }
        if (r == -ERR_PENDING) {
            group->sweep_cursor = cursor;
        }
        r = r < 0 ? r : orphan_free(group, (struct ino){kv_key_split(&cursor.key).id});
        if (r == -ERR_PENDING) {
            return;
        }
        /* A damaged row stays where it is, for fsck to name. */
        group->sweep_cursor = cursor;
    }
    if (group->sweep_stage == SWEEP_RUNNING) {
        group_again(group);
    }
}
