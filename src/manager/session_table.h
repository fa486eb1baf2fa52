/* The manager's sessions in memory: found by their id or origin, and in the order in which steps
 * and ticks look at them, so that no message and no tick looks at all of them.
 *
 *     free --> beginning --> heard <--> held
 *                 |            '--> ending --> marking --> telling --> free
 *
 * A session is in one of these lists. `living` has those whose end nobody has been told of, by
 * their ids, which rise; `met` those that have told of a user who met his share.
 *
 * Thread: the manager's. Memory: max sessions, reserved by init and touched when used first. */
#pragma once
#include "base/list.h"
#include "base/siphash.h"
#include "manager/manager.h"
#include "manager/manager_format.h"
#include "kv/kv.h"
#include "wire/wire_origin.h"

struct call;

enum session_stage {
    STAGE_FREE,
    STAGE_BEGINNING, /* its record is being flushed; begin_call waits */
    STAGE_LIVE,
    STAGE_MARKING, /* the record that drops it, with the number of its end, is being flushed */
    STAGE_TELLING, /* who ended it waits for the groups to have that number */
};

struct manager_session {
    struct manager *manager;
    struct list_node node;              /* of one of the table's lists, */
    struct list_node living;            /* and of that */
    struct list_node met;               /* of that, where it has told of one */
    uint64_t files_user, requests_user; /* see met.h */
    struct manager_session *next_by_id, *next_by_origin;
    struct session_id id;
    uint64_t incarnation;
    uint32_t node_id;
    uint64_t place;   /* that its origin tells (wire_origin.h); 0: none */
    uint64_t serial;  /* of the mount's key that it was begun by, or renewed last; 0: a member's */
    bool is_nameless; /* its origin is not known, as the manager was rebuilt */
    bool is_heard;    /* since the manager's start, or begun then */
    bool row_is_old;  /* of its key */
    bool is_revoked;  /* the key is: it is to be evicted */
    bool waiting;     /* for the flush of its record */
    enum session_stage stage;
    uint64_t heard_ns;       /* by the manager's time of listening */
    uint64_t ended_number;   /* of the list, from MARKING on */
    struct call *begin_call; /* waits for the flush */
    struct list end_calls;   /* wait until groups know */
    struct kv_waiter waiter;
    uint16_t origin_bytes; /* of its name */
    uint8_t origin[MANAGER_ORIGIN_BYTES_MAX];
};

/* Whose session it is, to find it by: of whatever place. The bytes are the caller's. */
struct session_origin {
    uint32_t node_id;
    uint64_t serial;
    struct bytes name;
    uint64_t place; /* 0: not told */
};

struct session_table {
    struct manager_session *memory;
    uint32_t max;
    uint32_t capacity; /* at least max: a start may find more, when max was larger before */
    uint32_t touched;  /* of the memory */
    uint32_t count;
    uint32_t nameless_count;
    struct list free;
    struct list beginning;
    struct list heard;   /* live; who was not heard of for longest first */
    struct list held;    /* live, silent for too long */
    struct list ending;  /* live; an eviction that was asked for, and the log may have no room */
    struct list marking; /* by the positions of their records */
    struct list telling; /* by the numbers of their ends */
    struct list living;
    struct list met; /* the newest first */
    struct manager_session **by_id, **by_origin;
    uint32_t mask;
    struct siphash_key key; /* of origins, which clients choose */
};

/* max: how many may begin, from 1; capacity: how many it can have; key: drawn at random. */
MUST_CHECK int session_table_init(struct session_table *table, uint32_t max, uint32_t capacity,
                                  struct siphash_key key);
void session_table_deinit(struct session_table *table);
bool session_table_is_full(const struct session_table *table);
/* One that is in no list but `living`; there is room in the memory. Ids rise. */
struct manager_session *session_table_add(struct session_table *table, struct session_id id,
                                          const struct session_origin *origin);
void session_table_drop(struct session_table *table, struct manager_session *session);
/* From now on it is of this mount's key. */
void session_table_serial(struct session_table *table, struct manager_session *session,
                          uint64_t serial);
/* Its origin is not known: it is found by none. */
void session_table_unname(struct session_table *table, struct manager_session *session);
/* Its origin is known now. */
void session_table_name(struct session_table *table, struct manager_session *session,
                        const struct wire_origin *origin);
/* Of a node there is one that has no name, and was not heard since the start: it may have been of
 * any origin. */
bool session_table_has_unheard(const struct session_table *table, uint32_t node_id);
/* NULL: it is not known, or has ended. */
struct manager_session *session_table_find(const struct session_table *table, uint64_t id);
/* The next of this origin behind `after`, NULL: the first; NULL when there is none. */
struct manager_session *session_table_of(const struct session_table *table,
                                         const struct session_origin *origin,
                                         const struct manager_session *after);
/* To the end of another of the lists. */
static inline void session_move(struct manager_session *session, struct list *list) {
    list_remove(&session->node);
    list_push_back(list, &session->node);
}
static inline struct manager_session *session_first(const struct list *list) {
    struct list_node *node = list_first(list);

    return node ? CONTAINER_OF(node, struct manager_session, node) : NULL;
}
static inline struct manager_session *session_next(const struct list *list,
                                                   const struct manager_session *session) {
    struct list_node *node = list_next(list, &session->node);

    return node ? CONTAINER_OF(node, struct manager_session, node) : NULL;
}
