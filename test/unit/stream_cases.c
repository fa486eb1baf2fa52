/* What must hold of streams on any outside. */
#include "stream_stage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUCH = 3000000, MANY = 100 };

static bool until_both_whole(void *context) {
    const struct pair *pair = context;

    return pair->ends[0].size >= MUCH && pair->ends[1].size >= MUCH;
}

/* Bytes arrive whole and in order, in both directions at a time. */
void case_both_ways(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};

    pair_open(&pair, stage, stage->tcp);
    end_send(&pair.ends[0], MUCH);
    end_send(&pair.ends[1], MUCH);
    stage_until(stage, until_both_whole, &pair);
    assert_pattern(&pair.ends[0], MUCH);
    assert_pattern(&pair.ends[1], MUCH);
    pair_close(&pair, stage);
}

static bool until_much(void *end) {
    return ((struct end *)end)->size >= MUCH;
}

struct draining {
    const struct end *end;
    size_t size;
};

static bool until_drained(void *context) {
    const struct draining *draining = context;

    return draining->end->size >= draining->size;
}

/* Sends until there is no room any more although time passes; answers how much was taken. */
static size_t end_fill(struct end *end, struct stage *stage) {
    end_send(end, (size_t)1 << 30);
    stage->settle(stage);
    assert_true(end->sent < end->goal);
    end->goal = end->sent;
    end->writable = 0;
    return end->sent;
}

/* A reader that stops makes the sender's send take nothing; once it goes on, WRITABLE comes, once,
 * and all that was taken arrives. */
void case_backpressure(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct bytes more = {(const uint8_t *)"x", 1};
    size_t taken = 1;

    pair_open(&pair, stage, stage->tcp);
    pair.ends[1].holds = true;
    size_t sent = end_fill(&pair.ends[0], stage);
    assert_true(sent > 0);
    assert_int_equal(env_stream_send(pair.ends[0].stream, &more, 1, &taken), 0);
    assert_int_equal(taken, 0);
    assert_int_equal(pair.ends[1].readable, 1);

    pair.ends[1].holds = false;
    end_receive(&pair.ends[1]);
    stage_until(stage, until_writable, &pair.ends[0]);
    stage_until(stage, until_drained, &(struct draining){&pair.ends[1], sent});
    stage->settle(stage);
    assert_int_equal(pair.ends[0].writable, 1);
    assert_pattern(&pair.ends[1], sent);
    pair_close(&pair, stage);
}

/* READABLE comes once, however much comes later; again only after what is there was taken. */
void case_readable_once(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct end *reader = &pair.ends[1];
    size_t received = 0;
    uint8_t data[4];

    pair_open(&pair, stage, stage->tcp);
    reader->holds = true;
    for (size_t size = 100; size <= 300; size += 100) {
        end_send(&pair.ends[0], size);
        stage->settle(stage);
        assert_int_equal(reader->readable, 1);
    }
    uint64_t first_ns = reader->stream->readable_ns;
    assert_int_equal(
        env_stream_receive(reader->stream, &(struct buffer){data, 0, sizeof data}, 1, &received),
        0);
    assert_true(received >= 1 && received <= sizeof data);
    end_send(&pair.ends[0], 400);
    stage->settle(stage);
    assert_true(received < sizeof data || reader->readable == 1);
    assert_true(reader->readable > 1 || reader->stream->readable_ns == first_ns);

    reader->holds = false;
    while (reader->size + received < 400) {
        reader->readable = 0;
        end_receive(reader);
        if (reader->size + received < 400) {
            stage_until(stage, until_readable, reader);
        }
    }
    assert_int_equal(reader->data[0], pattern_at(received));
    reader->readable = 0;
    end_send(&pair.ends[0], 401);
    stage_until(stage, until_readable, reader);
    assert_true(reader->stream->readable_ns > first_ns);
    pair_close(&pair, stage);
}

/* Who stops early is told again of what is left, and of nothing where nothing is. */
void case_again(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct end *reader = &pair.ends[1];
    size_t received = 0;
    uint8_t data[2];

    pair_open(&pair, stage, stage->tcp);
    reader->holds = true;
    end_send(&pair.ends[0], 1000);
    stage->settle(stage);
    assert_int_equal(reader->readable, 1);
    assert_int_equal(
        env_stream_receive(reader->stream, &(struct buffer){data, 0, sizeof data}, 1, &received),
        0);
    reader->readable = 0;
    env_stream_again(reader->stream);
    assert_int_equal(reader->readable, 0);
    stage_until(stage, until_readable, reader);
    reader->holds = false;
    end_receive(reader);
    while (reader->size + received < 1000) {
        reader->readable = 0;
        stage_until(stage, until_readable, reader);
    }
    reader->readable = 0;
    env_stream_again(reader->stream);
    stage->settle(stage);
    assert_int_equal(reader->readable, 0);
    pair_close(&pair, stage);
}

/* An orderly end comes behind the last byte, as event and as the answer of calls. */
void case_end_behind_last_byte(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct end *reader = &pair.ends[1];
    size_t taken = 0;

    pair_open(&pair, stage, stage->tcp);
    reader->holds = true;
    end_send(&pair.ends[0], 20000);
    stage->settle(stage);
    assert_int_equal(pair.ends[0].sent, 20000);
    end_close(&pair.ends[0]);
    stage->settle(stage);
    assert_int_equal(reader->ended, 0);
    reader->holds = false;
    end_receive(reader);
    stage_until(stage, until_ended, reader);
    assert_int_equal(reader->reason, 0);
    assert_pattern(reader, 20000);
    assert_int_equal(env_stream_send(reader->stream, &(struct bytes){reader->data, 1}, 1, &taken),
                     -ERR_CLOSED);
    assert_int_equal(
        env_stream_receive(reader->stream, &(struct buffer){reader->data, 0, 1}, 1, &taken),
        -ERR_CLOSED);
    pair_close(&pair, stage);
}

/* Who closes before it has received all resets: the other side learns that it was not heard. */
void case_end_unread_is_reset(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};

    pair_open(&pair, stage, stage->tcp);
    pair.ends[1].holds = true;
    end_send(&pair.ends[0], 1000);
    stage_until(stage, until_readable, &pair.ends[1]);
    end_close(&pair.ends[1]);
    stage_until(stage, until_ended, &pair.ends[0]);
    assert_int_equal(pair.ends[0].reason, -ERR_RESET);
    pair_close(&pair, stage);
}

void case_reset(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};

    pair_open(&pair, stage, stage->tcp);
    env_stream_reset(pair.ends[0].stream);
    pair.ends[0].stream = NULL;
    stage_until(stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, -ERR_RESET);
    stage->settle(stage);
    assert_int_equal(pair.ends[0].ended + pair.ends[0].readable + pair.ends[0].writable, 0);
    pair_close(&pair, stage);
}

/* What came before a reset is not handed out any more, although it lies there. */
void case_nothing_after_reset(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct end *reader = &pair.ends[1];

    pair_open(&pair, stage, stage->tcp);
    reader->holds = true;
    end_send(&pair.ends[0], 1000);
    stage_until(stage, until_readable, reader);
    env_stream_reset(pair.ends[0].stream);
    pair.ends[0].stream = NULL;
    stage_until(stage, until_ended, reader);
    assert_int_equal(reader->reason, -ERR_RESET);
    end_receive(reader);
    assert_int_equal(reader->size, 0);
    pair_close(&pair, stage);
}

struct closing {
    enum env_stream_event at;
    bool resets;
    bool done;
};

static void close_at(struct end *end, enum env_stream_event event) {
    struct closing *closing = end->context;

    if (event == closing->at) {
        closing->done = true;
        if (closing->resets) {
            env_stream_reset(end->stream);
        } else {
            env_stream_close(end->stream);
        }
        end->stream = NULL;
    }
}

static bool until_closed(void *context) {
    return ((struct closing *)context)->done;
}

/* The client closes inside the event; the server has sent already, so that all comes at once. */
static void close_inside(struct stage *stage, struct closing *closing) {
    struct pair pair = {.host = {.ends = &pair.ends[1], .end_count = 1}};

    pair.ends[0].told = closing->at == ENV_STREAM_WRITABLE ? NULL : close_at;
    pair.ends[0].context = closing;
    host_open(&pair.host, stage->server, stage->tcp);
    assert_int_equal(end_connect(&pair.ends[0], stage->client, &pair.host.address, UINT64_MAX), 0);
    stage_until(stage, until_opened, &pair.ends[1]);
    if (closing->at == ENV_STREAM_WRITABLE) {
        stage_until(stage, until_opened, &pair.ends[0]);
        pair.ends[1].holds = true;
        (void)end_fill(&pair.ends[0], stage);
        pair.ends[0].told = close_at;
        end_receive(&pair.ends[1]);
        pair.ends[1].holds = false;
    } else {
        end_send(&pair.ends[1], 100);
    }
    if (closing->at == ENV_STREAM_ENDED) {
        end_close(&pair.ends[1]);
    }
    stage_until(stage, until_closed, closing);
    unsigned told = pair.ends[0].readable + pair.ends[0].writable + pair.ends[0].ended;
    stage->settle(stage);
    assert_int_equal(pair.ends[0].readable + pair.ends[0].writable + pair.ends[0].ended, told);
    pair_close(&pair, stage);
}

/* Closing or resetting a stream inside its own event: no event comes after that. */
void case_close_in_events(void **state) {
    struct stage *stage = *state;
    struct host closing_host = {.closes = true};
    struct end end = {0};

    for (int at = ENV_STREAM_OPEN; at <= ENV_STREAM_ENDED; at++) {
        for (int resets = 0; resets < 2; resets++) {
            struct closing closing = {.at = (enum env_stream_event)at, .resets = resets};

            close_inside(stage, &closing);
        }
    }
    host_open(&closing_host, stage->server, stage->tcp);
    assert_int_equal(end_connect(&end, stage->client, &closing_host.address, UINT64_MAX), 0);
    stage_until(stage, until_ended, &end);
    assert_int_equal(end.reason, 0);
    end_finish(&end);
    host_close(&closing_host, stage->server);
}

void case_close_while_connecting(void **state) {
    struct stage *stage = *state;
    struct end ends[2] = {0};
    struct host host = {.closes = true};

    host_open(&host, stage->server, stage->tcp);
    assert_int_equal(end_connect(&ends[0], stage->client, &host.address, UINT64_MAX), 0);
    assert_int_equal(end_connect(&ends[1], stage->client, &host.address, UINT64_MAX), 0);
    end_close(&ends[0]);
    env_stream_reset(ends[1].stream);
    stage->settle(stage);
    assert_int_equal(ends[0].opened + ends[0].ended + ends[1].opened + ends[1].ended, 0);
    host_close(&host, stage->server);
}

struct crowd {
    struct host host;
    struct end clients[MANY];
    struct end servers[MANY];
    unsigned answered;
};

static void crowd_told(struct end *end, enum env_stream_event event) {
    struct crowd *crowd = end->context;

    if (event == ENV_STREAM_OPEN) {
        end_send(end, 64);
    } else if (event == ENV_STREAM_READABLE) {
        crowd->answered += end->size == 64;
    }
}

static void crowd_answer(struct end *end, enum env_stream_event event) {
    if (event == ENV_STREAM_READABLE && end->size == 64) {
        end->told = NULL;
        end_send(end, 64);
    }
}

static bool until_all_answered(void *context) {
    return ((struct crowd *)context)->answered == MANY;
}

/* Many streams on one loop: each has its own bytes. */
void case_many_streams(void **state) {
    struct stage *stage = *state;
    struct crowd *crowd = calloc(1, sizeof *crowd);

    assert_non_null(crowd);
    crowd->host.ends = crowd->servers;
    crowd->host.end_count = MANY;
    host_open(&crowd->host, stage->server, stage->tcp);
    for (int i = 0; i < MANY; i++) {
        crowd->clients[i].told = crowd_told;
        crowd->clients[i].context = crowd;
        crowd->servers[i].told = crowd_answer;
        assert_int_equal(
            end_connect(&crowd->clients[i], stage->client, &crowd->host.address, UINT64_MAX), 0);
    }
    stage_until(stage, until_all_answered, crowd);
    for (int i = 0; i < MANY; i++) {
        assert_pattern(&crowd->clients[i], 64);
        assert_pattern(&crowd->servers[i], 64);
        end_finish(&crowd->clients[i]);
    }
    for (int i = 0; i < MANY; i++) {
        stage_until(stage, until_ended, &crowd->servers[i]);
        assert_int_equal(crowd->servers[i].reason, 0);
        end_finish(&crowd->servers[i]);
    }
    host_close(&crowd->host, stage->server);
    free(crowd);
}

/* Where nobody listens any more, and where there is no way. */
void case_refused(void **state) {
    struct stage *stage = *state;
    struct host host = {0};
    struct end end = {0};
    struct end lost = {0};
    struct address nowhere;

    host_open(&host, stage->server, stage->tcp);
    host_close(&host, stage->server);
    stage->settle(stage);
    assert_int_equal(end_connect(&end, stage->client, &host.address, UINT64_MAX), 0);
    assert_int_equal(end.ended, 0);
    stage_until(stage, until_ended, &end);
    assert_int_equal(end.reason, -ERR_REFUSED);
    end_finish(&end);

    assert_int_equal(address_parse("224.0.0.1:7400", &nowhere), 0);
    assert_int_equal(end_connect(&lost, stage->client, &nowhere, UINT64_MAX), 0);
    stage_until(stage, until_ended, &lost);
    assert_int_equal(lost.reason, -ERR_UNREACHABLE);
    end_finish(&lost);
}

/* Each side knows where the other one is. */
void case_addresses(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct address peer;
    struct env_stream_peer who;

    pair_open(&pair, stage, stage->tcp);
    stage->client->streams->peer_address(pair.ends[0].stream, &peer);
    assert_true(address_is(&peer, &pair.host.address));
    stage->server->streams->peer_address(pair.ends[1].stream, &peer);
    assert_int_equal(peer.kind, pair.host.address.kind);
    assert_int_not_equal(peer.port, 0);
    assert_int_not_equal(peer.port, pair.host.address.port);
    assert_int_equal(stage->server->streams->peer(pair.ends[1].stream, &who), -ERR_NOT_SUPPORTED);
    pair_close(&pair, stage);
}

/* A Unix socket carries bytes and an end, and tells who is there. */
void case_unix(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};
    struct env_stream_peer who[2];
    struct address peer;

    pair_open(&pair, stage, stage->unix_path);
    end_send(&pair.ends[0], MUCH);
    stage_until(stage, until_much, &pair.ends[1]);
    for (int i = 0; i < 2; i++) {
        struct env *env = pair.ends[i].stream->env;

        assert_int_equal(env->streams->peer(pair.ends[i].stream, &who[i]), 0);
        assert_int_not_equal(who[i].pid, 0);
        env->streams->peer_address(pair.ends[i].stream, &peer);
        assert_true(address_is(&peer, &pair.host.address));
    }
    assert_int_equal(who[0].uid, who[1].uid);
    end_close(&pair.ends[0]);
    stage_until(stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, 0);
    assert_pattern(&pair.ends[1], MUCH);
    pair_close(&pair, stage);

    /* The path is free again. */
    struct pair again = {0};
    stage->settle(stage);
    pair_open(&again, stage, stage->unix_path);
    pair_close(&again, stage);
}

/* What its other end has left behind in a Unix socket is lost for who wants it so. */
void case_unix_drops_unread(void **state) {
    struct stage *stage = *state;
    struct pair pair = {0};

    pair_open(&pair, stage, stage->unix_path);
    pair.ends[1].stream->drops_unread = true;
    pair.ends[1].holds = true;
    end_send(&pair.ends[0], 1000);
    stage_until(stage, until_readable, &pair.ends[1]);
    end_close(&pair.ends[0]);
    stage_until(stage, until_ended, &pair.ends[1]);
    assert_int_equal(pair.ends[1].reason, -ERR_RESET);
    assert_int_equal(pair.ends[1].size, 0);
    pair_close(&pair, stage);
}

/* Port 0 draws a port of its own each time; a name stands for its numbers. */
void case_ports(void **state) {
    struct stage *stage = *state;
    struct host hosts[2] = {{0}, {0}};
    struct end end = {0};
    struct end other = {0};
    struct address named;
    char text[64];

    for (int i = 0; i < 2; i++) {
        hosts[i].ends = i ? &other : NULL;
        hosts[i].end_count = 1;
        host_open(&hosts[i], stage->server, stage->tcp);
        assert_int_not_equal(hosts[i].address.port, 0);
    }
    assert_int_not_equal(hosts[0].address.port, hosts[1].address.port);
    snprintf(text, sizeof text, "%s:1", stage->host);
    assert_int_equal(address_parse(text, &named), 0);
    named.port = hosts[1].address.port;
    assert_int_equal(end_connect(&end, stage->client, &named, 60 * NS_PER_S), 0);
    stage_until(stage, until_opened, &end);
    stage_until(stage, until_opened, &other);
    end_finish(&end);
    end_finish(&other);
    host_close(&hosts[0], stage->server);
    host_close(&hosts[1], stage->server);
}

struct limited {
    struct host host;
    struct end clients[4];
    struct end servers[4];
};

static bool until_full(void *context) {
    const struct limited *limited = context;

    return limited->host.full > 0;
}

/* The server has room for fewer than four streams: the others wait until one is closed, and it is
 * said once. */
void case_limit(void **state) {
    struct stage *stage = *state;
    struct limited limited = {.host = {.ends = limited.servers, .end_count = 4}};

    host_open(&limited.host, stage->server, stage->tcp);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            end_connect(&limited.clients[i], stage->client, &limited.host.address, UINT64_MAX), 0);
    }
    stage_until(stage, until_full, &limited);
    stage->settle(stage);
    assert_true(limited.host.accepted < 4);
    for (int i = 0; i < 4; i++) {
        stage_until(stage, until_opened, &limited.servers[i]);
        end_finish(&limited.clients[i]);
        end_finish(&limited.servers[i]);
    }
    assert_int_equal(limited.host.full, 1);
    host_close(&limited.host, stage->server);
}
