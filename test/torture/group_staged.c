/* What a transaction of a group reads of what it has staged itself. */
#include "group_internal.h"
#include "kv/kv_internal.h"

/* One of so many operations is looked at: each takes one of the engine's places for such values. */
enum { LOOKED_OF = 4 };

/* The row as the operation leaves it; old: as it was, of no bytes where there was none. */
static struct bytes row_after(const struct model_operation *operation, struct bytes old,
                              uint8_t row[KV_VALUE_BYTES_MAX + 8]) {
    size_t end = operation->offset + operation->size;
    size_t size = operation->kind == MODEL_PATCH ? MAX(end, old.size) : operation->size;

    memset(row, 0, size);
    if (operation->kind == MODEL_PATCH && old.size > 0) {
        memcpy(row, old.data, old.size);
    }
    model_fill(operation->key, operation->stamp, row + operation->offset, operation->size);
    return (struct bytes){row, size};
}

void group_check_staged(struct group *group, const struct model_operation *operation,
                        struct bytes old) {
    struct kv *kv = group->owner.kv;
    uint8_t row[KV_VALUE_BYTES_MAX + 8];
    struct kv_key key = model_key(operation->key);
    struct bytes want = {0}, value = {0};

    if (operation->stamp % LOOKED_OF != 0 ||
        kv->transaction.scratch_count + 2 >= KV_SCRATCH_VALUES) {
        return;
    }
    bool deleted = operation->kind == MODEL_DELETE;
    if (!deleted) {
        want = row_after(operation, old, row);
    }
    int r = kv_get(kv, &key, &value);
    if (r == -ERR_PENDING || kv_failure(kv) < 0) {
        return;
    }
    MUST(r == (deleted ? -ERR_NOT_FOUND : 0) && value.size == want.size &&
             (want.size == 0 || memcmp(value.data, want.data, want.size) == 0),
         "key %u reads other than its transaction has staged: %s", operation->key, err_name(r));
}

void group_stage_nothing(struct group *group) {
    struct kv *kv = group->owner.kv;
    const struct kv_need need = {0};
    struct kv_grant grant;

    if (kv_failure(kv) < 0 || kv_admit(kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    size_t bytes = kv->ring.open_bytes;
    kv_begin(kv, &grant);
    (void)kv_commit(kv);
    MUST(kv->ring.open_bytes == bytes, "a transaction of nothing takes %zu bytes of a record",
         kv->ring.open_bytes - bytes);
}
