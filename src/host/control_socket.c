/* The control socket: one thread that serves, and the caller's side. */
#include "host/control_socket.h"
#include "base/endian.h"
#include "env/errno_map.h"
#include "host/control_frame.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Both ends are of one machine: a request that has begun is there soon. */
enum {
    LONG_POLL_MS = 5,
    REQUEST_MS_MAX = 1000,
    TAKE_MS_MAX = 30000,
    ANSWER_S_MAX = 10,
    INCOMING_MAX = 16,
    FIRST_INCOMING = 3,   /* of what is polled: stop, listener and questions come before */
    ACCEPT_REST_MS = 100, /* after there was no descriptor for a connection */
};

/* By a socket, or of a question. */
struct control_socket_connection {
    int socket;
    struct control_socket_question *question;
    bool broken;
};

/* A connection whose request is not all there yet. */
struct incoming {
    int socket;
    int64_t end_ms; /* by then it must be; 0: it has not begun */
    struct control_request request;
};

/* A request that takes long, and its thread. */
struct long_request {
    struct control_socket_server *server;
    pthread_t thread;
    bool used;            /* the serving thread's */
    atomic_bool finished; /* to be joined */
    struct control_socket_connection connection;
    char *request;
    size_t size;
};

struct control_socket_server {
    struct long_request longs[CONTROL_SOCKET_LONG_MAX];
    struct control_socket_options options;
    int directory;
    int listener;
    int stop_event;
    pthread_t thread;
    sem_t entered;
    int enter_result;
    char *name;
    /* Newest first; refused: none is taken any more. */
    _Atomic(struct control_socket_question *) questions;
    struct control_socket_question refused;
    int question_event;
    struct incoming incoming[INCOMING_MAX]; /* oldest first */
    size_t incoming_count;
};

static bool send_all(int fd, const void *data, size_t size) {
    const char *at = data;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static int64_t now_ms(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False also when the socket's own limit has passed. */
static bool receive_all(int fd, void *data, size_t size) {
    char *at = data;

    while (size > 0) {
        ssize_t got = recv(fd, at, size, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool send_number(int fd, uint32_t number) {
    uint8_t bytes[4];

    store_le32(bytes, number);
    return send_all(fd, bytes, sizeof bytes);
}

/* A Unix address holds 107 bytes, a directory's path up to 4,096: the descriptor stands for it. */
static int address_of(int directory, const char *name, struct sockaddr_un *ret_address) {
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(ret_address->sun_path, sizeof ret_address->sun_path, "/proc/self/fd/%d/%s",
                        directory, name);

    return size > 0 && (size_t)size < sizeof ret_address->sun_path ? 0 : -ERR_NAME_TOO_LONG;
}

void control_socket_write(struct control_socket_connection *connection, const char *text,
                          size_t size) {
    if (connection->question) {
        connection->question->write(connection->question, text, size);
        return;
    }
    if (size == 0 || connection->broken) {
        return;
    }
    connection->broken = !send_number(connection->socket, (uint32_t)size) ||
                         !send_all(connection->socket, text, size);
}

bool control_socket_is_gone(const struct control_socket_connection *connection) {
    struct pollfd event = {.fd = connection->socket, .events = POLLRDHUP};

    return !connection->question && (connection->broken || poll(&event, 1, 0) > 0);
}

static int thread_enter(struct control_socket_server *server) {
    return server->options.thread_enter ? server->options.thread_enter(server->options.context) : 0;
}

static void thread_leave(struct control_socket_server *server) {
    if (server->options.thread_leave) {
        server->options.thread_leave(server->options.context);
    }
}

/* The last word; a request by the socket is freed, and the socket closed. */
static void connection_end(struct control_socket_connection *connection, char *request,
                           int status) {
    if (connection->question) {
        connection->question->done(connection->question, status);
        return;
    }
    if (!connection->broken) {
        (void)(send_number(connection->socket, 0) &&
               send_number(connection->socket, (uint32_t)status));
    }
    free(request);
    close(connection->socket);
}

static void request_answer(struct control_socket_server *server,
                           struct control_socket_connection connection, char *request,
                           size_t size) {
    char *arguments[CONTROL_FRAME_ARGUMENTS_MAX];
    size_t count = control_request_split(request, size, arguments);
    int status = server->options.handle(server->options.context, &connection, count, arguments);

    connection_end(&connection, request, status);
}

/* The same, of one that cannot be handled. */
static void answer_error(struct control_socket_connection connection, char *request, int error) {
    char line[160];
    int size = snprintf(line, sizeof line, "%s\n", err_text(error));

    control_socket_write(&connection, line, (size_t)size);
    connection_end(&connection, request, 1);
}

static void *answer_long(void *context) {
    struct long_request *request = context;
    int r = thread_enter(request->server);

    if (r < 0) {
        answer_error(request->connection, request->request, r);
    } else {
        request_answer(request->server, request->connection, request->request, request->size);
        thread_leave(request->server);
    }
    atomic_store(&request->finished, true);
    return NULL;
}

/* Joins those that have ended, or all. */
static void longs_join(struct control_socket_server *server, bool all) {
    for (size_t i = 0; i < CONTROL_SOCKET_LONG_MAX; i++) {
        struct long_request *request = &server->longs[i];

        if (request->used && (all || atomic_load(&request->finished))) {
            pthread_join(request->thread, NULL);
            request->used = false;
        }
    }
}

/* False: no thread is left, so it is handled on the serving one. */
static bool long_start(struct control_socket_server *server,
                       const struct control_socket_connection *connection, char *text,
                       size_t size) {
    longs_join(server, false);
    for (size_t i = 0; i < CONTROL_SOCKET_LONG_MAX; i++) {
        struct long_request *request = &server->longs[i];

        if (!request->used) {
            request->server = server;
            request->connection = *connection;
            request->request = text;
            request->size = size;
            atomic_store(&request->finished, false);
            request->used = pthread_create(&request->thread, NULL, answer_long, request) == 0;
            if (!request->used) {
                atomic_store(&request->finished, true);
            }
            return request->used;
        }
    }
    return false;
}

static bool is_long(const struct control_socket_server *server, char *request, size_t size) {
    char *arguments[CONTROL_FRAME_ARGUMENTS_MAX];
    size_t count = control_request_split(request, size, arguments);

    return server->options.is_long && count > 0 && server->options.is_long(count, arguments);
}

static void request_serve(struct control_socket_server *server,
                          const struct control_socket_connection *connection, char *request,
                          size_t size) {
    if (!is_long(server, request, size) || !long_start(server, connection, request, size)) {
        request_answer(server, *connection, request, size);
    }
}

static void question_refuse(struct control_socket_question *question) {
    question->done(question, 1);
}

/* Puts another top on the stack; what was there is the caller's, newest first. */
static struct control_socket_question *questions_take(struct control_socket_server *server,
                                                      struct control_socket_question *top) {
    struct control_socket_question *taken = atomic_load(&server->questions);

    while (taken != &server->refused &&
           !atomic_compare_exchange_weak(&server->questions, &taken, top)) {
    }
    return taken == &server->refused ? NULL : taken;
}

void control_socket_ask(struct control_socket_server *server,
                        struct control_socket_question *question) {
    struct control_socket_question *top = atomic_load(&server->questions);
    uint64_t one = 1;

    do {
        if (top == &server->refused) {
            question_refuse(question);
            return;
        }
        question->next = top;
    } while (!atomic_compare_exchange_weak(&server->questions, &top, question));
    (void)!write(server->question_event, &one, sizeof one);
}

void control_socket_refuse_questions(struct control_socket_server *server) {
    struct control_socket_question *question = questions_take(server, &server->refused);

    while (question) {
        struct control_socket_question *next = question->next;

        question_refuse(question);
        question = next;
    }
}

static void questions_serve(struct control_socket_server *server) {
    struct control_socket_question *question;
    uint64_t count;

    (void)!read(server->question_event, &count, sizeof count);
    question = questions_take(server, NULL);
    while (question) {
        const struct control_socket_connection connection = {.socket = -1, .question = question};
        struct control_socket_question *next = question->next;

        request_serve(server, &connection, question->request, question->request_bytes);
        question = next;
    }
}

/* True: some came. False: there is nothing now, or never more, as *ret_gone says. */
static bool incoming_receive(struct incoming *incoming, bool *ret_gone) {
    struct buffer room = control_request_room(&incoming->request);
    ssize_t got = recv(incoming->socket, room.data, room.capacity, MSG_DONTWAIT);

    *ret_gone = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    if (got > 0) {
        *ret_gone = control_request_took(&incoming->request, (size_t)got) < 0;
    }
    return got > 0 && !*ret_gone;
}

/* Takes what is there and waits for nothing. False: no request will come of it. */
static bool incoming_read(struct incoming *incoming) {
    bool gone = false;

    while (!control_request_is_complete(&incoming->request) && incoming_receive(incoming, &gone)) {
    }
    return !gone;
}

static void incoming_close(struct incoming *incoming) {
    control_request_deinit(&incoming->request);
    close(incoming->socket);
}

/* A peer that takes no answer may not hold up the others for long. */
static void incoming_serve(struct control_socket_server *server, const struct incoming *incoming) {
    const struct timeval patience = {.tv_sec = ANSWER_S_MAX};

    (void)setsockopt(incoming->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    request_serve(server, &(struct control_socket_connection){.socket = incoming->socket},
                  incoming->request.text, incoming->request.size);
}

static bool goes_on(struct control_socket_server *server) {
    return server->options.go_on && server->options.go_on(server->options.context);
}

static struct incoming incoming_remove(struct control_socket_server *server, size_t index) {
    struct incoming removed = server->incoming[index];

    server->incoming_count--;
    memmove(&server->incoming[index], &server->incoming[index + 1],
            (server->incoming_count - index) * sizeof server->incoming[0]);
    return removed;
}

static void incoming_drop(struct control_socket_server *server, size_t index) {
    struct incoming removed = incoming_remove(server, index);

    incoming_close(&removed);
}

/* Where there are too many, the one that came first goes. False: there is nothing left
 * to accept it with. */
static bool accept_one(struct control_socket_server *server) {
    int socket = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

    if (socket < 0) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    }
    if (server->incoming_count == INCOMING_MAX) {
        incoming_drop(server, 0);
    }
    server->incoming[server->incoming_count++] = (struct incoming){.socket = socket};
    return true;
}

/* Each of events is of the connection of its index. Half a request holds up nobody: it is looked at
 * again when more of it has come, or its time is up. */
static void serve_speaking(struct control_socket_server *server, const struct pollfd *events,
                           size_t count) {
    for (size_t i = count; i-- > 0;) {
        struct incoming *incoming = &server->incoming[i];
        bool is_good = true;

        if (events[i].revents) {
            incoming->end_ms = incoming->end_ms ? incoming->end_ms : now_ms() + REQUEST_MS_MAX;
            is_good = incoming_read(incoming);
        }
        if (control_request_is_complete(&incoming->request)) {
            struct incoming complete = incoming_remove(server, i);

            incoming_serve(server, &complete);
        } else if (!is_good || (incoming->end_ms && now_ms() >= incoming->end_ms)) {
            incoming_drop(server, i);
        }
    }
}

/* Until the first of those that have begun must be complete. */
static int64_t incoming_ms(const struct control_socket_server *server) {
    int64_t least_ms = INT_MAX;

    for (size_t i = 0; i < server->incoming_count; i++) {
        if (server->incoming[i].end_ms) {
            least_ms = MIN(least_ms, MAX(server->incoming[i].end_ms - now_ms(), (int64_t)0));
        }
    }
    return least_ms;
}

static int poll_ms(struct control_socket_server *server, bool accepts) {
    int64_t ms = MIN(incoming_ms(server), accepts ? (int64_t)INT_MAX : (int64_t)ACCEPT_REST_MS);

    if (goes_on(server)) {
        return 0;
    }
    return ms == INT_MAX ? -1 : (int)ms;
}

static void *serve_all(void *context) {
    struct control_socket_server *server = context;
    struct pollfd events[FIRST_INCOMING + INCOMING_MAX] = {
        {.fd = server->stop_event, .events = POLLIN},
        {.fd = server->listener, .events = POLLIN},
        {.fd = server->question_event, .events = POLLIN}};

    server->enter_result = thread_enter(server);
    sem_post(&server->entered);
    if (server->enter_result < 0) {
        return NULL;
    }
    bool accepts = true;
    for (;;) {
        for (size_t i = 0; i < server->incoming_count; i++) {
            events[FIRST_INCOMING + i] =
                (struct pollfd){.fd = server->incoming[i].socket, .events = POLLIN};
        }
        events[1].fd = accepts ? server->listener : -1;
        int ready = poll(events, FIRST_INCOMING + server->incoming_count, poll_ms(server, accepts));
        accepts = true;
        if ((ready < 0 && errno != EINTR) || (ready > 0 && events[0].revents)) {
            break;
        }
        if (ready >= 0) {
            serve_speaking(server, events + FIRST_INCOMING, server->incoming_count);
        }
        if (ready > 0 && events[2].revents) {
            questions_serve(server);
        }
        if (ready > 0 && events[1].revents) {
            accepts = accept_one(server);
        }
    }
    while (server->incoming_count > 0) {
        incoming_drop(server, 0);
    }
    control_socket_refuse_questions(server);
    thread_leave(server);
    longs_join(server, true);
    return NULL;
}

static void server_free(struct control_socket_server *server) {
    if (server->listener >= 0) {
        (void)unlinkat(server->directory, server->name, 0);
        close(server->listener);
    }
    if (server->stop_event >= 0) {
        close(server->stop_event);
    }
    if (server->question_event >= 0) {
        close(server->question_event);
    }
    if (server->directory >= 0) {
        close(server->directory);
    }
    sem_destroy(&server->entered);
    free(server->name);
    free(server);
}

static int server_listen(struct control_socket_server *server) {
    struct sockaddr_un address;
    int r = address_of(server->directory, server->name, &address);

    if (r < 0) {
        return r;
    }
    (void)unlinkat(server->directory, server->name, 0);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener < 0 || fchmod(server->listener, 0600) < 0 ||
        bind(server->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        fchmodat(server->directory, server->name, 0600, 0) < 0 ||
        listen(server->listener, 16) < 0) {
        return err_from_errno(errno);
    }
    return 0;
}

int control_socket_start(const struct control_socket_options *options,
                         struct control_socket_server **ret_server) {
    struct control_socket_server *server = calloc(1, sizeof *server);
    int r = 0;

    if (!server) {
        return -ERR_NO_MEMORY;
    }
    server->options = *options;
    server->listener = -1;
    sem_init(&server->entered, 0, 0);
    for (size_t i = 0; i < CONTROL_SOCKET_LONG_MAX; i++) {
        atomic_init(&server->longs[i].finished, true);
    }
    server->stop_event = eventfd(0, EFD_CLOEXEC);
    server->question_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->directory = open(options->directory, O_DIRECTORY | O_PATH | O_CLOEXEC);
    server->name = strdup(options->name);
    if (server->directory < 0 || server->stop_event < 0 || server->question_event < 0) {
        r = err_from_errno(errno);
    } else {
        r = server->name ? server_listen(server) : -ERR_NO_MEMORY;
    }
    if (r == 0) {
        int error = pthread_create(&server->thread, NULL, serve_all, server);

        r = error == 0 ? 0 : err_from_errno(error);
    }
    if (r == 0) {
        while (sem_wait(&server->entered) < 0 && errno == EINTR) {
        }
        r = server->enter_result;
        if (r < 0) {
            pthread_join(server->thread, NULL);
        }
    }
    if (r < 0) {
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

void control_socket_wait_long(struct control_socket_server *server) {
    for (size_t i = 0; i < CONTROL_SOCKET_LONG_MAX; i++) {
        while (!atomic_load(&server->longs[i].finished)) {
            (void)poll(NULL, 0, LONG_POLL_MS);
        }
    }
}

void control_socket_stop(struct control_socket_server *server) {
    uint64_t one = 1;

    if (!server) {
        return;
    }
    (void)!write(server->stop_event, &one, sizeof one);
    pthread_join(server->thread, NULL);
    server_free(server);
}

/* Whoever may change the directory may listen there. */
static int peer_check(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
        return err_from_errno(errno);
    }
    return peer.uid == 0 || peer.uid == geteuid() ? 0 : -ERR_NOT_PERMITTED;
}

/* Each may block for so long: who listens may take no connection, or read nothing. 0: any time. */
static void limit_set(int fd, int option, uint32_t limit_ms) {
    const struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};

    (void)setsockopt(fd, SOL_SOCKET, option, &limit, sizeof limit);
}

static int connect_to(const char *directory, const char *name, int *ret_socket) {
    struct sockaddr_un address;
    int folder = open(directory, O_DIRECTORY | O_PATH | O_CLOEXEC);

    if (folder < 0) {
        return err_from_errno(errno);
    }
    int r = address_of(folder, name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        limit_set(fd, SO_SNDTIMEO, TAKE_MS_MAX);
    }
    if (r == 0 && (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)) {
        r = errno == ECONNREFUSED ? -ERR_NOT_FOUND
            : errno == EAGAIN     ? -ERR_TIMED_OUT
                                  : err_from_errno(errno);
    }
    if (r == 0) {
        r = peer_check(fd);
    }
    close(folder);
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    *ret_socket = fd;
    return 0;
}

static int send_request(int fd, const struct control_socket_request *request) {
    struct buffer out;
    int r = control_request_encode(request->argument_count, request->arguments, &out);

    if (r < 0) {
        return r;
    }
    r = send_all(fd, out.data, out.size) ? 0 : -ERR_CLOSED;
    free(out.data);
    return r;
}

static int receive_answer(int fd, const struct control_socket_request *request, int *ret_status) {
    struct control_answer answer = {.left = 0};
    uint64_t left = request->answer_bytes_max ? request->answer_bytes_max : UINT64_MAX;
    uint8_t bytes[16384];
    size_t size;

    while ((size = control_answer_wants(&answer, sizeof bytes)) > 0) {
        if (!receive_all(fd, bytes, size)) {
            return -ERR_CLOSED;
        }
        if (control_answer_took(&answer, (struct bytes){bytes, size})) {
            if (size > left) {
                return -ERR_OVERFLOW;
            }
            left -= size;
            request->output(request->context, (const char *)bytes, size);
        }
    }
    *ret_status = answer.status;
    return 0;
}

int control_socket_call(const struct control_socket_request *request, int *ret_status) {
    int fd = -1;
    int r = connect_to(request->directory, request->name, &fd);

    if (r < 0) {
        return r;
    }
    limit_set(fd, SO_RCVTIMEO, request->silence_ms_max);
    r = send_request(fd, request);
    if (r == 0) {
        r = receive_answer(fd, request, ret_status);
    }
    close(fd);
    return r;
}
