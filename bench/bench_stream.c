/* What a stream costs beside the bare sockets below it; prints one line of JSON.
 *
 * round_trip: 64 bytes over TCP on loopback and back, between two threads with a loop each; bare is
 * the same with epoll_wait, read and write.  flow: pieces of 64 KiB one way, as fast as they are
 * taken.  Each figure is the median of ROUNDS that alternate, as the machine has other things to
 * do; ratio is of these medians, below 1 where streams are faster.  "ring" sleeps at once, as the
 * bare one does; "spin" looks for 5 us before, as daemons do; "epoll" is without io_uring. */
#include "env/env_linux.h"
#include "env/env_stream.h"
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, TRIPS = 20000, TRIP_BYTES = 64, PIECE_BYTES = 64 * 1024, PIECES = 16384 };
enum side { BARE, RING, SPIN, EPOLL, SIDE_COUNT };

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* One thread's end. That of a round trip answers what it gets. */
struct party {
    struct env *env;
    struct env_stream *stream;
    struct env_listener *listener;
    struct address address;
    bool flows;
    bool starts;
    bool over;
    uint64_t bytes; /* received; of the sender of a flow, sent */
    unsigned trips;
    uint8_t data[PIECE_BYTES];
    pthread_t thread;
    int fd;
    int epoll_fd;
};

static void party_send(struct party *party, size_t size) {
    size_t sent = 0;
    int r = env_stream_send(party->stream, &(struct bytes){party->data, size}, 1, &sent);

    assert(r == 0 && sent == size);
    (void)r;
}

static void party_flow(struct party *party) {
    size_t sent = PIECE_BYTES;

    while (sent == PIECE_BYTES && party->bytes < (uint64_t)PIECES * PIECE_BYTES) {
        int r = env_stream_send(party->stream, &(struct bytes){party->data, PIECE_BYTES}, 1, &sent);

        assert(r == 0);
        (void)r;
        party->bytes += sent;
    }
    party->over = party->bytes >= (uint64_t)PIECES * PIECE_BYTES;
}

static void party_receive(struct party *party) {
    size_t capacity = party->flows ? PIECE_BYTES : TRIP_BYTES * 2;
    size_t received = capacity;

    while (received == capacity) {
        struct buffer buffer = {party->data, 0, capacity};

        if (env_stream_receive(party->stream, &buffer, 1, &received) != 0) {
            return;
        }
        party->bytes += received;
    }
    if (!party->flows) {
        assert(party->bytes % TRIP_BYTES == 0);
        party->trips++;
        party->over = party->starts && party->trips == TRIPS;
        if (!party->over) {
            party_send(party, TRIP_BYTES);
        }
    }
}

static void party_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    struct party *party = stream->context;

    (void)reason;
    if (event == ENV_STREAM_READABLE) {
        party_receive(party);
    } else if (event == ENV_STREAM_ENDED) {
        party->over = true;
    } else if (party->flows) {
        party_flow(party);
    } else if (event == ENV_STREAM_OPEN) {
        party_send(party, TRIP_BYTES);
    }
}

static void party_accepted(struct env_listener *listener, struct env_stream *stream) {
    struct party *party = listener->context;

    stream->event = party_event;
    stream->context = party;
    party->stream = stream;
}

static void party_listen(struct party *party) {
    struct env_listen_options options = {.accepted = party_accepted, .context = party};
    struct address any = {.kind = ADDRESS_IPV4, .ip = {127, 0, 0, 1}};
    int r = env_thread_enter(party->env);

    assert(r == 0);
    r = party->env->streams->listen(party->env, &any, &options, &party->listener);
    assert(r == 0);
    party->env->streams->listener_address(party->listener, &party->address);
}

static void party_run(struct party *party) {
    while (!party->over) {
        env_loop_wait(party->env, -1, UINT64_MAX);
    }
    env_stream_close(party->stream);
}

static pthread_barrier_t listening;

static void *answer_main(void *context) {
    struct party *party = context;

    party_listen(party);
    pthread_barrier_wait(&listening);
    party_run(party);
    party->env->streams->listener_close(party->listener);
    env_thread_leave(party->env);
    return NULL;
}

static uint64_t stream_time(struct party parties[2], enum side side) {
    struct env_linux_options options = {
        .root = "/", .spin_ns = side == SPIN ? 5 * NS_PER_US : 0, .refuse_uring = side == EPOLL};
    struct party *asker = &parties[0];
    struct env *env;
    int r = env_linux_new(&options, &env);

    assert(r == 0);
    asker->env = env;
    parties[1].env = env;
    pthread_barrier_init(&listening, NULL, 2);
    pthread_create(&parties[1].thread, NULL, answer_main, &parties[1]);
    pthread_barrier_wait(&listening);
    r = env_thread_enter(env);
    assert(r == 0);
    struct env_connect_options connect_options = {
        .deadline_ns = UINT64_MAX, .event = party_event, .context = asker};
    uint64_t start_ns = clock_ns();
    r = env->streams->connect(env, &parties[1].address, &connect_options, &asker->stream);
    assert(r == 0);
    party_run(asker);
    env_thread_leave(env);
    pthread_join(parties[1].thread, NULL);
    uint64_t took_ns = clock_ns() - start_ns;
    env_linux_free(env);
    return took_ns;
}

static void bare_wait(struct party *party, uint32_t events) {
    struct epoll_event event = {.events = events};

    if (events != EPOLLIN) {
        epoll_ctl(party->epoll_fd, EPOLL_CTL_MOD, party->fd, &event);
    }
    while (epoll_wait(party->epoll_fd, &event, 1, -1) != 1) {
    }
    if (events != EPOLLIN) {
        event.events = EPOLLIN;
        epoll_ctl(party->epoll_fd, EPOLL_CTL_MOD, party->fd, &event);
    }
}

static void bare_start(struct party *party) {
    struct epoll_event event = {.events = EPOLLIN};
    int one = 1;

    setsockopt(party->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    party->epoll_fd = epoll_create1(0);
    epoll_ctl(party->epoll_fd, EPOLL_CTL_ADD, party->fd, &event);
}

static void bare_stop(struct party *party) {
    close(party->epoll_fd);
    close(party->fd);
}

static void *bare_answer_main(void *context) {
    struct party *party = context;
    size_t capacity = party->flows ? PIECE_BYTES : TRIP_BYTES * 2;
    ssize_t got = 1;

    bare_start(party);
    while (got != 0) {
        bare_wait(party, EPOLLIN);
        while ((got = read(party->fd, party->data, capacity)) == (ssize_t)capacity) {
        }
        if (got > 0 && !party->flows) {
            ssize_t wrote = write(party->fd, party->data, TRIP_BYTES);

            assert(wrote == TRIP_BYTES);
        }
    }
    bare_stop(party);
    return NULL;
}

static void bare_ask(struct party *party) {
    for (int i = 0; i < TRIPS; i++) {
        ssize_t moved = write(party->fd, party->data, TRIP_BYTES);

        assert(moved == TRIP_BYTES);
        bare_wait(party, EPOLLIN);
        moved = read(party->fd, party->data, TRIP_BYTES * 2);
        assert(moved == TRIP_BYTES);
    }
}

static void bare_flow(struct party *party) {
    while (party->bytes < (uint64_t)PIECES * PIECE_BYTES) {
        ssize_t wrote = write(party->fd, party->data, PIECE_BYTES);

        if (wrote < PIECE_BYTES) {
            bare_wait(party, EPOLLOUT);
        }
        party->bytes += wrote > 0 ? (uint64_t)wrote : 0;
    }
}

static void bare_connect(struct party parties[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    bind(listener, (struct sockaddr *)&name, size);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&name, &size);
    parties[0].fd = socket(AF_INET, SOCK_STREAM, 0);
    int r = connect(parties[0].fd, (struct sockaddr *)&name, size);
    assert(r == 0);
    parties[1].fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    (void)fcntl(parties[0].fd, F_SETFL, O_NONBLOCK);
    close(listener);
}

static uint64_t bare_time(struct party parties[2]) {
    bare_connect(parties);
    uint64_t start_ns = clock_ns();
    pthread_create(&parties[1].thread, NULL, bare_answer_main, &parties[1]);
    bare_start(&parties[0]);
    if (parties[0].flows) {
        bare_flow(&parties[0]);
    } else {
        bare_ask(&parties[0]);
    }
    bare_stop(&parties[0]);
    pthread_join(parties[1].thread, NULL);
    return clock_ns() - start_ns;
}

static uint64_t time_of(enum side side, bool flows) {
    static struct party parties[2];

    memset(parties, 0, sizeof parties);
    parties[0].flows = flows;
    parties[1].flows = flows;
    parties[0].starts = true;
    return side == BARE ? bare_time(parties) : stream_time(parties, side);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void medians(bool flows, double ret_ns[SIDE_COUNT]) {
    uint64_t times[SIDE_COUNT][ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        for (int side = 0; side < SIDE_COUNT; side++) {
            times[side][round] = time_of((enum side)side, flows);
        }
    }
    for (int side = 0; side < SIDE_COUNT; side++) {
        qsort(times[side], ROUNDS, sizeof times[side][0], compare);
        ret_ns[side] = (double)times[side][ROUNDS / 2];
    }
}

/* The times, and what they are to the bare one's. */
static void print_sides(const char *what, const double *times_ns, double count) {
    printf(", \"%s\": {\"bare\": %.2f, \"ring\": %.2f, \"spin\": %.2f, \"epoll\": %.2f, ", what,
           times_ns[BARE] / count / 1e3, times_ns[RING] / count / 1e3, times_ns[SPIN] / count / 1e3,
           times_ns[EPOLL] / count / 1e3);
    printf("\"ring_ratio\": %.3f, \"spin_ratio\": %.3f, \"epoll_ratio\": %.3f}",
           times_ns[RING] / times_ns[BARE], times_ns[SPIN] / times_ns[BARE],
           times_ns[EPOLL] / times_ns[BARE]);
}

int main(void) {
    double times_ns[SIDE_COUNT];

    printf("{\"name\": \"stream\"");
    medians(false, times_ns);
    print_sides("round_trip_us", times_ns, TRIPS);
    medians(true, times_ns);
    print_sides("piece_us", times_ns, PIECES);
    printf("}\n");
    return 0;
}
