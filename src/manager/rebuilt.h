/* What a manager is made of whose log is gone: the maps that nodes have kept, and rows of the logs
 * that the newest of these names (docs/internals/rebuilding.md).
 *
 *     new (a map) --> map_add, of each node --> lose, of each node that is gone for good
 *         --> slots_add, session_add, ended_add, list_add, life_add, of each log, in any order
 *         --> finish: numbers, slots, and the sessions that live
 *
 * All that the manager hands out goes on so far above what anybody has told that what nobody has
 * told was not reached: what its log had given is not given again.
 *
 * Thread: one.  Memory: two maps, and what it is told of sessions. */
#pragma once
#include "layout/cluster_map.h"

/* Of numbers of 64 bits, and of 32. Of sessions less, as the list of the ended has a bit for each
 * number above the lowest that lives: what no target has heard of are those that live and have
 * attached nowhere, 65,536 at most, and the ends that nobody was told of in a tick. */
#define REBUILT_STEP (UINT64_C(1) << 32)
#define REBUILT_STEP_SHORT (UINT32_C(1) << 20)
#define REBUILT_STEP_SESSIONS (UINT64_C(1) << 20)
/* From the lowest session that lives to the highest that anybody has heard of: at each target a
 * list of 512 MiB. */
#define REBUILT_SPAN_MAX (UINT64_C(1) << 32)

struct rebuilt_session {
    struct session_id id;
    uint64_t incarnation;
    uint32_t node;
};

struct rebuilt_life {
    struct log_id log;
    uint32_t node;
    uint64_t term;
    struct log_life life;
};

/* Slots from `first` on, as a log has them. */
struct rebuilt_slots {
    uint32_t first;
    uint32_t count;
    uint64_t handover;
    struct log_id of; /* itself, or to whom it has given them */
};

/* Of the list of the ended. */
enum { REBUILT_BITS = 4096 };
struct rebuilt_bits {
    uint64_t index; /* of the stretch: sessions from index * REBUILT_BITS on */
    uint8_t bits[REBUILT_BITS / 8];
};

struct rebuilt {
    struct cluster_map *map;   /* the newest; what finish makes of it is the manager's */
    bool is_given[SLOT_COUNT]; /* to a log that no map names: the giver keeps it */
    uint64_t handover;         /* highest of all; the manager's last, from finish on */
    uint64_t session_highest;  /* that anybody has heard of */
    uint64_t session_lowest;   /* all below it have ended */
    uint64_t next_session;     /* from finish on, likewise */
    uint64_t ended_number;
    struct rebuilt_session *sessions; /* from finish on by their ids, each once, those that live */
    uint32_t session_count, session_capacity;
    struct rebuilt_life *lives;
    uint32_t life_count, life_capacity;
    struct rebuilt_bits *ended; /* by their indices */
    uint32_t ended_count, ended_capacity;
    bool is_finished;
};

/* -ERR_NO_MEMORY. map: of the manager's own node; copied. */
MUST_CHECK int rebuilt_new(const struct cluster_map *map, struct rebuilt **ret_rebuilt);
void rebuilt_free(struct rebuilt *rebuilt);
/* The map that a node goes by; *ret_is_newer: it is taken. -ERR_OTHER_CLUSTER; -ERR_CONFLICT: it
 * has another map of the same version. */
MUST_CHECK int rebuilt_map_add(struct rebuilt *rebuilt, const struct cluster_map *map,
                               bool *ret_is_newer);
/* Whether it has targets that are not lost: then it, or its loss, is needed. */
bool rebuilt_needs(const struct rebuilt *rebuilt, const struct map_node *node);
/* All of the node's targets are lost. -> as cluster_map_lose. */
MUST_CHECK int rebuilt_lose(struct rebuilt *rebuilt, struct node_id node);

/* What a log tells: -ERR_CORRUPT for what no log can have, -ERR_NO_MEMORY. Behind all maps. */
MUST_CHECK int rebuilt_slots_add(struct rebuilt *rebuilt, struct log_id log,
                                 const struct rebuilt_slots *slots);
MUST_CHECK int rebuilt_session_add(struct rebuilt *rebuilt, const struct rebuilt_session *session);
/* Bits of sessions from index * REBUILT_BITS on; those that are missing are 0. */
MUST_CHECK int rebuilt_ended_add(struct rebuilt *rebuilt, uint64_t index, struct bytes bits);
MUST_CHECK int rebuilt_list_add(struct rebuilt *rebuilt, uint64_t number, uint64_t lowest);
MUST_CHECK int rebuilt_life_add(struct rebuilt *rebuilt, const struct rebuilt_life *life);
/* -ERR_OVERFLOW: a number has no room above it. -ERR_CORRUPT: a session is farther above the lowest
 * that lives, sessions[0], than one that was ever begun. */
MUST_CHECK int rebuilt_finish(struct rebuilt *rebuilt);
