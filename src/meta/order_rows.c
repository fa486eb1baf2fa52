/* Which Q rows become jobs. Rows are gone through once, in the order of their records; those that
 * were put aside once more whenever an OST has returned. Of these only such are taken as need one
 * that has returned, or none that is away: what the others could do was done before. */
#include "base/bug.h"
#include "meta/queue_internal.h"
#include <assert.h>

enum { ROWS_LOOKED_AT_A_STEP = 256 };

static bool may_leave(const struct group *group, uint64_t position) {
    return position <= kv_synced_position(group->kv) || BUG(EARLY_FREE);
}

bool order_pool(const struct group *group, const struct order_row *row,
                struct pool_version *ret_pool, uint32_t *ret_width) {
    struct layout layout = order_layout(row);
    bool named = cluster_map_pool(group->map, layout.pool_version, ret_pool);

    *ret_width = named ? layout_width(&layout, ret_pool) : 0;
    return named;
}

void order_row_put_aside(struct order_queue *queue, const struct kv_key *key) {
    if (!queue->aside || kv_key_compare(key, &queue->aside_key) < 0) {
        queue->aside_key = *key;
    }
    queue->aside = true;
}

static void rescan_over(struct group *group) {
    struct ost_peers *peers = &group->ost_peers;

    group->orders.rescans = false;
    for (uint32_t i = 0; i < peers->count; i++) {
        peers->known[i]->returned = false;
    }
}

void order_rows_rescan(struct group *group) {
    struct order_queue *queue = &group->orders;
    struct kv_key to = key_owner(ROW_ORDER, UINT64_MAX, UINT32_MAX, UINT64_MAX);

    group->ost_peers.news = false;
    if (queue->aside) {
        kv_cursor_init(&queue->cursor, &queue->aside_key, &to);
        queue->aside = false;
        queue->rescans = true;
        queue->looking = true;
        queue->next_position = 0;
    } else if (!queue->rescans) {
        rescan_over(group);
    }
}

static bool is_a_job(const struct order_queue *queue, const struct kv_key *key) {
    for (uint32_t i = 0; i < ORDER_JOBS; i++) {
        if (queue->jobs[i].stage != ORDER_IDLE && kv_key_compare(&queue->jobs[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_held(struct group *group, const struct order_row *row) {
    struct layout layout = order_layout(row);
    struct pool_version pool;
    uint32_t width;
    bool held = false;

    if (!order_pool(group, row, &pool, &width)) {
        return false;
    }
    for (uint32_t i = 0; i < width; i++) {
        const struct map_target *target = ost_of(group, &layout, &pool, i);
        const struct ost_peer *peer = target ? ost_peer_get(&group->ost_peers, target->log) : NULL;

        if (peer && peer->returned) {
            return false;
        }
        held = held || (peer && ost_peer_is_away(peer));
    }
    return held;
}

static void job_take(struct order_queue *queue, const struct kv_key *key,
                     const struct order_row *row) {
    uint32_t place = 0;

    while (queue->jobs[place].stage != ORDER_IDLE) {
        place++;
        assert(place < ORDER_JOBS); /* busy_count says that one is idle. */
    }
    struct order_job *job = &queue->jobs[place];
    job->queue = queue;
    job->key = *key;
    job->row = *row;
    job->ino.value = kv_key_split(key).index;
    job->call.result = 0;
    order_begin_anew(job);
    queue->busy_count++;
}

/* A damaged row stays, for fsck to name. A failed log's error may be the same, of no row. */
static bool is_damaged(int result, bool has_moved, struct bytes value,
                       const struct order_row **ret_row) {
    return result == -ERR_CORRUPT ? has_moved : result == 0 && order_row_check(value, ret_row) < 0;
}

static bool is_same_place(const struct kv_cursor *a, const struct kv_cursor *b) {
    return a->inclusive == b->inclusive && kv_key_compare(&a->key, &b->key) == 0;
}

/* The row behind the cursor, which moves when the row is done with. -ERR_PENDING: not now. */
static int row_next(struct group *group, struct kv_cursor *cursor,
                    const struct order_row **ret_row) {
    struct order_queue *queue = &group->orders;
    struct bytes value;
    int r;

    *cursor = queue->cursor;
    while ((r = kv_next(group->kv, cursor, &value)) == 0 || r == -ERR_CORRUPT) {
        if (!is_damaged(r, !is_same_place(cursor, &queue->cursor), value, ret_row)) {
            break;
        }
        queue->cursor = *cursor;
    }
    if (r == -ERR_PENDING) {
        queue->cursor = *cursor; /* behind deleted ones */
    }
    return r;
}

void order_rows_take(struct group *group) {
    struct order_queue *queue = &group->orders;
    uint32_t looks = 0;

    while (queue->looking && queue->busy_count < ORDER_JOBS &&
           may_leave(group, queue->next_position)) {
        const struct order_row *row = NULL;
        struct kv_cursor cursor;

        if (looks++ == ROWS_LOOKED_AT_A_STEP) {
            group_again(group);
            return;
        }
        int r = row_next(group, &cursor, &row);
        bool is_new = r == 0 && kv_key_compare(&cursor.key, &queue->seen) > 0;
        if (queue->rescans && (is_new || r == -ERR_NOT_FOUND)) {
            rescan_over(group);
        }
        queue->looking = r != -ERR_NOT_FOUND;
        if (r < 0) {
            return;
        }
        queue->next_position = kv_key_split(&cursor.key).id;
        if (!may_leave(group, queue->next_position)) {
            return;
        }
        if (is_new) {
            queue->seen = cursor.key;
            job_take(queue, &cursor.key, row);
        } else if (is_held(group, row)) {
            order_row_put_aside(queue, &cursor.key);
        } else if (!is_a_job(queue, &cursor.key)) {
            job_take(queue, &cursor.key, row);
        }
        queue->cursor = cursor;
    }
}
