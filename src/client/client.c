/* Making, starting, ticking and ending a client. */
#include "client/client.h"
#include "client/client_internal.h"
#include "base/siphash.h"
#include "rpc/sequence.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct router_readers *client_readers(void *context, uint32_t index) {
    struct shoal_client *client = context;

    return &client->shards[index].readers;
}

static void options_fill(struct client_options *options) {
    const struct client_options defaults = {
        .open_files_max = 65536,
        .chunk_calls_max = 1024,
        .call_bytes_max = CALL_BYTES_MAX,
        .readdir_buffers_max = 128,
        .inline_bytes_max = INLINE_BYTES_MAX,
        .request_timeout_ns = 60 * NS_PER_S,
        .renew_ns = 2 * NS_PER_S,
    };

#define DEFAULT(field) options->field = options->field ? options->field : defaults.field
    DEFAULT(open_files_max);
    DEFAULT(chunk_calls_max);
    DEFAULT(call_bytes_max);
    DEFAULT(readdir_buffers_max);
    DEFAULT(inline_bytes_max);
    DEFAULT(request_timeout_ns);
    DEFAULT(renew_ns);
#undef DEFAULT
}

static int client_init(struct shoal_client *client) {
    int r = router_init(&client->router);

    client->router.readers = client_readers;
    client->router.readers_context = client;
    client->shards = aligned_alloc(64, CLIENT_SHARDS * sizeof *client->shards);
    if (!client->shards) {
        return -ERR_NO_MEMORY;
    }
    memset(client->shards, 0, CLIENT_SHARDS * sizeof *client->shards);
    client->router.readers_count = CLIENT_SHARDS;
    client->handles = calloc(client->options.open_files_max, sizeof *client->handles);
    if (!client->handles ||
        !index_pool_init(&client->handle_pool, client->options.open_files_max)) {
        return -ERR_NO_MEMORY;
    }
    r = r ? r : session_init(&client->session, client);
    for (uint32_t i = 0; i < CLIENT_SHARDS && r == 0; i++) {
        r = shard_init(&client->shards[i], client, &client->options);
    }
    return r;
}

/* A mount may lie at a path that is longer than what the manager keeps of one. */
static void origin_copy(const char *origin, char ret_origin[CLIENT_ORIGIN_BYTES + 1]) {
    static const struct siphash_key keys[] = {{{1}}, {{2}}};
    enum { HASH_BYTES = 1 + 2 * 16, KEPT_BYTES = CLIENT_ORIGIN_BYTES - HASH_BYTES };
    size_t size = strlen(origin);

    if (size <= CLIENT_ORIGIN_BYTES) {
        memcpy(ret_origin, origin, size + 1);
    } else {
        snprintf(ret_origin, CLIENT_ORIGIN_BYTES + 1, "%.*s#%016" PRIx64 "%016" PRIx64,
                 (int)KEPT_BYTES, origin, siphash(&keys[0], origin, size),
                 siphash(&keys[1], origin, size));
    }
}

static void origin_tell(struct shoal_client *client) {
    const struct wire_origin origin = {
        .name = {(const uint8_t *)client->origin, strlen(client->origin)},
        .place = client->options.place};

    client->origin_told_bytes = wire_origin_write(&origin, client->origin_told);
}

int client_new(const struct client_options *options, struct shoal_client **ret_client) {
    struct shoal_client *client;
    int r;

    if (!options->env || !options->rpc || !options->origin ||
        options->inline_bytes_max > INLINE_BYTES_MAX || options->call_bytes_max > CALL_BYTES_MAX ||
        options->call_bytes_max % SEGMENT_BYTES) {
        return -ERR_INVALID;
    }
    client = calloc(1, sizeof *client);
    if (!client) {
        return -ERR_NO_MEMORY;
    }
    client->options = *options;
    origin_copy(options->origin, client->origin);
    client->options.origin = client->origin;
    origin_tell(client);
    options_fill(&client->options);
    r = client_init(client);
    if (r) {
        client_free(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

void client_free(struct shoal_client *client) {
    if (!client) {
        return;
    }
    for (uint32_t i = 0; client->shards && i < CLIENT_SHARDS; i++) {
        shard_deinit(&client->shards[i]);
    }
    free(client->shards);
    free(client->handles);
    index_pool_deinit(&client->handle_pool);
    session_deinit(&client->session);
    router_deinit(&client->router);
    free(client);
}

int client_handle_get(struct shoal_client *client, struct shoal_file **ret_handle) {
    uint32_t index = index_pool_take(&client->handle_pool);

    if (index == INDEX_NONE) {
        return -ERR_TOO_MANY_OPEN;
    }
    *ret_handle = &client->handles[index];
    return 0;
}

void client_handle_put(struct shoal_client *client, struct shoal_file *handle) {
    *handle = (struct shoal_file){0};
    index_pool_put(&client->handle_pool, (uint32_t)(handle - client->handles));
}

static void client_post(struct session *session, struct message *message, uint16_t kind) {
    message->kind = kind;
    message->message_class = MESSAGE_CONTROL;
    actor_post(&session->actor, message);
}

void client_start(struct shoal_client *client, void (*done)(void *context, int result),
                  void *context) {
    client->session.done = done;
    client->session.done_context = context;
    client_post(&client->session, &client->session.start, SESSION_START);
}

void client_tick(struct shoal_client *client) {
    rpc_tick(client->options.rpc);
    if (!atomic_exchange_explicit(&client->session.tick_posted, true, memory_order_acquire)) {
        client_post(&client->session, &client->session.tick, SESSION_TICK);
    }
}

void client_stop(struct shoal_client *client, void (*done)(void *context, int result),
                 void *context) {
    client->session.stop_done = done;
    client->session.stop_context = context;
    client_post(&client->session, &client->session.stop, SESSION_STOP);
}

struct session_id client_session(const struct shoal_client *client) {
    return (struct session_id){atomic_load(&client->session.id)};
}

void client_tell_met(struct shoal_client *client, uint64_t files_user, uint64_t requests_user) {
    atomic_store_explicit(&client->files_user, files_user, memory_order_relaxed);
    atomic_store_explicit(&client->requests_user, requests_user, memory_order_relaxed);
}

bool client_is_fenced(const struct shoal_client *client) {
    return atomic_load_explicit(&client->session.fenced, memory_order_relaxed);
}

const struct cluster_map *client_map(const struct shoal_client *client) {
    return router_map(&client->router);
}

uint32_t client_late_closes(const struct shoal_client *client) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        count += atomic_load_explicit(&client->shards[i].late.count, memory_order_acquire);
    }
    return count;
}

void client_counters_get(const struct shoal_client *client, struct client_counters *ret_counters) {
    struct client_counters sum = {.reattachments = atomic_load(&client->session.reattachments),
                                  .returns = atomic_load(&client->session.returns),
                                  .window_waits = rpc_window_waits(client->options.rpc)};

    for (uint32_t i = 0; i < CLIENT_SHARDS; i++) {
        const struct shard *shard = &client->shards[i];

        sum.requests += atomic_load_explicit(&shard->requests, memory_order_relaxed);
        sum.failures += atomic_load_explicit(&shard->failures, memory_order_relaxed);
        sum.retries += atomic_load_explicit(&shard->retries, memory_order_relaxed);
        sum.reopened += atomic_load_explicit(&shard->reopened, memory_order_relaxed);
        sum.conversions += atomic_load_explicit(&shard->conversions, memory_order_relaxed);
        sum.late_closes += atomic_load_explicit(&shard->late.ever, memory_order_relaxed);
        sum.late_opens += atomic_load_explicit(&shard->late.ever_opens, memory_order_relaxed);
        sum.late_away += atomic_load_explicit(&shard->late.ever_away, memory_order_relaxed);
        sum.piece_waits += atomic_load_explicit(&shard->pieces.wait_count, memory_order_relaxed);
    }
    *ret_counters = sum;
}
