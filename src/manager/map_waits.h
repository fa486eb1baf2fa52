/* Who waits for a newer map: map_wait, answered when there is one. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_map_waits_new(struct manager *manager);
void manager_map_waits_free(struct manager *manager);
void manager_map_wait(struct manager *manager, struct call *call);
/* The manager's map is a newer one: all that wait are answered. */
void manager_map_waits_answer(struct manager *manager);
/* A tick: who has waited for long enough, or has given up in this process. */
void manager_map_waits_tick(struct manager *manager);
/* Nobody waits any more, now and later. */
void manager_map_waits_close(struct manager *manager);
/* All that wait get that, as nothing moves any more. */
void manager_map_waits_refuse(struct manager *manager, int result);
