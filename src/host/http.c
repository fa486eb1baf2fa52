/* Fixed documents over HTTP: one thread of libmicrohttpd's, a response made once a document. */
#include "host/http.h"
#include "env/errno_map.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One more than there may be, which the newest has until the one that goes for it is gone; its
 * accepting waits while there are so many. */
enum { SILENT_S = 5, VISITORS = HTTP_CONNECTIONS_MAX + 16 };

/* A connection that is open. */
struct visitor {
    int fd; /* -1: free, or on its way out */
    uint64_t order;
    uint8_t address[16];
};

struct http {
    struct visitor visitors[VISITORS];
    uint64_t opened; /* in all */
    struct MHD_Daemon *daemon;
    const struct http_document *documents;
    size_t document_count;
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_port(const char *text, in_port_t *ret_port) {
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || port > 65535) {
        return false;
    }
    *ret_port = htons((uint16_t)port);
    return true;
}

static bool parse_address(const char *text, union address *ret_address) {
    char host[INET6_ADDRSTRLEN] = "127.0.0.1";
    const char *colon = strrchr(text, ':');
    bool v6 = text[0] == '[';
    size_t size = colon ? (size_t)(colon - text) : 0;

    *ret_address = (union address){0};
    if (v6 && (size < 3 || text[size - 1] != ']')) {
        return false;
    }
    if (colon) {
        text += v6;
        size -= v6 ? 2 : 0;
        if (size == 0 || size >= sizeof host) {
            return false;
        }
        memcpy(host, text, size);
        host[size] = '\0';
        if (!v6 && strcmp(host, "localhost") == 0) {
            snprintf(host, sizeof host, "127.0.0.1");
        }
    }
    const char *port = colon ? colon + 1 : text;
    if (v6) {
        ret_address->v6.sin6_family = AF_INET6;
        return inet_pton(AF_INET6, host, &ret_address->v6.sin6_addr) == 1 &&
               parse_port(port, &ret_address->v6.sin6_port);
    }
    ret_address->v4.sin_family = AF_INET;
    return inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1 &&
           parse_port(port, &ret_address->v4.sin_port);
}

int http_is_local(const char *address) {
    union address where;

    if (!parse_address(address, &where)) {
        return -ERR_INVALID;
    }
    if (where.any.sa_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&where.v6.sin6_addr);
    }
    return (ntohl(where.v4.sin_addr.s_addr) >> 24) == 127;
}

static enum MHD_Result answer_with(struct MHD_Connection *connection, unsigned status,
                                   const struct http_document *document) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        document->size, (void *)(uintptr_t)document->data, MHD_RESPMEM_PERSISTENT);

    if (!response) {
        return MHD_NO;
    }
    enum MHD_Result result =
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, document->content_type);
    if (result == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (result == MHD_YES) {
        result = MHD_queue_response(connection, status, response);
    }
    MHD_destroy_response(response);
    return result;
}

FOREIGN_SIGNATURE static enum MHD_Result answer(void *context, struct MHD_Connection *connection,
                                                const char *path, const char *method,
                                                const char *version, const char *upload,
                                                size_t *upload_size, void **state) {
    static const struct http_document none = {"", "text/plain", "there is no such page\n", 22};
    static const struct http_document other = {"", "text/plain", "GET and HEAD only\n", 18};
    const struct http *http = context;

    (void)version;
    (void)upload;
    (void)state;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *upload_size = 0;
        return answer_with(connection, MHD_HTTP_METHOD_NOT_ALLOWED, &other);
    }
    for (size_t i = 0; i < http->document_count; i++) {
        if (strcmp(path, http->documents[i].path) == 0) {
            return answer_with(connection, MHD_HTTP_OK, &http->documents[i]);
        }
    }
    return answer_with(connection, MHD_HTTP_NOT_FOUND, &none);
}

static void address_of(struct MHD_Connection *connection, uint8_t ret_address[16]) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const union address *from = info ? (const void *)info->client_addr : NULL;

    memset(ret_address, 0, 16);
    if (from && from->any.sa_family == AF_INET6) {
        memcpy(ret_address, &from->v6.sin6_addr, 16);
    } else if (from) {
        memcpy(ret_address, &from->v4.sin_addr, sizeof from->v4.sin_addr);
    }
}

/* Of those of the address, or of all (NULL), the oldest; their number in *ret_count. */
static struct visitor *visitor_oldest(struct http *http, const uint8_t *address,
                                      size_t *ret_count) {
    struct visitor *oldest = NULL;

    *ret_count = 0;
    for (size_t i = 0; i < VISITORS; i++) {
        struct visitor *visitor = &http->visitors[i];

        if (visitor->fd < 0 || (address && memcmp(visitor->address, address, 16) != 0)) {
            continue;
        }
        ++*ret_count;
        oldest = !oldest || visitor->order < oldest->order ? visitor : oldest;
    }
    return oldest;
}

/* Who makes many and asks for nothing loses them to the next ones, so that nobody is kept out: a
 * request that is whole is answered long before. */
static void visitor_make_room(struct http *http, const uint8_t address[16]) {
    size_t count;
    struct visitor *oldest = visitor_oldest(http, address, &count);

    if (count < HTTP_OF_ADDRESS_MAX) {
        oldest = visitor_oldest(http, NULL, &count);
        oldest = count < HTTP_CONNECTIONS_MAX ? NULL : oldest;
    }
    if (oldest) {
        (void)shutdown(oldest->fd, SHUT_RDWR); /* Its owner sees that, and closes it. */
        oldest->fd = -1;
    }
}

FOREIGN_SIGNATURE static void connection_note(void *context, struct MHD_Connection *connection,
                                              void **state,
                                              enum MHD_ConnectionNotificationCode code) {
    struct http *http = context;
    uint8_t address[16];

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*state) {
            *(struct visitor *)*state = (struct visitor){.fd = -1};
        }
        return;
    }
    /* From libmicrohttpd 1.0 on each answer lies where the one before did. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info ? info->connect_fd : -1;
    address_of(connection, address);
    visitor_make_room(http, address);
    for (size_t i = 0; fd >= 0 && i < VISITORS; i++) {
        struct visitor *visitor = &http->visitors[i];

        if (visitor->order == 0) {
            *visitor = (struct visitor){.fd = fd, .order = ++http->opened};
            memcpy(visitor->address, address, sizeof address);
            *state = visitor;
            return;
        }
    }
}

/* A socket that listens; the errno of what failed as a code. */
static int listen_at(union address *address, int *ret_socket) {
    socklen_t size = address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &address->any, size) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, &address->any, &size) < 0) {
        int r = errno == EADDRINUSE      ? -ERR_IN_USE
                : errno == EADDRNOTAVAIL ? -ERR_NOT_FOUND
                                         : err_from_errno(errno);

        (void)close(fd);
        return r;
    }
    *ret_socket = fd;
    return 0;
}

static void print_address(const union address *address, char text[HTTP_ADDRESS_BYTES]) {
    bool v6 = address->any.sa_family == AF_INET6;
    char host[INET6_ADDRSTRLEN] = "";

    (void)inet_ntop(address->any.sa_family,
                    v6 ? (const void *)&address->v6.sin6_addr : &address->v4.sin_addr, host,
                    sizeof host);
    snprintf(text, HTTP_ADDRESS_BYTES, v6 ? "[%s]:%u" : "%s:%u", host,
             ntohs(v6 ? address->v6.sin6_port : address->v4.sin_port));
}

int http_start(const char *address, const struct http_document *documents, size_t document_count,
               char ret_address[HTTP_ADDRESS_BYTES], struct http **ret_http) {
    union address where;
    int fd = -1;

    if (!parse_address(address, &where)) {
        return -ERR_INVALID;
    }
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        return -ERR_NO_MEMORY;
    }
    int r = listen_at(&where, &fd);
    if (r < 0) {
        free(http);
        return r;
    }
    http->documents = documents;
    http->document_count = document_count;
    for (size_t i = 0; i < VISITORS; i++) {
        http->visitors[i].fd = -1;
    }
    http->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL, NULL, answer, http,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, VISITORS,
                         MHD_OPTION_NOTIFY_CONNECTION, connection_note, http,
                         MHD_OPTION_CONNECTION_TIMEOUT, SILENT_S, MHD_OPTION_END);
    if (!http->daemon) {
        (void)close(fd);
        free(http);
        return -ERR_NO_MEMORY;
    }
    print_address(&where, ret_address);
    *ret_http = http;
    return 0;
}

void http_stop(struct http *http) {
    if (!http) {
        return;
    }
    MHD_stop_daemon(http->daemon); /* closes the socket */
    free(http);
}
