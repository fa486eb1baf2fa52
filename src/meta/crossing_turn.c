/* A move's turn, as its coordinator sees it (turns.h). */
#include "meta/crossing_internal.h"

struct turn_id crossing_turn_id(const struct crossing *crossing) {
    const struct group *group = crossing->all->group;

    return (struct turn_id){kv_log_id(group->kv).value, group->term, crossing->turn};
}

struct turn_id crossing_turn_want(struct crossing *crossing) {
    if (crossing->turn == 0 && crossing->refusals >= crossing->all->group->options.move_refusals) {
        crossing->turn = ++crossing->all->last_turn;
    }
    return crossing_turn_id(crossing);
}

int crossing_turn_check(struct transaction *transaction) {
    struct crossing *crossing = transaction->crossing;
    struct group *group = transaction->group;
    struct turn_id id = {0};

    if (crossing && crossing->stage != CROSSING_LOOKS) {
        return 0; /* The count is claimed. */
    }
    id = crossing ? crossing_turn_want(crossing) : id;
    uint64_t left_ns = id.number != 0 ? turns_ask(group, id, true) : turns_left_ns(group, id);
    if (left_ns == 0) {
        return 0;
    }
    int r = crossing_need(transaction, &crossing);
    if (r < 0) {
        return r;
    }
    crossing->told = true;
    transaction->outdated = true;
    return transaction_stall(transaction);
}

void crossing_turn_back(struct crossing *crossing) {
    struct group *group = crossing->all->group;

    if (crossing->turn != 0 && slots_check(&group->slots, ino_slot(INO_ROOT)) == 0) {
        turns_end(group, crossing_turn_id(crossing));
    } else if (crossing->turn != 0) {
        crossing_turn_back_send(crossing);
    }
    crossing->turn = 0;
}
