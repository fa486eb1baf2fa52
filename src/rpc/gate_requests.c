/* Requests that come by connections, and what is answered. */
#include "rpc/gate_internal.h"
#include "env/env.h"
#include "rpc/worker.h"
#include <stdlib.h>

#define UNREAD_BYTES_MAX (1 << 20)

static struct list *end_bucket(struct gate *gate, const uint64_t life[2], uint32_t lane) {
    return &gate->ends[(life[0] ^ life[1] ^ lane * UINT64_C(0x9e3779b97f4a7c15)) %
                       GATE_END_BUCKETS];
}

struct lane_end *gate_end_find(struct gate *gate, const uint64_t life[2], uint32_t lane,
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

void gate_request_over(struct gate *gate, struct inlet_request *request) {
    struct lane_end *end = request->from;

    gate->answer_count--;
    list_remove(&request->node);
    if (request->call.bulk_out_count > 0) {
        gate_bulk_put(gate, (void *)request->call.bulk_out[0].data);
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
        gate_request_over(gate, CONTAINER_OF(node, struct inlet_request, node));
    }
}

void gate_connection_leave(struct gate_connection *client, bool reset) {
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
        caller_lane_remove(&gate->callers, client->caller, &client->lane);
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

    gate_request_over(request->inlet->options.context, request);
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

void gate_client_room(void *context) {
    struct gate_connection *client = context;

    waiting_send(client);
    if (client->is_unread && list_is_empty(&client->end->waiting)) {
        client->is_unread = false;
        connection_set_reading(client->connection, true);
    }
}

void *gate_client_bulk_get(void *context, const struct connection_message *message,
                           size_t size_bytes) {
    struct gate_connection *client = context;

    return client->end && message->kind == CONNECTION_REQUEST
               ? gate_bulk_get(client->gate, size_bytes)
               : NULL;
}

void gate_client_bulk_put(void *context, void *bulk) {
    struct gate_connection *client = context;

    gate_bulk_put(client->gate, bulk);
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

    return gate->looked_ns > 0 && gap_ns > GATE_GAP_NS ? gap_ns : 0;
}

int gate_request_take(struct gate_connection *client, const struct connection_message *message) {
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
            gate_bulk_put(gate, (void *)message->bulk.data);
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

void gate_request_taken(void *context, struct inlet_request *request) {
    struct gate *gate = context;
    struct lane_end *end = request->from;

    gate->request_count++;
    end->request_count++;
    list_push_back(&gate->at_work, &request->node);
}

/* Any thread. */
void gate_request_ready(void *context, struct inlet_request *request) {
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
        gate_request_over(gate, request);
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
    if (!connection_flush(client->connection)) {
        return; /* It was read again meanwhile, and has left for what it said. */
    }
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
