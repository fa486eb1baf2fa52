/* A few fixed documents over HTTP/1.1, by libmicrohttpd: for pages that a program carries.
 *
 * Answers GET and HEAD for the paths given, 404 for others, 405 for other methods; nothing of a
 * request is kept or looked at but method and path. Threads: its own. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct http;

struct http_document {
    const char *path; /* "/" */
    const char *content_type;
    const void *data; /* stays as it is while served */
    size_t size;
};

enum { HTTP_ADDRESS_BYTES = 64, HTTP_CONNECTIONS_MAX = 512, HTTP_OF_ADDRESS_MAX = 64 };

/* address: "127.0.0.1:8080", "localhost:8080", "[::1]:8080", or "8080", which is on 127.0.0.1; port
 * 0 is any free one. ret_address is where it listens then, written like that. A connection that is
 * silent for 5 s is closed, and the oldest one when there are more than may be, of its address or
 * of all: who asks for nothing keeps nobody out. documents stays the caller's and must live until
 * the stop.
 * -ERR_INVALID: no such address; -ERR_IN_USE; -ERR_NOT_FOUND: it is not of this machine;
 * -ERR_ACCESS and others of the system. */
MUST_CHECK int http_start(const char *address, const struct http_document *documents,
                          size_t document_count, char ret_address[HTTP_ADDRESS_BYTES],
                          struct http **ret_http);
/* 1: only this machine reaches it, 0: others may. -ERR_INVALID: no such address. */
int http_is_local(const char *address);
void http_stop(struct http *http);
