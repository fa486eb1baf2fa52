/* One call's transaction across logs: its runs, up to the decision. */
#include "layout/map_lost.h"
#include "meta/crossing_internal.h"
#include <assert.h>
#include <string.h>

bool crossing_is_elsewhere(const struct transaction *transaction, struct ino ino) {
    return slots_check(&transaction->group->slots, ino_slot(ino)) < 0;
}

bool crossing_is_lost(const struct transaction *transaction, struct ino ino) {
    return crossing_is_elsewhere(transaction, ino) &&
           cluster_map_slot_is_lost(transaction->group->map, ino_slot(ino));
}

int crossing_moves_check(struct transaction *transaction) {
    const struct crossing *crossing = transaction->crossing;

    if (!crossing || !crossing->has_way || crossing->moves == transaction->moves) {
        return 0;
    }
    transaction->outdated = true;
    return transaction_stall(transaction);
}

struct log_id crossing_log(const struct transaction *transaction, struct ino ino) {
    const struct map_group *group = cluster_map_group(transaction->group->map, ino_slot(ino));

    return group ? group->log : (struct log_id){0};
}

int crossing_need(struct transaction *transaction, struct crossing **ret_crossing) {
    struct call *call = transaction->call;

    assert(call);
    if (!transaction->crossing) {
        transaction->crossing = crossing_new(transaction->group, call);
    }
    *ret_crossing = transaction->crossing;
    return transaction->crossing ? 0 : transaction_stall(transaction);
}

static bool is_same(const struct seen *seen, const struct look_what *what) {
    return seen->kind == what->kind && seen->ino.value == what->ino.value &&
           seen->ancestor.value == what->ancestor.value && seen->name_bytes == what->name.size &&
           memcmp(seen->name, what->name.data ? (const void *)what->name.data : "",
                  seen->name_bytes) == 0;
}

/* A run looks in the order of the one before, so what it looks for mostly lies behind what it has
 * found last: then a way of many stretches costs each run no more than these. NULL: nowhere. */
static const struct seen *seen_find(struct crossing *crossing, const struct look_what *what) {
    uint32_t at = crossing->seen_next;

    for (uint32_t i = 0; i < crossing->seen_count; i++, at++) {
        at = at < crossing->seen_count ? at : 0;
        if (is_same(&crossing->seen[at], what)) {
            crossing->seen_next = at + 1;
            return &crossing->seen[at];
        }
    }
    return NULL;
}

int crossing_look(struct transaction *transaction, const struct look_what *what,
                  const struct look_answer **ret_answer) {
    struct crossing *crossing;

    int r = crossing_need(transaction, &crossing);
    if (r < 0) {
        return r;
    }
    const struct seen *seen = seen_find(crossing, what);
    if (seen) {
        *ret_answer = &seen->answer;
        return 0;
    }
    if (crossing->stage != CROSSING_LOOKS) {
        /* The deciding run has come another way than those before. */
        transaction->met_stake = true;
        return transaction_stall(transaction);
    }
    if (crossing->seen_count == CROSSING_LOOKS_MAX) {
        return -ERR_LOOP;
    }
    if (what->kind == LOOK_WAY && !crossing->has_way) {
        crossing->has_way = true;
        crossing->moves = transaction->moves;
    }
    crossing->looked = (struct seen){.kind = what->kind,
                                     .ino = what->ino,
                                     .ancestor = what->ancestor,
                                     .name_bytes = (uint16_t)what->name.size};
    if (what->name.size > 0) {
        memcpy(crossing->looked.name, what->name.data, what->name.size);
    }
    crossing_look_send(crossing);
    return crossing->failure < 0 ? crossing->failure : transaction_stall(transaction);
}

static struct draft *draft_for(struct crossing *crossing, struct log_id log) {
    for (uint32_t i = 0; i < crossing->draft_count; i++) {
        if (crossing->drafts[i].log.value == log.value) {
            return &crossing->drafts[i];
        }
    }
    assert(crossing->draft_count < PARTICIPANTS_MAX);
    struct draft *draft = &crossing->drafts[crossing->draft_count++];
    draft->log = log;
    draft->size_bytes = 0;
    return draft;
}

int crossing_half(struct transaction *transaction, struct log_id log, const struct half *half,
                  struct bytes name) {
    struct crossing *crossing;

    int r = crossing_need(transaction, &crossing);
    if (r < 0) {
        return r;
    }
    if (log.value == 0) {
        crossing_wait(crossing); /* A newer map is on its way. */
        return transaction_stall(transaction);
    }
    struct draft *draft = draft_for(crossing, log);
    size_t size = sizeof *half + name.size;
    assert(draft->size_bytes + size <= HALVES_BYTES_MAX && name.size <= NAME_BYTES_MAX);
    struct half *to = (void *)(draft->halves + draft->size_bytes);
    *to = *half;
    to->format = META_FORMAT;
    to->name_bytes = (uint8_t)name.size;
    if (name.size > 0) {
        memcpy(to->name, name.data, name.size);
    }
    draft->size_bytes += (uint16_t)size;
    return 0;
}

struct ino crossing_made(const struct transaction *transaction, struct log_id log) {
    const struct crossing *crossing = transaction->crossing;

    for (uint32_t i = 0; crossing && i < crossing->share_count; i++) {
        if (crossing->shares[i].draft.log.value == log.value) {
            return crossing->shares[i].made;
        }
    }
    return (struct ino){0};
}

struct log_id crossing_promised(const struct transaction *transaction) {
    const struct crossing *crossing = transaction->crossing;

    return crossing && crossing->share_count > 0 ? crossing->shares[0].draft.log
                                                 : (struct log_id){0};
}

uint32_t crossing_tries(const struct transaction *transaction) {
    return transaction->crossing ? transaction->crossing->tries : 0;
}

int crossing_run_begin(struct transaction *transaction, struct call *call) {
    struct crossing *crossing = call->server_context;

    transaction->crossing = crossing;
    if (!crossing) {
        return 0;
    }
    assert(crossing->owner == call);
    crossing->draft_count = 0;
    if (crossing->failure < 0) {
        transaction->damaged = crossing->damaged;
        transaction->damage = crossing->failure == -ERR_CORRUPT ? crossing->damage : NULL;
        return crossing->failure;
    }
    bool waits =
        crossing->looking || crossing->wait_ticks > 0 || crossing->stage == CROSSING_PREPARES;
    return waits ? transaction_stall(transaction) : 0;
}

static bool is_as_promised(const struct crossing *crossing) {
    bool same = crossing->draft_count == crossing->share_count;

    for (uint32_t i = 0; same && i < crossing->share_count; i++) {
        const struct draft *promised = &crossing->shares[i].draft;
        const struct draft *draft = &crossing->drafts[i];

        same = draft->log.value == promised->log.value &&
               draft->size_bytes == promised->size_bytes &&
               memcmp(draft->halves, promised->halves, draft->size_bytes) == 0;
    }
    return same;
}

static struct kv_key key_decision(const struct crossing *crossing) {
    return key_owner(ROW_DECISION, crossing->term, 0, crossing->number);
}

static int decision_stage(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;
    struct kv_key key = key_decision(crossing);
    struct decision_row row = {.format = META_FORMAT,
                               .log_count = (uint8_t)crossing->share_count,
                               .epoch = transaction->epoch,
                               .decided_ns = transaction->now_ns};

    for (uint32_t i = 0; i < crossing->share_count; i++) {
        row.logs[i] = crossing->shares[i].draft.log.value;
    }
    crossing->decided_ns = transaction->now_ns;
    transaction->after_sync = true;
    return transaction_put(transaction, &key, &row, sizeof row);
}

/* What the run has changed here is nobody else's until the decision. */
static void claim(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;

    assert(crossing->stake_count == 0);
    for (uint32_t i = 0; i < transaction->touched_count; i++) {
        struct stake *stake = &crossing->stakes[crossing->stake_count++];

        *stake = (struct stake){.what = transaction->touched[i], .owner = crossing, .claim = true};
        stakes_add(&transaction->group->stakes, stake);
    }
}

static void prepare(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;
    struct crossings *crossings = crossing->all;

    claim(transaction);
    crossing->term = transaction->group->term;
    crossing->number = crossings->next_number++;
    list_push_back(&crossings->numbered, &crossing->numbered_node);
    crossing->share_count = crossing->draft_count;
    for (uint32_t i = 0; i < crossing->draft_count; i++) {
        crossing->shares[i].draft = crossing->drafts[i];
        crossing_share_begins(crossing, &crossing->shares[i]);
    }
    crossing_looks_at(crossing, (struct log_id){0});
    crossing->stage = CROSSING_PREPARES;
    crossing_prepares_send(crossing);
}

static bool may_prepare(const struct crossing *crossing) {
    bool may = true;

    for (uint32_t i = 0; i < crossing->draft_count; i++) {
        may = may && crossing_may_ask(crossing, crossing->drafts[i].log);
    }
    return may;
}

static void confirm(struct crossing *crossing, int verdict) {
    crossing->verdict = verdict;
    crossing->confirmed = 0;
    crossing_confirm(crossing);
}

int crossing_run_end(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;

    if (!crossing) {
        return 0;
    }
    /* A run that changes nothing elsewhere relies on what no half names. */
    if (crossing->draft_count == 0 && crossing->stage == CROSSING_PREPARED) {
        crossing_again(crossing);
        transaction->crossing = NULL;
        return transaction_stall(transaction);
    }
    if (crossing->draft_count == 0 && crossing->seen_count > 0 && !crossing->sure) {
        confirm(crossing, 1);
        return transaction_stall(transaction);
    }
    if (crossing->draft_count == 0) {
        crossing_leave(transaction->group, transaction->call);
        transaction->crossing = NULL;
        return 0;
    }
    if (crossing->stage == CROSSING_PREPARED && is_as_promised(crossing)) {
        return decision_stage(transaction);
    }
    if (crossing->stage == CROSSING_PREPARED) {
        crossing_again(crossing);
        transaction->crossing = NULL;
    } else if (may_prepare(crossing)) {
        prepare(transaction);
    } else {
        crossing_refuse(crossing);
        return crossing->failure;
    }
    return transaction_stall(transaction);
}

bool crossing_run_fails(struct transaction *transaction, int result) {
    struct crossing *crossing = transaction->crossing;

    if (!crossing || crossing->failure < 0 || crossing->all->cancelled) {
        return false;
    }
    if (crossing->stage == CROSSING_PREPARED) {
        crossing_again(crossing);
        return true;
    }
    if (crossing->seen_count == 0) {
        return false;
    }
    crossing->damaged = transaction->damaged;
    crossing->damage = transaction->damage;
    confirm(crossing, result);
    return true;
}

void crossing_run_waits(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;

    bool anew = transaction->outdated ||
                (crossing && crossing->stage == CROSSING_PREPARED && transaction->met_stake);

    if (crossing && anew) {
        crossing_again(crossing);
    }
}

void crossing_is_decided(struct transaction *transaction, uint64_t position) {
    struct crossing *crossing = transaction->crossing;

    if (!crossing) {
        return;
    }
    assert(crossing->stage == CROSSING_PREPARED);
    crossing_unclaim(crossing);
    if (!crossing_is_elsewhere(transaction, INO_ROOT)) {
        crossing_turn_back(crossing); /* Elsewhere it ends with the commit. */
    }
    crossing->owner->server_context = NULL;
    crossing->owner = NULL;
    crossing->stage = CROSSING_DECIDED;
    crossing->position = position;
    list_push_back(&crossing->all->decided, &crossing->wait_node);
    group_sync_want(transaction->group, position);
    transaction->group->counters.totals.crossings++;
}

void crossing_drop(struct transaction *transaction) {
    crossing_leave(transaction->group, transaction->call);
    transaction->crossing = NULL;
}

void crossing_inherit(struct call *older, struct call *call) {
    struct crossing *crossing = older->server_context;

    assert(!call->server_context);
    if (crossing) {
        assert(crossing->owner == older);
        older->server_context = NULL;
        crossing->owner = call;
        call->server_context = crossing;
    }
}

void crossing_leave(struct group *group, struct call *call) {
    struct crossing *crossing = call->server_context;

    (void)group;
    if (crossing) {
        crossing_abort(crossing);
    }
}
