/* libshoal from several threads at once, on the real outside: every thread has files of its own
 * that nobody else touches, and all share one directory, one file with a region each, and one file
 * to append to. */

#include "unit.h"
#include "base/prng.h"
#include "local_place.h"
#include <pthread.h>
#include <shoal/path.h>

enum {
    THREADS = 4,
    ROUNDS = 40,
    FILE_BYTES = 190000,
    REGION_BYTES = 3 * 65536 + 1000,
    APPENDS = 25,
    RECORD_BYTES = 200,
    RW = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE
};

/* cmocka's own checks jump to the main thread's frame; this one ends the program. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (false)

struct shared {
    struct shoal_client *client;
    struct shoal_file *regions;
};

struct runner {
    struct shared *shared;
    uint32_t number;
    struct prng prng;
    uint8_t data[REGION_BYTES];
    uint8_t back[REGION_BYTES];
};

static int64_t run(struct shared *shared, struct shoal_request request) {
    return shoal_run(shared->client, &request);
}

static struct shoal_request named(enum shoal_operation operation, const char *name) {
    return (struct shoal_request){.operation = operation,
                                  .ino = SHOAL_INO_ROOT,
                                  .name = name,
                                  .name_bytes = strlen(name),
                                  .mode = 0644,
                                  .flags = RW};
}

static struct shoal_file *make(struct shared *shared, const char *name, uint32_t flags) {
    struct shoal_request request = named(SHOAL_CREATE, name);

    request.flags = flags;
    CHECK(shoal_run(shared->client, &request) == 0);
    return request.file;
}

static struct shoal_request move(enum shoal_operation operation, struct shoal_file *file,
                                 uint64_t offset, void *data, size_t size) {
    return (struct shoal_request){
        .operation = operation, .file = file, .offset = offset, .data = data, .size = size};
}

static int64_t on_file(struct shared *shared, enum shoal_operation operation,
                       struct shoal_file *file) {
    return run(shared, (struct shoal_request){.operation = operation, .file = file});
}

static void fill(struct runner *runner, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = prng_next(&runner->prng);

        memcpy(runner->data + i, &word, MIN(size - i, sizeof word));
    }
}

/* A file from its making to its end. */
static void own_file(struct runner *runner) {
    struct shared *shared = runner->shared;
    size_t size = (size_t)prng_below(&runner->prng, FILE_BYTES) + 1;
    char name[32];
    char other[32];

    size = prng_chance(&runner->prng, 1, 2) ? size % 5000 + 1 : size;
    snprintf(name, sizeof name, "own%u", runner->number);
    snprintf(other, sizeof other, "other%u", runner->number);
    fill(runner, size);
    struct shoal_file *file = make(shared, name, RW | SHOAL_OPEN_EXCLUSIVE);
    CHECK(run(shared, move(SHOAL_WRITE, file, 0, runner->data, size)) == (int64_t)(size));
    struct shoal_request look = named(SHOAL_LOOKUP, name);
    CHECK(shoal_run(shared->client, &look) == 0);
    CHECK(look.attributes.size == size);
    if (prng_chance(&runner->prng, 1, 4)) {
        CHECK(on_file(shared, SHOAL_FSYNC, file) == 0);
    }
    CHECK(on_file(shared, SHOAL_RELEASE, file) == 0);
    struct shoal_request rename = named(SHOAL_RENAME, name);
    rename.new_ino = SHOAL_INO_ROOT;
    rename.new_name = other;
    rename.new_name_bytes = strlen(other);
    rename.flags = 0;
    CHECK(run(shared, rename) == 0);
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = look.attributes.ino, .flags = SHOAL_OPEN_READ};
    CHECK(shoal_run(shared->client, &open) == 0);
    CHECK(run(shared, named(SHOAL_UNLINK, other)) == 0);
    memset(runner->back, 0, size);
    CHECK(run(shared, move(SHOAL_READ, open.file, 0, runner->back, FILE_BYTES)) == (int64_t)(size));
    CHECK(memcmp(runner->back, runner->data, size) == 0);
    CHECK(on_file(shared, SHOAL_RELEASE, open.file) == 0);
}

/* Neighbours share blocks and chunks; nobody may lose a byte by that. */
static void own_region(struct runner *runner) {
    struct shared *shared = runner->shared;
    uint64_t offset = (uint64_t)runner->number * REGION_BYTES;

    fill(runner, REGION_BYTES);
    CHECK(run(shared, move(SHOAL_WRITE, shared->regions, offset, runner->data, REGION_BYTES)) ==
          (int64_t)(REGION_BYTES));
    CHECK(run(shared, move(SHOAL_READ, shared->regions, offset, runner->back, REGION_BYTES)) ==
          (int64_t)(REGION_BYTES));
    CHECK(memcmp(runner->back, runner->data, REGION_BYTES) == 0);
}

static void append(struct runner *runner) {
    struct shared *shared = runner->shared;
    struct shoal_file *file = make(shared, "log", SHOAL_OPEN_WRITE | SHOAL_OPEN_APPEND);

    memset(runner->data, (int)('a' + runner->number), RECORD_BYTES);
    CHECK(run(shared, move(SHOAL_WRITE, file, 0, runner->data, RECORD_BYTES)) ==
          (int64_t)(RECORD_BYTES));
    CHECK(on_file(shared, SHOAL_RELEASE, file) == 0);
}

static void *runner_main(void *context) {
    struct runner *runner = context;

    CHECK(shoal_thread_enter(runner->shared->client) == 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        own_file(runner);
        own_region(runner);
        if (round < APPENDS) {
            append(runner);
        }
    }
    shoal_thread_leave(runner->shared->client);
    return NULL;
}

/* One that does not say that it makes many calls. */
static void *visitor_main(void *context) {
    struct runner *runner = context;

    for (uint32_t round = 0; round < 5; round++) {
        own_file(runner);
        own_region(runner);
    }
    return NULL;
}

/* Every record is there, whole. */
static void log_check(struct shared *shared) {
    static uint8_t data[THREADS * APPENDS * RECORD_BYTES + 1];
    uint32_t counts[THREADS] = {0};
    struct shoal_file *file = make(shared, "log", SHOAL_OPEN_READ);

    assert_int_equal(run(shared, move(SHOAL_READ, file, 0, data, sizeof data)), sizeof data - 1);
    for (size_t i = 0; i < sizeof data - 1; i += RECORD_BYTES) {
        assert_in_range(data[i], 'a', 'a' + THREADS - 1);
        counts[data[i] - 'a']++;
        for (size_t k = 1; k < RECORD_BYTES; k++) {
            assert_int_equal(data[i + k], data[i]);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(counts[i], APPENDS);
    }
    assert_int_equal(on_file(shared, SHOAL_RELEASE, file), 0);
}

static void test_threads_share_a_client(void **state) {
    struct local_place place;
    struct runner *runners = calloc(THREADS, sizeof *runners);
    pthread_t threads[THREADS];

    (void)state;
    local_place_open(&place);
    struct shared shared = {.client = local_cluster_client(place.cluster)};
    shared.regions = make(&shared, "regions", RW);
    /* What that began here, others may come to wait for: it ends before this thread sleeps. */
    while (local_cluster_thread_go_on(place.cluster)) {
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i].shared = &shared;
        runners[i].number = i;
        prng_init(&runners[i].prng, i);
        assert_int_equal(pthread_create(&threads[i], NULL, runner_main, &runners[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(pthread_create(&threads[0], NULL, visitor_main, &runners[0]), 0);
    pthread_join(threads[0], NULL);
    log_check(&shared);
    assert_int_equal(on_file(&shared, SHOAL_RELEASE, shared.regions), 0);
    local_place_close(&place);
    free(runners);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_a_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
