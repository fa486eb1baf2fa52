/* The manager's sessions, compared with the list of each OST and of each metadata target. */
#include "lists.h"
#include "kv/ended_list.h"
#include "life.h"
#include "losses.h"
#include "manager/manager_format.h"
#include "meta/group_format.h"
#include "store/store_format.h"
#include "walk.h"
#include <inttypes.h>
#include <stdlib.h>

struct truth {
    uint64_t next;   /* session that was never given */
    uint64_t number; /* of the list */
    bool *lives;     /* by session */
};

/* A row's first u64; 0 when there is none. */
static uint64_t number_of(struct world *world, struct kv_key key) {
    struct kv_key to = key;
    struct walk walk;

    to.bytes[KV_KEY_BYTES - 1]++;
    walk_begin(&walk, world->manager, key, to);
    return walk_next(&walk) == 0 && walk.size >= 8 ? load_le64(walk.value) : 0;
}

static void truth_find(struct world *world, struct truth *truth) {
    struct walk walk;

    *truth = (struct truth){.next = number_of(world, manager_key(MANAGER_ROW_COUNTER, 0, 0)),
                            .number = number_of(world, manager_key(MANAGER_ROW_COUNTER, 1, 0))};
    truth->number = MAX(truth->number, UINT64_C(1)); /* before the first end */
    truth->lives = calloc(truth->next + 1, sizeof *truth->lives);
    if (!truth->lives) {
        abort();
    }
    walk_begin(&walk, world->manager, manager_key(MANAGER_ROW_SESSION, 0, 0),
               manager_key(MANAGER_ROW_SESSION, UINT64_MAX, 0));
    while (walk_next(&walk) == 0) {
        uint64_t session = kv_key_split(&walk.cursor.key).id;

        if (session < truth->next) {
            truth->lives[session] = true;
        }
    }
}

static_assert((int)STORE_ROW_ENDED == (int)ROW_ENDED, "one list for both");
static_assert((int)STORE_ROW_SESSION == (int)ROW_SESSION, "and one type of sessions");
static_assert((int)STORE_ROW_FENCE == (int)ROW_FENCE, "and of fences");

/* The bits, as the rows of a target have them; by session, up to `next`. */
static bool *list_read(struct node *target, uint64_t next, struct ended_row *ret_head) {
    bool *ended = calloc(next + 1, sizeof *ended);
    struct walk walk;

    if (!ended) {
        abort();
    }
    *ret_head = (struct ended_row){0};
    walk_begin(&walk, target, store_owner_key(STORE_ROW_ENDED, 0, 0),
               store_owner_key(STORE_ROW_ENDED, UINT64_MAX, 0));
    while (walk_next(&walk) == 0) {
        uint64_t id = kv_key_split(&walk.cursor.key).id;

        if (id == 0) {
            memcpy(ret_head, walk.value, MIN(walk.size, sizeof *ret_head));
        }
        for (uint64_t i = 0; id > 0 && i < 8 * walk.size; i++) {
            uint64_t session = (id - 1) * ENDED_BITS + i;

            if (session < next) {
                ended[session] = walk.value[i / 8] >> i % 8 & 1;
            }
        }
    }
    for (uint64_t session = 0; session < MIN(next, ret_head->lowest); session++) {
        ended[session] = true;
    }
    return ended;
}

/* While a session that lives has not come back to a metadata target, it keeps one fence of those
 * that all storage targets know, which holds files (meta/fences.h). */
static uint32_t fences_allowed(const struct node *target, const struct truth *truth) {
    bool awaits = false;

    for (uint64_t i = 1; target->role == NODE_MDT && node_is_up(target) && i < truth->next; i++) {
        awaits = awaits ||
                 (truth->lives[i] && group_awaits(target->life->group, (struct session_id){i}));
    }
    return awaits ? 1 : 0;
}

/* Sessions and fences of whom the list names. */
static uint64_t kept_find(struct node *target, const bool *ended, const struct truth *truth) {
    static const enum store_row types[] = {STORE_ROW_SESSION, STORE_ROW_FENCE};
    uint32_t allowed = fences_allowed(target, truth);
    struct walk walk;

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        walk_begin(&walk, target, store_owner_key(types[i], 0, 0),
                   store_owner_key(types[i], UINT64_MAX, 0));
        while (walk_next(&walk) == 0) {
            uint64_t session = kv_key_split(&walk.cursor.key).id;

            if (session >= truth->next || !ended[session]) {
                continue;
            }
            if (types[i] == STORE_ROW_SESSION || allowed-- == 0) {
                return session;
            }
        }
    }
    return 0;
}

static bool list_check(struct node *target, const struct truth *truth, char failure[600]) {
    const char *name = sim_process_name(target->process);
    struct ended_row head;
    bool *ended = list_read(target, truth->next, &head);
    uint64_t kept = kept_find(target, ended, truth);

    if (head.number != truth->number) {
        snprintf(failure, 600,
                 "%s has number %" PRIu64 " of the list of the ended, must be %" PRIu64, name,
                 head.number, truth->number);
    } else if (kept != 0) {
        snprintf(failure, 600, "%s keeps something of session %" PRIu64 ", which has ended", name,
                 kept);
    }
    for (uint64_t i = 1; i < truth->next && !failure[0]; i++) {
        if (ended[i] == truth->lives[i]) {
            snprintf(failure, 600, "%s takes session %" PRIu64 " for %s", name, i,
                     ended[i] ? "ended, and it lives" : "one that lives, and it has ended");
        }
    }
    free(ended);
    return !failure[0];
}

/* A session that has ended, and has something open that is not settled yet; or storage targets have
 * had to refuse it until all know of it, and that was not heard yet. */
static bool is_settling(struct node *mdt) {
    struct walk walk;

    walk_begin(&walk, mdt, store_owner_key(STORE_ROW_SESSION, 0, 0),
               store_owner_key(STORE_ROW_SESSION, UINT64_MAX, 0));
    while (walk_next(&walk) == 0) {
        const struct session_row *row = (const void *)walk.value;

        if (row->state != SESSION_LIVE) {
            return true;
        }
    }
    walk_begin(&walk, mdt, store_owner_key(STORE_ROW_FENCE, 0, 0),
               store_owner_key(STORE_ROW_FENCE, UINT64_MAX, 0));
    while (walk_next(&walk) == 0) {
        const struct fence_row *row = (const void *)walk.value;

        if (row->state == FENCE_SET) {
            return true;
        }
    }
    return false;
}

bool lists_name(struct node *mdt, struct session_id session) {
    struct kv_key key = store_owner_key(STORE_ROW_ENDED, 0, 0);
    uint64_t lowest = 0;
    struct bytes value;
    bool named;

    node_enter(mdt);
    if (kv_get(group_kv(node_group(mdt)), &key, &value) == 0) {
        lowest = ((const struct ended_row *)(const void *)value.data)->lowest;
    }
    key = store_owner_key(STORE_ROW_ENDED, 1 + session.value / ENDED_BITS, 0);
    int r = kv_get(group_kv(node_group(mdt)), &key, &value);
    size_t at = session.value % ENDED_BITS / 8;

    named = r == 0 && at < value.size && (value.data[at] >> session.value % 8 & 1);
    node_leave(mdt);
    return named || session.value < lowest;
}

bool lists_all_name(struct world *world, struct session_id session) {
    bool named = true;

    for (uint32_t i = 0; named && i < world->options.mdt_count; i++) {
        struct node *mdt = &world->mdts[i];

        named =
            node_is_absent(mdt) || node_is_lost(mdt) ||
            (node_is_up(mdt) && !mdt->is_stopped && node_group(mdt) && lists_name(mdt, session));
    }
    return named;
}

bool lists_are_told(struct world *world) {
    struct manager *manager = node_manager(world->manager);

    /* Of one that was rebuilt who is not heard ends yet. */
    return manager && manager_ending_count(manager) == 0 && manager_nameless_count(manager) == 0;
}

static bool is_awaited(const struct world *world, struct session_id id) {
    bool awaited = false;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        const struct node *mdt = &world->mdts[i];

        awaited = awaited ||
                  (node_is_up(mdt) && node_tells_lives(mdt) && group_awaits(mdt->life->group, id));
    }
    return awaited;
}

bool lists_await_nobody(struct world *world) {
    bool awaited = false;

    for (uint32_t i = 0; i < world->options.client_count; i++) {
        const struct node *client = &world->clients[i];

        awaited = awaited || (node_is_up(client) && !client_is_fenced(client->life->client) &&
                              is_awaited(world, client_session(client->life->client)));
    }
    return !awaited;
}

bool lists_are_settled(struct world *world) {
    bool settled = true;

    for (uint32_t i = 0; settled && i < world->options.mdt_count; i++) {
        struct node *mdt = &world->mdts[i];

        settled = node_is_absent(mdt) || node_is_lost(mdt) || !is_settling(mdt);
    }
    return settled;
}

bool lists_is_fenced(struct world *world, struct node *node, char failure[600]) {
    struct shoal_client *client = node_is_up(node) ? node_client(node) : NULL;
    struct manager *manager = node_is_up(world->manager) ? node_manager(world->manager) : NULL;
    struct bytes value;

    if (!client || !client_is_fenced(client)) {
        return false;
    }
    if (manager && !failure[0]) {
        uint64_t session = client_session(client).value;
        const struct kv_key key = manager_key(MANAGER_ROW_SESSION, session, 0);

        node_enter(world->manager);
        if (kv_get(manager_kv(manager), &key, &value) == 0) {
            snprintf(failure, 600,
                     "client%" PRIu32 " was told that its session %" PRIu64
                     " was evicted, which lives at the manager",
                     node->index, session);
        }
        node_leave(world->manager);
    }
    return true;
}

bool lists_check(struct world *world, char failure[600]) {
    struct truth truth;
    bool good = true;

    truth_find(world, &truth);
    for (uint32_t i = 0; good && i < world->options.ost_count; i++) {
        if (!node_is_absent(&world->osts[i]) && !node_is_lost(&world->osts[i])) {
            good = list_check(&world->osts[i], &truth, failure);
        }
    }
    for (uint32_t i = 0; good && i < world->options.mdt_count; i++) {
        if (!node_is_absent(&world->mdts[i]) && !node_is_lost(&world->mdts[i])) {
            good = list_check(&world->mdts[i], &truth, failure);
        }
    }
    free(truth.lives);
    return good;
}
