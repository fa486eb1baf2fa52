/* Transactions: operations are written straight to the end of the open record, and applied to the
 * changes from there at commit. An abort moves the record's end back. */
#include "kv/kv_internal.h"
#include <assert.h>

void kv_begin(struct kv *kv) {
    assert(!kv->transaction.open);
    /* So that a transaction finds at least half of the longest record free. */
    if (kv->ring.open_bytes > kv->ring.record_bytes_max / 2) {
        (void)kv_seal(kv);
    }
    kv->transaction = (struct kv_transaction){
        .open = true,
        .record_bytes = kv->ring.open_bytes,
        .record_operations = kv->ring.open_operations,
    };
}

/* Makes sure of space in the record and, for rows, in the changes. */
static int stage_room(struct kv *kv, size_t bytes, size_t rows, size_t value_bytes) {
    struct kv_transaction *transaction = &kv->transaction;

    assert(transaction->open);
    if (kv->failed < 0) {
        return kv->failed;
    }
    if (ring_open_record(&kv->ring) < bytes) {
        return -ERR_NO_SPACE;
    }
    if (rows > 0 && changes_reserve(kv->changes, transaction->rows + rows,
                                    transaction->value_bytes + value_bytes) < 0) {
        return -ERR_NO_SPACE;
    }
    transaction->rows += rows;
    transaction->value_bytes += value_bytes;
    transaction->operations++;
    return 0;
}

int kv_put(struct kv *kv, const struct kv_key *key, struct bytes value) {
    if (value.size > KV_VALUE_BYTES_MAX) {
        return -ERR_INVALID;
    }
    int r = stage_room(kv, record_put_bytes(value.size), 1, value.size);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_put(ring_at_open(&kv->ring), key, value), 1);
    }
    return r;
}

int kv_patch(struct kv *kv, const struct kv_key *key, size_t offset, struct bytes patch) {
    if (offset > KV_VALUE_BYTES_MAX || patch.size > KV_VALUE_BYTES_MAX - offset) {
        return -ERR_INVALID;
    }
    /* The row may have to be copied up from below before it can be patched. */
    int r = stage_room(kv, record_patch_bytes(patch.size), 1, KV_VALUE_BYTES_MAX);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_patch(ring_at_open(&kv->ring), key, offset, patch),
                       1);
    }
    return r;
}

int kv_delete(struct kv *kv, const struct kv_key *key) {
    int r = stage_room(kv, record_delete_bytes(), 1, 0);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_delete(ring_at_open(&kv->ring), key), 1);
    }
    return r;
}

int kv_note(struct kv *kv, struct bytes note) {
    if (note.size > KV_NOTE_BYTES_MAX) {
        return -ERR_INVALID;
    }
    int r = stage_room(kv, record_note_bytes(note.size), 0, 0);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_note(ring_at_open(&kv->ring), note), 1);
    }
    return r;
}

int kv_outcome_put(struct kv *kv, const struct kv_outcome *outcome) {
    if (outcome->reply.size > KV_REPLY_BYTES_MAX || outcome->session.value == 0 ||
        outcome->sequence == 0) {
        return -ERR_INVALID;
    }
    if (!outcomes_has_room(kv->outcomes, outcome->session)) {
        return -ERR_BUSY;
    }
    /* A raised floor deletes the stored rows of what it passes; each takes a row of changes. */
    int r = stage_room(kv, record_outcome_bytes(outcome->reply.size), 4, 0);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_outcome(ring_at_open(&kv->ring), outcome), 1);
    }
    return r;
}

int kv_outcome_drop(struct kv *kv, struct session_id session) {
    int r = stage_room(kv, record_drop_bytes(), 4, 0);

    if (r == 0) {
        ring_grow_open(&kv->ring, record_write_drop(ring_at_open(&kv->ring), session), 1);
    }
    return r;
}

void kv_abort(struct kv *kv) {
    struct kv_transaction *transaction = &kv->transaction;

    assert(transaction->open);
    transaction->open = false;
    if (kv->ring.open_bytes > 0) {
        /* A record that this transaction opened stays open, and empty. */
        ring_shrink_open(&kv->ring, MAX(transaction->record_bytes, sizeof(struct log_record)),
                         transaction->record_operations);
    }
}

static struct bytes staged_operations(struct kv *kv) {
    size_t start = MAX(kv->transaction.record_bytes, sizeof(struct log_record));
    uint8_t *end = ring_at_open(&kv->ring);
    size_t size = kv->ring.open_bytes - start;

    return (struct bytes){end - size, size};
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

static void outcome_forgotten(void *context, struct session_id session, uint64_t sequence,
                              bool whole_session) {
    struct kv *kv = context;
    struct kv_key key = kv_outcome_key(session, whole_session ? 0 : sequence);

    /* A tombstone that finds no room leaves a row below the floor in the base: harmless, since the
     * floor refuses it; recovery drops it. */
    (void)!changes_delete(kv->changes, &key);
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
    return changes_put(kv->changes, &operation->key, (struct bytes){whole, size}, NULL);
}

int kv_apply(struct kv *kv, const struct record_operation *operation, bool may_fail) {
    int r = 0;

    switch (operation->kind) {
    case LOG_PUT:
        r = changes_put(kv->changes, &operation->key, operation->value, NULL);
        break;
    case LOG_DELETE:
        r = changes_delete(kv->changes, &operation->key);
        break;
    case LOG_PATCH:
        r = apply_patch(kv, operation);
        break;
    case LOG_OUTCOME:
        if (may_fail && !outcomes_has_room(kv->outcomes, operation->outcome.session)) {
            return -ERR_BUSY;
        }
        outcomes_put(kv->outcomes, &operation->outcome, outcome_forgotten, kv);
        break;
    case LOG_OUTCOME_DROP:
        outcomes_drop(kv->outcomes, operation->outcome.session, outcome_forgotten, kv);
        break;
    default:
        break;
    }
    return r;
}

uint64_t kv_commit(struct kv *kv) {
    assert(kv->transaction.open);
    if (kv->transaction.operations > 0) {
        struct bytes body = staged_operations(kv);
        struct record_operation operation;

        while (record_next(&body, &operation) == 0) {
            int r = kv_apply(kv, &operation, false);

            if (r < 0) {
                /* Room was reserved, so only a damaged base can be in the way of a patch: the
                 * record may not get into the ring. */
                kv_abort(kv);
                kv_fail(kv, "reading a row of base.mdb", r);
                return kv->ring.position;
            }
        }
    }
    kv->transaction.open = false;
    return kv->ring.position + 1;
}

uint64_t kv_seal(struct kv *kv) {
    assert(!kv->transaction.open);
    if (kv->ring.open_bytes > 0) {
        if (kv->ring.open_operations == 0 || kv->failed < 0) {
            kv->ring.open_bytes = 0;
        } else {
            kv->counters.records++;
            kv->counters.record_bytes += kv->ring.open_bytes;
            ring_seal(&kv->ring, kv->term, kv->synced);
        }
    }
    return kv->ring.position;
}
