/* Streams that come, what they say first, and who is let in. */
#include "rpc/gate_internal.h"
#include "base/endian.h"
#include "env/env.h"
#include "env/env_stream.h"
#include "keys/key_ring.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO_VERSION = 1, WELCOME_BYTES = 256, OUT_BYTES = 256 << 10, OUT_MESSAGES = 256 };
#define REFUSAL_SAID_NS (10 * NS_PER_S)
#define UNUSED_NS (10 * NS_PER_S)

/* So many connections may have greeted: the rest is for who comes to greet. */
static uint32_t lanes_max(const struct gate *gate) {
    uint32_t most = gate->options.connections_max;

    return most - MIN((uint32_t)GATE_GREETINGS_MAX, most / 4);
}

uint32_t gate_lanes_granted(const struct gate *gate) {
    return callers_share(&gate->callers, lanes_max(gate));
}

void gate_refusal_say(struct gate_connection *client, const char *what, const char *words) {
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
    gate_refusal_say(client, what, words);
}

static void client_ended(void *context, int reason) {
    struct gate_connection *client = context;
    struct gate *gate = client->gate;
    const char *words = connection_failure(client->connection);

    (void)reason;
    if (words && !client->end) {
        gate->refused_count++;
        gate_refusal_say(client, "was refused", words);
    }
    gate_connection_leave(client, false);
}

/* Who stands between two ends of one machine, such as a relay that one of them was led to, can't be
 * seen by a proof that he passes on: the other end has connected elsewhere than it thinks. */
static bool is_direct(const struct gate_connection *client, struct bytes dialled) {
    size_t size = strlen(client->own_address);

    return dialled.size == 0 ||
           (dialled.size == size && memcmp(dialled.data, client->own_address, size) == 0);
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
                                             .lanes = gate_lanes_granted(client->gate),
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
    if (hello->node && hello->node == self->node.value) {
        return -ERR_OWN_NODE;
    }
    return hello->receiver && hello->receiver != self->node.value ? -ERR_REFUSED : 0;
}

/* Of what came round to its own process the lane says so. Another one under this number is a copy.
 */
static void copy_say(struct gate_connection *client, const struct hello_request *hello) {
    const struct lane_identity *self = &client->gate->options.self;
    char words[80];

    if (hello->life_high != self->life[0] || hello->life_low != self->life[1]) {
        snprintf(words, sizeof words, "it says that it is node %u, which is this one: a copy of it",
                 hello->node);
        gate_refusal_say(client, "was refused", words);
    }
}

/* Of a caller's lanes with nothing at work the one that was silent for the longest; NULL: none. */
static struct gate_connection *lane_unused(const struct caller *caller) {
    struct gate_connection *unused = NULL;

    for (struct list_node *node = list_first(&caller->lanes); node;
         node = list_next(&caller->lanes, node)) {
        struct gate_connection *client = CONTAINER_OF(node, struct gate_connection, lane);

        if (client->end->request_count == 0 &&
            (!unused || gate_heard_ns(client) < gate_heard_ns(unused))) {
            unused = client;
        }
    }
    return unused;
}

static void surplus_leave(struct gate_connection *client) {
    client->gate->surplus_count++;
    gate_connection_leave(client, true);
}

/* Who had many when there were few callers gives one back for each that comes: the one that has
 * come just now, maybe. */
static void surplus_drop(struct gate *gate) {
    const struct caller *most = callers_most(&gate->callers);
    bool is_full = gate->connection_count - gate->greeting_count > lanes_max(gate);

    if (is_full && most && most->lane_count > gate_lanes_granted(gate)) {
        struct gate_connection *unused = lane_unused(most);

        surplus_leave(
            unused ? unused : CONTAINER_OF(list_first(&most->lanes), struct gate_connection, lane));
    }
}

/* For one that comes beyond its caller's share: a lane that was silent for long may be one that the
 * caller has lost, or has no thread for any more. NULL: there is none. */
static struct gate_connection *lane_lost(const struct gate *gate, const struct caller *caller) {
    struct gate_connection *unused = lane_unused(caller);

    return unused && gate_now(gate) - gate_heard_ns(unused) >= UNUSED_NS ? unused : NULL;
}

/* The lane's end has this connection from now on. */
static void end_take(struct gate_connection *client, struct lane_end *end, struct caller *caller,
                     uint64_t number) {
    struct gate *gate = client->gate;

    /* First: it stays while the older one goes. */
    caller_lane_add(&gate->callers, caller, &client->lane);
    if (end->connection) {
        gate->replaced_count++;
        gate_connection_leave(end->connection, true);
    }
    end->number = number;
    end->connection = client;
    client->end = end;
    client->caller = caller;
    list_remove(&client->node);
    list_push_back(&gate->connections, &client->node);
    gate->greeting_count--;
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
    if (r == -ERR_OWN_NODE) {
        copy_say(client, &body.hello);
    }
    if (r < 0) {
        return client_refuse(client, r);
    }
    const uint64_t life[2] = {body.hello.life_high, body.hello.life_low};
    end = gate_end_find(gate, life, body.hello.lane, &identity);
    if (!end || body.hello.number <= end->number) {
        gate->old_lane_count += end != NULL;
        return client_refuse(client, end ? -ERR_OLD_LANE : -ERR_NO_MEMORY);
    }
    struct caller *caller = callers_get(&gate->callers, life, &identity);
    if (!caller) {
        return client_refuse(client, -ERR_NO_MEMORY);
    }
    bool has_share = !end->connection && caller->lane_count >= gate_lanes_granted(gate);
    struct gate_connection *lost = has_share ? lane_lost(gate, caller) : NULL;
    if (has_share && !lost) {
        return client_refuse(client, -ERR_TOO_MANY_LANES); /* It has some: it stays. */
    }
    end_take(client, end, caller, body.hello.number);
    if (lost) {
        surplus_leave(lost);
    }
    bool plain = body.hello.plain && is_direct(client, body.hello.dialled);

    r = welcome_send(client, 0, plain);
    return r < 0 || !plain ? r : connection_go_plain(client->connection);
}

static void client_message(void *context, const struct connection_message *message) {
    struct gate_connection *client = context;
    struct gate *gate = client->gate;
    int r = -ERR_MALFORMED;

    if (message->kind == CONNECTION_HELLO) {
        r = hello_take(client, message->head);
    } else if (message->kind == CONNECTION_REQUEST && client->end) {
        r = gate_request_take(client, message);
    }
    if (r < 0) {
        gate_connection_leave(client, true);
    } else if (message->kind == CONNECTION_HELLO) {
        surplus_drop(gate);
    }
}

static const struct connection_hooks client_hooks = {
    .bulk_get = gate_client_bulk_get,
    .bulk_put = gate_client_bulk_put,
    .message = client_message,
    .room = gate_client_room,
    .ended = client_ended,
};

void gate_revoked_cut_off(struct gate *gate) {
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
            gate_connection_leave(client, true);
        }
    }
}

static bool gate_is_full(struct gate *gate) {
    char line[96];

    if (gate->greeting_count == GATE_GREETINGS_MAX) {
        struct list_node *oldest = list_first(&gate->greetings);

        gate->refused_count++;
        gate_connection_leave(CONTAINER_OF(oldest, struct gate_connection, node), true);
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

static void own_address_note(struct gate_connection *client, struct env_stream *stream) {
    struct address own;

    if (client->has_tls && client->is_near &&
        stream->env->streams->own_address(stream, &own) == 0) {
        address_format(&own, client->own_address);
    }
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
    own_address_note(client, stream);
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
