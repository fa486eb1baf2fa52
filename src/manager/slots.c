/* Slots that no group has ever opened go to groups that have fewer than their share, one hand-over
 * at a time (docs/internals/handover.md):
 *
 *     NONE --row on disk--> GIVING --answer--> GIVEN --map with it on disk--> NONE
 *                             ^ \--nothing to give--> NONE, and this group is not asked again
 *                             |                       before it tells that it has some unopened
 *                             +--- a start that finds the row without the map
 *
 * A giver that does not answer for GIVER_PATIENCE_NS is set aside where another can give: its row
 * moves to a place of its own, as it may have given and not been heard, and it is asked again,
 * under the same number, once it answers anything. What it may have given counts as the receiver's.
 *
 * A group that is lost for good keeps its slots and gets no more. What it may have given, and was
 * not heard of, is lost with it.
 *
 * Each group is told what the map gives it, until it says that it has it, and from time to time how
 * many files all have and who is full, of which each says its own. */
#include "manager/manager_internal.h"
#include "layout/map_lost.h"
#include "layout/map_slots.h"
#include "manager/slots.h"
#include "rpc/call.h"
#include <stdlib.h>
#include <string.h>

enum { GIVEN_MAX = 16, SLOTS_TOLD_MAX = 1024 };
#define ANSWER_NS (5 * NS_PER_S)
#define AGAIN_NS NS_PER_S
#define LOADS_NS (10 * NS_PER_S)
#define GIVER_PATIENCE_NS (10 * NS_PER_S)

enum handover_stage { HANDOVER_NONE, HANDOVER_MARKING, HANDOVER_GIVING, HANDOVER_GIVEN };

/* What a group is told. */
struct telling {
    struct manager *manager;
    struct call call;
    bool out;
    uint64_t version;  /* of the map, whose slots it has; 0: not known */
    uint64_t next_ns;  /* when it is told again */
    uint64_t heard_ns; /* when it has answered last; 0: never */
    uint64_t inode_count;
    bool is_full;
    size_t bulk_bytes;
    uint8_t bulk[];
};

struct aside {
    struct manager_handover_row row;
    uint64_t since_ns;
};

struct manager_slots {
    enum handover_stage stage;
    struct manager_handover_row last; /* the newest, and its row on disk */
    struct manager_handover_row row;  /* that is under way, or was last: that one, or */
    bool is_aside;                    /* one that was set aside, the first of these: */
    struct aside asides[MAP_GROUPS_MAX];
    uint32_t aside_count;
    struct kv_waiter waiter;
    bool waiting;
    bool applied; /* next_map has it */
    bool giving;
    struct call give_call;
    uint64_t next_ns;  /* when the giver is asked again */
    uint64_t asked_ns; /* when it was asked first; 0: it was not */
    uint8_t give_space[GIVEN_MAX * WIRE_ROW_GROWTH * WIRE_SLOTS_BYTES_MIN]; /* of give_call */
    struct wire_slots given[GIVEN_MAX];
    uint32_t given_count;
    bool exhausted[MAP_GROUPS_MAX]; /* it had nothing to give, and has told of nothing since */
    uint64_t even_version;          /* of a map by which nobody gets more */
    struct telling *tellings[MAP_GROUPS_MAX];
};

int manager_slots_new(struct manager *manager) {
    manager->slots = calloc(1, sizeof *manager->slots);
    return manager->slots ? 0 : -ERR_NO_MEMORY;
}

void manager_slots_free(struct manager *manager) {
    for (uint32_t i = 0; manager->slots && i < MAP_GROUPS_MAX; i++) {
        free(manager->slots->tellings[i]);
    }
    free(manager->slots);
}

static int row_load(struct manager_slots *slots, uint64_t giver, struct bytes value) {
    bool known = value.size == sizeof slots->row && value.data[0] == MANAGER_ROW_FORMAT;

    if (!known || (giver != 0 && slots->aside_count == MAP_GROUPS_MAX)) {
        return -ERR_CORRUPT;
    }
    struct manager_handover_row *row =
        giver == 0 ? &slots->last : &slots->asides[slots->aside_count++].row;
    memcpy(row, value.data, sizeof *row);
    bool of_nobody = !row->recorded && (row->from == 0 || row->to == 0);
    return (row->from == giver || giver == 0) && !of_nobody ? 0 : -ERR_CORRUPT;
}

int manager_slots_load(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    struct kv_key from = manager_key(MANAGER_ROW_HANDOVER, 0, 0);
    struct kv_key to = manager_key(MANAGER_ROW_HANDOVER + 1, 0, 0);
    struct kv_cursor cursor;
    struct bytes value;
    int r;

    slots->last = (struct manager_handover_row){.format = MANAGER_ROW_FORMAT, .recorded = 1};
    slots->aside_count = 0;
    kv_cursor_init(&cursor, &from, &to);
    while ((r = kv_next(manager->kv, &cursor, &value)) == 0) {
        r = row_load(slots, kv_key_split(&cursor.key).id, value);
        if (r < 0) {
            return r;
        }
    }
    slots->row = slots->last;
    slots->stage = slots->row.recorded ? HANDOVER_NONE : HANDOVER_GIVING;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int row_put(struct manager *manager, uint64_t id, const struct manager_handover_row *row) {
    struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, id, 0);

    return kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)row, sizeof *row});
}

/* Of a map that does not have it the row stays what it is. */
int manager_slots_row_put(struct manager *manager) {
    const struct manager_slots *slots = manager->slots;
    struct manager_handover_row last = slots->last;

    if (slots->applied && slots->is_aside) {
        struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, slots->row.from, 0);

        return kv_delete(manager->kv, &key);
    }
    last.recorded = last.recorded || slots->applied;
    return row_put(manager, 0, &last);
}

/* Index of the log's group; group_count: none. */
static uint32_t group_of(const struct cluster_map *map, uint64_t log) {
    uint32_t i = 0;

    while (i < map->group_count && map->groups[i].log.value != log) {
        i++;
    }
    return i;
}

static void marked(struct kv_waiter *waiter, int result) {
    struct manager_slots *slots = CONTAINER_OF(waiter, struct manager_slots, waiter);

    slots->waiting = false;
    slots->stage = result == 0 ? HANDOVER_GIVING : HANDOVER_NONE;
}

static bool is_set_aside(const struct manager_slots *slots, uint64_t giver) {
    for (uint32_t i = 0; i < slots->aside_count; i++) {
        if (slots->asides[i].row.from == giver) {
            return true;
        }
    }
    return false;
}

/* How many slots each group has, or may have been given. */
static void slots_count(const struct manager *manager, uint32_t counts[MAP_GROUPS_MAX]) {
    const struct manager_slots *slots = manager->slots;
    const struct cluster_map *map = manager->map;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (map->slot_groups[slot] < map->group_count) {
            counts[map->slot_groups[slot]]++;
        }
    }
    for (uint32_t i = 0; i < slots->aside_count; i++) {
        uint32_t to = group_of(map, slots->asides[i].row.to);

        if (to < map->group_count) {
            counts[to] += slots->asides[i].row.count;
        }
    }
}

/* From the group that has most to the one that has least, as much as brings neither past its share.
 * Nobody: false. */
static bool choose(const struct manager *manager, struct manager_handover_row *ret_row) {
    const struct manager_slots *slots = manager->slots;
    const struct cluster_map *map = manager->map;
    uint32_t share = SLOT_COUNT / MAX(map->group_count, 1U); /* a map of a store may have none */
    uint32_t counts[MAP_GROUPS_MAX] = {0};
    uint32_t from = MAP_GROUPS_MAX;
    uint32_t to = 0;

    slots_count(manager, counts);
    for (uint32_t i = 0; i < map->group_count; i++) {
        bool is_lost = cluster_map_group_is_lost(map, &map->groups[i]);
        bool gives =
            !is_lost && !slots->exhausted[i] && !is_set_aside(slots, map->groups[i].log.value);

        to = !is_lost && counts[i] < counts[to] ? i : to;
        from = gives && (from == MAP_GROUPS_MAX || counts[i] > counts[from]) ? i : from;
    }
    if (from == MAP_GROUPS_MAX || counts[to] >= share || counts[from] <= share) {
        return false;
    }
    *ret_row =
        (struct manager_handover_row){.format = MANAGER_ROW_FORMAT,
                                      .number = slots->last.number + 1,
                                      .from = map->groups[from].log.value,
                                      .to = map->groups[to].log.value,
                                      .count = MIN(counts[from] - share, share - counts[to])};
    return true;
}

/* aside: a row that moves to a place of its own; or NULL. */
static void handover_mark(struct manager *manager, const struct manager_handover_row *row,
                          const struct manager_handover_row *aside) {
    struct manager_slots *slots = manager->slots;
    const struct kv_need need = {.rows = 2,
                                 .value_bytes = 2 * sizeof *row,
                                 .record_bytes = 2 * (sizeof *row + KV_ROW_RECORD_BYTES)};
    struct kv_grant grant;

    if (kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    kv_begin(manager->kv, &grant);
    int r = aside ? row_put(manager, aside->from, aside) : 0;
    r = r < 0 ? r : row_put(manager, 0, row);
    if (r < 0) {
        kv_abort(manager->kv);
        return;
    }
    (void)kv_commit(manager->kv);
    slots->last = *row;
    slots->row = *row;
    slots->is_aside = false;
    slots->asked_ns = 0;
    slots->next_ns = 0;
    slots->stage = HANDOVER_MARKING;
    slots->waiting = true;
    slots->waiter.done = marked;
    kv_sync(manager->kv, &slots->waiter, kv_seal(manager->kv));
}

/* One whose giver has answered something since it was set aside becomes the first of them. */
static bool aside_take(struct manager *manager) {
    struct manager_slots *slots = manager->slots;

    for (uint32_t i = 0; i < slots->aside_count; i++) {
        struct aside aside = slots->asides[i];
        uint32_t from = group_of(manager->map, aside.row.from);
        const struct telling *telling =
            from < manager->map->group_count ? slots->tellings[from] : NULL;

        if (telling && telling->heard_ns > aside.since_ns) {
            slots->asides[i] = slots->asides[0];
            slots->asides[0] = aside;
            slots->row = aside.row;
            slots->is_aside = true;
            slots->asked_ns = 0;
            slots->next_ns = 0;
            slots->stage = HANDOVER_GIVING;
            return true;
        }
    }
    return false;
}

static void handover_begin(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    struct manager_handover_row row;

    if (aside_take(manager) || slots->even_version == manager->map->version) {
        return;
    }
    if (choose(manager, &row)) {
        handover_mark(manager, &row, NULL);
    } else {
        slots->even_version = manager->map->version;
    }
}

/* Its giver has not answered for long. Of one that was set aside before, its row stays there. */
static void giver_pass_over(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    struct manager_handover_row row = slots->row;
    struct manager_handover_row next;

    if (slots->is_aside) {
        slots->asides[0].since_ns = env_now_ns(manager->env);
        slots->is_aside = false;
        slots->row = slots->last;
        slots->stage = HANDOVER_NONE;
        return;
    }
    if (slots->aside_count == MAP_GROUPS_MAX) {
        return;
    }
    slots->asides[slots->aside_count++] = (struct aside){row, env_now_ns(manager->env)};
    if (choose(manager, &next)) {
        handover_mark(manager, &next, &row);
    }
    if (slots->stage != HANDOVER_MARKING) {
        slots->aside_count--;
        slots->asked_ns = env_now_ns(manager->env); /* Looked at again after as long. */
    }
}

/* What was set aside and is under way has ended. */
static void aside_end(struct manager_slots *slots) {
    if (slots->is_aside) {
        slots->asides[0] = slots->asides[--slots->aside_count];
        slots->is_aside = false;
        slots->row = slots->last;
        slots->even_version = 0;
    }
}

/* Nothing is known of what it may have given, and nobody asks for it any more. Its row stays, and
 * ends likewise behind the next start. */
static void giver_is_lost(struct manager_slots *slots) {
    slots->stage = HANDOVER_NONE;
    slots->even_version = 0;
    aside_end(slots);
}

/* Likewise of those that were set aside: what they may have given is nobody's. */
static void asides_of_lost_end(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    const struct cluster_map *map = manager->map;

    for (uint32_t i = slots->is_aside ? 1 : 0; i < slots->aside_count;) {
        uint32_t from = group_of(map, slots->asides[i].row.from);

        if (from < map->group_count && cluster_map_group_is_lost(map, &map->groups[from])) {
            slots->asides[i] = slots->asides[--slots->aside_count];
            slots->even_version = 0;
        } else {
            i++;
        }
    }
}

/* It comes over a network: what is not the giver's by the map was never asked for. */
static bool is_sound(const struct manager *manager, uint32_t from, const struct wire_slots *given) {
    const struct cluster_map *map = manager->map;

    if (given->count == 0 || given->count > SLOT_COUNT ||
        given->first > SLOT_COUNT - given->count || given->handover != manager->slots->row.number) {
        return false;
    }
    for (uint32_t i = 0; i < given->count; i++) {
        if (map->slot_groups[given->first + i] != from) {
            return false;
        }
    }
    return true;
}

static void given(struct call *call) {
    struct manager *manager = call->context;
    struct manager_slots *slots = manager->slots;
    uint32_t from = group_of(manager->map, slots->row.from);
    const struct wire_rows rows = {.bytes = {call->bulk_in.data, call->bulk_in.size},
                                   .row_bytes = call->reply.slots_give.row_bytes,
                                   .row_bytes_min = WIRE_SLOTS_BYTES_MIN,
                                   .count_max = GIVEN_MAX};

    slots->giving = false;
    slots->next_ns = env_now_ns(manager->env) + AGAIN_NS;
    if (call->result == -ERR_TARGET_LOST) {
        giver_is_lost(slots);
        return;
    }
    if (call->result < 0 || wire_rows_check(&rows) < 0) {
        return;
    }
    uint32_t count = wire_rows_count(&rows);
    for (uint32_t i = 0; i < count; i++) {
        wire_rows_get(&rows, i, &slots->given[i], sizeof slots->given[i]);
        if (!is_sound(manager, from, &slots->given[i])) {
            return;
        }
    }
    slots->given_count = count;
    slots->exhausted[from] = count == 0;
    slots->stage = count == 0 ? HANDOVER_NONE : HANDOVER_GIVEN;
    if (count == 0) {
        aside_end(slots);
    }
}

static void give_ask(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    uint64_t now_ns = env_now_ns(manager->env);

    if (slots->giving || now_ns < slots->next_ns) {
        return;
    }
    slots->giving = true;
    slots->asked_ns = slots->asked_ns > 0 ? slots->asked_ns : now_ns;
    slots->give_call = (struct call){
        .header = {.opcode = OP_SLOTS_GIVE, .log = {slots->row.from}},
        .request.slots_give = {.handover = slots->row.number,
                               .to = slots->row.to,
                               .count = slots->row.count},
        .bulk_in = {.data = slots->give_space, .capacity = sizeof slots->give_space},
        .origin = &manager->actor,
        .done = given,
        .context = manager,
        .deadline_ns = now_ns + ANSWER_NS,
    };
    call_start(manager->options.rpc, &slots->give_call);
}

static void giver_step(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    uint64_t now_ns = env_now_ns(manager->env);

    if (!slots->giving && slots->asked_ns > 0 && now_ns - slots->asked_ns >= GIVER_PATIENCE_NS) {
        giver_pass_over(manager);
    }
    if (slots->stage == HANDOVER_GIVING) {
        give_ask(manager);
    }
}

bool manager_slots_are_given(const struct manager *manager) {
    return manager->slots->stage == HANDOVER_GIVEN;
}

/* By a map that says that its giver is lost what it has told last is lost as well: who has that map
 * takes what the giver has for gone, and would do so of what another one makes there. */
void manager_slots_apply(struct manager *manager, struct cluster_map *map) {
    struct manager_slots *slots = manager->slots;
    uint32_t from = group_of(map, slots->row.from);
    uint32_t to = group_of(map, slots->row.to);

    if (slots->stage == HANDOVER_GIVEN && from < map->group_count &&
        cluster_map_group_is_lost(map, &map->groups[from])) {
        giver_is_lost(slots);
    }
    slots->applied = slots->stage == HANDOVER_GIVEN && to < map->group_count;
    for (uint32_t i = 0; slots->applied && i < slots->given_count; i++) {
        const struct wire_slots *run = &slots->given[i];

        for (uint32_t slot = run->first; slot < run->first + run->count; slot++) {
            map->slot_groups[slot] = (uint16_t)to;
            map->slot_handovers[slot] = slots->row.number;
        }
    }
}

void manager_slots_recorded(struct manager *manager) {
    struct manager_slots *slots = manager->slots;

    if (slots->applied) {
        slots->applied = false;
        slots->stage = HANDOVER_NONE;
        if (slots->is_aside) {
            aside_end(slots);
        } else {
            slots->last.recorded = 1;
            slots->row = slots->last;
        }
    }
}

static void told(struct call *call) {
    struct telling *telling = call->context;
    struct manager *manager = telling->manager;
    uint64_t now_ns = env_now_ns(manager->env);

    telling->out = false;
    telling->next_ns = now_ns + (call->result < 0 ? AGAIN_NS : LOADS_NS);
    if (call->result < 0) {
        telling->version = 0;
        return;
    }
    telling->heard_ns = now_ns;
    telling->inode_count = call->reply.group_tell.inode_count;
    telling->is_full = call->reply.group_tell.is_full != 0;
    if (call->reply.group_tell.more) {
        telling->next_ns = now_ns;
        return;
    }
    telling->version = call->request.group_tell.map_version;
    uint32_t group = group_of(manager->map, call->header.log.value);
    if (group < manager->map->group_count && manager->slots->exhausted[group] &&
        call->reply.group_tell.unopened > 0) {
        manager->slots->exhausted[group] = false; /* It was asked before it had them. */
        manager->slots->even_version = 0;
    }
}

static void bulk_add(struct telling *telling, const void *data, size_t size_bytes) {
    memcpy(telling->bulk + telling->bulk_bytes, data, size_bytes);
    telling->bulk_bytes += size_bytes;
}

static void bulk_fill(struct manager *manager, struct telling *telling, uint16_t group) {
    struct group_tell_request *request = &telling->call.request.group_tell;
    const struct cluster_map *map = manager->map;
    struct map_slots run = {0};

    request->slots_row_bytes = sizeof(struct wire_slots);
    request->loads_row_bytes = sizeof(struct wire_load);
    telling->bulk_bytes = 0;
    while (request->slots < SLOTS_TOLD_MAX &&
           cluster_map_slots_next(map, group, run.first + run.count, &run)) {
        struct wire_slots slots = {run.first, run.count, run.handover};

        bulk_add(telling, &slots, sizeof slots);
        request->slots++;
    }
    for (uint32_t i = 0; i < map->group_count; i++) {
        const struct telling *other = manager->slots->tellings[i];
        struct wire_load load = {.log = map->groups[i].log.value};

        if (other) {
            load.inode_count = other->inode_count;
            load.is_full = other->is_full;
        }

        bulk_add(telling, &load, sizeof load);
        request->loads++;
    }
}

static void tell(struct manager *manager, uint16_t group, uint64_t now_ns) {
    struct telling **place = &manager->slots->tellings[group];

    if (cluster_map_group_is_lost(manager->map, &manager->map->groups[group])) {
        return;
    }
    if (!*place) {
        *place = calloc(1, sizeof **place + SLOTS_TOLD_MAX * sizeof(struct wire_slots) +
                               MAP_GROUPS_MAX * sizeof(struct wire_load));
    }
    struct telling *telling = *place;
    if (!telling || telling->out) {
        return;
    }
    bool knows = telling->version == manager->map->version;
    if (now_ns < telling->next_ns && (telling->version == 0 || knows)) {
        return;
    }
    telling->manager = manager;
    telling->call = (struct call){
        .header = {.opcode = OP_GROUP_TELL, .log = manager->map->groups[group].log},
        .request.group_tell = {.map_version = manager->map->version},
        .origin = &manager->actor,
        .done = told,
        .context = telling,
        .deadline_ns = now_ns + ANSWER_NS,
    };
    bulk_fill(manager, telling, group);
    telling->call.bulk_out[0] = (struct bytes){telling->bulk, telling->bulk_bytes};
    telling->call.bulk_out_count = 1;
    telling->out = true;
    call_start(manager->options.rpc, &telling->call);
}

void manager_slots_tick(struct manager *manager) {
    struct manager_slots *slots = manager->slots;

    asides_of_lost_end(manager);
    /* Of one group there is nothing to hand over. */
    if (slots->stage == HANDOVER_NONE && !manager->next_map && manager->map->group_count > 1) {
        handover_begin(manager);
    } else if (slots->stage == HANDOVER_GIVING) {
        giver_step(manager);
    }
    manager_groups_tell(manager);
}

void manager_groups_tell(struct manager *manager) {
    uint64_t now_ns = env_now_ns(manager->env);

    for (uint32_t i = 0; i < manager->map->group_count; i++) {
        tell(manager, (uint16_t)i, now_ns);
    }
}

bool manager_slots_inodes(const struct manager *manager, struct target_id target,
                          uint64_t *ret_inodes) {
    uint32_t group = cluster_map_group_of(manager->map, target);
    const struct telling *telling =
        group < manager->map->group_count ? manager->slots->tellings[group] : NULL;

    *ret_inodes = telling ? telling->inode_count : 0;
    return telling && telling->heard_ns > 0;
}

bool manager_slots_stop(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    bool out = slots->giving;

    if (slots->giving) {
        call_cancel(&slots->give_call);
    }
    for (uint32_t i = 0; i < MAP_GROUPS_MAX; i++) {
        struct telling *telling = slots->tellings[i];

        if (telling && telling->out) {
            call_cancel(&telling->call);
            out = true;
        }
    }
    return !out;
}
