/* Promises of a group. */
#include "meta/group_internal.h"
#include "meta/promise_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct list *bucket_of(struct promises *promises, const struct cross_id *id) {
    uint64_t mixed = (id->log ^ id->term << 40 ^ id->number) * UINT64_C(0x9e3779b97f4a7c15);

    return &promises->buckets[(mixed >> 32) % PROMISE_BUCKETS];
}

void promises_init(struct promises *promises, struct group *group) {
    promises->group = group;
    list_init(&promises->prepared);
    list_init(&promises->to_drop);
    list_init(&promises->asking_still);
    list_init(&promises->to_keep);
    for (size_t i = 0; i < PROMISE_BUCKETS; i++) {
        list_init(&promises->buckets[i]);
    }
}

void promises_deinit(struct promises *promises) {
    if (!promises->group) {
        return;
    }
    for (size_t i = 0; i < PROMISE_BUCKETS; i++) {
        struct list_node *node;

        while ((node = list_pop_front(&promises->buckets[i]))) {
            free(CONTAINER_OF(node, struct promise, bucket_node));
        }
    }
    for (struct list_node *node; (node = list_pop_front(&promises->asking_still));) {
        free(CONTAINER_OF(node, struct promise, node));
    }
    free(promises->spare);
}

struct promise *promise_find(struct promises *promises, const struct cross_id *id) {
    const struct list *bucket = bucket_of(promises, id);

    for (struct list_node *node = list_first(bucket); node; node = list_next(bucket, node)) {
        struct promise *promise = CONTAINER_OF(node, struct promise, bucket_node);

        if (promise->id.log == id->log && promise->id.term == id->term &&
            promise->id.number == id->number) {
            return promise;
        }
    }
    return NULL;
}

static struct promise_source *source_of(struct promises *promises, uint64_t log) {
    for (uint32_t i = 0; i < promises->source_count; i++) {
        if (promises->sources[i].log == log) {
            return &promises->sources[i];
        }
    }
    if (promises->source_count == ARRAY_SIZE(promises->sources)) {
        return NULL;
    }
    struct promise_source *source = &promises->sources[promises->source_count++];
    *source =
        (struct promise_source){.log = log, .is_lost = group_log_is_lost(promises->group, log)};
    list_init(&source->marks);
    return source;
}

bool promises_have_room(struct group *group, uint64_t log) {
    struct promises *promises = &group->promises;
    const struct promise_source *source = source_of(promises, log);
    bool has = source && source->count < PROMISES_OF_ONE_MAX && promises->count < PROMISES_MAX;

    group->counters.totals.promises_refused += !has;
    return has;
}

static bool is_before(uint64_t term, uint64_t number, uint64_t other_term, uint64_t other_number) {
    return term < other_term || (term == other_term && number < other_number);
}

bool promises_past(const struct promises *promises, const struct cross_id *id) {
    for (uint32_t i = 0; i < promises->source_count; i++) {
        const struct promise_source *source = &promises->sources[i];

        if (source->log == id->log) {
            return !is_before(source->past_term, source->past_number, id->term, id->number);
        }
    }
    return false;
}

/* In the order of their commits, which is nearly that of their numbers: one that is not done keeps
 * those behind it a little longer. */
static void marks_end(struct promises *promises, struct promise_source *source) {
    struct list_node *node;

    while ((node = list_first(&source->marks))) {
        struct promise *mark = CONTAINER_OF(node, struct promise, node);

        if (!is_before(mark->id.term, mark->id.number, source->below_term, source->below_number)) {
            return;
        }
        list_remove(node);
        list_push_back(&promises->to_drop, node);
    }
}

bool promises_below(struct group *group, const struct cross_id *id, uint64_t below_term,
                    uint64_t below_number) {
    struct promises *promises = &group->promises;
    struct promise_source *source = source_of(promises, id->log);

    if (!source) {
        return false;
    }
    if (is_before(source->below_term, source->below_number, below_term, below_number)) {
        source->below_term = below_term;
        source->below_number = below_number;
        marks_end(promises, source);
    }
    return !is_before(id->term, id->number, source->below_term, source->below_number);
}

/* What its halves hold, and the number that one of them has drawn. */
static void stakes_take(struct group *group, struct promise *promise) {
    struct bytes halves = {promise->halves, promise->halves_bytes};
    struct transaction transaction = {.group = group};
    const struct half *half;

    while (halves.size > 0 && half_next(&halves, &half) == 0) {
        struct stake_what what[2];
        uint32_t count;

        promise->made.value = half->kind == HALF_MAKE ? half->ino : promise->made.value;
        half_stakes(&transaction, half, what, &count);
        for (uint32_t i = 0; i < count && promise->stake_count < PROMISE_STAKES_MAX; i++) {
            struct stake *stake = &promise->stakes[promise->stake_count++];

            *stake = (struct stake){.what = what[i], .owner = promise};
            stakes_add(&group->stakes, stake);
        }
    }
}

static void stakes_give(struct group *group, struct promise *promise) {
    for (uint32_t i = 0; i < promise->stake_count; i++) {
        stakes_remove(&group->stakes, &promise->stakes[i]);
    }
    promise->stake_count = 0;
    group->moved = true;
}

static void promise_link(struct promises *promises, struct promise *promise) {
    promise->promises = promises;
    promises->count++;
    source_of(promises, promise->id.log)->count++;
    list_push_back(bucket_of(promises, &promise->id), &promise->bucket_node);
    if (promise->committed) {
        list_push_back(&source_of(promises, promise->id.log)->marks, &promise->node);
    } else {
        list_push_back(&promises->prepared, &promise->node);
        stakes_take(promises->group, promise);
    }
}

void promise_made(struct group *group, uint64_t position) {
    struct promise *promise = TAKE_PTR(group->promises.spare);

    promise->position = position;
    promise->asked_ns = group->now_ns;
    promise_link(&group->promises, promise);
}

static void end_tell(const struct group *group, const struct promise *promise,
                     enum promise_end end) {
    if (group->options.promise_ended) {
        group->options.promise_ended(group->options.promise_context, &promise->id, end);
    }
}

void promise_kept(struct group *group, struct promise *promise) {
    assert(!promise->committed);
    end_tell(group, promise, PROMISE_KEPT);
    group->counters.totals.promises_kept++;
    turns_end(group, (struct turn_id){promise->id.log, promise->id.term, promise->turn});
    stakes_give(group, promise);
    promise->committed = true;
    promise->holds_orphan = false;
    promise->to_be_kept = false;
    promise->halves_bytes = 0;
    promise->asked_ns = group->now_ns;
    promise->others_asked = 0;
    list_remove(&promise->node);
    list_push_back(&source_of(&group->promises, promise->id.log)->marks, &promise->node);
}

void promise_gone(struct group *group, struct promise *promise) {
    end_tell(group, promise, promise->committed ? PROMISE_FORGOTTEN : PROMISE_GIVEN_UP);
    group->counters.totals.promises_gone += !promise->committed;
    stakes_give(group, promise);
    if (promise->holds_orphan) {
        sweep_again(group);
    }
    list_remove(&promise->node);
    list_remove(&promise->bucket_node);
    group->promises.count--;
    source_of(&group->promises, promise->id.log)->count--;
    promise->gone = true;
    if (promise->asking) {
        list_push_back(&group->promises.asking_still, &promise->node);
    } else {
        free(promise);
    }
}

int promises_load(struct promises *promises, const struct kv_key *key,
                  const struct transaction_row *row, struct bytes halves) {
    struct kv_key_fields fields = kv_key_split(key);
    struct promise *promise = calloc(1, sizeof *promise);

    if (!promise || !source_of(promises, fields.id) || halves.size > HALVES_BYTES_MAX) {
        free(promise);
        return -ERR_NO_MEMORY;
    }
    promise->id = (struct cross_id){fields.id, fields.generation, fields.index};
    promise->committed = row->state == TRANSACTION_COMMITTED;
    promise->participants_bytes = (uint8_t)(row->log_count * sizeof(uint64_t));
    memcpy(promise->participants, row->data, promise->participants_bytes);
    promise->halves_bytes = (uint16_t)halves.size;
    memcpy(promise->halves, halves.data, halves.size);
    promise->wanted = true;
    promises->group->counters.totals.promises_found += !promise->committed;
    promise_link(promises, promise);
    return 0;
}

bool promises_hold_orphan(struct group *group, struct ino ino) {
    struct promise *promise = stakes_promise_of(&group->stakes, ino);

    if (promise) {
        promise->holds_orphan = true;
    }
    return promise;
}

void promise_is_waited_for(struct group *group, const void *owner) {
    (void)group;
    ((struct promise *)(uintptr_t)owner)->wanted = true;
}

/* The coordinator has no such transaction: it is aborted here, or has ended everywhere. */
void promise_is_over(struct promise *promise) {
    struct promises *promises = promise->promises;
    struct promise_source *source = source_of(promises, promise->id.log);

    if (promise->committed &&
        is_before(source->past_term, source->past_number, promise->id.term, promise->id.number)) {
        source->past_term = promise->id.term;
        source->past_number = promise->id.number;
    }
    list_remove(&promise->node);
    list_push_back(&promises->to_drop, &promise->node);
}

void promise_mark_asked(struct promise *promise) {
    if (promise->is_mark_ask) {
        promise->is_mark_ask = false;
        source_of(promise->promises, promise->id.log)->mark_asks--;
    }
}

bool promise_answered(struct promise *promise) {
    bool gone = promise->gone;

    assert(promise->promises->calls_out > 0);
    promise->promises->calls_out--;
    promise->asking = false;
    promise_mark_asked(promise);
    if (gone) {
        list_remove(&promise->node);
        free(promise);
    }
    return !gone;
}

static void ask_answered(struct call *call) {
    struct promise *promise = call->context;
    bool aborted = call->result == 0 && call->reply.cross_ask.state == CROSS_ABORTED;
    struct promises *promises = promise->promises;
    bool is_lost = promises_source_is_lost(promises, source_of(promises, promise->id.log));

    /* One that is lost may have been put back from a copy since it has decided. */
    if (promise_answered(promise) && aborted && !is_lost) {
        promise_is_over(promise);
    }
}

void promise_ask(struct group *group, struct promise *promise, struct log_id log,
                 void (*done)(struct call *call)) {
    struct call *call = &promise->call;

    promise->wanted = false;
    promise->asked_ns = group->now_ns;
    promise->asking = true;
    call->header.log = log;
    call->origin = &group->actor;
    call->done = done;
    call->context = promise;
    call->deadline_ns = group->now_ns + PROMISE_ASK_NS;
    group->promises.calls_out++;
    call_start(group->rpc, call);
}

static void ask(struct group *group, struct promise *promise) {
    struct call *call = &promise->call;

    if (promises_source_is_lost(&group->promises, source_of(&group->promises, promise->id.log))) {
        promise_others_ask(group, promise);
        return;
    }
    call->header.opcode = OP_CROSS_ASK;
    call->request.cross_ask =
        (struct cross_ask_request){.term = promise->id.term, .number = promise->id.number};
    promise_ask(group, promise, (struct log_id){promise->id.log}, ask_answered);
}

/* Whose coordinator is lost is looked at sooner. */
static bool is_due(struct group *group, const struct promise *promise) {
    struct promises *promises = &group->promises;
    uint64_t since_ns = group->now_ns - promise->asked_ns;

    if (promise->asking || promise->wanted || since_ns >= PROMISE_ASK_NS) {
        return !promise->asking;
    }
    return since_ns >= PROMISE_MARK_ASK_NS &&
           promises_source_is_lost(promises, source_of(promises, promise->id.log));
}

void promises_tick(struct group *group) {
    struct promises *promises = &group->promises;

    if (promises->cancelled || !group->rpc || group->stage != GROUP_SERVING ||
        group_is_lost_itself(group)) {
        return;
    }
    for (struct list_node *node = list_first(&promises->prepared), *next; node; node = next) {
        struct promise *promise = CONTAINER_OF(node, struct promise, node);

        next = list_next(&promises->prepared, node);
        if (is_due(group, promise)) {
            ask(group, promise);
        }
    }
}

static void marks_of_source_ask(struct group *group, struct promise_source *source) {
    struct list_node *node;

    while (source->mark_asks < PROMISE_MARK_ASKS && (node = list_first(&source->marks))) {
        struct promise *mark = CONTAINER_OF(node, struct promise, node);

        if (group->now_ns - mark->asked_ns < PROMISE_MARK_ASK_NS) {
            return;
        }
        list_remove(node);
        list_push_back(&source->marks, node);
        if (mark->asking) {
            mark->asked_ns = group->now_ns;
        } else {
            mark->is_mark_ask = true;
            source->mark_asks++;
            ask(group, mark);
        }
    }
}

static void marks_ask(struct group *group) {
    struct promises *promises = &group->promises;
    bool many = promises->count >= PROMISE_MARKS_MANY;
    bool asks = !promises->cancelled && group->rpc && !group_is_lost_itself(group);

    for (uint32_t i = 0; asks && i < promises->source_count; i++) {
        if (many || promises_source_is_lost(promises, &promises->sources[i])) {
            marks_of_source_ask(group, &promises->sources[i]);
        }
    }
}

static bool drop(struct group *group, struct promise *promise) {
    static const struct kv_need need = {.rows = 1, .record_bytes = 100};
    struct kv_key key =
        key_owner(ROW_TRANSACTION, promise->id.log, (uint32_t)promise->id.term, promise->id.number);
    struct transaction transaction;

    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need) < 0) {
        return false;
    }
    transaction.promise = promise;
    if (transaction_delete(&transaction, &key) < 0) {
        transaction_abort(&transaction);
        return false;
    }
    transaction_effect(&transaction, (struct effect){.kind = EFFECT_DROPPED});
    (void)transaction_commit(&transaction);
    return true;
}

void promises_step(struct group *group) {
    struct list_node *node;

    marks_ask(group);
    promises_lost_step(group);
    while ((node = list_first(&group->promises.to_drop)) &&
           drop(group, CONTAINER_OF(node, struct promise, node))) {
    }
}

static void list_cancel(const struct list *list) {
    for (struct list_node *node = list_first(list); node; node = list_next(list, node)) {
        struct promise *promise = CONTAINER_OF(node, struct promise, node);

        if (promise->asking) {
            call_cancel(&promise->call);
        }
    }
}

void promises_cancel(struct promises *promises) {
    promises->cancelled = true;
    list_cancel(&promises->prepared);
    list_cancel(&promises->to_drop);
    list_cancel(&promises->asking_still);
    for (uint32_t i = 0; i < promises->source_count; i++) {
        list_cancel(&promises->sources[i].marks);
    }
}
