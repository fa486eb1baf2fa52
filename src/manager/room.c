/* See room.h. Each number is right by itself; a reader may see some of one tick and some of the
 * next. */
#include "manager/manager_internal.h"

void manager_room_tell(struct manager_room_told *room, const struct kv_levels *levels,
                       uint32_t waiting_count) {
    atomic_store_explicit(&room->ring, levels->ring, memory_order_relaxed);
    atomic_store_explicit(&room->memory, levels->memory, memory_order_relaxed);
    atomic_store_explicit(&room->log, levels->log, memory_order_relaxed);
    atomic_store_explicit(&room->outcomes, levels->outcomes, memory_order_relaxed);
    atomic_store_explicit(&room->full_ns, levels->full_ns, memory_order_relaxed);
    atomic_store_explicit(&room->waiting_count, waiting_count, memory_order_relaxed);
}

void manager_room_get(const struct manager *manager, struct manager_room *ret_room) {
    const struct manager_room_told *room = &manager->room;

    *ret_room = (struct manager_room){
        .levels = {.ring = atomic_load_explicit(&room->ring, memory_order_relaxed),
                   .memory = atomic_load_explicit(&room->memory, memory_order_relaxed),
                   .log = atomic_load_explicit(&room->log, memory_order_relaxed),
                   .outcomes = atomic_load_explicit(&room->outcomes, memory_order_relaxed),
                   .full_ns = atomic_load_explicit(&room->full_ns, memory_order_relaxed)},
        .waiting_count = atomic_load_explicit(&room->waiting_count, memory_order_relaxed)};
}
