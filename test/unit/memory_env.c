/* Files, regions and completions in memory. */
#include "memory_env_internal.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists of what is in flight go through the words that are env's own. */
static struct env_job **job_next(struct env_job *job) {
    return (struct env_job **)(void *)&job->work.next;
}

static struct memory_env *world_of(struct env *env) {
    return CONTAINER_OF(env, struct memory_env, env);
}

/* Counts one disk operation; true when the crash has come. */
static bool crash_step(struct memory_env *world) {
    if (world->crash_after == 0) {
        return true;
    }
    if (world->crash_after != UINT64_MAX) {
        world->crash_after--;
    }
    return false;
}

struct env_file *memory_file_find(const struct memory_env *world, const char *path) {
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (world->files[i].path[0] && strcmp(world->files[i].path, path) == 0) {
            return (struct env_file *)(uintptr_t)&world->files[i];
        }
    }
    return NULL;
}

static uint64_t total_size(const struct memory_env *world) {
    uint64_t total = 0;

    for (size_t i = 0; i < FILES_MAX; i++) {
        total += world->files[i].path[0] ? world->files[i].size : 0;
    }
    return total;
}

int memory_file_grow(struct env_file *file, uint64_t size) {
    if (size <= file->size) {
        return 0;
    }
    if (total_size(file->world) - file->size + size > file->world->capacity) {
        return -ERR_NO_SPACE;
    }
    if (size > file->capacity) {
        uint64_t capacity =
            (MAX(size, file->capacity * 2) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        uint64_t blocks = capacity / BLOCK_BYTES;
        uint64_t old_blocks = file->capacity / BLOCK_BYTES;

        file->content = realloc(file->content, capacity);
        file->durable = realloc(file->durable, capacity);
        file->dirty = realloc(file->dirty, blocks * sizeof *file->dirty);
        assert(file->content && file->durable && file->dirty);
        memset(file->content + file->capacity, 0, capacity - file->capacity);
        memset(file->durable + file->capacity, 0, capacity - file->capacity);
        memset(file->dirty + old_blocks, 0, (blocks - old_blocks) * sizeof *file->dirty);
        file->capacity = capacity;
    }
    file->size = size;
    return 0;
}

static uint64_t now_ns(struct env *env) {
    return world_of(env)->now_ns;
}

static uint64_t wall_ns(struct env *env) {
    return UINT64_C(1700000000) * NS_PER_S + world_of(env)->now_ns;
}

static void random_bytes(struct env *env, void *data, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; i++) {
        ((uint8_t *)data)[i] = (uint8_t)prng_next(&world_of(env)->prng);
    }
}

static int file_open(struct env *env, const char *path, unsigned flags,
                     struct env_file **ret_file) {
    struct memory_env *world = world_of(env);
    struct env_file *file = memory_file_find(world, path);

    if (crash_step(world)) {
        return -ERR_CLOSED;
    }
    if (file && (flags & ENV_FILE_EXCLUSIVE)) {
        return -ERR_EXISTS;
    }
    for (size_t i = 0; !file && (flags & ENV_FILE_CREATE) && i < FILES_MAX; i++) {
        if (!world->files[i].path[0]) {
            file = &world->files[i];
            file->world = world;
            assert(strlen(path) < sizeof file->path);
            memcpy(file->path, path, strlen(path) + 1);
        }
    }
    if (!file) {
        return -ERR_NOT_FOUND;
    }
    file->direct = flags & ENV_FILE_DIRECT;
    *ret_file = file;
    return 0;
}

static void file_close(struct env_file *file) {
    (void)file;
}

static int file_space(struct env_file *file, uint64_t *ret_free_bytes) {
    uint64_t capacity = file->world->capacity;
    uint64_t taken = total_size(file->world);

    *ret_free_bytes = capacity == UINT64_MAX ? UINT64_MAX : capacity - MIN(taken, capacity);
    return 0;
}

static int file_size(struct env_file *file, uint64_t *ret_size_bytes) {
    *ret_size_bytes = file->size;
    return 0;
}

void memory_mark_dirty(struct env_file *file, uint64_t offset, size_t size) {
    for (uint64_t block = offset / BLOCK_BYTES; block * BLOCK_BYTES < offset + size; block++) {
        file->dirty[block] = true;
    }
}

void memory_file_flush(struct env_file *file) {
    for (uint64_t block = 0; block * BLOCK_BYTES < file->size; block++) {
        if (file->dirty[block]) {
            memcpy(file->durable + block * BLOCK_BYTES, file->content + block * BLOCK_BYTES,
                   BLOCK_BYTES);
            file->dirty[block] = false;
        }
    }
}

static int room_check(const struct env_io *io) {
    const struct env_file *file = io->file;
    uint64_t size = MAX(file->size, io->offset + io->size);
    uint64_t taken = total_size(file->world) - file->size + size;
    uint64_t capacity = file->world->capacity;

    return io->keep_free_bytes == 0 || size == file->size ||
                   (taken <= capacity && capacity - taken >= io->keep_free_bytes)
               ? 0
               : -ERR_NO_SPACE;
}

static int io_effect(struct env_io *io) {
    struct env_file *file = io->file;
    int r = 0;

    assert(!file->direct || (io->offset % BLOCK_BYTES == 0 && io->size % BLOCK_BYTES == 0));
    switch (io->kind) {
    case ENV_IO_READ:
        if (memory_meets_lost_block(io)) {
            return -ERR_IO;
        }
        io->ret_size = io->offset >= file->size ? 0 : MIN(io->size, file->size - io->offset);
        if (io->ret_size > 0) {
            memcpy(io->buffer, file->content + io->offset, io->ret_size);
        }
        break;
    case ENV_IO_WRITE:
        r = memory_file_grow(file, io->offset + io->size);
        if (r == 0 && io->size > 0) {
            memcpy(file->content + io->offset, io->buffer, io->size);
            memory_mark_dirty(file, io->offset, io->size);
            memory_lost_blocks_heal(io);
        }
        break;
    case ENV_IO_SYNC:
        r = memory_medium_flush(file);
        break;
    case ENV_IO_ALLOCATE:
        memory_late_writes_land(file->world, file);
        r = file->world->refuses_space ? -ERR_NO_SPACE : room_check(io);
        r = r < 0 ? r : memory_file_grow(file, io->offset + io->size);
        break;
    }
    return r;
}

static int io_run(struct env *env, struct env_io *io) {
    return crash_step(world_of(env)) ? -ERR_CLOSED : io_effect(io);
}

static int directory_make(struct env *env, const char *path) {
    (void)path;
    return crash_step(world_of(env)) ? -ERR_CLOSED : 0;
}

static int file_remove(struct env *env, const char *path) {
    struct memory_env *world = world_of(env);
    struct env_file *file = memory_file_find(world, path);

    if (crash_step(world)) {
        return -ERR_CLOSED;
    }
    if (!file) {
        return -ERR_NOT_FOUND;
    }
    free(file->content);
    free(file->durable);
    free(file->dirty);
    *file = (struct env_file){0};
    return 0;
}

static int file_rename(struct env *env, const char *from, const char *to) {
    struct memory_env *world = world_of(env);
    struct env_file *file = memory_file_find(world, from);

    if (world->crash_after == 0) {
        return -ERR_CLOSED;
    }
    if (!file) {
        return -ERR_NOT_FOUND;
    }
    int r = file_remove(env, to);
    if (r == 0 || r == -ERR_NOT_FOUND) {
        memcpy(file->path, to, strlen(to) + 1);
        r = 0;
    }
    return r;
}

static void io_submit(struct env *env, struct env_io *io) {
    struct memory_env *world = world_of(env);

    *io_next(io) = world->ios;
    world->ios = io;
    world->pending++;
}

static void job_submit(struct env *env, struct env_job *job) {
    struct memory_env *world = world_of(env);

    *job_next(job) = world->jobs;
    world->jobs = job;
    world->pending++;
}

static struct env_shared *shared_find(struct memory_env *world, const char *name) {
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (world->shared[i].name[0] && strcmp(world->shared[i].name, name) == 0) {
            return &world->shared[i];
        }
    }
    return NULL;
}

static int shared_open(struct env *env, const char *name, size_t size_bytes,
                       struct env_shared **ret_shared, bool *ret_created) {
    struct memory_env *world = world_of(env);
    struct env_shared *shared = shared_find(world, name);

    if (crash_step(world)) {
        return -ERR_CLOSED;
    }
    *ret_created = !shared || shared->size != size_bytes;
    for (size_t i = 0; !shared && i < FILES_MAX; i++) {
        if (!world->shared[i].name[0]) {
            shared = &world->shared[i];
            memcpy(shared->name, name, strlen(name) + 1);
        }
    }
    if (!shared) {
        return -ERR_NO_MEMORY;
    }
    if (*ret_created) {
        free(shared->data);
        size_t whole = (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;

        shared->data = aligned_alloc(BLOCK_BYTES, whole);
        shared->size = size_bytes;
        assert(shared->data);
        memset(shared->data, 0, whole);
    }
    *ret_shared = shared;
    return 0;
}

static int shared_size(struct env *env, const char *name, uint64_t *ret_size_bytes) {
    const struct env_shared *shared = shared_find(world_of(env), name);

    if (!shared) {
        return -ERR_NOT_FOUND;
    }
    *ret_size_bytes = shared->size;
    return 0;
}

static void *shared_data(struct env_shared *shared) {
    return shared->data;
}

static void shared_close(struct env_shared *shared) {
    (void)shared;
}

static int shared_remove(struct env *env, const char *name) {
    struct env_shared *shared = shared_find(world_of(env), name);

    if (shared) {
        free(shared->data);
        *shared = (struct env_shared){0};
    }
    return 0;
}

static void shared_path(struct env *env, const char *name, size_t size_bytes, char *ret_path) {
    (void)env;
    snprintf(ret_path, size_bytes, "%s", name);
}

static void boot_id(struct env *env, uint8_t ret_id[16]) {
    memset(ret_id, 0, 16);
    memcpy(ret_id, &world_of(env)->boot, sizeof(uint64_t));
}

static void tick_start(struct env *env, struct env_tick *tick) {
    (void)env;
    (void)tick;
}

static void tick_stop(struct env *env, struct env_tick *tick) {
    (void)env;
    (void)tick;
}

static const struct env_ops memory_ops = {
    .now_ns = now_ns,
    .wall_ns = wall_ns,
    .random = random_bytes,
    .file_open = file_open,
    .file_close = file_close,
    .file_size = file_size,
    .file_space = file_space,
    .io_run = io_run,
    .directory_make = directory_make,
    .file_remove = file_remove,
    .file_rename = file_rename,
    .io_submit = io_submit,
    .job_submit = job_submit,
    .shared_open = shared_open,
    .shared_size = shared_size,
    .shared_data = shared_data,
    .shared_close = shared_close,
    .shared_remove = shared_remove,
    .shared_path = shared_path,
    .boot_id = boot_id,
    .tick_start = tick_start,
    .tick_stop = tick_stop,
};

int memory_env_new(uint64_t seed, struct memory_env **ret_world) {
    struct memory_env *world = calloc(1, sizeof *world);

    if (!world) {
        return -ERR_NO_MEMORY;
    }
    world->env.ops = &memory_ops;
    world->now_ns = NS_PER_S;
    world->boot = 1;
    world->crash_after = UINT64_MAX;
    world->capacity = UINT64_MAX;
    prng_init(&world->prng, seed);
    *ret_world = world;
    return 0;
}

void memory_env_free(struct memory_env *world) {
    memory_late_writes_land(world, NULL);
    for (size_t i = 0; i < FILES_MAX; i++) {
        free(world->files[i].content);
        free(world->files[i].durable);
        free(world->files[i].dirty);
        free(world->shared[i].data);
    }
    free(world);
}

struct env *memory_env_env(struct memory_env *world) {
    return &world->env;
}

size_t memory_env_pending(const struct memory_env *world) {
    return world->pending;
}

void memory_env_advance(struct memory_env *world, uint64_t ns) {
    world->now_ns += ns;
}

static void pump_one(struct memory_env *world) {
    size_t chosen = prng_below(&world->prng, world->pending);
    struct env_io **io = &world->ios;
    struct env_job **job = &world->jobs;

    while (*io && chosen > 0) {
        io = io_next(*io);
        chosen--;
    }
    world->pending--;
    if (*io) {
        struct env_io *taken = *io;

        *io = *io_next(taken);
        taken->done(taken, crash_step(world) ? -ERR_CLOSED : io_effect(taken));
        return;
    }
    /* Jobs of a lane keep their order: the oldest is the last of the list. */
    while (*job_next(*job)) {
        job = job_next(*job);
    }
    struct env_job *taken = *job;
    *job = NULL;
    if (!crash_step(world)) {
        taken->run(taken);
        taken->done(taken);
    }
}

size_t memory_env_pump(struct memory_env *world, size_t count) {
    size_t pumped = 0;

    while (pumped < count && world->pending > 0) {
        pump_one(world);
        pumped++;
    }
    return pumped;
}

/* A write in flight may have reached some of its blocks. */
static void drop_in_flight(struct memory_env *world) {
    for (struct env_io *io = world->ios; io; io = *io_next(io)) {
        if (io->kind != ENV_IO_WRITE || world->crash_after == 0 ||
            memory_file_grow(io->file, io->offset + io->size) < 0) {
            continue;
        }
        for (size_t at = 0; at < io->size; at += BLOCK_BYTES) {
            if (prng_chance(&world->prng, 1, 2)) {
                size_t part = MIN(io->size - at, (size_t)BLOCK_BYTES);

                memcpy(io->file->content + io->offset + at, (uint8_t *)io->buffer + at, part);
                memory_mark_dirty(io->file, io->offset + at, part);
            }
        }
    }
    world->ios = NULL;
    world->jobs = NULL;
    world->pending = 0;
    world->crash_after = UINT64_MAX;
}

void memory_env_kill(struct memory_env *world) {
    drop_in_flight(world);
}

static void tear(struct memory_env *world, struct env_file *file, uint64_t block) {
    uint8_t *content = file->content + block * BLOCK_BYTES;
    uint8_t *durable = file->durable + block * BLOCK_BYTES;
    uint64_t fate = prng_below(&world->prng, 4);

    for (size_t at = 0; at < BLOCK_BYTES; at += SECTOR_BYTES) {
        bool keep = fate == 0 || (fate == 1 && prng_chance(&world->prng, 1, 2));

        if (keep) {
            memcpy(durable + at, content + at, SECTOR_BYTES);
        } else {
            memcpy(content + at, durable + at, SECTOR_BYTES);
        }
    }
    file->dirty[block] = false;
}

void memory_env_power(struct memory_env *world) {
    drop_in_flight(world);
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct env_file *file = &world->files[i];

        for (uint64_t block = 0; file->path[0] && block * BLOCK_BYTES < file->size; block++) {
            if (file->dirty[block]) {
                tear(world, file, block);
            }
        }
        free(world->shared[i].data);
        world->shared[i] = (struct env_shared){0};
    }
    world->boot++;
}

void memory_env_crash_after(struct memory_env *world, uint64_t operations) {
    world->crash_after = operations;
}

bool memory_env_is_crashed(const struct memory_env *world) {
    return world->crash_after == 0;
}

void memory_env_capacity(struct memory_env *world, uint64_t bytes) {
    world->capacity = bytes;
}

int memory_env_flip(struct memory_env *world, const char *path, uint64_t offset) {
    struct env_file *file = memory_file_find(world, path);

    if (!file || offset >= file->size) {
        return -ERR_NOT_FOUND;
    }
    uint8_t bit = (uint8_t)(1U << prng_below(&world->prng, 8));
    file->content[offset] ^= bit;
    file->durable[offset] ^= bit;
    return 0;
}

uint64_t memory_env_size(const struct memory_env *world, const char *path) {
    struct env_file *file = memory_file_find(world, path);

    return file ? file->size : 0;
}
