/* What the sockets of a process share, and what streams and listeners need of each other. */
#pragma once
#include "base/list.h"
#include "env/env_stream.h"
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

struct sockets {
    pthread_mutex_t mutex; /* of the two lists */
    struct list listening; /* each bound socket once, however many threads listen at it */
    struct list waiting;   /* listeners that wait for a stream to be closed */
    atomic_uint waiting_count;
    atomic_uint stream_count; /* also of those that are just being accepted */
    unsigned stream_limit;
    atomic_bool full_told;
};

/* An address as the system has it. */
union socket_name {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    struct sockaddr_un path;
};

struct socket_place {
    union socket_name name;
    socklen_t size;
};

enum { SOCKET_PLACES_MAX = 8 };

/* env_linux_socket.c */
void sockets_init(struct sockets *sockets, unsigned stream_limit);
void sockets_deinit(struct sockets *sockets);
/* One more stream is there, whatever the limit. */
void sockets_take(struct sockets *sockets);
/* False: there are as many as there may be. */
bool sockets_try_take(struct sockets *sockets);
bool sockets_have_room(const struct sockets *sockets);

/* The places that an address stands for: one, or those of a name, which blocks.
 * -ERR_UNREACHABLE. */
MUST_CHECK int socket_places(const struct address *address,
                             struct socket_place ret_places[SOCKET_PLACES_MAX], size_t *ret_count);
void socket_address(const struct socket_place *place, struct address *ret_address);
/* A socket of the place's kind, that doesn't block and is not handed to other programs. */
MUST_CHECK int socket_open(const struct socket_place *place, int *ret_fd);
/* Messages leave at once. Does nothing to a Unix socket. */
void socket_hurry(int fd);
/* What errno says of a connection. */
int socket_error(int errno_value);

/* env_linux_stream.c */
extern const struct env_stream_ops linux_stream_ops;
/* A stream of the calling thread for a socket that was accepted and has been taken count of; closes
 * fd when it fails. -ERR_NO_MEMORY, -ERR_TOO_MANY_OPEN. */
MUST_CHECK int stream_adopt(struct env *env, int fd, const struct address *peer,
                            struct env_stream **ret_stream);

/* env_linux_listener.c */
/* One stream less; wakes the loops whose listeners wait. */
void sockets_give(struct sockets *sockets);
int linux_listen(struct env *env, const struct address *address,
                 const struct env_listen_options *options, struct env_listener **ret_listener);
void linux_listener_address(struct env_listener *listener, struct address *ret_address);
void linux_listener_close(struct env_listener *listener);
