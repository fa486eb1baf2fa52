/* Messages over one stream of bytes: whole ones come, whole ones go, many in one system call.
 *
 *     u8 kind, u8[3] 0, u32 bytes of the head, u32 bytes of the bulk, u32 CRC-32C of the twelve
 *     bytes before and of the head; the head; the bulk (its CRCs are in the head: frame.h)
 *
 * Little-endian, without padding. A head lies in the connection's own memory until the hook has
 * returned. Bulk is read to where the hook bulk_get says, but for what had come with the head,
 * and is sent from where it lies: never copied to be framed.
 *
 * Any bytes may come: what is no message ends the connection with -ERR_MALFORMED.
 *
 * Thread: that of the stream's loop. Memory: taken by connection_new, of a fixed size. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include "keys/identity.h"

struct address;
struct connection;
struct env;
struct env_stream;
struct tls_context;

enum {
    CONNECTION_PREFIX_BYTES = 16,
    CONNECTION_HEAD_BYTES_MAX = 32 << 10,
    CONNECTION_BULK_BYTES_MAX = 8 << 20,
    CONNECTION_BULK_PARTS_MAX = 4, /* of one message */
};

enum connection_kind {
    CONNECTION_HELLO = 1, /* who opens; the first message, and none later */
    CONNECTION_WELCOME,   /* the answer to it, likewise */
    CONNECTION_REQUEST,   /* heads of frame.h */
    CONNECTION_REPLY,
    CONNECTION_PING, /* no head: answered by CONNECTION_PONG at once */
    CONNECTION_PONG,
    CONNECTION_KIND_COUNT
};

struct connection_message {
    enum connection_kind kind;
    struct bytes head;
    struct bytes bulk; /* data is what bulk_get gave, now the receiver's; NULL where it gave none */
    uint64_t arrived_ns; /* no later than this could it have been read */
};

struct connection_hooks {
    /* Told once the head of a message with bulk is here, before its bulk is: memory for it, aligned
     * to a block. NULL: the bulk is read and thrown away. */
    void *(*bulk_get)(void *context, const struct connection_message *message, size_t size_bytes);
    void (*bulk_put)(void *context, void *bulk); /* of a message that never became whole */
    void (*message)(void *context, const struct connection_message *message);
    /* There is room to send again after connection_begin had none. */
    void (*room)(void *context);
    /* It is over: nothing more is told, what was not sent is dropped. Not from inside a call of
     * ours that sends. */
    void (*ended)(void *context, int reason);
};

struct connection_options {
    struct env *env;
    size_t out_bytes; /* of heads that wait to be sent, at least 2 * CONNECTION_HEAD_BYTES_MAX */
    uint32_t out_messages;
    const struct connection_hooks *hooks;
    void *context;
    struct tls_context *tls; /* NULL: without; borrowed */
    uint32_t tls_attempt;    /* as of tls_new */
};

/* Of a stream that was accepted, which is taken over also on failure: -ERR_NO_MEMORY, -ERR_INVALID.
 */
MUST_CHECK int connection_accept(const struct connection_options *options,
                                 struct env_stream *stream, struct connection **ret_connection);
/* Messages may be committed at once; they leave when it stands. The errors of connect too. */
MUST_CHECK int connection_dial(const struct connection_options *options,
                               const struct address *address, uint64_t deadline_ns,
                               struct connection **ret_connection);
/* Closes at once; `reset` as env_stream_reset. sent is called for nothing more. May be called from
 * inside hooks. Takes NULL. */
void connection_free(struct connection *connection, bool reset);

/* Room for a head of so many bytes at most, to be filled and given to connection_commit next.
 * -ERR_BUSY: not now; the hook `room` tells when. -ERR_INVALID above CONNECTION_HEAD_BYTES_MAX. */
MUST_CHECK int connection_begin(struct connection *connection, size_t head_bytes_max,
                                struct buffer *ret_head);
struct connection_outgoing {
    enum connection_kind kind;
    struct bytes bulk[CONNECTION_BULK_PARTS_MAX]; /* stays until sent is called */
    uint32_t bulk_count;
    void (*sent)(void *context); /* the last byte was taken; may be NULL */
    void *context;
};
/* It leaves with the next connection_flush. */
void connection_commit(struct connection *connection, const struct buffer *head,
                       const struct connection_outgoing *outgoing);
/* Gives the stream what it takes; the rest follows by itself. False: a hook has freed it. */
bool connection_flush(struct connection *connection);
/* Bytes that were given to commit and not taken by the stream yet. */
uint64_t connection_unsent_bytes(const struct connection *connection);
/* Since when the stream leaves some of these, and has not taken 64 KiB; 0: the last flush left
 * none. */
uint64_t connection_unsent_since_ns(const struct connection *connection);
/* Since when a message is on its way in that has memory for its bulk, and has not grown by 64 KiB;
 * 0: none is. */
uint64_t connection_half_since_ns(const struct connection *connection);
/* Only from inside the hook message: the message that it tells was the last in TLS, either way, but
 * for what was committed and flushed. -ERR_MALFORMED: more has come in TLS. Without TLS it does
 * nothing. */
MUST_CHECK int connection_go_plain(struct connection *connection);
/* Who is at the other end, by its proof. From inside the hook message. */
struct identity connection_identity(const struct connection *connection);
/* Why TLS has failed, for people, or NULL. From inside the hook ended. */
const char *connection_failure(const struct connection *connection);
/* When the loop last noticed bytes; 0: never. */
uint64_t connection_heard_ns(const struct connection *connection);
/* The hook `room` is called once when nothing waits to be sent any more; at once if that is so. */
void connection_want_room(struct connection *connection);
/* Reads no more until it is switched on again. */
void connection_set_reading(struct connection *connection, bool on);
