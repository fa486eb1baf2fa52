/* Listeners: one bound socket an address and process, which the threads that listen there share.
 *
 *     thread's listener --.
 *     thread's listener --+--> bound socket, its queue of connections
 *
 * One queue, and not one a thread (SO_REUSEPORT): a connection waits for whichever thread comes
 * first, not for the one it was dealt to; none is lost when a thread leaves; and it is the same for
 * Unix sockets. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG_DEFAULT = 128 };
/* Descriptors that others of the process use: nothing tells when one is free again. */
#define DESCRIPTORS_AGAIN_NS (100 * NS_PER_MS)

struct bound {
    struct list_node node; /* of the env's */
    struct address address;
    int fd;
    unsigned listener_count;
    struct stat file; /* of a Unix socket */
};

struct linux_listener {
    struct watch watch; /* first: aligned */
    struct env_listener listener;
    struct env_listen_options options;
    struct bound *bound;
    struct list_node waiting; /* of the env's */
};

static struct sockets *sockets_of(struct env *env) {
    return &env_linux_of(env)->sockets;
}

static struct linux_listener *listener_of(struct env_listener *base) {
    return CONTAINER_OF(base, struct linux_listener, listener);
}

void sockets_give(struct sockets *sockets) {
    atomic_fetch_sub(&sockets->stream_count, 1);
    if (atomic_load(&sockets->waiting_count) == 0) {
        return;
    }
    pthread_mutex_lock(&sockets->mutex);
    for (struct list_node *node = list_first(&sockets->waiting); node;
         node = list_next(&sockets->waiting, node)) {
        env_loop_wake(CONTAINER_OF(node, struct linux_listener, waiting)->watch.loop);
    }
    pthread_mutex_unlock(&sockets->mutex);
}

static struct bound *bound_find(struct sockets *sockets, const struct address *address) {
    for (struct list_node *node = list_first(&sockets->listening); node;
         node = list_next(&sockets->listening, node)) {
        struct bound *bound = CONTAINER_OF(node, struct bound, node);

        if (address_is(&bound->address, address)) {
            return bound;
        }
    }
    return NULL;
}

/* Whether the file at a path is the socket of a process that is gone. */
static bool is_left_behind(const struct socket_place *place) {
    struct stat file;
    int fd;
    bool refused = false;

    if (lstat(place->name.path.sun_path, &file) != 0 || !S_ISSOCK(file.st_mode) ||
        socket_open(place, &fd) != 0) {
        return false;
    }
    refused = connect(fd, &place->name.any, place->size) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int place_bind(const struct socket_place *place, int fd) {
    int one = 1;
    bool is_path = place->name.any.sa_family == AF_UNIX;

    if (!is_path) {
        socket_hurry(fd);
        /* A port is used again at once, although connections of an earlier life linger. */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
    if (place->name.any.sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
    if (bind(fd, &place->name.any, place->size) == 0) {
        return 0;
    }
    if (is_path && errno == EADDRINUSE && is_left_behind(place) &&
        unlink(place->name.path.sun_path) == 0 && bind(fd, &place->name.any, place->size) == 0) {
        return 0;
    }
    return errno == ENOENT ? -ERR_NOT_FOUND : socket_error(errno);
}

static int bound_start(struct bound *bound, struct socket_place *place, unsigned backlog) {
    int r = place_bind(place, bound->fd);

    if (r) {
        return r;
    }
    if (place->name.any.sa_family == AF_UNIX && chmod(place->name.path.sun_path, 0600) != 0) {
        return err_from_errno(errno);
    }
    if (listen(bound->fd, (int)backlog) != 0 ||
        getsockname(bound->fd, &place->name.any, &place->size) != 0) {
        return socket_error(errno);
    }
    socket_address(place, &bound->address);
    if (bound->address.kind == ADDRESS_UNIX && lstat(bound->address.name, &bound->file) != 0) {
        return err_from_errno(errno);
    }
    return 0;
}

static int bound_new(struct socket_place *place, unsigned backlog, struct bound **ret_bound) {
    struct bound *bound = calloc(1, sizeof *bound);

    if (!bound) {
        return -ERR_NO_MEMORY;
    }
    int r = socket_open(place, &bound->fd);
    if (r == 0) {
        r = bound_start(bound, place, backlog);
        if (r) {
            close(bound->fd);
        }
    }
    if (r) {
        free(bound);
        return r;
    }
    *ret_bound = bound;
    return 0;
}

static int bound_get(struct sockets *sockets, struct socket_place *place, unsigned backlog,
                     struct bound **ret_bound) {
    struct address address;
    int r = 0;

    socket_address(place, &address);
    pthread_mutex_lock(&sockets->mutex);
    struct bound *bound = bound_find(sockets, &address);
    if (!bound) {
        r = bound_new(place, backlog, &bound);
        if (r == 0) {
            list_push_back(&sockets->listening, &bound->node);
        }
    }
    if (r == 0) {
        bound->listener_count++;
        *ret_bound = bound;
    }
    pthread_mutex_unlock(&sockets->mutex);
    return r;
}

static void bound_put(struct sockets *sockets, struct bound *bound) {
    struct stat file;

    pthread_mutex_lock(&sockets->mutex);
    bool last = --bound->listener_count == 0;
    if (last) {
        list_remove(&bound->node);
        /* Another process may have taken the path meanwhile. */
        if (bound->address.kind == ADDRESS_UNIX && lstat(bound->address.name, &file) == 0 &&
            file.st_dev == bound->file.st_dev && file.st_ino == bound->file.st_ino) {
            (void)unlink(bound->address.name);
        }
        close(bound->fd);
    }
    pthread_mutex_unlock(&sockets->mutex);
    if (last) {
        free(bound);
    }
}

static void listener_tell_full(struct linux_listener *listener) {
    struct sockets *sockets = sockets_of(listener->listener.env);

    if (!atomic_exchange(&sockets->full_told, true) && listener->options.full) {
        listener->options.full(&listener->listener);
    }
}

/* Until a stream is closed: who closes one wakes the loop, which looks for room by itself, also
 * before it sleeps. */
static void listener_wait(struct linux_listener *listener) {
    struct sockets *sockets = sockets_of(listener->listener.env);

    watch_want(&listener->watch, WATCH_IN, false);
    pthread_mutex_lock(&sockets->mutex);
    list_push_back(&sockets->waiting, &listener->waiting);
    atomic_fetch_add(&sockets->waiting_count, 1);
    pthread_mutex_unlock(&sockets->mutex);
    watch_await_room(&listener->watch);
}

static void listener_wait_end(struct linux_listener *listener) {
    struct sockets *sockets = sockets_of(listener->listener.env);

    pthread_mutex_lock(&sockets->mutex);
    if (list_contains(&listener->waiting)) {
        list_remove(&listener->waiting);
        atomic_fetch_sub(&sockets->waiting_count, 1);
    }
    pthread_mutex_unlock(&sockets->mutex);
}

/* A connection that went away while it waited answers an error, which is nobody's. */
static void accept_failed(struct linux_listener *listener, int errno_value) {
    struct env *env = listener->listener.env;

    if (errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOBUFS ||
        errno_value == ENOMEM) {
        watch_want(&listener->watch, WATCH_IN, false);
        watch_set_due(&listener->watch, env_now_ns(env) + DESCRIPTORS_AGAIN_NS);
        listener_tell_full(listener);
    }
}

static void listener_accept(struct linux_listener *listener) {
    struct env *env = listener->listener.env;
    struct socket_place place = {.size = sizeof place.name};
    struct env_stream *stream;

    int fd =
        accept4(listener->bound->fd, &place.name.any, &place.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        int errno_value = errno;

        sockets_give(sockets_of(env));
        accept_failed(listener, errno_value);
        return;
    }
    struct address peer = listener->bound->address;
    if (peer.kind != ADDRESS_UNIX) {
        socket_address(&place, &peer);
        socket_hurry(fd);
    }
    /* Without memory for it the connection is closed: the other side connects anew. */
    if (stream_adopt(env, fd, &peer, &stream) == 0) {
        listener->options.accepted(&listener->listener, stream);
    }
}

static void listener_fire(struct watch *watch, unsigned seen) {
    struct linux_listener *listener = CONTAINER_OF(watch, struct linux_listener, watch);

    (void)seen;
    listener_wait_end(listener);
    watch_want(watch, WATCH_IN, true);
    if (sockets_try_take(sockets_of(listener->listener.env))) {
        listener_accept(listener);
    } else {
        listener_wait(listener);
        listener_tell_full(listener);
    }
}

static void listener_end(struct watch *watch) {
    struct linux_listener *listener = CONTAINER_OF(watch, struct linux_listener, watch);

    bound_put(sockets_of(listener->listener.env), listener->bound);
    free(listener);
}

int linux_listen(struct env *env, const struct address *address,
                 const struct env_listen_options *options, struct env_listener **ret_listener) {
    struct env_loop *loop = env_thread_loop(env);
    struct socket_place places[SOCKET_PLACES_MAX];
    size_t place_count;

    assert(loop && options->accepted);
    struct linux_listener *listener = calloc(1, sizeof *listener);
    if (!listener) {
        return -ERR_NO_MEMORY;
    }
    *listener = (struct linux_listener){
        .watch = {.fire = listener_fire, .end = listener_end, .listens = true},
        .listener = {.env = env, .context = options->context},
        .options = *options,
    };
    int r = socket_places(address, places, &place_count);
    if (r == 0) {
        unsigned backlog = options->backlog ? options->backlog : BACKLOG_DEFAULT;

        r = bound_get(sockets_of(env), &places[0], backlog, &listener->bound);
    }
    if (r == 0) {
        r = watch_start(&listener->watch, loop);
        if (r) {
            bound_put(sockets_of(env), listener->bound);
        }
    }
    if (r) {
        free(listener);
        return r;
    }
    listener->watch.fd = listener->bound->fd;
    watch_want(&listener->watch, WATCH_IN, true);
    *ret_listener = &listener->listener;
    return 0;
}

void linux_listener_address(struct env_listener *base, struct address *ret_address) {
    *ret_address = listener_of(base)->bound->address;
}

void linux_listener_close(struct env_listener *base) {
    if (base) {
        struct linux_listener *listener = listener_of(base);

        listener_wait_end(listener);
        watch_release(&listener->watch);
    }
}
