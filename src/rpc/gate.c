/* The serving end; the contract and the picture are in gate.h. */
#include "rpc/gate_internal.h"
#include "env/env.h"
#include "env/env_stream.h"
#include "keys/key_ring.h"
#include "rpc/worker.h"
#include <assert.h>
#include <stdlib.h>

enum { SMALL_BULK_BYTES = 64 << 10 };
#define GREETING_NS (5 * NS_PER_S)
#define UNREAD_NS (30 * NS_PER_S)
#define SILENT_NS (180 * NS_PER_S)
#define END_IDLE_NS (120 * NS_PER_S)
#define HOLD_NS NS_PER_S

uint64_t gate_now(const struct gate *gate) {
    return env_now_ns(gate->options.env);
}

void gate_say(const struct gate *gate, const char *line) {
    if (gate->options.log) {
        gate->options.log(gate->options.context, line);
    }
}

/* Memory of bulk. */

void *gate_bulk_get(void *context, size_t size_bytes) {
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
void gate_bulk_put(void *context, void *buffer) {
    struct gate *gate = context;

    if (!bulk_memory_put(&gate->small_bulk, buffer)) {
        bool is_ours = bulk_memory_put(&gate->bulk, buffer);

        assert(is_ours);
    }
}

/* As far as this thread has been there to hear. */
static bool client_is_silent(const struct gate_connection *client, uint64_t now_ns) {
    const struct gate *gate = client->gate;
    uint64_t heard_ns = gate_heard_ns(client);

    return client->end && now_ns - MAX(heard_ns, gate->awake_ns) > gate->options.silent_ns;
}

/* Nobody waits for what these would still say. */
static bool client_is_over(const struct gate_connection *client, uint64_t now_ns) {
    uint64_t unsent_ns = connection_unsent_since_ns(client->connection);

    return (!client->end && now_ns - client->since_ns > GREETING_NS) ||
           (client->is_unread && unsent_ns > 0 && now_ns - unsent_ns > UNREAD_NS);
}

static void ends_sweep(struct gate *gate, uint64_t now_ns) {
    for (uint32_t i = 0; i < GATE_END_BUCKETS; i++) {
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
            gate_connection_leave(client, true);
        } else if (client_is_silent(client, now_ns)) {
            client->gate->silent_count++;
            gate_connection_leave(client, true);
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
        gate_refusal_say(
            oldest, "was cut off",
            "it holds memory for half of a message, or for answers that it does not read");
        gate_connection_leave(oldest, true);
    }
}

void gate_tick(struct gate *gate) {
    uint64_t now_ns = gate_now(gate);

    bool was_away = now_ns - gate->ticked_ns > GATE_GAP_NS;

    /* This tick may come ahead of what lay there meanwhile: by the next one that has been seen. */
    gate->looked_ns = was_away ? gate->ticked_ns : now_ns;
    gate->awake_ns = was_away ? now_ns : gate->awake_ns;
    gate->ticked_ns = now_ns;
    gate_revoked_cut_off(gate);
    holder_cut_off(gate, now_ns);
    if (now_ns - gate->swept_ns < NS_PER_S) {
        return;
    }
    gate->swept_ns = now_ns;
    connections_sweep(&gate->connections, now_ns);
    connections_sweep(&gate->greetings, now_ns);
    ends_sweep(gate, gate_now(gate)); /* Some have left a moment ago. */
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
        gate_connection_leave(CONTAINER_OF(node, struct gate_connection, node), true);
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
                                  .bulk_get = gate_bulk_get,
                                  .bulk_put = gate_bulk_put,
                                  .taken = gate_request_taken,
                                  .ready = gate_request_ready,
                                  .context = gate};
    int r;

    default_32(&options->connections_max, 4096);
    default_32(&options->requests_max, 4096);
    default_32(&options->bulk_count, 64);
    default_32(&options->small_bulk_count, 512);
    options->bulk_bytes_max = options->bulk_bytes_max ? options->bulk_bytes_max : 4 << 20;
    options->silent_ns = options->silent_ns ? options->silent_ns : SILENT_NS;
    inlet.requests_max = options->requests_max;
    inlet.waits_max = options->waits_max;
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
    for (uint32_t i = 0; i < GATE_END_BUCKETS; i++) {
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
        gate_connection_leave(CONTAINER_OF(node, struct gate_connection, node), false);
    }
    assert(gate->request_count == 0 && gate->callers.count == 0);
    for (uint32_t i = 0; i < GATE_END_BUCKETS; i++) {
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
        gate_request_over(gate, CONTAINER_OF(node, struct inlet_request, node));
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
                                     .lanes_granted = gate_lanes_granted(gate),
                                     .requests = pool_usage(&gate->inlet.pool)};
}
