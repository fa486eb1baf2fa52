/* sim SEEDS [FIRST] [--trace]: plays seeds, each twice, and says what broke and how to see it. */
#include "run.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

struct words {
    uint64_t count;
    uint64_t first;
    bool trace;
};

static bool parse(int argc, char **argv, struct words *words) {
    uint64_t *numbers[] = {&words->count, &words->first};
    size_t taken = 0;

    for (int i = 1; i < argc; i++) {
        char *end;

        if (strcmp(argv[i], "--trace") == 0) {
            words->trace = true;
            continue;
        }
        if (taken == ARRAY_SIZE(numbers)) {
            return false;
        }
        *numbers[taken++] = strtoull(argv[i], &end, 10);
        if (argv[i][0] < '0' || argv[i][0] > '9' || *end != '\0') {
            return false;
        }
    }
    return words->count > 0;
}

/* Both runs of a seed must go the same way to the last event. */
static bool play_twice(uint64_t seed, const struct words *words, struct run_totals *totals) {
    struct run_totals again = {0};
    uint64_t hash;
    uint64_t hash_again;
    char failure[700] = "";

    if (!run_seed(seed, words->trace ? stdout : NULL, totals, &hash, failure)) {
        printf("seed %" PRIu64 ": %s\n", seed, failure);
        return false;
    }
    if (!run_seed(seed, NULL, &again, &hash_again, failure) || hash != hash_again) {
        printf("seed %" PRIu64 ": two runs differ (%016" PRIx64 ", %016" PRIx64 ")\n", seed, hash,
               hash_again);
        return false;
    }
    return true;
}

static void print_totals(const struct run_totals *totals) {
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"operations", totals->submitted},
        {"succeeded", totals->succeeded},
        {"refused", totals->failed},
        {"answers lost", totals->lost},
        {"crashes", totals->crashes},
        {"starts cut", totals->opens_cut},
        {"PENDING restarts", totals->pending_reads},
        {"duplicates refused", totals->duplicates_refused},
        {"checkpoints", totals->checkpoints},
        {"records replayed", totals->replayed_records},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        printf("%-20s %12" PRIu64 "\n", rows[i].name, rows[i].value);
    }
}

int main(int argc, char **argv) {
    struct words words = {.count = 1, .first = 1};
    struct run_totals totals = {0};
    uint64_t failed = 0;

    if (!parse(argc, argv, &words)) {
        fprintf(stderr, "usage: sim SEEDS [FIRST] [--trace]\n");
        return 2;
    }
    /* Worlds come and go: what one gave back serves the next, without asking the kernel. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (uint64_t seed = words.first; seed < words.first + words.count; seed++) {
        if (!play_twice(seed, &words, &totals)) {
            printf("  again: ./dev sim 1 %" PRIu64 " --trace\n", seed);
            failed++;
        }
        fflush(stdout);
    }
    print_totals(&totals);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", words.count - failed, failed);
    return failed > 0;
}
