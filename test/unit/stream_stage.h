/* Two ends of streams on one of the two outsides, so that the same cases run on both.
 *
 * An end notes what it is told; it takes what arrives at once, unless it is told to hold back. */
#pragma once
#include "unit.h"
#include "env/env_stream.h"

struct stage {
    struct env *client; /* these two may be one */
    struct env *server;
    bool (*run)(struct stage *stage, bool (*until)(void *context), void *context);
    void (*settle)(struct stage *stage); /* until nothing happens any more */
    const char *tcp;                     /* an address to listen at; port 0 draws one */
    const char *host;                    /* a name for it */
    const char *unix_path;               /* another to listen at */
    void *outside;
};

struct end {
    struct env_stream *stream;
    bool holds; /* receives nothing by itself */
    unsigned opened;
    unsigned readable;
    unsigned writable;
    unsigned ended;
    int reason;
    size_t sent;   /* of the pattern */
    size_t goal;   /* sends up to here whenever there is room */
    uint8_t *data; /* what came, from the heap */
    size_t size;
    size_t capacity;
    void (*told)(struct end *end, enum env_stream_event event); /* after it was noted; or NULL */
    void *context;
};

struct host {
    struct env_listener *listener;
    struct address address;
    unsigned accepted;
    unsigned full;
    struct end *ends; /* the n-th that is accepted becomes the n-th of these */
    unsigned end_count;
    bool closes; /* at once what it accepts */
};

void end_event(struct env_stream *stream, enum env_stream_event event, int reason);
/* Receives all that is there now. */
void end_receive(struct end *end);
void end_close(struct end *end);
/* Also frees what came. */
void end_finish(struct end *end);
void host_open(struct host *host, struct env *env, const char *text);
void host_close(struct host *host, struct env *env);
int end_connect(struct end *end, struct env *env, const struct address *to, uint64_t patience_ns);
/* Runs until the condition holds, or fails. */
void stage_until(struct stage *stage, bool (*until)(void *context), void *context);
/* A connection between the two: ends[0] has connected, ends[1] was accepted. */
struct pair {
    struct host host;
    struct end ends[2];
};
void pair_open(struct pair *pair, struct stage *stage, const char *text);
void pair_close(struct pair *pair, struct stage *stage);

bool until_opened(void *end);
bool until_readable(void *end);
bool until_writable(void *end);
bool until_ended(void *end);

/* The n-th byte of what tests send. */
uint8_t pattern_at(size_t offset);
void pattern_fill(uint8_t *data, size_t size, size_t offset);
/* Sends the pattern up to there, in parts; what there is no room for now when there is. */
void end_send(struct end *end, size_t goal);
void assert_pattern(const struct end *end, size_t size);

/* The cases. */
#define STREAM_CASES(X)                                                                            \
    X(case_both_ways)                                                                              \
    X(case_backpressure)                                                                           \
    X(case_readable_once)                                                                          \
    X(case_again)                                                                                  \
    X(case_end_behind_last_byte)                                                                   \
    X(case_end_unread_is_reset)                                                                    \
    X(case_reset)                                                                                  \
    X(case_nothing_after_reset)                                                                    \
    X(case_close_in_events)                                                                        \
    X(case_close_while_connecting)                                                                 \
    X(case_many_streams)                                                                           \
    X(case_refused)                                                                                \
    X(case_addresses)                                                                              \
    X(case_unix)                                                                                   \
    X(case_unix_drops_unread)                                                                      \
    X(case_ports)
#define STREAM_CASE_DECLARE(name) void name(void **state);
STREAM_CASES(STREAM_CASE_DECLARE)
/* On a stage with room for fewer than four accepted streams. */
void case_limit(void **state);
