/* Asking targets for rows: lists, and single rows as they are now. */
#include "check/fsck_away.h"
#include "check/fsck_crossing.h"
#include "check/fsck_lost.h"
#include "layout/map_lost.h"
#include "meta/half_format.h"
#include "store/fsck_format.h"
#include <string.h>

static bool is_meta(uint32_t what) {
    return what != FSCK_CHUNKS && what != FSCK_BLOCKS && what != FSCK_DATA && what != FSCK_PROMISED;
}

static int list_ask(struct fsck *fsck, struct target_id target,
                    const struct fsck_list_request *request, struct buffer *rows, bool *ret_end) {
    struct call *call = &fsck->call;

    *call = (struct call){.header.opcode = OP_FSCK_LIST,
                          .request.fsck_list = *request,
                          .bulk_in = {.data = rows->data, .capacity = rows->capacity}};
    int r = fsck_ask(fsck, target);
    if (r == 0) {
        rows->size = call->bulk_in.size;
        *ret_end = call->reply.fsck_list.end;
    }
    return r;
}

/* Takes the first row off. The two kinds of targets frame rows differently. A row whose checksum is
 * wrong is an empty one: no row is, so whoever looks at it finds that it makes no sense. */
static int row_take(uint32_t what, struct bytes *rest, struct fsck_row *ret_row) {
    size_t head = is_meta(what) ? sizeof(uint16_t) + KV_KEY_BYTES : sizeof(struct store_fsck_row);
    size_t row_bytes;
    size_t value_bytes;

    if (rest->size < head) {
        return -ERR_MALFORMED;
    }
    if (is_meta(what)) {
        value_bytes = load_le16(rest->data);
        value_bytes = value_bytes == FSCK_ROW_IS_BAD ? 0 : value_bytes;
        row_bytes = head + value_bytes;
        memcpy(ret_row->key.bytes, rest->data + sizeof(uint16_t), KV_KEY_BYTES);
    } else {
        struct store_fsck_row row;

        memcpy(&row, rest->data, sizeof row);
        value_bytes = row.value_bytes == FSCK_ROW_IS_BAD ? 0 : row.value_bytes;
        row_bytes = row.row_bytes;
        memcpy(ret_row->key.bytes, row.key, KV_KEY_BYTES);
    }
    if (row_bytes < head || row_bytes > rest->size || value_bytes > row_bytes - head) {
        return -ERR_MALFORMED;
    }
    ret_row->value = (struct bytes){rest->data + head, value_bytes};
    rest->data += row_bytes;
    rest->size -= row_bytes;
    return 0;
}

/* Cursors stand on the row that was given last. */
static struct kv_key key_before(const struct kv_key *key) {
    struct kv_key before = *key;

    for (size_t i = KV_KEY_BYTES; i > 0 && before.bytes[i - 1]-- == 0; i--) {
    }
    return before;
}

void fsck_list_begin(struct fsck_list *list, struct fsck *fsck, struct target_id target,
                     uint32_t what) {
    *list = (struct fsck_list){.fsck = fsck, .target = target, .what = what};
}

void fsck_list_begin_all(struct fsck_list *list, struct fsck *fsck, uint32_t what) {
    *list = (struct fsck_list){.fsck = fsck,
                               .what = what,
                               .end = true,
                               .all = true,
                               .groups_left = fsck->cluster->map->group_count};
}

/* Those that are lost have nothing to list. */
static void list_next_target(struct fsck_list *list) {
    uint32_t group = list->fsck->cluster->map->group_count - list->groups_left--;

    list->target = fsck_mdt(list->fsck, group);
    list->has_cursor = false;
    list->end = fsck_mdt_is_lost(list->fsck, group);
}

void fsck_list_from(struct fsck_list *list, const struct kv_key *key) {
    list->cursor = key_before(key);
    list->has_cursor = true;
    list->end = false;
    list->rest = (struct bytes){NULL, 0};
}

int fsck_list_next(struct fsck_list *list, struct fsck_row *ret_row) {
    if (list->rest.size > 0 && list->answer != list->fsck->list_answers) {
        list->rest = (struct bytes){NULL, 0};
        list->end = false;
    }
    while (list->rest.size == 0) {
        struct buffer rows = {.data = list->fsck->list_memory, .capacity = FSCK_LIST_BYTES};
        const struct fsck_list_request request = {
            .what = list->what,
            .cursor = {list->cursor.bytes, list->has_cursor ? KV_KEY_BYTES : 0},
            .bytes_max = FSCK_LIST_BYTES,
        };

        if (list->end && list->groups_left == 0) {
            return -ERR_NOT_FOUND;
        }
        if (list->end) {
            list_next_target(list);
            continue;
        }
        list->answer = ++list->fsck->list_answers;
        int r = list_ask(list->fsck, list->target, &request, &rows, &list->end);
        if (r == -ERR_AWAY && list->all) {
            list->end = true;
            continue;
        }
        if (r < 0) {
            return r;
        }
        if (rows.size == 0 && !list->end) {
            return -ERR_MALFORMED;
        }
        list->rest = (struct bytes){rows.data, rows.size};
    }
    int r = row_take(list->what, &list->rest, ret_row);
    if (r == 0) {
        list->cursor = ret_row->key;
        list->has_cursor = true;
        fsck_progress(list->fsck);
    }
    return r;
}

int fsck_row_get(struct fsck *fsck, struct target_id target, uint32_t what,
                 const struct kv_key *key, struct bytes *ret_value) {
    struct kv_key before = key_before(key);
    struct buffer rows = {.data = fsck->point_memory, .capacity = sizeof fsck->point_memory};
    const struct fsck_list_request request = {
        .what = what, .cursor = {before.bytes, KV_KEY_BYTES}, .bytes_max = FSCK_POINT_BYTES};
    struct fsck_row row;
    bool end;

    if (cluster_map_is_lost(fsck->cluster->map, target)) {
        return -ERR_NOT_FOUND;
    }
    int r = list_ask(fsck, target, &request, &rows, &end);
    if (r < 0) {
        return r;
    }
    if (rows.size == 0) {
        return -ERR_NOT_FOUND;
    }
    r = row_take(what, &(struct bytes){rows.data, rows.size}, &row);
    if (r < 0 || kv_key_compare(&row.key, key) != 0) {
        return r < 0 ? r : -ERR_NOT_FOUND;
    }
    *ret_value = row.value;
    return 0;
}

struct sought {
    uint64_t ino;
    bool found;
};

static void sought_see(void *context, uint64_t ino) {
    struct sought *sought = context;

    sought->found = sought->found || ino == sought->ino;
}

int fsck_crossings(struct fsck *fsck, void (*see)(void *context, uint64_t ino), void *context) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    fsck_list_begin_all(&list, fsck, FSCK_TRANSACTIONS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        const struct transaction_row *transaction;
        const struct half *half;
        struct bytes halves;

        if (transaction_row_check(row.value, &transaction, &halves) < 0) {
            continue;
        }
        while (halves.size > 0 && half_next(&halves, &half) == 0) {
            see(context, half->ino);
            see(context, half->from);
            see(context, half->to);
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int fsck_is_crossing(struct fsck *fsck, uint64_t ino, bool *ret_crossing) {
    struct sought sought = {.ino = ino};
    int r = fsck_crossings(fsck, sought_see, &sought);

    *ret_crossing = sought.found;
    return r;
}

int fsck_inode_get(struct fsck *fsck, uint64_t ino, struct inode_row *ret_row) {
    struct kv_key key = key_inode((struct ino){ino});
    const struct inode_row *row;
    struct bytes value;

    int r = fsck_row_get(fsck, fsck_mdt_of(fsck, ino), FSCK_INODES, &key, &value);
    if (r == 0) {
        r = inode_row_check(value, &row);
    }
    if (r == 0) {
        *ret_row = *row;
    }
    return r;
}
