/* Client, manager, group and storage targets together: thousands of random operations on a few
 * files, from several handles, each answer compared with arrays of bytes. */
#include "unit.h"
#include "small_cluster.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 12,
    STEPS = 700,
    NAMES = 6,
    HANDLES = 8,
    FILE_BYTES = 400000,
    RW = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE
};

static const char *const names[NAMES] = {"a", "bb", "ccc", "dddd", "eeeee", "ffffff"};

/* What a file should be. It lives as long as it has a name or a handle. */
struct model_file {
    uint64_t ino;
    uint32_t links;
    uint32_t handles;
    size_t size;
    uint8_t data[FILE_BYTES];
};

struct model_handle {
    struct model_file *file; /* NULL: none */
    struct shoal_file *handle;
    uint32_t flags;
};

struct play {
    struct cluster cluster;
    struct shoal_client *client;
    struct prng prng;
    struct model_file *names[NAMES];
    struct model_handle handles[HANDLES];
    uint64_t incarnation;
    uint8_t buffer[FILE_BYTES];
    uint8_t back[FILE_BYTES + 8192];
    uint64_t succeeded;
};

static int64_t run(struct play *play, struct shoal_request *request) {
    int64_t result = cluster_run(&play->cluster, play->client, request);

    play->succeeded += result >= 0;
    return result;
}

static struct shoal_request named(enum shoal_operation operation, uint32_t name) {
    return (struct shoal_request){.operation = operation,
                                  .ino = SHOAL_INO_ROOT,
                                  .name = names[name],
                                  .name_bytes = strlen(names[name])};
}

static void file_drop(struct model_file *file) {
    if (file->links == 0 && file->handles == 0) {
        free(file);
    }
}

static struct model_handle *handle_free(struct play *play) {
    for (int i = 0; i < HANDLES; i++) {
        if (!play->handles[i].file) {
            return &play->handles[i];
        }
    }
    return NULL;
}

static struct model_handle *handle_any(struct play *play) {
    struct model_handle *handle = &play->handles[prng_below(&play->prng, HANDLES)];

    return handle->file ? handle : NULL;
}

static uint32_t flags_any(struct play *play) {
    static const uint32_t flags[] = {
        RW, RW, RW, SHOAL_OPEN_READ, SHOAL_OPEN_WRITE, RW | SHOAL_OPEN_APPEND};

    return flags[prng_below(&play->prng, ARRAY_SIZE(flags))];
}

static void play_create(struct play *play) {
    uint32_t name = (uint32_t)prng_below(&play->prng, NAMES);
    struct model_handle *handle = handle_free(play);
    struct shoal_request request = named(SHOAL_CREATE, name);
    struct model_file *file = play->names[name];

    if (!handle) {
        return;
    }
    request.mode = 0644;
    request.flags = flags_any(play);
    if (prng_chance(&play->prng, 1, 4)) {
        request.flags |= SHOAL_OPEN_EXCLUSIVE;
    } else if (prng_chance(&play->prng, 1, 4) && (request.flags & SHOAL_OPEN_WRITE)) {
        request.flags |= SHOAL_OPEN_TRUNCATE;
    }
    run(play, &request);
    if (file && (request.flags & SHOAL_OPEN_EXCLUSIVE)) {
        assert_int_equal(request.result, -EEXIST);
        return;
    }
    assert_int_equal(request.result, 0);
    if (!file) {
        file = calloc(1, sizeof *file);
        file->ino = request.attributes.ino;
        file->links = 1;
        play->names[name] = file;
    } else if (request.flags & SHOAL_OPEN_TRUNCATE) {
        file->size = 0;
    }
    assert_int_equal(request.attributes.ino, file->ino);
    assert_int_equal(request.attributes.size, file->size);
    file->handles++;
    *handle = (struct model_handle){file, request.file, request.flags};
}

static void play_open(struct play *play) {
    uint32_t name = (uint32_t)prng_below(&play->prng, NAMES);
    struct model_handle *handle = handle_free(play);
    struct shoal_request request = named(SHOAL_LOOKUP, name);
    struct model_file *file = play->names[name];

    run(play, &request);
    if (!file) {
        assert_int_equal(request.result, -ENOENT);
        return;
    }
    assert_int_equal(request.result, 0);
    assert_int_equal(request.attributes.ino, file->ino);
    assert_int_equal(request.attributes.size, file->size);
    assert_int_equal(request.attributes.nlink, file->links);
    if (!handle) {
        return;
    }
    request =
        (struct shoal_request){.operation = SHOAL_OPEN, .ino = file->ino, .flags = flags_any(play)};
    if ((request.flags & SHOAL_OPEN_WRITE) && prng_chance(&play->prng, 1, 8)) {
        request.flags |= SHOAL_OPEN_TRUNCATE;
        file->size = 0;
    }
    assert_int_equal(run(play, &request), 0);
    assert_int_equal(request.attributes.size, file->size);
    file->handles++;
    *handle = (struct model_handle){file, request.file, request.flags};
}

static void play_close(struct play *play, struct model_handle *handle) {
    struct shoal_request request = {.operation = SHOAL_RELEASE, .file = handle->handle};
    struct model_file *file = handle->file;

    assert_int_equal(run(play, &request), 0);
    handle->file = NULL;
    file->handles--;
    file_drop(file);
}

/* Mostly small, sometimes over many chunks. */
static size_t size_any(struct play *play, size_t size_max) {
    static const size_t limits[] = {100, 5000, 70000, 200000};
    size_t limit = MIN(limits[prng_below(&play->prng, ARRAY_SIZE(limits))], size_max);

    return limit == 0 ? 0 : (size_t)prng_below(&play->prng, limit) + 1;
}

static uint64_t offset_any(struct play *play, const struct model_file *file) {
    uint64_t limit = prng_chance(&play->prng, 1, 3) ? FILE_BYTES / 2 : file->size + 1;

    if (prng_chance(&play->prng, 1, 2)) {
        limit = MIN(limit, UINT64_C(5000));
    }
    return prng_below(&play->prng, limit);
}

static void model_write(struct model_file *file, uint64_t offset, const uint8_t *data,
                        size_t size) {
    if (offset > file->size) {
        memset(file->data + file->size, 0, (size_t)offset - file->size);
    }
    memcpy(file->data + offset, data, size);
    file->size = MAX(file->size, (size_t)offset + size);
}

static void play_write(struct play *play, struct model_handle *handle) {
    struct model_file *file = handle->file;
    bool append = handle->flags & SHOAL_OPEN_APPEND;
    uint64_t offset = append ? file->size : offset_any(play, file);
    size_t size = size_any(play, FILE_BYTES - (size_t)offset);
    struct shoal_request request = {.operation = SHOAL_WRITE,
                                    .file = handle->handle,
                                    .offset = append ? 7 : offset,
                                    .data = play->buffer,
                                    .size = size};

    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = prng_next(&play->prng);

        memcpy(play->buffer + i, &word, MIN(size - i, sizeof word));
    }
    run(play, &request);
    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        assert_int_equal(request.result, -EBADF);
        return;
    }
    assert_int_equal(request.result, size);
    model_write(file, offset, play->buffer, size);
}

static void read_check(struct play *play, struct model_handle *handle, uint64_t offset,
                       size_t size) {
    struct model_file *file = handle->file;
    struct shoal_request request = {.operation = SHOAL_READ,
                                    .file = handle->handle,
                                    .offset = offset,
                                    .data = play->back,
                                    .size = size};
    size_t expected = offset < file->size ? MIN(size, file->size - (size_t)offset) : 0;

    memset(play->back, 0xa5, size);
    run(play, &request);
    if (!(handle->flags & SHOAL_OPEN_READ)) {
        assert_int_equal(request.result, -EBADF);
        return;
    }
    assert_int_equal(request.result, expected);
    assert_memory_equal(play->back, file->data + offset, expected);
}

static void play_truncate(struct play *play, struct model_handle *handle) {
    struct model_file *file = handle->file;
    size_t size = prng_chance(&play->prng, 1, 3) ? 0 : (size_t)offset_any(play, file);
    bool by_handle = prng_chance(&play->prng, 1, 2);
    struct shoal_request request = {.operation = SHOAL_SETATTR,
                                    .ino = file->ino,
                                    .file = by_handle ? handle->handle : NULL,
                                    .set = SHOAL_SET_SIZE,
                                    .attributes = {.size = size}};

    assert_int_equal(run(play, &request), 0);
    assert_int_equal(request.attributes.size, size);
    if (size > file->size) {
        memset(file->data + file->size, 0, size - file->size);
    }
    file->size = size;
}

static void play_allocate(struct play *play, struct model_handle *handle) {
    struct model_file *file = handle->file;
    uint64_t offset = offset_any(play, file);
    size_t size = size_any(play, FILE_BYTES - (size_t)offset);
    struct shoal_request request = {
        .operation = SHOAL_ALLOCATE, .file = handle->handle, .offset = offset, .size = size};

    run(play, &request);
    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        assert_int_equal(request.result, -EBADF);
        return;
    }
    assert_int_equal(request.result, 0);
    if (offset + size > file->size) {
        memset(file->data + file->size, 0, (size_t)offset + size - file->size);
        file->size = (size_t)offset + size;
    }
}

static void play_settle(struct play *play, struct model_handle *handle) {
    static const enum shoal_operation operations[] = {SHOAL_FSYNC, SHOAL_FLUSH, SHOAL_GETATTR};
    struct shoal_request request = {.operation =
                                        operations[prng_below(&play->prng, ARRAY_SIZE(operations))],
                                    .file = handle->handle};

    assert_int_equal(run(play, &request), 0);
    if (request.operation == SHOAL_GETATTR) {
        assert_int_equal(request.attributes.size, handle->file->size);
        assert_int_equal(request.attributes.nlink, handle->file->links);
    }
}

static void name_clear(struct play *play, uint32_t name) {
    struct model_file *file = play->names[name];

    if (file) {
        play->names[name] = NULL;
        file->links--;
        file_drop(file);
    }
}

static void play_unlink(struct play *play) {
    uint32_t name = (uint32_t)prng_below(&play->prng, NAMES);
    struct shoal_request request = named(SHOAL_UNLINK, name);

    assert_int_equal(run(play, &request), play->names[name] ? 0 : -ENOENT);
    name_clear(play, name);
}

static void play_rename(struct play *play) {
    uint32_t from = (uint32_t)prng_below(&play->prng, NAMES);
    uint32_t to = (uint32_t)prng_below(&play->prng, NAMES);
    struct shoal_request request = named(SHOAL_RENAME, from);
    bool links = prng_chance(&play->prng, 1, 3);
    struct model_file *file = play->names[from];

    request.new_ino = SHOAL_INO_ROOT;
    request.new_name = names[to];
    request.new_name_bytes = strlen(names[to]);
    if (links && file) {
        request.operation = SHOAL_LINK;
        request.ino = file->ino;
        assert_int_equal(run(play, &request), play->names[to] ? -EEXIST : 0);
        if (!play->names[to]) {
            play->names[to] = file;
            file->links++;
            assert_int_equal(request.attributes.nlink, file->links);
            assert_int_equal(request.attributes.size, file->size);
        }
        return;
    }
    assert_int_equal(run(play, &request), file ? 0 : -ENOENT);
    /* Two names of one file: nothing happens. */
    if (file && play->names[to] != file) {
        name_clear(play, to);
        play->names[to] = file;
        play->names[from] = NULL;
    }
}

struct listing {
    struct play *play;
    uint32_t seen; /* bits of names */
    bool plus;
};

static int listing_entry(void *context, const struct shoal_entry *entry) {
    struct listing *listing = context;

    for (uint32_t i = 0; i < NAMES; i++) {
        if (strlen(names[i]) == entry->name_bytes &&
            memcmp(names[i], entry->name, entry->name_bytes) == 0) {
            const struct model_file *file = listing->play->names[i];

            assert_true(file && !(listing->seen & 1U << i));
            listing->seen |= 1U << i;
            assert_int_equal(entry->ino, file->ino);
            assert_int_equal(entry->type, 8);
            if (listing->plus) {
                assert_non_null(entry->attributes);
                assert_int_equal(entry->attributes->size, file->size);
            }
        }
    }
    return 0;
}

static void play_list(struct play *play) {
    struct shoal_request open = {.operation = SHOAL_OPEN,
                                 .ino = SHOAL_INO_ROOT,
                                 .flags = SHOAL_OPEN_READ | SHOAL_OPEN_DIRECTORY};
    struct listing listing = {.play = play, .plus = prng_chance(&play->prng, 2, 3)};

    assert_int_equal(run(play, &open), 0);
    struct shoal_request list = {.operation = SHOAL_READDIR,
                                 .file = open.file,
                                 .plus = listing.plus,
                                 .entry = listing_entry,
                                 .entry_context = &listing,
                                 .size = prng_below(&play->prng, 3000)};
    run(play, &list);
    uint32_t count = 2;
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_int_equal(play->names[i] != NULL, (listing.seen >> i) & 1);
        count += play->names[i] != NULL;
    }
    assert_int_equal(list.result, count);
    struct shoal_request close = {.operation = SHOAL_RELEASE, .file = open.file};
    assert_int_equal(run(play, &close), 0);
}

static void play_step(struct play *play) {
    struct model_handle *handle = handle_any(play);
    uint64_t dice = prng_below(&play->prng, 100);

    if (dice < 12) {
        play_create(play);
    } else if (dice < 22) {
        play_open(play);
    } else if (dice < 25) {
        play_unlink(play);
    } else if (dice < 29) {
        play_rename(play);
    } else if (dice < 32) {
        play_list(play);
    } else if (!handle) {
        play_open(play);
    } else if (dice < 42) {
        play_close(play, handle);
    } else if (dice < 62) {
        play_write(play, handle);
    } else if (dice < 84) {
        read_check(play, handle, offset_any(play, handle->file), size_any(play, FILE_BYTES));
    } else if (dice < 90) {
        play_truncate(play, handle);
    } else if (dice < 93) {
        play_allocate(play, handle);
    } else {
        play_settle(play, handle);
    }
}

static void play_open_cluster(struct play *play, uint64_t seed) {
    static const uint32_t chunks[] = {65536, 131072, 1048576};
    struct cluster_options options = {
        .seed = seed,
        .cold_percent = seed % 3 == 0 ? 0 : 20,
        .chunk_bytes = chunks[seed % ARRAY_SIZE(chunks)],
    };

    memset(play, 0, sizeof *play);
    cluster_open(&play->cluster, &options);
    prng_init(&play->prng, seed);
    play->incarnation = 1;
    play->client = cluster_client(&play->cluster, 0, play->incarnation);
}

static void play_close_cluster(struct play *play) {
    for (int i = 0; i < HANDLES; i++) {
        if (play->handles[i].file) {
            play_close(play, &play->handles[i]);
        }
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        name_clear(play, i);
    }
    cluster_client_stop(&play->cluster, 0);
    cluster_close(&play->cluster);
}

static void test_random_operations_on_files(void **state) {
    struct play *play = malloc(sizeof *play);
    uint64_t succeeded = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        play_open_cluster(play, seed);
        for (int step = 0; step < STEPS; step++) {
            play_step(play);
        }
        succeeded += play->succeeded;
        play_close_cluster(play);
    }
    assert_true(succeeded > SEEDS * STEPS / 2);
    free(play);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_on_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
