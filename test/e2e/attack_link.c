/* See attack.h. */
#include "attack.h"
#include "base/address.h"
#include "env/env_linux.h"
#include "env/env_stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_LIMIT_NS (5 * NS_PER_S)
#define TURN_NS NS_PER_MS

static void *link_bulk_get(void *context, const struct connection_message *message,
                           size_t size_bytes) {
    struct link *link = context;

    (void)message;
    return size_bytes <= LINK_BULK_BYTES ? link->bulk : NULL;
}

static void link_bulk_put(void *context, void *bulk) {
    (void)context;
    (void)bulk;
}

static int reply_take(struct link *link, const struct connection_message *message) {
    struct frame_reply frame;
    int r = frame_decode_reply(message->head, &frame);

    if (r < 0 || !link->asked || frame.id != link->id) {
        return r;
    }
    link->has_reply = true;
    link->bulk_size = message->bulk.size;
    link->asked->result = frame.result;
    return frame_apply_reply(&frame, link->asked);
}

static void link_message(void *context, const struct connection_message *message) {
    struct link *link = context;
    union reply_body body;

    if (message->kind == CONNECTION_REPLY && reply_take(link, message) < 0) {
        link->is_over = true;
    } else if (message->kind == CONNECTION_WELCOME &&
               wire_decode_reply(OP_HELLO, message->head, &body) == 0) {
        link->welcome = body.hello;
        link->is_welcomed = true;
        link->is_over =
            body.hello.result == 0 && body.hello.plain && connection_go_plain(link->connection) < 0;
    }
}

static void link_ended(void *context, int reason) {
    (void)reason;
    ((struct link *)context)->is_over = true;
}

static void link_room(void *context) {
    (void)context;
}

static const struct connection_hooks link_hooks = {.bulk_get = link_bulk_get,
                                                   .bulk_put = link_bulk_put,
                                                   .message = link_message,
                                                   .room = link_room,
                                                   .ended = link_ended};

/* Until the flag is set, or the connection is over, or time is up. */
static int link_wait(const struct link *link, const bool *flag, uint64_t time_ns) {
    uint64_t end_ns = env_now_ns(link->env) + time_ns;

    while (!*flag && !link->is_over && env_now_ns(link->env) < end_ns) {
        (void)env_loop_wait(link->env, -1, TURN_NS);
    }
    return *flag ? 0 : link->is_over ? -ERR_RESET : -ERR_TIMED_OUT;
}

int link_open(struct link *link, const struct link_target *target,
              const struct hello_request *hello) {
    const struct connection_options options = {.env = target->env,
                                               .out_bytes = 128 << 10,
                                               .out_messages = 16,
                                               .hooks = &link_hooks,
                                               .context = link,
                                               .tls = target->tls};
    const struct connection_outgoing outgoing = {.kind = CONNECTION_HELLO};
    const union request_body body = {.hello = *hello};
    struct buffer head;

    *link = (struct link){.env = target->env, .bulk = malloc(LINK_BULK_BYTES)};
    int r = connection_dial(&options, target->address, env_now_ns(target->env) + LINK_LIMIT_NS,
                            &link->connection);
    r = r < 0 ? r : connection_begin(link->connection, 256, &head);
    r = r < 0 ? r : wire_encode_request(OP_HELLO, &body, &head);
    if (r < 0) {
        return r;
    }
    connection_commit(link->connection, &head, &outgoing);
    connection_flush(link->connection);
    r = link_wait(link, &link->is_welcomed, LINK_LIMIT_NS);
    return r < 0 ? r : (int)link->welcome.result;
}

void link_close(struct link *link) {
    connection_free(TAKE_PTR(link->connection), true);
    free(TAKE_PTR(link->bulk));
}

int link_ask(struct link *link, struct call *call, struct bytes bulk) {
    struct connection_outgoing outgoing = {.kind = CONNECTION_REQUEST};
    struct buffer head;

    if (bulk.size > 0) {
        call->bulk_out[0] = outgoing.bulk[0] = bulk;
        call->bulk_out_count = outgoing.bulk_count = 1;
    }
    call->header.message_class = wire_class(call->header.opcode);
    link->asked = call;
    link->has_reply = false;
    int r = link->is_over ? -ERR_RESET
                          : connection_begin(link->connection, frame_request_size(call), &head);
    r = r < 0 ? r : frame_encode_request(call, ++link->id, 2 * NS_PER_S, &head);
    if (r == 0) {
        connection_commit(link->connection, &head, &outgoing);
        connection_flush(link->connection);
        r = link_wait(link, &link->has_reply, LINK_LIMIT_NS);
    }
    link->asked = NULL;
    return r < 0 ? r : call->result;
}

void link_say(struct link *link, struct bytes head, struct bytes bulk) {
    struct connection_outgoing outgoing = {
        .kind = CONNECTION_REQUEST, .bulk = {bulk}, .bulk_count = bulk.size > 0};
    struct buffer to;

    if (!link->is_over && connection_begin(link->connection, head.size, &to) == 0) {
        memcpy(to.data, head.data, head.size);
        to.size = head.size;
        connection_commit(link->connection, &to, &outgoing);
        connection_flush(link->connection);
    }
}

void link_listen(struct link *link, uint64_t time_ns) {
    bool never = false;

    int r = link_wait(link, &never, time_ns);
    (void)r;
}

/* Who refuses. */
enum { DOOR_LINKS_MAX = 64 };

struct door {
    const struct link_target *target;
    int result;
    struct connection *connections[DOOR_LINKS_MAX];
    uint32_t count;
};

static struct door door;

static void door_message(void *context, const struct connection_message *message) {
    struct connection *connection = *(struct connection **)context;
    const struct connection_outgoing outgoing = {.kind = CONNECTION_WELCOME};
    const union reply_body body = {.hello = {.version = 1, .result = door.result}};
    struct buffer head;

    if (message->kind == CONNECTION_HELLO && connection_begin(connection, 256, &head) == 0 &&
        wire_encode_reply(OP_HELLO, &body, &head) == 0) {
        connection_commit(connection, &head, &outgoing);
        connection_flush(connection);
    }
}

static void door_ended(void *context, int reason) {
    struct connection **connection = context;

    (void)reason;
    connection_free(TAKE_PTR(*connection), false);
}

static const struct connection_hooks door_hooks = {.bulk_get = link_bulk_get,
                                                   .bulk_put = link_bulk_put,
                                                   .message = door_message,
                                                   .room = link_room,
                                                   .ended = door_ended};

static void door_accepted(struct env_listener *listener, struct env_stream *stream) {
    struct connection **connection = &door.connections[door.count];
    const struct connection_options options = {.env = door.target->env,
                                               .out_bytes = 128 << 10,
                                               .out_messages = 16,
                                               .hooks = &door_hooks,
                                               .context = connection,
                                               .tls = door.target->tls};

    (void)listener;
    if (door.count == DOOR_LINKS_MAX) {
        env_stream_reset(stream);
    } else if (connection_accept(&options, stream, connection) == 0) {
        door.count++;
    }
}

int links_refuse(const struct link_target *target, int result) {
    const struct env_listen_options options = {.accepted = door_accepted};
    struct env *env = target->env;
    struct env_listener *listener;

    door = (struct door){.target = target, .result = result};
    int r = env->streams->listen(env, target->address, &options, &listener);
    if (r < 0) {
        return r;
    }
    printf("held\n");
    fflush(stdout);
    while (!(env_loop_wait(env, STDIN_FILENO, UINT64_MAX) & ENV_LOOP_READABLE)) {
    }
    env->streams->listener_close(listener);
    for (uint32_t i = 0; i < door.count; i++) {
        connection_free(door.connections[i], false);
    }
    return 0;
}
