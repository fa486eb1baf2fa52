/* The operations of each phase of a benchmark. */
#include "cmd/bench/bench_internal.h"
#include "host/machine.h"
#include <inttypes.h>
#include <stdio.h>

static const struct bench_files *files_of(const struct bench_worker *worker) {
    return worker->run->files;
}

static const struct bench_options *options_of(const struct bench_worker *worker) {
    return worker->run->options;
}

size_t bench_folder_print(const struct bench_options *options, uint64_t index, char *path,
                          size_t size) {
    size_t at = 0;

    if (options->branch > 0) {
        at = (size_t)snprintf(path, size, BENCH_PARENT, index / options->branch);
        at += (size_t)snprintf(path + at, size - at, "/");
    }
    return at + (size_t)snprintf(path + at, size - at, "d%" PRIu64, index);
}

static void path_set(struct bench_worker *worker, char *path, char letter, uint64_t index) {
    const struct bench_options *options = options_of(worker);
    size_t at = bench_folder_print(options, index % options->dirs, path, BENCH_PATH_BYTES);

    snprintf(path + at, BENCH_PATH_BYTES - at, "/%c%" PRIu64, letter, index);
}

/* The index that comes at this place of an order that no read-ahead guesses. */
static uint64_t scattered(const struct bench_worker *worker, uint64_t index) {
    return worker->first + (index - worker->first) * BENCH_SCATTER_PRIME % worker->count;
}

static uint64_t count_files(const struct bench_options *options) {
    return options->files;
}

static uint64_t count_dirs(const struct bench_options *options) {
    return options->dirs;
}

static uint64_t count_threads(const struct bench_options *options) {
    return options->threads;
}

static uint64_t count_rounds(const struct bench_options *options) {
    return (uint64_t)options->threads * BENCH_SAVE_ROUNDS;
}

static uint64_t count_blocks(const struct bench_options *options) {
    return bench_thread_bytes(options) / BENCH_BLOCK_BYTES * options->threads;
}

static uint64_t count_endless(const struct bench_options *options) {
    (void)options;
    return UINT64_MAX;
}

/* meta */

static int file_open_close(struct bench_worker *worker, unsigned flags) {
    uint64_t begun_ns = machine_clock_ns();
    union bench_file file;
    int r = files_of(worker)->open(worker->place, worker->path, flags, &file);

    if (r == 0) {
        r = files_of(worker)->close(worker->place, file);
    }
    if (r == 0) {
        bench_worker_add(worker, begun_ns, 0);
    }
    return r;
}

static int meta_create(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 'f', index);
    return file_open_close(worker, PLAIN_FILE_WRITE | PLAIN_FILE_CREATE);
}

static int meta_open(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 'f', scattered(worker, index));
    return file_open_close(worker, PLAIN_FILE_READ);
}

static int timed(struct bench_worker *worker, int (*call)(void *place, const char *path)) {
    uint64_t begun_ns = machine_clock_ns();
    int r = call(worker->place, worker->path);

    if (r == 0) {
        bench_worker_add(worker, begun_ns, 0);
    }
    return r;
}

static int meta_stat(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 'f', scattered(worker, index));
    return timed(worker, files_of(worker)->stat);
}

static int meta_unlink(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 'f', index);
    return timed(worker, files_of(worker)->unlink);
}

static int meta_mkdir(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 's', index);
    return timed(worker, files_of(worker)->mkdir);
}

static int meta_rmdir(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 's', index);
    return timed(worker, files_of(worker)->rmdir);
}

static int meta_rename(struct bench_worker *worker, uint64_t index) {
    int r = 0;

    path_set(worker, worker->path, 'f', index);
    path_set(worker, worker->other, 'r', index);
    for (int back = 0; r == 0 && back < 2; back++) {
        uint64_t begun_ns = machine_clock_ns();

        r = files_of(worker)->rename(worker->place, back ? worker->other : worker->path,
                                     back ? worker->path : worker->other);
        if (r == 0) {
            bench_worker_add(worker, begun_ns, 0);
        }
    }
    return r;
}

static int meta_list(struct bench_worker *worker, uint64_t index) {
    uint64_t begun_ns = machine_clock_ns();
    uint64_t count = 0;

    bench_folder_print(options_of(worker), index, worker->path, sizeof worker->path);
    struct buffer piece = {worker->buffer, 0, options_of(worker)->listing_bytes};
    int r = files_of(worker)->list(worker->place, worker->path, piece, &count);
    if (r == 0) {
        bench_worker_add(worker, begun_ns, 0);
        worker->operations += count - 1; /* adding counted one */
    }
    return r;
}

/* small */

static int file_transfer(struct bench_worker *worker, union bench_file file, uint64_t size,
                         bool writes) {
    int r = 0;

    for (uint64_t at = 0; r == 0 && at < size; at += BENCH_BLOCK_BYTES) {
        struct bench_piece piece = {.data = worker->buffer,
                                    .size = (size_t)MIN(size - at, (uint64_t)BENCH_BLOCK_BYTES),
                                    .offset = at};

        r = writes ? files_of(worker)->write(worker->place, file, &piece)
                   : files_of(worker)->read(worker->place, file, &piece);
    }
    return r;
}

/* Opens, moves all bytes, makes them durable when asked to, closes. */
static int file_whole(struct bench_worker *worker, uint64_t size, bool writes, bool syncs) {
    void *place = worker->place;
    unsigned flags = writes ? PLAIN_FILE_WRITE | PLAIN_FILE_CREATE : PLAIN_FILE_READ;
    union bench_file file;
    int r = files_of(worker)->open(place, worker->path, flags, &file);

    if (r < 0) {
        return r;
    }
    r = file_transfer(worker, file, size, writes);
    if (r == 0 && syncs) {
        r = files_of(worker)->fsync(place, file);
    }
    int closed = files_of(worker)->close(place, file);
    return r == 0 ? closed : r;
}

static int small_write(struct bench_worker *worker, uint64_t index) {
    uint64_t begun_ns = machine_clock_ns();
    uint64_t size = options_of(worker)->size_bytes;

    path_set(worker, worker->path, 'f', index);
    int r = file_whole(worker, size, true, false);
    if (r == 0) {
        bench_worker_add(worker, begun_ns, size);
    }
    return r;
}

static int small_read(struct bench_worker *worker, uint64_t index) {
    uint64_t begun_ns = machine_clock_ns();
    uint64_t size = options_of(worker)->size_bytes;

    path_set(worker, worker->path, 'f', scattered(worker, index));
    int r = file_whole(worker, size, false, false);
    if (r == 0) {
        bench_worker_add(worker, begun_ns, size);
    }
    return r;
}

/* big: the worker's file is open from begin to end */

static int big_open(struct bench_worker *worker, unsigned flags) {
    flags |= options_of(worker)->direct ? PLAIN_FILE_DIRECT : 0;
    path_set(worker, worker->path, 'f', worker->index);
    int r = files_of(worker)->open(worker->place, worker->path, flags, &worker->file);

    worker->has_file = r == 0;
    return r;
}

static int big_open_write(struct bench_worker *worker) {
    return big_open(worker, PLAIN_FILE_WRITE | PLAIN_FILE_CREATE);
}

static int big_open_read(struct bench_worker *worker) {
    return big_open(worker, PLAIN_FILE_READ);
}

static int big_close(struct bench_worker *worker) {
    return worker->has_file ? files_of(worker)->close(worker->place, worker->file) : 0;
}

/* A stream that was written ends on the disk, and that belongs to its time. */
static int big_sync_close(struct bench_worker *worker) {
    int r = worker->has_file ? files_of(worker)->fsync(worker->place, worker->file) : 0;
    int closed = big_close(worker);

    return r == 0 ? closed : r;
}

static int big_move(struct bench_worker *worker, uint64_t offset, size_t size, bool writes) {
    uint64_t begun_ns = machine_clock_ns();
    struct bench_piece piece = {.data = worker->buffer, .size = size, .offset = offset};
    int r = writes ? files_of(worker)->write(worker->place, worker->file, &piece)
                   : files_of(worker)->read(worker->place, worker->file, &piece);

    if (r == 0) {
        bench_worker_add(worker, begun_ns, size);
    }
    return r;
}

static int big_write(struct bench_worker *worker, uint64_t index) {
    return big_move(worker, (index - worker->first) * BENCH_BLOCK_BYTES, BENCH_BLOCK_BYTES, true);
}

static int big_read(struct bench_worker *worker, uint64_t index) {
    return big_move(worker, (index - worker->first) * BENCH_BLOCK_BYTES, BENCH_BLOCK_BYTES, false);
}

static uint64_t random_offset(struct bench_worker *worker) {
    uint64_t blocks = bench_thread_bytes(options_of(worker)) / BENCH_BLOCK_BYTES;
    uint64_t count =
        MAX(MIN(blocks, worker->made), UINT64_C(1)) * (BENCH_BLOCK_BYTES / BENCH_RANDOM_BYTES);

    return prng_below(&worker->prng, count) * BENCH_RANDOM_BYTES;
}

static int big_randread(struct bench_worker *worker, uint64_t index) {
    (void)index;
    return big_move(worker, random_offset(worker), BENCH_RANDOM_BYTES, false);
}

static int big_randwrite(struct bench_worker *worker, uint64_t index) {
    (void)index;
    return big_move(worker, random_offset(worker), BENCH_RANDOM_BYTES, true);
}

/* checkpoint */

/* As training frameworks do: a temporary name, on the disk, then the name. */
static int saved(struct bench_worker *worker, uint64_t index, uint64_t size) {
    uint64_t begun_ns = machine_clock_ns();

    path_set(worker, worker->other, 'f', index);
    path_set(worker, worker->path, 't', index);
    int r = file_whole(worker, size, true, true);
    if (r == 0) {
        r = files_of(worker)->rename(worker->place, worker->path, worker->other);
    }
    if (r == 0) {
        bench_worker_add(worker, begun_ns, size);
    }
    return r;
}

static int checkpoint_save(struct bench_worker *worker, uint64_t index) {
    (void)index;
    return saved(worker, worker->index, bench_thread_bytes(options_of(worker)));
}

static int checkpoint_restore(struct bench_worker *worker, uint64_t index) {
    uint64_t begun_ns = machine_clock_ns();
    uint64_t size = bench_thread_bytes(options_of(worker));

    (void)index;
    path_set(worker, worker->path, 'f', worker->index);
    int r = file_whole(worker, size, false, false);
    if (r == 0) {
        bench_worker_add(worker, begun_ns, size);
    }
    return r;
}

/* Names behind those of the big files. */
static int checkpoint_commit(struct bench_worker *worker, uint64_t index) {
    (void)index;
    return saved(worker, (uint64_t)options_of(worker)->threads + worker->index, BENCH_COMMIT_BYTES);
}

static int checkpoint_drop(struct bench_worker *worker, uint64_t index) {
    (void)index;
    path_set(worker, worker->path, 'f', worker->index);
    int r = timed(worker, files_of(worker)->unlink);

    path_set(worker, worker->path, 'f', (uint64_t)options_of(worker)->threads + worker->index);
    if (r == 0) {
        r = timed(worker, files_of(worker)->unlink);
    }
    return r == -ERR_NOT_FOUND ? 0 : r; /* A phase that was not asked for has made nothing. */
}

static int big_erase(struct bench_worker *worker, uint64_t index) {
    path_set(worker, worker->path, 'f', index);
    return timed(worker, files_of(worker)->unlink);
}

static const struct bench_phase meta_phases[] = {
    {.count = count_files, .operation = meta_create, .makes = true},
    {.count = count_files, .operation = meta_stat},
    {.count = count_files, .operation = meta_open},
    {.count = count_files, .operation = meta_rename},
    {.count = count_dirs, .operation = meta_list},
    {.count = count_files, .operation = meta_unlink},
    {.count = count_files, .operation = meta_mkdir, .makes = true},
    {.count = count_files, .operation = meta_rmdir},
};
static const struct bench_phase small_phases[] = {
    {.count = count_files, .operation = small_write, .makes = true},
    {.count = count_files, .operation = small_read},
    {.count = count_files, .operation = meta_unlink},
};
static const struct bench_phase big_phases[] = {
    {count_blocks, big_write, big_open_write, big_sync_close, true},
    {count_blocks, big_read, big_open_read, big_close, false},
    {count_endless, big_randread, big_open_read, big_close, false},
    {count_endless, big_randwrite, big_open_write, big_sync_close, false},
    {.count = count_threads, .operation = big_erase},
};
static const struct bench_phase checkpoint_phases[] = {
    {.count = count_rounds, .operation = checkpoint_save},
    {.count = count_threads, .operation = checkpoint_restore},
    {.count = count_files, .operation = checkpoint_commit},
    {.count = count_threads, .operation = checkpoint_drop},
};
const struct bench_phase *const bench_phases[BENCH_KINDS] = {
    [BENCH_META] = meta_phases,
    [BENCH_SMALL] = small_phases,
    [BENCH_BIG] = big_phases,
    [BENCH_CHECKPOINT] = checkpoint_phases,
};
