/* Staging through to kv, and the effects at commit. */
#include "meta/transaction.h"
#include "meta/effects.h"
#include "meta/group_internal.h"
#include <assert.h>
#include <string.h>

void transaction_begin_read(struct transaction *transaction, struct group *group) {
    /* All but the effects, of which there are none. */
    memset(transaction, 0, offsetof(struct transaction, effects));
    transaction->group = group;
    transaction->now_ns = (int64_t)group->wall_ns;
}

int transaction_begin(struct transaction *transaction, struct group *group,
                      enum kv_class message_class, const struct kv_need *need) {
    /* What is put stands in the record; what is patched are rows of fixed size, and inline data. */
    const struct kv_need whole = {.rows = need->rows + NUMBERS_ROWS,
                                  .value_bytes = need->value_bytes + need->record_bytes +
                                                 need->rows * ROW_BYTES_MAX + NUMBERS_RECORD_BYTES,
                                  .record_bytes = need->record_bytes + NUMBERS_RECORD_BYTES,
                                  .drops = need->drops,
                                  .floors = need->floors,
                                  .session = need->session,
                                  .floor = need->floor,
                                  .window = need->window};
    struct kv_grant grant;
    int r = kv_admit(group->kv, message_class, &whole, &grant);

    /* A record is sealed with the row of numbers only, which tells what all in it has used. */
    if (r == 0 && kv_must_seal(group->kv, &whole)) {
        group_seal(group);
        r = kv_admit(group->kv, message_class, &whole, &grant);
    }
    transaction_begin_read(transaction, group);
    if (r == 0) {
        transaction->staging = true;
        transaction->epoch = numbers_epoch(&group->numbers, group->wall_ns);
        kv_begin(group->kv, &grant);
    }
    return r;
}

static void effects_apply(struct transaction *transaction, uint64_t position) {
    for (uint32_t i = 0; i < transaction->effect_count; i++) {
        effect_apply(transaction, &transaction->effects[i], position);
    }
}

void transaction_end_read(struct transaction *transaction) {
    assert(!transaction->staging);
    effects_apply(transaction, 0);
}

uint64_t transaction_commit(struct transaction *transaction) {
    struct group *group = transaction->group;

    assert(transaction->staging);
    assert(transaction->epoch == group->numbers.epoch);
    uint64_t next = kv_position(group->kv) + 1;
    uint64_t position = kv_commit(group->kv);
    /* Orders and truncations name the record that they stand in. */
    assert(position == next || !transaction->changed);
    (void)next;
    transaction->staging = false;
    /* Also of a run that staged nothing: its answer may name them. */
    numbers_used(&group->numbers, transaction->inos_used, transaction->generations_used);
    if (transaction->changed) {
        numbers_count(&group->numbers, transaction->inode_delta, transaction->directory_delta);
        group->numbers.changed = true;
    }
    effects_apply(transaction, position);
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

/* What walk_kept says. */
enum { WALK_IS_NOT_KEPT, WALK_AT_KEY, WALK_BEHIND_KEY, WALK_GOES_ON };

void transaction_walk_keep(struct call *call, const struct kv_cursor *cursor) {
    static_assert(sizeof call->walk_key == KV_KEY_BYTES, "a key is kept");
    memcpy(call->walk_key, cursor->key.bytes, KV_KEY_BYTES);
    call->walk_kept = cursor->inclusive ? WALK_AT_KEY : WALK_BEHIND_KEY;
}

void transaction_walk_resume(const struct call *call, struct kv_cursor *cursor) {
    if (call->walk_kept != WALK_IS_NOT_KEPT) {
        memcpy(cursor->key.bytes, call->walk_key, KV_KEY_BYTES);
        cursor->inclusive = call->walk_kept == WALK_AT_KEY;
    }
}

int transaction_walk_yield(struct transaction *transaction, const struct kv_cursor *cursor) {
    assert(!cursor->inclusive);
    transaction_walk_keep(transaction->call, cursor);
    transaction->call->walk_kept = WALK_GOES_ON;
    transaction->yields = true;
    return -ERR_PENDING;
}

bool transaction_walk_goes_on(const struct call *call) {
    return call->walk_kept == WALK_GOES_ON;
}

static int touch(struct transaction *transaction, const struct kv_key *key) {
    assert(transaction->staging);
    transaction->changed = true;
    return stakes_touch(transaction, key);
}

int transaction_put(struct transaction *transaction, const struct kv_key *key, const void *row,
                    size_t size_bytes) {
    int r = touch(transaction, key);

    return r < 0 ? r : kv_put(transaction->group->kv, key, (struct bytes){row, size_bytes});
}

int transaction_patch(struct transaction *transaction, const struct kv_key *key, size_t offset,
                      struct bytes patch) {
    int r = touch(transaction, key);

    return r < 0 ? r : kv_patch(transaction->group->kv, key, offset, patch);
}

int transaction_delete(struct transaction *transaction, const struct kv_key *key) {
    int r = touch(transaction, key);

    return r < 0 ? r : kv_delete(transaction->group->kv, key);
}

int transaction_outcome(struct transaction *transaction, const struct kv_outcome *outcome) {
    assert(transaction->staging);
    transaction->changed = true;
    return kv_outcome_put(transaction->group->kv, outcome);
}

void transaction_effect(struct transaction *transaction, struct effect effect) {
    /* It takes effect at a commit, or is lost. */
    assert(transaction->staging || (effect.kind == EFFECT_OPEN && effect.name != 0));
    assert(transaction->effect_count < EFFECTS_MAX);
    transaction->effects[transaction->effect_count++] = effect;
}

int transaction_ino(struct transaction *transaction, struct slot slot, struct ino *ret_ino) {
    struct numbers *numbers = &transaction->group->numbers;
    uint64_t counter = 0;

    assert(transaction->staging);
    if (!slots_is_opened(&transaction->group->slots, slot)) {
        return -ERR_CORRUPT; /* It has a directory, and the row that opened it is damaged. */
    }
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

    assert(transaction->staging);
    int r = numbers_generation(numbers, transaction->generations_used, ret_generation);
    if (r < 0) {
        group_sync_want(transaction->group, numbers->reserve_position);
        return r == -ERR_PENDING ? transaction_stall(transaction) : r;
    }
    transaction->generations_used++;
    return 0;
}
