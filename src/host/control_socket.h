/* The control socket of a daemon: a Unix socket under its directory, one request a connection;
 * control_frame.h has the bytes. Both ends are of one machine and one build. The socket's mode is
 * 0600, so the owner of the directory and root can talk to it. Used by commands only; everything
 * here may block. Who connects and says nothing, or half a request, holds up nobody; one that has
 * begun has a second to be complete. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { CONTROL_SOCKET_LONG_MAX = 8 };

struct control_socket_server;
struct control_socket_connection;

/* Handles one request on the server's thread and answers the status (0 success, 1 failure, 2
 * usage). Arguments are valid until it returns. */
typedef int control_socket_fn(void *context, struct control_socket_connection *connection,
                              size_t argument_count, char **arguments);

/* Listens at directory/name; replaces a socket that a killed process left, so the caller holds the
 * directory's lock. Starts one thread; requests of which is_long (may be NULL) says so get one each
 * for their time, up to CONTROL_SOCKET_LONG_MAX at once, so that others need not wait for them.
 * thread_enter/leave, when set, run on each; where enter fails, the start answers
 * its error, or who asks for something long is told. */
struct control_socket_options {
    const char *directory;
    const char *name;
    control_socket_fn *handle;
    bool (*is_long)(size_t argument_count, char **arguments);
    int (*thread_enter)(void *context);
    void (*thread_leave)(void *context);
    /* Goes on with what handling a request has begun on this thread; true: call again soon. NULL:
     * there is nothing of the kind. */
    bool (*go_on)(void *context);
    void *context;
};
MUST_CHECK int control_socket_start(const struct control_socket_options *options,
                                    struct control_socket_server **ret_server);
/* A request that has come by another way: handled as those of the socket are, on its threads. Its
 * memory is the caller's until done, which comes last, from the thread that has handled it or from
 * the call itself, where there is none any more. */
struct control_socket_question {
    struct control_socket_question *next; /* the server's */
    char *request;                        /* arguments, each ended by NUL; changed */
    size_t request_bytes;
    void (*write)(struct control_socket_question *question, const char *text, size_t size);
    void (*done)(struct control_socket_question *question, int status);
};
/* Any thread, until the stop. */
void control_socket_ask(struct control_socket_server *server,
                        struct control_socket_question *question);
/* Questions that wait, and those that come from now on, end with status 1 and no text. */
void control_socket_refuse_questions(struct control_socket_server *server);
/* Waits until no long request is being handled. */
void control_socket_wait_long(struct control_socket_server *server);
/* Waits for the requests being handled; removes the socket. Takes NULL. Not from handle. */
void control_socket_stop(struct control_socket_server *server);

/* Text to the other end; errors of a peer that went away are not reported. */
void control_socket_write(struct control_socket_connection *connection, const char *text,
                          size_t size);

/* The other end went away: nobody reads the answer. */
bool control_socket_is_gone(const struct control_socket_connection *connection);

/* Sends a request and gives the answer's text to output as it comes; plain_text.h is for what a
 * terminal gets. -ERR_NOT_FOUND: no daemon listens there; -ERR_ACCESS; -ERR_NOT_PERMITTED: who
 * listens is neither root nor the caller's user; -ERR_TIMED_OUT: it does not take the request;
 * -ERR_CLOSED: it went away in the middle, or fell silent; -ERR_OVERFLOW: it says more than
 * answer_bytes_max. */
struct control_socket_request {
    const char *directory;
    const char *name;
    size_t argument_count;
    const char *const *arguments;
    uint32_t silence_ms_max;   /* 0: as long as it takes */
    uint64_t answer_bytes_max; /* 0: all that comes */
    void (*output)(void *context, const char *text, size_t size);
    void *context;
};
MUST_CHECK int control_socket_call(const struct control_socket_request *request, int *ret_status);
