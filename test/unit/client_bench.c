/* Requests to a client on toy servers. */
#include "client_bench.h"

void note_result(void *context, int result) {
    *(int *)context = result;
}

/* Requests before the session began are refused, not lost. */
static void too_early(struct shoal_request *request) {
    *(int64_t *)request->context = request->result;
}

void bench_open(struct bench *bench, struct client_options options) {
    memset(bench, 0, sizeof *bench);
    toy_cluster_init(&bench->cluster);
    options.env = bench->cluster.env;
    options.rpc = bench->cluster.rpc;
    options.node = (struct node_id){7};
    options.incarnation = 9;
    options.origin = "/mnt";
    options.request_timeout_ns = 10 * NS_PER_S;
    assert_int_equal(client_new(&options, &bench->client), 0);
    int64_t early = 0;
    struct shoal_request sync = {.operation = SHOAL_SYNC, .done = too_early, .context = &early};
    shoal_submit(bench->client, &sync);
    assert_int_equal(early, -ENOTCONN);
    bench->started = 1;
    client_start(bench->client, note_result, &bench->started);
    assert_int_equal(bench->started, 0);
    toy_cluster_pass(&bench->cluster, NS_PER_S);
}

int setup(void **state) {
    *state = malloc(sizeof(struct bench));
    bench_open(*state, (struct client_options){.open_files_max = 640, .chunk_calls_max = 4096});
    return 0;
}

int teardown(void **state) {
    struct bench *bench = *state;

    bench->stopped = 1;
    client_stop(bench->client, note_result, &bench->stopped);
    assert_int_equal(bench->stopped, 0);
    client_free(bench->client);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
    toy_cluster_deinit(&bench->cluster);
    free(bench);
    return 0;
}

static void asked_done(struct shoal_request *request) {
    ((struct asked *)request)->done = true;
}

void start(struct bench *bench, struct asked *asked, struct shoal_request request) {
    asked->request = request;
    asked->request.done = asked_done;
    asked->done = false;
    shoal_submit(bench->client, &asked->request);
    while (worker_run_one(&bench->cluster.worker)) {
    }
}

int64_t run(struct bench *bench, struct shoal_request *request) {
    struct asked asked;

    start(bench, &asked, *request);
    assert_true(asked.done);
    *request = asked.request;
    return request->result;
}

void tick(struct bench *bench, uint64_t ns) {
    toy_cluster_pass(&bench->cluster, ns);
    client_tick(bench->client);
    while (worker_run_one(&bench->cluster.worker)) {
    }
}

struct shoal_file *make(struct bench *bench, const char *name, uint32_t flags) {
    struct shoal_request request = {.operation = SHOAL_CREATE,
                                    .ino = SHOAL_INO_ROOT,
                                    .name = name,
                                    .name_bytes = strlen(name),
                                    .mode = 0644,
                                    .flags = flags};

    assert_int_equal(run(bench, &request), 0);
    return request.file;
}

uint64_t ino_of(struct bench *bench, struct shoal_file *file) {
    struct shoal_request request = {.operation = SHOAL_GETATTR, .file = file};

    assert_int_equal(run(bench, &request), 0);
    return request.attributes.ino;
}

struct shoal_request write_of(struct shoal_file *file, uint64_t offset, const void *data,
                              size_t size) {
    return (struct shoal_request){.operation = SHOAL_WRITE,
                                  .file = file,
                                  .offset = offset,
                                  .data = (void *)(uintptr_t)data,
                                  .size = size};
}

int64_t put(struct bench *bench, struct shoal_file *file, uint64_t offset, const void *data,
            size_t size) {
    struct shoal_request request = write_of(file, offset, data, size);

    return run(bench, &request);
}

int64_t get(struct bench *bench, struct shoal_file *file, uint64_t offset, void *data,
            size_t size) {
    struct shoal_request request = {
        .operation = SHOAL_READ, .file = file, .offset = offset, .data = data, .size = size};

    return run(bench, &request);
}

int64_t on_file(struct bench *bench, enum shoal_operation operation, struct shoal_file *file) {
    struct shoal_request request = {.operation = operation, .file = file};

    return run(bench, &request);
}

int64_t cut(struct bench *bench, struct shoal_file *file, uint64_t size) {
    struct shoal_request request = {.operation = SHOAL_SETATTR,
                                    .file = file,
                                    .set = SHOAL_SET_SIZE,
                                    .attributes = {.size = size}};

    return run(bench, &request);
}

uint64_t size_by_lookup(struct bench *bench, const char *name) {
    struct shoal_request request = {
        .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = name, .name_bytes = strlen(name)};

    assert_int_equal(run(bench, &request), 0);
    return request.attributes.size;
}

uint8_t *pattern(size_t size, uint32_t salt) {
    uint8_t *data = malloc(size);

    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)((i * 2654435761U + salt) >> 13);
    }
    return data;
}
