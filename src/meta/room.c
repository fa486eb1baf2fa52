/* The contract is in room.h. */
#include "meta/room.h"
#include "meta/group_internal.h"
#include <inttypes.h>
#include <stdio.h>

#define LOOK_NS NS_PER_S

static void room_say(const struct group *group) {
    const struct kv_options *options = &group->options.kv;
    char line[160];

    if (options->log) {
        snprintf(line, sizeof line,
                 group->room.is_full ? "metadata target %" PRIu32 " is more than %d %% full: new "
                                       "directories go to others that have room"
                                     : "metadata target %" PRIu32
                                       " is less than %d %% full again: it "
                                       "gets new directories",
                 group->options.target.value,
                 group->room.is_full ? (int)ROOM_FULL_PERCENT : (int)ROOM_FREE_PERCENT);
        options->log(options->log_context, line);
    }
}

void room_tick(struct group *group) {
    struct kv_space space;

    if (group->now_ns < group->room.look_ns) {
        return;
    }
    group->room.look_ns = group->now_ns + LOOK_NS;
    kv_space_get(group->kv, &space);
    uint64_t all = space.used_bytes + space.available_bytes;
    bool was_full = group->room.is_full;
    uint64_t percent = was_full ? ROOM_FREE_PERCENT : ROOM_FULL_PERCENT;
    bool is_above = space.used_bytes * 100 > all * percent;
    group->room.is_full = space.available_bytes == 0 || is_above;
    if (group->room.is_full != was_full) {
        room_say(group);
    }
}
