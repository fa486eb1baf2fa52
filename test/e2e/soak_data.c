/* Bytes: one file, all of whose bytes are known. */
#include "soak_load.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, READ_BYTES = 1 << 20 };

enum data_kind { DATA_EQUAL, DATA_SYNC, DATA_MIXED };

enum data_change { CHANGE_NONE, CHANGE_MAKE, CHANGE_WRITE, CHANGE_CUT, CHANGE_REMOVE };

/* `next` is `now` with the change that is under way; both are 0 behind their sizes. */
struct data {
    struct load *load;
    enum data_kind kind;
    size_t length; /* of equal writes */
    int flags;     /* of open */
    int fd;        /* -1: not open */
    size_t capacity;
    uint8_t *now;
    uint8_t *next;
    uint8_t *found;
    bool there;
    bool made; /* its directory */
    size_t size;
    size_t cursor;
    enum data_change change;
    size_t from; /* what the change still covers */
    size_t to;
    size_t next_size;
    char path[LOAD_PATH_BYTES];
};

static int data_close(struct data *data) {
    int64_t result = 0;

    if (data->fd >= 0) {
        load_begin(data->load, 0, 0, "close");
        result = load_end(data->load, close(data->fd));
        data->fd = -1;
    }
    return result < 0 ? (int)result : 0;
}

static int data_open(struct data *data, int flags) {
    if (data->fd < 0) {
        load_begin(data->load, (uint64_t)flags, 0, "open");
        int64_t fd = load_end(data->load, open(data->path, data->flags | flags | O_CLOEXEC, 0600));

        if (fd < 0) {
            return (int)fd;
        }
        data->fd = (int)fd;
    }
    return 0;
}

static void plan_write(struct data *data, size_t from, size_t length) {
    data->change = CHANGE_WRITE;
    data->from = from;
    data->to = from + length;
    data->next_size = data->to > data->size ? data->to : data->size;
    load_fill(data->next + from, length, prng_next(&data->load->prng) | 1);
}

static void plan_cut(struct data *data, size_t size) {
    data->change = CHANGE_CUT;
    data->from = size < data->size ? size : data->size;
    data->to = data->size;
    data->next_size = size;
    memset(data->next + data->from, 0, data->to - data->from);
}

/* The length of a mixed write: any magnitude alike. */
static size_t mixed_length(struct prng *prng) {
    size_t most = (size_t)1 << prng_between(prng, 1, 18);

    return prng_chance(prng, 1, 3) ? most : prng_between(prng, 1, most);
}

static void plan_mixed(struct data *data) {
    struct prng *prng = &data->load->prng;
    size_t length = mixed_length(prng);

    if (prng_chance(prng, 1, 24)) {
        plan_cut(data, prng_below(prng, data->capacity));
        return;
    }
    size_t from = prng_between(prng, 0, data->capacity - length);
    plan_write(data, prng_chance(prng, 1, 2) ? from / BLOCK * BLOCK : from, length);
}

/* Round and round; now and then the blocks are given back at the end of a lap. */
static void plan_equal(struct data *data) {
    struct prng *prng = &data->load->prng;

    if (data->cursor + data->length > data->capacity) {
        data->cursor = 0;
        if (prng_chance(prng, 1, 8)) {
            data->change = CHANGE_REMOVE;
            return;
        }
        if (prng_chance(prng, 1, 8)) {
            plan_cut(data, 0);
            return;
        }
    }
    plan_write(data, data->cursor, data->length);
    data->cursor += data->length;
}

static void plan(struct data *data) {
    if (!data->there) {
        data->change = CHANGE_MAKE;
    } else if (data->kind == DATA_EQUAL) {
        plan_equal(data);
    } else if (data->kind == DATA_MIXED) {
        plan_mixed(data);
    } else {
        uint64_t blocks = data->capacity / data->length;

        plan_write(data, prng_below(&data->load->prng, blocks) * data->length, data->length);
    }
}

/* Nothing is under way any more: it has happened. */
static void data_settle(struct data *data) {
    bool there = data->change != CHANGE_REMOVE;

    if (data->change == CHANGE_MAKE || data->change == CHANGE_REMOVE) {
        memset(data->now, 0, data->capacity);
        memset(data->next, 0, data->capacity);
        data->next_size = 0;
    } else if (data->to > data->from) {
        memcpy(data->now + data->from, data->next + data->from, data->to - data->from);
    }
    data->there = there;
    data->size = data->next_size;
    data->change = CHANGE_NONE;
    load_acknowledge(data->load);
}

static int do_write(struct data *data) {
    while (data->from < data->to) {
        size_t length = data->to - data->from;

        load_begin(data->load, data->from, length, "write");
        int64_t wrote = load_end(
            data->load, pwrite(data->fd, data->next + data->from, length, (off_t)data->from));
        if (wrote <= 0) {
            return wrote == 0 ? load_complain(data->load, "a write of nothing") : (int)wrote;
        }
        memcpy(data->now + data->from, data->next + data->from, (size_t)wrote);
        data->from += (size_t)wrote;
        data->size = data->from > data->size ? data->from : data->size;
    }
    return 0;
}

static int data_sync(struct data *data) {
    load_begin(data->load, 0, 0, "fsync");
    int64_t result = load_end(data->load, fsync(data->fd));

    if (result == 0) {
        load_acknowledge(data->load);
    }
    return (int)result;
}

static int do_change(struct data *data) {
    int result = data_open(data, data->change == CHANGE_MAKE ? O_CREAT : 0);

    if (result != 0) {
        return result;
    }
    if (data->change == CHANGE_WRITE) {
        return do_write(data);
    }
    if (data->change == CHANGE_CUT) {
        load_begin(data->load, data->next_size, 0, "cut");
        return (int)load_end(data->load, ftruncate(data->fd, (off_t)data->next_size));
    }
    if (data->change == CHANGE_REMOVE) {
        result = data_close(data);
        if (result == 0) {
            load_begin(data->load, 0, 0, "unlink");
            result = (int)load_end(data->load, unlink(data->path));
        }
    }
    return result;
}

static bool wants_sync(struct data *data) {
    if (data->fd < 0) {
        return false;
    }
    return data->kind == DATA_SYNC ||
           prng_chance(&data->load->prng, 1, data->kind == DATA_MIXED ? 12 : 200);
}

static int data_step(void *context) {
    struct data *data = context;

    if (data->change == CHANGE_NONE) {
        plan(data);
    }
    int result = do_change(data);
    if (result != 0) {
        return result;
    }
    data_settle(data);
    if (wants_sync(data)) {
        result = data_sync(data);
    }
    return result == 0 && prng_chance(&data->load->prng, 1, 300) ? data_close(data) : result;
}

/* Its size, or a LOAD_. */
static int64_t read_found(struct data *data) {
    struct stat status;
    size_t at = 0;
    int64_t got = 1;

    load_begin(data->load, 0, 0, "stat");
    int64_t result = load_end(data->load, fstat(data->fd, &status));
    if (result < 0) {
        return result;
    }
    if (status.st_size > (off_t)data->capacity) {
        return load_complain(data->load, "its size is %lld", (long long)status.st_size);
    }
    while (at < (size_t)status.st_size && got > 0) {
        size_t rest = data->capacity - at;

        load_begin(data->load, at, rest, "read");
        got = load_end(data->load, pread(data->fd, data->found + at,
                                         rest < READ_BYTES ? rest : READ_BYTES, (off_t)at));
        at += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        return got;
    }
    return at == (size_t)status.st_size ? (int64_t)at
                                        : load_complain(data->load, "it has %zu bytes of %lld", at,
                                                        (long long)status.st_size);
}

static bool is_size_possible(const struct data *data, size_t size) {
    size_t low = data->size;
    size_t high = data->size;

    if (data->change == CHANGE_WRITE) {
        high = data->next_size;
    } else if (data->change == CHANGE_CUT && size == data->next_size) {
        return true;
    }
    return size >= low && size <= high;
}

static int compare_found(struct data *data, size_t size) {
    bool changes = data->change == CHANGE_WRITE || data->change == CHANGE_CUT;

    for (size_t at = 0; at < size; at += BLOCK) {
        size_t length = size - at < BLOCK ? size - at : BLOCK;
        size_t first = 0;
        bool covered = changes && at < data->to && at + length > data->from;

        if (memcmp(data->found + at, data->now + at, length) == 0 ||
            (covered && memcmp(data->found + at, data->next + at, length) == 0)) {
            continue;
        }
        while (data->found[at + first] == data->now[at + first]) {
            first++;
        }
        return load_complain(data->load,
                             "byte %zu is %02x, not %02x; it has %zu bytes; in flight was change "
                             "%d of bytes %zu to %zu",
                             at + first, data->found[at + first], data->now[at + first], size,
                             data->change, data->from, data->to);
    }
    return 0;
}

/* As it was found it is now. */
static void data_adopt(struct data *data, bool there, size_t size) {
    memset(data->found + size, 0, data->capacity - size);
    memcpy(data->now, data->found, data->capacity);
    memcpy(data->next, data->found, data->capacity);
    data->there = there;
    data->size = size;
    data->change = CHANGE_NONE;
}

static int check_there(struct data *data) {
    int64_t size = read_found(data);

    if (size < 0) {
        return (int)size;
    }
    if (!data->there && data->change != CHANGE_MAKE) {
        return load_complain(data->load, "the removed file is there");
    }
    if (!is_size_possible(data, (size_t)size)) {
        return load_complain(data->load, "its size is %lld, not %zu", (long long)size, data->size);
    }
    int result = compare_found(data, (size_t)size);
    if (result == 0) {
        data_adopt(data, true, (size_t)size);
    }
    return result;
}

static int make_directory(struct data *data) {
    if (data->made) {
        return 0;
    }
    load_begin(data->load, 0, 0, "mkdir");
    load_may_fail(data->load, EEXIST);
    int64_t result = load_end(data->load, mkdir(data->load->directory, 0700));
    data->made = result == 0 || (result == LOAD_WRONG && data->load->problem[0] == 0);
    return data->made ? 0 : (int)result;
}

static int data_check(void *context) {
    struct data *data = context;
    int result = data_close(data);

    if (result == 0 || result == LOAD_DEAD) {
        result = make_directory(data);
    }
    if (result != 0) {
        return result;
    }
    load_begin(data->load, 0, 0, "open to check");
    load_may_fail(data->load, ENOENT);
    int64_t fd = load_end(data->load, open(data->path, O_RDONLY | O_DIRECT | O_CLOEXEC));
    if (fd == LOAD_WRONG && data->load->problem[0] == 0) {
        if (data->there && data->change != CHANGE_REMOVE) {
            return load_complain(data->load, "its file is gone");
        }
        data_adopt(data, false, 0);
        return 0;
    }
    if (fd < 0) {
        return (int)fd;
    }
    data->fd = (int)fd;
    result = check_there(data);
    int closed = data_close(data);
    return result == 0 ? closed : result;
}

static bool choose_kind(struct data *data, const char *kind) {
    static const struct {
        const char *name;
        enum data_kind kind;
        size_t length;
        int flags;
    } kinds[] = {
        {"direct64k", DATA_EQUAL, 64 << 10, O_RDWR | O_DIRECT},
        {"direct1m", DATA_EQUAL, 1 << 20, O_RDWR | O_DIRECT},
        {"sync4k", DATA_SYNC, 4 << 10, O_RDWR},
        {"mixed", DATA_MIXED, 0, O_RDWR},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            data->kind = kinds[i].kind;
            data->length = kinds[i].length;
            data->flags = kinds[i].flags;
            return true;
        }
    }
    return false;
}

struct load_work data_load(struct load *load, const char *kind, uint64_t bytes) {
    struct data *data = calloc(1, sizeof *data);

    if (!data || !choose_kind(data, kind)) {
        free(data);
        return (struct load_work){0};
    }
    data->load = load;
    data->fd = -1;
    data->capacity = bytes / READ_BYTES * READ_BYTES;
    data->now = aligned_alloc(BLOCK, data->capacity);
    data->next = aligned_alloc(BLOCK, data->capacity);
    data->found = aligned_alloc(BLOCK, data->capacity);
    if (!data->now || !data->next || !data->found) {
        return (struct load_work){0};
    }
    snprintf(data->path, sizeof data->path, "%s/file", load->directory);
    memset(data->now, 0, data->capacity);
    memset(data->next, 0, data->capacity);
    return (struct load_work){.context = data, .step = data_step, .check = data_check};
}
