/* The outside that engines see: env's table over the arena. */
#include "kv/kv_base.h"
#include "machine_internal.h"
#include <assert.h>

static struct machine *machine_of(struct env *env) {
    return CONTAINER_OF(env, struct machine, env);
}

static uint64_t now_ns(struct env *env) {
    return machine_of(env)->now_ns;
}

static uint64_t wall_ns(struct env *env) {
    return UINT64_C(1700000000) * NS_PER_S + machine_of(env)->now_ns;
}

static bool is_in_region(const struct arena *arena, const void *at) {
    const uint8_t *first = (const uint8_t *)arena->regions;
    const uint8_t *place = at;

    return place >= first && place < first + sizeof arena->regions;
}

/* What a system call fills lies in no region: a store by the kernel would have no place in the
 * order of stores, and nobody here would see it. */
static void fills(const struct machine *machine, const void *at) {
    assert(!is_in_region(machine->arena, at) && !is_in_region(machine->readable, at));
}

static void random_bytes(struct env *env, void *data, size_t size_bytes) {
    fills(machine_of(env), data);
    for (size_t i = 0; i < size_bytes; i++) {
        ((uint8_t *)data)[i] = (uint8_t)prng_next(&machine_of(env)->prng);
    }
}

static int name_find(const char *first, size_t stride, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(first + i * stride, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int file_find(const struct machine *machine, const char *path) {
    const struct file_state *files = STATE(machine)->files;

    return name_find(files[0].path, sizeof files[0], MACHINE_FILES_MAX, path);
}

static int region_find(const struct machine *machine, const char *name) {
    const struct region_state *regions = STATE(machine)->regions;

    return name_find(regions[0].name, sizeof regions[0], MACHINE_REGIONS_MAX, name);
}

static void name_set(struct machine *machine, char *name, const char *text) {
    char whole[MACHINE_NAME_BYTES] = "";

    assert(strlen(text) < sizeof whole);
    memcpy(whole, text, strlen(text));
    machine_change(machine, name, whole, sizeof whole);
}

uint64_t machine_used_bytes(const struct machine *machine) {
    uint64_t bytes = 0;

    for (unsigned i = 0; i < MACHINE_FILES_MAX; i++) {
        bytes += STATE(machine)->files[i].path[0] ? STATE(machine)->files[i].size : 0;
    }
    for (unsigned i = 0; i < MACHINE_BASES_MAX; i++) {
        bytes += base_bytes(machine, i);
    }
    return bytes;
}

bool file_fits(const struct machine *machine, unsigned file, uint64_t size) {
    uint64_t old = STATE(machine)->files[file].size;

    return size <= old || machine_used_bytes(machine) - old + size <= machine->capacity;
}

/* Bytes that an earlier file left in its place are not the new one's. */
static void file_empty(struct machine *machine, unsigned file) {
    struct file_bytes *bytes = &machine->arena->files[file];
    uint64_t size = STATE(machine)->files[file].size;
    static const uint8_t zeros[BLOCK_BYTES];
    uint64_t nothing = 0;

    for (uint64_t at = 0; at < size; at += BLOCK_BYTES) {
        machine_change(machine, bytes->content + at, zeros, BLOCK_BYTES);
        machine_change(machine, bytes->durable + at, zeros, BLOCK_BYTES);
        machine_change(machine, &bytes->dirty[at / BLOCK_BYTES], &nothing, sizeof nothing);
    }
    machine_change(machine, &STATE(machine)->files[file].size, &nothing, sizeof nothing);
}

static int file_open(struct env *env, const char *path, unsigned flags,
                     struct env_file **ret_file) {
    struct machine *machine = machine_of(env);
    int found = file_find(machine, path);

    machine->open_count++;
    if (found >= 0 && (flags & ENV_FILE_EXCLUSIVE)) {
        return -ERR_EXISTS;
    }
    if (found < 0 && (flags & ENV_FILE_CREATE)) {
        found = file_find(machine, "");
        assert(found >= 0);
        machine_event_add(machine, EVENT_FILE, (uint64_t)found, 1);
        name_set(machine, STATE(machine)->files[found].path, path);
    }
    if (found < 0) {
        return -ERR_NOT_FOUND;
    }
    *ret_file = &machine->files[found];
    return 0;
}

static void file_close(struct env_file *file) {
    (void)file;
}

static int file_size(struct env_file *file, uint64_t *ret_size_bytes) {
    *ret_size_bytes = STATE(file->machine)->files[file->index].size;
    return 0;
}

uint64_t machine_free_bytes(const struct machine *machine) {
    uint64_t used = machine_used_bytes(machine);

    return machine->capacity == UINT64_MAX ? UINT64_MAX
                                           : machine->capacity - MIN(used, machine->capacity);
}

static int file_space(struct env_file *file, uint64_t *ret_free_bytes) {
    *ret_free_bytes = machine_free_bytes(file->machine);
    return 0;
}

static bool fails(struct machine *machine, const struct env_io *io) {
    uint32_t of_1000 = io->kind == ENV_IO_WRITE  ? machine->faults.write_fails
                       : io->kind == ENV_IO_SYNC ? machine->faults.flush_fails
                       : io->kind == ENV_IO_READ ? machine->faults.read_fails
                                                 : 0;

    return of_1000 > 0 && prng_chance(&machine->prng, of_1000, 1000);
}

static int fault_of(const struct machine *machine) {
    return machine->faults.no_space ? -ERR_NO_SPACE : -ERR_IO;
}

static uint32_t write_submit(struct machine *machine, const struct env_io *io) {
    const struct flight flight = {.file = io->file->index,
                                  .offset = io->offset,
                                  .size = (uint32_t)io->size,
                                  .data = machine_keep(machine, io->buffer, io->size)};

    return flight_add(machine, &flight);
}

/* The buffer of a write belongs to the disk until it has ended. */
static int write_end(struct machine *machine, const struct env_io *io, uint32_t flight) {
    const uint8_t *data = machine->old_bytes + machine->flights[flight].data;
    bool well = !fails(machine, io);

    assert(memcmp(data, io->buffer, io->size) == 0);
    if (well && !file_fits(machine, io->file->index, io->offset + io->size)) {
        machine->failure_count++;
        flight_end(machine, flight, false);
        return -ERR_NO_SPACE;
    }
    machine->failure_count += !well;
    flight_end(machine, flight, well);
    return well ? 0 : fault_of(machine);
}

static void read_now(struct machine *machine, struct env_io *io) {
    uint64_t size = STATE(machine)->files[io->file->index].size;

    const uint8_t *content = machine->arena->files[io->file->index].content;
    const bool *written = machine->written[io->file->index];
    uint8_t *to = io->buffer;

    fills(machine, to);
    io->ret_size = io->offset >= size ? 0 : MIN(io->size, (size_t)(size - io->offset));
    for (size_t at = 0; at < io->ret_size;) {
        uint64_t from = io->offset + at;
        uint64_t block = from / BLOCK_BYTES;
        bool zeros = !written[block];

        while (block * BLOCK_BYTES < io->offset + io->ret_size && !written[block] == zeros) {
            block++;
        }
        size_t part = MIN(io->ret_size - at, (size_t)(block * BLOCK_BYTES - from));
        if (zeros) {
            memset(to + at, 0, part);
        } else {
            memcpy(to + at, content + from, part);
        }
        at += part;
    }
}

static int allocate_now(struct machine *machine, const struct env_io *io) {
    struct file_state *file = &STATE(machine)->files[io->file->index];
    uint64_t size = MAX(file->size, io->offset + io->size);
    uint64_t after = machine_used_bytes(machine) - file->size + size;

    assert(size <= MACHINE_FILE_BYTES_MAX);
    if (size == file->size) {
        return 0;
    }
    if (after > machine->capacity || machine->capacity - after < io->keep_free_bytes) {
        return -ERR_NO_SPACE;
    }
    machine_event_add(machine, EVENT_FILE, io->file->index, 2);
    machine_change(machine, &file->size, &size, sizeof size);
    return 0;
}

static int io_end(struct machine *machine, struct env_io *io, const struct pending *pending) {
    switch (io->kind) {
    case ENV_IO_WRITE:
        return write_end(machine, io, pending->flight);
    case ENV_IO_SYNC:
        if (fails(machine, io)) {
            machine->failure_count++;
            return fault_of(machine);
        }
        file_flush(machine, io->file->index, pending->submitted);
        return 0;
    case ENV_IO_ALLOCATE:
        return allocate_now(machine, io);
    default:
        if (fails(machine, io)) {
            return fault_of(machine);
        }
        read_now(machine, io);
        return 0;
    }
}

static struct pending io_begin(struct machine *machine, struct env_io *io) {
    struct pending pending = {.io = io};

    if (io->kind == ENV_IO_WRITE) {
        pending.flight = write_submit(machine, io);
    }
    pending.submitted = machine->event_count;
    return pending;
}

static int io_run(struct env *env, struct env_io *io) {
    struct pending pending = io_begin(machine_of(env), io);

    return io_end(machine_of(env), io, &pending);
}

static void pending_add(struct machine *machine, const struct pending *pending) {
    assert(machine->pending_count < PENDING_MAX);
    machine->pending[machine->pending_count++] = *pending;
}

static void io_submit(struct env *env, struct env_io *io) {
    struct pending pending = io_begin(machine_of(env), io);

    pending_add(machine_of(env), &pending);
}

static void job_submit(struct env *env, struct env_job *job) {
    pending_add(machine_of(env), &(struct pending){.job = job});
}

static int directory_make(struct env *env, const char *path) {
    (void)env;
    (void)path;
    return 0;
}

static int file_remove(struct env *env, const char *path) {
    struct machine *machine = machine_of(env);
    int found = file_find(machine, path);

    if (found < 0) {
        return -ERR_NOT_FOUND;
    }
    machine_event_add(machine, EVENT_FILE, (uint64_t)found, 3);
    file_empty(machine, (unsigned)found);
    name_set(machine, STATE(machine)->files[found].path, "");
    return 0;
}

static int file_rename(struct env *env, const char *from, const char *to) {
    struct machine *machine = machine_of(env);
    int found = file_find(machine, from);
    int target = file_find(machine, to);

    if (found < 0) {
        return -ERR_NOT_FOUND;
    }
    machine_event_add(machine, EVENT_FILE, (uint64_t)found, 4);
    if (target >= 0) {
        file_empty(machine, (unsigned)target);
        name_set(machine, STATE(machine)->files[target].path, "");
    }
    name_set(machine, STATE(machine)->files[found].path, to);
    return 0;
}

static void region_empty(struct machine *machine, unsigned region, uint64_t size) {
    for (uint64_t at = 0; at < size; at += BLOCK_BYTES) {
        const uint8_t *block = machine->arena->regions[region] + at;

        if (machine->filled[region][at / BLOCK_BYTES]) {
            machine_clear(machine, block, BLOCK_BYTES);
            machine->filled[region][at / BLOCK_BYTES] = false;
        }
    }
}

static int shared_open(struct env *env, const char *name, size_t size_bytes,
                       struct env_shared **ret_shared, bool *ret_created) {
    struct machine *machine = machine_of(env);
    int found = region_find(machine, name);
    int place = found >= 0 ? found : region_find(machine, "");
    uint64_t size = size_bytes;

    assert(place >= 0 && size <= MACHINE_REGION_BYTES_MAX);
    struct region_state *region = &STATE(machine)->regions[place];
    *ret_created = found < 0 || region->size != size;
    if (*ret_created) {
        machine_event_add(machine, EVENT_REGION, (uint64_t)place, 1);
        region_empty(machine, (unsigned)place, MAX(size, region->size));
        name_set(machine, region->name, name);
        machine_change(machine, &region->size, &size, sizeof size);
    }
    *ret_shared = &machine->regions[place];
    return 0;
}

static int shared_size(struct env *env, const char *name, uint64_t *ret_size_bytes) {
    int found = region_find(machine_of(env), name);

    if (found < 0) {
        return -ERR_NOT_FOUND;
    }
    *ret_size_bytes = STATE(machine_of(env))->regions[found].size;
    return 0;
}

/* Nothing may be written through it: ring_store finds the other mapping. */
static void *shared_data(struct env_shared *shared) {
    return (void *)(uintptr_t)shared->machine->readable->regions[shared->index];
}

static void shared_close(struct env_shared *shared) {
    (void)shared;
}

static int shared_remove(struct env *env, const char *name) {
    struct machine *machine = machine_of(env);
    int found = region_find(machine, name);

    if (found >= 0) {
        machine_event_add(machine, EVENT_REGION, (uint64_t)found, 2);
        name_set(machine, STATE(machine)->regions[found].name, "");
    }
    return 0;
}

static void shared_path(struct env *env, const char *name, size_t size_bytes, char *ret_path) {
    (void)env;
    (void)snprintf(ret_path, size_bytes, "%s", name);
}

static void boot_id(struct env *env, uint8_t ret_id[16]) {
    fills(machine_of(env), ret_id);
    memset(ret_id, 0, 16);
    memcpy(ret_id, &STATE(machine_of(env))->boot, sizeof(uint64_t));
}

static void tick_start(struct env *env, struct env_tick *tick) {
    (void)env;
    (void)tick;
}

static void tick_stop(struct env *env, struct env_tick *tick) {
    (void)env;
    (void)tick;
}

const struct env_ops machine_ops = {
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

size_t machine_pending(const struct machine *machine) {
    return machine->pending_count;
}

void machine_forget(struct machine *machine) {
    machine->pending_count = 0;
    bases_forget();
}

/* A job that is older and of the same lane goes first. */
static size_t pending_chosen(struct machine *machine) {
    size_t chosen = prng_below(&machine->prng, machine->pending_count);
    const struct env_job *job = machine->pending[chosen].job;

    for (size_t i = 0; job && job->lane == ENV_LANE_WRITE && i < chosen; i++) {
        if (machine->pending[i].job && machine->pending[i].job->lane == job->lane) {
            return i;
        }
    }
    return chosen;
}

size_t machine_pump(struct machine *machine, size_t count) {
    size_t pumped = 0;

    for (; pumped < count && machine->pending_count > 0; pumped++) {
        size_t chosen = pending_chosen(machine);
        struct pending pending = machine->pending[chosen];

        machine->pending_count--;
        memmove(&machine->pending[chosen], &machine->pending[chosen + 1],
                (machine->pending_count - chosen) * sizeof pending);
        if (pending.io) {
            pending.io->done(pending.io, io_end(machine, pending.io, &pending));
        } else {
            pending.job->run(pending.job);
            pending.job->done(pending.job);
        }
    }
    return pumped;
}

const uint8_t *machine_region(const struct machine *machine, const char *name, size_t *ret_size) {
    int found = region_find(machine, name);

    if (found < 0) {
        return NULL;
    }
    *ret_size = (size_t)STATE(machine)->regions[found].size;
    return machine->arena->regions[found];
}

const uint8_t *machine_file(const struct machine *machine, const char *path, size_t *ret_size) {
    int found = file_find(machine, path);

    if (found < 0) {
        return NULL;
    }
    *ret_size = (size_t)STATE(machine)->files[found].size;
    return machine->arena->files[found].content;
}

bool machine_file_is_written(const struct machine *machine, const char *path, uint64_t offset) {
    int found = file_find(machine, path);

    return found >= 0 && machine->written[found][offset / BLOCK_BYTES];
}
