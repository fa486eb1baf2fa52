/* Slots that no group has ever opened go to groups that have fewer than their share, one hand-over
 * at a time (docs/internals/handover.md):
 *
 *     NONE --row on disk--> GIVING --answer--> GIVEN --map with it on disk--> NONE
 *                             ^ \--nothing to give--> NONE, and this group is not asked again
 *                             +--- a start that finds the row without the map
 *
 * Each group is told what the map gives it, until it says that it has it, and from time to time how
 * many files all have, of which each says its own. */
#include "manager/manager_internal.h"
#include "layout/map_slots.h"
#include "manager/slots.h"
#include "rpc/call.h"
#include <stdlib.h>
#include <string.h>

enum { GIVEN_MAX = 16, SLOTS_TOLD_MAX = 1024 };
#define ANSWER_NS (5 * NS_PER_S)
#define AGAIN_NS NS_PER_S
#define LOADS_NS (10 * NS_PER_S)

enum handover_stage { HANDOVER_NONE, HANDOVER_MARKING, HANDOVER_GIVING, HANDOVER_GIVEN };

/* What a group is told. */
struct telling {
    struct manager *manager;
    struct call call;
    bool out;
    uint64_t version; /* of the map, whose slots it has; 0: not known */
    uint64_t next_ns; /* when it is told again */
    uint64_t inode_count;
    size_t bulk_bytes;
    uint8_t bulk[];
};

struct manager_slots {
    enum handover_stage stage;
    struct manager_handover_row row;
    struct kv_waiter waiter;
    bool waiting;
    bool applied; /* next_map has it */
    bool giving;
    struct call give_call;
    uint64_t next_ns; /* when the giver is asked again */
    struct wire_slots given[GIVEN_MAX];
    uint32_t given_count;
    bool exhausted[MAP_GROUPS_MAX]; /* it has nothing more to give */
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

int manager_slots_load(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, 0, 0);
    struct bytes value;
    int r = kv_get(manager->kv, &key, &value);

    slots->row = (struct manager_handover_row){.format = MANAGER_ROW_FORMAT, .recorded = 1};
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (value.size != sizeof slots->row || value.data[0] != MANAGER_ROW_FORMAT) {
        return -ERR_CORRUPT;
    }
    memcpy(&slots->row, value.data, sizeof slots->row);
    slots->stage = slots->row.recorded ? HANDOVER_NONE : HANDOVER_GIVING;
    return 0;
}

static int row_put(struct manager *manager, bool recorded) {
    struct manager_handover_row row = manager->slots->row;
    struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, 0, 0);

    row.recorded = recorded;
    return kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
}

/* Of a map that does not have it the row stays what it is. */
int manager_slots_row_put(struct manager *manager) {
    return row_put(manager, manager->slots->row.recorded || manager->slots->applied);
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

/* From the group that has most to the one that has least, as much as brings neither past its share.
 * Nobody: false. */
static bool choose(const struct manager *manager, struct manager_handover_row *row) {
    const struct cluster_map *map = manager->map;
    uint32_t share = SLOT_COUNT / map->group_count;
    uint32_t counts[MAP_GROUPS_MAX] = {0};
    uint32_t from = 0;
    uint32_t to = 0;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (map->slot_groups[slot] < map->group_count) {
            counts[map->slot_groups[slot]]++;
        }
    }
    for (uint32_t i = 0; i < map->group_count; i++) {
        to = counts[i] < counts[to] ? i : to;
        if (manager->slots->exhausted[from] ||
            (counts[i] > counts[from] && !manager->slots->exhausted[i])) {
            from = i;
        }
    }
    if (counts[to] >= share || counts[from] <= share || manager->slots->exhausted[from]) {
        return false;
    }
    *row = (struct manager_handover_row){.format = MANAGER_ROW_FORMAT,
                                         .number = row->number + 1,
                                         .from = map->groups[from].log.value,
                                         .to = map->groups[to].log.value,
                                         .count = MIN(counts[from] - share, share - counts[to])};
    return true;
}

static void handover_begin(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = sizeof slots->row,
                                 .record_bytes = sizeof slots->row + KV_ROW_RECORD_BYTES};
    struct manager_handover_row before = slots->row;
    struct kv_grant grant;

    if (slots->even_version == manager->map->version) {
        return;
    }
    if (!choose(manager, &slots->row)) {
        slots->even_version = manager->map->version;
        return;
    }
    if (kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        slots->row = before;
        return;
    }
    kv_begin(manager->kv, &grant);
    if (row_put(manager, false) < 0) {
        kv_abort(manager->kv);
        slots->row = before;
        return;
    }
    (void)kv_commit(manager->kv);
    slots->stage = HANDOVER_MARKING;
    slots->waiting = true;
    slots->waiter.done = marked;
    kv_sync(manager->kv, &slots->waiter, kv_seal(manager->kv));
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
    size_t count = call->bulk_in.size / sizeof *slots->given;

    slots->giving = false;
    slots->next_ns = env_now_ns(manager->env) + AGAIN_NS;
    if (call->result < 0 || call->bulk_in.size != count * sizeof *slots->given) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_sound(manager, from, &slots->given[i])) {
            return;
        }
    }
    slots->given_count = (uint32_t)count;
    slots->exhausted[from] = count == 0;
    slots->stage = count == 0 ? HANDOVER_NONE : HANDOVER_GIVEN;
}

static void give_ask(struct manager *manager) {
    struct manager_slots *slots = manager->slots;
    uint64_t now_ns = env_now_ns(manager->env);

    if (slots->giving || now_ns < slots->next_ns) {
        return;
    }
    slots->giving = true;
    slots->give_call = (struct call){
        .header = {.opcode = OP_SLOTS_GIVE, .log = {slots->row.from}},
        .request.slots_give = {.handover = slots->row.number,
                               .to = slots->row.to,
                               .count = slots->row.count},
        .bulk_in = {.data = (uint8_t *)slots->given, .capacity = sizeof slots->given},
        .origin = &manager->actor,
        .done = given,
        .context = manager,
        .deadline_ns = now_ns + ANSWER_NS,
    };
    call_start(manager->options.rpc, &slots->give_call);
}

bool manager_slots_are_given(const struct manager *manager) {
    return manager->slots->stage == HANDOVER_GIVEN;
}

void manager_slots_apply(struct manager *manager, struct cluster_map *map) {
    struct manager_slots *slots = manager->slots;
    uint32_t to = group_of(map, slots->row.to);

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
        slots->row.recorded = 1;
        slots->stage = HANDOVER_NONE;
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
    telling->inode_count = call->reply.group_tell.inode_count;
    if (call->reply.group_tell.more) {
        telling->next_ns = now_ns;
    } else {
        telling->version = call->request.group_tell.map_version;
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

    telling->bulk_bytes = 0;
    while (request->slots < SLOTS_TOLD_MAX &&
           cluster_map_slots_next(map, group, run.first + run.count, &run)) {
        struct wire_slots slots = {run.first, run.count, run.handover};

        bulk_add(telling, &slots, sizeof slots);
        request->slots++;
    }
    for (uint32_t i = 0; i < map->group_count; i++) {
        const struct telling *other = manager->slots->tellings[i];
        struct wire_load load = {map->groups[i].log.value, other ? other->inode_count : 0};

        bulk_add(telling, &load, sizeof load);
        request->loads++;
    }
}

static void tell(struct manager *manager, uint16_t group, uint64_t now_ns) {
    struct telling **place = &manager->slots->tellings[group];

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

    /* Of one group there is nothing to hand over. */
    if (slots->stage == HANDOVER_NONE && !manager->next_map && manager->map->group_count > 1) {
        handover_begin(manager);
    } else if (slots->stage == HANDOVER_GIVING) {
        give_ask(manager);
    }
    manager_groups_tell(manager);
}

void manager_groups_tell(struct manager *manager) {
    uint64_t now_ns = env_now_ns(manager->env);

    for (uint32_t i = 0; i < manager->map->group_count; i++) {
        tell(manager, (uint16_t)i, now_ns);
    }
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
