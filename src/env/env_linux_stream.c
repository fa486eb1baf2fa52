/* Streams of the real outside: one socket each, watched by the loop of its thread.
 *
 *     LOOKING_UP -> CONNECTING -> OPEN -> ENDED -> CLOSED
 *         '-------------'-------------------^        ^ from any
 *
 * The events of a turn are told from stream_fire and nowhere else; what happens inside a call (an
 * error of send, the end that receive met) is told in the next turn.
 *
 * `readable` says whether it makes sense to ask the kernel: from the poll that told of bytes until
 * a receive found fewer than it had room for. Bytes that come later make the poll answer anew, so
 * none is overlooked, and an end has been polled before (end_seen) or makes it answer, too. */
#include "env/env_linux_internal.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A Unix socket whose listener's queue is full has nothing to wait for: it is tried again. */
#define QUEUE_AGAIN_NS (5 * NS_PER_MS)

enum stream_state { LOOKING_UP, CONNECTING, OPEN, ENDED, CLOSED };

struct linux_stream {
    struct watch watch; /* first: aligned */
    struct env_stream stream;
    enum stream_state state;
    bool is_path; /* a Unix socket */
    bool readable;
    bool readable_told;
    bool end_seen;
    bool writable_owed;
    bool ended_told;
    int reason; /* of ENDED */
    struct address peer;

    /* Of a connecting stream. */
    struct env_job lookup;
    bool lookup_out;
    int lookup_result;
    uint64_t deadline_ns;
    uint64_t attempt_due_ns;
    struct socket_place places[SOCKET_PLACES_MAX];
    size_t place_count;
    size_t place_next;
};

static struct linux_stream *stream_of(struct env_stream *base) {
    return CONTAINER_OF(base, struct linux_stream, stream);
}

static struct linux_stream *stream_watched(struct watch *watch) {
    return CONTAINER_OF(watch, struct linux_stream, watch);
}

static void stream_break(struct linux_stream *stream, int reason) {
    stream->state = ENDED;
    stream->reason = reason;
    watch_set_due(&stream->watch, UINT64_MAX);
    watch_nudge(&stream->watch);
}

static void stream_free(struct linux_stream *stream) {
    sockets_give(&env_linux_of(stream->stream.env)->sockets);
    free(stream);
}

static void stream_fire(struct watch *watch, unsigned seen);
static void stream_end(struct watch *watch);

static int stream_new(struct env *env, struct linux_stream **ret_stream) {
    struct env_loop *loop = env_thread_loop(env);
    struct linux_stream *stream = calloc(1, sizeof *stream);

    assert(loop);
    if (!stream) {
        return -ERR_NO_MEMORY;
    }
    stream->watch.fire = stream_fire;
    stream->watch.end = stream_end;
    stream->stream.env = env;
    int r = watch_start(&stream->watch, loop);
    if (r) {
        free(stream);
        return r;
    }
    *ret_stream = stream;
    return 0;
}

/* Reads from now on: polls of what is there already answer at once. */
static void stream_open(struct linux_stream *stream) {
    stream->state = OPEN;
    watch_want(&stream->watch, WATCH_IN, true);
}

int stream_adopt(struct env *env, int fd, const struct address *peer,
                 struct env_stream **ret_stream) {
    struct linux_stream *stream;
    int r = stream_new(env, &stream);

    if (r) {
        sockets_give(&env_linux_of(env)->sockets);
        close(fd);
        return r;
    }
    stream->watch.fd = fd;
    stream->peer = *peer;
    stream->is_path = peer->kind == ADDRESS_UNIX;
    stream_open(stream);
    *ret_stream = &stream->stream;
    return 0;
}

/* While others are left, each place gets its share of the time. */
static uint64_t attempt_due(const struct linux_stream *stream) {
    uint64_t now_ns = env_now_ns(stream->stream.env);
    uint64_t left_count = stream->place_count - stream->place_next + 1;

    if (stream->deadline_ns == UINT64_MAX || stream->deadline_ns <= now_ns) {
        return stream->deadline_ns;
    }
    return now_ns + (stream->deadline_ns - now_ns) / left_count;
}

static void attempt_connect(struct linux_stream *stream) {
    const struct socket_place *place = &stream->places[stream->place_next - 1];
    uint64_t due_ns = stream->attempt_due_ns;

    if (connect(stream->watch.fd, &place->name.any, place->size) == 0 || errno == EINPROGRESS) {
        watch_want(&stream->watch, WATCH_OUT, true);
    } else if (errno == EAGAIN && stream->is_path) {
        due_ns = MIN(due_ns, env_now_ns(stream->stream.env) + QUEUE_AGAIN_NS);
    } else {
        stream->reason = socket_error(errno);
        watch_nudge(&stream->watch);
    }
    watch_set_due(&stream->watch, due_ns);
}

static void attempt_start(struct linux_stream *stream) {
    const struct socket_place *place = &stream->places[stream->place_next++];

    stream->state = CONNECTING;
    stream->reason = 0;
    stream->is_path = place->name.any.sa_family == AF_UNIX;
    int r = socket_open(place, &stream->watch.fd);
    if (r) {
        stream_break(stream, r);
        return;
    }
    socket_address(place, &stream->peer);
    if (!stream->is_path) {
        socket_hurry(stream->watch.fd);
    }
    stream->attempt_due_ns = attempt_due(stream);
    attempt_connect(stream);
}

/* The next place follows, once the kernel has let go of this one's socket. */
static void attempt_fail(struct linux_stream *stream, int reason) {
    bool over = env_now_ns(stream->stream.env) >= stream->deadline_ns;

    if (over || stream->place_next == stream->place_count) {
        stream_break(stream, over ? -ERR_TIMED_OUT : reason);
    } else {
        watch_release(&stream->watch);
    }
}

/* Linux connects a socket to itself when its own port happens to be the one asked for. */
static bool is_own_echo(const struct linux_stream *stream) {
    struct socket_place own = {.size = sizeof own.name};
    struct address address;

    if (stream->is_path || getsockname(stream->watch.fd, &own.name.any, &own.size) != 0) {
        return false;
    }
    socket_address(&own, &address);
    return address_is(&address, &stream->peer);
}

static int socket_pending_error(int fd) {
    int value = 0;
    socklen_t size = sizeof value;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size) != 0) {
        return socket_error(errno);
    }
    return value ? socket_error(value) : 0;
}

static void lookup_run(struct env_job *job) {
    struct linux_stream *stream = CONTAINER_OF(job, struct linux_stream, lookup);

    stream->lookup_result = socket_places(&stream->peer, stream->places, &stream->place_count);
}

static void lookup_done(struct env_job *job) {
    struct linux_stream *stream = CONTAINER_OF(job, struct linux_stream, lookup);

    stream->lookup_out = false;
    if (stream->state == CLOSED) {
        stream_free(stream);
    } else if (stream->state == LOOKING_UP && stream->lookup_result) {
        stream_break(stream, stream->lookup_result);
    } else if (stream->state == LOOKING_UP) {
        attempt_start(stream);
    }
}

static int linux_connect(struct env *env, const struct address *address,
                         const struct env_connect_options *options,
                         struct env_stream **ret_stream) {
    struct linux_stream *stream;
    int r = stream_new(env, &stream);

    assert(options->event);
    if (r) {
        return r;
    }
    sockets_take(&env_linux_of(env)->sockets);
    stream->stream.event = options->event;
    stream->stream.context = options->context;
    stream->deadline_ns = options->deadline_ns;
    stream->peer = *address;
    if (address->kind == ADDRESS_NAME) {
        stream->state = LOOKING_UP;
        stream->lookup =
            (struct env_job){.lane = ENV_LANE_READ, .run = lookup_run, .done = lookup_done};
        stream->lookup_out = true;
        watch_set_due(&stream->watch, options->deadline_ns);
        env_job_submit(env, &stream->lookup);
    } else {
        r = socket_places(address, stream->places, &stream->place_count);
        assert(r == 0);
        attempt_start(stream);
    }
    *ret_stream = &stream->stream;
    return 0;
}

static void stream_tell(struct linux_stream *stream, enum env_stream_event event) {
    stream->stream.event(&stream->stream, event, event == ENV_STREAM_ENDED ? stream->reason : 0);
}

/* What a connecting socket that has an answer says. */
static int attempt_result(const struct linux_stream *stream) {
    int r = socket_pending_error(stream->watch.fd);

    return r == 0 && is_own_echo(stream) ? -ERR_REFUSED : r;
}

static void attempt_end(struct linux_stream *stream, int result) {
    if (result) {
        attempt_fail(stream, result);
        return;
    }
    watch_set_due(&stream->watch, UINT64_MAX);
    stream_open(stream);
    stream_tell(stream, ENV_STREAM_OPEN);
}

static void connecting_fire(struct linux_stream *stream, unsigned seen) {
    if (stream->state == LOOKING_UP) {
        stream_break(stream, -ERR_TIMED_OUT); /* Nothing else fires. */
    } else if (stream->reason) {
        attempt_end(stream, stream->reason);
    } else if (seen & (POLLOUT | POLLERR | POLLHUP)) {
        attempt_end(stream, attempt_result(stream));
    } else if (env_now_ns(stream->stream.env) >= stream->attempt_due_ns) {
        attempt_end(stream, -ERR_TIMED_OUT);
    } else {
        attempt_connect(stream);
    }
}

/* The other end of a Unix socket that was closed polls as HUP with bytes left to read; that of a
 * TCP connection only after a reset. */
static bool is_reset(const struct linux_stream *stream, unsigned seen) {
    return seen & POLLERR || (seen & POLLHUP && (!stream->is_path || stream->stream.drops_unread));
}

static void open_fire(struct linux_stream *stream, unsigned seen) {
    if (is_reset(stream, seen)) {
        int reason = socket_pending_error(stream->watch.fd);

        stream_break(stream, reason ? reason : -ERR_RESET);
        return;
    }
    if (seen & (POLLIN | POLLRDHUP | POLLHUP)) {
        stream->end_seen = stream->end_seen || seen & (POLLRDHUP | POLLHUP);
        if (!stream->readable) {
            stream->readable = true;
            stream->stream.readable_ns = stream->watch.loop->watches.poll_ns;
        }
    }
    if (stream->readable && !stream->readable_told) {
        stream->readable_told = true;
        stream_tell(stream, ENV_STREAM_READABLE);
    }
    if (stream->state == OPEN && seen & POLLOUT && stream->writable_owed) {
        stream->writable_owed = false;
        stream_tell(stream, ENV_STREAM_WRITABLE);
    }
}

static void stream_fire(struct watch *watch, unsigned seen) {
    struct linux_stream *stream = stream_watched(watch);

    if (stream->state == LOOKING_UP || stream->state == CONNECTING) {
        connecting_fire(stream, seen);
    } else if (stream->state == OPEN) {
        open_fire(stream, seen);
    }
    if (stream->state == ENDED && !stream->ended_told) {
        stream->ended_told = true;
        if (watch->fd >= 0) {
            watch_want(watch, WATCH_IN, false);
            watch_want(watch, WATCH_OUT, false);
        }
        stream_tell(stream, ENV_STREAM_ENDED);
    }
}

/* The kernel has let go of the socket: of a stream that was closed, or of a place that failed. */
static void stream_end(struct watch *watch) {
    struct linux_stream *stream = stream_watched(watch);

    if (watch->fd >= 0) {
        close(watch->fd);
    }
    if (stream->state == CONNECTING) {
        /* It cannot fail for a loop that has had a watch. */
        int r = watch_start(watch, watch->loop);

        assert(r == 0);
        attempt_start(stream);
    } else if (!stream->lookup_out) {
        stream_free(stream);
    }
}

/* Whether send and receive may ask the kernel. */
static int stream_check(const struct linux_stream *stream) {
    assert(stream->state != CLOSED);
    if (stream->state == LOOKING_UP || stream->state == CONNECTING) {
        return -ERR_BUSY;
    }
    return stream->state == ENDED ? -ERR_CLOSED : 0;
}

static bool is_temporary(int errno_value) {
    return errno_value == EAGAIN || errno_value == EINTR || errno_value == ENOBUFS ||
           errno_value == ENOMEM;
}

static int linux_send(struct env_stream *base, const struct bytes *parts, size_t part_count,
                      size_t *ret_sent) {
    struct linux_stream *stream = stream_of(base);
    struct iovec vectors[ENV_STREAM_PARTS_MAX];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = part_count};
    size_t total = 0;
    ssize_t sent = 0;
    int r = stream_check(stream);

    if (r) {
        return r;
    }
    assert(part_count <= ENV_STREAM_PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        vectors[i] = (struct iovec){(void *)(uintptr_t)parts[i].data, parts[i].size};
        total += parts[i].size;
    }
    /* Until WRITABLE there is no room. */
    if (total > 0 && !stream->writable_owed) {
        sent = sendmsg(stream->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (sent < 0 && !is_temporary(errno)) {
        stream_break(stream, socket_error(errno));
        return -ERR_CLOSED;
    }
    *ret_sent = sent > 0 ? (size_t)sent : 0;
    if (*ret_sent < total && !stream->writable_owed) {
        stream->writable_owed = true;
        watch_want(&stream->watch, WATCH_OUT, true);
    }
    return 0;
}

/* Hands the bytes that have come to the parts they lie in. */
static void parts_grow(struct buffer *parts, size_t part_count, size_t received) {
    for (size_t i = 0; i < part_count && received > 0; i++) {
        size_t size = MIN(received, parts[i].capacity - parts[i].size);

        parts[i].size += size;
        received -= size;
    }
}

static void stream_drained(struct linux_stream *stream) {
    stream->readable = false;
    stream->readable_told = false;
}

static int receive_failed(struct linux_stream *stream, ssize_t received) {
    if (received == 0) {
        stream_break(stream, 0);
        return -ERR_CLOSED;
    }
    if (is_temporary(errno)) {
        stream_drained(stream);
        return -ERR_BUSY;
    }
    stream_break(stream, socket_error(errno));
    return -ERR_CLOSED;
}

static int linux_receive(struct env_stream *base, struct buffer *parts, size_t part_count,
                         size_t *ret_received) {
    struct linux_stream *stream = stream_of(base);
    struct iovec vectors[ENV_STREAM_PARTS_MAX];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = part_count};
    size_t room = 0;
    int r = stream_check(stream);

    if (r || !stream->readable) {
        return r ? r : -ERR_BUSY;
    }
    assert(part_count <= ENV_STREAM_PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        size_t size = parts[i].capacity - parts[i].size;

        vectors[i] = (struct iovec){parts[i].data + parts[i].size, size};
        room += size;
    }
    assert(room > 0);
    ssize_t received = recvmsg(stream->watch.fd, &message, MSG_DONTWAIT);
    if (received <= 0) {
        return receive_failed(stream, received);
    }
    parts_grow(parts, part_count, (size_t)received);
    if ((size_t)received < room && !stream->end_seen) {
        stream_drained(stream);
    }
    *ret_received = (size_t)received;
    return 0;
}

static void linux_again(struct env_stream *base) {
    struct linux_stream *stream = stream_of(base);

    assert(stream->state != CLOSED);
    if (stream->state == OPEN) {
        stream->readable_told = false;
        watch_nudge(&stream->watch);
    }
}

static void linux_close(struct env_stream *base) {
    if (base) {
        struct linux_stream *stream = stream_of(base);
        bool released = stream->watch.released;

        assert(stream->state != CLOSED);
        stream->state = CLOSED;
        if (!released) {
            watch_release(&stream->watch);
        }
    }
}

static void linux_reset(struct env_stream *base) {
    if (base) {
        struct linger none = {.l_onoff = 1};
        int fd = stream_of(base)->watch.fd;

        if (fd >= 0) {
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        }
        linux_close(base);
    }
}

static int linux_peer(struct env_stream *base, struct env_stream_peer *ret_peer) {
    struct linux_stream *stream = stream_of(base);
    struct ucred credentials;
    socklen_t size = sizeof credentials;

    if (!stream->is_path || stream->watch.fd < 0) {
        return -ERR_NOT_SUPPORTED;
    }
    if (getsockopt(stream->watch.fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        return socket_error(errno);
    }
    *ret_peer = (struct env_stream_peer){
        .pid = (uint32_t)credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
    return 0;
}

static void linux_peer_address(struct env_stream *base, struct address *ret_address) {
    *ret_address = stream_of(base)->peer;
}

static int linux_own_address(struct env_stream *base, struct address *ret_address) {
    const struct linux_stream *stream = stream_of(base);
    struct socket_place own = {.size = sizeof own.name};

    if (stream->is_path) {
        *ret_address = stream->peer;
        return 0;
    }
    if (stream->watch.fd < 0 || getsockname(stream->watch.fd, &own.name.any, &own.size) != 0) {
        return -ERR_CLOSED;
    }
    socket_address(&own, ret_address);
    return 0;
}

const struct env_stream_ops linux_stream_ops = {
    .listen = linux_listen,
    .listener_address = linux_listener_address,
    .listener_close = linux_listener_close,
    .connect = linux_connect,
    .send = linux_send,
    .receive = linux_receive,
    .again = linux_again,
    .close = linux_close,
    .reset = linux_reset,
    .peer = linux_peer,
    .peer_address = linux_peer_address,
    .own_address = linux_own_address,
};
