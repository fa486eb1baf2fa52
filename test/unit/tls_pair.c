/* The pair: bytes are appended at one end and taken at the other. */
#include "tls_pair.h"
#include "base/err.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct key_file file_of(uint8_t number) {
    struct secret secret;
    struct key_file file;

    for (size_t i = 0; i < sizeof secret.bytes; i++) {
        secret.bytes[i] = (uint8_t)(number + 5 * i);
    }
    key_file_make(&secret, &file);
    return file;
}

struct key_file tls_members(uint8_t newest, uint8_t older) {
    struct key_file file = file_of(older ? older : newest);

    if (older) {
        char problem[KEY_PROBLEM_BYTES];
        struct key_file newer = file_of(newest);
        int r = key_file_add(&file, &newer, problem);

        assert(r == 0);
        (void)r;
    }
    return file;
}

struct key_ring *tls_ring(const struct key_file *members) {
    struct key_ring *ring = NULL;
    int r = key_ring_new(members, &ring);

    assert(r == 0);
    (void)r;
    return ring;
}

void tls_end_init(struct tls_end *end, struct tls *tls) {
    *end = (struct tls_end){.tls = tls, .wire_limit = SIZE_MAX};
    end->wire = malloc(TLS_PAIR_BYTES);
    end->plain = malloc(TLS_PAIR_BYTES);
    assert(end->wire && end->plain);
}

void tls_end_deinit(struct tls_end *end) {
    tls_free(end->tls);
    free(end->wire);
    free(end->plain);
}

void tls_pair_init(struct tls_pair *pair, const struct key_file *client,
                   const struct key_ring *ring) {
    struct tls *client_tls = NULL;
    struct tls *server_tls = NULL;
    int r = tls_context_call(client, &pair->calling);

    if (r == 0) {
        r = tls_context_serve(ring, &pair->serving);
    }
    if (r == 0) {
        r = tls_new(pair->calling, 0, &client_tls);
    }
    if (r == 0) {
        r = tls_new(pair->serving, 0, &server_tls);
    }
    assert(r == 0);
    tls_end_init(&pair->client, client_tls);
    tls_end_init(&pair->server, server_tls);
}

void tls_pair_deinit(struct tls_pair *pair) {
    tls_end_deinit(&pair->client);
    tls_end_deinit(&pair->server);
    tls_context_free(pair->calling);
    tls_context_free(pair->serving);
}

const char *tls_end_words(const struct tls_end *end) {
    const char *words = NULL;

    (void)tls_error(end->tls, &words);
    return words ? words : "";
}

static void result_note(struct tls_end *end, int r) {
    end->result = end->result == 0 ? r : end->result;
}

bool tls_end_send(struct tls_end *end, struct tls_end *other) {
    size_t sealed = 0;

    result_note(end, tls_seal(end->tls, &end->to_send, 1, &sealed));
    if (sealed > 0) {
        end->to_send.data += sealed;
        end->to_send.size -= sealed;
    }
    struct bytes pending = tls_pending(end->tls);
    assert(pending.size <= TLS_PAIR_BYTES - other->wire_end);
    memcpy(other->wire + other->wire_end, pending.data, pending.size);
    other->wire_end += pending.size;
    tls_sent(end->tls, pending.size);
    return pending.size > 0;
}

bool tls_end_receive(struct tls_end *end, size_t wire_bytes, size_t plain_bytes) {
    size_t here = MIN(end->wire_end, end->wire_limit) - end->wire_begin;
    struct bytes wire = {end->wire + end->wire_begin, MIN(here, wire_bytes)};
    struct buffer plain = {end->plain + end->plain_bytes, 0,
                           MIN(plain_bytes, TLS_PAIR_BYTES - end->plain_bytes)};
    size_t before = wire.size;
    bool was_proven = tls_is_proven(end->tls);
    size_t opened = 0;

    result_note(end, tls_open(end->tls, &wire, &plain, 1, &opened));
    assert(opened == plain.size && plain.size <= plain.capacity);
    end->wire_begin += before - wire.size;
    end->plain_bytes += opened;
    return before > wire.size || opened > 0 || tls_is_proven(end->tls) != was_proven;
}

void tls_pair_run(struct tls_pair *pair, size_t piece_bytes) {
    bool moved = true;

    while (moved) {
        moved = tls_end_receive(&pair->client, piece_bytes, TLS_PAIR_BYTES);
        moved |= tls_end_receive(&pair->server, piece_bytes, TLS_PAIR_BYTES);
        moved |= tls_end_send(&pair->client, &pair->server);
        moved |= tls_end_send(&pair->server, &pair->client);
    }
}
