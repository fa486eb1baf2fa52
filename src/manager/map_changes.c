/* Changes of the map, one a version: the newest CHANGES_MAX, of BYTES_MAX at most.
 *
 *     versions    40 -> 41 -> 42 -> 43 (newest)      who has 41 gets the changes to 42 and 43
 *     kept              41    42    43               who has 39 gets none: it fetches the map
 *
 * They lie in memory only: after a start of the manager who is behind fetches the map once. Each
 * one is applied to the version before when it is made, and makes the newer map, or the manager
 * stops. */
#include "manager/map_changes.h"
#include "base/bug.h"
#include "layout/map_change.h"
#include <stdlib.h>

enum { CHANGES_MAX = 64, BYTES_MAX = 4 * MAP_CHANGES_BYTES_MAX };

struct map_change {
    uint64_t from;
    struct bytes bytes;
};

/* A ring, oldest first; the last one makes the manager's map. */
struct manager_map_changes {
    struct map_change changes[CHANGES_MAX];
    uint32_t first, count;
    size_t bytes;
    uint8_t space[MAP_CHANGES_BYTES_MAX]; /* in which one is made */
};

int manager_map_changes_new(struct manager *manager) {
    manager->map_changes = calloc(1, sizeof *manager->map_changes);
    return manager->map_changes ? 0 : -ERR_NO_MEMORY;
}

static struct map_change *change_at(struct manager_map_changes *all, uint32_t index) {
    return &all->changes[(all->first + index) % CHANGES_MAX];
}

static void change_drop(struct manager_map_changes *all) {
    struct map_change *change = change_at(all, 0);

    all->bytes -= change->bytes.size;
    free((void *)(uintptr_t)change->bytes.data);
    *change = (struct map_change){.from = 0};
    all->first = (all->first + 1) % CHANGES_MAX;
    all->count--;
}

static void changes_clear(struct manager_map_changes *all) {
    while (all->count > 0) {
        change_drop(all);
    }
}

void manager_map_changes_free(struct manager *manager) {
    if (manager->map_changes) {
        changes_clear(manager->map_changes);
        free(TAKE_PTR(manager->map_changes));
    }
}

/* What it makes of the one is the other, byte by byte, as its CRC says. */
static bool change_is_right(const struct cluster_map *from, struct bytes change) {
    struct cluster_map *copy = malloc(sizeof *copy);
    bool is_right = copy != NULL;

    if (copy) {
        cluster_map_copy(copy, from);
        int r = cluster_map_changes_apply(copy, change);
        assert(r == 0);
    }
    free(copy);
    return is_right;
}

static int change_keep(struct manager_map_changes *all, uint64_t from, struct bytes made) {
    uint8_t *data = malloc(made.size);

    if (!data) {
        return -ERR_NO_MEMORY;
    }
    memcpy(data, made.data, made.size);
    while (all->count == CHANGES_MAX || (all->count > 0 && all->bytes + made.size > BYTES_MAX)) {
        change_drop(all);
    }
    *change_at(all, all->count) = (struct map_change){from, {data, made.size}};
    all->count++;
    all->bytes += made.size;
    return 0;
}

/* Without one the older ones lead nowhere. */
void manager_map_changes_note(struct manager *manager, const struct cluster_map *next) {
    struct manager_map_changes *all = manager->map_changes;
    struct buffer out = {all->space, 0, sizeof all->space};
    int r = cluster_map_change_encode(manager->map, next, &out);
    const struct bytes made = {out.data, out.size};

    if (r == 0 && !change_is_right(manager->map, made)) {
        r = -ERR_NO_MEMORY;
    }
    if (r == 0) {
        r = change_keep(all, manager->map->version, made);
    }
    if (r < 0) {
        changes_clear(all);
    }
}

static uint32_t change_find(struct manager_map_changes *all, uint64_t known_version) {
    uint32_t index = 0;

    while (index < all->count && change_at(all, index)->from != known_version) {
        index++;
    }
    return index == all->count && BUG(OTHER_BASE) ? 0 : index;
}

void manager_map_changes_get(struct manager *manager, struct call *call) {
    struct manager_map_changes *all = manager->map_changes;
    uint64_t known_version = call->request.map_changes.known_version;
    struct buffer *out = &call->bulk_in;

    call->reply.map_changes.version = manager->map->version;
    out->size = 0;
    for (uint32_t i = change_find(all, known_version);
         known_version < manager->map->version && i < all->count; i++) {
        struct bytes change = change_at(all, i)->bytes;

        if (change.size > out->capacity - out->size) {
            break; /* What fits leads to a version, from which the rest is asked. */
        }
        memcpy(out->data + out->size, change.data, change.size);
        out->size += change.size;
    }
    call_reply(call, 0);
}
