/* The contract and the picture are in transport_sim.h.
 *
 * Packet: u32 head size, head (frame.h), zeros up to a block, bulk. So bulk is aligned, as it is
 * in the buffers of a real server. */
#include "rpc/transport_sim.h"
#include "base/endian.h"
#include "rpc/awaited.h"
#include "rpc/frame.h"
#include "rpc/inlet.h"
#include "rpc/sim_aways.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct transport_sim {
    struct sim_port *port;
    struct awaited awaited;
    struct sim_aways *aways; /* NULL: nobody looks */
};

struct transport_sim_server {
    struct sim_port *port;
    struct log_table *logs;
    struct inlet inlet;
    struct list requests; /* at work */
};

static void *allocate(size_t size_bytes) {
    size_t room = (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    void *memory = aligned_alloc(BLOCK_BYTES, MAX(room, (size_t)BLOCK_BYTES));

    if (!memory) {
        abort();
    }
    memset(memory, 0, MAX(room, (size_t)BLOCK_BYTES));
    return memory;
}

static size_t bulk_start(size_t head_size) {
    return (4 + head_size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* A packet with the head that is in `head`, and space for bulk behind it. */
static struct sim_packet *packet_build(const struct buffer *head, size_t bulk_bytes) {
    size_t start = bulk_start(head->size);
    struct sim_packet *packet = sim_packet_new(start + bulk_bytes);

    memset(packet->data, 0, start);
    store_le32(packet->data, (uint32_t)head->size);
    memcpy(packet->data + 4, head->data, head->size);
    return packet;
}

static int packet_split(const struct sim_packet *packet, struct bytes *ret_head,
                        struct bytes *ret_bulk) {
    size_t head_size = packet->size >= 4 ? load_le32(packet->data) : 0;
    size_t start = bulk_start(head_size);

    if (head_size == 0 || packet->size < start) {
        return -ERR_MALFORMED;
    }
    *ret_head = (struct bytes){packet->data + 4, head_size};
    *ret_bulk = (struct bytes){packet->data + start, packet->size - start};
    return 0;
}

/* The client's end. */

static uint64_t await_begin(struct transport_sim *transport, struct call *call) {
    bool is_new = !awaited_contains(call);
    uint64_t id;

    if (awaited_add(&transport->awaited, call, &id) < 0) {
        abort();
    }
    if (is_new && transport->aways) {
        sim_aways_await(transport->aways, call->header.log);
    }
    return id;
}

static void await_end(struct transport_sim *transport, struct call *call) {
    awaited_remove(&transport->awaited, call);
    if (transport->aways) {
        sim_aways_over(transport->aways, call->header.log);
    }
}

static bool sim_is_away(void *context, struct log_id log) {
    const struct transport_sim *transport = context;

    return transport->aways && sim_aways_has(transport->aways, log);
}

static bool sim_has_waited(void *context, const struct call *call) {
    const struct transport_sim *transport = context;

    return transport->aways && sim_aways_waited(transport->aways, call);
}

/* As it would at the next tick. False: the call is to be sent. */
static bool is_over(struct transport_sim *transport, struct call *call) {
    int r = sim_has_waited(transport, call)                                      ? -ERR_AWAY
            : sim_is_away(transport, call->header.log) && call_is_unwanted(call) ? -ERR_INTERRUPTED
                                                                                 : 0;

    if (r < 0 && awaited_contains(call)) {
        await_end(transport, call);
    }
    if (r < 0) {
        rpc_answered(call->rpc, call, r);
    }
    return r < 0;
}

static void sim_send(void *context, struct call *call) {
    struct transport_sim *transport = context;
    struct buffer head = {.capacity = frame_request_size(call)};
    struct sim_packet *packet;
    size_t bulk_bytes = 0;
    int r;

    if (is_over(transport, call)) {
        return;
    }
    uint64_t id = await_begin(transport, call);
    head.data = allocate(head.capacity);
    r = frame_encode_request(call, id, call_time_left_ns(call), &head);
    if (r < 0) {
        free(head.data);
        await_end(transport, call);
        rpc_answered(call->rpc, call, r);
        return;
    }
    for (uint32_t i = 0; i < call->bulk_out_count; i++) {
        bulk_bytes += call->bulk_out[i].size;
    }
    packet = packet_build(&head, bulk_bytes);
    free(head.data);
    bulk_bytes = packet->size - bulk_bytes;
    for (uint32_t i = 0; i < call->bulk_out_count; i++) {
        memcpy(packet->data + bulk_bytes, call->bulk_out[i].data, call->bulk_out[i].size);
        bulk_bytes += call->bulk_out[i].size;
    }
    sim_count(sim_port_world(transport->port), "calls sent", 1);
    call->was_sent = true;
    sim_net_send(transport->port, call->header.log.value, packet);
}

static void sim_forget(void *context, struct call *call) {
    struct transport_sim *transport = context;

    if (awaited_contains(call)) {
        await_end(transport, call);
    }
}

static int reply_take(struct transport_sim *transport, const struct sim_packet *packet) {
    struct frame_reply frame;
    struct bytes head;
    struct bytes bulk;
    struct call *call;
    int r = packet_split(packet, &head, &bulk);

    if (r == 0) {
        r = frame_decode_reply(head, &frame);
    }
    if (r < 0) {
        return r;
    }
    call = awaited_find(&transport->awaited, frame.id);
    if (!call) {
        sim_count(sim_port_world(transport->port), "replies late", 1);
        return 0;
    }
    if (frame.bulk_bytes != bulk.size) {
        return -ERR_MALFORMED;
    }
    r = frame_apply_reply(&frame, call);
    if (r < 0) {
        return r;
    }
    if (bulk.size > 0) {
        memcpy(call->bulk_in.data, bulk.data, bulk.size);
    }
    call->bulk_in.size = bulk.size;
    await_end(transport, call);
    rpc_answered(call->rpc, call, frame.result);
    return 0;
}

static void client_receive(void *context, struct sim_packet *packet) {
    struct transport_sim *transport = context;

    if (transport->aways) {
        sim_aways_heard(transport->aways, packet->from);
    }
    if (!sim_aways_is_question(packet) && reply_take(transport, packet) < 0) {
        sim_count(sim_port_world(transport->port), "replies malformed", 1);
    }
    sim_packet_free(packet);
}

const struct transport_ops transport_sim_ops = {
    .send = sim_send, .forget = sim_forget, .is_away = sim_is_away, .has_waited = sim_has_waited};

int transport_sim_new(struct sim_net *net, struct sim_process *process,
                      struct transport_sim **ret_transport) {
    struct transport_sim *transport = calloc(1, sizeof *transport);

    if (!transport) {
        return -ERR_NO_MEMORY;
    }
    awaited_init(&transport->awaited);
    transport->port = sim_net_bind(net, process, 0, client_receive, transport);
    *ret_transport = transport;
    return 0;
}

void transport_sim_watch(struct transport_sim *transport, struct env *env, uint64_t silent_ns) {
    assert(!transport->aways && transport->awaited.call_count == 0 && silent_ns > 0);
    transport->aways = sim_aways_new(transport->port, env, silent_ns);
}

void transport_sim_tick(struct transport_sim *transport) {
    if (transport->aways) {
        sim_aways_tick(transport->aways, &transport->awaited);
    }
}

void transport_sim_free(struct transport_sim *transport) {
    if (transport) {
        sim_aways_free(transport->aways);
        sim_net_unbind(transport->port);
        awaited_deinit(&transport->awaited);
        free(transport);
    }
}

/* The server's end: what a request is known by is its packet. */

static void *bulk_get(void *context, size_t size_bytes) {
    (void)context;
    return allocate(size_bytes);
}

static void bulk_put(void *context, void *bulk) {
    (void)context;
    free(bulk);
}

static void reply_send(struct transport_sim_server *server, const struct buffer *head,
                       const struct buffer *bulk, uint64_t to) {
    struct sim_packet *packet = packet_build(head, bulk->size);

    if (bulk->size > 0) {
        memcpy(packet->data + packet->size - bulk->size, bulk->data, bulk->size);
    }
    sim_net_send(server->port, to, packet);
}

static void request_taken(void *context, struct inlet_request *request) {
    struct transport_sim_server *server = context;

    list_push_back(&server->requests, &request->node);
}

static void request_done(struct inlet_request *request) {
    list_remove(&request->node);
    sim_packet_free(TAKE_PTR(request->from));
    inlet_done(request);
}

static void request_ready(void *context, struct inlet_request *request) {
    const struct sim_packet *packet = request->from;
    struct buffer head = {.capacity = inlet_reply_size(request)};

    if (request->call.result != CALL_DISCARDED) {
        head.data = allocate(head.capacity);
        inlet_encode(request, &head);
        reply_send(context, &head, &request->call.bulk_in, packet->from);
        free(head.data);
    }
    request_done(request);
}

static void refuse(struct transport_sim_server *server, const struct inlet_refusal *refusal,
                   uint64_t to) {
    uint8_t space[INLET_REFUSAL_BYTES];
    struct buffer head = {.data = space, .capacity = sizeof space};
    const struct buffer none = {0};

    inlet_encode_refusal(refusal, &head);
    reply_send(server, &head, &none, to);
}

/* What can't be answered, as it isn't known what to whom, is counted only. */
static void server_receive(void *context, struct sim_packet *packet) {
    struct transport_sim_server *server = context;
    struct inlet_arrival arrival = {.from = packet, .life = {packet->from}};
    struct inlet_refusal refusal;
    enum inlet_taken taken = INLET_UNREADABLE;

    if (sim_aways_is_question(packet)) {
        sim_aways_answer(server->port, packet->from);
        sim_packet_free(packet);
        return;
    }
    if (packet_split(packet, &arrival.head, &arrival.bulk) == 0) {
        taken = inlet_take(&server->inlet, &arrival, &refusal);
    }
    if (taken == INLET_POSTED) {
        return;
    }
    if (taken == INLET_REFUSED && refusal.result == -ERR_BUSY) {
        sim_count(sim_port_world(server->port), "calls busy", 1);
    } else {
        sim_count(sim_port_world(server->port), "requests malformed", 1);
    }
    if (taken == INLET_REFUSED) {
        refuse(server, &refusal, packet->from);
    }
    sim_packet_free(packet);
}

static int server_init(struct transport_sim_server *server,
                       const struct transport_sim_server_options *options) {
    struct inlet_options inlet = {.env = options->env,
                                  .requests_max = options->calls_max,
                                  .bulk_bytes_max = options->bulk_bytes_max,
                                  .bulk_get = bulk_get,
                                  .bulk_put = bulk_put,
                                  .taken = request_taken,
                                  .ready = request_ready,
                                  .context = server};
    int r = log_table_new(1, &server->logs);

    if (r == 0) {
        r = log_table_add(server->logs, options->log, options->actor);
    }
    inlet.logs = server->logs;
    memcpy(inlet.reserve_count, options->reserve_count, sizeof inlet.reserve_count);
    return r < 0 ? r : inlet_init(&server->inlet, &inlet);
}

int transport_sim_serve(const struct transport_sim_server_options *options,
                        struct transport_sim_server **ret_server) {
    struct transport_sim_server *server = calloc(1, sizeof *server);
    int r;

    if (!server) {
        return -ERR_NO_MEMORY;
    }
    list_init(&server->requests);
    r = server_init(server, options);
    if (r < 0) {
        log_table_free(server->logs);
        free(server);
        return r;
    }
    server->port =
        sim_net_bind(options->net, options->process, options->log.value, server_receive, server);
    *ret_server = server;
    return 0;
}

void transport_sim_server_free(struct transport_sim_server *server) {
    struct list_node *node;

    if (!server) {
        return;
    }
    sim_net_unbind(server->port);
    while ((node = list_first(&server->requests))) {
        request_done(CONTAINER_OF(node, struct inlet_request, node));
    }
    inlet_deinit(&server->inlet);
    log_table_free(server->logs);
    free(server);
}
