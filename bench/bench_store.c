/* What an OST costs on the real outside: one thread that calls, serves and polls.
 *
 *     bench_store FOLDER [ROW]
 *
 * Each row writes or reads chunks of one file, `depth` calls at a time, and prints a line of JSON:
 * wall time and CPU time (user and system, all threads) an operation, and bytes a second. The
 * target is made anew in FOLDER, which is empty, with LMDB below. ROW: only
 * rows of this name. */
#include "base/crc32c.h"
#include "base/prng.h"
#include "env/env_linux.h"
#include "kv/kv_lmdb.h"
#include "rpc/call.h"
#include "rpc/worker.h"
#include "store/ost.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1024 * 1024, DEPTH_MAX = 64, SESSION = 1, INCARNATION = 1 };

struct row {
    const char *name;
    uint16_t opcode;
    uint32_t size;
    uint32_t depth;
    uint32_t count;
    uint64_t span_bytes; /* of the file that is used */
    bool at_random;
    uint32_t shift; /* of the caller's memory */
};

struct slot_call {
    struct call call;
    uint8_t *memory;
    uint32_t checksums[CHUNK / BLOCK_BYTES + 1];
    bool busy;
};

static struct env *env;
static struct ost *ost;
static struct worker worker;
static struct slot_call calls[DEPTH_MAX];
static struct prng prng;
static uint64_t sequence;
static uint64_t answered;
static uint64_t written_bytes;

static uint64_t clock_of(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t worker_clock_ns(struct worker *of) {
    (void)of;
    return clock_of(CLOCK_MONOTONIC);
}

static void replied(struct call *call) {
    struct slot_call *mine = CONTAINER_OF(call, struct slot_call, call);

    if (call->result < 0) {
        fprintf(stderr, "bench_store: %s\n", err_text(call->result));
        exit(1);
    }
    mine->busy = false;
    answered++;
}

static void turn(bool wait) {
    while (worker_run_one(&worker)) {
    }
    if (wait) {
        (void)env_loop_wait(env, -1, NS_PER_MS);
    } else {
        (void)env_loop_poll(env);
    }
}

static void call_post(struct slot_call *mine, uint16_t opcode) {
    mine->call.message =
        (struct message){.kind = CALL_MESSAGE_KIND, .message_class = wire_class(opcode)};
    mine->call.header.opcode = opcode;
    mine->call.header.message_class = wire_class(opcode);
    mine->call.header.session.value = SESSION;
    mine->call.header.incarnation = INCARNATION;
    mine->call.reply_to = replied;
    mine->busy = true;
    actor_post(ost_actor(ost), &mine->call.message);
}

static void call_alone(struct slot_call *mine, uint16_t opcode) {
    call_post(mine, opcode);
    while (mine->busy) {
        turn(true);
        ost_tick(ost);
    }
}

static void row_start(const struct row *row, struct slot_call *mine, uint64_t index) {
    uint64_t places = row->span_bytes / row->size;
    uint64_t place = row->at_random ? prng_below(&prng, places) : index % places;
    uint64_t offset = place * row->size;
    struct capability capability = {.ino = {77},
                                    .generation = 1,
                                    .rights = RIGHT_READ | RIGHT_WRITE,
                                    .max_offset = FILE_BYTES_MAX,
                                    .session = SESSION,
                                    .session_incarnation = INCARNATION};
    uint8_t *memory = mine->memory + row->shift;
    uint32_t block_count = (row->size + BLOCK_BYTES - 1) / BLOCK_BYTES;

    mine->call = (struct call){.checksums = mine->checksums, .checksum_count = block_count};
    if (row->opcode == OP_CHUNK_READ) {
        mine->call.request.chunk_read = (struct chunk_read_request){
            capability, offset / CHUNK, CHUNK, (uint32_t)(offset % CHUNK), row->size, 0};
        mine->call.bulk_in = (struct buffer){memory, 0, row->size};
    } else {
        mine->call.request.chunk_write = (struct chunk_write_request){
            capability, offset / CHUNK, CHUNK, (uint32_t)(offset % CHUNK), row->size};
        mine->call.bulk_out[0] = (struct bytes){memory, row->size};
        mine->call.bulk_out_count = 1;
        mine->call.header.sequence = ++sequence;
        mine->call.header.floor = sequence > DEPTH_MAX ? sequence - DEPTH_MAX : 0;
        for (uint32_t i = 0; i < block_count; i++) {
            uint32_t part = MIN((uint32_t)BLOCK_BYTES, row->size - i * BLOCK_BYTES);

            mine->checksums[i] = crc32c(0, memory + (size_t)i * BLOCK_BYTES, part);
        }
        written_bytes += row->size;
    }
    call_post(mine, row->opcode);
}

static void row_run(const struct row *row) {
    struct kv_counters before;
    struct kv_counters after;
    uint64_t started = 0;
    uint64_t next_tick = 0;

    kv_counters_get(ost_kv(ost), &before);
    answered = 0;
    uint64_t wall = clock_of(CLOCK_MONOTONIC);
    uint64_t cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    while (answered < row->count) {
        for (uint32_t i = 0; i < row->depth && started < row->count; i++) {
            if (!calls[i].busy) {
                row_start(row, &calls[i], started++);
            }
        }
        if (started - answered == row->depth || started == row->count) {
            turn(started > answered);
        }
        if (answered >= next_tick) {
            ost_tick(ost);
            next_tick = answered + 1024;
        }
    }
    wall = clock_of(CLOCK_MONOTONIC) - wall;
    cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    kv_counters_get(ost_kv(ost), &after);
    printf("{\"name\": \"%s\", \"size\": %u, \"depth\": %u, \"us\": %.2f, \"cpu_us\": %.2f, "
           "\"mib_s\": %.0f, \"log_bytes\": %.0f}\n",
           row->name, row->size, row->depth, (double)wall / row->count / 1000,
           (double)cpu / row->count / 1000,
           (double)row->count * row->size / MIB * NS_PER_S / (double)wall,
           (double)(after.record_bytes - before.record_bytes) / row->count);
    fflush(stdout);
    call_alone(&calls[0], OP_SYNC);
}

static void stopped(void *context, int result) {
    *(int *)context = result;
}

static const struct row rows[] = {
    {"write", OP_CHUNK_WRITE, CHUNK, 8, 1024, 512 * MIB, false, 0},
    {"overwrite", OP_CHUNK_WRITE, CHUNK, 8, 1024, 512 * MIB, false, 0},
    {"overwrite, memory not aligned", OP_CHUNK_WRITE, CHUNK, 8, 512, 512 * MIB, false, 16},
    {"read", OP_CHUNK_READ, CHUNK, 8, 2048, 512 * MIB, false, 0},
    {"read, memory not aligned", OP_CHUNK_READ, CHUNK, 8, 1024, 512 * MIB, false, 16},
    {"random read", OP_CHUNK_READ, 4096, 32, 100000, 512 * MIB, true, 0},
    {"random read, cached", OP_CHUNK_READ, 4096, 1, 1000000, 16 * MIB, true, 0},
    {"random read, cached", OP_CHUNK_READ, 4096, 1, 1000000, 16 * MIB, true, 0},
    {"random read, cached", OP_CHUNK_READ, 4096, 32, 1000000, 16 * MIB, true, 0},
    {"random overwrite", OP_CHUNK_WRITE, 4096, 1, 100000, 512 * MIB, true, 0},
    {"random overwrite", OP_CHUNK_WRITE, 4096, 32, 200000, 512 * MIB, true, 0},
    {"small file write", OP_CHUNK_WRITE, 32768, 16, 20000, 512 * MIB, false, 0},
    {"small file read", OP_CHUNK_READ, 32768, 16, 20000, 512 * MIB, true, 0},
};

static int target_open(const char *root) {
    struct ost_options target = {
        .env = env,
        .kv = {.directory = "kv",
               .shared_name = "bench_store",
               .base = &kv_lmdb_ops,
               .root = root,
               .ring_bytes = 32 * MIB,
               .ring_data_bytes = 64 * MIB,
               .disk_log_bytes = 512 * MIB,
               .changes_bytes_max = 256 * MIB,
               .base_memory_bytes = GIB,
               .sync_interval_ns = NS_PER_S},
        .data_path = "data",
        .target = {1},
        .data_bytes_max = 4 * GIB,
        .cache_bytes = 64 * MIB,
        .unsigned_allowed = true,
    };
    char problem[256];

    env->ops->random(env, target.kv.owner_id, sizeof target.kv.owner_id);
    (void)env->ops->shared_remove(env, target.kv.shared_name); /* an earlier run was killed */
    int r = ost_open(&target, &ost, problem);
    if (r < 0) {
        fprintf(stderr, "bench_store: %s\n", problem);
    }
    return r;
}

static void take_memory(void) {
    for (size_t i = 0; i < DEPTH_MAX; i++) {
        calls[i].memory = aligned_alloc(BLOCK_BYTES, CHUNK + BLOCK_BYTES);
        assert(calls[i].memory);
        memset(calls[i].memory, (int)i + 1, CHUNK + BLOCK_BYTES);
    }
}

int main(int argc, char **argv) {
    struct env_linux_options options = {.root = argc > 1 ? argv[1] : ".", .spin_ns = 5000};
    int result = 1;
    int r = env_linux_new(&options, &env);

    assert(r == 0);
    r = env_thread_enter(env);
    assert(r == 0);
    worker_init(&worker);
    worker.now_ns = worker_clock_ns;
    worker_bind(&worker);
    prng_init(&prng, 1);
    take_memory();
    if (target_open(options.root) < 0) {
        return 1;
    }
    /* The manager's list of the ended, without which nobody is attached. */
    calls[0].call.request.sessions_ended = (struct sessions_ended_request){.number = 1};
    call_alone(&calls[0], OP_SESSIONS_ENDED);
    calls[0].call.request.session_attach =
        (struct session_attach_request){.session = SESSION, .incarnation = INCARNATION, .node = 1};
    call_alone(&calls[0], OP_SESSION_ATTACH);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (argc < 3 || strcmp(rows[i].name, argv[2]) == 0) {
            row_run(&rows[i]);
        }
    }
    ost_stop_start(ost, stopped, &result);
    while (result > 0) {
        turn(true);
        ost_tick(ost);
    }
    worker_bind(NULL);
    env_thread_leave(env);
    ost_close(ost);
    env_linux_free(env);
    return result < 0;
}
