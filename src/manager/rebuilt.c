/* The contract is in rebuilt.h.
 *
 * Who has a slot: of all that the newest map and the rows of logs say of it, what has the highest
 * number of a hand-over. A giver's row may be above the map, which the manager had no time to make;
 * where it has given to a log that no map names nobody has been there, and it gets the slot back,
 * by a number above all. */
#include "manager/rebuilt.h"
#include "base/bug.h"
#include "layout/map_lost.h"
#include "layout/map_slots.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Above it is no session that a manager has given. */
#define SESSION_MAX (UINT64_MAX / 2)

int rebuilt_new(const struct cluster_map *map, struct rebuilt **ret_rebuilt) {
    struct rebuilt *rebuilt = calloc(1, sizeof *rebuilt);

    if (!rebuilt) {
        return -ERR_NO_MEMORY;
    }
    rebuilt->map = malloc(sizeof *rebuilt->map);
    if (!rebuilt->map) {
        free(rebuilt);
        return -ERR_NO_MEMORY;
    }
    cluster_map_copy(rebuilt->map, map);
    *ret_rebuilt = rebuilt;
    return 0;
}

void rebuilt_free(struct rebuilt *rebuilt) {
    if (rebuilt) {
        free(rebuilt->map);
        free(rebuilt->sessions);
        free(rebuilt->lives);
        free(rebuilt->ended);
        free(rebuilt);
    }
}

static int maps_compare(const struct cluster_map *a, const struct cluster_map *b) {
    size_t size = cluster_map_size(a);
    struct buffer bytes_a = {malloc(size), 0, size};
    struct buffer bytes_b = {malloc(size), 0, size};
    int r = bytes_a.data && bytes_b.data ? 0 : -ERR_NO_MEMORY;

    if (r == 0 && cluster_map_size(b) != size) {
        r = -ERR_CONFLICT;
    }
    if (r == 0) {
        cluster_map_encode(a, &bytes_a);
        cluster_map_encode(b, &bytes_b);
        r = bytes_a.size == bytes_b.size && memcmp(bytes_a.data, bytes_b.data, bytes_a.size) == 0
                ? 0
                : -ERR_CONFLICT;
    }
    free(bytes_a.data);
    free(bytes_b.data);
    return r;
}

int rebuilt_map_add(struct rebuilt *rebuilt, const struct cluster_map *map, bool *ret_is_newer) {
    *ret_is_newer = false;
    if (memcmp(rebuilt->map->cluster_id, map->cluster_id, sizeof map->cluster_id) != 0) {
        return -ERR_OTHER_CLUSTER;
    }
    if (map->version == rebuilt->map->version) {
        return maps_compare(rebuilt->map, map);
    }
    if (map->version > rebuilt->map->version) {
        cluster_map_copy(rebuilt->map, map);
        *ret_is_newer = true;
    }
    return 0;
}

bool rebuilt_needs(const struct rebuilt *rebuilt, const struct map_node *node) {
    const struct cluster_map *map = rebuilt->map;

    for (uint32_t i = 0; i < map->target_count; i++) {
        if (map->targets[i].node.value == node->id.value && map->targets[i].state != TARGET_LOST) {
            return true;
        }
    }
    return false;
}

int rebuilt_lose(struct rebuilt *rebuilt, struct node_id node) {
    struct cluster_map *map = rebuilt->map;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < map->target_count; i++) {
        if (map->targets[i].node.value == node.value && map->targets[i].state != TARGET_LOST) {
            r = cluster_map_lose(map, map->targets[i].id);
        }
    }
    return r;
}

/* Index of the log's group; group_count: none. */
static uint32_t group_of(const struct cluster_map *map, struct log_id log) {
    uint32_t i = 0;

    while (i < map->group_count && map->groups[i].log.value != log.value) {
        i++;
    }
    return i;
}

int rebuilt_slots_add(struct rebuilt *rebuilt, struct log_id log,
                      const struct rebuilt_slots *slots) {
    struct cluster_map *map = rebuilt->map;
    uint32_t giver = group_of(map, log);
    uint32_t group = group_of(map, slots->of);
    bool is_given = group == map->group_count;

    assert(!rebuilt->is_finished);
    if (giver == map->group_count || slots->count == 0 || slots->count > SLOT_COUNT ||
        slots->first > SLOT_COUNT - slots->count ||
        slots->handover > UINT32_MAX - REBUILT_STEP_SHORT) {
        return -ERR_CORRUPT;
    }
    rebuilt->handover = MAX(rebuilt->handover, slots->handover);
    for (uint32_t slot = slots->first; slot < slots->first + slots->count; slot++) {
        if (slots->handover > map->slot_handovers[slot]) {
            map->slot_groups[slot] = (uint16_t)(is_given ? giver : group);
            map->slot_handovers[slot] = (uint32_t)slots->handover;
            rebuilt->is_given[slot] = is_given;
        }
    }
    return 0;
}

/* Room for one more of them. */
static int array_grow(void **array, uint32_t count, uint32_t *capacity, size_t size_bytes) {
    if (count < *capacity) {
        return 0;
    }
    uint32_t more = *capacity > 0 ? 2 * *capacity : 64;
    void *grown = realloc(*array, more * size_bytes);

    if (!grown) {
        return -ERR_NO_MEMORY;
    }
    *array = grown;
    *capacity = more;
    return 0;
}

int rebuilt_session_add(struct rebuilt *rebuilt, const struct rebuilt_session *session) {
    void *array = rebuilt->sessions;

    assert(!rebuilt->is_finished);
    if (session->id.value == 0 || session->id.value > SESSION_MAX || session->incarnation == 0) {
        return -ERR_CORRUPT;
    }
    int r = array_grow(&array, rebuilt->session_count, &rebuilt->session_capacity, sizeof *session);
    rebuilt->sessions = array;
    if (r == 0) {
        rebuilt->sessions[rebuilt->session_count++] = *session;
        rebuilt->session_highest = MAX(rebuilt->session_highest, session->id.value);
    }
    return r;
}

int rebuilt_life_add(struct rebuilt *rebuilt, const struct rebuilt_life *life) {
    void *array = rebuilt->lives;
    int r = array_grow(&array, rebuilt->life_count, &rebuilt->life_capacity, sizeof *life);

    rebuilt->lives = array;
    if (r == 0) {
        rebuilt->lives[rebuilt->life_count++] = *life;
    }
    return r;
}

int rebuilt_list_add(struct rebuilt *rebuilt, uint64_t number, uint64_t lowest) {
    if (number > UINT64_MAX / 2 || lowest > SESSION_MAX) {
        return -ERR_CORRUPT;
    }
    rebuilt->ended_number = MAX(rebuilt->ended_number, number);
    rebuilt->session_lowest = MAX(rebuilt->session_lowest, lowest);
    rebuilt->session_highest = MAX(rebuilt->session_highest, lowest > 0 ? lowest - 1 : 0);
    return 0;
}

/* The first stretch that does not lie before the index. */
static uint32_t ended_place(const struct rebuilt *rebuilt, uint64_t index) {
    uint32_t low = 0;
    uint32_t high = rebuilt->ended_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (rebuilt->ended[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int rebuilt_ended_add(struct rebuilt *rebuilt, uint64_t index, struct bytes bits) {
    uint32_t place = ended_place(rebuilt, index);
    void *array = rebuilt->ended;

    if (index > SESSION_MAX / REBUILT_BITS || bits.size > REBUILT_BITS / 8) {
        return -ERR_CORRUPT;
    }
    int r =
        array_grow(&array, rebuilt->ended_count, &rebuilt->ended_capacity, sizeof *rebuilt->ended);
    rebuilt->ended = array;
    if (r < 0) {
        return r;
    }
    struct rebuilt_bits *ended = &rebuilt->ended[place];
    if (place == rebuilt->ended_count || ended->index != index) {
        memmove(ended + 1, ended, (rebuilt->ended_count++ - place) * sizeof *ended);
        *ended = (struct rebuilt_bits){.index = index};
    }
    for (size_t i = 0; i < 8 * bits.size; i++) {
        if (bits.data[i / 8] >> i % 8 & 1) {
            ended->bits[i / 8] |= (uint8_t)(1U << i % 8);
            rebuilt->session_highest = MAX(rebuilt->session_highest, index * REBUILT_BITS + i);
        }
    }
    return 0;
}

static bool has_ended(const struct rebuilt *rebuilt, uint64_t session) {
    uint32_t place = ended_place(rebuilt, session / REBUILT_BITS);
    uint64_t bit = session % REBUILT_BITS;

    if (session < rebuilt->session_lowest) {
        return true;
    }
    return place < rebuilt->ended_count && rebuilt->ended[place].index == session / REBUILT_BITS &&
           (rebuilt->ended[place].bits[bit / 8] >> bit % 8 & 1);
}

static int session_compare(const void *a, const void *b) {
    const struct rebuilt_session *one = a;
    const struct rebuilt_session *other = b;

    return one->id.value < other->id.value ? -1 : one->id.value > other->id.value;
}

/* What nobody has told of lies between. */
static uint64_t above(uint64_t highest, uint64_t step) {
    return BUG(LOW_REBUILT) ? highest : highest + step;
}

/* What is said of one whose list one log has, and another does not yet, is that it has ended. */
static void sessions_finish(struct rebuilt *rebuilt) {
    uint32_t count = 0;

    if (rebuilt->session_count > 0) {
        qsort(rebuilt->sessions, rebuilt->session_count, sizeof *rebuilt->sessions,
              session_compare);
    }
    for (uint32_t i = 0; i < rebuilt->session_count; i++) {
        const struct rebuilt_session *session = &rebuilt->sessions[i];
        bool is_there = count > 0 && rebuilt->sessions[count - 1].id.value == session->id.value;

        if (!is_there && !has_ended(rebuilt, session->id.value)) {
            rebuilt->sessions[count++] = *session;
        }
    }
    rebuilt->session_count = count;
    rebuilt->next_session = above(rebuilt->session_highest, REBUILT_STEP_SESSIONS) + 1;
}

/* A manager tells each target of every number from the lowest that lives on, and the target keeps a
 * bit of each. */
static bool sessions_are_near(const struct rebuilt *rebuilt) {
    return rebuilt->session_count == 0 ||
           rebuilt->session_highest - rebuilt->sessions[0].id.value <= REBUILT_SPAN_MAX;
}

static int slots_finish(struct rebuilt *rebuilt) {
    struct cluster_map *map = rebuilt->map;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        rebuilt->handover = MAX(rebuilt->handover, (uint64_t)map->slot_handovers[slot]);
    }
    if (rebuilt->handover > UINT32_MAX - REBUILT_STEP_SHORT) {
        return -ERR_OVERFLOW;
    }
    rebuilt->handover = above(rebuilt->handover, REBUILT_STEP_SHORT);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (rebuilt->is_given[slot]) {
            map->slot_handovers[slot] = (uint32_t)rebuilt->handover;
        }
    }
    return 0;
}

int rebuilt_finish(struct rebuilt *rebuilt) {
    assert(!rebuilt->is_finished);
    if (rebuilt->map->version > UINT64_MAX - REBUILT_STEP) {
        return -ERR_OVERFLOW;
    }
    int r = slots_finish(rebuilt);
    if (r < 0) {
        return r;
    }
    sessions_finish(rebuilt);
    if (!sessions_are_near(rebuilt)) {
        return -ERR_CORRUPT;
    }
    rebuilt->ended_number = above(rebuilt->ended_number, REBUILT_STEP);
    rebuilt->map->version = above(rebuilt->map->version, REBUILT_STEP);
    rebuilt->is_finished = true;
    return 0;
}
