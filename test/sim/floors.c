/* Tables of outcomes, compared with who has a session. */
#include "floors.h"
#include "life.h"
#include <inttypes.h>

struct kept {
    const struct node *client;
    const struct node *target;
    uint32_t count;
};

static uint32_t kept_at(const struct node *target, struct session_id session) {
    const struct kv *kv = target->life ? life_kv(target->life) : NULL;

    return kv ? kv_outcomes_of(kv, session) : 0;
}

static struct kept kept_any(struct world *world) {
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct node *client = &world->clients[i];
        const struct shoal_client *shoal = node_client(client);

        for (uint32_t j = 0; shoal && !client_is_fenced(shoal) && j < world->node_count; j++) {
            const struct node *target = &world->nodes[j];
            uint32_t count =
                target->role == NODE_CLIENT ? 0 : kept_at(target, client_session(shoal));

            if (count > 0) {
                return (struct kept){client, target, count};
            }
        }
    }
    return (struct kept){0};
}

bool floors_are_told(struct world *world) {
    return kept_any(world).count == 0;
}

void floors_print(struct world *world, char failure[600]) {
    struct kept kept = kept_any(world);

    (void)snprintf(failure, 600, "%s keeps %" PRIu32 " outcomes of %s, which is idle",
                   sim_process_name(kept.target->process), kept.count,
                   sim_process_name(kept.client->process));
}
