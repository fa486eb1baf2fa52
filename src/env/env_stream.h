/* Streams of bytes between processes, through TCP and Unix sockets; simulated in the simulator.
 *
 *     listen -> accepted(stream) --+                       +-- READABLE --> receive until BUSY
 *     connect --> OPEN or ENDED ---+--> handler on the loop+-- WRITABLE --> send again
 *                                                          +-- ENDED: nothing follows
 *
 * Addresses are text: `127.0.0.1:7400`, `[::1]:7400`, `unix:/path/of/socket`.
 *
 * Nothing here blocks. A handler is called from the loop's poll or wait, never from inside a call
 * of these. READABLE is told when bytes have come after receive answered -ERR_BUSY, so receive
 * until then; WRITABLE when there is room after send took less than all. ENDED is told once, with
 * the reason: a stream that polls as reset or hung up is not read any more, as receive would still
 * hand out what came before; an orderly end is told behind the last byte.
 *
 * Thread: a stream and a listener belong to the loop of the thread that made or accepted them; all
 * calls there. Memory: of each stream and listener from the heap, when it is made. */
#pragma once
#include "env/env.h"

struct env_listener;
struct env_stream;

enum env_stream_event {
    ENV_STREAM_OPEN = 1, /* of connect: it stands */
    ENV_STREAM_READABLE = 2,
    ENV_STREAM_WRITABLE = 4,
    ENV_STREAM_ENDED = 8,
};

typedef void env_stream_event_fn(void *context, unsigned events);

/* Who is at the other end. */
struct env_stream_peer {
    bool is_local; /* a Unix socket: the kernel says uid and pid */
    uint32_t uid;
    uint32_t pid;
    char address[64]; /* for messages */
};

enum { ENV_STREAM_PARTS_MAX = 64 };

struct env_stream_ops {
    int (*listen)(struct env *env, const char *address,
                  void (*accepted)(void *context, struct env_stream *stream), void *context,
                  struct env_listener **ret_listener);
    void (*listener_close)(struct env_listener *listener);
    int (*connect)(struct env *env, const char *address, struct env_stream **ret_stream);
    int (*send)(struct env_stream *stream, const struct bytes *parts, uint32_t part_count,
                size_t *ret_sent_bytes);
    int (*receive)(struct env_stream *stream, const struct buffer *parts, uint32_t part_count,
                   size_t *ret_received_bytes);
    void (*again)(struct env_stream *stream);
    void (*close)(struct env_stream *stream, bool reset);
    void (*peer)(const struct env_stream *stream, struct env_stream_peer *ret_peer);
};

/* What every kind of stream begins with. */
struct env_stream {
    const struct env_stream_ops *ops;
    env_stream_event_fn *event;
    void *context;
    int reason;          /* of its end: -ERR_CLOSED, -ERR_REFUSED, ... */
    uint64_t arrived_ns; /* when READABLE was told last */
};

/* Listens until closed; a socket that a dead process has left in the file system is replaced. The
 * one who accepts sets the stream's handler before it returns, or closes it. -ERR_INVALID for the
 * address, -ERR_IN_USE, and what the system says. A Unix socket is its owner's alone (0600). */
MUST_CHECK static inline int env_stream_listen(struct env *env, const char *address,
                                               void (*accepted)(void *context,
                                                                struct env_stream *stream),
                                               void *context, struct env_listener **ret_listener) {
    return env->streams->listen(env, address, accepted, context, ret_listener);
}
/* Its accepted streams stay. */
static inline void env_listener_close(struct env *env, struct env_listener *listener) {
    env->streams->listener_close(listener);
}
/* OPEN or ENDED follows. -ERR_INVALID for the address, -ERR_REFUSED where that is known at once. */
MUST_CHECK static inline int env_stream_connect(struct env *env, const char *address,
                                                struct env_stream **ret_stream) {
    return env->streams->connect(env, address, ret_stream);
}
static inline void env_stream_set_handler(struct env_stream *stream, env_stream_event_fn *event,
                                          void *context) {
    stream->event = event;
    stream->context = context;
}
/* Takes as many bytes as there is room for, of at most ENV_STREAM_PARTS_MAX parts, maybe none. An
 * error is followed by ENDED. */
MUST_CHECK static inline int env_stream_send(struct env_stream *stream, const struct bytes *parts,
                                             uint32_t part_count, size_t *ret_sent_bytes) {
    return stream->ops->send(stream, parts, part_count, ret_sent_bytes);
}
/* Fills the parts, each from its beginning up to its capacity, as far as bytes are there.
 * -ERR_BUSY: none now. Any other error is followed by ENDED. */
MUST_CHECK static inline int env_stream_receive(struct env_stream *stream,
                                                const struct buffer *parts, uint32_t part_count,
                                                size_t *ret_received_bytes) {
    return stream->ops->receive(stream, parts, part_count, ret_received_bytes);
}
/* READABLE is told again at the loop's next poll, without new bytes: for one that stops early. */
static inline void env_stream_again(struct env_stream *stream) {
    stream->ops->again(stream);
}
/* No event follows; may be called in one. reset: what is on its way is given up, and the other end
 * does not read on. */
static inline void env_stream_close(struct env_stream *stream, bool reset) {
    stream->ops->close(stream, reset);
}
static inline void env_stream_peer(const struct env_stream *stream,
                                   struct env_stream_peer *ret_peer) {
    stream->ops->peer(stream, ret_peer);
}
