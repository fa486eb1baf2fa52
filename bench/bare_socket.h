/* The limit of what goes between processes: plain sockets, epoll, blocking in epoll_wait, between
 * two threads of this process. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BARE_TRIP_BYTES = 200, BARE_PIECE_BYTES = 1 << 20 };

/* Nanoseconds of so many round trips of BARE_TRIP_BYTES, and then of so many pieces that come one
 * way; over TCP on loopback, or a pair of Unix sockets. Ends the process if it gets none. */
double bare_socket_ns(bool tcp, uint64_t round_trips, uint64_t pieces);

/* Of count figures, which it sorts. */
double bare_median(double *values, size_t count);
