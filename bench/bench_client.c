/* What libshoal's requests cost on the real engine in one process, one thread, nothing waiting:
 * from shoal_submit to done. Prints a line of JSON for each. Takes a directory for the cluster.
 *
 * Best of several rounds, as the machine has other things to do. */
#include "node/local_cluster.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, CALLS = 100000, FILES = 1000, FILE_BYTES = 4 * 1024 * 1024, SMALL = 4096 };

struct bench {
    struct local_cluster *cluster;
    struct shoal_client *client;
    struct shoal_file *small; /* with its inode */
    struct shoal_file *big;
    uint64_t inos[FILES];
    uint8_t *buffer;
};

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int64_t must(struct bench *bench, struct shoal_request *request) {
    int64_t r = shoal_run(bench->client, request);

    if (r < 0) {
        fprintf(stderr, "operation %d: %lld\n", (int)request->operation, (long long)r);
        exit(1);
    }
    return r;
}

static struct shoal_request named(enum shoal_operation operation, char *name, uint32_t number) {
    int size = snprintf(name, 32, "file%u", number);

    return (struct shoal_request){.operation = operation,
                                  .ino = SHOAL_INO_ROOT,
                                  .name = name,
                                  .name_bytes = (size_t)size,
                                  .mode = 0644,
                                  .flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE};
}

static void one_lookup(struct bench *bench, uint32_t i) {
    char name[32];
    struct shoal_request request = named(SHOAL_LOOKUP, name, i % FILES);

    must(bench, &request);
}

static void one_getattr(struct bench *bench, uint32_t i) {
    struct shoal_request request = {.operation = SHOAL_GETATTR, .ino = bench->inos[i % FILES]};

    must(bench, &request);
}

static void one_open_close(struct bench *bench, uint32_t i) {
    struct shoal_request request = {
        .operation = SHOAL_OPEN, .ino = bench->inos[i % FILES], .flags = SHOAL_OPEN_READ};

    must(bench, &request);
    request.operation = SHOAL_RELEASE;
    must(bench, &request);
}

static void one_inline_read(struct bench *bench, uint32_t i) {
    struct shoal_request request = {
        .operation = SHOAL_READ, .file = bench->small, .data = bench->buffer, .size = SMALL};

    (void)i;
    must(bench, &request);
}

static void one_chunk_read(struct bench *bench, uint32_t i) {
    struct shoal_request request = {.operation = SHOAL_READ,
                                    .file = bench->big,
                                    .offset = (uint64_t)(i * 7919 % (FILE_BYTES / SMALL)) * SMALL,
                                    .data = bench->buffer,
                                    .size = SMALL};

    must(bench, &request);
}

static void one_chunk_write(struct bench *bench, uint32_t i) {
    struct shoal_request request = {.operation = SHOAL_WRITE,
                                    .file = bench->big,
                                    .offset = (uint64_t)(i * 7919 % (FILE_BYTES / SMALL)) * SMALL,
                                    .data = bench->buffer,
                                    .size = SMALL};

    must(bench, &request);
}

static void measure(struct bench *bench, const char *name,
                    void (*one)(struct bench *bench, uint32_t i)) {
    uint64_t best = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_ns();

        for (uint32_t i = 0; i < CALLS; i++) {
            one(bench, i);
        }
        best = MIN(best, clock_ns() - start);
    }
    printf("{\"name\": \"client_%s\", \"ns\": %.0f}\n", name, (double)best / CALLS);
    fflush(stdout);
}

static void prepare(struct bench *bench) {
    char name[32];

    for (uint32_t i = 0; i < FILES; i++) {
        struct shoal_request request = named(SHOAL_CREATE, name, i);

        must(bench, &request);
        bench->inos[i] = request.attributes.ino;
        request.operation = SHOAL_RELEASE;
        must(bench, &request);
    }
    struct shoal_request request = named(SHOAL_CREATE, name, FILES);
    must(bench, &request);
    bench->small = request.file;
    request = (struct shoal_request){
        .operation = SHOAL_WRITE, .file = bench->small, .data = bench->buffer, .size = SMALL};
    must(bench, &request);
    request = named(SHOAL_CREATE, name, FILES + 1);
    must(bench, &request);
    bench->big = request.file;
    for (uint64_t at = 0; at < FILE_BYTES; at += SMALL) {
        request = (struct shoal_request){.operation = SHOAL_WRITE,
                                         .file = bench->big,
                                         .offset = at,
                                         .data = bench->buffer,
                                         .size = SMALL};
        must(bench, &request);
    }
}

int main(int argc, char **argv) {
    struct bench bench = {.buffer = aligned_alloc(4096, SMALL)};
    struct local_cluster_options options = {
        .directory = argc > 1 ? argv[1] : "", .ost_count = 1, .origin = "bench"};
    char problem[512];

    if (argc != 2 || local_cluster_open(&options, &bench.cluster, problem)) {
        fprintf(stderr, "%s\n", argc == 2 ? problem : "bench_client DIRECTORY (empty)");
        return 1;
    }
    bench.client = local_cluster_client(bench.cluster);
    memset(bench.buffer, 7, SMALL);
    prepare(&bench);
    measure(&bench, "lookup", one_lookup);
    measure(&bench, "getattr", one_getattr);
    measure(&bench, "open_close", one_open_close);
    measure(&bench, "inline_read_4k", one_inline_read);
    measure(&bench, "chunk_read_4k", one_chunk_read);
    measure(&bench, "chunk_write_4k", one_chunk_write);
    for (int i = 0; i < 2; i++) {
        struct shoal_request request = {.operation = SHOAL_RELEASE,
                                        .file = i ? bench.big : bench.small};
        must(&bench, &request);
    }
    int r = local_cluster_stop(bench.cluster);
    local_cluster_close(bench.cluster);
    free(bench.buffer);
    return r < 0;
}
