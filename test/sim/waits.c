/* The contract is in waits.h. */
#include "waits.h"
#include "life.h"
#include <inttypes.h>
#include <stdio.h>

static size_t waits_of(const struct life *life, struct wait ret_waits[WAITS_OF_TARGET]) {
    return life->group     ? waits_of_group(life->group, ret_waits)
           : life->ost     ? waits_of_ost(life->ost, ret_waits)
           : life->manager ? waits_of_manager(life->manager, ret_waits)
                           : 0;
}

/* Of one with a log. */
static bool engine_waits(const struct node *node, char ret_text[WAITS_TEXT_BYTES]) {
    const struct kv *kv = life_kv(node->life);
    char problem[256];

    if (!kv_check(kv, problem)) {
        snprintf(ret_text, WAITS_TEXT_BYTES, "%s: %.150s", sim_process_name(node->process),
                 problem);
        return true;
    }
    if (kv_synced_position(kv) < kv_position(kv)) {
        snprintf(ret_text, WAITS_TEXT_BYTES,
                 "%s: records %" PRIu64 " to %" PRIu64 " are not on disk",
                 sim_process_name(node->process), kv_synced_position(kv), kv_position(kv));
        return true;
    }
    return false;
}

static bool node_waits(const struct node *node, char ret_text[WAITS_TEXT_BYTES]) {
    struct wait waits[WAITS_OF_TARGET];
    size_t count = waits_of(node->life, waits);

    for (size_t i = 0; i < count; i++) {
        if (waits[i].count > 0) {
            snprintf(ret_text, WAITS_TEXT_BYTES, "%s: %s: %" PRIu64,
                     sim_process_name(node->process), waits[i].what, waits[i].count);
            return true;
        }
    }
    return node->role != NODE_CLIENT && engine_waits(node, ret_text);
}

bool waits_any(const struct world *world, char ret_text[WAITS_TEXT_BYTES]) {
    bool waits = false;

    for (uint32_t i = 0; !waits && i < world->node_count; i++) {
        waits = node_is_up(&world->nodes[i]) && node_waits(&world->nodes[i], ret_text);
    }
    return waits;
}
