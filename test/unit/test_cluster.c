/* The whole cluster under what happens to clusters: requests of many files at once, servers that
 * start anew, clients that die, two clients with one file. */
#include "unit.h"
#include "small_cluster.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_BYTES = 300000,
    STREAMS = 7,
    STREAM_STEPS = 150,
    RW = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE
};

static struct shoal_request named(enum shoal_operation operation, const char *name) {
    return (struct shoal_request){.operation = operation,
                                  .ino = SHOAL_INO_ROOT,
                                  .name = name,
                                  .name_bytes = strlen(name),
                                  .mode = 0644,
                                  .flags = RW};
}

/* A client and where it runs. */
struct mount {
    struct cluster *cluster;
    struct shoal_client *client;
};

static int64_t run(struct mount mount, struct shoal_request request) {
    return cluster_run(mount.cluster, mount.client, &request);
}

static struct shoal_file *make(struct mount mount, const char *name) {
    struct shoal_request request = named(SHOAL_CREATE, name);

    assert_int_equal(cluster_run(mount.cluster, mount.client, &request), 0);
    return request.file;
}

static int64_t on_file(struct mount mount, enum shoal_operation operation,
                       struct shoal_file *file) {
    return run(mount, (struct shoal_request){.operation = operation, .file = file});
}

static int64_t put(struct mount mount, struct shoal_file *file, uint64_t offset, const void *data,
                   size_t size) {
    return run(mount, (struct shoal_request){.operation = SHOAL_WRITE,
                                             .file = file,
                                             .offset = offset,
                                             .data = (void *)(uintptr_t)data,
                                             .size = size});
}

static int64_t get(struct mount mount, struct shoal_file *file, uint64_t offset, void *data,
                   size_t size) {
    return run(
        mount,
        (struct shoal_request){
            .operation = SHOAL_READ, .file = file, .offset = offset, .data = data, .size = size});
}

static void fill(struct prng *prng, uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)prng_next(prng);
    }
}

/* A file with one operation at a time, which is checked when it is done; then the next one. */
struct stream {
    struct shoal_request request; /* first */
    struct streams *all;
    struct shoal_file *handle;
    char name[8];
    uint32_t steps;
    size_t size;
    uint8_t data[FILE_BYTES];
    uint8_t buffer[FILE_BYTES];
};

struct streams {
    struct cluster cluster;
    struct shoal_client *client;
    struct prng prng;
    struct stream streams[STREAMS];
    uint32_t left;
    bool done;
};

static void stream_write(struct stream *stream) {
    struct prng *prng = &stream->all->prng;
    uint64_t offset = prng_below(prng, prng_chance(prng, 1, 2) ? stream->size + 1 : 200000);
    size_t limit = prng_chance(prng, 1, 2) ? 3000 : FILE_BYTES - (size_t)offset;

    limit = MIN(limit, FILE_BYTES - (size_t)offset);
    stream->request.operation = SHOAL_WRITE;
    stream->request.offset = offset;
    stream->request.size = (size_t)prng_below(prng, limit) + 1;
    stream->request.data = stream->buffer;
    fill(prng, stream->buffer, MIN(stream->request.size, (size_t)64));
}

static void stream_next(struct stream *stream) {
    struct prng *prng = &stream->all->prng;
    uint64_t dice = prng_below(prng, 100);

    stream->request.file = stream->handle;
    if (dice < 40) {
        stream_write(stream);
    } else if (dice < 70) {
        stream->request.operation = SHOAL_READ;
        stream->request.offset = prng_below(prng, stream->size + 10);
        stream->request.size = (size_t)prng_below(prng, FILE_BYTES) + 1;
        stream->request.data = stream->buffer;
    } else if (dice < 80) {
        stream->request.operation = SHOAL_SETATTR;
        stream->request.set = SHOAL_SET_SIZE;
        stream->request.attributes.size = prng_below(prng, FILE_BYTES);
    } else if (dice < 90) {
        stream->request.operation = dice < 85 ? SHOAL_FSYNC : SHOAL_FLUSH;
    } else {
        stream->request.operation = SHOAL_LOOKUP;
        stream->request.ino = SHOAL_INO_ROOT;
        stream->request.name = stream->name;
        stream->request.name_bytes = strlen(stream->name);
    }
    shoal_submit(stream->all->client, &stream->request);
}

static void grow(struct stream *stream, size_t size) {
    if (size > stream->size) {
        memset(stream->data + stream->size, 0, size - stream->size);
    }
    stream->size = size;
}

static void stream_check(struct stream *stream) {
    const struct shoal_request *request = &stream->request;
    size_t offset = (size_t)request->offset;
    size_t expected;

    switch (request->operation) {
    case SHOAL_WRITE:
        assert_int_equal(request->result, request->size);
        if (offset + request->size > stream->size) {
            grow(stream, offset + request->size);
        }
        memcpy(stream->data + offset, stream->buffer, request->size);
        break;
    case SHOAL_READ:
        expected = offset < stream->size ? MIN(request->size, stream->size - offset) : 0;
        assert_int_equal(request->result, expected);
        assert_memory_equal(stream->buffer, stream->data + offset, expected);
        break;
    case SHOAL_SETATTR:
        assert_int_equal(request->result, 0);
        grow(stream, (size_t)request->attributes.size);
        break;
    default:
        assert_int_equal(request->result, 0);
        if (request->operation == SHOAL_LOOKUP) {
            assert_int_equal(request->attributes.size, stream->size);
        }
    }
}

static void stream_done(struct shoal_request *request) {
    struct stream *stream = (struct stream *)request;
    struct streams *all = stream->all;

    stream_check(stream);
    if (++stream->steps < STREAM_STEPS) {
        stream_next(stream);
    } else {
        all->done = --all->left == 0;
    }
}

static void test_many_files_at_once(void **state) {
    struct streams *all = malloc(sizeof *all);

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct cluster_options options = {
            .seed = seed, .cold_percent = 10, .chunk_bytes = seed % 2 ? 65536 : 131072};

        print_message("seed %llu\n", (unsigned long long)seed);
        memset(all, 0, sizeof *all);
        prng_init(&all->prng, seed);
        cluster_open(&all->cluster, &options);
        all->client = cluster_client(&all->cluster, 0, 1);
        for (int i = 0; i < STREAMS; i++) {
            struct stream *stream = &all->streams[i];

            stream->all = all;
            snprintf(stream->name, sizeof stream->name, "s%d", i);
            stream->handle = make((struct mount){&all->cluster, all->client}, stream->name);
            stream->request.done = stream_done;
        }
        all->left = STREAMS;
        for (int i = 0; i < STREAMS; i++) {
            stream_next(&all->streams[i]);
        }
        cluster_wait(&all->cluster, &all->done);
        for (int i = 0; i < STREAMS; i++) {
            assert_int_equal(on_file((struct mount){&all->cluster, all->client}, SHOAL_RELEASE,
                                     all->streams[i].handle),
                             0);
        }
        cluster_client_stop(&all->cluster, 0);
        cluster_close(&all->cluster);
    }
    free(all);
}

/* What a test of up to three clients needs. */
struct pair {
    struct cluster cluster;
    struct shoal_client *clients[3];
    struct prng prng;
    uint8_t data[FILE_BYTES];
    uint8_t back[FILE_BYTES + 10];
};

static struct pair *pair_open_with(const struct cluster_options *options, int client_count) {
    struct pair *pair = calloc(1, sizeof *pair);

    cluster_open(&pair->cluster, options);
    prng_init(&pair->prng, options->seed);
    fill(&pair->prng, pair->data, FILE_BYTES);
    for (int i = 0; i < client_count; i++) {
        pair->clients[i] = cluster_client(&pair->cluster, (uint32_t)i, 1);
    }
    return pair;
}

static struct pair *pair_open(uint64_t seed, int client_count, uint64_t timeout_ns) {
    const struct cluster_options options = {
        .seed = seed, .cold_percent = 10, .chunk_bytes = 65536, .session_timeout_ns = timeout_ns};

    return pair_open_with(&options, client_count);
}

static struct mount mount_of(struct pair *pair, int number) {
    return (struct mount){&pair->cluster, pair->clients[number]};
}

static void pair_close(struct pair *pair, int client_count) {
    for (int i = 0; i < client_count; i++) {
        cluster_client_stop(&pair->cluster, (uint32_t)i);
    }
    cluster_close(&pair->cluster);
    free(pair);
}

/* Handles outlive a restart of every server, also those of files without a name. */
static void test_open_files_survive_restarts(void **state) {
    struct pair *pair = pair_open(11, 1, 0);
    struct cluster *cluster = &pair->cluster;
    struct shoal_client *client = pair->clients[0];
    struct mount mount = mount_of(pair, 0);
    struct shoal_file *named_file = make(mount, "named");
    struct shoal_file *orphan = make(mount, "orphan");
    struct shoal_file *small = make(mount, "small");
    struct shoal_request unlink = named(SHOAL_UNLINK, "orphan");
    struct client_counters counters;

    (void)state;
    assert_int_equal(put(mount, named_file, 0, pair->data, 200000), 200000);
    assert_int_equal(put(mount, orphan, 0, pair->data, 100000), 100000);
    assert_int_equal(put(mount, small, 0, "tiny", 4), 4);
    assert_int_equal(cluster_run(cluster, client, &unlink), 0);
    for (uint32_t i = 1; i <= 3; i++) {
        cluster_restart(cluster);
        assert_int_equal(get(mount, orphan, 0, pair->back, FILE_BYTES), 100000);
        assert_memory_equal(pair->back, pair->data, 100000);
        assert_int_equal(get(mount, small, 0, pair->back, FILE_BYTES), 4);
        assert_int_equal(put(mount, named_file, 200000 + (i - 1) * 1000, pair->data, 1000), 1000);
        assert_int_equal(get(mount, named_file, 0, pair->back, FILE_BYTES), 200000 + i * 1000);
        assert_memory_equal(pair->back, pair->data, 200000);
        assert_int_equal(on_file(mount, SHOAL_FSYNC, named_file), 0);
    }
    client_counters_get(client, &counters);
    assert_true(counters.reattachments >= 3 && counters.reopened >= 9);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, named_file), 0);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, orphan), 0);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, small), 0);
    pair_close(pair, 1);
}

static void test_successor_finds_what_was_written(void **state) {
    struct pair *pair = pair_open(12, 1, 0);
    struct cluster *cluster = &pair->cluster;
    struct shoal_request look = named(SHOAL_LOOKUP, "file");
    uint64_t started_ns;

    (void)state;
    struct shoal_file *file = make(mount_of(pair, 0), "file");
    assert_int_equal(put(mount_of(pair, 0), file, 0, pair->data, 250000), 250000);
    cluster_client_kill(cluster, 0);
    started_ns = sim_now_ns(cluster->sim);
    pair->clients[0] = cluster_client(cluster, 0, 2);
    /* Nobody waited for the predecessor's silence. */
    assert_true(sim_now_ns(cluster->sim) - started_ns < 5 * NS_PER_S);
    assert_int_equal(cluster_run(cluster, pair->clients[0], &look), 0);
    assert_int_equal(look.attributes.size, 250000);
    struct shoal_request open = {.operation = SHOAL_OPEN, .ino = look.attributes.ino, .flags = RW};
    assert_int_equal(cluster_run(cluster, pair->clients[0], &open), 0);
    assert_int_equal(get(mount_of(pair, 0), open.file, 0, pair->back, FILE_BYTES), 250000);
    assert_memory_equal(pair->back, pair->data, 250000);
    assert_int_equal(on_file(mount_of(pair, 0), SHOAL_RELEASE, open.file), 0);
    pair_close(pair, 1);
}

/* One that falls silent is evicted: others get its file with its true size, and itself is told. */
static void test_silent_client_is_evicted(void **state) {
    struct pair *pair = pair_open(13, 2, 5 * NS_PER_S);
    struct cluster *cluster = &pair->cluster;
    struct shoal_client *silent = pair->clients[0];
    struct mount mount = mount_of(pair, 0);
    struct shoal_request look = named(SHOAL_LOOKUP, "file");

    (void)state;
    struct shoal_file *file = make(mount, "file");
    assert_int_equal(put(mount, file, 0, pair->data, 150000), 150000);
    cluster->clients[0] = NULL;
    cluster_pass(cluster, 8 * NS_PER_S);
    cluster->clients[0] = silent;
    assert_int_equal(cluster_run(cluster, pair->clients[1], &look), 0);
    assert_int_equal(look.attributes.size, 150000);
    assert_int_equal(put(mount, file, 0, "late", 4), -ESTALE);
    assert_true(client_is_fenced(silent));
    assert_int_equal(on_file(mount, SHOAL_RELEASE, file), -ESTALE);
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = look.attributes.ino, .flags = SHOAL_OPEN_READ};
    assert_int_equal(cluster_run(cluster, pair->clients[1], &open), 0);
    assert_int_equal(get(mount_of(pair, 1), open.file, 0, pair->back, FILE_BYTES), 150000);
    assert_memory_equal(pair->back, pair->data, 150000);
    assert_int_equal(on_file(mount_of(pair, 1), SHOAL_RELEASE, open.file), 0);
    pair_close(pair, 2);
}

/* Close to open: what was written and closed there is seen by who opens here. */
static void test_two_clients_share_a_file(void **state) {
    struct pair *pair = pair_open(14, 2, 0);
    size_t size = 0;

    (void)state;
    for (uint32_t round = 0; round < 40; round++) {
        struct mount mount = mount_of(pair, (int)(round % 2));
        struct shoal_file *file = make(mount, "shared");
        size_t offset = (size_t)prng_below(&pair->prng, 100000);
        size_t count = (size_t)prng_below(&pair->prng, 100000) + 1;

        assert_int_equal(get(mount, file, 0, pair->back, FILE_BYTES), size);
        assert_memory_equal(pair->back, pair->data, size);
        if (prng_chance(&pair->prng, 1, 4)) {
            struct shoal_request cut = {.operation = SHOAL_SETATTR,
                                        .file = file,
                                        .set = SHOAL_SET_SIZE,
                                        .attributes = {.size = offset}};

            assert_int_equal(run(mount, cut), 0);
            memset(pair->data + MIN(size, offset), 0, FILE_BYTES - MIN(size, offset));
            size = offset;
        } else {
            if (offset > size) {
                memset(pair->data + size, 0, offset - size);
            }
            fill(&pair->prng, pair->data + offset, count);
            assert_int_equal(put(mount, file, offset, pair->data + offset, count), count);
            size = MAX(size, offset + count);
        }
        assert_int_equal(on_file(mount, SHOAL_RELEASE, file), 0);
    }
    pair_close(pair, 2);
}

/* Both have it open; one truncates and writes. The other's capability is of no use any more: it
 * gets a new one and sees what there is now. */
static void test_truncation_by_another_client(void **state) {
    struct pair *pair = pair_open(15, 2, 0);
    struct cluster *cluster = &pair->cluster;
    struct shoal_request cut = {.operation = SHOAL_SETATTR, .set = SHOAL_SET_SIZE};

    (void)state;
    struct shoal_file *first = make(mount_of(pair, 0), "file");
    assert_int_equal(put(mount_of(pair, 0), first, 0, pair->data, 200000), 200000);
    assert_int_equal(on_file(mount_of(pair, 0), SHOAL_FLUSH, first), 0);
    struct shoal_file *second = make(mount_of(pair, 1), "file");
    assert_int_equal(get(mount_of(pair, 1), second, 0, pair->back, FILE_BYTES), 200000);
    cut.file = first;
    cut.attributes.size = 70000;
    assert_int_equal(cluster_run(cluster, pair->clients[0], &cut), 0);
    assert_int_equal(put(mount_of(pair, 0), first, 100000, pair->data, 1000), 1000);
    assert_int_equal(on_file(mount_of(pair, 0), SHOAL_FLUSH, first), 0);
    cluster_pass(cluster, 2 * NS_PER_S);
    assert_int_equal(put(mount_of(pair, 1), second, 150000, pair->data, 1000), 1000);
    assert_int_equal(get(mount_of(pair, 1), second, 0, pair->back, FILE_BYTES), 151000);
    assert_memory_equal(pair->back, pair->data, 70000);
    for (size_t i = 70000; i < 100000; i++) {
        assert_int_equal(pair->back[i], 0);
    }
    assert_memory_equal(pair->back + 100000, pair->data, 1000);
    assert_memory_equal(pair->back + 150000, pair->data, 1000);
    assert_int_equal(on_file(mount_of(pair, 0), SHOAL_RELEASE, first), 0);
    assert_int_equal(on_file(mount_of(pair, 1), SHOAL_RELEASE, second), 0);
    pair_close(pair, 2);
}

enum meets { MEETS_BY_LOOK, MEETS_BY_READ, MEETS_BY_WRITE, MEETS_BY_CUT, MEETS_BY_HOLE };

/* Somebody who has had the file open for long meets its chunks first by that. */
static void meet(struct pair *pair, struct mount mount, struct shoal_file *file, enum meets by) {
    struct shoal_request request = {.file = file};

    switch (by) {
    case MEETS_BY_LOOK:
        cluster_pass(&pair->cluster, 2 * NS_PER_S);
        break;
    case MEETS_BY_READ:
        assert_int_equal(get(mount, file, 0, pair->back, 10), 10);
        break;
    case MEETS_BY_WRITE:
        assert_int_equal(put(mount, file, 0, pair->data, 10), 10);
        break;
    case MEETS_BY_CUT:
        request.operation = SHOAL_SETATTR;
        request.set = SHOAL_SET_SIZE;
        request.attributes.size = FILE_BYTES;
        assert_int_equal(run(mount, request), 0);
        break;
    case MEETS_BY_HOLE:
        request.operation = SHOAL_ALLOCATE;
        request.flags = SHOAL_KEEP_SIZE | SHOAL_PUNCH_HOLE;
        request.size = 10;
        assert_int_equal(run(mount, request), 0);
        assert_int_equal(put(mount, file, 0, pair->data, 10), 10);
        break;
    }
}

/* A client sets the layout of a file that others have open, with bytes that are on disk.
 * What one of them then writes in chunks is where everybody looks for it: who opens the file now,
 * who has had it open since before, and a truncation. */
static void layout_set_while_open(const char *name, size_t small, enum meets by,
                                  struct pair *pair) {
    struct mount writer = mount_of(pair, 0);
    struct mount setter = mount_of(pair, 1);
    struct mount reader = mount_of(pair, 2);
    struct shoal_file *written = make(writer, name);
    struct shoal_request look = named(SHOAL_LOOKUP, name);
    struct shoal_request cut = {.operation = SHOAL_SETATTR, .set = SHOAL_SET_SIZE};
    struct shoal_request set = {.operation = SHOAL_LAYOUT_SET,
                                .layout = {.chunk_bytes = 65536, .stripe_count = -1}};

    assert_int_equal(put(writer, written, 0, pair->data, small), small);
    assert_int_equal(on_file(writer, SHOAL_FSYNC, written), 0);
    struct shoal_file *read = make(reader, name);
    assert_int_equal(get(reader, read, 0, pair->back, FILE_BYTES), small);
    assert_int_equal(cluster_run(&pair->cluster, setter.client, &look), 0);
    set.ino = look.attributes.ino;
    assert_int_equal(run(setter, set), 0);
    assert_int_equal(put(writer, written, small, pair->data + small, FILE_BYTES - small),
                     FILE_BYTES - small);
    assert_int_equal(on_file(writer, SHOAL_RELEASE, written), 0);
    assert_int_equal(run(setter, set), -EINVAL); /* Bytes never move. */

    struct shoal_file *opened = make(setter, name);
    assert_int_equal(get(setter, opened, 0, pair->back, FILE_BYTES), FILE_BYTES);
    assert_memory_equal(pair->back, pair->data, FILE_BYTES);
    meet(pair, reader, read, by);
    memset(pair->back, 0, FILE_BYTES);
    assert_int_equal(get(reader, read, 0, pair->back, FILE_BYTES), FILE_BYTES);
    assert_memory_equal(pair->back, pair->data, FILE_BYTES);
    for (int i = 0; i < 2; i++) {
        cut.file = read;
        cut.attributes.size = i == 0 ? 10 : FILE_BYTES;
        assert_int_equal(run(reader, cut), 0);
    }
    cluster_pass(&pair->cluster, 2 * NS_PER_S);
    assert_int_equal(get(setter, opened, 0, pair->back, FILE_BYTES), FILE_BYTES);
    assert_memory_equal(pair->back, pair->data, 10);
    for (size_t i = 10; i < FILE_BYTES; i++) {
        assert_int_equal(pair->back[i], 0);
    }
    assert_int_equal(on_file(setter, SHOAL_RELEASE, opened), 0);
    assert_int_equal(on_file(reader, SHOAL_RELEASE, read), 0);
}

/* Who makes a file may have written to it, in chunks that are his: so he sets its layout alone. */
static void layout_set_while_empty(struct pair *pair) {
    struct mount writer = mount_of(pair, 0);
    struct mount setter = mount_of(pair, 1);
    struct shoal_file *written = make(writer, "empty");
    struct shoal_request look = named(SHOAL_LOOKUP, "empty");
    struct shoal_request set = {.operation = SHOAL_LAYOUT_SET,
                                .layout = {.chunk_bytes = 65536, .stripe_count = -1}};

    assert_int_equal(cluster_run(&pair->cluster, setter.client, &look), 0);
    set.ino = look.attributes.ino;
    assert_int_equal(run(setter, set), -EINVAL);
    assert_int_equal(run(writer, set), 0);
    assert_int_equal(put(writer, written, 0, pair->data, FILE_BYTES), FILE_BYTES);
    assert_int_equal(on_file(writer, SHOAL_RELEASE, written), 0);
    assert_int_equal(run(writer, set), -EINVAL); /* Bytes never move. */
    struct shoal_file *opened = make(setter, "empty");
    assert_int_equal(get(setter, opened, 0, pair->back, FILE_BYTES), FILE_BYTES);
    assert_memory_equal(pair->back, pair->data, FILE_BYTES);
    assert_int_equal(on_file(setter, SHOAL_RELEASE, opened), 0);

    struct shoal_file *closed = make(writer, "closed");
    look = named(SHOAL_LOOKUP, "closed");
    assert_int_equal(on_file(writer, SHOAL_RELEASE, closed), 0);
    assert_int_equal(cluster_run(&pair->cluster, setter.client, &look), 0);
    set.ino = look.attributes.ino;
    assert_int_equal(run(setter, set), 0); /* It has been closed as it was made. */
}

static void test_layout_set_while_open(void **state) {
    const struct cluster_options options = {.seed = 18, .cold_percent = 10, .chunk_bytes = MIB};
    struct pair *pair = pair_open_with(&options, 3);

    (void)state;
    layout_set_while_empty(pair);
    layout_set_while_open("small", 1000, MEETS_BY_LOOK, pair);
    layout_set_while_open("read", 1000, MEETS_BY_READ, pair);
    layout_set_while_open("written", 1000, MEETS_BY_WRITE, pair);
    layout_set_while_open("cut", 1000, MEETS_BY_CUT, pair);
    layout_set_while_open("punched", 1000, MEETS_BY_HOLE, pair);
    pair_close(pair, 3);
}

static uint64_t refused_capabilities(const struct pair *pair) {
    uint64_t refused = 0;

    for (uint32_t i = 0; i < CLUSTER_OSTS; i++) {
        struct ost_counters counters;

        ost_counters_get(pair->cluster.osts[i], &counters);
        refused += counters.capabilities_refused;
    }
    return refused;
}

/* With keys all goes as without. A file that stays open while two numbers go by has a capability
 * that is good no longer: its client asks for another, and the program hears nothing of that. */
static void test_open_files_outlive_the_key_number(void **state) {
    struct cluster_options options = {.seed = 17, .cold_percent = 10, .chunk_bytes = 65536};
    const struct secret secret = {{1, 2, 3}};
    struct key_file file;

    (void)state;
    key_file_make(&secret, &file);
    assert_int_equal(key_ring_new(&file, &options.keys), 0);
    struct pair *pair = pair_open_with(&options, 1);
    struct mount mount = mount_of(pair, 0);
    struct shoal_file *large = make(mount, "large");
    struct shoal_file *small = make(mount, "small");
    assert_int_equal(put(mount, large, 0, pair->data, 200000), 200000);
    assert_int_equal(put(mount, small, 0, "tiny", 4), 4);
    for (uint32_t number = 2; number < 8; number++) {
        uint64_t before = refused_capabilities(pair);

        key_ring_number_set(options.keys, number);
        assert_int_equal(get(mount, large, 0, pair->back, FILE_BYTES), 200000);
        assert_memory_equal(pair->back, pair->data, 200000);
        assert_int_equal(put(mount, large, 1000, pair->data + 1000, 70000), 70000);
        assert_int_equal(refused_capabilities(pair) > before, number % 2 == 1);
    }
    assert_int_equal(put(mount, small, 4, pair->data, 9000), 9000);
    cluster_restart(&pair->cluster);
    assert_int_equal(get(mount, large, 0, pair->back, FILE_BYTES), 200000);
    assert_memory_equal(pair->back, pair->data, 200000);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, large), 0);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, small), 0);
    pair_close(pair, 1);
    key_ring_free(options.keys);
}

/* The largest file, of chunks: its last bytes are zeros, and can be written. */
static void test_largest_file(void **state) {
    struct pair *pair = pair_open(16, 1, 0);
    struct mount mount = mount_of(pair, 0);
    struct shoal_file *file = make(mount, "largest");
    struct shoal_request cut = {.operation = SHOAL_SETATTR,
                                .file = file,
                                .set = SHOAL_SET_SIZE,
                                .attributes = {.size = FILE_BYTES_MAX}};
    static const uint8_t zeros[3];

    (void)state;
    assert_int_equal(put(mount, file, 0, pair->data, 10000), 10000);
    assert_int_equal(run(mount, cut), 0);
    assert_int_equal(get(mount, file, FILE_BYTES_MAX - 3, pair->back, 10), 3);
    assert_memory_equal(pair->back, zeros, 3);
    assert_int_equal(put(mount, file, FILE_BYTES_MAX - 2, pair->data, 2), 2);
    assert_int_equal(get(mount, file, FILE_BYTES_MAX - 3, pair->back, 10), 3);
    assert_int_equal(pair->back[0], 0);
    assert_memory_equal(pair->back + 1, pair->data, 2);
    assert_int_equal(put(mount, file, FILE_BYTES_MAX - 1, pair->data, 2), -EFBIG);
    cut.attributes.size = 9000;
    assert_int_equal(run(mount, cut), 0);
    cut.attributes.size = FILE_BYTES_MAX;
    assert_int_equal(run(mount, cut), 0);
    assert_int_equal(get(mount, file, FILE_BYTES_MAX - 3, pair->back, 3), 3);
    assert_memory_equal(pair->back, zeros, 3);
    assert_int_equal(on_file(mount, SHOAL_RELEASE, file), 0);
    pair_close(pair, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_files_at_once),
        cmocka_unit_test(test_open_files_survive_restarts),
        cmocka_unit_test(test_successor_finds_what_was_written),
        cmocka_unit_test(test_silent_client_is_evicted),
        cmocka_unit_test(test_two_clients_share_a_file),
        cmocka_unit_test(test_truncation_by_another_client),
        cmocka_unit_test(test_layout_set_while_open),
        cmocka_unit_test(test_open_files_outlive_the_key_number),
        cmocka_unit_test(test_largest_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
