/* Promises and marks whose coordinator is lost for good: the participants ask one another, as the
 * prepare has named them all.
 *
 *     prepared: each other one that is not lost --it has done it--> it is done here, too
 *                         '-- none of them has --> it is given up
 *     a mark:   each other one has done it, or has nothing of it --> it goes
 *
 * Who is asked answers once his own map names as many lost as who asks knows. From then on he takes
 * nothing of a lost one, whether that coordinated or took part; and what he says is on disk, as his
 * map is. Who asks needs no such map: he does what he hears, or gives it up, on his own disk, and
 * until he has the map he answers nothing. So the first one that does it behind an answer of his
 * would have had it from one who is left, had done it before his own answer, and would have said
 * so: all do the same. A round of questions in which another target gets lost begins anew: what
 * that one had told somebody, others have to hear from him. */
#include "base/bug.h"
#include "base/endian.h"
#include "meta/group_internal.h"
#include "meta/half.h"
#include "meta/operations.h"
#include "meta/promise_internal.h"
#include "rpc/lost_logs.h"
#include <assert.h>

bool promises_source_is_lost(const struct promises *promises, const struct promise_source *source) {
    return source->is_lost || group_knows_lost(promises->group, (struct log_id){source->log});
}

/* It only rises; the same number twice is the same targets all the while between. */
static uint32_t losses_known(const struct group *group) {
    uint32_t count = group->rpc ? lost_logs_count(rpc_lost_logs(group->rpc)) : 0;

    return MAX(count, group->promises.losses);
}

void promises_map_read(struct group *group) {
    struct promises *promises = &group->promises;

    promises->losses = 0;
    for (uint32_t i = 0; i < group->map->target_count; i++) {
        promises->losses += group->map->targets[i].state == TARGET_LOST;
    }
    for (uint32_t i = 0; i < promises->source_count; i++) {
        struct promise_source *source = &promises->sources[i];

        source->is_lost = group_map_says_lost(group, source->log);
    }
}

/* The next one that is to be asked; 0: all have answered that matter. */
static struct log_id next_other(const struct group *group, struct promise *promise) {
    for (; (promise->others_asked + 1U) * sizeof(uint64_t) <= promise->participants_bytes;
         promise->others_asked++) {
        uint64_t log = load_le64(promise->participants + promise->others_asked * sizeof(uint64_t));

        if (log != kv_log_id(group->kv).value && !group_log_is_lost(group, log)) {
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

static void go_on(struct promise *promise) {
    promise->wanted = true;
    promise->asked_ns = 0;
}

static void other_has_told(struct promise *promise, uint8_t state) {
    if (!promise->committed && state == CROSS_COMMITTED) {
        promise->to_be_kept = true;
        list_remove(&promise->node);
        list_push_back(&promise->promises->to_keep, &promise->node);
    } else if (promise->losses != losses_known(promise->promises->group)) {
        go_on(promise);
    } else if (!promise->committed || state != CROSS_UNDECIDED) {
        promise->others_asked++;
        go_on(promise);
    }
}

/* Of one that is lost by now it is not taken: others may not hear it from there any more. Nor is
 * what this version does not know: it is asked again. */
static void other_answered(struct call *call) {
    struct promise *promise = call->context;
    uint64_t from = call->header.log.value;
    uint8_t state = call->reply.cross_fate.state;
    bool says = call->result == 0 && state >= CROSS_UNDECIDED && state <= CROSS_ABORTED;

    if (promise_answered(promise) && says) {
        if (group_log_is_lost(promise->promises->group, from)) {
            go_on(promise);
        } else {
            other_has_told(promise, state);
        }
    }
}

static void round_begin(const struct group *group, struct promise *promise) {
    uint32_t losses = losses_known(group);

    if (promise->losses != losses) {
        promise->losses = losses;
        promise->others_asked = 0;
    }
}

void promise_others_ask(struct group *group, struct promise *promise) {
    struct call *call = &promise->call;
    struct log_id other;

    do {
        round_begin(group, promise);
        other = next_other(group, promise);
    } while (promise->losses != losses_known(group));
    if (other.value == 0 || BUG(LOST_ALONE)) {
        all_asked(group, promise);
        return;
    }
    call->header.opcode = OP_CROSS_FATE;
    call->request.cross_fate = (struct cross_fate_request){.coordinator = promise->id.log,
                                                           .term = promise->id.term,
                                                           .number = promise->id.number,
                                                           .losses = promise->losses};
    promise_ask(group, promise, other, other_answered);
}

int op_cross_fate(struct transaction *transaction, struct call *call) {
    const struct cross_fate_request *request = &call->request.cross_fate;
    struct cross_id id = {request->coordinator, request->term, request->number};
    struct group *group = transaction->group;

    if (!group_map_says_lost(group, id.log) || group->promises.losses < request->losses) {
        return -ERR_BUSY; /* The map that says so is on its way, or not on disk yet. */
    }
    const struct promise *promise = promise_find(&group->promises, &id);
    if (promise && promise->to_be_kept) {
        return -ERR_BUSY; /* It is done as soon as there is room. */
    }
    call->reply.cross_fate.state = !promise             ? CROSS_ABORTED
                                   : promise->committed ? CROSS_COMMITTED
                                                        : CROSS_UNDECIDED;
    /* Also that its mark is gone: power would bring back what was promised. */
    transaction->at_sync = true;
    return 0;
}

/* As a commit does it, at this moment: only the coordinator knew the decision's. It stays where
 * there is no room for it now, or a row is on its way. */
static void keep(struct group *group, struct promise *promise) {
    const struct operation *operation = operation_of(OP_CROSS_COMMIT);
    const struct kv_need need = {.rows = operation->rows, .record_bytes = operation->record_bytes};
    struct transaction transaction;

    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need) < 0) {
        return;
    }
    promise->call.header.opcode = OP_CROSS_COMMIT;
    transaction.call = &promise->call;
    if (promise_keep(&transaction, promise) < 0) {
        transaction_abort(&transaction);
        return;
    }
    (void)transaction_commit(&transaction);
    group->counters.totals.promises_lost_kept++;
}

/* One that can't be done yet stands in the way of none. */
void promises_lost_step(struct group *group) {
    const struct list *to_keep = &group->promises.to_keep;

    for (struct list_node *node = list_first(to_keep), *next; node; node = next) {
        next = list_next(to_keep, node);
        keep(group, CONTAINER_OF(node, struct promise, node));
    }
}
