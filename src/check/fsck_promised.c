/* The total of what is promised to holes, against the heads of chunks that promise it.
 *
 *     total --> sum over all heads --> total still, changed as often?
 *
 * Only where nothing has changed meanwhile the two must be the same; so while files are written
 * that have promised space it is looked at some times. */
#include "check/fsck_internal.h"
#include <inttypes.h>
#include <stdio.h>

enum { LOOKS = 8 };

static int total_get(struct fsck *fsck, uint32_t ost, struct store_promised *ret_total) {
    struct kv_key key = store_owner_key(STORE_ROW_PROMISED, 0, 0);
    struct bytes value;
    int r = fsck_row_get(fsck, fsck_ost(fsck, ost), FSCK_PROMISED, &key, &value);

    *ret_total = (struct store_promised){0};
    if (r == 0 && value.size == sizeof *ret_total) {
        memcpy(ret_total, value.data, sizeof *ret_total);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int sum_get(struct fsck *fsck, uint32_t ost, uint64_t *ret_sum) {
    struct fsck_list list;
    struct fsck_row row;
    uint64_t sum = 0;
    int r;

    fsck_list_begin(&list, fsck, fsck_ost(fsck, ost), FSCK_CHUNKS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        struct kv_key_fields fields = kv_key_split(&row.key);
        struct store_head head = {0};

        if (chunk_row_of(&fields) == 0) {
            memcpy(&head, row.value.data, MIN(row.value.size, sizeof head));
            sum += head.promised;
        }
    }
    *ret_sum = sum;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int fsck_promised(struct fsck *fsck, uint32_t ost, uint64_t promised) {
    struct store_promised before;
    struct store_promised after;
    char where[32];
    int r = total_get(fsck, ost, &before);

    if (r < 0 || before.block_count == promised) {
        return r;
    }
    for (int i = 0; r == 0 && i < LOOKS; i++) {
        r = sum_get(fsck, ost, &promised);
        r = r < 0 ? r : total_get(fsck, ost, &after);
        if (r == 0 && after.changes == before.changes) {
            break;
        }
        before = after;
    }
    if (r == 0 && after.changes != before.changes) {
        fsck->counts.unsettled++;
    } else if (r == 0 && after.block_count != promised) {
        snprintf(where, sizeof where, "ost%" PRIu32, ost);
        fsck_problem(fsck, "promised", where,
                     "%" PRIu64 " blocks are kept for files that have reserved space, which "
                     "have reserved %" PRIu64,
                     after.block_count, promised);
    }
    return r;
}
