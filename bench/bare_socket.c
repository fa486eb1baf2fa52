/* The contract is in bare_socket.h. */
#include "bare_socket.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct bare {
    int fds[2];
    uint64_t round_trips, pieces;
    uint8_t sent[BARE_PIECE_BYTES], received[BARE_PIECE_BYTES];
};

static void must(bool is_so) {
    if (!is_so) {
        perror("a bare socket");
        exit(1);
    }
}

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int epoll_of(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(0);

    must(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    return epoll;
}

static void receive(int epoll, int fd, uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, data + done, size - done, MSG_DONTWAIT);

        if (got < 0) {
            struct epoll_event event;

            (void)!epoll_wait(epoll, &event, 1, -1);
        } else {
            must(got > 0);
            done += (size_t)got;
        }
    }
}

static void send_all(int fd, const uint8_t *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(fd, data + done, size - done, 0);

        must(sent > 0);
        done += (size_t)sent;
    }
}

static void *other_main(void *context) {
    struct bare *bare = context;
    uint8_t trip[BARE_TRIP_BYTES];
    int epoll = epoll_of(bare->fds[1]);

    for (uint64_t i = 0; i < bare->round_trips; i++) {
        receive(epoll, bare->fds[1], trip, sizeof trip);
        send_all(bare->fds[1], trip, sizeof trip);
    }
    for (uint64_t i = 0; i < bare->pieces; i++) {
        send_all(bare->fds[1], bare->sent, sizeof bare->sent);
    }
    close(epoll);
    return NULL;
}

static void pair_make(bool tcp, int fds[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int one = 1;

    if (!tcp) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        return;
    }
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    must(listener >= 0 && bind(listener, (struct sockaddr *)&name, sizeof name) == 0);
    must(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&name, &size) == 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    must(fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&name, size) == 0);
    fds[1] = accept(listener, NULL, NULL);
    must(fds[1] >= 0);
    close(listener);
    for (int i = 0; i < 2; i++) {
        must(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    }
}

double bare_socket_ns(bool tcp, uint64_t round_trips, uint64_t pieces) {
    struct bare *bare = malloc(sizeof *bare);
    uint8_t trip[BARE_TRIP_BYTES] = {0};
    pthread_t other;

    must(bare != NULL);
    memset(bare, 1, sizeof *bare);
    bare->round_trips = round_trips;
    bare->pieces = pieces;
    pair_make(tcp, bare->fds);
    int epoll = epoll_of(bare->fds[0]);
    must(pthread_create(&other, NULL, other_main, bare) == 0);
    uint64_t start_ns = now_ns();

    for (uint64_t i = 0; i < round_trips; i++) {
        send_all(bare->fds[0], trip, sizeof trip);
        receive(epoll, bare->fds[0], trip, sizeof trip);
    }
    for (uint64_t i = 0; i < pieces; i++) {
        receive(epoll, bare->fds[0], bare->received, sizeof bare->received);
    }
    uint64_t taken_ns = now_ns() - start_ns;

    pthread_join(other, NULL);
    close(epoll);
    close(bare->fds[0]);
    close(bare->fds[1]);
    free(bare);
    return (double)taken_ns;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bare_median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}
