/* All transactions that a group coordinates. */
#include "base/bug.h"
#include "meta/crossing_internal.h"
#include <assert.h>
#include <stdlib.h>

void crossings_init(struct crossings *crossings, struct group *group) {
    *crossings = (struct crossings){.group = group, .next_number = 1};
    list_init(&crossings->all);
    list_init(&crossings->numbered);
    list_init(&crossings->decided);
    list_init(&crossings->to_forget);
    list_init(&crossings->waiting);
}

void crossings_deinit(struct crossings *crossings) {
    struct list_node *node;

    if (!crossings->group) {
        return;
    }
    while ((node = list_first(&crossings->all))) {
        crossing_free(CONTAINER_OF(node, struct crossing, node));
    }
}

struct crossing *crossing_new(struct group *group, struct call *owner) {
    struct crossings *crossings = &group->crossings;
    bool has_place = crossings->count < group->options.crossings_max;
    struct crossing *crossing = has_place ? calloc(1, sizeof *crossing) : NULL;

    if (crossing) {
        crossing->all = crossings;
        crossing->owner = owner;
        crossings->count++;
        list_push_back(&crossings->all, &crossing->node);
        if (owner) {
            owner->server_context = crossing;
        }
    } else {
        group->counters.totals.crossings_full += !has_place && !crossings->short_of;
        crossings->short_of = true;
    }
    return crossing;
}

void crossing_unclaim(struct crossing *crossing) {
    struct stakes *stakes = &crossing->all->group->stakes;

    for (uint32_t i = 0; i < crossing->stake_count; i++) {
        stakes_remove(stakes, &crossing->stakes[i]);
        crossing->all->group->moved = true;
    }
    crossing->stake_count = 0;
}

void crossing_free(struct crossing *crossing) {
    struct crossings *crossings = crossing->all;

    crossing_unclaim(crossing);
    crossing_looks_at(crossing, (struct log_id){0});
    for (uint32_t i = 0; i < crossing->share_count; i++) {
        crossing_share_ends(crossing, &crossing->shares[i]);
    }
    list_remove(&crossing->node);
    list_remove(&crossing->numbered_node);
    list_remove(&crossing->wait_node);
    crossings->count--;
    if (crossings->short_of) {
        crossings->short_of = false;
        crossings->group->moved = true;
    }
    free(crossing->seen);
    free(crossing);
}

void crossing_wait(struct crossing *crossing) {
    uint64_t random = 0;
    struct env *env = crossing->all->group->env;

    env->ops->random(env, &random, sizeof random);
    crossing->wait_ticks = 1 + (uint32_t)(random & 1);
    list_remove(&crossing->wait_node);
    list_push_back(&crossing->all->waiting, &crossing->wait_node);
}

/* Another one takes the call: the old one has promises to abort. */
void crossing_again(struct crossing *crossing) {
    struct group *group = crossing->all->group;
    struct call *owner = crossing->owner;
    uint32_t tries = crossing->tries + 1;
    uint32_t refusals = crossing->refusals + 1;
    uint64_t turn = 0;
    bool told = crossing->told;
    struct log_id looks_at = {crossing->unreached ? crossing->looks_at.value : 0};

    assert(owner);
    if (crossing->unreached) {
        refusals = 0; /* Nobody waits for who waits for an answer: its turn goes back. */
    } else {
        turn = crossing->turn;
        crossing->turn = 0;
    }
    crossing_abort(crossing);
    group->moved = true;
    group->counters.totals.crossings_again++;
    struct crossing *next = crossing_new(group, owner);
    if (next) {
        next->tries = tries;
        next->refusals = refusals;
        next->turn = turn;
        crossing_looks_at(next, looks_at);
        if (tries > CROSSING_TRIES_AT_ONCE || told) {
            crossing_wait(next);
        }
    }
}

int crossings_load(struct crossings *crossings, const struct kv_key *key,
                   const struct decision_row *row) {
    struct crossing *crossing = crossing_new(crossings->group, NULL);
    struct kv_key_fields fields = kv_key_split(key);

    if (!crossing) {
        return -ERR_NO_MEMORY;
    }
    crossing->term = fields.id;
    crossing->number = fields.index;
    crossing->decided_ns = row->decided_ns;
    crossing->stage = CROSSING_DECIDED;
    crossings->group->counters.totals.decisions_found++;
    crossing->share_count = row->log_count;
    for (uint32_t i = 0; i < row->log_count; i++) {
        crossing->shares[i].draft.log.value = row->logs[i];
        crossing_share_begins(crossing, &crossing->shares[i]);
    }
    list_push_back(&crossings->numbered, &crossing->numbered_node);
    list_push_back(&crossings->decided, &crossing->wait_node);
    return 0;
}

/* Who has found no memory, while no other one was there whose end would tell, tries again. */
static void short_of_tick(struct group *group) {
    struct crossings *crossings = &group->crossings;

    if (crossings->short_of && crossings->count < group->options.crossings_max) {
        crossings->short_of = false;
        group->moved = true;
    }
}

void crossings_tick(struct group *group) {
    struct crossings *crossings = &group->crossings;

    short_of_tick(group);
    for (struct list_node *node = list_first(&crossings->waiting), *next; node; node = next) {
        struct crossing *crossing = CONTAINER_OF(node, struct crossing, wait_node);

        next = list_next(&crossings->waiting, node);
        if (--crossing->wait_ticks == 0) {
            list_remove(node);
            group->moved = true;
        }
    }
    for (struct list_node *node = list_first(&crossings->numbered); node;
         node = list_next(&crossings->numbered, node)) {
        struct crossing *crossing = CONTAINER_OF(node, struct crossing, numbered_node);

        if (crossing->stage == CROSSING_COMMITS) {
            crossing_commits_send(crossing);
        }
    }
}

/* Told once the record is on disk: a participant would else keep what its coordinator may lose. */
static void decided_step(struct group *group) {
    struct list *decided = &group->crossings.decided;
    struct list_node *node;

    while ((node = list_first(decided))) {
        struct crossing *crossing = CONTAINER_OF(node, struct crossing, wait_node);

        if (crossing->position > kv_synced_position(group->kv) && !BUG(UNFLUSHED_DECISION)) {
            return;
        }
        list_remove(node);
        crossing->stage = CROSSING_COMMITS;
        crossing_commits_send(crossing);
    }
}

/* False: there is no room for it now. */
static bool forget(struct group *group, struct crossing *crossing) {
    static const struct kv_need need = {.rows = 1, .record_bytes = 100};
    struct kv_key key = key_owner(ROW_DECISION, crossing->term, 0, crossing->number);
    struct transaction transaction;

    if (transaction_begin(&transaction, group, KV_CLASS_CONTROL, &need) < 0) {
        return false;
    }
    if (transaction_delete(&transaction, &key) < 0) {
        transaction_abort(&transaction);
        return false;
    }
    (void)transaction_commit(&transaction);
    crossing_free(crossing);
    return true;
}

void crossings_step(struct group *group) {
    struct crossings *crossings = &group->crossings;
    struct list_node *node;

    decided_step(group);
    while ((node = list_first(&crossings->to_forget)) &&
           forget(group, CONTAINER_OF(node, struct crossing, wait_node))) {
    }
}

void crossings_cancel(struct crossings *crossings) {
    crossings->cancelled = true;
    for (struct list_node *node = list_first(&crossings->all); node;
         node = list_next(&crossings->all, node)) {
        struct crossing *crossing = CONTAINER_OF(node, struct crossing, node);

        if (crossing->looking) {
            call_cancel(&crossing->look_call);
        }
        if (crossing->turn_out) {
            call_cancel(&crossing->turn_call);
        }
        for (uint32_t i = 0; i < crossing->share_count; i++) {
            if (crossing->shares[i].out) {
                call_cancel(&crossing->shares[i].call);
            }
        }
    }
}

static const struct crossing *first_numbered(const struct crossings *crossings) {
    struct list_node *node = list_first(&crossings->numbered);

    return node ? CONTAINER_OF(node, struct crossing, numbered_node) : NULL;
}

void crossings_lowest(const struct group *group, uint64_t *ret_term, uint64_t *ret_number) {
    const struct crossing *first = first_numbered(&group->crossings);

    *ret_term = first ? first->term : group->term;
    *ret_number = first ? first->number : group->crossings.next_number;
}

uint8_t crossings_state(const struct group *group, uint64_t term, uint64_t number) {
    const struct list *numbered = &group->crossings.numbered;

    for (struct list_node *node = list_first(numbered); node; node = list_next(numbered, node)) {
        const struct crossing *crossing = CONTAINER_OF(node, struct crossing, numbered_node);

        if (crossing->term == term && crossing->number == number) {
            return crossing->stage >= CROSSING_COMMITS  ? CROSS_COMMITTED
                   : crossing->stage == CROSSING_ABORTS ? CROSS_ABORTED
                                                        : CROSS_UNDECIDED;
        }
    }
    return CROSS_ABORTED;
}
