/* How full the manager's log is, for other threads: as of its last tick. */
#pragma once
#include "kv/kv.h"

struct manager_room_told {
    _Atomic uint16_t ring, memory, log, outcomes;
    _Atomic uint32_t waiting_count;
    _Atomic uint64_t full_ns;
};

/* waiting_count: of calls. The manager's own thread. */
void manager_room_tell(struct manager_room_told *room, const struct kv_levels *levels,
                       uint32_t waiting_count);
