/* The numbered list of the sessions that have ended, and telling it to all targets.
 *
 *     a session's end: number n, in one record with it --> on disk: told_number >= n
 *     teller of a target: which number does it have? --> names from there on, up to 128 a message
 *                                           '--> too far behind: bits from the lowest that lives on
 *
 * Whose number an end got is remembered for the newest of them; what is older is told as a whole:
 * all that have ended are those below the next session, less those that live. A target answers
 * when it has all on disk, with the number that it has then; so what it has lost, or never got, is
 * told from there. A group that fences some (meta/fences.h) is told when all OSTs have more.
 *
 * Thread: the manager's. Memory: a teller a target, taken at open, touched when it is told. */
#include "layout/map_lost.h"
#include "manager/manager_internal.h"
#include "manager/ended.h"
#include "rpc/transport.h"
#include <assert.h>

enum {
    TELLER_PATIENCE_S = 5,
    TELLER_REST_MS = 90,
    /* less than a tick */ NAMES_MAX = WIRE_ENDED_BYTES_MAX / 8
};

#define BITS_MAX (UINT64_C(8) * WIRE_ENDED_BYTES_MAX)

static bool is_over(const struct manager *manager, const struct manager_session *session) {
    switch (session->stage) {
    case STAGE_BEGINNING:
    case STAGE_LIVE:
        return false;
    case STAGE_MARKING:
        return session->ended_number <= manager->told_number;
    default:
        return true;
    }
}

static uint64_t lowest_living(const struct manager *manager) {
    const struct list *living = &manager->sessions.living;

    for (struct list_node *node = list_first(living); node; node = list_next(living, node)) {
        const struct manager_session *session = CONTAINER_OF(node, struct manager_session, living);

        if (!is_over(manager, session)) {
            return session->id.value;
        }
    }
    return manager->next_session;
}

bool manager_ended_advance(struct manager *manager) {
    uint64_t synced = kv_synced_position(manager->kv);
    uint64_t before = manager->told_number;

    while (manager->told_number < manager->ended_number &&
           manager->recent[(manager->told_number + 1) % MANAGER_RECENT].position <= synced) {
        manager->told_number++;
    }
    return manager->told_number > before;
}

void manager_ended_add(struct manager *manager, struct session_id session, uint64_t position) {
    manager->recent[++manager->ended_number % MANAGER_RECENT] =
        (struct manager_ended){session, position};
    manager->recent_first =
        MAX(manager->recent_first,
            manager->ended_number - MIN(manager->ended_number, MANAGER_RECENT - UINT64_C(1)));
}

/* By the places of the map's logs; NULL: there is none in this one, or its target is lost. */
static struct manager_teller *teller_at(struct manager *manager, uint32_t place) {
    struct log_id log = cluster_map_log_at(manager->map, place).id;
    struct manager_teller *teller = &manager->tellers[place];

    if (log.value == 0 || cluster_map_place_is_lost(manager->map, place)) {
        return NULL;
    }
    if (teller->log.value != log.value && !teller->telling) {
        *teller = (struct manager_teller){.manager = manager, .log = log};
    }
    return teller;
}

/* On all OSTs: those of groups come first. */
static uint64_t everywhere(struct manager *manager) {
    uint64_t least = manager->told_number;

    for (uint32_t i = MAP_GROUPS_MAX; i < cluster_map_log_places(manager->map); i++) {
        const struct manager_teller *teller = teller_at(manager, i);

        least = teller ? MIN(least, teller->number) : least;
    }
    return least;
}

static void told(struct call *call);
static void teller_step(struct manager_teller *teller);

static void message_send(struct manager_teller *teller, struct sessions_ended_request request) {
    struct manager *manager = teller->manager;

    request.everywhere = everywhere(manager);
    /* All that is told is on disk, so has a number up to this one. With one that power takes a
     * fence would wait for the end of somebody else. */
    request.newest = manager->told_number;
    teller->call = (struct call){
        .header = {.opcode = OP_SESSIONS_ENDED, .log = teller->log},
        .request.sessions_ended = request,
        .origin = &manager->actor,
        .done = told,
        .context = teller,
        .deadline_ns = env_now_ns(manager->env) + TELLER_PATIENCE_S * NS_PER_S,
    };
    teller->telling = true;
    teller->sent_number = manager->told_number;
    teller->told_ns = env_now_ns(manager->env);
    call_start(manager->options.rpc, &teller->call);
}

/* All that ended since the target's number, as far as one message takes them. */
static void names_send(struct manager_teller *teller) {
    struct manager *manager = teller->manager;
    uint64_t number = MIN(manager->told_number, teller->number + NAMES_MAX);
    size_t size = 0;

    for (uint64_t i = teller->number + 1; i <= number; i++, size += 8) {
        store_le64(teller->names + size, manager->recent[i % MANAGER_RECENT].session.value);
    }
    message_send(teller, (struct sessions_ended_request){
                             .from = teller->number,
                             .number = number,
                             .lowest = number == manager->told_number ? lowest_living(manager) : 0,
                             .names = {teller->names, size}});
}

/* The next stretch of the whole list; with its last one the target has the number that all of it
 * had when it began. */
static void bits_send(struct manager_teller *teller) {
    struct manager *manager = teller->manager;
    uint64_t end = MIN(teller->piece + BITS_MAX, manager->next_session);
    uint64_t count = end - MIN(end, teller->piece);
    bool last = end == manager->next_session;
    struct sessions_ended_request request = {.from = teller->number,
                                             .number = teller->number,
                                             .first = teller->piece,
                                             .names = {teller->names, (count + 7) / 8}};

    memset(teller->names, 0, sizeof teller->names);
    for (uint64_t i = 0; i < count; i++) {
        const struct manager_session *session =
            session_table_find(&manager->sessions, teller->piece + i);

        if (!session || is_over(manager, session)) {
            teller->names[i / 8] |= (uint8_t)(1U << i % 8);
        }
    }
    teller->piece = last ? 0 : end;
    if (last) {
        request.number = teller->whole_number;
        request.lowest = lowest_living(manager);
    }
    message_send(teller, request);
}

static void told(struct call *call) {
    struct manager_teller *teller = call->context;
    struct manager *manager = teller->manager;

    assert(teller->telling);
    teller->telling = false;
    if (call->result < 0) {
        /* What it has acknowledged it has on disk: a long list goes on from there. */
        teller->piece = call->request.sessions_ended.first;
        teller->tried_number = teller->sent_number;
        return;
    }
    bool asked = !teller->is_known;
    if (call->reply.sessions_ended.number != teller->number) {
        teller->piece = 0; /* Its list is another one than that which was being told. */
    }
    teller->is_known = true;
    teller->number = call->reply.sessions_ended.number;
    teller->fence_count = call->reply.sessions_ended.fence_count;
    teller->everywhere = MAX(teller->everywhere, call->request.sessions_ended.everywhere);
    if (manager->stopping || manager->failure < 0) {
        return;
    }
    if (teller->piece != 0) {
        bits_send(teller);
    } else if (asked) {
        teller->told_ns = 0; /* That was a question only: who attaches may be waiting. */
        teller_step(teller);
    }
}

static void teller_step(struct manager_teller *teller) {
    struct manager *manager = teller->manager;

    bool rests = teller->told_ns != 0 &&
                 env_now_ns(manager->env) - teller->told_ns < TELLER_REST_MS * NS_PER_MS;

    bool has_all = teller->is_known && teller->number >= manager->told_number;
    bool hears_more = teller->fence_count > 0 && everywhere(manager) > teller->everywhere;
    if (teller->telling || rests || (has_all && !hears_more)) {
        return;
    }
    if (!teller->is_known || has_all) {
        message_send(teller, (struct sessions_ended_request){.from = manager->told_number,
                                                             .number = manager->told_number});
    } else if (teller->number >= manager->recent_first && teller->number > 0) {
        names_send(teller);
    } else if (teller->piece != 0) {
        bits_send(teller);
    } else {
        teller->whole_number = manager->told_number;
        teller->piece = lowest_living(manager);
        bits_send(teller);
    }
}

void manager_ended_tell(struct manager *manager) {
    (void)manager_ended_advance(manager);
    for (uint32_t i = 0; i < cluster_map_log_places(manager->map); i++) {
        struct manager_teller *teller = teller_at(manager, i);

        if (teller) {
            teller_step(teller);
        }
    }
}

bool manager_ended_groups_know(struct manager *manager, uint64_t number) {
    for (uint32_t i = 0; i < manager->map->group_count; i++) {
        const struct manager_teller *teller = teller_at(manager, i);

        if (teller && MAX(teller->number, teller->tried_number) < number &&
            !rpc_is_away(manager->options.rpc, teller->log)) {
            return false;
        }
    }
    return true;
}

uint32_t manager_ended_behind(struct manager *manager) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < cluster_map_log_places(manager->map); i++) {
        const struct manager_teller *teller = teller_at(manager, i);

        count += teller && teller->number < manager->ended_number;
    }
    return count;
}

void manager_ended_cancel(struct manager *manager) {
    for (uint32_t i = 0; i < MAP_PLACES_MAX; i++) {
        if (manager->tellers[i].telling) {
            call_cancel(&manager->tellers[i].call);
        }
    }
}

bool manager_ended_is_telling(const struct manager *manager) {
    for (uint32_t i = 0; i < MAP_PLACES_MAX; i++) {
        if (manager->tellers[i].telling) {
            return true;
        }
    }
    return false;
}

static struct kv_key number_key(void) {
    return manager_key(MANAGER_ROW_COUNTER, MANAGER_COUNTER_ENDED, 0);
}

int manager_ended_put(struct manager *manager) {
    struct kv_key key = number_key();
    uint8_t number[8];

    store_le64(number, manager->ended_number + 1);
    return kv_put(manager->kv, &key, (struct bytes){number, sizeof number});
}

int manager_ended_load(struct manager *manager) {
    struct kv_key key = number_key();
    struct bytes value;
    int r = kv_get(manager->kv, &key, &value);

    if (r == 0 && value.size != 8) {
        return -ERR_CORRUPT;
    }
    if (r == 0 || r == -ERR_NOT_FOUND) {
        manager->ended_number = r == 0 ? load_le64(value.data) : 1;
        manager->told_number = manager->ended_number;
        manager->recent_first = manager->ended_number;
        r = 0;
    }
    return r;
}
