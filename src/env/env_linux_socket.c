/* Addresses as the system has them, and the count of streams. */
#include "env/env_linux_socket.h"
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <string.h>

void sockets_init(struct sockets *sockets, unsigned stream_limit) {
    pthread_mutex_init(&sockets->mutex, NULL);
    list_init(&sockets->listening);
    list_init(&sockets->waiting);
    sockets->stream_limit = stream_limit;
}

void sockets_deinit(struct sockets *sockets) {
    assert(atomic_load(&sockets->stream_count) == 0);
    pthread_mutex_destroy(&sockets->mutex);
}

void sockets_take(struct sockets *sockets) {
    atomic_fetch_add(&sockets->stream_count, 1);
}

bool sockets_try_take(struct sockets *sockets) {
    unsigned count = atomic_load(&sockets->stream_count);

    while (count < sockets->stream_limit) {
        if (atomic_compare_exchange_weak(&sockets->stream_count, &count, count + 1)) {
            return true;
        }
    }
    return false;
}

bool sockets_have_room(const struct sockets *sockets) {
    return atomic_load(&sockets->stream_count) < sockets->stream_limit;
}

static void place_of_number(const struct address *address, struct socket_place *place) {
    *place = (struct socket_place){0};
    if (address->kind == ADDRESS_IPV4) {
        place->size = sizeof place->name.ipv4;
        place->name.ipv4.sin_family = AF_INET;
        place->name.ipv4.sin_port = htons(address->port);
        memcpy(&place->name.ipv4.sin_addr, address->ip, sizeof place->name.ipv4.sin_addr);
    } else if (address->kind == ADDRESS_IPV6) {
        place->size = sizeof place->name.ipv6;
        place->name.ipv6.sin6_family = AF_INET6;
        place->name.ipv6.sin6_port = htons(address->port);
        memcpy(&place->name.ipv6.sin6_addr, address->ip, sizeof place->name.ipv6.sin6_addr);
    } else {
        size_t size = strlen(address->name);

        static_assert(sizeof place->name.path.sun_path == ADDRESS_PATH_BYTES_MAX + 1,
                      "a path and its NUL");
        place->size = sizeof place->name.path;
        place->name.path.sun_family = AF_UNIX;
        memcpy(place->name.path.sun_path, address->name, MIN(size, (size_t)ADDRESS_PATH_BYTES_MAX));
    }
}

static int places_of_name(const struct address *address, struct socket_place *places,
                          size_t *ret_count) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    size_t count = 0;

    if (getaddrinfo(address->name, NULL, &hints, &found) != 0) {
        return -ERR_UNREACHABLE;
    }
    for (struct addrinfo *info = found; info && count < SOCKET_PLACES_MAX; info = info->ai_next) {
        struct socket_place *place = &places[count];

        if (info->ai_family == AF_INET || info->ai_family == AF_INET6) {
            memset(place, 0, sizeof *place);
            memcpy(&place->name, info->ai_addr, info->ai_addrlen);
            place->size = info->ai_addrlen;
            if (info->ai_family == AF_INET) {
                place->name.ipv4.sin_port = htons(address->port);
            } else {
                place->name.ipv6.sin6_port = htons(address->port);
            }
            count++;
        }
    }
    freeaddrinfo(found);
    *ret_count = count;
    return count > 0 ? 0 : -ERR_UNREACHABLE;
}

int socket_places(const struct address *address, struct socket_place ret_places[SOCKET_PLACES_MAX],
                  size_t *ret_count) {
    if (address->kind == ADDRESS_NAME) {
        return places_of_name(address, ret_places, ret_count);
    }
    place_of_number(address, &ret_places[0]);
    *ret_count = 1;
    return 0;
}

void socket_address(const struct socket_place *place, struct address *ret_address) {
    const union socket_name *name = &place->name;
    struct address address = {0};

    if (name->any.sa_family == AF_INET) {
        address.kind = ADDRESS_IPV4;
        address.port = ntohs(name->ipv4.sin_port);
        memcpy(address.ip, &name->ipv4.sin_addr, sizeof name->ipv4.sin_addr);
    } else if (name->any.sa_family == AF_INET6) {
        address.kind = ADDRESS_IPV6;
        address.port = ntohs(name->ipv6.sin6_port);
        memcpy(address.ip, &name->ipv6.sin6_addr, sizeof name->ipv6.sin6_addr);
    } else {
        address.kind = ADDRESS_UNIX;
        memcpy(address.name, name->path.sun_path, ADDRESS_PATH_BYTES_MAX);
    }
    *ret_address = address;
}

int socket_open(const struct socket_place *place, int *ret_fd) {
    int fd = socket(place->name.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return socket_error(errno);
    }
    *ret_fd = fd;
    return 0;
}

void socket_hurry(int fd) {
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int socket_error(int errno_value) {
    switch (errno_value) {
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
        return -ERR_RESET;
    case ECONNREFUSED:
    case ENOENT:
        return -ERR_REFUSED;
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return -ERR_UNREACHABLE;
    default:
        return err_from_errno(errno_value);
    }
}
