/* The manager's state, shared by the files of manager/ and by nobody else. */
#pragma once
#include "base/siphash.h"
#include "manager/manager.h"
#include "manager/members.h"

enum manager_message { MANAGER_TICK = 1, MANAGER_WAKE, MANAGER_STOP };

/* FAILED: the log stopped; everything is answered with the error. */
enum manager_stage { MANAGER_LOADING, MANAGER_SERVING, MANAGER_STOPPING, MANAGER_FAILED };

enum load_stage { LOAD_COUNTERS, LOAD_MAP, LOAD_MEMBERS, LOAD_DONE };

struct manager {
    struct actor actor; /* first */
    struct manager_options options;
    struct kv *kv;
    struct cluster_map *map;
    enum manager_stage stage;
    int failure; /* of stage FAILED */
    uint64_t now_ns;

    enum load_stage load_stage;
    struct kv_cursor load_cursor;
    uint8_t *map_bytes; /* as stored */
    size_t map_size;
    size_t map_read; /* so much of it is there already */
    char *problem;   /* while it opens */

    uint64_t recorded;         /* position of the record of the last change */
    uint64_t session_next;     /* numbers below have been given */
    uint64_t session_usable;   /* those below this may be: it is on disk */
    uint64_t session_reserved; /* likewise, once the record of this position is */
    uint64_t reserved_position;
    struct members members;

    struct list arrived;  /* calls that wait for the load or for room in the log */
    struct list begins;   /* session_begin that waits for a predecessor's end or for numbers */
    struct list answered; /* that wait for their record to be on disk */
    struct kv_waiter waiter;
    bool waiting;
    uint64_t sync_wanted;

    struct message tick;
    struct message wake;
    struct message stop;
    atomic_bool tick_posted;
    atomic_bool wake_posted;
    void (*stop_done)(void *context, int result);
    void *stop_context;
    bool stop_started;
    struct manager_counters counters;
};

/* store.c: what is on disk. Each but load_step is one transaction, whose position is then in
 * `recorded`; -ERR_NO_SPACE: no room now. */
MUST_CHECK int
load_step(struct manager *manager); /* 0: loaded; -ERR_PENDING: goes on with a wake */
MUST_CHECK int store_format(struct manager *manager);
MUST_CHECK int store_reserve(struct manager *manager);
MUST_CHECK int store_member(struct manager *manager, struct member *member);
MUST_CHECK int store_member_gone(struct manager *manager, const struct member *member);

/* eviction.c */
MUST_CHECK int eviction_begin(struct manager *manager, struct member *member);
void evictions_step(struct manager *manager, bool ticked);

/* manager.c: the answer leaves when the record of this position is on disk. */
void manager_answer_synced(struct manager *manager, struct call *call, uint64_t position);
