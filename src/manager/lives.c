/* Lives of logs: of a log whose directory was copied, or put back from a backup, one life serves.
 *
 *     node_join{lives} --> all are the registered ones, on disk --------------> REGISTERED
 *         |--> one's term is not above the registered one's ------------------> OLDER
 *         |--> the registered one was heard within stands_ns: WAIT, ticket n
 *         |       it brings back a number from n on: it has read an answer that was made later
 *         |       than the first question of this one ------------------------> RUNS
 *         |       it is silent for stands_ns --> (next line)
 *         '--> life_calls --> their rows written --> living_calls --flushed--> manager_join again
 *
 * All of a node's logs, or none. A life from the place of the registered one does not wait: who
 * runs on a directory holds its lock, so the life before is dead. Nor does one of the manager's own
 * node, which is of the same directory. What is late in the network proves nothing, as it bears no
 * number that was given out later.
 *
 * Rows outlive the manager; when a life was heard does not: after a start all count as heard then.
 * A node tells its lives each second, so entries are found by a hash table with open addressing. */
#include "manager/lives.h"
#include "base/bug.h"
#include "layout/map_lost.h"
#include "manager/heard.h"
#include <stdlib.h>

enum { LIVES_MAX = 2048, HASH_PLACES = 2 * LIVES_MAX };
static_assert((HASH_PLACES & (HASH_PLACES - 1)) == 0 && LIVES_MAX < UINT16_MAX, "places");
static_assert((int)LIVES_MAX > (int)MAP_PLACES_MAX, "all logs of a map");

#define STANDS_NS (5 * NS_PER_S)

struct life {
    struct log_id log;
    uint32_t node;
    uint64_t term;
    struct log_life life;
    uint64_t place;
    uint64_t heard_ns; /* of the time that the manager was listening */
    uint64_t echoed;   /* highest number that it has brought back */
    uint64_t started;  /* the number of starts with it */
    bool is_flushed;
};

struct manager_lives {
    struct life lives[LIVES_MAX];
    uint32_t count;
    uint16_t places[HASH_PLACES]; /* 0: free; else one more than the index */
    uint64_t asked_first;         /* of this start's own life: numbers of another are not ours */
    uint64_t stands_ns;
    uint64_t asked;        /* number of the newest ticket; asked_first: none */
    uint64_t starts_first; /* of this start's own life, too; never 0 */
    uint64_t starts;
    struct kv_waiter waiter;
    bool waiting;
};

int manager_lives_new(struct manager *manager) {
    struct manager_lives *lives = calloc(1, sizeof *lives);

    if (!lives) {
        return -ERR_NO_MEMORY;
    }
    lives->stands_ns =
        manager->options.life_stands_ns > 0 ? manager->options.life_stands_ns : STANDS_NS;
    manager->lives = lives;
    return 0;
}

void manager_lives_free(struct manager *manager) {
    free(TAKE_PTR(manager->lives));
}

/* Logs' numbers are drawn at random, but for the simulator's. */
static uint16_t *place_of(struct manager_lives *lives, struct log_id log) {
    uint32_t at = (uint32_t)((log.value ^ log.value >> 32) % HASH_PLACES);

    while (lives->places[at] != 0 && lives->lives[lives->places[at] - 1].log.value != log.value) {
        at = (at + 1) % HASH_PLACES;
    }
    return &lives->places[at];
}

static struct life *life_find(struct manager_lives *lives, struct log_id log) {
    uint16_t place = *place_of(lives, log);

    return place != 0 ? &lives->lives[place - 1] : NULL;
}

/* There is room. */
static struct life *life_get(struct manager_lives *lives, struct log_id log) {
    uint16_t *place = place_of(lives, log);

    if (*place == 0) {
        assert(lives->count < LIVES_MAX);
        *place = (uint16_t)(lives->count + 1);
        lives->lives[lives->count++].log = log;
    }
    return &lives->lives[*place - 1];
}

static int row_load(struct manager *manager, struct log_id log, struct bytes value) {
    struct manager_life_row row;

    if (value.size != sizeof row || value.data[0] != MANAGER_ROW_FORMAT ||
        manager->lives->count == LIVES_MAX) {
        return -ERR_CORRUPT;
    }
    memcpy(&row, value.data, sizeof row);
    *life_get(manager->lives, log) = (struct life){
        .log = log,
        .node = row.node,
        .term = row.term,
        .life = {row.life_high, row.life_low},
        .place = row.place,
        .heard_ns = manager_listening_ns(manager),
        .started = manager->lives->starts_first,
        .is_flushed = true, /* as load_sync sees to it */
    };
    return 0;
}

int manager_lives_load(struct manager *manager) {
    static const char line[] =
        "the manager does nothing: lives cannot be read: put a whole copy of DIR/manager back";
    struct kv_key from = manager_key(MANAGER_ROW_LIFE, 0, 0);
    struct kv_key to = manager_key(MANAGER_ROW_LIFE + 1, 0, 0);
    struct kv_cursor cursor;
    struct bytes value;
    int r = 0;

    manager->lives->asked_first = manager->lives->asked = kv_life(manager->kv).low >> 1;
    manager->lives->starts_first = manager->lives->starts = (kv_life(manager->kv).high >> 1) + 1;
    kv_cursor_init(&cursor, &from, &to);
    while (r == 0 && (r = kv_next(manager->kv, &cursor, &value)) == 0) {
        r = row_load(manager, (struct log_id){kv_key_split(&cursor.key).id}, value);
    }
    if (r == -ERR_CORRUPT && manager->options.log) {
        manager->options.log(manager->options.log_context, line);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static struct wire_rows told_rows(const struct node_join_request *request) {
    return (struct wire_rows){.bytes = request->lives,
                              .row_bytes = request->lives_row_bytes,
                              .row_bytes_min = WIRE_LIFE_BYTES_MIN,
                              .count_max = WIRE_LIVES_MAX};
}

int manager_lives_check(const struct node_join_request *request) {
    const struct wire_rows rows = told_rows(request);

    return wire_rows_check(&rows);
}

static uint32_t told_count(const struct node_join_request *request) {
    const struct wire_rows rows = told_rows(request);

    return wire_rows_count(&rows);
}

static struct wire_life told_at(const struct node_join_request *request, uint32_t index) {
    const struct wire_rows rows = told_rows(request);
    struct wire_life told;

    wire_rows_get(&rows, index, &told, sizeof told);
    return told;
}

static bool is_told(const struct life *life, const struct wire_life *told) {
    return life->term == told->term &&
           log_life_is(life->life, (struct log_life){told->life_high, told->life_low});
}

/* The map has the target, or will have it. */
static bool node_serves(const struct cluster_map *map, const struct map_node *node,
                        struct log_id log) {
    bool serves = false;

    for (uint32_t i = 0; i < map->target_count && !serves; i++) {
        serves = map->targets[i].node.value == node->id.value &&
                 cluster_map_log_of(map, map->targets[i].id).value == log.value;
    }
    for (uint32_t i = 0; i < node->target_count && !serves; i++) {
        const struct target_id target = {node->first_target + i};

        serves = cluster_map_first_log(map, target).value == log.value;
    }
    return serves;
}

/* Those that are served are heard together; who was not heard with them is of a target that is
 * lost. Behind a start, until they speak, all count as heard, and may differ. */
uint64_t manager_lives_place(const struct manager *manager, uint32_t node) {
    const struct manager_lives *lives = manager->lives;
    uint64_t heard_ns = 0;
    uint64_t place = 0;

    if (node == manager->map->nodes[0].id.value) {
        return manager->options.place;
    }
    for (uint32_t i = 0; i < lives->count; i++) {
        const struct life *life = &lives->lives[i];

        if (life->node == node && life->is_flushed && life->heard_ns >= heard_ns) {
            place = life->heard_ns > heard_ns || life->place == place ? life->place : 0;
            heard_ns = life->heard_ns;
        }
    }
    return place;
}

uint64_t manager_lives_stands_ns(const struct manager *manager) {
    return manager->lives->stands_ns;
}

/* What this manager has given out since its start. */
static bool is_ours(const struct manager_lives *lives, uint64_t asked) {
    return asked > lives->asked_first && asked <= lives->asked;
}

/* Those of the manager's own node are of the process that holds the lock of its directory. */
static bool stands(const struct manager *manager, const struct life *life, uint64_t place) {
    bool is_dead =
        (place != 0 && place == life->place) || life->node == manager->map->nodes[0].id.value;

    return !is_dead && manager_listening_ns(manager) < life->heard_ns + manager->lives->stands_ns &&
           !BUG(TWO_LIVES);
}

/* NOT_TOLD: it may be registered. */
static enum lives_verdict verdict_on(const struct manager *manager, const struct life *life,
                                     const struct node_join_request *request,
                                     const struct wire_life *told) {
    if (!life) {
        return LIVES_NOT_TOLD;
    }
    if (is_told(life, told)) {
        return LIVES_REGISTERED;
    }
    if (told->term <= life->term) {
        return LIVES_OLDER;
    }
    if (!stands(manager, life, request->place)) {
        return LIVES_NOT_TOLD;
    }
    bool runs = is_ours(manager->lives, request->asked) && life->echoed >= request->asked;
    return runs ? LIVES_RUNS : LIVES_WAIT;
}

/* On all of them. */
struct judged {
    enum lives_verdict worst; /* REGISTERED: there is nothing to do */
    struct log_id log;        /* that it is about */
    uint32_t fresh;           /* may be registered, */
    uint32_t unknown;         /* of these, logs that had no life yet */
    bool unflushed;           /* one is registered, and not on disk yet */
};

static int lives_judge(const struct manager *manager, const struct map_node *node,
                       const struct node_join_request *request, struct judged *ret_judged) {
    *ret_judged = (struct judged){.worst = LIVES_REGISTERED};
    for (uint32_t i = 0; i < told_count(request); i++) {
        const struct wire_life told = told_at(request, i);
        const struct log_id log = {told.log};
        const struct life *life = life_find(manager->lives, log);
        enum lives_verdict verdict = verdict_on(manager, life, request, &told);

        if (life ? life->node != node->id.value : !node_serves(manager->map, node, log)) {
            return -ERR_INVALID;
        }
        ret_judged->fresh += verdict == LIVES_NOT_TOLD;
        ret_judged->unknown += life == NULL;
        ret_judged->unflushed |= verdict == LIVES_REGISTERED && !life->is_flushed;
        if (verdict > ret_judged->worst) {
            ret_judged->worst = verdict;
            ret_judged->log = log;
        }
    }
    return ret_judged->unknown <= LIVES_MAX - manager->lives->count ? 0 : -ERR_NO_SPACE;
}

/* They run: whoever waits for that is told when it asks again. */
static void lives_heard(struct manager *manager, const struct node_join_request *request) {
    struct manager_lives *lives = manager->lives;

    for (uint32_t i = 0; i < told_count(request); i++) {
        struct life *life = life_find(lives, (struct log_id){told_at(request, i).log});

        life->heard_ns = manager_listening_ns(manager);
        if (is_ours(lives, request->asked)) {
            life->echoed = MAX(life->echoed, request->asked);
        }
    }
}

int manager_lives_look(struct manager *manager, const struct map_node *node, struct call *call) {
    const struct node_join_request *request = &call->request.node_join;
    struct node_join_reply *reply = &call->reply.node_join;
    struct manager_lives *lives = manager->lives;
    struct judged judged;

    if (request->lives.size == 0) {
        return 0;
    }
    int r = lives_judge(manager, node, request, &judged);
    if (r < 0) {
        return r;
    }
    reply->verdict = (uint8_t)judged.worst;
    reply->log = judged.log.value;
    reply->asked = lives->asked;
    if (judged.worst == LIVES_WAIT) {
        /* It asks again under the number of its first question. */
        reply->asked = is_ours(lives, request->asked) ? request->asked : ++lives->asked;
    }
    if (judged.worst > LIVES_REGISTERED) {
        return -ERR_TWO_LIVES;
    }
    if (judged.fresh > 0 || judged.unflushed) {
        list_push_back(&manager->life_calls, &call->server_node);
        return -ERR_PENDING;
    }
    lives_heard(manager, request);
    return 0;
}

static int row_put(struct manager *manager, const struct map_node *node,
                   const struct node_join_request *request, const struct wire_life *told) {
    const struct manager_life_row row = {.format = MANAGER_ROW_FORMAT,
                                         .node = node->id.value,
                                         .term = told->term,
                                         .life_high = told->life_high,
                                         .life_low = told->life_low,
                                         .place = request->place};
    struct kv_key key = manager_key(MANAGER_ROW_LIFE, told->log, 0);

    return kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
}

/* Those that are registered already are written, too: their place may be another. */
static int rows_put(struct manager *manager, const struct map_node *node,
                    const struct node_join_request *request) {
    uint32_t count = told_count(request);
    uint32_t value_bytes = count * (uint32_t)sizeof(struct manager_life_row);
    const struct kv_need need = {.rows = count,
                                 .value_bytes = value_bytes,
                                 .record_bytes = value_bytes + count * KV_ROW_RECORD_BYTES};
    struct kv_grant grant;
    int r = kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant);

    if (r < 0) {
        return r;
    }
    kv_begin(manager->kv, &grant);
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        const struct wire_life told = told_at(request, i);

        r = row_put(manager, node, request, &told);
    }
    if (r < 0) {
        kv_abort(manager->kv);
        return r;
    }
    (void)kv_commit(manager->kv);
    (void)kv_seal(manager->kv);
    return 0;
}

static void lives_take(struct manager *manager, const struct map_node *node,
                       const struct node_join_request *request) {
    for (uint32_t i = 0; i < told_count(request); i++) {
        const struct wire_life told = told_at(request, i);
        const struct log_id log = {told.log};

        *life_get(manager->lives, log) = (struct life){
            .log = log,
            .node = node->id.value,
            .term = told.term,
            .life = {told.life_high, told.life_low},
            .place = request->place,
            .heard_ns = manager_listening_ns(manager),
            .started = ++manager->lives->starts,
        };
    }
}

uint64_t manager_lives_starts(const struct manager *manager) {
    return manager->lives->starts;
}

/* A number of before this start of the manager says nothing: whoever it may be has to be looked
 * at; but for one that is lost, which waits for nobody. */
void manager_lives_starts_get(struct manager *manager, struct call *call) {
    struct manager_lives *lives = manager->lives;
    uint64_t known = call->request.log_starts.known;
    bool is_own = known >= lives->starts_first && known <= lives->starts;
    uint32_t places = cluster_map_log_places(manager->map);
    struct buffer *out = &call->bulk_in;

    call->reply.log_starts =
        (struct log_starts_reply){.starts = lives->starts, .row_bytes = sizeof(struct wire_start)};
    out->size = 0;
    for (uint32_t i = 0; i < places; i++) {
        const struct map_log log = cluster_map_log_at(manager->map, i);
        const struct life *life = life_find(lives, log.id);
        const struct wire_start start = {.log = log.id.value, .term = life ? life->term : 0};

        if (log.id.value == 0 || log.kind != TARGET_MDT ||
            cluster_map_place_is_lost(manager->map, i) ||
            (is_own && (!life || life->started <= known))) {
            continue;
        }
        if (out->capacity - out->size < sizeof start) {
            out->size = 0;
            call_reply(call, -ERR_TOO_SMALL);
            return;
        }
        memcpy(out->data + out->size, &start, sizeof start);
        out->size += sizeof start;
    }
    call_reply(call, 0);
}

static void lives_flushed(struct kv_waiter *waiter, int result) {
    struct manager_lives *lives = CONTAINER_OF(waiter, struct manager_lives, waiter);

    lives->waiting = false;
    for (uint32_t i = 0; result == 0 && i < lives->count; i++) {
        lives->lives[i].is_flushed = true;
    }
}

/* It may be refused by now, so it is looked at once more. An error: it stays. */
static int life_call_step(struct manager *manager, struct call *call) {
    const struct node_join_request *request = &call->request.node_join;
    const struct map_node *node = manager_heard_node(manager, request->key_high, request->key_low);
    struct judged judged;
    int r = lives_judge(manager, node, request, &judged);

    if (r < 0 || judged.worst > LIVES_REGISTERED || (judged.fresh == 0 && !judged.unflushed)) {
        manager_join(manager, call);
        return 0;
    }
    if (judged.fresh > 0) {
        r = rows_put(manager, node, request);
        if (r < 0) {
            return r;
        }
        lives_take(manager, node, request);
    }
    list_push_back(&manager->living_calls, &call->server_node);
    return 0;
}

/* Where there is no room now the rest waits. */
static void lives_write(struct manager *manager) {
    struct list_node *node;
    int r = 0;

    while (r == 0 && (node = list_pop_front(&manager->life_calls))) {
        r = life_call_step(manager, CONTAINER_OF(node, struct call, server_node));
        if (r < 0) {
            list_push_front(&manager->life_calls, node);
        }
    }
    if (!list_is_empty(&manager->living_calls)) {
        manager->lives->waiting = true;
        manager->lives->waiter.done = lives_flushed;
        kv_sync(manager->kv, &manager->lives->waiter, kv_position(manager->kv));
    }
}

void manager_lives_step(struct manager *manager) {
    struct manager_lives *lives = manager->lives;
    struct list_node *node;

    while (!lives->waiting && (node = list_pop_front(&manager->living_calls))) {
        manager_join(manager, CONTAINER_OF(node, struct call, server_node));
    }
    if (!lives->waiting && !list_is_empty(&manager->life_calls)) {
        lives_write(manager);
    }
}
