/* What the cases of streams are made of. */
#include "stream_stage.h"
#include <stdlib.h>
#include <string.h>

enum { RECEIVE_BYTES = 3000 };

void end_receive(struct end *end) {
    for (;;) {
        if (end->capacity - end->size < 2 * RECEIVE_BYTES) {
            end->capacity = 2 * end->capacity + 4 * RECEIVE_BYTES;
            end->data = realloc(end->data, end->capacity);
            assert_non_null(end->data);
        }
        struct buffer parts[] = {{end->data + end->size, 0, 1},
                                 {end->data + end->size + 1, 0, RECEIVE_BYTES}};
        size_t received = 0;
        int r = env_stream_receive(end->stream, parts, 2, &received);

        if (r) {
            assert_true(r == -ERR_BUSY || r == -ERR_CLOSED);
            return;
        }
        assert_int_equal(parts[0].size, 1);
        assert_int_equal(parts[0].size + parts[1].size, received);
        end->size += received;
    }
}

uint8_t pattern_at(size_t offset) {
    return (uint8_t)(offset * 31 + offset / 251 + offset / 65521);
}

void pattern_fill(uint8_t *data, size_t size, size_t offset) {
    for (size_t i = 0; i < size; i++) {
        data[i] = pattern_at(offset + i);
    }
}

static void pattern_send(struct end *end) {
    uint8_t data[10000];

    while (end->stream && end->sent < end->goal) {
        size_t piece = MIN(end->goal - end->sent, sizeof data);
        size_t cut = piece / 3;
        size_t taken = 0;

        pattern_fill(data, piece, end->sent);
        struct bytes parts[] = {{data, cut}, {data, 0}, {data + cut, piece - cut}};
        int r = env_stream_send(end->stream, parts, 3, &taken);
        assert_true(r == 0 || r == -ERR_CLOSED);
        assert_true(taken <= piece);
        end->sent += taken;
        if (taken < piece) {
            return;
        }
    }
}

void end_send(struct end *end, size_t goal) {
    end->goal = goal;
    pattern_send(end);
}

void end_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    struct end *end = stream->context;

    assert_ptr_equal(end->stream, stream);
    assert_int_equal(end->ended, 0);
    switch (event) {
    case ENV_STREAM_OPEN:
        end->opened++;
        break;
    case ENV_STREAM_READABLE:
        assert_true(stream->readable_ns > 0);
        end->readable++;
        break;
    case ENV_STREAM_WRITABLE:
        end->writable++;
        break;
    case ENV_STREAM_ENDED:
        end->ended++;
        end->reason = reason;
        break;
    }
    if (event == ENV_STREAM_READABLE && !end->holds) {
        end_receive(end);
    }
    if (event == ENV_STREAM_WRITABLE) {
        pattern_send(end);
    }
    if (end->told) {
        end->told(end, event);
    }
}

void end_close(struct end *end) {
    if (end->stream) {
        env_stream_close(TAKE_PTR(end->stream));
    }
}

void end_finish(struct end *end) {
    end_close(end);
    free(end->data);
    end->data = NULL;
}

static void host_accepted(struct env_listener *listener, struct env_stream *stream) {
    struct host *host = listener->context;

    if (host->closes) {
        host->accepted++;
        env_stream_close(stream);
        return;
    }
    assert_true(host->accepted < host->end_count);
    struct end *end = &host->ends[host->accepted++];
    end->stream = stream;
    end->opened++;
    stream->event = end_event;
    stream->context = end;
}

static void host_full(struct env_listener *listener) {
    struct host *host = listener->context;

    host->full++;
}

void host_open(struct host *host, struct env *env, const char *text) {
    struct env_listen_options options = {
        .accepted = host_accepted, .full = host_full, .context = host};

    assert_int_equal(address_parse(text, &host->address), 0);
    assert_int_equal(env->streams->listen(env, &host->address, &options, &host->listener), 0);
    env->streams->listener_address(host->listener, &host->address);
}

void host_close(struct host *host, struct env *env) {
    env->streams->listener_close(host->listener);
    host->listener = NULL;
}

int end_connect(struct end *end, struct env *env, const struct address *to, uint64_t patience_ns) {
    struct env_connect_options options = {
        .deadline_ns = patience_ns == UINT64_MAX ? UINT64_MAX : env_now_ns(env) + patience_ns,
        .event = end_event,
        .context = end,
    };

    return env->streams->connect(env, to, &options, &end->stream);
}

void stage_until(struct stage *stage, bool (*until)(void *context), void *context) {
    assert_true(stage->run(stage, until, context));
}

static bool until_both_open(void *context) {
    const struct pair *pair = context;

    return pair->ends[0].opened && pair->ends[1].opened;
}

void pair_open(struct pair *pair, struct stage *stage, const char *text) {
    pair->host.ends = &pair->ends[1];
    pair->host.end_count = 1;
    host_open(&pair->host, stage->server, text);
    assert_int_equal(end_connect(&pair->ends[0], stage->client, &pair->host.address, NS_PER_S * 60),
                     0);
    assert_int_equal(pair->ends[0].opened + pair->ends[1].opened, 0);
    stage_until(stage, until_both_open, pair);
}

void pair_close(struct pair *pair, struct stage *stage) {
    end_finish(&pair->ends[0]);
    end_finish(&pair->ends[1]);
    host_close(&pair->host, stage->server);
}

bool until_opened(void *end) {
    return ((struct end *)end)->opened > 0;
}

bool until_readable(void *end) {
    return ((struct end *)end)->readable > 0;
}

bool until_writable(void *end) {
    return ((struct end *)end)->writable > 0;
}

bool until_ended(void *end) {
    return ((struct end *)end)->ended > 0;
}

void assert_pattern(const struct end *end, size_t size) {
    assert_int_equal(end->size, size);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(end->data[i], pattern_at(i));
    }
}
