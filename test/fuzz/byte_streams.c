/* See byte_streams.h. */
#include "byte_streams.h"
#include "base/crc32c.h"
#include <assert.h>
#include <string.h>

static struct byte_streams *world_of(struct env *env) {
    return CONTAINER_OF(env, struct byte_streams, env);
}

static struct byte_stream *stream_of(struct env_stream *stream) {
    struct byte_stream *found = CONTAINER_OF(stream, struct byte_stream, stream);

    assert(found->used && !found->closed);
    return found;
}

static uint64_t now_ns(struct env *env) {
    return world_of(env)->now_ns;
}

static void random_fill(struct env *env, void *data, size_t size_bytes) {
    (void)env;
    memset(data, 7, size_bytes);
}

static int streams_listen(struct env *env, const struct address *address,
                          const struct env_listen_options *options,
                          struct env_listener **ret_listener) {
    struct byte_streams *world = world_of(env);

    (void)address;
    world->listen = *options;
    world->listener = (struct env_listener){.env = env, .context = options->context};
    *ret_listener = &world->listener;
    return 0;
}

static void listener_address(struct env_listener *listener, struct address *ret_address) {
    *ret_address = world_of(listener->env)->address;
}

static void listener_close(struct env_listener *listener) {
    world_of(listener->env)->listen.accepted = NULL;
}

static struct byte_stream *stream_new(struct byte_streams *world) {
    if (world->count == BYTE_STREAMS_MAX) {
        return NULL;
    }
    struct byte_stream *stream = &world->streams[world->count++];

    *stream = (struct byte_stream){.stream = {.env = &world->env}, .used = true};
    return stream;
}

static int stream_connect(struct env *env, const struct address *address,
                          const struct env_connect_options *options,
                          struct env_stream **ret_stream) {
    struct byte_stream *stream = stream_new(world_of(env));

    (void)address;
    if (!stream) {
        return -ERR_TOO_MANY_OPEN;
    }
    stream->stream.event = options->event;
    stream->stream.context = options->context;
    *ret_stream = &stream->stream;
    return 0;
}

static int stream_send(struct env_stream *stream, const struct bytes *parts, size_t part_count,
                       size_t *ret_sent) {
    struct byte_stream *to = stream_of(stream);
    uint32_t most = world_of(stream->env)->take_bytes;
    size_t size = 0;

    assert(part_count > 0 && part_count <= ENV_STREAM_PARTS_MAX);
    if (to->ended) {
        return -ERR_CLOSED;
    }
    if (!to->opened) {
        return -ERR_BUSY;
    }
    for (size_t i = 0; i < part_count; i++) {
        to->sent_crc = crc32c(to->sent_crc, parts[i].data, parts[i].size);
        size += parts[i].size;
    }
    *ret_sent = most > 0 ? MIN(size, (size_t)most) : size;
    return 0;
}

static int stream_receive(struct env_stream *stream, struct buffer *parts, size_t part_count,
                          size_t *ret_received) {
    struct byte_stream *from = stream_of(stream);
    size_t received = 0;

    assert(part_count > 0 && part_count <= ENV_STREAM_PARTS_MAX);
    if (from->ended || from->in.size == 0) {
        return from->ended ? -ERR_CLOSED : -ERR_BUSY;
    }
    for (size_t i = 0; i < part_count; i++) {
        size_t size = MIN(from->in.size, parts[i].capacity - parts[i].size);

        memcpy(parts[i].data + parts[i].size, from->in.data, size);
        parts[i].size += size;
        from->in = (struct bytes){from->in.data + size, from->in.size - size};
        received += size;
    }
    assert(received > 0);
    *ret_received = received;
    return 0;
}

static void stream_again(struct env_stream *stream) {
    (void)stream_of(stream);
}

static void stream_close(struct env_stream *stream) {
    stream_of(stream)->closed = true;
}

static int stream_peer(struct env_stream *stream, struct env_stream_peer *ret_peer) {
    (void)stream_of(stream);
    *ret_peer = (struct env_stream_peer){.pid = 1};
    return 0;
}

static void stream_peer_address(struct env_stream *stream, struct address *ret_address) {
    *ret_address = world_of(stream->env)->address;
}

static int stream_own_address(struct env_stream *stream, struct address *ret_address) {
    stream_peer_address(stream, ret_address);
    return 0;
}

static const struct env_ops clock_ops = {
    .now_ns = now_ns, .wall_ns = now_ns, .random = random_fill};
static const struct env_stream_ops stream_ops = {
    .listen = streams_listen,
    .listener_address = listener_address,
    .listener_close = listener_close,
    .connect = stream_connect,
    .send = stream_send,
    .receive = stream_receive,
    .again = stream_again,
    .close = stream_close,
    .reset = stream_close,
    .peer = stream_peer,
    .peer_address = stream_peer_address,
    .own_address = stream_own_address,
};

void byte_streams_begin(struct byte_streams *streams) {
    memset(streams, 0, sizeof *streams);
    streams->env = (struct env){.ops = &clock_ops, .streams = &stream_ops};
    streams->now_ns = NS_PER_S;
    streams->address = (struct address){.kind = ADDRESS_UNIX, .name = "/s"};
}

void byte_streams_end(const struct byte_streams *streams) {
    for (uint32_t i = 0; i < streams->count; i++) {
        assert(streams->streams[i].closed);
    }
}

struct byte_stream *byte_streams_add(struct byte_streams *streams) {
    struct byte_stream *stream = streams->listen.accepted ? stream_new(streams) : NULL;

    if (stream) {
        stream->opened = true;
        streams->listen.accepted(&streams->listener, &stream->stream);
    }
    return stream;
}

static void stream_tell(struct byte_stream *stream, enum env_stream_event event, int reason) {
    if (stream->used && !stream->closed && !stream->ended) {
        stream->ended = event == ENV_STREAM_ENDED;
        stream->stream.event(&stream->stream, event, reason);
    }
}

void byte_stream_give(struct byte_stream *stream, struct bytes bytes) {
    if (!stream->opened) {
        stream->opened = true;
        stream_tell(stream, ENV_STREAM_OPEN, 0);
    }
    stream->in = bytes;
    stream_tell(stream, ENV_STREAM_READABLE, 0);
}

void byte_stream_finish(struct byte_stream *stream, int reason) {
    stream_tell(stream, ENV_STREAM_ENDED, reason);
}

void byte_stream_room(struct byte_stream *stream) {
    stream_tell(stream, ENV_STREAM_WRITABLE, 0);
}

void byte_stream_say(struct byte_stream *stream, struct wire_cursor *cursor) {
    size_t size = wire_take_number(cursor, 1);
    const uint8_t *from = wire_take(cursor, size);

    if (from && stream && size > 0) {
        byte_stream_give(stream, (struct bytes){from, size});
    }
}

void byte_stream_say_message(struct byte_stream *stream, struct wire_cursor *cursor) {
    uint8_t bytes[CONNECTION_PREFIX_BYTES + SAID_HEAD_BYTES_MAX + UINT8_MAX];
    uint32_t kind = (uint32_t)wire_take_number(cursor, 1);
    size_t head = wire_take_number(cursor, 2) % SAID_HEAD_BYTES_MAX;
    size_t bulk = wire_take_number(cursor, 1);
    const uint8_t *from = wire_take(cursor, head + bulk);

    if (!from || !stream) {
        return;
    }
    store_le32(bytes, kind);
    store_le32(bytes + 4, (uint32_t)head);
    store_le32(bytes + 8, (uint32_t)bulk);
    memcpy(bytes + CONNECTION_PREFIX_BYTES, from, head + bulk);
    store_le32(bytes + 12, crc32c(crc32c(0, bytes, 12), from, head));
    byte_stream_give(stream, (struct bytes){bytes, CONNECTION_PREFIX_BYTES + head + bulk});
    stream->in = (struct bytes){NULL, 0};
}

void byte_stream_script(struct buffer *out, enum connection_kind kind, const struct buffer *head,
                        size_t bulk_bytes) {
    static const uint8_t zeros[UINT8_MAX];

    wire_give_number(out, kind, 1);
    wire_give_number(out, head->size, 2);
    wire_give_number(out, bulk_bytes, 1);
    wire_give(out, head->data, head->size);
    wire_give(out, zeros, bulk_bytes);
}
