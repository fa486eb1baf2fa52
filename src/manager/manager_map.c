/* The map in the manager's store: pieces of its bytes. */
#include "manager/manager_internal.h"
#include "manager/slots.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAP_BYTES_MAX = 1024 * 1024, PIECES_MAX = MAP_BYTES_MAX / MANAGER_PIECE_BYTES + 1 };

/* Answers the record's position. What a longer map has left goes. */
static int map_put(struct manager *manager, struct bytes bytes, uint64_t *ret_position) {
    uint32_t pieces = (uint32_t)((bytes.size + MANAGER_PIECE_BYTES - 1) / MANAGER_PIECE_BYTES);
    uint32_t rows = MAX(pieces, manager->map_pieces) + 1;
    uint32_t value_bytes = (uint32_t)(bytes.size + sizeof(struct manager_handover_row));
    const struct kv_need need = {.rows = rows,
                                 .value_bytes = value_bytes,
                                 .record_bytes = value_bytes + rows * KV_ROW_RECORD_BYTES};
    struct kv_grant grant;
    int r = kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant);

    if (r < 0) {
        return r == -ERR_INVALID ? -ERR_NO_SPACE : r; /* No record is so long. */
    }
    kv_begin(manager->kv, &grant);
    for (size_t at = 0; at < bytes.size && r == 0; at += MANAGER_PIECE_BYTES) {
        struct kv_key key = manager_key(MANAGER_ROW_MAP, 0, at / MANAGER_PIECE_BYTES);
        size_t size = MIN(bytes.size - at, (size_t)MANAGER_PIECE_BYTES);

        r = kv_put(manager->kv, &key, (struct bytes){bytes.data + at, size});
    }
    for (uint32_t i = pieces; i < manager->map_pieces && r == 0; i++) {
        struct kv_key key = manager_key(MANAGER_ROW_MAP, 0, i);

        r = kv_delete(manager->kv, &key);
    }
    r = r < 0 ? r : manager_slots_row_put(manager);
    if (r < 0) {
        kv_abort(manager->kv);
        return r;
    }
    (void)kv_commit(manager->kv);
    manager->map_pieces = pieces;
    *ret_position = kv_seal(manager->kv);
    return 0;
}

static int map_write(struct manager *manager, const struct cluster_map *map,
                     uint64_t *ret_position) {
    size_t size = cluster_map_size(map);
    struct buffer out = {malloc(size), 0, size};

    if (!out.data) {
        return -ERR_NO_MEMORY;
    }
    cluster_map_encode(map, &out);
    int r = map_put(manager, (struct bytes){out.data, out.size}, ret_position);
    free(out.data);
    return r;
}

int manager_map_store(struct manager *manager, const struct cluster_map *map,
                      struct kv_waiter *waiter) {
    uint64_t position;
    int r = map_write(manager, map, &position);

    if (r == 0) {
        kv_sync(manager->kv, waiter, position);
    }
    return r;
}

/* The pieces there are, one behind the other; manager->map_pieces of them. */
static int map_read(struct manager *manager, struct buffer *out, uint32_t ret_ends[PIECES_MAX]) {
    struct kv_key from = manager_key(MANAGER_ROW_MAP, 0, 0);
    struct kv_key to = manager_key(MANAGER_ROW_MAP + 1, 0, 0);
    struct kv_cursor cursor;
    struct bytes value;
    int r;

    manager->map_pieces = 0; /* A start that waits for room reads them again. */
    kv_cursor_init(&cursor, &from, &to);
    while ((r = kv_next(manager->kv, &cursor, &value)) == 0) {
        if (value.size > out->capacity - out->size || manager->map_pieces == PIECES_MAX) {
            return -ERR_CORRUPT;
        }
        memcpy(out->data + out->size, value.data, value.size);
        out->size += value.size;
        ret_ends[manager->map_pieces++] = (uint32_t)out->size;
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

/* A version before has left pieces of a longer map behind those of a shorter one, which ends where
 * its checksum says so. They go with the next one. */
static int map_decode(struct manager *manager, const uint8_t *data, const uint32_t *ends) {
    int r = -ERR_CORRUPT;

    for (uint32_t i = manager->map_pieces; r == -ERR_CORRUPT && i > 0; i--) {
        r = cluster_map_decode((struct bytes){data, ends[i - 1]}, manager->map);
    }
    return r;
}

int manager_map_is_old(struct manager *manager, uint64_t version, const char *who) {
    char line[ADDRESS_TEXT_BYTES + 320];

    if (version <= manager->map->version) {
        return 0;
    }
    snprintf(line, sizeof line,
             "the manager's directory is an older copy: %s has version %" PRIu64
             " of the cluster map, here the newest is %" PRIu64
             "; so that nothing is given away twice it does nothing: stop this daemon, put the "
             "newest DIR/manager back, and start again",
             who, version, manager->map->version);
    if (manager->options.log) {
        manager->options.log(manager->options.log_context, line);
    }
    manager->failure = -ERR_OLD_COPY;
    return manager->failure;
}

/* What is there of the map besides the rows, shoal.conf's or the node's own, names the cluster. */
static int check_cluster(const struct manager *manager, const uint8_t cluster_id[16]) {
    if (memcmp(manager->map->cluster_id, cluster_id, 16) == 0) {
        return 0;
    }
    if (manager->options.log) {
        manager->options.log(manager->options.log_context,
                             "manager: its rows are another cluster's: put the right base.mdb and "
                             "log back");
    }
    return -ERR_OTHER_CLUSTER;
}

int manager_map_load(struct manager *manager) {
    struct buffer out = {malloc(MAP_BYTES_MAX), 0, MAP_BYTES_MAX};
    uint64_t known = manager->map->version;
    uint32_t ends[PIECES_MAX];
    uint8_t cluster_id[16];

    memcpy(cluster_id, manager->map->cluster_id, sizeof cluster_id);
    if (!out.data) {
        return -ERR_NO_MEMORY;
    }
    int r = map_read(manager, &out, ends);
    if (r == 0 && manager->map_pieces > 0) {
        r = map_decode(manager, out.data, ends);
        r = r < 0 ? r : check_cluster(manager, cluster_id);
        r = r < 0 ? r : manager_map_is_old(manager, known, "this node");
    } else if (r == 0) {
        uint64_t position;

        r = map_write(manager, manager->map, &position);
    }
    free(out.data);
    return r;
}

void manager_map_get(struct manager *manager, struct call *call) {
    call->reply.map_get.version = manager->map->version;
    call->bulk_in.size = 0;
    if (call->request.map_get.known_version < manager->map->version) {
        if (call->bulk_in.capacity < cluster_map_size(manager->map)) {
            call_reply(call, -ERR_TOO_SMALL);
            return;
        }
        cluster_map_encode(manager->map, &call->bulk_in);
    }
    call_reply(call, 0);
}
