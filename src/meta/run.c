/* One call after another. */
#include "meta/run.h"
#include "meta/half.h"
#include "meta/inode.h"
#include "meta/open.h"
#include "meta/operations.h"
#include "meta/untouched.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_QUIET_NS (60 * NS_PER_S)

/* PARKED: waits for a row; STALLED: for something that the group does; FULL: for room; YIELDED: for
 * the step after this one. */
enum run_result { RUN_OVER, RUN_PARKED, RUN_STALLED, RUN_FULL, RUN_YIELDED };

enum { RUN_PENDING_MAX = 64, RENEW_ROWS = 24, RENEW_RECORD_BYTES = 3000 };

/* What presents an open is a part of attaching, and waits for room as that does. */
static enum kv_class kv_class_of(const struct call *call) {
    if (call->header.opcode == OP_REOPEN) {
        return KV_CLASS_CONTROL;
    }
    switch (call->header.message_class) {
    case MESSAGE_CONTROL:
        return KV_CLASS_CONTROL;
    case MESSAGE_RELEASE:
        return KV_CLASS_RELEASE;
    case MESSAGE_REQUEST:
        return KV_CLASS_REQUEST;
    default:
        return KV_CLASS_BACKGROUND;
    }
}

/* What another group prepares is a request to this one: it waits for room, and is told that there
 * is none, as what changes the same here. Nothing else between groups may wait behind it. */
static uint8_t class_of(uint16_t opcode) {
    return opcode == OP_CROSS_PREPARE ? MESSAGE_REQUEST : wire_class(opcode);
}

void run_arrived(struct group *group, struct call *call) {
    uint8_t message_class = class_of(call->header.opcode);

    call->header.message_class = message_class;
    call->started_ns = group->now_ns;
    call->ran_ns = 0;
    call->disk_ns = 0;
    call->walk_kept = 0;
    call->server_context = NULL;
    call->session_counters = NULL;
    list_push_back(&group->arrived[call->header.message_class], &call->server_node);
}

/* Who asks for the open. */
static uint32_t opener_of(const struct call *call) {
    return call->header.opcode == OP_OPEN     ? call->request.open.who.uid
           : call->header.opcode == OP_CREATE ? call->request.create.who.uid
                                              : 0;
}

static int outcome_renew_stage(struct transaction *transaction, const struct outcome_head *head) {
    struct opens *opens = &transaction->group->opens;
    bool closes = head->open_flags & OUTCOME_CLOSES;
    struct effect effect = {.kind = closes ? EFFECT_CLOSE : EFFECT_OPEN,
                            .ino = {head->ino},
                            .flags = head->open_flags & ~(uint32_t)OUTCOME_CLOSES,
                            .uid = opener_of(transaction->call)};
    const struct inode_row *row;
    bool freed = false;

    int r = inode_get(transaction, effect.ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? 0 : r; /* it went with that close */
    }
    if (closes) {
        return close_stage(transaction, row, &effect, &freed);
    }
    struct inode_row changed = *row;
    r = opens_find(opens, effect.ino, transaction->session) ? 0 : opens_reserve(opens);
    if (r == 0 && (effect.flags & OPEN_WRITE)) {
        r = open_writer_stage(transaction, effect.ino);
    }
    /* The log may have lost that others have opened it since. */
    if (r == 0 && (effect.flags & OPEN_WRITE) && untouched_end(&changed)) {
        r = inode_put(transaction, effect.ino, &changed);
    }
    if (r == 0) {
        transaction_effect(transaction, effect);
    }
    return r;
}

/* An open that a call from before the restart gave, or a close: memory has lost it, and the client
 * did not present it, as it had no answer yet. Done once, by the term of the outcome. *ret_stalls:
 * what is PENDING is the group's, as another one's promise is, and no row. */
static int outcome_renew(struct group *group, struct session *session, struct call *call,
                         const struct kv_outcome *outcome, bool *ret_stalls) {
    const struct outcome_head *head = (const void *)outcome->reply.data;
    /* It takes its own place: all others of the window may be kept, and none of them go before it
     * has been answered. */
    const struct kv_need need = {.rows = RENEW_ROWS,
                                 .record_bytes = RENEW_RECORD_BYTES,
                                 .session = session->id,
                                 .floor = outcome->floor,
                                 .window = MAX(session->window, (uint16_t)WINDOW_LEAST) + 1U};
    uint8_t copy[KV_REPLY_BYTES_MAX];
    struct transaction transaction;
    struct kv_outcome renewed = *outcome;

    if (head->term == group->term || head->ino == 0) {
        return 0;
    }
    memcpy(copy, outcome->reply.data, outcome->reply.size);
    ((struct outcome_head *)(void *)copy)->term = group->term;
    renewed.reply.data = copy;
    int r = transaction_begin(&transaction, group, kv_class_of(call), &need);
    if (r < 0) {
        return -ERR_BUSY; /* not looked at: it comes again */
    }
    transaction.session = session;
    transaction.call = call;
    r = outcome_renew_stage(&transaction, head);
    r = r < 0 ? r : transaction_outcome(&transaction, &renewed);
    *ret_stalls = transaction.stalled;
    if (r < 0) {
        transaction_abort(&transaction);
        return r;
    }
    (void)transaction_commit(&transaction);
    return 0;
}

/* 0: not known, run it. 1: answered. Else an error to answer with. */
static int outcome_answer(struct group *group, struct session *session, struct call *call,
                          bool *ret_stalls) {
    struct kv_outcome outcome;
    const struct outcome_head *head;
    struct bytes reply;

    int r =
        kv_outcome_get(group->kv, call->header.slot, session->id, call->header.sequence, &outcome);
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? session_failure_find(session, call->header.sequence) : r;
    }
    group->counters.totals.duplicates++;
    if (outcome.reply.size == 0) {
        group_answer(group, call, outcome.result);
        return 1;
    }
    r = outcome_check(outcome.reply, &head, &reply);
    r = r < 0 ? r : head->opcode == call->header.opcode ? 0 : -ERR_MALFORMED;
    r = r < 0 ? r : wire_decode_reply(head->opcode, reply, &call->reply);
    bool after_sync = r == 0 && (head->flags & OUTCOME_AFTER_SYNC);
    r = r < 0 ? r : outcome_renew(group, session, call, &outcome, ret_stalls);
    if (r < 0) {
        return r;
    }
    if (after_sync && head->term == group->term) {
        call->result = outcome.result;
        list_push_back(&group->answered_after_sync, &call->server_node);
    } else {
        group_answer(group, call, outcome.result);
    }
    return 1;
}

/* Stages the outcome of a mutation that succeeded, or of one that failed and has no place in the
 * session's memory of failures. */
static int outcome_stage(struct transaction *transaction, struct call *call, int result) {
    struct __attribute__((packed)) {
        struct outcome_head head;
        uint8_t reply[KV_REPLY_BYTES_MAX - sizeof(struct outcome_head)];
    } value;
    struct buffer buffer = {.data = value.reply, .capacity = sizeof value.reply};
    struct kv_outcome outcome = {.slot = call->header.slot,
                                 .session = call->header.session,
                                 .sequence = call->header.sequence,
                                 .floor = transaction->session->floor,
                                 .result = result};

    if (result == 0) {
        value.head = (struct outcome_head){
            .format = META_FORMAT,
            .flags = transaction->after_sync || transaction->sync_position ? OUTCOME_AFTER_SYNC : 0,
            .opcode = call->header.opcode,
            .term = transaction->group->term,
        };
        for (uint32_t i = 0; i < transaction->effect_count; i++) {
            const struct effect *effect = &transaction->effects[i];

            if (effect->kind == EFFECT_OPEN || effect->kind == EFFECT_CLOSE) {
                value.head.ino = effect->ino.value;
                value.head.open_flags =
                    effect->flags | (effect->kind == EFFECT_CLOSE ? OUTCOME_CLOSES : 0);
            }
        }
        int r = wire_encode_reply(call->header.opcode, &call->reply, &buffer);
        if (r < 0) {
            return r;
        }
        outcome.reply = (struct bytes){(const uint8_t *)&value, sizeof value.head + buffer.size};
    }
    return transaction_outcome(transaction, &outcome);
}

static enum run_result commit(struct transaction *transaction, struct call *call) {
    struct group *group = transaction->group;
    const struct session *session = transaction->session;

    /* Whom the list of the ended names is not served. */
    assert(!session ||
           (session->state == SESSION_LIVE && session->id.value >= group->ended.list.lowest));
    (void)session;
    if (transaction->staging) {
        crossing_is_decided(transaction, transaction_commit(transaction));
    } else {
        transaction_end_read(transaction);
    }
    if (transaction->held) {
        return RUN_OVER;
    }
    call->result = transaction->answer;
    if (transaction->after_sync) {
        list_push_back(&group->answered_after_sync, &call->server_node);
    } else if (transaction->at_sync) {
        list_push_back(&group->answered_at_sync, &call->server_node);
    } else if (transaction->sync_position > 0) {
        call->server_position = transaction->sync_position;
        call->disk_ns = group->now_ns;
        group_sync_want(group, transaction->sync_position);
        list_push_back(&group->awaiting_sync, &call->server_node);
    } else {
        group_answer(group, call, transaction->answer);
    }
    return RUN_OVER;
}

/* Answers a failed mutation, and sees to it that a second copy of it gets the same answer. */
static enum run_result fail(struct group *group, struct session *session, struct call *call,
                            int result) {
    bool passing = err_action(result) != ERR_ACTION_FAIL || group->stage == GROUP_FAILED;

    if (session && call->header.sequence != 0 && wire_is_mutation(call->header.opcode) &&
        !passing && !session_failure_keep(session, call->header.sequence, result)) {
        const struct kv_need need = {
            .session = session->id, .floor = session->floor, .window = session->window};
        struct transaction transaction;

        int r = transaction_begin(&transaction, group, kv_class_of(call), &need);
        transaction.session = session;
        r = r < 0 ? r : outcome_stage(&transaction, call, result);
        if (r < 0) {
            transaction_abort(&transaction);
            result = -ERR_BUSY;
        } else {
            (void)transaction_commit(&transaction);
        }
    }
    group_answer(group, call, result);
    return RUN_OVER;
}

/* Once the operation has ended with it; the runs before, which met PENDING, have not got so far.
 * One line a second at most: a program may try again and again. */
static void damage_log(const struct transaction *transaction, const struct call *call) {
    struct group *group = transaction->group;
    const struct kv_options *options = &group->options.kv;
    char line[256];

    if (!transaction->damage || !options->log || group->now_ns < group->damage_quiet_ns) {
        return;
    }
    group->damage_quiet_ns = group->now_ns + NS_PER_S;
    (void)snprintf(line, sizeof line,
                   "target %u: %s failed: inode %" PRIu64 " is damaged, %s: run `shoal fsck DIR`, "
                   "it names all that is",
                   (unsigned)group->options.target.value, wire_name(call->header.opcode),
                   transaction->damaged.value, transaction->damage);
    options->log(options->log_context, line);
}

static bool only_unlinks(struct bytes halves) {
    const struct half *half;

    while (halves.size > 0) {
        if (half_next(&halves, &half) < 0 || half->kind != HALF_UNLINK) {
            return false;
        }
    }
    return true;
}

/* On a full disk what frees space has a little of its own. */
static bool frees_space(const struct call *call) {
    uint16_t opcode = call->header.opcode;

    return opcode == OP_UNLINK || opcode == OP_RMDIR || opcode == OP_OPEN ||
           (opcode == OP_CROSS_PREPARE && only_unlinks(call->request.cross_prepare.halves)) ||
           (opcode == OP_SETATTR && (call->request.setattr.valid & SETATTR_SIZE));
}

static int operation_begin(struct transaction *transaction, struct group *group,
                           const struct operation *operation, struct session *session,
                           struct call *call) {
    struct kv_need need = {.rows = operation->rows, .record_bytes = operation->record_bytes};

    /* To open for reading takes no room of anything that may be full. */
    if (!(operation->flags & OPERATION_CHANGES) ||
        (call->header.opcode == OP_OPEN && open_is_by_name(call))) {
        transaction_begin_read(transaction, group);
        return 0;
    }
    if (call->header.opcode == OP_SETATTR || call->header.opcode == OP_INLINE_WRITE) {
        need.value_bytes = INLINE_PIECES_MAX * INLINE_PIECE_BYTES;
    }
    /* What is promised can't be refused later. */
    if (call->header.opcode == OP_CROSS_PREPARE) {
        const struct operation *commit = operation_of(OP_CROSS_COMMIT);

        need.rows += commit->rows;
        need.record_bytes += commit->record_bytes;
    }
    if (session && call->header.sequence != 0 && wire_is_mutation(call->header.opcode) &&
        !open_is_by_name(call)) {
        need.session = session->id;
        need.floor = session->floor;
        need.window = session->window;
    }
    if (call->header.opcode == OP_SESSION_FLOOR) {
        need.session = session->id;
        need.floor = session->floor;
        need.floors = true;
    }
    int r = transaction_begin(transaction, group, kv_class_of(call), &need);
    if (r == -ERR_NO_SPACE && frees_space(call)) {
        r = transaction_begin(transaction, group, KV_CLASS_FREEING, &need);
    }
    return r;
}

/* On a full disk clients are told at once: a close is sent again later, and stands in nobody's way.
 * So is who tells of ends, as a client may wait for that. What attaches waits, and the group's own.
 */
static bool is_told_of_space(const struct call *call) {
    uint8_t message_class = call->header.message_class;

    return message_class == MESSAGE_REQUEST || call->header.opcode == OP_SESSIONS_ENDED ||
           (message_class == MESSAGE_RELEASE && wire_is_mutation(call->header.opcode));
}

/* It has no room: it waits for that, or is told. */
static enum run_result run_refused(struct group *group, struct session *session, struct call *call,
                                   int result) {
    if (result == -ERR_BUSY || (result == -ERR_NO_SPACE && is_told_of_space(call))) {
        group->counters.totals.refused++;
        return fail(group, session, call, result);
    }
    return RUN_FULL;
}

static void parent_tell(struct transaction *transaction, struct ino ino,
                        struct attributes *ret_attributes) {
    struct kv_key inode_key = key_inode(ino);
    struct kv_key partition_key = key_partition(ino);
    const struct partition_row *partition;
    const struct inode_row *row;
    struct bytes value;

    if (crossing_is_elsewhere(transaction, ino)) {
        return;
    }
    int r = transaction_get(transaction, &partition_key, &value);
    r = r < 0 ? r : partition_row_check(value, &partition);
    r = r < 0 ? r : transaction_get(transaction, &inode_key, &value);
    r = r < 0 ? r : inode_row_check(value, &row);
    if (r == 0) {
        attributes_fill(ino, row, partition, ret_attributes);
    }
}

/* Whoever has changed a directory is told what it is now, if that is in memory: a kernel asks next.
 * Behind the outcome, which does not have it. */
static void parents_tell(struct transaction *transaction, struct call *call) {
    struct wire_parent parents[WIRE_PARENTS_MAX];
    uint32_t count = wire_parents(call->header.opcode, &call->request, &call->reply, parents);

    for (uint32_t i = 0; i < count; i++) {
        parent_tell(transaction, parents[i].ino, parents[i].attributes);
    }
}

static enum run_result run_operation(struct group *group, const struct operation *operation,
                                     struct session *session, struct call *call) {
    struct transaction transaction;

    /* Who has given a prepare up has sent an abort, which passes those that wait for room. */
    int r = call->header.opcode == OP_CROSS_PREPARE ? call_given_up(call, group->now_ns) : 0;
    if (r < 0) {
        group_answer(group, call, r);
        return RUN_OVER;
    }
    r = operation_begin(&transaction, group, operation, session, call);
    if (r < 0) {
        return run_refused(group, session, call, r);
    }
    transaction.call = call;
    transaction.session = session;
    memset(&call->reply, 0, sizeof call->reply);
    r = crossing_run_begin(&transaction, call);
    r = r < 0 ? r : operation->run(&transaction, call);
    r = r < 0 ? r : crossing_run_end(&transaction);
    if (r == 0 && session && call->header.sequence != 0 && !transaction.repeatable &&
        wire_is_mutation(call->header.opcode)) {
        r = outcome_stage(&transaction, call, transaction.answer);
    }
    if (r == 0) {
        parents_tell(&transaction, call);
        return commit(&transaction, call);
    }
    transaction_abort(&transaction);
    if (r != -ERR_PENDING && crossing_run_fails(&transaction, r)) {
        return RUN_STALLED;
    }
    if (r != -ERR_PENDING) {
        damage_log(&transaction, call);
        return fail(group, session, call, r);
    }
    crossing_run_waits(&transaction);
    return transaction.yields ? RUN_YIELDED : transaction.stalled ? RUN_STALLED : RUN_PARKED;
}

/* The session's part: 0 to go on, 1 when the call is over, or an error. */
static int session_part(struct group *group, const struct operation *operation, struct call *call,
                        struct session **ret_session, bool *ret_stalls) {
    struct session *session = sessions_find(&group->sessions, call->header.session);
    bool reopening = operation->flags & OPERATION_REOPENS;

    if (operation->flags & OPERATION_NO_SESSION) {
        return 0;
    }
    call->session_counters = session ? &session->counters : NULL;
    int r = session_check(session, call, reopening);
    if (r < 0) {
        return r;
    }
    /* Its number and floor are another log's: nothing is kept under them here. */
    if (call->header.origin.value != 0 && call->header.origin.value != kv_log_id(group->kv).value) {
        return -ERR_STALE_MAP;
    }
    if (call->header.floor > session->floor) {
        session->floor = call->header.floor;
        opens_pass(&group->opens, session);
    }
    *ret_session = session;
    /* Before its outcome is looked for: an answer is of the term that it was asked in. */
    if (call->header.term != 0 && call->header.term != group->term && !reopening) {
        return -ERR_STALE_TERM;
    }
    if (wire_is_mutation(call->header.opcode)) {
        if (call->header.sequence == 0) {
            return -ERR_INVALID;
        }
        if (call->header.sequence < session->floor) {
            return -ERR_OUTDATED;
        }
        r = outcome_answer(group, session, call, ret_stalls);
    }
    return r;
}

/* Changes of other logs that the caller knows of come before those that it asks for now. A clock
 * that is far ahead would take all of ours with it; one line a minute at most names whose it is, as
 * every request from there has it. */
static void epoch_see(struct group *group, const struct call *call) {
    const struct kv_options *options = &group->options.kv;
    char line[256];

    if (numbers_epoch_seen(&group->numbers, call->header.epoch, group->wall_ns) || !options->log ||
        group->now_ns < group->epoch_quiet_ns) {
        return;
    }
    group->epoch_quiet_ns = group->now_ns + EPOCH_QUIET_NS;
    (void)snprintf(line, sizeof line,
                   "target %u: session %" PRIu64 " has met a clock that is %" PRIu64
                   " s ahead of this machine's: set both right; its time is not taken",
                   (unsigned)group->options.target.value, call->header.session.value,
                   (call->header.epoch - group->wall_ns) / NS_PER_S);
    options->log(options->log_context, line);
}

/* BUSY, and it comes again: the map gives the slot to the group, which has not been told so yet. */
static int slot_of_other(const struct group *group, struct slot slot) {
    bool mine = group->map->slot_groups[slot.value] == group->map_group;
    bool newer =
        slots_handover(&group->slots, slot) < (int64_t)group->map->slot_handovers[slot.value];

    return mine && newer ? -ERR_BUSY : -ERR_STALE_MAP;
}

/* What is about no file or directory is about all of the group. */
static int slot_check(const struct group *group, const struct call *call) {
    /* Who makes a name is who has the directory. */
    uint64_t ino = call->header.opcode == OP_LINK
                       ? call->request.link.parent.value
                       : wire_request_ino(call->header.opcode, &call->request);

    struct slot slot = ino_slot((struct ino){ino});

    return ino == 0 || slots_check(&group->slots, slot) == 0 ? 0 : slot_of_other(group, slot);
}

/* Another copy of the mutation that waits has changed nothing, and ends: for it nobody may wait any
 * more, and its answer may have no way to go. By now the newer one is known to be the session's.
 * Of one that was parked itself no copy is left there: it was the newest, and one that came later
 * would have taken it. (Copies that wait to renew an outcome are all answered from that.) */
static void copy_supersede(struct group *group, struct call *call) {
    struct call *older = parking_take_copy(&group->parking, call);

    if (older) {
        crossing_inherit(older, call);
        group->counters.totals.duplicates++;
        call_discard(older);
    }
}

static enum run_result run_call(struct group *group, struct call *call, bool has_arrived) {
    const struct operation *operation = operation_of(call->header.opcode);
    struct session *session = NULL;
    bool stalls = false;
    int r = 0;

    call->ran_ns = call->ran_ns ? call->ran_ns : group->now_ns;
    if (group->stage != GROUP_SERVING) {
        r = group->stage == GROUP_FAILED ? group->failure : -ERR_CLOSED;
    } else if (!operation) {
        r = -ERR_NOT_SUPPORTED;
    }
    r = r < 0 ? r : session_part(group, operation, call, &session, &stalls);
    if (r > 0) {
        return RUN_OVER;
    }
    if (r == 0 && session && has_arrived) {
        copy_supersede(group, call);
    }
    r = r < 0 ? r : slot_check(group, call);
    if (r == 0 && call->header.epoch > 0) {
        epoch_see(group, call);
    }
    if (r == -ERR_PENDING) {
        return stalls ? RUN_STALLED : RUN_PARKED;
    }
    if (r < 0) {
        group->counters.totals.refused++;
        group_answer(group, call, r);
        return RUN_OVER;
    }
    return run_operation(group, operation, session, call);
}

/* Runs a call if the log has room for it, and parks it when it has to wait for something else. */
static enum run_result run_one(struct group *group, struct call *call, struct list *rows,
                               bool has_arrived) {
    uint8_t message_class = call->header.message_class;
    enum run_result result = run_call(group, call, has_arrived);

    if (result == RUN_PARKED || result == RUN_STALLED) {
        struct list *list = result == RUN_PARKED ? rows : &group->parking.group[message_class];

        group->counters.totals.restarts++;
        parking_put(&group->parking, list, call);
    }
    if (result == RUN_YIELDED) {
        group->counters.totals.pauses++;
        list_push_back(&group->yielded, &call->server_node);
    }
    group->counters.totals.waited += result == RUN_FULL;
    return result;
}

/* Those that were first asked for are first: when many in a row have to wait on, so will the rest,
 * until the next wake-up. */
static void run_parked(struct group *group, struct list *parked, enum message_class message_class) {
    uint32_t pending_count = 0;
    struct list waiting;
    struct list again;
    struct list todo;

    list_init(&waiting);
    list_init(&again);
    list_init(&todo);
    parking_put_back(parked, &todo);
    while (pending_count < RUN_PENDING_MAX && !list_is_empty(&todo)) {
        struct call *call = parking_take(&group->parking, &todo);
        enum run_result result = run_one(group, call, &again, false);

        pending_count += result == RUN_PARKED;
        if (result == RUN_FULL) {
            list_push_back(&waiting, &call->server_node);
        }
    }
    parking_put_back(&todo, &group->parking.rows[message_class]);
    parking_put_back(&again, &group->parking.rows[message_class]);
    parking_put_back(&waiting, &group->full[message_class]);
}

static bool may_take_room(const struct call *call) {
    const struct operation *operation = operation_of(call->header.opcode);

    return operation && (operation->flags & OPERATION_CHANGES);
}

/* First come, first served: who finds the log full lets nobody of its class pass but those who only
 * read. */
static void run_arrivals(struct group *group, enum message_class message_class) {
    struct list *rows = &group->parking.rows[message_class];
    struct list *arrived = &group->arrived[message_class];
    struct list *full = &group->full[message_class];
    struct list_node *node;
    bool is_full = false;

    while (!is_full && (node = list_pop_front(full))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        is_full = run_one(group, call, rows, true) == RUN_FULL;
        if (is_full) {
            list_push_front(full, node);
        }
    }
    while ((node = list_pop_front(arrived))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        bool waits = is_full && may_take_room(call);

        if (waits || run_one(group, call, rows, true) == RUN_FULL) {
            list_push_back(full, node);
            is_full = true;
        }
    }
}

void run_class(struct group *group, enum message_class message_class, enum run_what what) {
    if (what & RUN_ROWS) {
        run_parked(group, &group->parking.rows[message_class], message_class);
    }
    if (what & RUN_GROUP) {
        run_parked(group, &group->parking.group[message_class], message_class);
    }
    run_arrivals(group, message_class);
}

bool run_yielded(struct group *group) {
    struct list_node *node;
    bool any = false;

    while ((node = list_pop_front(&group->yielded))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        list_push_back(&group->arrived[call->header.message_class], node);
        any = true;
    }
    return any;
}

/* They have changed nothing: each would have run again from its beginning. */
static void parked_give_up(struct group *group, struct list *parked) {
    struct list todo;

    list_init(&todo);
    parking_put_back(parked, &todo);
    while (!list_is_empty(&todo)) {
        struct call *call = parking_take(&group->parking, &todo);
        int r = call_given_up(call, group->now_ns);

        if (r < 0) {
            group_answer(group, call, r);
        } else {
            parking_put(&group->parking, parked, call);
        }
    }
}

static void waiting_give_up(struct group *group, struct list *waiting) {
    for (struct list_node *node = list_first(waiting), *next; node; node = next) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = call_given_up(call, group->now_ns);

        next = list_next(waiting, node);
        if (r < 0) {
            list_remove(node);
            group_answer(group, call, r);
        }
    }
}

void run_give_up(struct group *group) {
    for (size_t i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        waiting_give_up(group, &group->full[i]);
        waiting_give_up(group, &group->arrived[i]);
        parked_give_up(group, &group->parking.rows[i]);
        parked_give_up(group, &group->parking.group[i]);
    }
}
