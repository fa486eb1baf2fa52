/* What keys cost: signing and checking a capability; handshakes, records and memory of links.
 *
 *     bench_keys
 *
 * Each row prints a line of JSON: CPU time an operation, on one thread; of links both ends. */
#include "keys/signer.h"
#include "keys/tls.h"
#include "store/capability_check.h"
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPERATIONS = 400000 };

struct bench {
    struct key_ring *ring;
    struct signer signer;
    struct capability_check check;
    struct capability capability;
};

static uint64_t cpu_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void bench_init(struct bench *bench) {
    const struct secret secret = {{1, 2, 3}};
    struct key_file file;

    key_file_make(&secret, &file);
    if (key_ring_new(&file, &bench->ring) < 0) {
        abort();
    }
    signer_init(&bench->signer, bench->ring, SIGNER_OF_CAPABILITIES, 1);
    capability_check_init(&bench->check, bench->ring, false);
    bench->capability = (struct capability){.ino = {77}, .generation = 1, .rights = RIGHT_READ};
}

static void bench_deinit(struct bench *bench) {
    capability_check_deinit(&bench->check);
    signer_deinit(&bench->signer);
    key_ring_free(bench->ring);
}

/* As an MDT does for each open. */
static void sign(struct bench *bench, uint32_t i) {
    uint8_t bytes[CAPABILITY_SIGNED_BYTES];
    uint8_t tag[TAG_BYTES];
    struct key_use use = signer_use(&bench->signer);

    bench->capability.ino.value = i;
    bench->capability.key_name = use.name.value;
    bench->capability.key_number = use.number;
    capability_signed_bytes(&bench->capability, bytes);
    signer_sign(&bench->signer, use, (struct bytes){bytes, sizeof bytes}, tag);
    memcpy(bench->capability.signature, tag, sizeof bench->capability.signature);
}

static void check_known(struct bench *bench, uint32_t i) {
    (void)i;
    if (capability_check_signed(&bench->check, &bench->capability) < 0) {
        abort();
    }
}

static void check_new(struct bench *bench, uint32_t i) {
    /* It is not among those that are known. */
    bench->check.known[bench->capability.signature[0] % CAPABILITIES_KNOWN].bytes[0] ^= 1;
    check_known(bench, i);
}

static void check_forged(struct bench *bench, uint32_t i) {
    struct capability forged = bench->capability;

    forged.max_offset = i + UINT64_C(1);
    if (capability_check_signed(&bench->check, &forged) == 0) {
        abort();
    }
}

static void row_run(struct bench *bench, const char *name,
                    void (*operation)(struct bench *bench, uint32_t i)) {
    uint64_t begin = cpu_ns();

    for (uint32_t i = 0; i < OPERATIONS; i++) {
        operation(bench, i);
    }
    printf("{\"bench\": \"keys\", \"row\": \"%s\", \"cpu_ns\": %.1f}\n", name,
           (double)(cpu_ns() - begin) / OPERATIONS);
}

enum { HANDSHAKES = 2000, MEBIBYTES = 2000, MACHINES = 100 };

/* Two machines, of which each gets what the other says. */
struct link {
    struct tls_context *serving;
    struct tls_context *calling;
    struct tls *server;
    struct tls *client;
};

static void link_begin(struct link *link, const struct key_ring *ring) {
    const struct secret secret = {{1, 2, 3}};
    struct key_file file;

    key_file_make(&secret, &file);
    if (tls_context_serve(ring, &link->serving) < 0 ||
        tls_context_call(&file, &link->calling) < 0) {
        abort();
    }
}

static void link_end(struct link *link) {
    tls_context_free(link->serving);
    tls_context_free(link->calling);
}

static void machines_free(struct link *link) {
    tls_free(link->server);
    tls_free(link->client);
}

/* All that one says, to the other; answers how much plaintext came out. */
static size_t pending_carry(struct tls *from, struct tls *to, uint8_t *space, size_t size) {
    struct buffer part = {space, 0, size};
    struct bytes pending = tls_pending(from);
    size_t said = pending.size;
    size_t opened = 1;

    while (opened > 0) {
        if (tls_open(to, &pending, &part, 1, &opened) < 0) {
            abort();
        }
    }
    tls_sent(from, said);
    return part.size;
}

static void link_shake_hands(struct link *link) {
    uint8_t space[64];

    if (tls_new(link->calling, 0, &link->client) < 0 ||
        tls_new(link->serving, 0, &link->server) < 0) {
        abort();
    }
    for (int turn = 0; turn < 3; turn++) {
        (void)pending_carry(link->server, link->client, space, sizeof space);
        (void)pending_carry(link->client, link->server, space, sizeof space);
    }
    if (!tls_is_proven(link->client) || !tls_is_proven(link->server)) {
        abort();
    }
}

static void row_print(const char *name, const char *unit, double value) {
    printf("{\"bench\": \"keys\", \"row\": \"%s\", \"%s\": %.2f}\n", name, unit, value);
}

static void handshakes_run(struct link *link) {
    uint64_t begin = cpu_ns();

    for (int i = 0; i < HANDSHAKES; i++) {
        link_shake_hands(link);
        machines_free(link);
    }
    row_print("handshake, both ends", "per_second", HANDSHAKES * 1e9 / (double)(cpu_ns() - begin));
}

static void records_run(struct link *link) {
    uint8_t *from = calloc(1, MIB);
    uint8_t *to = malloc(MIB);
    uint64_t begin;

    if (!from || !to) {
        abort();
    }
    link_shake_hands(link);
    begin = cpu_ns();
    for (int i = 0; i < MEBIBYTES; i++) {
        for (size_t done = 0, sealed; done < MIB; done += sealed) {
            const struct bytes part = {from + done, MIB - done};

            if (tls_seal(link->client, &part, 1, &sealed) < 0 ||
                pending_carry(link->client, link->server, to, MIB) != sealed) {
                abort();
            }
        }
    }
    row_print("seal and open 1 MiB", "gb_per_second",
              (double)MEBIBYTES * (double)MIB / (double)(cpu_ns() - begin));
    machines_free(link);
    free(from);
    free(to);
}

/* Untouched pages of a machine's own room count here, too. */
static void memory_run(struct link *link) {
    static struct link links[MACHINES];
    size_t before = mallinfo2().uordblks;

    for (int i = 0; i < MACHINES; i++) {
        links[i] = *link;
        link_shake_hands(&links[i]);
    }
    row_print("memory of a machine", "bytes",
              (double)(mallinfo2().uordblks - before) / (2.0 * MACHINES));
    for (int i = 0; i < MACHINES; i++) {
        machines_free(&links[i]);
    }
}

int main(void) {
    struct bench bench;
    struct link link;

    bench_init(&bench);
    row_run(&bench, "capability sign", sign);
    row_run(&bench, "capability check", check_new);
    row_run(&bench, "capability check, known", check_known);
    row_run(&bench, "capability check, forged", check_forged);
    link_begin(&link, bench.ring);
    handshakes_run(&link);
    records_run(&link);
    memory_run(&link);
    link_end(&link);
    bench_deinit(&bench);
    return 0;
}
