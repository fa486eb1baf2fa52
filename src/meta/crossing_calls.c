/* What a coordinator sends, and what comes back. */
#include "base/bug.h"
#include "meta/crossing_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void call_out(struct crossing *crossing, struct call *call, struct log_id log) {
    struct group *group = crossing->all->group;

    call->header.log = log;
    call->header.epoch = group->numbers.epoch;
    call->origin = &group->actor;
    call->deadline_ns = env_now_ns(group->env) + CROSSING_ANSWER_NS;
    crossing->all->calls_out++;
    call_start(group->rpc, call);
}

/* What others have changed before comes before what is changed now. */
static void call_in(struct crossing *crossing, const struct call *call) {
    struct group *group = crossing->all->group;

    assert(crossing->all->calls_out > 0);
    crossing->all->calls_out -= call->result == 0 || !BUG(KEPT_CALL);
    group->moved = true;
    if (call->result == 0) {
        (void)!numbers_epoch_seen(&group->numbers, call->server_epoch, group->wall_ns);
    }
}

/* It comes over a network: nothing of it is trusted. */
static int answer_check(const struct look_answer *answer, size_t size_bytes) {
    const struct partition_row *partition;
    const struct inode_row *inode;
    int r = size_bytes == sizeof *answer && answer->format == META_FORMAT ? 0 : -ERR_MALFORMED;

    if (r == 0 && answer->has_inode) {
        r = inode_row_check((struct bytes){(const uint8_t *)&answer->inode, sizeof answer->inode},
                            &inode);
    }
    if (r == 0 && answer->has_partition) {
        r = partition_row_check(
            (struct bytes){(const uint8_t *)&answer->partition, sizeof answer->partition},
            &partition);
    }
    return r;
}

static int seen_add(struct crossing *crossing) {
    if (crossing->seen_count == crossing->seen_room) {
        uint32_t room = MAX(2 * crossing->seen_room, 4U);
        struct seen *seen = realloc(crossing->seen, room * sizeof *seen);

        if (!seen) {
            return -ERR_NO_MEMORY;
        }
        crossing->seen = seen;
        crossing->seen_room = room;
    }
    crossing->seen[crossing->seen_count++] = crossing->looked;
    return 0;
}

/* Whether it is the operation's own end; all others may go away. */
static bool is_final(int result) {
    return err_action(result) == ERR_ACTION_FAIL && result != -ERR_CLOSED;
}

/* As far as an operation depends on it: entries of a directory come and go. */
static bool is_alike(const struct look_answer *a, const struct look_answer *b) {
    if (a->has_inode != b->has_inode || a->has_partition != b->has_partition ||
        a->has_name != b->has_name || a->within != b->within || a->next != b->next ||
        a->count != b->count || a->inode.epoch != b->inode.epoch) {
        return false;
    }
    bool a_empty = a->partition.file_count + a->partition.directory_count == 0;
    bool b_empty = b->partition.file_count + b->partition.directory_count == 0;
    bool same = a->partition.state == b->partition.state && a_empty == b_empty;
    return same && (!a->has_name || (a->name_ino == b->name_ino && a->index == b->index &&
                                     a->name_epoch == b->name_epoch));
}

void crossing_confirm(struct crossing *crossing) {
    if (crossing->confirmed == crossing->seen_count) {
        crossing->failure = MIN(crossing->verdict, 0);
        crossing->sure = crossing->verdict > 0;
        crossing->verdict = 0;
        return;
    }
    crossing->looked = crossing->seen[crossing->confirmed];
    crossing_look_send(crossing);
    if (!crossing->looking) {
        crossing->verdict = 0; /* It is run again when there is a way, or ends as refused. */
        crossing->all->group->moved = true;
    }
}

static void look_confirmed(struct crossing *crossing) {
    if (is_alike(&crossing->looked.answer, &crossing->seen[crossing->confirmed].answer)) {
        crossing->confirmed++;
        crossing_confirm(crossing);
    } else {
        crossing_again(crossing);
    }
}

static void look_answered(struct call *call) {
    struct crossing *crossing = call->context;

    call_in(crossing, call);
    crossing->looking = false;
    if (!crossing->owner) {
        crossing_abort(crossing);
        return;
    }
    int r = call->result;
    r = r < 0 ? r : answer_check(&crossing->looked.answer, call->bulk_in.size);
    crossing->unreached = r < 0 && r != -ERR_CHANGED;
    if (!crossing->unreached) {
        crossing_looks_at(crossing, (struct log_id){0});
    }
    if (r == 0 && crossing->verdict != 0) {
        look_confirmed(crossing);
        return;
    }
    crossing->told = r == 0 && call->reply.cross_look.turn_left_ns > 0;
    r = r < 0 ? r : crossing->told ? -ERR_CHANGED : seen_add(crossing);
    if (r < 0 && is_final(r)) {
        crossing->failure = r;
    } else if (r < 0) {
        crossing_again(crossing);
    }
}

static void turn_show(struct crossing *crossing, struct cross_look_request *request) {
    struct turn_id id = crossing_turn_want(crossing);

    request->coordinator = id.log;
    request->term = id.term;
    request->turn = id.number;
}

/* Whether the operation tells what it has looked at. */
static bool tells_size(const struct crossing *crossing) {
    return crossing->owner && crossing->owner->header.opcode == OP_LINK;
}

void crossing_look_send(struct crossing *crossing) {
    struct group *group = crossing->all->group;
    struct seen *looked = &crossing->looked;
    const struct map_group *there = cluster_map_group(group->map, ino_slot(looked->ino));
    struct call *call = &crossing->look_call;

    assert(!crossing->looking);
    if (!there || crossing->all->cancelled || !group->rpc) {
        crossing_wait(crossing);
        return;
    }
    if (!crossing_may_ask(crossing, there->log)) {
        crossing_refuse(crossing);
        return;
    }
    crossing_looks_at(crossing, there->log);
    crossing->looking = true;
    call->header.opcode = OP_CROSS_LOOK;
    call->header.slot = ino_slot(looked->ino);
    call->done = look_answered;
    call->context = crossing;
    call->request.cross_look =
        (struct cross_look_request){.ino = looked->ino,
                                    .what = (uint8_t)looked->kind,
                                    .ancestor = looked->ancestor.value,
                                    .name = {looked->name, looked->name_bytes},
                                    .any_size = !tells_size(crossing)};
    if (looked->kind == LOOK_COUNT) {
        turn_show(crossing, &call->request.cross_look);
    }
    call->bulk_in =
        (struct buffer){.data = (uint8_t *)&looked->answer, .capacity = sizeof looked->answer};
    call_out(crossing, call, there->log);
}

static bool any_out(const struct crossing *crossing) {
    for (uint32_t i = 0; i < crossing->share_count; i++) {
        if (crossing->shares[i].out) {
            return true;
        }
    }
    return crossing->looking || crossing->turn_out;
}

static void prepared(struct crossing *crossing) {
    bool promised = true;

    if (any_out(crossing)) {
        return;
    }
    for (uint32_t i = 0; i < crossing->share_count; i++) {
        promised = promised && crossing->shares[i].promised;
    }
    if (promised) {
        crossing->stage = CROSSING_PREPARED;
    } else if (crossing->failure == 0) {
        crossing_again(crossing);
    }
}

static void known(struct crossing *crossing) {
    bool all = true;

    for (uint32_t i = 0; i < crossing->share_count; i++) {
        all = all && crossing->shares[i].known;
    }
    if (all) {
        assert(!any_out(crossing));
        crossing->stage = CROSSING_KNOWN;
        list_push_back(&crossing->all->to_forget, &crossing->wait_node);
    }
}

/* A directory that is to be made has a number by now. */
static int made_check(const struct share *share) {
    struct bytes halves = {share->draft.halves, share->draft.size_bytes};
    const struct half *half;
    bool makes = false;

    while (halves.size > 0 && half_next(&halves, &half) == 0) {
        makes = makes || half->kind == HALF_MAKE;
    }
    return makes && share->call.reply.cross_prepare.made.value == 0 ? -ERR_MALFORMED : 0;
}

/* By our own map: a participant that takes nothing of us, as by his map we are lost, has not done
 * it. */
static bool share_is_lost(const struct share *share) {
    const struct group *group = share->crossing->all->group;

    return share->call.result == -ERR_TARGET_LOST && !group_is_lost_itself(group) &&
           group_log_is_lost(group, share->draft.log.value);
}

/* By the map that says so it begins anew, and ends as that has it: another group makes the
 * directory, a name of what is lost can be removed. */
static void prepare_answered(struct share *share) {
    struct crossing *crossing = share->crossing;
    int r = share->call.result;

    if (share_is_lost(share)) {
        r = -ERR_CHANGED;
    }
    r = r < 0 ? r : made_check(share);

    share->promised = r == 0;
    share->asked = r != -ERR_CHANGED;
    crossing->unreached = crossing->unreached || (share->asked && r < 0);
    share->made = r == 0 ? share->call.reply.cross_prepare.made : (struct ino){0};
    if (r < 0 && is_final(r)) {
        crossing->failure = r;
    }
}

/* One that is lost has nothing left that could contradict the decision. */
static void commit_answered(struct share *share) {
    bool is_lost = share_is_lost(share);

    share->known = share->call.result == 0 || is_lost;
    share->failed = !share->known;
    share->crossing->all->group->counters.totals.shares_lost += is_lost;
}

static void share_answered(struct call *call) {
    struct share *share = call->context;
    struct crossing *crossing = share->crossing;

    call_in(crossing, call);
    share->out = false;
    if (call->header.opcode == OP_CROSS_PREPARE) {
        prepare_answered(share);
    } else if (call->header.opcode == OP_CROSS_COMMIT) {
        commit_answered(share);
        if (share->known) {
            crossing_share_ends(crossing, share);
        }
        known(crossing);
        return;
    } else {
        share->asked = false;
    }
    if (!share->asked) {
        crossing_share_ends(crossing, share);
    }
    if (crossing->owner) {
        prepared(crossing);
    } else {
        crossing_abort(crossing);
    }
}

static void share_send(struct crossing *crossing, struct share *share, uint16_t opcode) {
    assert(!share->out);
    share->crossing = crossing;
    share->call.header.opcode = opcode;
    share->call.done = share_answered;
    share->call.context = share;
    share->out = true;
    share->failed = false;
    call_out(crossing, &share->call, share->draft.log);
}

static void prepare_send(struct crossing *crossing, struct share *share, struct bytes logs) {
    struct cross_prepare_request *request = &share->call.request.cross_prepare;

    *request = (struct cross_prepare_request){
        .coordinator = kv_log_id(crossing->all->group->kv).value,
        .term = crossing->term,
        .number = crossing->number,
        .participants = logs,
        .halves = {share->draft.halves, share->draft.size_bytes},
        .turn = crossing->turn,
    };
    crossings_lowest(crossing->all->group, &request->below_term, &request->below_number);
    share->asked = true;
    share_send(crossing, share, OP_CROSS_PREPARE);
}

void crossing_prepares_send(struct crossing *crossing) {
    if (crossing->all->cancelled || !crossing->all->group->rpc) {
        return; /* The call ends with the group. */
    }
    for (uint32_t i = 0; i < crossing->share_count; i++) {
        store_le64(crossing->logs + i * sizeof(uint64_t), crossing->shares[i].draft.log.value);
    }
    for (uint32_t i = 0; i < crossing->share_count; i++) {
        prepare_send(crossing, &crossing->shares[i],
                     (struct bytes){crossing->logs, crossing->share_count * sizeof(uint64_t)});
    }
}

void crossing_commits_send(struct crossing *crossing) {
    struct group *group = crossing->all->group;

    bool sends = !crossing->all->cancelled && group->rpc && !group_is_lost_itself(group);

    for (uint32_t i = 0; sends && i < crossing->share_count; i++) {
        struct share *share = &crossing->shares[i];
        struct cross_commit_request *request = &share->call.request.cross_commit;

        if (share->known || share->out) {
            continue;
        }
        *request = (struct cross_commit_request){.coordinator = kv_log_id(group->kv).value,
                                                 .term = crossing->term,
                                                 .number = crossing->number,
                                                 .decided_ns = crossing->decided_ns};
        crossings_lowest(group, &request->below_term, &request->below_number);
        share_send(crossing, share, OP_CROSS_COMMIT);
    }
}

static void abort_send(struct crossing *crossing, struct share *share) {
    struct cross_abort_request *request = &share->call.request.cross_abort;

    *request =
        (struct cross_abort_request){.coordinator = kv_log_id(crossing->all->group->kv).value,
                                     .term = crossing->term,
                                     .number = crossing->number};
    crossings_lowest(crossing->all->group, &request->below_term, &request->below_number);
    share_send(crossing, share, OP_CROSS_ABORT);
}

static void turn_is_back(struct call *call) {
    struct crossing *crossing = call->context;

    call_in(crossing, call);
    crossing->turn_out = false;
    crossing_abort(crossing);
}

/* Told once: who does not hear it ends it by the clock. Of no transaction: number 0. */
void crossing_turn_back_send(struct crossing *crossing) {
    struct group *group = crossing->all->group;
    const struct map_group *there = cluster_map_group(group->map, ino_slot(INO_ROOT));
    struct turn_id id = crossing_turn_id(crossing);
    struct cross_abort_request *request = &crossing->turn_call.request.cross_abort;

    if (!there || crossing->all->cancelled || !group->rpc) {
        return;
    }
    *request =
        (struct cross_abort_request){.coordinator = id.log, .term = id.term, .turn = id.number};
    crossings_lowest(group, &request->below_term, &request->below_number);
    crossing->turn_call.header.opcode = OP_CROSS_ABORT;
    crossing->turn_call.done = turn_is_back;
    crossing->turn_call.context = crossing;
    crossing->turn_out = true;
    call_out(crossing, &crossing->turn_call, there->log);
}

/* One abort each: who does not get it asks. */
void crossing_abort(struct crossing *crossing) {
    struct group *group = crossing->all->group;

    crossing_unclaim(crossing);
    list_remove(&crossing->wait_node);
    if (!crossing->looking) {
        crossing_looks_at(crossing, (struct log_id){0});
    }
    if (crossing->owner) {
        crossing->owner->server_context = NULL;
        crossing->owner = NULL;
    }
    crossing->stage = CROSSING_ABORTS;
    crossing_turn_back(crossing);
    for (uint32_t i = 0; i < crossing->share_count && !crossing->all->cancelled && group->rpc;
         i++) {
        struct share *share = &crossing->shares[i];

        if (share->asked && !share->out && share->call.header.opcode == OP_CROSS_PREPARE) {
            abort_send(crossing, share);
        }
    }
    if (!any_out(crossing)) {
        crossing_free(crossing);
    }
}
