/* What keys cost: signing and checking a capability.
 *
 *     bench_keys
 *
 * Each row prints a line of JSON: CPU time an operation, on one thread. */
#include "keys/signer.h"
#include "store/capability_check.h"
#include <assert.h>
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

int main(void) {
    struct bench bench;

    bench_init(&bench);
    row_run(&bench, "capability sign", sign);
    row_run(&bench, "capability check", check_new);
    row_run(&bench, "capability check, known", check_known);
    row_run(&bench, "capability check, forged", check_forged);
    bench_deinit(&bench);
    return 0;
}
