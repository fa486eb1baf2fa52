/* What the manager has on disk: reading it at a start, and each change. */
#include "manager/manager_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS_AHEAD = 1024, MAP_BYTES_MAX = sizeof(struct cluster_map) + 65536 };

static struct kv_key key_of(uint8_t type, uint64_t id, uint64_t index) {
    return kv_key_make(
        (struct kv_key_fields){.space = KV_SPACE_OWNER, .type = type, .id = id, .index = index});
}

static int problem_say(struct manager *manager, int result, const char *text) {
    if (manager->problem) {
        (void)snprintf(manager->problem, 256, "%s", text);
    }
    return result;
}

static int format_check(struct manager *manager, struct bytes value, size_t size) {
    if (value.size < size) {
        return problem_say(manager, -ERR_CORRUPT, "a row of the manager is too short");
    }
    if (value.data[0] != MANAGER_FORMAT) {
        return problem_say(manager,
                           value.data[0] > MANAGER_FORMAT ? -ERR_NEWER_FORMAT : -ERR_CORRUPT,
                           "a row of the manager has another format");
    }
    return 0;
}

static int load_counters(struct manager *manager) {
    struct kv_key key = key_of(MANAGER_ROW_COUNTERS, 0, 0);
    struct manager_counters_row row;
    struct bytes value;
    int r = kv_get(manager->kv, &key, &value);

    if (r == -ERR_NOT_FOUND) {
        r = store_format(manager);
        r = r ? r : kv_get(manager->kv, &key, &value);
    }
    r = r ? r : format_check(manager, value, sizeof row);
    if (r) {
        return r;
    }
    memcpy(&row, value.data, sizeof row);
    if (row.map_bytes == 0 || row.map_bytes > MAP_BYTES_MAX) {
        return problem_say(manager, -ERR_CORRUPT, "the manager's map has no size that can be");
    }
    /* Which of the reserved ones were given is not known: none of them is given again. */
    manager->session_next = row.sessions_reserved;
    manager->session_reserved = row.sessions_reserved;
    manager->session_usable = row.sessions_reserved;
    manager->map_bytes = malloc((size_t)row.map_bytes);
    if (!manager->map_bytes) {
        return -ERR_NO_MEMORY;
    }
    manager->map_size = (size_t)row.map_bytes;
    return 0;
}

static int load_map(struct manager *manager) {
    while (manager->map_read < manager->map_size) {
        struct kv_key key = key_of(MANAGER_ROW_MAP, 0, manager->map_read / MANAGER_PIECE_BYTES);
        size_t left = manager->map_size - manager->map_read;
        size_t part = MIN(left, (size_t)MANAGER_PIECE_BYTES);
        struct bytes value;
        int r = kv_get(manager->kv, &key, &value);

        r = r == -ERR_NOT_FOUND ? -ERR_CORRUPT : r;
        r = r ? r : format_check(manager, value, sizeof(struct manager_map_row) + part);
        if (r) {
            return r;
        }
        memcpy(manager->map_bytes + manager->map_read, value.data + sizeof(struct manager_map_row),
               part);
        manager->map_read += part;
    }
    struct bytes bytes = {manager->map_bytes, manager->map_size};
    int r = cluster_map_decode(bytes, manager->map);

    if (r) {
        return problem_say(manager, r, "the manager's map cannot be read");
    }
    const struct cluster_map *given = manager->options.map;
    if (given && memcmp(given->cluster_id, manager->map->cluster_id, 16) != 0) {
        return problem_say(manager, -ERR_NOT_OURS, "the manager belongs to another cluster");
    }
    return 0;
}

static int load_member(struct manager *manager, uint64_t id, struct bytes value) {
    struct manager_session_row row;
    struct member *member;
    int r = format_check(manager, value, sizeof row);

    if (r) {
        return r;
    }
    memcpy(&row, value.data, sizeof row);
    if (row.state != MEMBER_LIVE && row.state != MEMBER_EVICTING) {
        return problem_say(manager, -ERR_CORRUPT, "a session of the manager has no known state");
    }
    member = members_add(&manager->members, id);
    if (!member) {
        return problem_say(manager, -ERR_NO_MEMORY, "there are more sessions than sessions_max");
    }
    member->manager = manager;
    member->node_id = row.node;
    member->incarnation = row.incarnation;
    member->origin[0] = row.origin[0];
    member->origin[1] = row.origin[1];
    member->state = (enum member_state)row.state;
    /* It may have renewed just before we went away: it gets its whole time again. */
    member->renewed_ns = manager->now_ns;
    return 0;
}

static int load_members(struct manager *manager) {
    struct bytes value;
    int r;

    while ((r = kv_next(manager->kv, &manager->load_cursor, &value)) == 0) {
        uint64_t id = kv_key_split(&manager->load_cursor.key).id;

        r = load_member(manager, id, value);
        if (r) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int load_step(struct manager *manager) {
    struct kv_key from = key_of(MANAGER_ROW_SESSION, 0, 0);
    struct kv_key to = key_of(MANAGER_ROW_SESSION + 1, 0, 0);
    int r = 0;

    if (manager->load_stage == LOAD_COUNTERS) {
        r = load_counters(manager);
        if (r) {
            return r;
        }
        manager->load_stage = LOAD_MAP;
    }
    if (manager->load_stage == LOAD_MAP) {
        r = load_map(manager);
        if (r) {
            return r;
        }
        kv_cursor_init(&manager->load_cursor, &from, &to);
        manager->load_stage = LOAD_MEMBERS;
    }
    if (manager->load_stage == LOAD_MEMBERS) {
        r = load_members(manager);
        if (r) {
            return r;
        }
        manager->load_stage = LOAD_DONE;
    }
    return 0;
}

/* Ends the open transaction. */
static int store_end(struct manager *manager, int result) {
    if (result) {
        kv_abort(manager->kv);
        return result;
    }
    manager->recorded = kv_commit(manager->kv);
    return 0;
}

static int put(struct manager *manager, struct kv_key key, const void *row, size_t size) {
    return kv_put(manager->kv, &key, (struct bytes){row, size});
}

static int put_counters(struct manager *manager, uint64_t reserved) {
    struct manager_counters_row row = {
        .format = MANAGER_FORMAT,
        .sessions_reserved = reserved,
        .map_bytes = manager->map_size,
    };

    return put(manager, key_of(MANAGER_ROW_COUNTERS, 0, 0), &row, sizeof row);
}

static int put_map(struct manager *manager, const uint8_t *bytes, size_t size) {
    uint8_t row[sizeof(struct manager_map_row) + MANAGER_PIECE_BYTES] = {MANAGER_FORMAT};
    int r = 0;

    for (size_t at = 0; at < size && r == 0; at += MANAGER_PIECE_BYTES) {
        size_t part = MIN(size - at, (size_t)MANAGER_PIECE_BYTES);

        memcpy(row + sizeof(struct manager_map_row), bytes + at, part);
        r = put(manager, key_of(MANAGER_ROW_MAP, 0, at / MANAGER_PIECE_BYTES), row,
                sizeof(struct manager_map_row) + part);
    }
    return r;
}

int store_format(struct manager *manager) {
    const struct cluster_map *map = manager->options.map;
    size_t size = map ? cluster_map_size(map) : 0;
    struct buffer bytes = {.data = malloc(size + 1), .capacity = size};
    int r;

    if (!bytes.data) {
        return -ERR_NO_MEMORY;
    }
    if (size == 0 || size > MAP_BYTES_MAX) {
        free(bytes.data);
        return problem_say(manager, -ERR_INVALID, "an empty manager needs a cluster map");
    }
    cluster_map_encode(map, &bytes);
    manager->map_size = bytes.size;
    kv_begin(manager->kv);
    r = put_counters(manager, 1);
    r = store_end(manager, r ? r : put_map(manager, bytes.data, bytes.size));
    free(bytes.data);
    (void)kv_seal(manager->kv);
    return r ? r : kv_failure(manager->kv);
}

int store_reserve(struct manager *manager) {
    uint64_t reserved = manager->session_next + SESSIONS_AHEAD;
    int r;

    kv_begin(manager->kv);
    r = store_end(manager, put_counters(manager, reserved));
    if (r == 0) {
        manager->session_reserved = reserved;
        manager->reserved_position = manager->recorded;
    }
    return r;
}

int store_member(struct manager *manager, struct member *member) {
    struct manager_session_row row = {
        .format = MANAGER_FORMAT,
        .state = (uint8_t)member->state,
        .node = member->node_id,
        .incarnation = member->incarnation,
        .origin = {member->origin[0], member->origin[1]},
    };

    kv_begin(manager->kv);
    return store_end(manager,
                     put(manager, key_of(MANAGER_ROW_SESSION, member->id, 0), &row, sizeof row));
}

int store_member_gone(struct manager *manager, const struct member *member) {
    struct kv_key key = key_of(MANAGER_ROW_SESSION, member->id, 0);

    kv_begin(manager->kv);
    return store_end(manager, kv_delete(manager->kv, &key));
}
