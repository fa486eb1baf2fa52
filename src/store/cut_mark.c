/* Marks of truncated files: what a chunk's head says of truncations, said for chunks without one.
 *
 * A cut of a chunk to nothing removes its head. A write from before the truncation that comes late
 * would find no chunk, and make one: nobody would see it, until a later truncation to a larger size
 * took its bytes for older than itself, and so for good. */
#include "store/operations.h"

static const struct kv_need mark_need = {.rows = 1,
                                         .value_bytes = sizeof(struct store_mark),
                                         .record_bytes =
                                             KV_ROW_RECORD_BYTES + sizeof(struct store_mark)};

static struct kv_key mark_key(const struct chunk_id *id) {
    return store_owner_key(STORE_ROW_MARK, id->ino.value, id->generation);
}

int cut_mark_get(struct ost *ost, const struct chunk_id *id, uint32_t *ret_truncate_seq) {
    struct kv_key key = mark_key(id);
    struct store_mark mark = {0};
    struct bytes value;
    int r = kv_get(ost->kv, &key, &value);

    if (r == 0 && value.size != sizeof mark) {
        return -ERR_CORRUPT;
    }
    if (r == 0) {
        memcpy(&mark, value.data, sizeof mark);
    }
    if (r == 0 || r == -ERR_NOT_FOUND) {
        *ret_truncate_seq = mark.truncate_seq;
        r = 0;
    }
    return r;
}

/* One transaction of its own: puts the row, or deletes it. */
static int mark_record(struct ost *ost, struct request *request, const struct chunk_id *id,
                       const struct store_mark *mark) {
    struct kv_key key = mark_key(id);

    int r = request_begin(ost, request, &mark_need);
    if (r != 0) {
        return r;
    }
    r = mark ? kv_put(ost->kv, &key, (struct bytes){(const uint8_t *)mark, sizeof *mark})
             : kv_delete(ost->kv, &key);
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    (void)kv_commit(ost->kv);
    return 0;
}

int cut_mark_raise(struct ost *ost, struct request *request, const struct chunk_id *id,
                   uint32_t truncate_seq) {
    const struct store_mark mark = {.format = STORE_FORMAT, .truncate_seq = truncate_seq};
    uint32_t known;
    int r = cut_mark_get(ost, id, &known);

    return r < 0 || known >= truncate_seq ? r : mark_record(ost, request, id, &mark);
}

int cut_mark_drop(struct ost *ost, struct request *request, const struct chunk_id *id) {
    uint32_t known;
    int r = cut_mark_get(ost, id, &known);

    return r < 0 || known == 0 ? r : mark_record(ost, request, id, NULL);
}
