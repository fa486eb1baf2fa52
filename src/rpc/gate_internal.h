/* Inside of the gate, for gate*.c only: what it has of connections, lanes and requests.
 *
 *     gate.c           memory, ticks, the beginning and the end
 *     gate_greeting.c  streams that come, HELLO and WELCOME, who is refused or cut off
 *     gate_requests.c  requests that come, and their answers
 *
 * Thread: the gate's, where nothing else is said. */
#pragma once
#include "base/list.h"
#include "rpc/bulk_memory.h"
#include "rpc/callers.h"
#include "rpc/connection.h"
#include "rpc/gate.h"
#include "rpc/inlet.h"

enum { GATE_END_BUCKETS = 1024 };
/* Between two ticks, or two looks: more is a time in which the thread was not there. */
#define GATE_GAP_NS NS_PER_S

/* A lane's end. */
struct lane_end {
    struct list_node node; /* of its bucket */
    uint64_t life[2];
    uint32_t lane;
    uint64_t number;                    /* of its newest connection */
    struct gate_connection *connection; /* NULL: none now */
    struct identity identity;           /* of all its connections: it is known by it, too */
    struct list waiting;                /* answers that found no room, by request->node */
    uint32_t request_count;             /* at work or waiting */
    uint64_t idle_since_ns;             /* neither connection nor request since */
};

/* In GREETING and after a refusal it is of no lane. */
struct gate_connection {
    struct list_node node;
    struct gate *gate;
    struct connection *connection;
    struct lane_end *end;
    struct caller *caller; /* of the lane */
    struct list_node lane; /* among the caller's */
    struct list sending;   /* requests whose answers it has, by request->node */
    uint64_t since_ns;     /* accepted; refused */
    bool is_unread;        /* too much waits for it to be read: nothing is read from it */
    bool is_refused, is_dirty;
    bool has_tls, is_near; /* near: on this machine */
    struct list_node dirty;
    char address[ADDRESS_TEXT_BYTES];     /* the other end's */
    char own_address[ADDRESS_TEXT_BYTES]; /* empty: unknown */
};

struct gate {
    struct gate_options options;
    struct inlet inlet;
    struct worker *worker; /* of the thread */
    struct bulk_memory bulk, small_bulk;
    struct env_listener *listeners[GATE_LISTENERS_MAX];
    uint32_t listener_count;
    struct list ends[GATE_END_BUCKETS];
    struct callers callers;
    struct list connections; /* that have greeted */
    struct list greetings;   /* that have not, or were refused; oldest first */
    struct list dirty;       /* connections with something to send */
    struct list at_work;     /* requests that are not answered, by request->node */
    uint32_t greeting_count;
    uint32_t connection_count;
    uint32_t request_count, answer_count;  /* answers: of these, answered and not sent yet */
    _Atomic(struct inlet_request *) ready; /* newest first */
    uint64_t ticked_ns, swept_ns;
    uint64_t looked_ns; /* what is noticed now came no earlier than this */
    uint64_t awake_ns;  /* since then there was no gap between ticks */
    uint64_t accepted_count, refused_count, busy_count, late_count;
    uint64_t replaced_count, old_lane_count, dropped_count, silent_count, surplus_count;
    bool is_full_said;
    bool is_short; /* a request has found no room, or bulk no memory, since the last tick */
    uint64_t refusal_said_ns;
    uint32_t revoked_count; /* of the keys, as it was when connections were looked through */
};

/* Since when nothing was heard by it. */
static inline uint64_t gate_heard_ns(const struct gate_connection *client) {
    return MAX(client->since_ns, connection_heard_ns(client->connection));
}

/* gate.c. Memory of bulk: NULL where there is none now; put: any thread. */
uint64_t gate_now(const struct gate *gate);
void gate_say(const struct gate *gate, const char *line);
void *gate_bulk_get(void *context, size_t size_bytes);
void gate_bulk_put(void *context, void *buffer);

/* gate_greeting.c. */
uint32_t gate_lanes_granted(const struct gate *gate);
/* Who comes without a key that is good here is worth a line, but not one each time. */
void gate_refusal_say(struct gate_connection *client, const char *what, const char *words);
/* Those whose keys are revoked. What they have asked runs on, and its answers find nobody. */
void gate_revoked_cut_off(struct gate *gate);

/* gate_requests.c. Who has proven another identity has lanes of its own: a life is no secret, so
 * nobody may be there first by the life of another. NULL: no memory. */
struct lane_end *gate_end_find(struct gate *gate, const uint64_t life[2], uint32_t lane,
                               const struct identity *identity);
/* Frees it, with what it had to send. */
void gate_connection_leave(struct gate_connection *client, bool reset);
/* It is answered. */
void gate_request_over(struct gate *gate, struct inlet_request *request);
void *gate_client_bulk_get(void *context, const struct connection_message *message,
                           size_t size_bytes);
void gate_client_bulk_put(void *context, void *bulk);
void gate_client_room(void *context);
MUST_CHECK int gate_request_take(struct gate_connection *client,
                                 const struct connection_message *message);
/* Of the inlet; ready: any thread. */
void gate_request_taken(void *context, struct inlet_request *request);
void gate_request_ready(void *context, struct inlet_request *request);
