/* Streams of bytes between processes: TCP, and Unix sockets within a machine.
 *
 *     connect -> OPEN ----.                               .--> close: what was sent arrives
 *                         +--> READABLE, WRITABLE, ... ---+--> reset: what is under way is lost
 *     listen -> accepted -'            |                  '--> ENDED, then close
 *                                      '-- send, receive
 *
 * Thread: a stream belongs to the thread that connected or accepted it, a listener to the one that
 * listens; only it calls these functions, and it has closed all of its own before it leaves. Events
 * come on its loop (env_loop_poll, env_loop_wait), never from inside one of these functions.
 * Any may be called from inside an event, also of the stream whose event it is. A stream comes from
 * the heap when it is connected or accepted; send and receive take no memory.
 *
 * Events. READABLE is told once; again only after a receive has found less than it had room for
 * (that and -ERR_BUSY say the same: nothing is left for now). WRITABLE is told once after each send
 * that took less than all. ENDED is the last event, told once, unless the stream was closed before:
 *
 *     0                  the other side has ended it; each byte that it sent was received
 *     -ERR_RESET         reset; what was not received is lost
 *     -ERR_REFUSED       connect: nobody listens there
 *     -ERR_UNREACHABLE   connect: no way there, or the name is not known
 *     -ERR_TIMED_OUT     connect: the deadline; later: the other machine took no bytes for long
 *     others             what the system lacked
 *
 * The kernel of a process that dies ends its streams in one of the first two ways; a machine that
 * dies says nothing. An end of 0 is noticed by receiving only. Between a reset and the loop's turn
 * that tells it, receive may still hand out what came before. */
#pragma once
#include "base/address.h"
#include "env/env.h"

enum { ENV_STREAM_PARTS_MAX = 64 };

enum env_stream_event {
    ENV_STREAM_OPEN, /* of connect; an accepted stream is open */
    ENV_STREAM_READABLE,
    ENV_STREAM_WRITABLE,
    ENV_STREAM_ENDED,
};

struct env_stream;

/* reason is 0 but for ENDED. */
typedef void env_stream_event_fn(struct env_stream *stream, enum env_stream_event event,
                                 int reason);

struct env_listener {
    struct env *env;
    void *context; /* the user's */
};

struct env_stream {
    struct env *env;
    /* The user's, who may change these three. */
    env_stream_event_fn *event;
    void *context;
    /* A Unix socket knows no reset; where this is set, its other end's close is one. */
    bool drops_unread;
    /* By now_ns: when the loop noticed bytes; stays until a receive has taken all there were. */
    uint64_t readable_ns;
};

struct env_listen_options {
    unsigned backlog; /* connections that wait in the kernel at most; 0 for 128 */
    /* Sets event and context of the stream, or closes it. */
    void (*accepted)(struct env_listener *listener, struct env_stream *stream);
    /* Told once by an env: it has as many streams, or the process as many descriptors, as it may;
     * connections wait until one is closed. May be NULL. */
    void (*full)(struct env_listener *listener);
    void *context; /* the listener's */
};

struct env_connect_options {
    uint64_t deadline_ns; /* by now_ns, of the attempt; UINT64_MAX: as long as the system tries */
    env_stream_event_fn *event;
    void *context;
};

/* Of a Unix socket, by the kernel's word, as of its connect or listen. */
struct env_stream_peer {
    uint32_t pid, uid, gid;
};

struct env_stream_ops {
    /* (start) Several threads of an env may listen at one address, with a listener each; each
     * connection goes to one of them. Port 0 draws one: others join at what listener_address
     * answers. A Unix socket is its owner's (0600) and replaces one of a process that is gone.
     * -ERR_IN_USE: another process listens there. -ERR_UNREACHABLE: the name, or the address, is
     * none of this machine's. -ERR_ACCESS, -ERR_NOT_FOUND (the path's directory),
     * -ERR_TOO_MANY_OPEN, -ERR_NO_MEMORY. */
    int (*listen)(struct env *env, const struct address *address,
                  const struct env_listen_options *options, struct env_listener **ret_listener);
    void (*listener_address)(struct env_listener *listener, struct address *ret_address);
    /* What waits for this address' last listener is reset, and its Unix socket removed. Streams
     * that were accepted stay. Takes NULL. */
    void (*listener_close)(struct env_listener *listener);

    /* OPEN or ENDED follows. Names are looked up by a job of the READ lane; their addresses are
     * tried one after another. -ERR_NO_MEMORY, -ERR_TOO_MANY_OPEN. */
    int (*connect)(struct env *env, const struct address *address,
                   const struct env_connect_options *options, struct env_stream **ret_stream);
    /* At most PARTS_MAX parts, in order; *ret_sent is how many bytes were taken, 0 also. What was
     * taken arrives, or the stream ends. -ERR_BUSY before OPEN; -ERR_CLOSED: it has ended, which
     * ENDED has told or will. */
    int (*send)(struct env_stream *stream, const struct bytes *parts, size_t part_count,
                size_t *ret_sent);
    /* Appends to each part behind its size, up to its capacity, and raises size. At most PARTS_MAX
     * parts, with room for a byte at least. -ERR_BUSY: nothing is there now, or before OPEN.
     * -ERR_CLOSED as send. */
    int (*receive)(struct env_stream *stream, struct buffer *parts, size_t part_count,
                   size_t *ret_received);
    /* READABLE is told in the next turn, if anything is left; until then receive may be BUSY. */
    void (*again)(struct env_stream *stream);
    /* Ends the stream, no later than in the loop's next turn: what send has taken arrives first,
     * unless bytes lie or arrive here that nobody receives: then it is a reset, as with TCP. */
    void (*close)(struct env_stream *stream);
    /* Ends it at once: what is under way is lost, the other side's ENDED says -ERR_RESET. A Unix
     * socket can't do that: there it is close (but see drops_unread). */
    void (*reset)(struct env_stream *stream);

    /* -ERR_NOT_SUPPORTED but for Unix sockets. */
    int (*peer)(struct env_stream *stream, struct env_stream_peer *ret_peer);
    /* Of the other end; a connecting stream's is what was asked for. Accepted Unix sockets: the
     * path that they came in by. */
    void (*peer_address)(struct env_stream *stream, struct address *ret_address);
    /* Of this end, an accepted one. -ERR_CLOSED: it has ended. */
    int (*own_address)(struct env_stream *stream, struct address *ret_address);
};

MUST_CHECK static inline int env_stream_send(struct env_stream *stream, const struct bytes *parts,
                                             size_t part_count, size_t *ret_sent) {
    return stream->env->streams->send(stream, parts, part_count, ret_sent);
}

MUST_CHECK static inline int env_stream_receive(struct env_stream *stream, struct buffer *parts,
                                                size_t part_count, size_t *ret_received) {
    return stream->env->streams->receive(stream, parts, part_count, ret_received);
}

static inline void env_stream_again(struct env_stream *stream) {
    stream->env->streams->again(stream);
}

static inline void env_stream_close(struct env_stream *stream) {
    stream->env->streams->close(stream);
}

static inline void env_stream_reset(struct env_stream *stream) {
    stream->env->streams->reset(stream);
}
