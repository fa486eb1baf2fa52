/* See claim.h. */
#include "claim.h"
#include <stdlib.h>

void claims_add(struct claims *claims, enum claim_kind kind, uint64_t position, size_t event) {
    if (claims->count == claims->capacity) {
        claims->capacity = claims->capacity > 0 ? 2 * claims->capacity : 256;
        claims->items = realloc(claims->items, claims->capacity * sizeof *claims->items);
        if (!claims->items) {
            abort();
        }
    }
    claims->items[claims->count++] = (struct claim){kind, position, event};
}

struct bounds claims_bounds(const struct claims *claims, size_t point, uint64_t first) {
    struct bounds bounds = {first, first, first, false};

    for (size_t i = 0; i < claims->count && claims->items[i].event < point; i++) {
        const struct claim *claim = &claims->items[i];

        switch (claim->kind) {
        case CLAIM_SEALED:
            bounds.least_by_kill = MAX(bounds.least_by_kill, claim->position);
            break;
        case CLAIM_SYNCED:
            bounds.least_by_power = MAX(bounds.least_by_power, claim->position);
            bounds.least_by_kill = MAX(bounds.least_by_kill, claim->position);
            break;
        case CLAIM_POWER:
            bounds.least_by_kill = bounds.least_by_power;
            bounds.powered = true;
            break;
        case CLAIM_RESUMED:
            bounds.least_by_kill = claim->position;
            bounds.most = claim->position;
            bounds.powered = false;
            break;
        }
    }
    return bounds;
}

void claims_deinit(struct claims *claims) {
    free(claims->items);
    *claims = (struct claims){0};
}
