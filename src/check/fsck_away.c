/* The contract is in fsck_away.h. */
#include "check/fsck_away.h"
#include <stdlib.h>

/* NULL: each target is waited for. */
static struct fsck_target *target_find(const struct fsck *fsck, struct target_id id) {
    const struct cluster_map *map = fsck->cluster->map;
    const struct map_target *target = cluster_map_target(map, id);

    return fsck->cluster->targets && target ? &fsck->cluster->targets[target - map->targets] : NULL;
}

int fsck_is_there(struct fsck *fsck, struct target_id target) {
    struct fsck_target *known = target_find(fsck, target);

    if (!known || known->silence == 0) {
        return 0;
    }
    fsck->needed = known;
    return -ERR_AWAY;
}

/* It answers nothing, or that it serves nobody: it stops, has failed, was declared lost. */
static bool is_silence(int r) {
    return r == -ERR_AWAY || r == -ERR_TIMED_OUT || r == -ERR_CLOSED || r == -ERR_STALE_MAP ||
           r == -ERR_IO || r == -ERR_TARGET_LOST;
}

/* Who was away may have come back a moment ago, and nobody here knows it yet: a patience would end
 * the question at once. So the first one, which finds who is away, waits. */
static void call_prepare(const struct fsck *fsck, struct target_id target, bool first,
                         struct call *call) {
    const struct fsck_cluster *cluster = fsck->cluster;

    call->header.log = cluster_map_log_of(cluster->map, target);
    if (cluster->targets) {
        call->patience_ns = first ? 0 : cluster->patience_ns;
        call->deadline_ns =
            env_now_ns(cluster->env) + (first ? cluster->patience_ns : cluster->answer_ns);
    }
}

static int answer_take(struct fsck *fsck, struct target_id target, int r) {
    struct fsck_target *known = target_find(fsck, target);

    if (!known || !is_silence(r)) {
        if (known && r == 0) {
            known->answered = true;
        }
        return r;
    }
    known->silence = r;
    fsck->needed = known;
    fsck->mdts_away += cluster_map_target(fsck->cluster->map, target)->kind == TARGET_MDT;
    return -ERR_AWAY;
}

int fsck_ask(struct fsck *fsck, struct target_id target) {
    int r = fsck->report->stopped(fsck->report->context) ? -ERR_CLOSED : 0;

    if (r == 0) {
        r = fsck_is_there(fsck, target);
    }
    if (r < 0) {
        return r;
    }
    call_prepare(fsck, target, false, &fsck->call);
    fsck->cluster->ask(fsck->cluster->context, &fsck->call, 1);
    return answer_take(fsck, target, fsck->call.result);
}

int fsck_names_are_there(struct fsck *fsck, bool is_directory, uint64_t parent) {
    int r = 0;

    if (is_directory) {
        return fsck_is_there(fsck, fsck_mdt_of(fsck, parent));
    }
    for (uint32_t i = 0; r == 0 && i < fsck->cluster->map->group_count; i++) {
        r = fsck_is_there(fsck, fsck_mdt(fsck, i));
    }
    return r;
}

int fsck_pass_by(struct fsck *fsck, int r) {
    if (r != -ERR_AWAY || !fsck->needed) {
        return r;
    }
    fsck->counts.unjudged++;
    fsck->needed->unjudged++;
    return 0;
}

static bool is_asked(const struct fsck *fsck, const struct map_target *target, uint8_t kinds) {
    const struct fsck_target *known = target_find(fsck, target->id);

    return target->kind & kinds && target->state != TARGET_LOST &&
           cluster_map_log_of(fsck->cluster->map, target->id).value != 0 &&
           (!known || known->silence == 0);
}

/* All at once, so that those who are away are waited for once. */
static int all_ask(struct fsck *fsck, uint16_t opcode, uint8_t kinds, struct call *calls) {
    const struct cluster_map *map = fsck->cluster->map;
    uint32_t count = 0;
    int result = 0;

    for (uint32_t i = 0; i < map->target_count; i++) {
        if (is_asked(fsck, &map->targets[i], kinds)) {
            calls[count] = (struct call){.header.opcode = opcode};
            call_prepare(fsck, map->targets[i].id, opcode == OP_STATFS, &calls[count++]);
        }
    }
    fsck->cluster->ask(fsck->cluster->context, calls, count);
    count = 0;
    for (uint32_t i = 0; i < map->target_count; i++) {
        if (is_asked(fsck, &map->targets[i], kinds)) {
            int r = answer_take(fsck, map->targets[i].id, calls[count++].result);

            if (result == 0 && r != -ERR_AWAY) {
                result = r;
            }
        }
    }
    return result;
}

/* Whoever is away is found by a question that each answers at once. Of small files bytes may move
 * to storage targets meanwhile, so these are synced last. */
int fsck_sync(struct fsck *fsck) {
    struct call *calls = calloc(fsck->cluster->map->target_count + 1, sizeof *calls);
    int r = calls ? all_ask(fsck, OP_STATFS, TARGET_MDT | TARGET_OST, calls) : -ERR_NO_MEMORY;

    if (r == 0) {
        r = all_ask(fsck, OP_SYNC, TARGET_MDT, calls);
    }
    if (r == 0) {
        r = all_ask(fsck, OP_SYNC, TARGET_OST, calls);
    }
    free(calls);
    return r;
}
