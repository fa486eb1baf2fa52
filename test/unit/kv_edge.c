/* See kv_edge.h. */
#include "unit.h"
#include "base/crc32c.h"
#include "kv_edge.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wake(void *context) {
    ((struct edge *)context)->woken = true;
}

static void log_line(void *context, const char *line) {
    struct edge *edge = context;

    (void)snprintf(edge->line, sizeof edge->line, "%s", line);
}

int edge_open(struct edge *edge) {
    edge->line[0] = '\0';
    return kv_open(&edge->options, &edge->kv, edge->problem);
}

struct edge *edge_with_log(uint64_t seed, uint64_t disk_log_bytes) {
    const struct kv_mem_options store = {.cold_denominator = 1};
    struct edge *edge = calloc(1, sizeof *edge);

    assert_non_null(edge);
    prng_init(&edge->prng, seed);
    assert_int_equal(memory_env_new(seed, &edge->world), 0);
    assert_int_equal(kv_mem_store_new(&store, &edge->store), 0);
    edge->options = (struct kv_options){
        .env = memory_env_env(edge->world),
        .directory = "t",
        .shared_name = "ring",
        .base = &kv_mem_ops,
        .base_store = edge->store,
        .owner_id = "0123456789abcde",
        .ring_bytes = EDGE_RING_BYTES,
        .disk_log_bytes = disk_log_bytes,
        .changes_bytes_max = 512 * KIB,
        .sync_interval_ns = NS_PER_S,
        .outcomes_max = 64,
        .hooks = {.wake = wake},
        .hook_context = edge,
        .log = log_line,
        .log_context = edge,
    };
    assert_int_equal(edge_open(edge), 0);
    return edge;
}

struct edge *edge_new(uint64_t seed) {
    return edge_with_log(seed, 8 * EDGE_RING_BYTES);
}

void edge_free(struct edge *edge) {
    kv_abandon(edge->kv);
    kv_mem_store_free(edge->store);
    memory_env_free(edge->world);
    free(edge);
}

void edge_check(struct edge *edge) {
    char problem[256];

    if (!kv_check(edge->kv, problem)) {
        fail_msg("%s", problem);
    }
}

void edge_turn(struct edge *edge, uint64_t ns) {
    memory_env_advance(edge->world, ns);
    for (int steps = 0; steps == 0 || (edge->woken && steps < EDGE_TURNS_MAX); steps++) {
        edge->woken = false;
        (void)memory_env_pump(edge->world, 8);
        kv_step(edge->kv);
    }
    edge_check(edge);
}

void edge_kill(struct edge *edge) {
    memory_env_kill(edge->world);
    kv_abandon(edge->kv);
    edge->kv = NULL;
}

struct kv_key edge_key(uint64_t id) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT, .type = 'T', .id = id});
}

struct kv_need edge_need(size_t value_bytes) {
    return (struct kv_need){.rows = 1,
                            .value_bytes = (uint32_t)value_bytes,
                            .record_bytes = (uint32_t)(KV_ROW_RECORD_BYTES + value_bytes)};
}

const uint8_t edge_content[KV_VALUE_BYTES_MAX] = {1};

int edge_put(struct edge *edge, enum kv_class message_class, uint64_t id, size_t size) {
    const struct kv_need need = edge_need(size);
    struct kv_key key = edge_key(id);
    struct kv_grant grant;
    int r = kv_admit(edge->kv, message_class, &need, &grant);

    if (r == 0) {
        kv_begin(edge->kv, &grant);
        assert_int_equal(kv_put(edge->kv, &key, (struct bytes){edge_content, size}), 0);
        (void)kv_commit(edge->kv);
    }
    return r;
}

int edge_outcome(struct edge *edge, uint64_t session, uint64_t sequence, uint64_t floor) {
    const struct kv_need need = {.session = {session}, .floor = floor};
    const struct kv_outcome outcome = {.session = {session}, .sequence = sequence, .floor = floor};
    struct kv_grant grant;
    int r = kv_admit(edge->kv, KV_CLASS_REQUEST, &need, &grant);

    if (r == 0) {
        kv_begin(edge->kv, &grant);
        assert_int_equal(kv_outcome_put(edge->kv, &outcome), 0);
        (void)kv_commit(edge->kv);
        (void)kv_seal(edge->kv);
    }
    return r;
}

bool edge_has(struct edge *edge, uint64_t id) {
    struct kv_key key = edge_key(id);
    struct bytes value;

    return kv_get(edge->kv, &key, &value) == 0;
}

void edge_settle(struct edge *edge, bool checkpoint) {
    struct kv_counters now;

    kv_counters_get(edge->kv, &now);
    uint64_t checkpoints = now.checkpoints + (checkpoint ? 1 : 0);
    for (int i = 0; i < EDGE_TURNS_MAX; i++) {
        kv_counters_get(edge->kv, &now);
        if (kv_synced_position(edge->kv) == kv_position(edge->kv) &&
            now.checkpoints >= checkpoints) {
            return;
        }
        edge_turn(edge, 100 * NS_PER_MS);
    }
    fail_msg("it never settles");
}

void edge_goes_on(struct edge *edge, enum kv_class message_class, uint64_t id) {
    int r = -ERR_PENDING;

    for (int turn = 0; turn < 100 && r < 0; turn++) {
        r = edge_put(edge, message_class, id, 64);
        edge_turn(edge, 100 * NS_PER_MS);
    }
    assert_int_equal(r, 0);
}

static void stopped(void *context, int result) {
    *(int *)context = result;
}

int edge_stop(struct edge *edge) {
    int result = 1;

    kv_stop_start(edge->kv, stopped, &result);
    for (int i = 0; i < EDGE_TURNS_MAX && result == 1; i++) {
        edge_turn(edge, 100 * NS_PER_MS);
    }
    return result;
}

uint8_t *edge_region(struct edge *edge, struct env_shared **ret_shared) {
    struct env *env = edge->options.env;
    uint64_t size;
    bool created;

    assert_int_equal(env->ops->shared_size(env, "ring", &size), 0);
    assert_int_equal(env->ops->shared_open(env, "ring", size, ret_shared, &created), 0);
    return env->ops->shared_data(*ret_shared);
}

void edge_power(struct edge *edge) {
    edge_kill(edge);
    assert_int_equal(edge->options.env->ops->shared_remove(edge->options.env, "ring"), 0);
}

void edge_superblocks_change(struct edge *edge, void (*change)(struct log_superblock *)) {
    static _Alignas(BLOCK_BYTES) uint8_t block[BLOCK_BYTES];
    struct env *env = edge->options.env;
    struct log_superblock superblock;
    struct env_file *file;

    assert_int_equal(env->ops->file_open(env, "t/log", ENV_FILE_DIRECT, &file), 0);
    for (uint64_t i = 0; i < 2; i++) {
        struct env_io io = {.kind = ENV_IO_READ,
                            .file = file,
                            .offset = i * BLOCK_BYTES,
                            .buffer = block,
                            .size = BLOCK_BYTES};

        assert_int_equal(env->ops->io_run(env, &io), 0);
        memcpy(&superblock, block, sizeof superblock);
        change(&superblock);
        superblock.crc = 0;
        superblock.crc = crc32c(
            0, &superblock, superblock.format == 1 ? LOG_SUPERBLOCK_BYTES_OF_1 : sizeof superblock);
        memcpy(block, &superblock, sizeof superblock);
        io.kind = ENV_IO_WRITE;
        assert_int_equal(env->ops->io_run(env, &io), 0);
    }
    env->ops->file_close(file);
}
