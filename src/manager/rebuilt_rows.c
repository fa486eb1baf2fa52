/* Counters and the hand-over in one record, then each session, each life, and the map: what the
 * rest reads as if it had been here before. Where that is cut nothing of it counts, as the node
 * begins anew (node/local_rebuild.c). */
#include "manager/rebuilt_rows.h"
#include "manager/ended.h"
#include "manager/rebuilt.h"

enum { COUNTER_BYTES = 8 };

static int counter_put(struct manager *manager, uint64_t id, uint64_t value) {
    struct kv_key key = manager_key(MANAGER_ROW_COUNTER, id, 0);
    uint8_t bytes[COUNTER_BYTES];

    store_le64(bytes, value);
    return kv_put(manager->kv, &key, (struct bytes){bytes, sizeof bytes});
}

static int handover_put(struct manager *manager, uint64_t number) {
    const struct manager_handover_row row = {
        .format = MANAGER_ROW_FORMAT, .recorded = 1, .number = (uint32_t)number};
    struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, 0, 0);

    return kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row});
}

static int rows_begin(struct manager *manager, uint32_t rows, uint32_t value_bytes) {
    const struct kv_need need = {.rows = rows,
                                 .value_bytes = value_bytes,
                                 .record_bytes = value_bytes + rows * KV_ROW_RECORD_BYTES};
    struct kv_grant grant;
    int r = kv_admit(manager->kv, KV_CLASS_CONTROL, &need, &grant);

    if (r == 0) {
        kv_begin(manager->kv, &grant);
    }
    return r;
}

static int rows_end(struct manager *manager, int r) {
    if (r < 0) {
        kv_abort(manager->kv);
        return r;
    }
    (void)kv_commit(manager->kv);
    return 0;
}

static int numbers_write(struct manager *manager, const struct rebuilt *rebuilt) {
    int r =
        rows_begin(manager, 3, 2 * COUNTER_BYTES + (uint32_t)sizeof(struct manager_handover_row));

    if (r < 0) {
        return r;
    }
    r = counter_put(manager, MANAGER_COUNTER_SESSION, rebuilt->next_session);
    if (r == 0) {
        r = counter_put(manager, MANAGER_COUNTER_ENDED, rebuilt->ended_number);
    }
    if (r == 0) {
        r = handover_put(manager, rebuilt->handover);
    }
    return rows_end(manager, r);
}

static int session_write(struct manager *manager, const struct rebuilt_session *session) {
    const struct manager_session_row row = {.format = MANAGER_ROW_FORMAT,
                                            .is_nameless = 1,
                                            .node = session->node,
                                            .incarnation = session->incarnation};
    struct kv_key key = manager_key(MANAGER_ROW_SESSION, session->id.value, 0);
    int r = rows_begin(manager, 1, sizeof row);

    if (r < 0) {
        return r;
    }
    return rows_end(manager,
                    kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}));
}

static int life_write(struct manager *manager, const struct rebuilt_life *life) {
    const struct manager_life_row row = {.format = MANAGER_ROW_FORMAT,
                                         .node = life->node,
                                         .term = life->term,
                                         .life_high = life->life.high,
                                         .life_low = life->life.low};
    struct kv_key key = manager_key(MANAGER_ROW_LIFE, life->log.value, 0);
    int r = rows_begin(manager, 1, sizeof row);

    if (r < 0) {
        return r;
    }
    return rows_end(manager,
                    kv_put(manager->kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}));
}

/* The map's pieces go with it, by manager_map_load: there are none yet. */
int manager_rebuilt_write(struct manager *manager) {
    const struct rebuilt *rebuilt = manager->options.rebuilt;
    uint32_t *at = &manager->rebuilt_written;
    int r = 0;

    if (!rebuilt) {
        return 0;
    }
    if (*at == 0) {
        r = numbers_write(manager, rebuilt);
        *at += r == 0;
    }
    while (r == 0 && *at <= rebuilt->session_count) {
        r = session_write(manager, &rebuilt->sessions[*at - 1]);
        *at += r == 0;
    }
    while (r == 0 && *at <= rebuilt->session_count + rebuilt->life_count) {
        r = life_write(manager, &rebuilt->lives[*at - 1 - rebuilt->session_count]);
        *at += r == 0;
    }
    return r;
}
