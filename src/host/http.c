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

enum { SILENT_S = 5 };

struct http {
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

/* A socket that listens; the errno of what failed as a code. */
static int listen_at(union address *address, int *ret_socket) {
    socklen_t size = address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &address->any, size) < 0 || listen(fd, 128) < 0 ||
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
    struct http *http = malloc(sizeof *http);
    if (!http) {
        return -ERR_NO_MEMORY;
    }
    int r = listen_at(&where, &fd);
    if (r < 0) {
        free(http);
        return r;
    }
    *http = (struct http){.documents = documents, .document_count = document_count};
    http->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, NULL, NULL,
                                    answer, http, MHD_OPTION_LISTEN_SOCKET, fd,
                                    MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX,
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
