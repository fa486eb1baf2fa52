/* Staging through to kv, and the effects at commit. */
#include "meta/transaction.h"
#include "meta/effects.h"
#include "meta/group_internal.h"
#include <assert.h>

void transaction_begin(struct transaction *transaction, struct group *group, bool changes) {
    *transaction = (struct transaction){
        .group = group,
        .now_ns = (int64_t)group->wall_ns,
        .staging = changes,
    };
    if (changes) {
        transaction->epoch = numbers_epoch(&group->numbers, group->wall_ns);
        kv_begin(group->kv);
    }
}

uint64_t transaction_commit(struct transaction *transaction) {
    struct group *group = transaction->group;

    assert(transaction->staging);
    uint64_t position = kv_commit(group->kv);
    transaction->staging = false;
    /* Also of a run that staged nothing: its answer may name them. */
    numbers_used(&group->numbers, transaction->inos_used, transaction->generations_used);
    if (transaction->changed) {
        group->numbers.inode_count += (uint64_t)transaction->inode_delta;
        group->numbers.changed = true;
    }
    for (uint32_t i = 0; i < transaction->effect_count; i++) {
        effect_apply(transaction, &transaction->effects[i], position);
    }
    return position;
}

void transaction_abort(struct transaction *transaction) {
    if (transaction->staging) {
        kv_abort(transaction->group->kv);
        transaction->staging = false;
    }
}

int transaction_get(struct transaction *transaction, const struct kv_key *key,
                    struct bytes *ret_value) {
    return kv_get(transaction->group->kv, key, ret_value);
}

int transaction_next(struct transaction *transaction, struct kv_cursor *cursor,
                     struct bytes *ret_value) {
    return kv_next(transaction->group->kv, cursor, ret_value);
}

/* What staging answered. */
static int staged(struct transaction *transaction, int result) {
    transaction->changed = true;
    if (result == -ERR_NO_SPACE) {
        transaction->full = true;
    }
    return result;
}

int transaction_put(struct transaction *transaction, const struct kv_key *key, const void *row,
                    size_t size_bytes) {
    assert(transaction->staging);
    return staged(transaction,
                  kv_put(transaction->group->kv, key, (struct bytes){row, size_bytes}));
}

int transaction_patch(struct transaction *transaction, const struct kv_key *key, size_t offset,
                      struct bytes patch) {
    assert(transaction->staging);
    return staged(transaction, kv_patch(transaction->group->kv, key, offset, patch));
}

int transaction_delete(struct transaction *transaction, const struct kv_key *key) {
    assert(transaction->staging);
    return staged(transaction, kv_delete(transaction->group->kv, key));
}

int transaction_outcome(struct transaction *transaction, const struct kv_outcome *outcome) {
    assert(transaction->staging);
    return staged(transaction, kv_outcome_put(transaction->group->kv, outcome));
}

void transaction_effect(struct transaction *transaction, struct effect effect) {
    assert(transaction->effect_count < EFFECTS_MAX);
    transaction->effects[transaction->effect_count++] = effect;
}

int transaction_ino(struct transaction *transaction, struct slot slot, struct ino *ret_ino) {
    struct numbers *numbers = &transaction->group->numbers;
    uint64_t counter = 0;

    int r = numbers_ino(numbers, transaction->inos_used, &counter);
    if (r < 0) {
        group_sync_want(transaction->group, numbers->reserve_position);
        return r == -ERR_PENDING ? transaction_stall(transaction) : r;
    }
    transaction->inos_used++;
    *ret_ino = ino_make(slot, counter);
    return 0;
}

int transaction_generation(struct transaction *transaction, uint32_t *ret_generation) {
    struct numbers *numbers = &transaction->group->numbers;

    int r = numbers_generation(numbers, transaction->generations_used, ret_generation);
    if (r < 0) {
        group_sync_want(transaction->group, numbers->reserve_position);
        return r == -ERR_PENDING ? transaction_stall(transaction) : r;
    }
    transaction->generations_used++;
    return 0;
}
