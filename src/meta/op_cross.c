/* What other groups ask of this one for their transactions: look, prepare, commit, abort; and what
 * it tells of its own: ask. Of a group that is lost for good nothing is taken any more: its
 * participants ask one another (promise_lost.c). See docs/internals/halves.md. */
#include "base/endian.h"
#include "meta/directory.h"
#include "meta/count.h"
#include "meta/group_internal.h"
#include "meta/half.h"
#include "meta/inode.h"
#include "meta/operations.h"
#include "meta/promise_internal.h"
#include "meta/way.h"
#include <stdlib.h>
#include <string.h>

/* Nothing but a link, which tells the file's attributes, relies on a size: all else is answered
 * with the one that the row has, whichever storage targets are away. */
static int look_inode(struct transaction *transaction, struct ino ino, bool any_size,
                      struct look_answer *ret_answer) {
    const struct partition_row *partition;
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? 0 : r;
    }
    ret_answer->has_inode = 1;
    ret_answer->inode = *row;
    /* The size is asked for here, where one is told; and an older group knows no counts that are
     * sure, nor any above 16 TiB, nor chunks that may be given back. */
    ret_answer->inode.flags &= (uint16_t)~(INODE_UNTOLD | INODE_COUNTED | INODE_UNTOUCHED);
    if (row->blocks_high > 0) {
        ret_answer->inode.blocks_high = 0;
        ret_answer->inode.blocks_low = UINT32_MAX;
    }
    if (!mode_is_directory(row->mode)) {
        return any_size ? 0 : inode_size_known(transaction, ino, row);
    }
    r = directory_get(transaction, ino, &partition);
    if (r == 0) {
        ret_answer->has_partition = 1;
        ret_answer->partition = *partition;
    }
    return r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY ? -ERR_CORRUPT : r;
}

static int look_name(struct transaction *transaction, struct ino directory, struct bytes name,
                     struct look_answer *ret_answer) {
    struct dentry dentry;

    int r = name_check(name);
    r = r < 0 ? r : look_inode(transaction, directory, true, ret_answer);
    if (r < 0 || !ret_answer->has_partition) {
        return r;
    }
    r = dentry_find(transaction, directory, name, &dentry);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    ret_answer->has_name = r == 0;
    ret_answer->name_ino = dentry.ino.value;
    ret_answer->name_epoch = dentry.epoch;
    ret_answer->type = dentry.type;
    ret_answer->index = dentry.index;
    return 0;
}

static int look_way(struct transaction *transaction, const struct cross_look_request *request,
                    struct look_answer *ret_answer) {
    struct ino at = request->ino;
    bool within = false;

    uint32_t left = WAY_LEVELS_MAX;
    int r = way_walk(transaction, &at, (struct ino){request->ancestor}, &left, &within);
    ret_answer->within = within;
    ret_answer->next = at.value;
    return r;
}

/* Who asks for a turn has a place in the line also where it meets a move that is on its way: that
 * one may be followed by others for ever. */
static int look_count(struct transaction *transaction, struct call *call,
                      struct look_answer *ret_answer) {
    const struct cross_look_request *request = &call->request.cross_look;
    struct turn_id id = {request->coordinator, request->term, request->turn};
    uint64_t *left_ns = &call->reply.cross_look.turn_left_ns;
    uint64_t moves = 0;

    if (request->turn != 0 && group_log_is_lost(transaction->group, id.log)) {
        return -ERR_TARGET_LOST; /* Its moves are prepared nowhere any more. */
    }
    int r = count_get(transaction, &moves);
    if (request->turn == 0) {
        *left_ns = turns_left_ns(transaction->group, id);
    } else if (r == 0 || r == -ERR_CHANGED) {
        struct stake_what count = stake_of(STAKE_COUNT, (struct ino){0});

        *left_ns =
            turns_ask(transaction->group, id, stakes_meet(transaction, count, STAKE_CHANGE) == 0);
    }
    ret_answer->count = moves;
    return r;
}

int op_cross_look(struct transaction *transaction, struct call *call) {
    const struct cross_look_request *request = &call->request.cross_look;
    struct look_answer answer = {.format = META_FORMAT};
    int r;

    switch (request->what) {
    case LOOK_INODE:
        r = look_inode(transaction, request->ino, request->any_size != 0, &answer);
        break;
    case LOOK_NAME:
        r = look_name(transaction, request->ino, request->name, &answer);
        break;
    case LOOK_WAY:
        r = look_way(transaction, request, &answer);
        break;
    case LOOK_COUNT:
        r = look_count(transaction, call, &answer);
        break;
    default:
        r = -ERR_INVALID;
    }
    if (r == 0 && call->bulk_in.capacity < sizeof answer) {
        r = -ERR_TOO_SMALL;
    }
    if (r == 0) {
        memcpy(call->bulk_in.data, &answer, sizeof answer);
        call->bulk_in.size = sizeof answer;
    }
    return r;
}

static struct kv_key key_transaction(const struct cross_id *id) {
    return key_owner(ROW_TRANSACTION, id->log, (uint32_t)id->term, id->number);
}

static int row_stage(struct transaction *transaction, const struct promise *promise,
                     enum transaction_state state) {
    uint8_t value[sizeof(struct transaction_row) + sizeof promise->participants + HALVES_BYTES_MAX];
    size_t halves = state == TRANSACTION_PREPARED ? promise->halves_bytes : 0;
    struct transaction_row row = {.format = META_FORMAT,
                                  .state = (uint8_t)state,
                                  .halves_bytes = (uint16_t)halves,
                                  .log_count =
                                      (uint8_t)(promise->participants_bytes / sizeof(uint64_t)),
                                  .epoch = transaction->epoch};
    struct kv_key key = key_transaction(&promise->id);

    memcpy(value, &row, sizeof row);
    memcpy(value + sizeof row, promise->participants, promise->participants_bytes);
    memcpy(value + sizeof row + promise->participants_bytes, promise->halves, halves);
    return transaction_put(transaction, &key, value,
                           sizeof row + promise->participants_bytes + halves);
}

/* Into the spare one: the request's halves, with the number that is drawn. */
static int halves_check(struct transaction *transaction, struct promise *promise,
                        struct call *call) {
    struct bytes halves = {promise->halves, promise->halves_bytes};
    const struct half *half;
    uint32_t count = 0;

    while (halves.size > 0) {
        int r = half_next(&halves, &half);

        if (r < 0 || ++count > HALVES_MAX) {
            return -ERR_MALFORMED;
        }
        struct half *own = (struct half *)(uintptr_t)half;
        r = half_check(transaction, own);
        if (r < 0) {
            return r;
        }
        call->reply.cross_prepare.made.value =
            half->kind == HALF_MAKE ? half->ino : call->reply.cross_prepare.made.value;
    }
    return count > 0 ? 0 : -ERR_MALFORMED;
}

static int prepare_new(struct transaction *transaction, const struct cross_id *id,
                       struct call *call) {
    const struct cross_prepare_request *request = &call->request.cross_prepare;
    struct promises *promises = &transaction->group->promises;

    if (!promises_have_room(transaction->group, id->log)) {
        return -ERR_CHANGED;
    }
    if (!promises->spare) {
        promises->spare = calloc(1, sizeof *promises->spare);
    }
    struct promise *promise = promises->spare;
    if (!promise) {
        return -ERR_NO_MEMORY;
    }
    memset(promise, 0, sizeof *promise);
    promise->id = *id;
    promise->turn = request->turn;
    promise->participants_bytes = (uint8_t)request->participants.size;
    memcpy(promise->participants, request->participants.data, request->participants.size);
    promise->halves_bytes = (uint16_t)request->halves.size;
    memcpy(promise->halves, request->halves.data, request->halves.size);
    int r = halves_check(transaction, promise, call);
    r = r < 0 ? r : row_stage(transaction, promise, TRANSACTION_PREPARED);
    if (r == 0) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_PROMISED});
        transaction->after_sync = true;
    }
    return r;
}

int op_cross_prepare(struct transaction *transaction, struct call *call) {
    const struct cross_prepare_request *request = &call->request.cross_prepare;
    struct cross_id id = {request->coordinator, request->term, request->number};
    const struct promise *promise;

    if (request->participants.size % sizeof(uint64_t) != 0 || request->participants.size == 0 ||
        request->participants.size > sizeof promise->participants || request->halves.size == 0 ||
        request->halves.size > HALVES_BYTES_MAX) {
        return -ERR_MALFORMED;
    }
    if (group_log_is_lost(transaction->group, id.log)) {
        return -ERR_TARGET_LOST;
    }
    if (!promises_below(transaction->group, &id, request->below_term, request->below_number)) {
        return -ERR_CHANGED; /* It has ended: a late copy. */
    }
    promise = promise_find(&transaction->group->promises, &id);
    if (!promise && !promises_past(&transaction->group->promises, &id)) {
        return prepare_new(transaction, &id, call);
    }
    if (!promise || promise->committed) {
        return -ERR_CHANGED;
    }
    call->reply.cross_prepare.made = promise->made;
    transaction->sync_position = promise->position;
    return 0;
}

int promise_keep(struct transaction *transaction, struct promise *promise) {
    struct bytes halves = {promise->halves, promise->halves_bytes};
    const struct half *half;
    int r = 0;

    transaction->promise = promise;
    while (r == 0 && halves.size > 0) {
        r = half_next(&halves, &half);
        r = r < 0 ? r : half_apply(transaction, half);
    }
    r = r < 0 ? r : row_stage(transaction, promise, TRANSACTION_COMMITTED);
    if (r == 0) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_KEPT});
    }
    return r;
}

int op_cross_commit(struct transaction *transaction, struct call *call) {
    const struct cross_commit_request *request = &call->request.cross_commit;
    struct cross_id id = {request->coordinator, request->term, request->number};
    struct promise *promise;

    if (group_log_is_lost(transaction->group, id.log)) {
        return -ERR_TARGET_LOST; /* The others may have been told that it is not done here. */
    }
    (void)promises_below(transaction->group, &id, request->below_term, request->below_number);
    promise = promise_find(&transaction->group->promises, &id);
    transaction->at_sync = true; /* Also of a second one: the first may not be on disk yet. */
    if (!promise || promise->committed) {
        return 0;
    }
    transaction->now_ns = request->decided_ns;
    return promise_keep(transaction, promise);
}

int op_cross_abort(struct transaction *transaction, struct call *call) {
    const struct cross_abort_request *request = &call->request.cross_abort;
    struct cross_id id = {request->coordinator, request->term, request->number};
    struct kv_key key = key_transaction(&id);
    struct promise *promise;

    if (group_log_is_lost(transaction->group, id.log)) {
        return -ERR_TARGET_LOST;
    }
    (void)promises_below(transaction->group, &id, request->below_term, request->below_number);
    turns_end(transaction->group, (struct turn_id){id.log, id.term, request->turn});
    promise = promise_find(&transaction->group->promises, &id);
    if (!promise || promise->committed) {
        return 0;
    }
    transaction->promise = promise;
    transaction_effect(transaction, (struct effect){.kind = EFFECT_DROPPED});
    return transaction_delete(transaction, &key);
}

int op_cross_ask(struct transaction *transaction, struct call *call) {
    const struct cross_ask_request *request = &call->request.cross_ask;

    call->reply.cross_ask.state =
        crossings_state(transaction->group, request->term, request->number);
    return 0;
}
