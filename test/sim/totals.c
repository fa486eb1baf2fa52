/* Adding up, printing, checking. */
#include "totals.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    bool must_count;
} totals_known[] = {
#define TOTAL_ROW(name, text, counts) {text, counts},
    TOTALS(TOTAL_ROW)
#undef TOTAL_ROW
};

static uint64_t crashes_of(const uint64_t counts[TOTAL_COUNT]) {
    return counts[TOTAL_KILLS] + counts[TOTAL_POWERS];
}

void seed_report_check(struct seed_report *report) {
    const struct {
        const char *what;
        uint64_t is;
        uint64_t min;
    } rules[] = {
        {"clients", report->clients, RULE_CLIENTS_MIN},
        {"OSTs", report->osts, 1},
        {"operations", report->counts[TOTAL_OPERATIONS], RULE_OPERATIONS_MIN},
        {"successful operations", report->counts[TOTAL_SUCCEEDED], RULE_SUCCEEDED_MIN},
        {"crashes", crashes_of(report->counts), RULE_CRASHES_MIN},
    };

    for (size_t i = 0; report->clean && i < ARRAY_SIZE(rules); i++) {
        if (rules[i].is < rules[i].min) {
            report->clean = false;
            snprintf(report->failure, sizeof report->failure,
                     "has %" PRIu64 " %s, must have %" PRIu64, rules[i].is, rules[i].what,
                     rules[i].min);
        }
    }
    /* Where no row of a session is lost with the power, all that was granted has a place. */
    if (report->clean && report->counts[TOTAL_POWERS] == 0 &&
        report->counts[TOTAL_OUTCOMES_REFUSED] > 0) {
        report->clean = false;
        snprintf(report->failure, sizeof report->failure,
                 "has %" PRIu64 " mutations refused for want of a place for their outcomes",
                 report->counts[TOTAL_OUTCOMES_REFUSED]);
    }
    if (report->clean && report->osts > RULE_OSTS_MAX) {
        report->clean = false;
        snprintf(report->failure, sizeof report->failure, "has %" PRIu32 " OSTs", report->osts);
    }
}

static void hash_add(struct totals *totals, uint64_t hash) {
    if (totals->hash_count == totals->hash_capacity) {
        totals->hash_capacity = totals->hash_capacity > 0 ? 2 * totals->hash_capacity : 256;
        totals->hashes = realloc(totals->hashes, totals->hash_capacity * sizeof *totals->hashes);
        if (!totals->hashes) {
            abort();
        }
    }
    totals->hashes[totals->hash_count++] = hash;
}

void totals_add(struct totals *totals, const struct seed_report *report) {
    totals->seeds++;
    for (size_t i = 0; i < TOTAL_COUNT; i++) {
        totals->counts[i] += report->counts[i];
    }
    if (!report->clean) {
        totals->failed++;
        return;
    }
    bool first = totals->hash_count == 0;
    uint64_t operations = report->counts[TOTAL_OPERATIONS];
    uint64_t succeeded = report->counts[TOTAL_SUCCEEDED];
    uint64_t crashes = crashes_of(report->counts);

    totals->smallest += report->smallest;
    totals->streams += report->streams;
    for (uint32_t pair = 0; pair < FULL_PAIRS; pair++) {
        totals->pairs[pair] += report->full_pairs >> pair & 1;
    }
    totals->laps[MIN(report->laps, (uint64_t)TOTALS_LAPS_MAX)] += report->wraps;
    totals->operations_min = first ? operations : MIN(totals->operations_min, operations);
    totals->succeeded_min = first ? succeeded : MIN(totals->succeeded_min, succeeded);
    totals->crashes_min = first ? crashes : MIN(totals->crashes_min, crashes);
    totals->clients_min = first ? report->clients : MIN(totals->clients_min, report->clients);
    totals->osts_min = first ? report->osts : MIN(totals->osts_min, report->osts);
    totals->osts_max = MAX(totals->osts_max, report->osts);
    totals->answers_ns_max = MAX(totals->answers_ns_max, report->answers_ns);
    totals->alive_ns_max = MAX(totals->alive_ns_max, report->alive_ns);
    totals->waited_ns_max = MAX(totals->waited_ns_max, report->waited_ns);
    hash_add(totals, report->hash);
}

static int hash_compare(const void *a, const void *b) {
    const uint64_t *left = a;
    const uint64_t *right = b;

    return (*left > *right) - (*left < *right);
}

static size_t distinct_count(const struct totals *totals) {
    size_t count = totals->hash_count > 0;

    if (totals->hash_count > 0) {
        qsort(totals->hashes, totals->hash_count, sizeof *totals->hashes, hash_compare);
    }
    for (size_t i = 1; i < totals->hash_count; i++) {
        count += totals->hashes[i] != totals->hashes[i - 1];
    }
    return count;
}

static unsigned counts_print(const struct totals *totals, FILE *file) {
    bool checks = totals->seeds >= TOTALS_SEEDS_MIN;
    unsigned broken = 0;

    for (size_t i = 0; i < TOTAL_COUNT; i++) {
        bool low = checks && totals_known[i].must_count && totals->counts[i] < TOTALS_LEAST;

        fprintf(file, "%-28s %12" PRIu64 "%s\n", totals_known[i].text, totals->counts[i],
                low ? "  too few" : "");
        broken += low;
    }
    return broken;
}

/* Of an even number of seeds, the lower one. */
static uint64_t laps_median_of(const struct totals *totals, uint64_t *ret_seeds) {
    uint64_t below = 0;
    uint64_t median = 0;

    *ret_seeds = 0;
    for (size_t i = 0; i <= TOTALS_LAPS_MAX; i++) {
        *ret_seeds += totals->laps[i];
    }
    for (; median < TOTALS_LAPS_MAX; median++) {
        below += totals->laps[median];
        if (2 * below >= *ret_seeds) {
            break;
        }
    }
    return median;
}

static void pairs_print(const struct totals *totals, FILE *file) {
    fprintf(file, "  seeds with two limits of a target full at once:");
    for (uint32_t pair = 0; pair < FULL_PAIRS; pair++) {
        enum full first;
        enum full second;

        full_pair(pair, &first, &second);
        if (totals->pairs[pair] > 0) {
            fprintf(file, " %s and %s %" PRIu64 ";", full_names[first], full_names[second],
                    totals->pairs[pair]);
        }
    }
    fprintf(file, "\n");
}

static bool laps_print(const struct totals *totals, FILE *file) {
    uint64_t seeds;
    uint64_t median = laps_median_of(totals, &seeds);
    bool few = seeds >= RULE_LAPS_SEEDS && median < RULE_LAPS;

    fprintf(file,
            "  rings of the median of those that wrap come round %d times in a life: %" PRIu64
            ", of %" PRIu64 "%s\n",
            RULE_LAPS, median, seeds, few ? "  broken" : "");
    return few;
}

static unsigned rules_print(const struct totals *totals, FILE *file) {
    size_t clean = totals->hash_count;
    size_t distinct = distinct_count(totals);
    /* Of a few seeds, those of regressions.txt may outweigh the others. */
    bool few_smallest = totals->failed == 0 && totals->seeds >= TOTALS_SEEDS_MIN &&
                        totals->smallest < totals->seeds * 32 / 100;

    fprintf(file, "rules, each seed:\n");
    fprintf(file, "  at least 3 clients, 1 to 4 OSTs: %" PRIu32 ", %" PRIu32 " to %" PRIu32 "\n",
            totals->clients_min, totals->osts_min, totals->osts_max);
    fprintf(file, "  at least %d operations, %d succeed: %" PRIu64 ", %" PRIu64 "\n",
            RULE_OPERATIONS_MIN, RULE_SUCCEEDED_MIN, totals->operations_min, totals->succeeded_min);
    fprintf(file, "  at least %d crash: %" PRIu64 "\n", RULE_CRASHES_MIN, totals->crashes_min);
    fprintf(file, "  all answered %d s after faults: %.3f s at most\n", RULE_ANSWERS_S,
            (double)totals->answers_ns_max / (double)NS_PER_S);
    fprintf(file, "  one of each kind within %d s at the end: %.3f s at most\n", RULE_ALIVE_S,
            (double)totals->alive_ns_max / (double)NS_PER_S);
    fprintf(file, "  then nothing waits after %d s: %.3f s at most\n", RULE_WAITS_S,
            (double)totals->waited_ns_max / (double)NS_PER_S);
    fprintf(file, "  two runs alike: %zu of %" PRIu64 "\n", clean, totals->seeds);
    fprintf(file, "rules, all seeds:\n");
    fprintf(file, "  no two seeds alike: %zu of %zu%s\n", distinct, clean,
            distinct < clean ? "  broken" : "");
    fprintf(file, "  a third with the smallest sizes: %" PRIu64 " of %zu%s\n", totals->smallest,
            clean, few_smallest ? "  broken" : "");
    fprintf(file, "  calls by lanes over streams: %" PRIu64 " of %zu\n", totals->streams, clean);
    pairs_print(totals, file);
    return (distinct < clean) + (unsigned)few_smallest + laps_print(totals, file);
}

unsigned totals_print(const struct totals *totals, FILE *file) {
    unsigned broken = counts_print(totals, file);

    return broken + rules_print(totals, file);
}

void totals_deinit(struct totals *totals) {
    free(totals->hashes);
    totals->hashes = NULL;
}
