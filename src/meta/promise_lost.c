/* Promises and marks whose coordinator is lost for good: the participants ask one another, as the
 * prepare has named them all.
 *
 *     prepared: each other one that is not lost --it has done it--> it is done here, too
 *                         '-- none of them has --> it is given up
 *     a mark:   each other one has done it, or has nothing of it --> it goes
 *
 * Who is asked answers once his own map names the coordinator lost, and takes nothing of that log
 * from then on; that he has done it he says when it is on disk. So the first one that does it
 * behind an answer of his would have had it from one who had done it before his own answer, and who
 * would have said so: all do the same. Nobody needs them all: one that is lost is not asked. */
#include "base/bug.h"
#include "base/endian.h"
#include "layout/map_lost.h"
#include "meta/group_internal.h"
#include "meta/half.h"
#include "meta/operations.h"
#include "meta/promise_internal.h"
#include <assert.h>

bool promises_log_is_lost(const struct group *group, uint64_t log) {
    return cluster_map_log_is_lost(group->map, (struct log_id){log});
}

void promises_map_read(struct group *group) {
    struct promises *promises = &group->promises;

    for (uint32_t i = 0; i < promises->source_count; i++) {
        struct promise_source *source = &promises->sources[i];

        source->is_lost = promises_log_is_lost(group, source->log);
    }
}

/* The next one that is to be asked; 0: all have answered that matter. */
static struct log_id next_other(const struct group *group, struct promise *promise) {
    for (; (promise->others_asked + 1U) * sizeof(uint64_t) <= promise->participants_bytes;
         promise->others_asked++) {
        uint64_t log = load_le64(promise->participants + promise->others_asked * sizeof(uint64_t));

        if (log != kv_log_id(group->kv).value && !promises_log_is_lost(group, log)) {
            return (struct log_id){log};
        }
    }
    return (struct log_id){0};
}

/* Of one that is prepared nobody has done it; of a mark nobody needs it. */
static void all_asked(struct group *group, struct promise *promise) {
    group->counters.totals.promises_lost_gone += !promise->committed;
    promise_mark_asked(promise);
    promise_is_over(promise);
}

static void other_answered(struct call *call) {
    struct promise *promise = call->context;
    uint8_t state = call->reply.cross_fate.state;

    if (promise_answered(promise) && call->result == 0) {
        if (!promise->committed && state == CROSS_COMMITTED) {
            list_remove(&promise->node);
            list_push_back(&promise->promises->to_keep, &promise->node);
        } else if (!promise->committed || state != CROSS_UNDECIDED) {
            promise->others_asked++;
            promise->wanted = true;
            promise->asked_ns = 0;
        }
    }
}

void promise_others_ask(struct group *group, struct promise *promise) {
    struct log_id other = next_other(group, promise);
    struct call *call = &promise->call;

    if (other.value == 0 || BUG(LOST_ALONE)) {
        all_asked(group, promise);
        return;
    }
    call->header.opcode = OP_CROSS_FATE;
    call->request.cross_fate = (struct cross_fate_request){
        .coordinator = promise->id.log, .term = promise->id.term, .number = promise->id.number};
    promise_ask(group, promise, other, other_answered);
}

int op_cross_fate(struct transaction *transaction, struct call *call) {
    const struct cross_fate_request *request = &call->request.cross_fate;
    struct cross_id id = {request->coordinator, request->term, request->number};
    struct group *group = transaction->group;

    if (!promises_log_is_lost(group, id.log)) {
        return -ERR_BUSY; /* The map that says so is on its way. */
    }
    const struct promise *promise = promise_find(&group->promises, &id);
    bool done = promise && promise->committed;
    call->reply.cross_fate.state = done      ? CROSS_COMMITTED
                                   : promise ? CROSS_UNDECIDED
                                             : CROSS_ABORTED;
    transaction->at_sync = done;
    return 0;
}

/* As a commit does it, at this moment: only the coordinator knew the decision's. False: there is no
 * room for it now, or a row is on its way. */
static bool keep(struct group *group, struct promise *promise) {
    const struct operation *operation = operation_of(OP_CROSS_COMMIT);
    const struct kv_need need = {.rows = operation->rows, .record_bytes = operation->record_bytes};
    struct transaction transaction;

    int r = transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need);
    if (r == -ERR_NO_SPACE) {
        r = transaction_begin(&transaction, group, KV_CLASS_FREEING, &need);
    }
    if (r < 0) {
        return false;
    }
    promise->call.header.opcode = OP_CROSS_COMMIT;
    transaction.call = &promise->call;
    if (promise_keep(&transaction, promise) < 0) {
        transaction_abort(&transaction);
        return false;
    }
    (void)transaction_commit(&transaction);
    group->counters.totals.promises_lost_kept++;
    return true;
}

void promises_lost_step(struct group *group) {
    struct list_node *node;

    while ((node = list_first(&group->promises.to_keep)) &&
           keep(group, CONTAINER_OF(node, struct promise, node))) {
    }
}
