/* What streams by libshoal cost over TCP: a session in this process with a cluster whose daemons
 * are others', beside a bare TCP stream in the same run.
 *
 *     bench_remote ADDRESS:PORT KEY ROUNDS MIBS [tls]
 *
 * Writes a file by MIBS requests of 1 MiB and reads it, DEPTH under way, ROUNDS times by turns with
 * the bare stream; on loopback plain behind the proof of the keys, or in TLS. Prints a line of JSON
 * for each of both: the medians. */
#include "bare_socket.h"
#include "node/key_path.h"
#include "node/remote_client.h"
#include "rpc/worker.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, DEPTH = 8, PATIENCE_S = 30, NAP_NS = 1000000 };

static struct {
    struct remote_client *remote;
    struct shoal_client *client;
    struct shoal_file *file;
    uint8_t *data; /* of each request a piece */
    struct shoal_request requests[DEPTH];
    atomic_bool are_free[DEPTH];
} it;

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void say(const char *line) {
    fprintf(stderr, "bench_remote: %s\n", line);
}

static void must(int64_t result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "bench_remote: %s: %s\n", what, strerror((int)-result));
        exit(1);
    }
}

static void request_done(struct shoal_request *request) {
    atomic_bool *is_free = request->context;

    atomic_store(is_free, true);
}

/* Looks after this thread's calls; sleeps where there is nothing to do. */
static void turn(void) {
    if (!remote_client_thread_idle(it.remote)) {
        (void)env_loop_wait(remote_client_env(it.remote), -1, NAP_NS);
    }
}

/* Starts what there is room for. */
static void begin(enum shoal_operation operation, uint64_t count, uint64_t *next) {
    for (uint32_t i = 0; i < DEPTH && *next < count; i++) {
        struct shoal_request *request = &it.requests[i];

        if (!atomic_load(&it.are_free[i])) {
            continue;
        }
        must(request->result, operation == SHOAL_READ ? "a read" : "a write");
        *request = (struct shoal_request){.operation = operation,
                                          .file = it.file,
                                          .offset = (*next)++ * MIB,
                                          .data = it.data + (size_t)i * MIB,
                                          .size = MIB,
                                          .done = request_done,
                                          .context = &it.are_free[i]};
        atomic_store(&it.are_free[i], false);
        shoal_submit(it.client, request);
    }
}

static bool are_over(void) {
    bool are = true;

    for (uint32_t i = 0; i < DEPTH; i++) {
        are = are && atomic_load(&it.are_free[i]);
    }
    return are;
}

static double stream_gb_s(enum shoal_operation operation, uint64_t count) {
    uint64_t start_ns = now_ns();
    uint64_t next = 0;

    do {
        begin(operation, count, &next);
        turn();
    } while (next < count || !are_over());
    for (uint32_t i = 0; i < DEPTH; i++) {
        must(it.requests[i].result, "the last requests");
    }
    return (double)count * (double)MIB / (double)(now_ns() - start_ns);
}

static void file_open(void) {
    char name[32];
    int size = snprintf(name, sizeof name, "stream%d", (int)getpid());
    struct shoal_request request = {.operation = SHOAL_CREATE,
                                    .ino = SHOAL_INO_ROOT,
                                    .name = name,
                                    .name_bytes = (size_t)size,
                                    .mode = 0644,
                                    .flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE};

    must(shoal_run(it.client, &request), "a file in the cluster's root");
    it.file = request.file;
}

static void file_close(void) {
    struct shoal_request request = {.operation = SHOAL_RELEASE, .file = it.file};

    must(shoal_run(it.client, &request), "the file's close");
}

static void measure(size_t rounds, uint64_t count) {
    double written[ROUNDS_MAX], read[ROUNDS_MAX], bare[ROUNDS_MAX];

    (void)stream_gb_s(SHOAL_WRITE, count); /* blocks and connections are there from here on */
    for (size_t i = 0; i < rounds; i++) {
        bare[i] = (double)count * (double)MIB / bare_socket_ns(true, 0, count);
        written[i] = stream_gb_s(SHOAL_WRITE, count);
        read[i] = stream_gb_s(SHOAL_READ, count);
    }
    double limit = bare_median(bare, rounds);

    printf("{\"name\": \"written\", \"gb_s\": %.3f, \"bare_gb_s\": %.3f}\n",
           bare_median(written, rounds), limit);
    printf("{\"name\": \"read\", \"gb_s\": %.3f, \"bare_gb_s\": %.3f}\n", bare_median(read, rounds),
           limit);
}

int main(int argc, char **argv) {
    static struct key_file key;
    struct remote_client_options options = {.name = argv[1],
                                            .key = &key,
                                            .origin = "bench_remote",
                                            .patience_ns = PATIENCE_S * NS_PER_S,
                                            .address_count = 1,
                                            .log = say};
    bool tls = argc == 6 && strcmp(argv[5], "tls") == 0;
    uint64_t rounds = argc == 5 || tls ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t count = argc == 5 || tls ? strtoull(argv[4], NULL, 10) : 0;
    char problem[512];

    if (rounds < 1 || rounds > ROUNDS_MAX || count < DEPTH ||
        address_parse(argv[1], &options.addresses[0]) < 0) {
        fprintf(stderr, "usage: bench_remote ADDRESS:PORT KEY ROUNDS MIBS [tls]\n");
        return 2;
    }
    options.encryption = tls ? LINK_ENCRYPTED_ALWAYS : LINK_ENCRYPTED;
    if (key_path_read(argv[2], &key, problem) < 0 ||
        remote_client_open(&options, &it.remote, problem) < 0) {
        fprintf(stderr, "bench_remote: %s\n", problem);
        return 1;
    }
    it.client = remote_client_client(it.remote);
    it.data = aligned_alloc(BLOCK_BYTES, (size_t)DEPTH * MIB);
    assert(it.data);
    memset(it.data, 7, (size_t)DEPTH * MIB);
    for (uint32_t i = 0; i < DEPTH; i++) {
        atomic_init(&it.are_free[i], true);
    }
    file_open();
    measure(rounds, count);
    file_close();
    int r = remote_client_stop(it.remote, PATIENCE_S * NS_PER_S);

    remote_client_close(it.remote);
    free(it.data);
    return r < 0;
}
