/* How far the transactions of a group have come. */
#include "cuts.h"
#include "meta/crossing_internal.h"

static void crossing_add(struct cuts *cuts, const struct crossing *crossing) {
    switch (crossing->stage) {
    case CROSSING_LOOKS:
        cuts->looks += crossing->looking;
        break;
    case CROSSING_PREPARES:
        cuts->prepares++;
        break;
    case CROSSING_DECIDED:
        cuts->decisions++;
        break;
    case CROSSING_COMMITS:
        cuts->commits++;
        break;
    case CROSSING_PREPARED:
    case CROSSING_ABORTS:
    case CROSSING_KNOWN:
        break;
    }
}

void cuts_add(struct cuts *cuts, const struct group *group) {
    const struct list *all = &group->crossings.all;
    const struct promises *promises = &group->promises;
    uint64_t prepared = list_count(&promises->prepared);

    for (struct list_node *node = list_first(all); node; node = list_next(all, node)) {
        crossing_add(cuts, CONTAINER_OF(node, struct crossing, node));
    }
    cuts->promises += prepared;
    cuts->marks += promises->count - prepared;
}
