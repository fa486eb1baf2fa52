/* Sockets of a loop; the contract is in env_stream.h.
 *
 * Each loop has an epoll that its sockets are in, edge-triggered, from their beginning to their
 * end; the loop waits for it as for one descriptor more. What is closed while events are told stays
 * until all have been. */
#include "env/env_linux_internal.h"
#include "env/env_stream.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { EVENTS_MAX = 64 };

/* A stream or a listener. */
struct socket {
    struct env_stream stream; /* first */
    struct env_loop *loop;
    int fd;
    bool is_listener, is_joining, is_closed, in_again, was_short;
    struct socket *next_again, *next_closed, *next, **link; /* link: of the loop's list of all */
    void (*accepted)(void *context, struct env_stream *stream);
    void *accepted_context;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a listener's Unix socket */
};

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

static int address_unix(const char *path, struct address *ret_address) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    if (path[0] == 0 || strlen(path) >= sizeof name.sun_path) {
        return -ERR_INVALID;
    }
    memcpy(name.sun_path, path, strlen(path) + 1);
    memcpy(&ret_address->storage, &name, sizeof name);
    ret_address->size = sizeof name;
    return 0;
}

/* The host without its brackets, and the port behind the last colon. */
static int address_split(const char *text, char host[64], const char **ret_port) {
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;

    if (size > 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    } else if (size > 0 && memchr(text, ':', size)) {
        return -ERR_INVALID;
    }
    if (size == 0 || size >= 64 || colon[1] == 0 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        return -ERR_INVALID;
    }
    memcpy(host, text, size);
    host[size] = 0;
    *ret_port = colon + 1;
    return 0;
}

static int address_parse(const char *text, struct address *ret_address) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char host[64];
    const char *port;

    if (strncmp(text, "unix:", 5) == 0) {
        return address_unix(text + 5, ret_address);
    }
    if (address_split(text, host, &port) < 0 || getaddrinfo(host, port, &hints, &found) != 0) {
        return -ERR_INVALID;
    }
    memcpy(&ret_address->storage, found->ai_addr, found->ai_addrlen);
    ret_address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int loop_streams(struct env_loop *loop) {
    if (loop->streams_fd < 0) {
        loop->streams_fd = epoll_create1(EPOLL_CLOEXEC);
    }
    return loop->streams_fd < 0 ? err_from_errno(errno) : 0;
}

/* Takes the descriptor over, also on failure. */
static int socket_new(struct env_loop *loop, int fd, uint32_t events, struct socket **ret_socket) {
    struct socket *socket = calloc(1, sizeof *socket);
    struct epoll_event event = {.events = events, .data.ptr = socket};
    int r = socket ? loop_streams(loop) : -ERR_NO_MEMORY;

    if (r == 0 && epoll_ctl(loop->streams_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        r = err_from_errno(errno);
    }
    if (r < 0) {
        close(fd);
        free(socket);
        return r;
    }
    socket->stream.ops = &linux_stream_ops;
    socket->loop = loop;
    socket->fd = fd;
    socket->next = loop->sockets;
    socket->link = &loop->sockets;
    if (socket->next) {
        socket->next->link = &socket->next;
    }
    loop->sockets = socket;
    *ret_socket = socket;
    return 0;
}

static void socket_free(struct socket *socket) {
    free(socket);
}

static void again_remove(struct env_loop *loop, const struct socket *socket) {
    struct socket **link = &loop->again;

    while (*link && *link != socket) {
        link = &(*link)->next_again;
    }
    if (*link) {
        *link = socket->next_again;
    }
}

static void socket_close(struct socket *socket) {
    struct env_loop *loop = socket->loop;

    if (socket->in_again) {
        again_remove(loop, socket);
    }
    socket->is_closed = true;
    close(socket->fd);
    *socket->link = socket->next;
    if (socket->next) {
        socket->next->link = socket->link;
    }
    if (loop->streams_told) {
        socket->next_closed = loop->closed;
        loop->closed = socket;
    } else {
        socket_free(socket);
    }
}

static void linux_stream_close(struct env_stream *stream, bool reset) {
    struct socket *socket = (struct socket *)(void *)stream;
    const struct linger none = {.l_onoff = 1};

    if (reset) {
        (void)setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }
    socket_close(socket);
}

static void socket_prepare(int fd, int family) {
    int one = 1;

    if (family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

static int connect_error(int errno_value) {
    switch (errno_value) {
    case ECONNREFUSED:
    case ENOENT:
    case EAGAIN: /* A Unix socket whose queue is full. */
        return -ERR_REFUSED;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return -ERR_TIMED_OUT;
    default:
        return err_from_errno(errno_value);
    }
}

static int linux_connect(struct env *env, const char *text, struct env_stream **ret_stream) {
    struct env_loop *loop = env_thread_loop(env);
    struct address address;
    struct socket *socket_made;
    int r = address_parse(text, &address);
    int fd;

    if (r < 0) {
        return r;
    }
    fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    socket_prepare(fd, address.storage.ss_family);
    if (connect(fd, (struct sockaddr *)&address.storage, address.size) < 0 &&
        errno != EINPROGRESS) {
        r = connect_error(errno);
        close(fd);
        return r;
    }
    r = socket_new(loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &socket_made);
    if (r == 0) {
        socket_made->is_joining = true;
        *ret_stream = &socket_made->stream;
    }
    return r;
}

/* A socket's file that nobody listens at any more stands in the way. */
static void unix_clean(const struct address *address) {
    const struct sockaddr_un *name = (const struct sockaddr_un *)&address->storage;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)name, address->size) < 0 &&
        errno == ECONNREFUSED) {
        (void)unlink(name->sun_path);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static int listener_bind(int fd, const struct address *address) {
    int family = address->storage.ss_family;
    int one = 1;
    mode_t mask;
    int r;

    if (family == AF_UNIX) {
        unix_clean(address);
    } else {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
    mask = umask(0177); /* Of a Unix socket's file. */
    r = bind(fd, (const struct sockaddr *)&address->storage, address->size);
    r = r < 0 ? err_from_errno(errno) : 0;
    (void)umask(mask);
    if (r == 0 && listen(fd, SOMAXCONN) < 0) {
        r = err_from_errno(errno);
    }
    return r;
}

static int linux_listen(struct env *env, const char *text,
                        void (*accepted)(void *context, struct env_stream *stream), void *context,
                        struct env_listener **ret_listener) {
    struct address address;
    struct socket *listener;
    int r = address_parse(text, &address);
    int fd;

    if (r < 0) {
        return r;
    }
    fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    r = listener_bind(fd, &address);
    if (r < 0) {
        close(fd);
        return r;
    }
    r = socket_new(env_thread_loop(env), fd, EPOLLIN | EPOLLET, &listener);
    if (r < 0) {
        return r;
    }
    listener->is_listener = true;
    listener->accepted = accepted;
    listener->accepted_context = context;
    if (address.storage.ss_family == AF_UNIX) {
        snprintf(listener->path, sizeof listener->path, "%s", text + strlen("unix:"));
    }
    *ret_listener = (struct env_listener *)(void *)listener;
    return 0;
}

static void linux_listener_close(struct env_listener *base) {
    struct socket *listener = (struct socket *)(void *)base;

    if (listener->path[0]) {
        (void)unlink(listener->path);
    }
    socket_close(listener);
}

/* All that wait: it is told of new ones only. One that finds no descriptor waits for the next. */
static void listener_accept(struct socket *listener) {
    while (!listener->is_closed) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        int fd =
            accept4(listener->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct socket *socket;

        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            return;
        }
        socket_prepare(fd, from.ss_family);
        if (socket_new(listener->loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &socket) ==
            0) {
            listener->accepted(listener->accepted_context, &socket->stream);
        }
    }
}

static int linux_send(struct env_stream *stream, const struct bytes *parts, uint32_t part_count,
                      size_t *ret_sent_bytes) {
    struct socket *socket = (struct socket *)(void *)stream;
    struct iovec vectors[ENV_STREAM_PARTS_MAX];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = part_count};
    ssize_t sent;

    *ret_sent_bytes = 0;
    if (socket->is_joining) {
        return 0;
    }
    for (uint32_t i = 0; i < part_count; i++) {
        vectors[i] = (struct iovec){(void *)parts[i].data, parts[i].size};
    }
    do {
        sent = sendmsg(socket->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN) {
        return -ERR_CLOSED;
    }
    *ret_sent_bytes = sent > 0 ? (size_t)sent : 0;
    return 0;
}

static int linux_receive(struct env_stream *stream, const struct buffer *parts, uint32_t part_count,
                         size_t *ret_received_bytes) {
    struct socket *socket = (struct socket *)(void *)stream;
    struct iovec vectors[ENV_STREAM_PARTS_MAX];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = part_count};
    ssize_t got;

    for (uint32_t i = 0; i < part_count; i++) {
        vectors[i] = (struct iovec){parts[i].data, parts[i].capacity};
    }
    do {
        got = recvmsg(socket->fd, &message, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *ret_received_bytes = (size_t)got;
        return 0;
    }
    if (got < 0 && errno == EAGAIN) {
        return -ERR_BUSY;
    }
    /* Told behind the last byte: the event of the end may have come while bytes were left. */
    stream->reason = -ERR_CLOSED;
    linux_stream_ops.again(stream);
    return -ERR_CLOSED;
}

static void linux_again(struct env_stream *stream) {
    struct socket *socket = (struct socket *)(void *)stream;

    if (!socket->in_again) {
        socket->in_again = true;
        socket->next_again = socket->loop->again;
        socket->loop->again = socket;
    }
}

static void linux_peer(const struct env_stream *stream, struct env_stream_peer *ret_peer) {
    const struct socket *socket = (const struct socket *)(const void *)stream;
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    struct ucred who;
    socklen_t who_size = sizeof who;
    char host[46], port[8];

    *ret_peer = (struct env_stream_peer){.address = "?"};
    if (getpeername(socket->fd, (struct sockaddr *)&name, &size) < 0) {
        return;
    }
    if (name.ss_family == AF_UNIX) {
        if (getsockopt(socket->fd, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0) {
            ret_peer->is_local = true;
            ret_peer->uid = who.uid;
            ret_peer->pid = (uint32_t)who.pid;
            snprintf(ret_peer->address, sizeof ret_peer->address, "process %u", ret_peer->pid);
        }
    } else if (getnameinfo((struct sockaddr *)&name, size, host, sizeof host, port, sizeof port,
                           NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        snprintf(ret_peer->address, sizeof ret_peer->address,
                 name.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    }
}

const struct env_stream_ops linux_stream_ops = {
    .listen = linux_listen,
    .listener_close = linux_listener_close,
    .connect = linux_connect,
    .send = linux_send,
    .receive = linux_receive,
    .again = linux_again,
    .close = linux_stream_close,
    .peer = linux_peer,
};

/* What joining has come to: 0, or why it failed. */
static int joining_end(struct socket *socket) {
    int error = 0;
    socklen_t size = sizeof error;

    socket->is_joining = false;
    if (getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
        error = errno;
    }
    return error ? connect_error(error) : 0;
}

static void socket_tell(struct socket *socket, uint32_t happened) {
    struct env_stream *stream = &socket->stream;
    unsigned events = happened & EPOLLOUT ? ENV_STREAM_WRITABLE : 0;

    if (socket->is_joining) {
        if (!(happened & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
            return;
        }
        stream->reason = joining_end(socket);
        events |= ENV_STREAM_OPEN;
    } else if (happened & (EPOLLERR | EPOLLHUP)) {
        stream->reason = -ERR_CLOSED;
    }
    if (stream->reason < 0) {
        events = ENV_STREAM_ENDED;
    } else if (happened & (EPOLLIN | EPOLLRDHUP)) {
        events |= ENV_STREAM_READABLE;
        stream->arrived_ns = env_now_ns(&socket->loop->env->env);
    }
    if (events && stream->event) {
        stream->event(stream->context, events);
    }
}

static void closed_free(struct env_loop *loop) {
    struct socket *socket = TAKE_PTR(loop->closed);

    while (socket) {
        struct socket *next = socket->next_closed;

        socket_free(socket);
        socket = next;
    }
}

static unsigned again_tell(struct env_loop *loop) {
    struct socket *socket = TAKE_PTR(loop->again);
    unsigned told = 0;

    while (socket) {
        struct socket *next = socket->next_again;

        socket->in_again = false;
        if (!socket->is_closed) {
            socket_tell(socket, EPOLLIN);
            told++;
        }
        socket = next;
    }
    return told;
}

static unsigned events_tell(struct env_loop *loop) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(loop->streams_fd, events, EVENTS_MAX, 0);

    loop->streams_ready = count == EVENTS_MAX;
    for (int i = 0; i < count; i++) {
        struct socket *socket = events[i].data.ptr;

        if (socket->is_closed) {
            continue;
        }
        if (socket->is_listener) {
            listener_accept(socket);
        } else {
            socket_tell(socket, events[i].events);
        }
    }
    return count > 0 ? (unsigned)count : 0;
}

unsigned streams_poll(struct env_loop *loop) {
    unsigned told;

    if (loop->streams_armed && !loop->streams_ready && !loop->again) {
        return 0;
    }
    loop->streams_told = true;
    told = again_tell(loop);
    if (!loop->streams_armed || loop->streams_ready) {
        told += events_tell(loop);
    }
    loop->streams_told = false;
    closed_free(loop);
    return told;
}

void streams_leave(struct env_loop *loop) {
    while (loop->sockets) {
        socket_close(loop->sockets);
    }
    loop->again = NULL;
    closed_free(loop);
}
