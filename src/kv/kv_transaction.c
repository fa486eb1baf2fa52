/* Transactions: operations are written straight to the end of the open record, and applied to the
 * changes from there at commit. An abort moves the record's end back, and that of the data area. */
#include "kv/kv_internal.h"
#include <assert.h>

/* What is staged lies within what was granted. A row staged several times in a row is one. */
static int stage(struct kv *kv, size_t bytes, const struct kv_key *key) {
    struct kv_transaction *transaction = &kv->transaction;

    assert(transaction->open);
    if (kv->failed < 0) {
        return kv->failed;
    }
    transaction->staged_bytes += bytes;
    if (key && (transaction->rows == 0 || kv_key_compare(key, &transaction->last_key) != 0)) {
        transaction->rows++;
        transaction->last_key = *key;
    }
    assert(transaction->staged_bytes <= transaction->grant.need.record_bytes);
    assert(transaction->rows <= transaction->grant.need.rows);
    if (kv->ring.open_bytes == 0) {
        ring_open_record(&kv->ring);
    }
    return 0;
}

int kv_put(struct kv *kv, const struct kv_key *key, struct bytes value) {
    if (value.size > KV_VALUE_BYTES_MAX) {
        return -ERR_INVALID;
    }
    int r = stage(kv, record_put_bytes(value.size), key);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_put(ring_at_open(&kv->ring), key, value), 1);
    }
    return r;
}

int kv_patch(struct kv *kv, const struct kv_key *key, size_t offset, struct bytes patch) {
    if (offset > KV_VALUE_BYTES_MAX || patch.size > KV_VALUE_BYTES_MAX - offset) {
        return -ERR_INVALID;
    }
    int r = stage(kv, record_patch_bytes(patch.size), key);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_patch(ring_at_open(&kv->ring), key, offset, patch),
                       1);
    }
    return r;
}

int kv_delete(struct kv *kv, const struct kv_key *key) {
    int r = stage(kv, record_delete_bytes(), key);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_delete(ring_at_open(&kv->ring), key), 1);
    }
    return r;
}

int kv_note(struct kv *kv, struct bytes note) {
    if (note.size > KV_NOTE_BYTES_MAX) {
        return -ERR_INVALID;
    }
    int r = stage(kv, record_note_bytes(note.size), NULL);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_note(ring_at_open(&kv->ring), note), 1);
    }
    return r;
}

int kv_outcome_put(struct kv *kv, const struct kv_outcome *outcome) {
    const struct kv_need *need = &kv->transaction.grant.need;

    if (outcome->reply.size > KV_REPLY_BYTES_MAX || outcome->session.value == 0 ||
        (outcome->sequence == 0) != need->floors) {
        return -ERR_INVALID;
    }
    int r = stage(kv, 0, NULL);

    assert(need->session.value == outcome->session.value && !need->drops);
    assert(need->floor <= outcome->floor);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_outcome(ring_at_open(&kv->ring), outcome), 1);
    }
    return r;
}

int kv_outcome_drop(struct kv *kv, struct session_id session) {
    const struct kv_need *need = &kv->transaction.grant.need;
    int r = stage(kv, 0, NULL);

    assert(need->session.value == session.value && need->drops);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_drop(ring_at_open(&kv->ring), session), 1);
    }
    return r;
}

void kv_abort(struct kv *kv) {
    struct kv_transaction *transaction = &kv->transaction;

    assert(transaction->open);
    transaction->open = false;
    ring_shrink_open(&kv->ring, transaction->record_bytes, transaction->record_operations);
    kv->ring.data_head = transaction->data_head;
}

static struct bytes staged_operations(struct kv *kv) {
    size_t start = MAX(kv->transaction.record_bytes, sizeof(struct log_record));
    size_t size = kv->ring.open_bytes > 0 ? kv->ring.open_bytes - start : 0;

    return size > 0 ? (struct bytes){ring_at_open(&kv->ring) - size, size} : (struct bytes){0};
}

/* Patches a value in memory of capacity KV_VALUE_BYTES_MAX; answers its new size. */
static size_t patch_value(uint8_t *value, size_t size, const struct record_operation *operation) {
    size_t end = operation->offset + operation->value.size;

    if (end > size) {
        memset(value + size, 0, end - size);
        size = end;
    }
    memcpy(value + operation->offset, operation->value.data, operation->value.size);
    return size;
}

/* A row that this transaction has staged; -ERR_NOT_FOUND with *ret_staged false: ask below. */
static int staged_get(struct kv *kv, const struct kv_key *key, struct bytes *ret_value,
                      bool *ret_staged) {
    struct bytes body = staged_operations(kv);
    struct record_operation operation;
    struct bytes value = {0};
    bool present = false;
    bool scratched = false;

    *ret_staged = false;
    while (record_next(&body, &operation) == 0) {
        if (operation.kind > LOG_PATCH || kv_key_compare(&operation.key, key) != 0) {
            continue;
        }
        if (operation.kind != LOG_PATCH) {
            present = operation.kind == LOG_PUT;
            value = operation.value;
            scratched = false;
            *ret_staged = true;
            continue;
        }
        if (!*ret_staged) {
            int r = kv_read(kv, key, true, &value);

            if (r < 0 && r != -ERR_NOT_FOUND) {
                return r;
            }
            value.size = r < 0 ? 0 : value.size;
        }
        if (!scratched) {
            assert(kv->transaction.scratch_count < KV_SCRATCH_VALUES);
            uint8_t *scratch = kv->scratch[kv->transaction.scratch_count++];

            if (value.size > 0) {
                memcpy(scratch, value.data, value.size);
            }
            value.data = scratch;
            scratched = true;
        }
        value.size = patch_value((uint8_t *)(uintptr_t)value.data, value.size, &operation);
        present = true;
        *ret_staged = true;
    }
    if (present) {
        *ret_value = value;
    }
    return present ? 0 : -ERR_NOT_FOUND;
}

int kv_get(struct kv *kv, const struct kv_key *key, struct bytes *ret_value) {
    if (kv->failed < 0) {
        return kv->failed;
    }
    if (kv->transaction.open && kv->transaction.rows > 0) {
        bool staged;
        int r = staged_get(kv, key, ret_value, &staged);

        if (staged || (r < 0 && r != -ERR_NOT_FOUND)) {
            return r;
        }
    }
    return kv_read(kv, key, true, ret_value);
}

bool kv_outcome_row_delete(void *context, struct session_id session, uint64_t sequence) {
    struct kv *kv = context;
    struct kv_key key = kv_outcome_key(session, sequence);

    if (!kv_changes_have_room(kv, 1, 0, 0)) {
        return false;
    }
    return changes_delete(kv->changes, &key) == 0;
}

/* The room for this one was granted with the outcome. */
static bool granted_row_delete(void *context, struct session_id session, uint64_t sequence) {
    struct kv *kv = context;
    struct kv_key key = kv_outcome_key(session, sequence);

    return changes_delete(kv->changes, &key) == 0;
}

static int apply_patch(struct kv *kv, const struct record_operation *operation) {
    size_t end = operation->offset + operation->value.size;
    struct bytes value;
    enum changes_state state = changes_find(kv->changes, &operation->key, &value);

    if (state == CHANGES_PRESENT && end <= value.size) {
        memcpy((uint8_t *)(uintptr_t)value.data + operation->offset, operation->value.data,
               operation->value.size);
        return 0;
    }
    /* A row that is patched was read in this step, so it is in memory and nothing is waited for.
     * Only a replay may meet the disk here, and serves nobody yet. */
    uint8_t whole[KV_VALUE_BYTES_MAX];
    size_t size = 0;
    int r = kv_read(kv, &operation->key, false, &value);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    if (r == 0) {
        size = MIN(value.size, sizeof whole);
        memcpy(whole, value.data, size);
    }
    size = patch_value(whole, size, operation);
    kv->transaction.value_bytes += size;
    return changes_put(kv->changes, &operation->key, (struct bytes){whole, size}, NULL);
}

int kv_apply(struct kv *kv, const struct record_operation *operation) {
    int r = 0;

    switch (operation->kind) {
    case LOG_PUT:
        kv->transaction.value_bytes += operation->value.size;
        r = changes_put(kv->changes, &operation->key, operation->value, NULL);
        break;
    case LOG_DELETE:
        r = changes_delete(kv->changes, &operation->key);
        break;
    case LOG_PATCH:
        r = apply_patch(kv, operation);
        break;
    case LOG_OUTCOME:
        outcomes_put(kv->outcomes, &operation->outcome, granted_row_delete, kv);
        break;
    case LOG_OUTCOME_DROP:
        outcomes_drop(kv->outcomes, operation->outcome.session);
        break;
    default:
        break;
    }
    return r;
}

/* Room was set aside, so only a damaged base can be in the way of a patch: then the record may not
 * get into the ring. */
uint64_t kv_commit(struct kv *kv) {
    struct bytes body = staged_operations(kv);
    struct record_operation operation;
    int r = 0;

    assert(kv->transaction.open);
    while (r == 0 && record_next(&body, &operation) == 0) {
        r = kv_apply(kv, &operation);
    }
    if (r < 0) {
        kv_abort(kv);
        kv_fail(kv, "reading a row of base.mdb", r);
        return kv->ring.position;
    }
    assert(kv->transaction.value_bytes <= kv->transaction.grant.need.value_bytes);
    kv->transaction.open = false;
    kv->grant_number++;
    return kv->ring.position + 1;
}

uint64_t kv_seal(struct kv *kv) {
    assert(!kv->transaction.open);
    if (kv->ring.open_bytes > 0) {
        kv->grant_number++;
        kv_seal_open(kv);
    }
    return kv->ring.position;
}

void kv_seal_open(struct kv *kv) {
    struct ring *ring = &kv->ring;

    if (kv->failed < 0) {
        ring_shrink_open(ring, 0, 0);
    } else if (ring->open_bytes > 0) {
        kv->counters.records++;
        kv->counters.record_bytes += ring->open_bytes;
        ring_seal(ring, kv->term, kv->synced);
    }
}
