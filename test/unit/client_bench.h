/* A client on toy servers, and requests that are done when they return. */
#pragma once
#include "unit.h"
#include "client/client.h"
#include "toy_cluster.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct toy_cluster cluster;
    struct shoal_client *client;
    int started;
    int stopped;
};

/* A request and whether it is done. */
struct asked {
    struct shoal_request request;
    bool done;
};

enum { RW = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE };

void note_result(void *context, int result);
void bench_open(struct bench *bench, struct client_options options);
int setup(void **state);
int teardown(void **state);
void start(struct bench *bench, struct asked *asked, struct shoal_request request);
int64_t run(struct bench *bench, struct shoal_request *request);
void tick(struct bench *bench, uint64_t ns);
struct shoal_file *make(struct bench *bench, const char *name, uint32_t flags);
uint64_t ino_of(struct bench *bench, struct shoal_file *file);
struct shoal_request write_of(struct shoal_file *file, uint64_t offset, const void *data,
                              size_t size);
int64_t put(struct bench *bench, struct shoal_file *file, uint64_t offset, const void *data,
            size_t size);
int64_t get(struct bench *bench, struct shoal_file *file, uint64_t offset, void *data, size_t size);
int64_t on_file(struct bench *bench, enum shoal_operation operation, struct shoal_file *file);
int64_t cut(struct bench *bench, struct shoal_file *file, uint64_t size);
uint64_t size_by_lookup(struct bench *bench, const char *name);
/* Bytes that say where they belong. */
uint8_t *pattern(size_t size, uint32_t salt);

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
