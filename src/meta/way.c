/* The contract is in way.h. */
#include "meta/way.h"
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/inode.h"

/* Parents come from disk, where they may lead round in a circle. Brent's search ends the way once
 * it has gone round: it compares each inode with one on the way that it has kept, and keeps another
 * after 1, 2, 4, ... steps, so that it sooner or later keeps one of the circle for long enough. By
 * then it has met all of the circle, so an ancestor that lies on it has been found. */
int way_walk(struct transaction *transaction, struct ino *at, struct ino ancestor, uint32_t *left,
             bool *ret_within) {
    bool is_asked = transaction->call->header.opcode == OP_CROSS_LOOK;
    struct ino directory = *at;
    struct ino kept = directory;
    uint64_t step_count = 0;
    uint64_t step_limit = 1;

    *ret_within = false;
    for (;; --*left) {
        const struct inode_row *row;

        *at = directory;
        if (directory.value == ancestor.value) {
            *ret_within = true;
            return 0;
        }
        if (directory.value == INO_ROOT.value || crossing_is_elsewhere(transaction, directory)) {
            return 0;
        }
        if (*left == 0) {
            return is_asked ? 0 : -ERR_NAME_TOO_LONG; /* Who asks goes on from there. */
        }
        int r = stakes_meet(transaction, stake_of(STAKE_MOVED, directory), STAKE_READ);
        r = r < 0 ? r : inode_get(transaction, directory, &row);
        if (r == -ERR_STALE && is_asked) {
            return -ERR_CHANGED; /* Who asks has begun from what is gone since. */
        }
        if (r == -ERR_STALE) {
            return transaction_damage(transaction, directory,
                                      "directories lie within what is gone");
        }
        if (r < 0) {
            return r;
        }
        directory.value = row->parent;
        if (directory.value == kept.value) {
            return transaction_damage(transaction, directory,
                                      "the chain of its parents is a circle");
        }
        if (++step_count == step_limit) {
            kept = directory;
            step_count = 0;
            step_limit *= 2;
        }
    }
}

/* What others have answered is remembered, so a circle over several groups leads from one of their
 * answers to the next for ever, also one that never was: their answers are of different moments.
 * Which of the two it is shows when all of them are asked again (crossing_confirm). */
int way_is_within(struct transaction *transaction, struct ino directory, struct ino ancestor,
                  bool *ret_within) {
    uint32_t left = WAY_LEVELS_MAX; /* of all parts of it that are here */
    struct ino kept = {0};
    uint64_t step_count = 0;
    uint64_t step_limit = 1;

    for (;;) {
        const struct look_answer *answer;
        int r = way_walk(transaction, &directory, ancestor, &left, ret_within);

        if (r < 0 || *ret_within || directory.value == INO_ROOT.value) {
            return r;
        }
        if (directory.value == kept.value) {
            return transaction_damage(transaction, directory,
                                      "the chain of its parents is a circle");
        }
        r = crossing_look(transaction, &(struct look_what){LOOK_WAY, directory, ancestor, {0}},
                          &answer);
        if (r < 0) {
            return r == -ERR_LOOP ? -ERR_NAME_TOO_LONG : r;
        }
        if (++step_count == step_limit) {
            kept = directory;
            step_count = 0;
            step_limit *= 2;
        }
        *ret_within = answer->within;
        directory.value = answer->next;
        if (answer->within || directory.value == INO_ROOT.value) {
            return 0;
        }
    }
}
