/* The contract is in draw.h. */
#include "meta/draw.h"
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "rpc/transport.h"

/* WEIGHED_TRIES: from then on all groups are alike, as those that were drawn have not taken it. */
enum { WEIGHED_TRIES = 2, DIFFERENCE_MIN = 16384 };

/* The new one is the child of the root, or of one of the root's. */
static int is_near(struct transaction *transaction, struct ino parent, bool *ret_near) {
    const struct inode_row *row;

    *ret_near = parent.value == INO_ROOT.value;
    if (*ret_near) {
        return 0;
    }
    int r = inode_get(transaction, parent, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    *ret_near = row->parent == INO_ROOT.value;
    return 0;
}

static bool is_lost(const struct group *group, uint32_t index) {
    return group->group_is_lost[index] || group_knows_lost(group, group->map->groups[index].log);
}

/* Of groups that have slots and are not lost; of the own one this moment's. */
static uint64_t mean_of(const struct group *group) {
    uint64_t sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->map->group_count; i++) {
        if (group->group_has_slots[i] && !is_lost(group, i)) {
            sum += group->inode_counts[i];
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

/* Up to here a group is as good as others: what is known of it is seconds old, and all that is made
 * meanwhile is not to go to the one that had a few less. */
static uint64_t much_of(uint64_t mean) {
    return mean + MAX(mean / 4, (uint64_t)DIFFERENCE_MIN);
}

/* It has slots, is not lost, nor known to be away, and not too many wait for it. */
static bool is_there(const struct group *group, uint32_t index) {
    return group->group_has_slots[index] && !is_lost(group, index) &&
           crossings_have_place(group, index) &&
           !(group->rpc && rpc_is_away(group->rpc, group->map->groups[index].log));
}

/* Of those that are there one has room. */
static bool has_room(const struct group *group) {
    bool has = false;

    for (uint32_t i = 0; i < group->map->group_count && !has; i++) {
        has = !group->room.group_is_full[i] && is_there(group, i);
    }
    return has;
}

/* May be drawn; where none has room all may that are there. */
static bool is_choice(const struct group *group, uint32_t index, bool room) {
    return !(room && group->room.group_is_full[index]) && is_there(group, index);
}

static uint64_t weight_of(const struct group *group, uint32_t index, bool room, uint64_t mean) {
    uint64_t inodes = group->inode_counts[index];

    return is_choice(group, index, room) && inodes < much_of(mean) ? much_of(mean) - inodes : 0;
}

/* By the call and how often it has begun anew. */
static uint64_t random_of(const struct transaction *transaction, const struct call *call) {
    uint64_t random = (call->header.session.value << 32) + call->header.sequence +
                      ((uint64_t)crossing_tries(transaction) << 48);

    random = (random ^ random >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    random = (random ^ random >> 32) * UINT64_C(0x94d049bb133111eb);
    return random >> 32;
}

static struct log_id draw(const struct group *group, bool weighs, uint64_t random) {
    const struct cluster_map *map = group->map;
    bool room = has_room(group);
    uint64_t mean = mean_of(group);
    uint64_t sum = 0;
    bool alike;

    for (uint32_t i = 0; weighs && i < map->group_count; i++) {
        sum += weight_of(group, i, room, mean);
    }
    alike = sum == 0;
    for (uint32_t i = 0; alike && i < map->group_count; i++) {
        sum += is_choice(group, i, room);
    }
    random = sum > 0 ? random % sum : 0;
    for (uint32_t i = 0; i < map->group_count && sum > 0; i++) {
        uint64_t weight = alike ? is_choice(group, i, room) : weight_of(group, i, room, mean);

        if (random < weight) {
            return map->groups[i].log;
        }
        random -= weight;
    }
    return kv_log_id(group->kv);
}

int draw_log(struct transaction *transaction, const struct call *call, struct log_id *ret_log) {
    struct group *group = transaction->group;
    bool away = false;

    *ret_log = crossing_promised(transaction);
    if (ret_log->value != 0) {
        return 0;
    }
    *ret_log = kv_log_id(group->kv);
    if (slots_has_all(&group->slots)) {
        return 0;
    }
    if (group->map_group < MAP_GROUPS_MAX) {
        group->inode_counts[group->map_group] = group->numbers.inode_count;
        group->room.group_is_full[group->map_group] = group->room.is_full;
        away = group->numbers.inode_count > much_of(mean_of(group)) ||
               (group->room.is_full && has_room(group));
    }
    int r = away ? 0 : is_near(transaction, call->request.mkdir.parent, &away);
    if (r == 0 && away) {
        *ret_log =
            draw(group, crossing_tries(transaction) < WEIGHED_TRIES, random_of(transaction, call));
    }
    return r;
}
