/* The serving end; the contract and the picture are in gate.h. */
#include "rpc/gate.h"
#include "base/endian.h"
#include "env/env.h"
#include "env/env_stream.h"
#include "keys/key_ring.h"
#include "rpc/bulk_memory.h"
#include "rpc/callers.h"
#include "rpc/connection.h"
#include "rpc/worker.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELLO_VERSION = 1,
    WELCOME_BYTES = 256,
    OUT_BYTES = 256 << 10,
    OUT_MESSAGES = 256,
    END_BUCKETS = 1024,
    SMALL_BULK_BYTES = 64 << 10,
};
#define GREETING_NS (5 * NS_PER_S)
#define UNREAD_NS (30 * NS_PER_S)
#define UNREAD_BYTES_MAX (1 << 20)
#define GAP_NS NS_PER_S
#define SILENT_NS (180 * NS_PER_S)
#define END_IDLE_NS (120 * NS_PER_S)
#define REFUSAL_SAID_NS (10 * NS_PER_S)
#define HOLD_NS NS_PER_S

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
    struct list sending;   /* requests whose answers it has, by request->node */
    uint64_t since_ns;     /* accepted; refused */
    bool is_unread;        /* too much waits for it to be read: nothing is read from it */
    bool is_refused, is_dirty;
    bool has_tls, is_near; /* near: on this machine */
    struct list_node dirty;
    char address[ADDRESS_TEXT_BYTES];
};

struct gate {
    struct gate_options options;
    struct inlet inlet;
    struct worker *worker; /* of the thread */
    struct bulk_memory bulk, small_bulk;
    struct env_listener *listeners[GATE_LISTENERS_MAX];
    uint32_t listener_count;
    struct list ends[END_BUCKETS];
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

static uint64_t gate_now(const struct gate *gate) {
    return env_now_ns(gate->options.env);
}

static void gate_say(const struct gate *gate, const char *line) {
    if (gate->options.log) {
        gate->options.log(gate->options.context, line);
    }
}

/* Memory of bulk. */

static void *bulk_get(void *context, size_t size_bytes) {
    struct gate *gate = context;
    void *buffer = NULL;

    if (size_bytes <= gate->small_bulk.buffer_bytes) {
        buffer = bulk_memory_get(&gate->small_bulk);
    }
    if (!buffer && size_bytes <= gate->bulk.buffer_bytes) {
        buffer = bulk_memory_get(&gate->bulk);
    }
    gate->is_short = gate->is_short || (!buffer && size_bytes <= gate->bulk.buffer_bytes);
    return buffer;
}

/* Any thread. */
static void bulk_put(void *context, void *buffer) {
    struct gate *gate = context;

    if (!bulk_memory_put(&gate->small_bulk, buffer)) {
        bool is_ours = bulk_memory_put(&gate->bulk, buffer);

        assert(is_ours);
    }
}

/* Ends. */

static struct list *end_bucket(struct gate *gate, const uint64_t life[2], uint32_t lane) {
    return &gate->ends[(life[0] ^ life[1] ^ lane * UINT64_C(0x9e3779b97f4a7c15)) % END_BUCKETS];
}

/* Who has proven another identity has lanes of its own: a life is no secret, so nobody may be there
 * first by the life of another. */
static struct lane_end *end_find(struct gate *gate, const uint64_t life[2], uint32_t lane,
                                 const struct identity *identity) {
    struct list *bucket = end_bucket(gate, life, lane);
    struct lane_end *end;

    for (struct list_node *node = bucket->head.next; node != &bucket->head; node = node->next) {
        end = CONTAINER_OF(node, struct lane_end, node);
        if (end->life[0] == life[0] && end->life[1] == life[1] && end->lane == lane &&
            identity_is(&end->identity, identity)) {
            return end;
        }
    }
    end = calloc(1, sizeof *end);
    if (end) {
        end->life[0] = life[0];
        end->life[1] = life[1];
        end->lane = lane;
        end->identity = *identity;
        list_init(&end->waiting);
        list_push_back(bucket, &end->node);
    }
    return end;
}

static void end_rest(struct gate *gate, struct lane_end *end) {
    if (!end->connection && end->request_count == 0) {
        end->idle_since_ns = gate_now(gate);
    }
}

/* Callers. */

/* So many connections may have greeted: the rest is for who comes to greet. */
static uint32_t lanes_max(const struct gate *gate) {
    uint32_t most = gate->options.connections_max;

    return most - MIN((uint32_t)GATE_GREETINGS_MAX, most / 4);
}

static uint32_t lanes_granted(const struct gate *gate) {
    return callers_share(&gate->callers, lanes_max(gate));
}

/* It is answered. */
static void request_over(struct gate *gate, struct inlet_request *request) {
    struct lane_end *end = request->from;

    gate->answer_count--;
    list_remove(&request->node);
    if (request->call.bulk_out_count > 0) {
        bulk_put(gate, (void *)request->call.bulk_out[0].data);
    }
    gate->request_count--;
    end->request_count--;
    inlet_done(request);
    end_rest(gate, end);
}

static void answers_drop(struct gate *gate, struct list *answers) {
    struct list_node *node;

    while ((node = list_first(answers))) {
        gate->dropped_count++;
        request_over(gate, CONTAINER_OF(node, struct inlet_request, node));
    }
}

/* Connections. */

static void connection_leave(struct gate_connection *client, bool reset) {
    struct gate *gate = client->gate;
    struct lane_end *end = client->end;

    connection_free(TAKE_PTR(client->connection), reset);
    answers_drop(gate, &client->sending);
    if (end && end->connection == client) {
        end->connection = NULL;
        answers_drop(gate, &end->waiting);
        end_rest(gate, end);
    }
    if (client->caller) {
        client->caller->lane_count--;
        callers_put(&gate->callers, client->caller);
    }
    list_remove(&client->node);
    list_remove(&client->dirty);
    gate->greeting_count -= !end;
    gate->connection_count--;
    free(client);
}

static void client_mark(struct gate_connection *client) {
    if (!client->is_dirty) {
        client->is_dirty = true;
        list_push_back(&client->gate->dirty, &client->dirty);
    }
}

static void answer_sent(void *context) {
    struct inlet_request *request = context;

    request_over(request->inlet->options.context, request);
}

/* -ERR_BUSY: there is no room now. */
static int answer_send(struct gate_connection *client, struct inlet_request *request) {
    struct connection_outgoing outgoing = {
        .kind = CONNECTION_REPLY, .sent = answer_sent, .context = request};
    const struct buffer *bulk = &request->call.bulk_in;
    struct buffer head;
    int r = connection_begin(client->connection, inlet_reply_size(request), &head);

    if (r < 0) {
        return r;
    }
    inlet_encode(request, &head);
    if (bulk->size > 0) {
        outgoing.bulk[outgoing.bulk_count++] = (struct bytes){bulk->data, bulk->size};
    }
    list_remove(&request->node);
    list_push_back(&client->sending, &request->node);
    connection_commit(client->connection, &head, &outgoing);
    client_mark(client);
    return 0;
}

static void waiting_send(struct gate_connection *client) {
    struct list_node *node;

    while (client->end && (node = list_first(&client->end->waiting)) &&
           answer_send(client, CONTAINER_OF(node, struct inlet_request, node)) == 0) {
    }
}

static void client_room(void *context) {
    struct gate_connection *client = context;

    waiting_send(client);
    if (client->is_unread && list_is_empty(&client->end->waiting)) {
        client->is_unread = false;
        connection_set_reading(client->connection, true);
    }
}

/* Who comes without a key that is good here is worth a line, but not one each time. */
static void refusal_say(struct gate_connection *client, const char *what, const char *words) {
    struct gate *gate = client->gate;
    uint64_t now_ns = gate_now(gate);
    char line[ADDRESS_TEXT_BYTES + 160];

    if (gate->refusal_said_ns == 0 || now_ns - gate->refusal_said_ns >= REFUSAL_SAID_NS) {
        gate->refusal_said_ns = now_ns;
        snprintf(line, sizeof line, "%s %s: %s", client->address, what, words);
        gate_say(gate, line);
    }
}

static void revoked_say(struct gate_connection *client, const struct identity *identity,
                        const char *what) {
    char words[64];

    snprintf(words, sizeof words, "its key %016" PRIx64 " is revoked", identity->serial);
    refusal_say(client, what, words);
}

static void client_ended(void *context, int reason) {
    struct gate_connection *client = context;
    struct gate *gate = client->gate;
    const char *words = connection_failure(client->connection);

    (void)reason;
    if (words && !client->end) {
        gate->refused_count++;
        refusal_say(client, "was refused", words);
    }
    connection_leave(client, false);
}

/* Both want what follows in TLS, or neither does. */
static int plain_check(const struct gate_connection *client, bool asks) {
    enum link_encryption encryption = client->gate->options.encryption;
    bool is_good =
        asks ? encryption == LINK_PLAIN || (encryption == LINK_ENCRYPTED && client->is_near)
             : encryption != LINK_PLAIN || client->is_near;

    return !client->has_tls || is_good ? 0 : -ERR_OTHER_ENCRYPTION;
}

static int welcome_send(struct gate_connection *client, int result, bool plain) {
    const struct lane_identity *self = &client->gate->options.self;
    const struct connection_outgoing outgoing = {.kind = CONNECTION_WELCOME};
    const union reply_body body = {.hello = {.version = HELLO_VERSION,
                                             .cluster_high = load_le64(self->cluster_id),
                                             .cluster_low = load_le64(self->cluster_id + 8),
                                             .node = self->node.value,
                                             .life_high = self->life[0],
                                             .life_low = self->life[1],
                                             .lanes = lanes_granted(client->gate),
                                             .wall_ns = env_wall_ns(client->gate->options.env),
                                             .result = result,
                                             .plain = plain}};
    struct buffer head;
    int r = connection_begin(client->connection, WELCOME_BYTES, &head);

    if (r == 0) {
        r = wire_encode_reply(OP_HELLO, &body, &head);
    }
    if (r == 0) {
        connection_commit(client->connection, &head, &outgoing);
        connection_flush(client->connection);
    }
    return r;
}

/* Who is refused is told why, and closes. */
static int client_refuse(struct gate_connection *client, int result) {
    client->gate->refused_count++;
    client->is_refused = true;
    client->since_ns = gate_now(client->gate);
    return welcome_send(client, result, false);
}

static bool is_revoked(const struct gate *gate, const struct identity *identity) {
    return gate->options.keys && identity->kind == IDENTITY_MOUNT &&
           key_ring_is_revoked(gate->options.keys, identity->serial);
}

static int hello_check(const struct gate *gate, const struct hello_request *hello) {
    const struct lane_identity *self = &gate->options.self;
    static const uint8_t any[16];
    uint8_t cluster[16];

    store_le64(cluster, hello->cluster_high);
    store_le64(cluster + 8, hello->cluster_low);
    if (hello->version_min > HELLO_VERSION) {
        return -ERR_TOO_NEW;
    }
    if (hello->version_max < HELLO_VERSION) {
        return -ERR_TOO_OLD;
    }
    if (memcmp(cluster, any, 16) != 0 && memcmp(cluster, self->cluster_id, 16) != 0) {
        return -ERR_OTHER_CLUSTER;
    }
    return hello->receiver && hello->receiver != self->node.value ? -ERR_REFUSED : 0;
}

/* One of which nothing is at work, if there is such. */
static struct gate_connection *lane_to_drop(struct gate *gate, const struct caller *caller) {
    struct gate_connection *chosen = NULL;

    for (struct list_node *node = gate->connections.head.next; node != &gate->connections.head;
         node = node->next) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, node);

        if (client->caller == caller && (!chosen || client->end->request_count == 0)) {
            chosen = client;
            if (client->end->request_count == 0) {
                break;
            }
        }
    }
    return chosen;
}

/* Who had many when there were few callers gives one back for each that comes. */
static void surplus_drop(struct gate *gate) {
    struct caller *most;

    if (gate->connection_count - gate->greeting_count <= lanes_max(gate)) {
        return;
    }
    most = callers_most(&gate->callers);
    if (most && most->lane_count > lanes_granted(gate)) {
        gate->surplus_count++;
        connection_leave(lane_to_drop(gate, most), true);
    }
}

/* The lane's end has this connection from now on. */
static void end_take(struct gate_connection *client, struct lane_end *end, struct caller *caller,
                     uint64_t number) {
    struct gate *gate = client->gate;

    caller->lane_count++; /* First: it stays while the older one goes. */
    if (end->connection) {
        gate->replaced_count++;
        connection_leave(end->connection, true);
    }
    end->number = number;
    end->connection = client;
    client->end = end;
    client->caller = caller;
    list_remove(&client->node);
    list_push_back(&gate->connections, &client->node);
    gate->greeting_count--;
    surplus_drop(gate);
}

static int hello_take(struct gate_connection *client, struct bytes head) {
    struct gate *gate = client->gate;
    union request_body body;
    struct identity identity;
    struct lane_end *end;
    int r = wire_decode_request(OP_HELLO, head, NULL, &body);

    if (r < 0 || client->end || client->is_refused) {
        return r < 0 ? r : -ERR_MALFORMED;
    }
    identity = connection_identity(client->connection);
    if (is_revoked(gate, &identity)) {
        revoked_say(client, &identity, "was refused");
        return client_refuse(client, -ERR_REVOKED);
    }
    r = hello_check(gate, &body.hello);
    r = r < 0 ? r : plain_check(client, body.hello.plain);
    if (r < 0) {
        return client_refuse(client, r);
    }
    const uint64_t life[2] = {body.hello.life_high, body.hello.life_low};
    end = end_find(gate, life, body.hello.lane, &identity);
    if (!end || body.hello.number <= end->number) {
        gate->old_lane_count += end != NULL;
        return client_refuse(client, end ? -ERR_OLD_LANE : -ERR_NO_MEMORY);
    }
    struct caller *caller = callers_get(&gate->callers, life, &identity);
    if (!caller) {
        return client_refuse(client, -ERR_NO_MEMORY);
    }
    if (!end->connection && caller->lane_count >= lanes_granted(gate)) {
        return client_refuse(client, -ERR_TOO_MANY_LANES); /* It has some: it stays. */
    }
    end_take(client, end, caller, body.hello.number);
    r = welcome_send(client, 0, body.hello.plain);
    return r < 0 || !body.hello.plain ? r : connection_go_plain(client->connection);
}

/* Requests. */

static void *client_bulk_get(void *context, const struct connection_message *message,
                             size_t size_bytes) {
    struct gate_connection *client = context;

    return client->end && message->kind == CONNECTION_REQUEST ? bulk_get(client->gate, size_bytes)
                                                              : NULL;
}

static void client_bulk_put(void *context, void *bulk) {
    struct gate_connection *client = context;

    bulk_put(client->gate, bulk);
}

static int refusal_send(struct gate_connection *client, const struct inlet_refusal *refusal) {
    const struct connection_outgoing outgoing = {.kind = CONNECTION_REPLY};
    struct buffer head;
    int r = connection_begin(client->connection, INLET_REFUSAL_BYTES, &head);

    if (r < 0) {
        /* Without room even for this the caller is one that does not read. */
        return r;
    }
    inlet_encode_refusal(refusal, &head);
    connection_commit(client->connection, &head, &outgoing);
    client_mark(client);
    return 0;
}

/* What this thread has not looked at for a long time may have been given up since. */
static uint64_t lateness(const struct gate *gate, uint64_t arrived_ns) {
    uint64_t gap_ns = arrived_ns > gate->looked_ns ? arrived_ns - gate->looked_ns : 0;

    return gate->looked_ns > 0 && gap_ns > GAP_NS ? gap_ns : 0;
}

static int request_take(struct gate_connection *client, const struct connection_message *message) {
    struct gate *gate = client->gate;
    const struct inlet_arrival arrival = {.head = message->head,
                                          .bulk = message->bulk,
                                          .from = client->end,
                                          .identity = &client->end->identity,
                                          .life = {client->end->life[0], client->end->life[1]},
                                          .late_ns = lateness(gate, message->arrived_ns)};
    struct inlet_refusal refusal;
    enum inlet_taken taken;

    if (message->bulk.size > 0 && !message->bulk.data) {
        /* Its bytes were thrown away: it was not looked at. */
        taken = frame_peek_request(message->head, &refusal.request) < 0 ? INLET_UNREADABLE
                                                                        : INLET_REFUSED;
        refusal.result = -ERR_BUSY;
    } else {
        taken = inlet_take(&gate->inlet, &arrival, &refusal);
        if (taken != INLET_POSTED && message->bulk.data) {
            bulk_put(gate, (void *)message->bulk.data);
        }
    }
    if (taken == INLET_REFUSED && refusal.result == -ERR_BUSY) {
        gate->busy_count++;
        gate->is_short = true;
    }
    gate->late_count += arrival.late_ns > 0;
    return taken == INLET_UNREADABLE ? -ERR_MALFORMED
           : taken == INLET_REFUSED  ? refusal_send(client, &refusal)
                                     : 0;
}

static void client_message(void *context, const struct connection_message *message) {
    struct gate_connection *client = context;
    int r = -ERR_MALFORMED;

    if (message->kind == CONNECTION_HELLO) {
        r = hello_take(client, message->head);
    } else if (message->kind == CONNECTION_REQUEST && client->end) {
        r = request_take(client, message);
    }
    if (r < 0) {
        connection_leave(client, true);
    }
}

static const struct connection_hooks client_hooks = {
    .bulk_get = client_bulk_get,
    .bulk_put = client_bulk_put,
    .message = client_message,
    .room = client_room,
    .ended = client_ended,
};

static void request_taken(void *context, struct inlet_request *request) {
    struct gate *gate = context;
    struct lane_end *end = request->from;

    gate->request_count++;
    end->request_count++;
    list_push_back(&gate->at_work, &request->node);
}

/* Any thread. */
static void request_ready(void *context, struct inlet_request *request) {
    struct gate *gate = context;
    struct inlet_request *first = atomic_load_explicit(&gate->ready, memory_order_relaxed);

    do {
        request->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&gate->ready, &first, request,
                                                    memory_order_release, memory_order_relaxed));
    if (!first && worker_current() != gate->worker) {
        gate->options.waker.wake(gate->options.waker.context);
    }
}

/* All that is ready, oldest first. */
static struct inlet_request *ready_take(struct gate *gate) {
    struct inlet_request *newest =
        atomic_exchange_explicit(&gate->ready, NULL, memory_order_acquire);
    struct inlet_request *oldest = NULL;

    while (newest) {
        struct inlet_request *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void request_answer(struct gate *gate, struct inlet_request *request) {
    struct lane_end *end = request->from;

    list_remove(&request->node);
    gate->answer_count++;
    if (request->call.result == CALL_DISCARDED || !end->connection) {
        gate->dropped_count += request->call.result != CALL_DISCARDED;
        request_over(gate, request);
        return;
    }
    if (!list_is_empty(&end->waiting) || answer_send(end->connection, request) < 0) {
        list_push_back(&end->waiting, &request->node);
        client_mark(end->connection);
    }
}

/* Sends what is there, and reads no more from one that does not take it: much bulk, or so many
 * answers that some find no room. */
static void client_flush(struct gate_connection *client) {
    connection_flush(client->connection);
    if (client->end && !client->is_unread &&
        (connection_unsent_bytes(client->connection) > UNREAD_BYTES_MAX ||
         !list_is_empty(&client->end->waiting))) {
        client->is_unread = true;
        connection_set_reading(client->connection, false);
        connection_want_room(client->connection);
    }
}

bool gate_turn(struct gate *gate) {
    struct inlet_request *request = ready_take(gate);
    bool did = request != NULL;
    struct list_node *node;

    while (request) {
        struct inlet_request *next = request->next;

        request_answer(gate, request);
        request = next;
    }
    while ((node = list_pop_front(&gate->dirty))) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, dirty);

        client->is_dirty = false;
        client_flush(client);
    }
    return did;
}

/* As far as this thread has been there to hear. */
static bool client_is_silent(const struct gate_connection *client, uint64_t now_ns) {
    const struct gate *gate = client->gate;
    uint64_t heard_ns = MAX(client->since_ns, connection_heard_ns(client->connection));

    return client->end && now_ns - MAX(heard_ns, gate->awake_ns) > gate->options.silent_ns;
}

/* Nobody waits for what these would still say. */
static bool client_is_over(const struct gate_connection *client, uint64_t now_ns) {
    uint64_t unsent_ns = connection_unsent_since_ns(client->connection);

    return (!client->end && now_ns - client->since_ns > GREETING_NS) ||
           (client->is_unread && unsent_ns > 0 && now_ns - unsent_ns > UNREAD_NS);
}

static void ends_sweep(struct gate *gate, uint64_t now_ns) {
    for (uint32_t i = 0; i < END_BUCKETS; i++) {
        struct list *bucket = &gate->ends[i];

        for (struct list_node *node = bucket->head.next; node != &bucket->head;) {
            struct lane_end *end = CONTAINER_OF(node, struct lane_end, node);

            node = node->next;
            if (!end->connection && end->request_count == 0 &&
                now_ns - end->idle_since_ns > END_IDLE_NS) {
                list_remove(&end->node);
                free(end);
            }
        }
    }
}

static void connections_sweep(struct list *connections, uint64_t now_ns) {
    for (struct list_node *node = connections->head.next; node != &connections->head;) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, node);

        node = node->next;
        if (client_is_over(client, now_ns)) {
            connection_leave(client, true);
        } else if (client_is_silent(client, now_ns)) {
            client->gate->silent_count++;
            connection_leave(client, true);
        }
    }
}

/* What they have asked runs on, and its answers find nobody. */
static void revoked_cut_off(struct gate *gate) {
    uint32_t revoked_count = gate->options.keys ? key_ring_revoked_count(gate->options.keys) : 0;

    if (revoked_count == gate->revoked_count) {
        return;
    }
    gate->revoked_count = revoked_count;
    for (struct list_node *node = gate->connections.head.next; node != &gate->connections.head;) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, node);

        node = node->next;
        if (is_revoked(gate, &client->end->identity)) {
            revoked_say(client, &client->end->identity, "was cut off");
            connection_leave(client, true);
        }
    }
}

/* Since when it has had memory that others could use and nothing moves: half of a message came,
 * or its answers are not read. UINT64_MAX: it has not. */
static uint64_t client_holds_since_ns(const struct gate_connection *client) {
    uint64_t half_ns = connection_half_since_ns(client->connection);
    uint64_t unsent_ns = connection_unsent_since_ns(client->connection);

    return MIN(half_ns > 0 ? half_ns : UINT64_MAX, unsent_ns > 0 ? unsent_ns : UINT64_MAX);
}

/* While requests find no room, or bulk no memory, the one goes that has held some for longest
 * without moving 64 KiB, if for a second at least: who has stopped in the middle of a message, or
 * does not read, holds up the others no longer; who is slow because many are at work goes on. */
static void holder_cut_off(struct gate *gate, uint64_t now_ns) {
    struct gate_connection *oldest = NULL;
    uint64_t since_ns = now_ns > HOLD_NS ? now_ns - HOLD_NS : 0;

    if (!gate->is_short) {
        return;
    }
    gate->is_short = false;
    for (struct list_node *node = gate->connections.head.next; node != &gate->connections.head;
         node = node->next) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, node);
        uint64_t holds_since_ns = client_holds_since_ns(client);

        if (holds_since_ns <= since_ns) {
            oldest = client;
            since_ns = holds_since_ns;
        }
    }
    if (oldest) {
        refusal_say(oldest, "was cut off",
                    "it holds memory for half of a message, or for answers that it does not read");
        connection_leave(oldest, true);
    }
}

void gate_tick(struct gate *gate) {
    uint64_t now_ns = gate_now(gate);

    bool was_away = now_ns - gate->ticked_ns > GAP_NS;

    /* This tick may come ahead of what lay there meanwhile: by the next one that has been seen. */
    gate->looked_ns = was_away ? gate->ticked_ns : now_ns;
    gate->awake_ns = was_away ? now_ns : gate->awake_ns;
    gate->ticked_ns = now_ns;
    revoked_cut_off(gate);
    holder_cut_off(gate, now_ns);
    if (now_ns - gate->swept_ns < NS_PER_S) {
        return;
    }
    gate->swept_ns = now_ns;
    connections_sweep(&gate->connections, now_ns);
    connections_sweep(&gate->greetings, now_ns);
    ends_sweep(gate, now_ns);
}

/* Listening. */

static bool gate_is_full(struct gate *gate) {
    char line[96];

    if (gate->greeting_count == GATE_GREETINGS_MAX) {
        struct list_node *oldest = list_first(&gate->greetings);

        gate->refused_count++;
        connection_leave(CONTAINER_OF(oldest, struct gate_connection, node), true);
    }

    if (gate->connection_count < gate->options.connections_max) {
        gate->is_full_said = false;
        return false;
    }
    if (!gate->is_full_said) {
        gate->is_full_said = true;
        snprintf(line, sizeof line, "%u connections are open, as many as may be; more are refused",
                 gate->connection_count);
        gate_say(gate, line);
    }
    return true;
}

/* By TCP only who brings a key. */
static bool stream_is_let_in(struct gate *gate, struct env_stream *stream,
                             const struct address *address) {
    const struct gate_options *options = &gate->options;

    if (address->kind != ADDRESS_UNIX) {
        return options->tls != NULL;
    }
    return !options->admit || options->admit(options->context, stream) == 0;
}

static void stream_accepted(struct env_listener *listener, struct env_stream *stream) {
    struct gate *gate = listener->context;
    struct gate_connection *client = NULL;
    struct connection_options options = {.env = gate->options.env,
                                         .out_bytes = OUT_BYTES,
                                         .out_messages = OUT_MESSAGES,
                                         .hooks = &client_hooks};
    struct address address;

    stream->env->streams->peer_address(stream, &address);
    gate->accepted_count++;
    if (stream_is_let_in(gate, stream, &address) && !gate_is_full(gate)) {
        client = calloc(1, sizeof *client);
    }
    if (!client) {
        gate->refused_count++;
        env_stream_reset(stream);
        return;
    }
    options.context = client;
    options.tls = address.kind == ADDRESS_UNIX ? NULL : gate->options.tls;
    client->has_tls = options.tls != NULL;
    client->is_near = address_is_near(&address);
    address_format(&address, client->address);
    client->gate = gate;
    client->since_ns = gate_now(gate);
    list_init(&client->sending);
    stream->drops_unread = true; /* Who has left has given up what it asked. */
    if (connection_accept(&options, stream, &client->connection) < 0) {
        free(client);
        return;
    }
    list_push_back(&gate->greetings, &client->node);
    gate->greeting_count++;
    gate->connection_count++;
}

static void streams_full(struct env_listener *listener) {
    gate_say(listener->context,
             "there are as many connections as this process may have; more wait until one ends");
}

int gate_listen(struct gate *gate, const struct address *address) {
    const struct env_listen_options options = {
        .accepted = stream_accepted, .full = streams_full, .context = gate};
    struct env *env = gate->options.env;
    int r;

    if (gate->listener_count == GATE_LISTENERS_MAX) {
        return -ERR_TOO_MANY_OPEN;
    }
    r = env->streams->listen(env, address, &options, &gate->listeners[gate->listener_count]);
    gate->listener_count += r == 0;
    return r;
}

void gate_close(struct gate *gate) {
    struct list_node *node;

    while (gate->listener_count > 0) {
        gate->options.env->streams->listener_close(gate->listeners[--gate->listener_count]);
    }
    for (node = gate->connections.head.next; node != &gate->connections.head; node = node->next) {
        connection_set_reading(CONTAINER_OF(node, struct gate_connection, node)->connection, false);
    }
    while ((node = list_first(&gate->greetings))) {
        connection_leave(CONTAINER_OF(node, struct gate_connection, node), true);
    }
}

/* What is being sent, or waits for that, is at work no more. */
bool gate_is_idle(const struct gate *gate) {
    return gate->request_count == gate->answer_count;
}

static void default_32(uint32_t *number, uint32_t value) {
    *number = *number ? *number : value;
}

static int gate_init(struct gate *gate) {
    struct gate_options *options = &gate->options;
    struct inlet_options inlet = {.env = options->env,
                                  .logs = options->logs,
                                  .worker = gate->worker,
                                  .bulk_get = bulk_get,
                                  .bulk_put = bulk_put,
                                  .taken = request_taken,
                                  .ready = request_ready,
                                  .context = gate};
    int r;

    default_32(&options->connections_max, 4096);
    default_32(&options->requests_max, 4096);
    default_32(&options->bulk_count, 64);
    default_32(&options->small_bulk_count, 512);
    options->bulk_bytes_max = options->bulk_bytes_max ? options->bulk_bytes_max : 4 << 20;
    options->silent_ns = options->silent_ns ? options->silent_ns : SILENT_NS;
    inlet.requests_max = options->requests_max;
    inlet.bulk_bytes_max = options->bulk_bytes_max;
    inlet.reserve_count[MESSAGE_CONTROL] = options->requests_max / 8;
    inlet.reserve_count[MESSAGE_RELEASE] = options->requests_max / 4;
    inlet.reserve_count[MESSAGE_REQUEST] = options->requests_max / 8;
    r = bulk_memory_init(&gate->bulk, "bulk", options->bulk_count, options->bulk_bytes_max);
    if (r == 0) {
        r = bulk_memory_init(&gate->small_bulk, "small bulk", options->small_bulk_count,
                             SMALL_BULK_BYTES);
    }
    return r < 0 ? r : inlet_init(&gate->inlet, &inlet);
}

int gate_new(const struct gate_options *options, struct gate **ret_gate) {
    struct gate *gate = calloc(1, sizeof *gate);
    int r;

    if (!gate) {
        return -ERR_NO_MEMORY;
    }
    gate->options = *options;
    gate->worker = worker_current();
    list_init(&gate->connections);
    list_init(&gate->greetings);
    list_init(&gate->dirty);
    list_init(&gate->at_work);
    for (uint32_t i = 0; i < END_BUCKETS; i++) {
        list_init(&gate->ends[i]);
    }
    callers_init(&gate->callers);
    r = gate_init(gate);
    if (r < 0) {
        bulk_memory_deinit(&gate->bulk);
        bulk_memory_deinit(&gate->small_bulk);
        free(gate);
        return r;
    }
    *ret_gate = gate;
    return 0;
}

void gate_free(struct gate *gate) {
    struct list_node *node;

    if (!gate) {
        return;
    }
    gate_close(gate);
    gate_turn(gate);
    while ((node = list_first(&gate->connections))) {
        connection_leave(CONTAINER_OF(node, struct gate_connection, node), false);
    }
    assert(gate->request_count == 0 && gate->callers.count == 0);
    for (uint32_t i = 0; i < END_BUCKETS; i++) {
        while ((node = list_pop_front(&gate->ends[i]))) {
            free(CONTAINER_OF(node, struct lane_end, node));
        }
    }
    inlet_deinit(&gate->inlet);
    bulk_memory_deinit(&gate->bulk);
    bulk_memory_deinit(&gate->small_bulk);
    free(gate);
}

void gate_abandon(struct gate *gate) {
    struct list_node *node;

    if (!gate) {
        return;
    }
    atomic_store(&gate->ready, NULL);
    while ((node = list_pop_front(&gate->at_work))) {
        gate->answer_count++;
        request_over(gate, CONTAINER_OF(node, struct inlet_request, node));
    }
    gate_free(gate);
}

void gate_stats(const struct gate *gate, struct gate_stats *ret_stats) {
    *ret_stats = (struct gate_stats){.connection_count = gate->connection_count,
                                     .connections_max = gate->options.connections_max,
                                     .accepted_count = gate->accepted_count,
                                     .refused_count = gate->refused_count,
                                     .busy_count = gate->busy_count,
                                     .late_count = gate->late_count,
                                     .replaced_count = gate->replaced_count,
                                     .old_lane_count = gate->old_lane_count,
                                     .dropped_count = gate->dropped_count,
                                     .silent_count = gate->silent_count,
                                     .surplus_count = gate->surplus_count,
                                     .lanes_granted = lanes_granted(gate),
                                     .requests = pool_usage(&gate->inlet.pool)};
}
