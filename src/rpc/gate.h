/* The serving end of lanes (lane.h): who listens, reads requests, and sends their answers.
 *
 *     stream --accept--> GREETING --hello--> connection of a lane's end --> inlet --> actors
 *                          | 5 s                    ^ newest only             |
 *                          v refused                +---- answers <-- ready --+
 *
 * A lane's end is known by the life of the process that calls, the key that it has proven, and the
 * lane's number there; it outlives connections. When a newer connection of a lane has greeted, the
 * older one is closed and nothing more is read from it; what was read runs on, and its answer
 * leaves on the newest. An answer that finds no connection is dropped: the caller asks again.
 *
 * Who has not greeted may be anybody: of these there are GATE_GREETINGS_MAX at most, and for one
 * more the one goes that has been silent for longest. So strangers keep nobody out.
 *
 * While bulk finds no memory, a connection goes each tick that has held some for longest, and has
 * moved less than 64 KiB in a second: half of a message has come, or more than 1 MiB of answers is
 * not read.
 *
 * A caller that does not read its answers is not read from while more than 1 MiB of them waits,
 * and its connection is closed after 30 s of that.
 *
 * A lane that lives says something within the time after which it would close unused: one that has
 * been silent for three times as long is gone with its machine, which told nobody, and is let go.
 *
 * Of the lanes that there may be each process is granted its share, one at least, as its welcome
 * says: it is refused more, and of one that had more before others came they are taken back. So who
 * comes is served as long as there are fewer processes than connections.
 *
 * Time that this thread has not looked at its connections is taken off what it reads next: a
 * process that was stopped and goes on does not run what its caller has given up.
 *
 * Thread: one, that of the loop that listens, but for `ready` of requests that other threads have
 * answered. Memory: requests and bulk from pools taken by gate_new; a connection's, while it is
 * open. */
#pragma once
#include "rpc/inlet.h"
#include "rpc/lane.h"

struct env;
struct env_stream;
struct gate;
struct key_ring;

struct gate_options {
    struct env *env;
    struct lane_identity self;
    struct log_table *logs;    /* that are served */
    uint32_t connections_max;  /* 0: 4,096; a quarter of them, 256 at most, for who greets */
    uint32_t requests_max;     /* 0: 4,096 */
    uint32_t waits_max;        /* beside these, that wait for a newer map; 0: none */
    uint32_t bulk_count;       /* buffers of bulk_bytes_max; 0: 64 */
    uint32_t small_bulk_count; /* of 64 KiB; 0: 512 */
    uint64_t bulk_bytes_max;   /* 0: 4 MiB */
    uint64_t silent_ns;        /* until who says nothing is let go; 0: 180 s */
    struct lane_waker waker;   /* of the thread's loop */
    struct tls_context *tls;   /* for who comes by TCP; NULL: such are refused */
    enum link_encryption encryption;
    /* Whose revoked serials are refused, and cut off within a tick; NULL: none is known. */
    const struct key_ring *keys;
    /* Whether the caller at the other end of a stream is let in: 0, or the refusal that it is told.
     * NULL: everybody. Asked of Unix sockets, which prove nothing by themselves. */
    int (*admit)(void *context, struct env_stream *stream);
    void (*log)(void *context, const char *line);
    void *context;
};

/* On the thread. -ERR_NO_MEMORY, -ERR_INVALID. */
MUST_CHECK int gate_new(const struct gate_options *options, struct gate **ret_gate);
/* The errors of env_stream_listen. At most GATE_LISTENERS_MAX addresses. */
enum { GATE_LISTENERS_MAX = 8, GATE_GREETINGS_MAX = 256 };
MUST_CHECK int gate_listen(struct gate *gate, const struct address *address);
/* Takes no more connections and no more requests; answers still leave. */
void gate_close(struct gate *gate);
/* True when no request is at work any more. */
bool gate_is_idle(const struct gate *gate);
/* No request may be at work. Takes NULL. */
void gate_free(struct gate *gate);
/* As gate_free where requests are at work: nobody may touch them from now on. Takes NULL. */
void gate_abandon(struct gate *gate);
/* At the end of each turn of the loop: answers leave. True: some did. */
bool gate_turn(struct gate *gate);
/* Every 10 to 100 ms, on the thread. */
void gate_tick(struct gate *gate);

struct gate_stats {
    uint32_t connection_count; /* with those that have not greeted */
    uint32_t connections_max;
    uint64_t accepted_count, refused_count; /* ever */
    uint64_t busy_count;                    /* requests that found no room */
    uint64_t late_count;                    /* requests of which late_ns was taken off */
    uint64_t replaced_count;                /* connections that a newer one of their lane ended */
    uint64_t old_lane_count;                /* refused by OLD_LANE */
    uint64_t dropped_count;                 /* answers that found no connection, or lost it */
    uint64_t silent_count;                  /* connections let go for their silence */
    uint64_t surplus_count;                 /* that were taken back, as others came */
    uint32_t lanes_granted;                 /* that each process may have now */
    struct pool_usage requests;
};
void gate_stats(const struct gate *gate, struct gate_stats *ret_stats);
