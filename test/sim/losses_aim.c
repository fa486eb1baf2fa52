/* The contract is in losses_aim.h. */
#include "losses_aim.h"
#include "meta/crossing_internal.h"

static struct node *node_of_log(struct world *world, struct log_id log) {
    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        if (!node_is_absent(&world->mdts[i]) && node_log(&world->mdts[i]).value == log.value) {
            return &world->mdts[i];
        }
    }
    return NULL;
}

/* Its decision is in no more than its ring, and told to nobody. */
static bool decides(const struct crossing *crossing) {
    return crossing->share_count > 1 &&
           (crossing->stage == CROSSING_PREPARED || crossing->stage == CROSSING_DECIDED);
}

uint64_t losses_aim(struct node *mdt, uint64_t lot) {
    const struct list *numbered = &node_group(mdt)->crossings.numbered;

    for (struct list_node *node = list_first(numbered); node; node = list_next(numbered, node)) {
        const struct crossing *crossing = CONTAINER_OF(node, struct crossing, numbered_node);

        if (decides(crossing)) {
            const struct share *share = &crossing->shares[lot % crossing->share_count];
            const struct node *other = node_of_log(mdt->world, share->draft.log);

            if (other && other != mdt) {
                world_cut(mdt->world, mdt, other);
                return crossing->number;
            }
        }
    }
    return 0;
}

bool losses_decides(struct node *mdt) {
    const struct list *numbered = &node_group(mdt)->crossings.numbered;

    for (struct list_node *node = list_first(numbered); node; node = list_next(numbered, node)) {
        if (decides(CONTAINER_OF(node, struct crossing, numbered_node))) {
            return true;
        }
    }
    return false;
}

bool losses_is_hit(struct node *mdt, uint64_t *aimed) {
    const struct list *numbered = &node_group(mdt)->crossings.numbered;

    for (struct list_node *node = list_first(numbered); node; node = list_next(numbered, node)) {
        const struct crossing *crossing = CONTAINER_OF(node, struct crossing, numbered_node);
        uint32_t known = 0;

        for (uint32_t i = 0; i < crossing->share_count; i++) {
            known += crossing->shares[i].known;
        }
        if (*aimed != 0 && crossing->number == *aimed) {
            return known > 0 && known < crossing->share_count;
        }
    }
    *aimed = 0;
    return false;
}
