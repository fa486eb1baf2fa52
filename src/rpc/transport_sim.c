/* The contract and the picture are in transport_sim.h.
 *
 * Packet: u32 head size, head (frame.h), zeros up to a block, bulk. So bulk is aligned, as it is
 * in the buffers of a real server. */
#include "rpc/transport_sim.h"
#include "base/endian.h"
#include "rpc/frame.h"
#include "rpc/pool.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_AT_START = 64 };

/* A call's place; its id is generation << 32 | index. */
struct place {
    struct call *call; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct transport_sim {
    struct sim_port *port;
    struct place *places;
    uint32_t place_count;
    uint32_t first_free; /* place_count: none */
};

struct transport_sim_server {
    struct sim_port *port;
    struct transport_sim_server_options options;
    struct pool pool;
    struct list twins; /* in use */
};

/* A call as the server has it, and what it must keep for the reply. */
struct twin {
    struct pool_item item;
    struct call call;
    struct list_node node;
    struct transport_sim_server *server;
    struct sim_packet *packet; /* the request's bytes and bulk lie there */
    uint64_t id;
    uint32_t scratch[WIRE_GROUPS_MAX];
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

static void place_take(struct transport_sim *transport, struct call *call) {
    uint32_t index = transport->first_free;

    if (index == transport->place_count) {
        uint32_t count = MAX(2 * transport->place_count, (uint32_t)PLACES_AT_START);

        transport->places = realloc(transport->places, count * sizeof *transport->places);
        if (!transport->places) {
            abort();
        }
        for (uint32_t i = transport->place_count; i < count; i++) {
            transport->places[i] = (struct place){.next_free = i + 1};
        }
        transport->place_count = count;
    }
    transport->first_free = transport->places[index].next_free;
    transport->places[index].call = call;
    call->transport_context = (void *)(uintptr_t)(index + 1);
}

static void place_give(struct transport_sim *transport, struct call *call) {
    uint32_t index = (uint32_t)(uintptr_t)call->transport_context - 1;
    struct place *place = &transport->places[index];

    assert(place->call == call);
    place->call = NULL;
    place->generation++;
    place->next_free = transport->first_free;
    transport->first_free = index;
    call->transport_context = NULL;
}

static void sim_send(void *context, struct call *call) {
    struct transport_sim *transport = context;
    struct buffer head = {.capacity = frame_request_size(call)};
    struct sim_packet *packet;
    uint32_t index;
    uint64_t id;
    size_t bulk_bytes = 0;
    int r;

    if (!call->transport_context) {
        place_take(transport, call);
    }
    index = (uint32_t)(uintptr_t)call->transport_context - 1;
    id = (uint64_t)transport->places[index].generation << 32 | index;
    head.data = allocate(head.capacity);
    r = frame_encode_request(call, id, call_time_left_ns(call), &head);
    if (r < 0) {
        free(head.data);
        place_give(transport, call);
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
    sim_net_send(transport->port, call->header.log.value, packet);
}

static void sim_forget(void *context, struct call *call) {
    if (call->transport_context) {
        place_give(context, call);
    }
}

/* The call that waits for a reply of this id, or NULL. */
static struct call *call_of(struct transport_sim *transport, uint64_t id) {
    uint32_t index = (uint32_t)id;

    if (index >= transport->place_count ||
        transport->places[index].generation != (uint32_t)(id >> 32)) {
        return NULL;
    }
    return transport->places[index].call;
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
    call = call_of(transport, frame.id);
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
    place_give(transport, call);
    rpc_answered(call->rpc, call, frame.result);
    return 0;
}

static void client_receive(void *context, struct sim_packet *packet) {
    struct transport_sim *transport = context;

    if (reply_take(transport, packet) < 0) {
        sim_count(sim_port_world(transport->port), "replies malformed", 1);
    }
    sim_packet_free(packet);
}

const struct transport_ops transport_sim_ops = {.send = sim_send, .forget = sim_forget};

int transport_sim_new(struct sim_net *net, struct sim_process *process,
                      struct transport_sim **ret_transport) {
    struct transport_sim *transport = calloc(1, sizeof *transport);

    if (!transport) {
        return -ERR_NO_MEMORY;
    }
    transport->port = sim_net_bind(net, process, 0, client_receive, transport);
    *ret_transport = transport;
    return 0;
}

void transport_sim_free(struct transport_sim *transport) {
    if (transport) {
        sim_net_unbind(transport->port);
        free(transport->places);
        free(transport);
    }
}

/* The server's end. */

static void twin_free(struct twin *twin) {
    list_remove(&twin->node);
    sim_packet_free(TAKE_PTR(twin->packet));
    free(TAKE_PTR(twin->call.bulk_in.data));
    free(TAKE_PTR(twin->call.checksums));
    pool_put(twin);
}

static void reply_send(struct transport_sim_server *server, const struct call *call, uint64_t id,
                       uint64_t to) {
    struct buffer head = {.capacity = frame_reply_size(call)};
    struct sim_packet *packet;
    int r;

    head.data = allocate(head.capacity);
    r = frame_encode_reply(call, id, &head);
    assert(r == 0); /* What a server fills in always fits. */
    packet = packet_build(&head, call->bulk_in.size);
    if (call->bulk_in.size > 0) {
        memcpy(packet->data + packet->size - call->bulk_in.size, call->bulk_in.data,
               call->bulk_in.size);
    }
    free(head.data);
    sim_net_send(server->port, to, packet);
}

static void twin_reply(struct call *call) {
    struct twin *twin = CONTAINER_OF(call, struct twin, call);

    assert(call->bulk_in.size <= call->bulk_in.capacity);
    if (call->result != CALL_DISCARDED) {
        reply_send(twin->server, call, twin->id, twin->packet->from);
    }
    twin_free(twin);
}

/* An answer to a request that got no twin. */
static void refuse(struct transport_sim_server *server, uint16_t opcode, uint64_t id, uint64_t to,
                   int result) {
    struct call call = {.header = {.opcode = opcode, .log = server->options.log}, .result = result};

    reply_send(server, &call, id, to);
}

/* Space for what comes back, and the bulk that came. */
static int twin_set_bulk(struct twin *twin, const struct frame_request *frame, struct bytes bulk) {
    uint64_t bulk_bytes_max = twin->server->options.bulk_bytes_max;
    struct call *call = &twin->call;

    if (frame->bulk_out_bytes != bulk.size || bulk.size > bulk_bytes_max ||
        frame->bulk_in_bytes > bulk_bytes_max ||
        frame->checksum_count > bulk_bytes_max / BLOCK_BYTES + 2) {
        return -ERR_MALFORMED;
    }
    if (bulk.size > 0) {
        call->bulk_out[0] = bulk;
        call->bulk_out_count = 1;
    }
    if (frame->bulk_in_bytes > 0) {
        call->bulk_in.data = allocate((size_t)frame->bulk_in_bytes);
        call->bulk_in.capacity = (size_t)frame->bulk_in_bytes;
    }
    if (frame->checksum_count > 0) {
        call->checksum_count = frame->checksum_count;
        call->checksums = allocate(4 * (size_t)frame->checksum_count);
        if (frame->checksums.size > 0) {
            memcpy(call->checksums, frame->checksums.data, frame->checksums.size);
        }
    }
    return 0;
}

/* Fills the twin from the packet, which is its own now. */
static int twin_fill(struct twin *twin, struct bytes head, struct bytes bulk) {
    struct call *call = &twin->call;
    struct frame_request frame;
    int r = frame_decode_request(head, twin->scratch, call, &frame);

    if (r < 0) {
        return r;
    }
    if (call->header.log.value != twin->server->options.log.value) {
        return -ERR_STALE_MAP;
    }
    r = twin_set_bulk(twin, &frame, bulk);
    if (r < 0) {
        return r;
    }
    call->message.kind = CALL_MESSAGE_KIND;
    call->message.message_class = call->header.message_class;
    call->reply_to = twin_reply;
    if (frame.time_left_ns != UINT64_MAX) {
        uint64_t now_ns = env_now_ns(twin->server->options.env);

        call->deadline_ns = now_ns + MIN(frame.time_left_ns, UINT64_MAX - now_ns);
    }
    return 0;
}

static void twin_take(struct transport_sim_server *server, struct twin *twin,
                      struct sim_packet *packet) {
    *twin = (struct twin){.item = twin->item, .server = server, .packet = packet};
    list_push_back(&server->twins, &twin->node);
}

/* What can't be answered, as it isn't known what to whom, is counted only. */
static void server_receive(void *context, struct sim_packet *packet) {
    struct transport_sim_server *server = context;
    struct twin *twin = NULL;
    struct bytes head;
    struct bytes bulk;
    uint16_t opcode;
    uint64_t id;
    int r = packet_split(packet, &head, &bulk);

    if (r == 0) {
        r = frame_peek_request(head, &id, &opcode);
    }
    if (r < 0) {
        sim_count(sim_port_world(server->port), "requests malformed", 1);
        sim_packet_free(packet);
        return;
    }
    twin = pool_get(&server->pool, wire_class(opcode));
    if (!twin) {
        sim_count(sim_port_world(server->port), "calls busy", 1);
        refuse(server, opcode, id, packet->from, -ERR_BUSY);
        sim_packet_free(packet);
        return;
    }
    twin_take(server, twin, packet);
    twin->id = id;
    r = twin_fill(twin, head, bulk);
    if (r < 0) {
        sim_count(sim_port_world(server->port), "requests malformed", 1);
        refuse(server, opcode, id, packet->from, r);
        twin_free(twin);
        return;
    }
    actor_post(server->options.actor, &twin->call.message);
}

int transport_sim_serve(const struct transport_sim_server_options *options,
                        struct transport_sim_server **ret_server) {
    struct transport_sim_server *server = calloc(1, sizeof *server);
    struct pool_options pool = {
        .name = "calls", .object_bytes = sizeof(struct twin), .object_count = options->calls_max};
    int r;

    if (!server) {
        return -ERR_NO_MEMORY;
    }
    server->options = *options;
    list_init(&server->twins);
    memcpy(pool.reserve_count, options->reserve_count, sizeof pool.reserve_count);
    r = pool_init(&server->pool, &pool);
    if (r < 0) {
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
    while ((node = list_first(&server->twins))) {
        twin_free(CONTAINER_OF(node, struct twin, node));
    }
    pool_deinit(&server->pool);
    free(server);
}
