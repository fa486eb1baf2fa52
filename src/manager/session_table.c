/* The contract is in session_table.h. */
#include "manager/session_table.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int session_table_init(struct session_table *table, uint32_t max, uint32_t capacity,
                       struct siphash_key key) {
    struct list *lists[] = {&table->free,    &table->beginning, &table->heard,
                            &table->held,    &table->ending,    &table->marking,
                            &table->telling, &table->living,    &table->met};
    uint32_t places = 16;

    assert(max > 0 && capacity >= max && capacity <= 1U << 30);
    while (places < capacity) {
        places *= 2;
    }
    *table =
        (struct session_table){.max = max, .capacity = capacity, .mask = places - 1, .key = key};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        list_init(lists[i]);
    }
    table->memory = calloc(capacity, sizeof *table->memory);
    table->by_id = calloc(places, sizeof *table->by_id);
    table->by_origin = calloc(places, sizeof *table->by_origin);
    return table->memory && table->by_id && table->by_origin ? 0 : -ERR_NO_MEMORY;
}

void session_table_deinit(struct session_table *table) {
    free(TAKE_PTR(table->memory));
    free(TAKE_PTR(table->by_id));
    free(TAKE_PTR(table->by_origin));
}

bool session_table_is_full(const struct session_table *table) {
    return table->count >= table->max;
}

/* Ids rise one by one, so their low bits are spread as well as can be. */
static struct manager_session **place_of_id(const struct session_table *table, uint64_t id) {
    return &table->by_id[id & table->mask];
}

static struct manager_session **place_of_origin(const struct session_table *table,
                                                const struct session_origin *origin) {
    uint8_t bytes[12 + MANAGER_ORIGIN_BYTES_MAX];

    assert(origin->name.size <= MANAGER_ORIGIN_BYTES_MAX);
    store_le64(bytes, origin->serial);
    store_le32(bytes + 8, origin->node_id);
    memcpy(bytes + 12, origin->name.data, origin->name.size);
    return &table->by_origin[siphash(&table->key, bytes, 12 + origin->name.size) & table->mask];
}

static struct session_origin origin_of(const struct manager_session *session) {
    return (struct session_origin){session->node_id,
                                   session->serial,
                                   {session->origin, session->origin_bytes},
                                   session->place};
}

struct manager_session *session_table_add(struct session_table *table, struct session_id id,
                                          const struct session_origin *origin) {
    struct manager_session *session = session_first(&table->free);
    struct manager_session **by_id = place_of_id(table, id.value);
    struct manager_session **by_origin = place_of_origin(table, origin);

    assert(table->count < table->capacity);
    if (session) {
        list_remove(&session->node);
    } else {
        session = &table->memory[table->touched++];
    }
    table->count++;
    *session = (struct manager_session){.id = id,
                                        .node_id = origin->node_id,
                                        .serial = origin->serial,
                                        .place = origin->place,
                                        .origin_bytes = (uint16_t)origin->name.size,
                                        .next_by_id = *by_id,
                                        .next_by_origin = *by_origin};
    memcpy(session->origin, origin->name.data, origin->name.size);
    list_init(&session->end_calls);
    list_push_back(&table->living, &session->living);
    *by_id = session;
    *by_origin = session;
    return session;
}

static void origin_enter(struct session_table *table, struct manager_session *session) {
    const struct session_origin origin = origin_of(session);
    struct manager_session **place = place_of_origin(table, &origin);

    session->next_by_origin = *place;
    *place = session;
}

static void origin_leave(struct session_table *table, struct manager_session *session) {
    const struct session_origin origin = origin_of(session);
    struct manager_session **place = place_of_origin(table, &origin);

    while (*place != session) {
        place = &(*place)->next_by_origin;
    }
    *place = session->next_by_origin;
}

void session_table_drop(struct session_table *table, struct manager_session *session) {
    struct manager_session **place = place_of_id(table, session->id.value);

    while (*place != session) {
        place = &(*place)->next_by_id;
    }
    *place = session->next_by_id;
    origin_leave(table, session);
    table->nameless_count -= session->is_nameless;
    list_remove(&session->living);
    list_remove(&session->met);
    session->stage = STAGE_FREE;
    session_move(session, &table->free);
    table->count--;
}

void session_table_serial(struct session_table *table, struct manager_session *session,
                          uint64_t serial) {
    if (session->serial == serial) {
        return;
    }
    origin_leave(table, session);
    session->serial = serial;
    origin_enter(table, session);
}

void session_table_unname(struct session_table *table, struct manager_session *session) {
    assert(!session->is_nameless && session->origin_bytes == 0);
    session->is_nameless = true;
    table->nameless_count++;
}

void session_table_name(struct session_table *table, struct manager_session *session,
                        const struct wire_origin *origin) {
    const struct bytes name = origin->name;

    assert(session->is_nameless && name.size <= MANAGER_ORIGIN_BYTES_MAX);
    origin_leave(table, session);
    session->is_nameless = false;
    table->nameless_count--;
    session->origin_bytes = (uint16_t)name.size;
    memcpy(session->origin, name.data, name.size);
    session->place = origin->place;
    origin_enter(table, session);
}

bool session_table_has_unheard(const struct session_table *table, uint32_t node_id) {
    const struct list *living = &table->living;

    for (struct list_node *node = table->nameless_count > 0 ? list_first(living) : NULL; node;
         node = list_next(living, node)) {
        const struct manager_session *session = CONTAINER_OF(node, struct manager_session, living);

        if (session->is_nameless && !session->is_heard && session->node_id == node_id) {
            return true;
        }
    }
    return false;
}

struct manager_session *session_table_find(const struct session_table *table, uint64_t id) {
    struct manager_session *session = *place_of_id(table, id);

    while (session && session->id.value != id) {
        session = session->next_by_id;
    }
    return session;
}

struct manager_session *session_table_of(const struct session_table *table,
                                         const struct session_origin *origin,
                                         const struct manager_session *after) {
    struct manager_session *session =
        after ? after->next_by_origin : *place_of_origin(table, origin);

    while (session &&
           (session->is_nameless || session->node_id != origin->node_id ||
            session->serial != origin->serial || session->origin_bytes != origin->name.size ||
            memcmp(session->origin, origin->name.data, origin->name.size) != 0)) {
        session = session->next_by_origin;
    }
    return session;
}
