/* Calls that wait for a newer map.
 *
 *     map_wait --a newer one is there--> answered at once
 *              --all places are taken--> answered at once: is_full
 *              --else--> waits --a version is on disk; its time is over--> answered
 *                              --the same asker asks again--> discarded: the newer one waits
 *
 * It is a hint and nothing more: who gets no answer, or finds no place, learns of the version by
 * its next sign of life (node_join, session_renew). So nothing here outlives a start, and no place
 * is kept for anybody. A link that breaks has its question asked again, whose copy is known by the
 * asker's number and takes the place of the first: an asker has one place.
 *
 * A call costs a look into a table of buckets; a tick what has waited for long enough, and what
 * waits in this process, which is few; a version all that wait.
 *
 * Memory: map_waits_max places, touched when used; of who waits the carrier keeps the call. */
#include "manager/map_waits.h"
#include "base/bug.h"
#include <stdlib.h>

enum { BUCKETS = 1024 };
#define WAIT_NS (30 * NS_PER_S)

struct map_wait {
    struct call *call;
    uint64_t since_ns;
    struct list_node node;   /* in the order of their coming, or free */
    struct list_node bucket; /* by the asker */
};

struct manager_map_waits {
    struct map_wait *places;
    uint32_t place_count;
    uint32_t used_count; /* of the places, ever */
    struct list free;
    struct list far;  /* of other processes, the oldest first, */
    struct list near; /* and of this one, whose calls lie in their askers' memory */
    struct list buckets[BUCKETS];
    bool is_closed;
};

int manager_map_waits_new(struct manager *manager) {
    uint32_t places_max = manager->options.map_waits_max;
    struct manager_map_waits *waits = calloc(1, sizeof *waits);

    if (!waits) {
        return -ERR_NO_MEMORY;
    }
    manager->map_waits = waits;
    waits->place_count = places_max > 0 ? places_max : MANAGER_MAP_WAITS_DEFAULT;
    waits->places = calloc(waits->place_count, sizeof *waits->places);
    list_init(&waits->free);
    list_init(&waits->far);
    list_init(&waits->near);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        list_init(&waits->buckets[i]);
    }
    return waits->places ? 0 : -ERR_NO_MEMORY;
}

void manager_map_waits_free(struct manager *manager) {
    if (manager->map_waits) {
        free(manager->map_waits->places);
        free(TAKE_PTR(manager->map_waits));
    }
}

static uint64_t who_of(const struct call *call) {
    return call->request.map_wait.who;
}

static struct list *bucket_of(struct manager_map_waits *waits, const struct call *call) {
    uint64_t mixed = (who_of(call) ^ call->life[0]) * UINT64_C(0x9e3779b97f4a7c15);

    return &waits->buckets[mixed >> 32 & (BUCKETS - 1)];
}

/* By the process as well: another's number is of no use. */
static struct map_wait *wait_find(struct manager_map_waits *waits, const struct call *call) {
    struct list *bucket = bucket_of(waits, call);

    for (struct list_node *node = list_first(bucket); node; node = list_next(bucket, node)) {
        struct map_wait *wait = CONTAINER_OF(node, struct map_wait, bucket);

        if (who_of(wait->call) == who_of(call) &&
            memcmp(wait->call->life, call->life, sizeof call->life) == 0) {
            return wait;
        }
    }
    return NULL;
}

/* The place is free; its call is the caller's to answer. */
static struct call *wait_end(struct manager *manager, struct map_wait *wait) {
    struct manager_map_waits *waits = manager->map_waits;

    list_remove(&wait->node);
    list_remove(&wait->bucket);
    list_push_back(&waits->free, &wait->node);
    atomic_fetch_sub_explicit(&manager->maps_waiting, 1, memory_order_relaxed);
    return TAKE_PTR(wait->call);
}

static void wait_answer(struct manager *manager, struct call *call, bool is_full) {
    call->reply.map_wait.version = manager->map->version;
    call->reply.map_wait.is_full = is_full;
    call_reply(call, 0);
}

static struct map_wait *place_take(struct manager_map_waits *waits) {
    struct list_node *node = list_pop_front(&waits->free);

    if (node) {
        return CONTAINER_OF(node, struct map_wait, node);
    }
    return waits->used_count < waits->place_count ? &waits->places[waits->used_count++] : NULL;
}

void manager_map_wait(struct manager *manager, struct call *call) {
    struct manager_map_waits *waits = manager->map_waits;
    struct map_wait *wait = wait_find(waits, call);

    if (wait) {
        call_discard(wait_end(manager, wait));
    }
    if (call->request.map_wait.known_version < manager->map->version) {
        wait_answer(manager, call, false);
        return;
    }
    wait = waits->is_closed ? NULL : place_take(waits);
    if (!wait) {
        wait_answer(manager, call, true);
        return;
    }
    *wait = (struct map_wait){.call = call, .since_ns = env_now_ns(manager->env)};
    list_push_back((call->life[0] | call->life[1]) ? &waits->far : &waits->near, &wait->node);
    list_push_back(bucket_of(waits, call), &wait->bucket);
    atomic_fetch_add_explicit(&manager->maps_waiting, 1, memory_order_relaxed);
}

static void list_end(struct manager *manager, struct list *list, int result) {
    struct list_node *node;

    while ((node = list_first(list))) {
        struct call *call = wait_end(manager, CONTAINER_OF(node, struct map_wait, node));

        if (result < 0) {
            call_reply(call, result);
        } else {
            wait_answer(manager, call, manager->map_waits->is_closed);
        }
    }
}

static void waits_end(struct manager *manager, int result) {
    list_end(manager, &manager->map_waits->near, result);
    list_end(manager, &manager->map_waits->far, result);
}

void manager_map_waits_answer(struct manager *manager) {
    if (!BUG(UNPUSHED)) {
        waits_end(manager, 0);
    }
}

void manager_map_waits_close(struct manager *manager) {
    manager->map_waits->is_closed = true;
    waits_end(manager, 0);
}

void manager_map_waits_refuse(struct manager *manager, int result) {
    waits_end(manager, result);
}

static bool is_over(const struct manager *manager, const struct map_wait *wait, uint64_t now_ns) {
    uint64_t wait_ns = manager->options.map_wait_ns;

    return now_ns - wait->since_ns >= (wait_ns > 0 ? wait_ns : WAIT_NS);
}

void manager_map_waits_tick(struct manager *manager) {
    struct manager_map_waits *waits = manager->map_waits;
    uint64_t now_ns = env_now_ns(manager->env);
    struct list_node *node;

    while ((node = list_first(&waits->far)) &&
           is_over(manager, CONTAINER_OF(node, struct map_wait, node), now_ns)) {
        wait_answer(manager, wait_end(manager, CONTAINER_OF(node, struct map_wait, node)), false);
    }
    for (node = list_first(&waits->near); node;) {
        struct map_wait *wait = CONTAINER_OF(node, struct map_wait, node);
        int r = call_given_up(wait->call, now_ns);

        node = list_next(&waits->near, node);
        if (r < 0) {
            call_reply(wait_end(manager, wait), r);
        } else if (is_over(manager, wait, now_ns)) {
            wait_answer(manager, wait_end(manager, wait), false);
        }
    }
}
