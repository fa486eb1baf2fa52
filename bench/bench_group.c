/* What a metadata operation costs in the group's step, over the real outside and LMDB, in a folder
 * that is given; prints one line of JSON an operation and depth.
 *
 * depth 1: each call is a batch of its own.  depth 32: as many arrive at once, and share a record.
 * CPU is that of the whole process, so sync points and checkpoints are in it. */
#include "env/env_linux.h"
#include "kv/kv_lmdb.h"
#include "layout/cluster_map.h"
#include "meta/group.h"
#include "rpc/worker.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEPTH_MAX = 32, DIRECTORIES = 100, SESSION = 5 };

struct bench {
    struct env *env;
    struct group *group;
    struct worker worker;
    struct actor origin; /* posts a batch from within its step, so that it arrives as one */
    struct message batch_message;
    struct call calls[DEPTH_MAX];
    uint8_t names[DEPTH_MAX][16];
    uint32_t depth;
    uint32_t answered;
    uint64_t term;
    uint64_t sequence;
    struct ino directories[DIRECTORIES];
    uint8_t *bulk;
};

struct kind {
    const char *name;
    uint16_t opcode;
};

static uint64_t clock_read(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t worker_clock(struct worker *worker) {
    (void)worker;
    return clock_read(CLOCK_MONOTONIC);
}

static void answered(struct call *call) {
    struct bench *bench = call->context;

    if (call->result < 0) {
        fprintf(stderr, "%s answers %s\n", wire_name(call->header.opcode), err_name(call->result));
        abort();
    }
    bench->answered++;
}

static void batch_step(struct actor *actor, struct message *first) {
    struct bench *bench = CONTAINER_OF(actor, struct bench, origin);

    (void)first;
    for (uint32_t i = 0; i < bench->depth; i++) {
        actor_post(group_actor(bench->group), &bench->calls[i].message);
    }
}

static void batch_run(struct bench *bench) {
    bench->answered = 0;
    bench->batch_message = (struct message){.kind = 1};
    actor_post(&bench->origin, &bench->batch_message);
    while (bench->answered < bench->depth) {
        if (!worker_run_one(&bench->worker)) {
            (void)env_loop_wait(bench->env, -1, NS_PER_MS);
        }
    }
    (void)env_loop_poll(bench->env);
}

static struct call *prepare(struct bench *bench, uint32_t slot, uint16_t opcode) {
    struct call *call = &bench->calls[slot];

    call->message = (struct message){.kind = CALL_MESSAGE_KIND};
    call->header = (struct call_header){
        .opcode = opcode, .session = {SESSION}, .incarnation = 1, .term = bench->term};
    if (wire_is_mutation(opcode)) {
        call->header.sequence = ++bench->sequence;
        call->header.floor = bench->sequence > DEPTH_MAX ? bench->sequence - DEPTH_MAX : 0;
    }
    call->reply_to = answered;
    call->context = bench;
    call->bulk_in = (struct buffer){.data = bench->bulk, .capacity = MIB};
    return call;
}

static struct bytes name_make(struct bench *bench, uint32_t slot, uint64_t number) {
    int size = snprintf((char *)bench->names[slot], sizeof bench->names[slot], "f%llu",
                        (unsigned long long)number);

    return (struct bytes){bench->names[slot], (size_t)size};
}

static void fill(struct bench *bench, struct call *call, uint32_t slot, uint64_t number) {
    struct ino parent = bench->directories[number % DIRECTORIES];
    struct bytes name = name_make(bench, slot, number);

    switch (call->header.opcode) {
    case OP_CREATE:
        call->request.create = (struct create_request){
            .parent = parent, .name = name, .mode = 0644, .open_flags = OPEN_WRITE};
        break;
    case OP_LOOKUP:
        call->request.lookup = (struct lookup_request){.parent = parent, .name = name};
        break;
    case OP_UNLINK:
        call->request.unlink = (struct unlink_request){.parent = parent, .name = name};
        break;
    case OP_MKNOD:
        call->request.mknod =
            (struct mknod_request){.parent = parent, .name = name, .mode = 0100644};
        break;
    case OP_READDIR:
        call->request.readdir =
            (struct readdir_request){.ino = parent, .bytes_max = MIB, .plus = 1, .cookie = 2};
        break;
    case OP_SETATTR:
        call->request.setattr = (struct setattr_request){
            .ino = parent, .valid = SETATTR_MODE, .mode = 0700 + number % 64};
        break;
    default:
        call->request.getattr = (struct getattr_request){.ino = parent};
    }
}

/* Closes what create has just opened. */
static void close_all(struct bench *bench) {
    for (uint32_t i = 0; i < bench->depth; i++) {
        struct ino ino = bench->calls[i].reply.create.attributes.ino;
        struct call *call = prepare(bench, i, OP_SETTLE);

        call->request.settle =
            (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    }
    batch_run(bench);
}

static void measure(struct bench *bench, const struct kind *kind, uint32_t depth, uint64_t count) {
    uint64_t wall_ns = clock_read(CLOCK_MONOTONIC);
    uint64_t cpu_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t last_tick_ns = wall_ns;

    bench->depth = depth;
    for (uint64_t number = 0; number < count; number += depth) {
        for (uint32_t i = 0; i < depth; i++) {
            fill(bench, prepare(bench, i, kind->opcode), i, number + i);
        }
        batch_run(bench);
        if (kind->opcode == OP_CREATE) {
            close_all(bench);
        }
        uint64_t now_ns = clock_read(CLOCK_MONOTONIC);
        if (now_ns - last_tick_ns > 100 * NS_PER_MS) {
            last_tick_ns = now_ns;
            group_tick(bench->group);
        }
    }
    wall_ns = clock_read(CLOCK_MONOTONIC) - wall_ns;
    cpu_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("{\"name\": \"%s\", \"depth\": %u, \"count\": %llu, \"wall_ns\": %.0f, \"cpu_ns\": "
           "%.0f}\n",
           kind->name, depth, (unsigned long long)count, (double)wall_ns / (double)count,
           (double)cpu_ns / (double)count);
}

static void start(struct bench *bench, const char *folder, struct cluster_map *map) {
    const struct env_linux_options env_options = {.root = folder};
    const struct target_id ost = {2};
    char problem[256];

    cluster_map_single(map, (struct target_id){1}, &ost, 1);
    int r = env_linux_new(&env_options, &bench->env);
    assert(r == 0);
    r = env_thread_enter(bench->env);
    assert(r == 0);
    worker_init(&bench->worker);
    bench->worker.now_ns = worker_clock;
    worker_bind(&bench->worker);
    actor_init(&bench->origin, "origin", batch_step);
    struct group_options options = {
        .env = bench->env,
        .kv = {.directory = "mdt",
               .shared_name = "bench-group-ring",
               .base = &kv_lmdb_ops,
               .root = folder,
               .ring_bytes = 32 * MIB,
               .disk_log_bytes = 512 * MIB,
               .changes_bytes_max = 512 * MIB,
               .base_memory_bytes = 4 * GIB,
               .sync_interval_ns = NS_PER_S},
        .map = map,
        .target = {1},
        .root_mode = 0755,
        .default_layout = {.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1},
    };
    uint64_t id = clock_read(CLOCK_REALTIME);
    memcpy(options.kv.owner_id, &id, sizeof id);
    (void)bench->env->ops->shared_remove(bench->env, options.kv.shared_name); /* of a killed run */
    r = group_open(&options, &bench->group, problem);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", err_name(r), problem);
        abort();
    }
    bench->depth = 1;
    /* The manager's list of the ended, without which nobody is attached. */
    struct call *call = prepare(bench, 0, OP_SESSIONS_ENDED);
    call->request.sessions_ended.number = 1;
    batch_run(bench);
    call = prepare(bench, 0, OP_SESSION_ATTACH);
    call->request.session_attach =
        (struct session_attach_request){.session = SESSION, .incarnation = 1, .node = 1};
    batch_run(bench);
    bench->term = call->reply.session_attach.term;
    for (uint32_t i = 0; i < DIRECTORIES; i++) {
        call = prepare(bench, 0, OP_MKDIR);
        call->request.mkdir = (struct mkdir_request){
            .parent = INO_ROOT, .name = name_make(bench, 0, i), .mode = 0755};
        batch_run(bench);
        bench->directories[i] = call->reply.mkdir.attributes.ino;
    }
}

static void stopped(void *context, int result) {
    assert(result == 0);
    *(bool *)context = true;
}

static void stop(struct bench *bench) {
    bool done = false;

    group_stop_start(bench->group, stopped, &done);
    while (!done) {
        (void)worker_run_one(&bench->worker);
        (void)env_loop_wait(bench->env, -1, NS_PER_MS);
        group_tick(bench->group);
    }
    group_close(bench->group);
}

int main(int argc, char **argv) {
    static const struct kind kinds[] = {
        {"mknod", OP_MKNOD},   {"lookup", OP_LOOKUP},       {"getattr", OP_GETATTR},
        {"unlink", OP_UNLINK}, {"create+close", OP_CREATE}, {"readdir", OP_READDIR},
        {"unlink", OP_UNLINK}, {"chmod", OP_SETATTR},
    };
    static struct cluster_map map;
    static struct bench bench;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 200000;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_group FOLDER [COUNT]\n");
        return 2;
    }
    bench.bulk = malloc(MIB);
    assert(bench.bulk);
    start(&bench, argv[1], &map);
    for (uint32_t depth = DEPTH_MAX; depth > 0; depth = depth == DEPTH_MAX ? 1 : 0) {
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
            uint64_t rounds = kinds[i].opcode == OP_READDIR ? count / 1000 : count;

            measure(&bench, &kinds[i], depth, MAX(rounds / depth, UINT64_C(1)) * depth);
        }
    }
    stop(&bench);
    worker_bind(NULL);
    env_thread_leave(bench.env);
    env_linux_free(bench.env);
    free(bench.bulk);
    return 0;
}
