/* What a world is made of, and how big it is. */
#pragma once
#include "base/types.h"
#include <stdio.h>

enum {
    WORLD_OSTS_MAX = 4,
    WORLD_CLIENTS_MAX = 4,
    WORLD_MDTS_MAX = 4,
    WORLD_NODES_MAX = 1 + WORLD_MDTS_MAX + WORLD_OSTS_MAX + WORLD_CLIENTS_MAX,
    MANAGER_TARGET = 1,
    MDT_TARGET = 2,
    OST_TARGET_FIRST = 3,
    MDT_TARGET_NEXT = OST_TARGET_FIRST + WORLD_OSTS_MAX, /* of the second metadata target */
    CLIENT_NODE_FIRST = 100,
    WORLD_LIFE_STANDS_MS = 1000, /* a life that has spoken, for the manager */
    WORLD_CALL_BYTES = 65536     /* of one read or write at an OST */
};

/* How big things are; drawn by world_draw. */
struct world_options {
    uint64_t seed;
    uint32_t mdt_count, ost_count;
    bool late_ost, late_mdt; /* the last one, if there are two, is to join yet */
    uint32_t client_count;
    bool smallest;           /* pools, rings, logs, caches */
    bool full;               /* many limits are small at once (fulls.h) */
    bool wraps;              /* rings of storage targets, again and again in a life (laps.h) */
    uint32_t cold_per_mille; /* from 1,000 on: always, and little is kept of what was read */
    uint64_t sync_interval_ns, checkpoint_ns;
    uint32_t ring_bytes; /* of manager and MDT; the log is 8 to 16 times as long */
    uint32_t log_rings;
    uint64_t data_bytes_max; /* of each OST */
    uint32_t chunk_bytes;
    uint64_t session_timeout_ns, request_timeout_ns;
    uint32_t move_refusals;   /* until a move asks for a turn; 0: as usual */
    bool keys;                /* capabilities are signed, and by newer keys as time goes */
    uint64_t schedule_ns_max; /* an actor's step comes so much later at most */
    bool streams;             /* carry the calls, else packets do */
    uint64_t lane_connect_ns, lane_silent_ns, lane_idle_ns;
    FILE *tell; /* each call; or NULL */
};

/* Draws sizes from a generator of its own, so that they do not depend on what follows. Every third
 * seed has the smallest. */
void world_draw(uint64_t seed, struct world_options *ret_options);
