/* The contract is in count.h. */
#include "meta/count.h"
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/half.h"

int count_get(struct transaction *transaction, uint64_t *ret_moves) {
    struct kv_key key = key_owner(ROW_COUNT, 0, 0, 0);
    const struct count_row *row;
    struct bytes value;

    int r = stakes_meet(transaction, stake_of(STAKE_COUNT, (struct ino){0}), STAKE_READ);
    r = r < 0 ? r : transaction_get(transaction, &key, &value);
    *ret_moves = 0;
    if (r == -ERR_NOT_FOUND) {
        return 0;
    }
    r = r < 0 ? r : count_row_check(value, &row);
    if (r == 0) {
        *ret_moves = row->moves;
    }
    return r;
}

int count_put(struct transaction *transaction, uint64_t moves) {
    struct kv_key key = key_owner(ROW_COUNT, 0, 0, 0);
    struct count_row row = {.format = META_FORMAT, .epoch = transaction->epoch, .moves = moves};

    return transaction_put(transaction, &key, &row, sizeof row);
}

int count_raise(struct transaction *transaction) {
    struct half half = {.format = META_FORMAT, .kind = HALF_COUNT};
    const struct look_answer *answer;
    uint64_t moves = 0;
    int r;

    if (slots_has_all(&transaction->group->slots)) {
        return 0;
    }
    if (!crossing_is_elsewhere(transaction, INO_ROOT)) {
        r = count_get(transaction, &moves);
        transaction->moves = moves;
        r = r < 0 ? r : crossing_turn_check(transaction);
        r = r < 0 ? r : crossing_moves_check(transaction);
        return r < 0 ? r : count_put(transaction, moves + 1);
    }
    r = crossing_look(transaction, &(struct look_what){LOOK_COUNT, INO_ROOT, {0}, {0}}, &answer);
    if (r < 0) {
        return r;
    }
    half.from = answer->count;
    return crossing_half(transaction, crossing_log(transaction, INO_ROOT), &half,
                         (struct bytes){NULL, 0});
}
