/* The contract and the format are in connection.h.
 *
 * In: a window of bytes [in_start, in_end) of `in`; a message whose head is whole waits there for
 * its bulk, of which what has come is copied and the rest received in place.
 * Out: heads in a ring of bytes, and a ring of pieces that says in which order heads and bulk
 * leave; the last piece of a message says who is told. */
#include "rpc/connection.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "env/env.h"
#include "rpc/channel.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { IN_BYTES = 2 * (CONNECTION_PREFIX_BYTES + CONNECTION_HEAD_BYTES_MAX) };
enum { SEND_PARTS_MAX = 64, PIECES_OF_MESSAGE = 1 + CONNECTION_BULK_PARTS_MAX };
enum { SKIP_BYTES = 64 << 10, TURN_BYTES_MAX = 1 << 20, PROGRESS_BYTES = 64 << 10 };

/* Where bulk goes that nobody wants. */
static _Thread_local uint8_t skipped[SKIP_BYTES];

struct piece {
    const uint8_t *data;
    size_t size;
    size_t head_bytes; /* of the ring of heads, given back with it; 0: bulk */
    void (*sent)(void *context);
    void *context;
};

struct connection {
    struct connection_options options;
    struct channel channel;
    bool is_open, is_reading;
    unsigned depth; /* hooks that run: memory goes when the last has returned */

    uint8_t *in;
    size_t in_start, in_end;
    struct connection_message message; /* that waits for its bulk */
    size_t message_bytes;              /* prefix and head, in `in` */
    size_t bulk_done;
    uint64_t half_since_ns; /* it waits, or has grown by PROGRESS_BYTES */
    bool has_message;

    uint8_t *heads;
    size_t heads_at, heads_used; /* ring of out_bytes: next free place, bytes in use with gaps */
    size_t begun_gap;            /* in front of the head that begin gave */
    struct piece *pieces;
    uint32_t piece_max, piece_first, piece_count;
    size_t piece_done; /* bytes of the first */
    uint64_t unsent_bytes;
    uint64_t taken_bytes; /* by the stream, ever */
    uint64_t taken_ns;    /* when these were PROGRESS_BYTES more */
    uint64_t stuck_ns;    /* since when the stream leaves some; 0: it takes all */
    bool wants_room;
};

static void hook_enter(struct connection *connection) {
    connection->depth++;
}

static void connection_destroy(struct connection *connection) {
    channel_deinit(&connection->channel);
    free(connection->in);
    free(connection->heads);
    free(connection->pieces);
    free(connection);
}

/* False: it was freed from inside. */
static bool hook_leave(struct connection *connection) {
    connection->depth--;
    if (connection->is_open) {
        return true;
    }
    if (connection->depth == 0) {
        connection_destroy(connection);
    }
    return false;
}

static void connection_shut(struct connection *connection, bool reset) {
    if (!connection->is_open) {
        return;
    }
    connection->is_open = false;
    (reset ? env_stream_reset : env_stream_close)(TAKE_PTR(connection->channel.stream));
    if (connection->has_message && connection->message.bulk.data) {
        connection->options.hooks->bulk_put(connection->options.context,
                                            (void *)connection->message.bulk.data);
    }
    connection->has_message = false;
}

void connection_free(struct connection *connection, bool reset) {
    if (!connection) {
        return;
    }
    connection_shut(connection, reset);
    if (connection->depth == 0) {
        connection_destroy(connection);
    }
}

/* For us: who owns the connection is told, and frees it then or later. */
static void connection_end(struct connection *connection, int reason) {
    connection->options.hooks->ended(connection->options.context, reason);
}

/* What goes. */

int connection_begin(struct connection *connection, size_t head_bytes_max,
                     struct buffer *ret_head) {
    size_t need = CONNECTION_PREFIX_BYTES + head_bytes_max;
    size_t capacity = connection->options.out_bytes;
    size_t gap = connection->heads_at + need > capacity ? capacity - connection->heads_at : 0;

    if (head_bytes_max > CONNECTION_HEAD_BYTES_MAX) {
        return -ERR_INVALID;
    }
    if (connection->heads_used + gap + need > capacity ||
        connection->piece_count + PIECES_OF_MESSAGE > connection->piece_max) {
        connection->wants_room = true;
        return -ERR_BUSY;
    }
    connection->begun_gap = gap;
    *ret_head = (struct buffer){.data = connection->heads + (gap > 0 ? 0 : connection->heads_at) +
                                        CONNECTION_PREFIX_BYTES,
                                .capacity = head_bytes_max};
    return 0;
}

static struct piece *piece_push(struct connection *connection, const uint8_t *data, size_t size) {
    uint32_t index = (connection->piece_first + connection->piece_count) % connection->piece_max;

    connection->pieces[index] = (struct piece){.data = data, .size = size};
    connection->piece_count++;
    connection->unsent_bytes += size;
    return &connection->pieces[index];
}

static void prefix_write(uint8_t *prefix, enum connection_kind kind, size_t head_bytes,
                         size_t bulk_bytes) {
    store_le32(prefix, kind);
    store_le32(prefix + 4, (uint32_t)head_bytes);
    store_le32(prefix + 8, (uint32_t)bulk_bytes);
    store_le32(prefix + 12, crc32c(crc32c(0, prefix, CONNECTION_PREFIX_BYTES - 4),
                                   prefix + CONNECTION_PREFIX_BYTES, head_bytes));
}

void connection_commit(struct connection *connection, const struct buffer *head,
                       const struct connection_outgoing *outgoing) {
    uint8_t *prefix = head->data - CONNECTION_PREFIX_BYTES;
    size_t size = CONNECTION_PREFIX_BYTES + head->size;
    size_t bulk_bytes = 0;
    struct piece *last = piece_push(connection, prefix, size);

    last->head_bytes = connection->begun_gap + size;
    for (uint32_t i = 0; i < outgoing->bulk_count; i++) {
        bulk_bytes += outgoing->bulk[i].size;
        if (outgoing->bulk[i].size > 0) {
            last = piece_push(connection, outgoing->bulk[i].data, outgoing->bulk[i].size);
        }
    }
    assert(bulk_bytes <= CONNECTION_BULK_BYTES_MAX);
    last->sent = outgoing->sent;
    last->context = outgoing->context;
    prefix_write(prefix, outgoing->kind, head->size, bulk_bytes);
    connection->heads_at = (size_t)(prefix - connection->heads) + size;
    connection->heads_used += connection->begun_gap + size;
}

static void connection_answer_ping(struct connection *connection) {
    const struct connection_outgoing pong = {.kind = CONNECTION_PONG};
    struct buffer head;

    /* Without room there is much on its way that says the same. */
    if (connection_begin(connection, 0, &head) == 0) {
        connection_commit(connection, &head, &pong);
        connection_flush(connection);
    }
}

static void piece_gone(struct connection *connection) {
    struct piece piece = connection->pieces[connection->piece_first];

    connection->piece_first = (connection->piece_first + 1) % connection->piece_max;
    connection->piece_count--;
    connection->piece_done = 0;
    connection->heads_used -= piece.head_bytes;
    if (connection->heads_used == 0) {
        connection->heads_at = 0;
    }
    if (piece.sent) {
        piece.sent(piece.context);
    }
}

/* Of bytes in one direction, `before` until now: who takes a drop at a time does not move. */
static bool is_progress(uint64_t before, size_t more) {
    return before / PROGRESS_BYTES != (before + more) / PROGRESS_BYTES;
}

static void pieces_take(struct connection *connection, size_t sent_bytes) {
    connection->unsent_bytes -= sent_bytes;
    if (is_progress(connection->taken_bytes, sent_bytes)) {
        connection->taken_ns = env_now_ns(connection->options.env);
    }
    connection->taken_bytes += sent_bytes;
    while (sent_bytes > 0) {
        const struct piece *first = &connection->pieces[connection->piece_first];
        size_t rest = first->size - connection->piece_done;

        if (sent_bytes < rest) {
            connection->piece_done += sent_bytes;
            return;
        }
        sent_bytes -= rest;
        piece_gone(connection);
    }
}

/* How many parts there are. */
static uint32_t parts_gather(const struct connection *connection,
                             struct bytes parts[SEND_PARTS_MAX]) {
    uint32_t count = MIN(connection->piece_count, (uint32_t)SEND_PARTS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        const struct piece *piece =
            &connection->pieces[(connection->piece_first + i) % connection->piece_max];
        size_t done = i == 0 ? connection->piece_done : 0;

        parts[i] = (struct bytes){piece->data + done, piece->size - done};
    }
    return count;
}

bool connection_flush(struct connection *connection) {
    struct channel *channel = &connection->channel;
    struct bytes parts[SEND_PARTS_MAX];
    size_t sent_bytes;
    int r;

    hook_enter(connection);
    r = channel_push(channel);
    channel->held = false;
    while (r == 0 && connection->is_open && connection->piece_count > 0 && !channel->blocked &&
           !channel->held) {
        uint32_t count = parts_gather(connection, parts);

        /* When it fails its end is told as an event. */
        r = channel_send(channel, parts, count, &sent_bytes);
        pieces_take(connection, r < 0 ? 0 : sent_bytes);
    }
    if (connection->piece_count == 0) {
        connection->stuck_ns = 0;
    } else if (connection->stuck_ns == 0) {
        connection->stuck_ns = env_now_ns(connection->options.env);
    }
    if (connection->is_open && connection->wants_room && connection->piece_count == 0) {
        connection->wants_room = false;
        connection->options.hooks->room(connection->options.context);
    }
    return hook_leave(connection);
}

/* HELLO and its answer are each the only thing that is said in TLS, so the window has no more. */
int connection_go_plain(struct connection *connection) {
    size_t come = connection->in_end - connection->in_start;

    if (!connection->channel.tls) {
        return 0;
    }
    if (come > connection->message_bytes || connection->piece_count > 0) {
        return -ERR_MALFORMED;
    }
    channel_go_plain(&connection->channel);
    return 0;
}

struct identity connection_identity(const struct connection *connection) {
    return connection->channel.identity;
}

const char *connection_failure(const struct connection *connection) {
    return channel_failure(&connection->channel);
}

void connection_want_room(struct connection *connection) {
    connection->wants_room = true;
    connection_flush(connection);
}

uint64_t connection_unsent_bytes(const struct connection *connection) {
    return connection->unsent_bytes;
}

uint64_t connection_heard_ns(const struct connection *connection) {
    return connection->channel.stream->readable_ns;
}

/* What comes. */

uint64_t connection_unsent_since_ns(const struct connection *connection) {
    return connection->stuck_ns > 0 ? MAX(connection->stuck_ns, connection->taken_ns) : 0;
}

uint64_t connection_half_since_ns(const struct connection *connection) {
    return connection->has_message && connection->message.bulk.data ? connection->half_since_ns : 0;
}

static uint8_t *message_at(const struct connection *connection) {
    return connection->in + connection->in_start;
}

/* The hook may free the connection: false then. */
static bool message_tell(struct connection *connection) {
    struct connection_message message = connection->message;

    message.head = (struct bytes){message_at(connection) + CONNECTION_PREFIX_BYTES,
                                  connection->message.head.size};
    message.arrived_ns = connection->channel.stream->readable_ns;
    connection->has_message = false;
    hook_enter(connection);
    connection->options.hooks->message(connection->options.context, &message);
    return hook_leave(connection);
}

/* Of the prefix of a message whose head may not be there yet. */
static int prefix_read(struct connection *connection, struct connection_message *ret_message) {
    const uint8_t *prefix = message_at(connection);
    uint32_t kind = load_le32(prefix);
    uint32_t head_bytes = load_le32(prefix + 4);
    uint32_t bulk_bytes = load_le32(prefix + 8);

    if (kind == 0 || kind >= CONNECTION_KIND_COUNT || head_bytes > CONNECTION_HEAD_BYTES_MAX ||
        bulk_bytes > CONNECTION_BULK_BYTES_MAX) {
        return -ERR_MALFORMED;
    }
    *ret_message = (struct connection_message){
        .kind = (enum connection_kind)kind, .head = {NULL, head_bytes}, .bulk = {NULL, bulk_bytes}};
    return 0;
}

static bool head_is_whole(const struct connection *connection, size_t head_bytes) {
    const uint8_t *prefix = message_at(connection);
    uint32_t sum = crc32c(crc32c(0, prefix, CONNECTION_PREFIX_BYTES - 4),
                          prefix + CONNECTION_PREFIX_BYTES, head_bytes);

    return sum == load_le32(prefix + CONNECTION_PREFIX_BYTES - 4);
}

static void bulk_begin(struct connection *connection) {
    struct connection_message *message = &connection->message;
    struct connection_message asked = *message;
    size_t come = connection->in_end - connection->in_start - connection->message_bytes;

    asked.head.data = message_at(connection) + CONNECTION_PREFIX_BYTES;
    message->bulk.data = connection->options.hooks->bulk_get(connection->options.context, &asked,
                                                             message->bulk.size);
    connection->bulk_done = MIN(come, message->bulk.size);
    if (message->bulk.data) {
        memcpy((void *)message->bulk.data, message_at(connection) + connection->message_bytes,
               connection->bulk_done);
    }
}

/* The message at the beginning is whole: its head, and its bulk where bulk_begin has put it. */
static bool message_pass(struct connection *connection, size_t bulk_in_window) {
    size_t bytes = connection->message_bytes + bulk_in_window;

    if (connection->message.kind == CONNECTION_PING) {
        connection_answer_ping(connection);
    } else if (!message_tell(connection)) {
        return false;
    }
    connection->has_message = false;
    connection->in_start += bytes;
    if (connection->in_start == connection->in_end) {
        connection->in_start = connection->in_end = 0;
    }
    return true;
}

/* Takes the next message up as far as it is there: 1: it was told, 0: more must come first,
 * -ERR_CLOSED: freed by a hook, or what is no message. */
static int message_next(struct connection *connection) {
    size_t come = connection->in_end - connection->in_start;
    int r;

    if (come < CONNECTION_PREFIX_BYTES) {
        return 0;
    }
    r = prefix_read(connection, &connection->message);
    if (r < 0) {
        return r;
    }
    connection->message_bytes = CONNECTION_PREFIX_BYTES + connection->message.head.size;
    if (come < connection->message_bytes) {
        return 0;
    }
    if (!head_is_whole(connection, connection->message.head.size)) {
        return -ERR_MALFORMED;
    }
    if (connection->message.bulk.size > 0) {
        bulk_begin(connection);
        if (connection->bulk_done < connection->message.bulk.size) {
            connection->has_message = true;
            connection->half_since_ns = env_now_ns(connection->options.env);
            connection->in_end = connection->in_start + connection->message_bytes;
            return 0;
        }
    }
    return message_pass(connection, connection->message.bulk.size) ? 1 : -ERR_CLOSED;
}

static int window_parse(struct connection *connection) {
    int r = 1;

    while (r == 1 && !connection->has_message && connection->is_reading) {
        r = message_next(connection);
    }
    return MIN(r, 0);
}

/* Where the next bytes go: the rest of a bulk, then the window's end. */
static uint32_t space_find(struct connection *connection, struct buffer parts[2]) {
    uint32_t count = 0;

    if (connection->in_start > 0 && connection->in_end > IN_BYTES / 2) {
        connection->in_end -= connection->in_start;
        memmove(connection->in, message_at(connection), connection->in_end);
        connection->in_start = 0;
    }
    if (connection->has_message) {
        size_t rest = connection->message.bulk.size - connection->bulk_done;
        uint8_t *bulk = (uint8_t *)connection->message.bulk.data;

        parts[count++] =
            bulk ? (struct buffer){.data = bulk + connection->bulk_done, .capacity = rest}
                 : (struct buffer){.data = skipped, .capacity = MIN(rest, sizeof skipped)};
        if (!bulk && rest > SKIP_BYTES) {
            return count;
        }
    }
    parts[count++] = (struct buffer){.data = connection->in + connection->in_end,
                                     .capacity = IN_BYTES - connection->in_end};
    return count;
}

/* As many bytes came, in the places of space_find. */
static int space_filled(struct connection *connection, size_t got_bytes) {
    if (connection->has_message) {
        size_t bulk_bytes = MIN(got_bytes, connection->message.bulk.size - connection->bulk_done);

        if (is_progress(connection->bulk_done, bulk_bytes)) {
            connection->half_since_ns = env_now_ns(connection->options.env);
        }
        connection->bulk_done += bulk_bytes;
        connection->in_end += got_bytes - bulk_bytes;
        if (connection->bulk_done < connection->message.bulk.size) {
            return 0;
        }
        if (!message_pass(connection, 0)) {
            return -ERR_CLOSED;
        }
    } else {
        connection->in_end += got_bytes;
    }
    return window_parse(connection);
}

static void receive_all(struct connection *connection) {
    struct buffer parts[2];
    size_t got_bytes;
    size_t turn_bytes = 0;
    int r = window_parse(connection);

    while (r == 0 && connection->is_reading) {
        if (turn_bytes > TURN_BYTES_MAX && !channel_holds_bytes(&connection->channel)) {
            env_stream_again(connection->channel.stream); /* The others first. */
            return;
        }
        uint32_t count = space_find(connection, parts);

        r = channel_receive(&connection->channel, parts, count, &got_bytes);
        if (r == 0) {
            turn_bytes += got_bytes;
            r = space_filled(connection, got_bytes);
        }
    }
    /* After -ERR_CLOSED of our own the connection may be gone; the stream's end is an event. */
    if (r < 0 && r != -ERR_CLOSED && r != -ERR_BUSY) {
        connection_end(connection, r);
    }
}

void connection_set_reading(struct connection *connection, bool on) {
    connection->is_reading = on;
    if (on) {
        receive_all(connection);
    }
}

/* The stream. */

static void stream_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    struct connection *connection = stream->context;

    hook_enter(connection);
    switch (event) {
    case ENV_STREAM_WRITABLE:
        connection_flush(connection);
        break;
    case ENV_STREAM_OPEN: /* A handshake begins with who has called. */
    case ENV_STREAM_READABLE:
        receive_all(connection);
        if (connection->is_open &&
            (event == ENV_STREAM_OPEN || channel_is_released(&connection->channel))) {
            connection_flush(connection);
        }
        break;
    case ENV_STREAM_ENDED:
        connection_end(connection, reason ? reason : -ERR_CLOSED);
    }
    (void)hook_leave(connection);
}

static int connection_take_memory(struct connection *connection) {
    connection->piece_max = connection->options.out_messages * PIECES_OF_MESSAGE;
    connection->in = malloc(IN_BYTES);
    connection->heads = malloc(connection->options.out_bytes);
    connection->pieces = calloc(connection->piece_max, sizeof *connection->pieces);
    return connection->in && connection->heads && connection->pieces ? 0 : -ERR_NO_MEMORY;
}

static int connection_new(const struct connection_options *options,
                          struct connection **ret_connection) {
    struct connection *connection;
    int r;

    if (options->out_bytes < 2 * CONNECTION_HEAD_BYTES_MAX || options->out_messages == 0) {
        return -ERR_INVALID;
    }
    connection = calloc(1, sizeof *connection);
    if (!connection) {
        return -ERR_NO_MEMORY;
    }
    connection->options = *options;
    connection->is_open = connection->is_reading = true;
    r = connection_take_memory(connection);
    if (r == 0) {
        r = channel_init(&connection->channel, options->tls, options->tls_attempt);
    }
    if (r < 0) {
        connection_destroy(connection);
        return r;
    }
    *ret_connection = connection;
    return 0;
}

int connection_accept(const struct connection_options *options, struct env_stream *stream,
                      struct connection **ret_connection) {
    int r = connection_new(options, ret_connection);

    if (r < 0) {
        env_stream_close(stream);
        return r;
    }
    (*ret_connection)->channel.stream = stream;
    stream->event = stream_event;
    stream->context = *ret_connection;
    return 0;
}

int connection_dial(const struct connection_options *options, const struct address *address,
                    uint64_t deadline_ns, struct connection **ret_connection) {
    struct connection *connection;
    struct env_connect_options connect = {.deadline_ns = deadline_ns, .event = stream_event};
    int r = connection_new(options, &connection);

    if (r < 0) {
        return r;
    }
    connect.context = connection;
    r = options->env->streams->connect(options->env, address, &connect,
                                       &connection->channel.stream);
    if (r < 0) {
        connection_destroy(connection);
        return r;
    }
    *ret_connection = connection;
    return 0;
}
