/* Adding up, printing, checking. */
#include "totals.h"
#include <inttypes.h>

static const struct {
    const char *text;
    unsigned owners;
} totals_known[] = {
#define TOTAL_ROW(name, text, owners) {text, owners},
    TOTALS(TOTAL_ROW)
#undef TOTAL_ROW
};

static const char *const owner_names[OWNER_KIND_COUNT] = {"group", "store"};
static const char *const sync_names[TOTALS_SYNC_STAGES] = {"idle", "data", "records", "flush"};

void totals_add(struct totals *totals, const struct seed_report *report) {
    totals->seeds++;
    totals->failed += !report->clean;
    for (size_t k = 0; k < OWNER_KIND_COUNT; k++) {
        for (size_t i = 0; i < TOTAL_COUNT; i++) {
            totals->counts[k].of[i] += report->counts[k].of[i];
        }
        for (size_t s = 0; s < TOTALS_SYNC_STAGES; s++) {
            for (size_t c = 0; c < TOTALS_CHECKPOINT_STAGES; c++) {
                totals->counts[k].cut[s][c] += report->counts[k].cut[s][c];
            }
        }
    }
}

static unsigned counts_print(const struct totals *totals, bool checks, FILE *file) {
    unsigned broken = 0;

    fprintf(file, "%-38s %12s %12s\n", "", owner_names[0], owner_names[1]);
    for (size_t i = 0; i < TOTAL_COUNT; i++) {
        fprintf(file, "%-38s", totals_known[i].text);
        for (size_t k = 0; k < OWNER_KIND_COUNT; k++) {
            uint64_t count = totals->counts[k].of[i];
            bool low = checks && (totals_known[i].owners >> k & 1) && count < TOTALS_LEAST;

            fprintf(file, " %12" PRIu64 "%s", count, low ? " too few" : "");
            broken += low;
        }
        fputc('\n', file);
    }
    return broken;
}

/* Two pairs are never met: the log has one I/O, so records and flush wait for a checkpoint's
 * superblock; and one that has not to wait for them goes out in the step that wants it. It goes out
 * in the step, too, in which a sync point ends that it has waited for: there the group's clients
 * hear of that sync point in between, the store's behind the step. The sync point that a checkpoint
 * waits for begins in the step that wants it: the store's clients are seldom in between. */
static bool is_met(size_t owner, size_t sync, size_t checkpoint) {
    enum { SYNC_NONE, SYNC_OF_DATA, SYNC_OF_RECORDS };
    enum { CHECKPOINT_WAITS = 1, CHECKPOINT_TO_END = 3, CHECKPOINT_ENDS };

    return !(sync == SYNC_OF_DATA && checkpoint == CHECKPOINT_TO_END) &&
           !(sync >= SYNC_OF_RECORDS && checkpoint == CHECKPOINT_ENDS) &&
           !(sync == SYNC_NONE && owner == OWNER_STORE &&
             (checkpoint == CHECKPOINT_TO_END || checkpoint == CHECKPOINT_WAITS));
}

static unsigned matrix_print(const struct totals *totals, size_t owner, bool checks, FILE *file) {
    unsigned broken = 0;

    fprintf(file, "%s cut at: checkpoint idle, sync, commit, superblock, its flush\n",
            owner_names[owner]);
    for (size_t s = 0; s < TOTALS_SYNC_STAGES; s++) {
        fprintf(file, "  sync %-8s", sync_names[s]);
        for (size_t c = 0; c < TOTALS_CHECKPOINT_STAGES; c++) {
            uint64_t count = totals->counts[owner].cut[s][c];
            bool low = checks && count < 1 && is_met(owner, s, c);

            fprintf(file, " %9" PRIu64 "%s", count, low ? " none" : "");
            broken += low;
        }
        fputc('\n', file);
    }
    return broken;
}

static unsigned small_print(const struct totals *totals, FILE *file) {
    uint64_t recoveries = totals->counts[OWNER_GROUP].of[TOTAL_RECOVERIES];
    bool few = recoveries < TOTALS_SMALL_RECOVERIES;

    fprintf(file, "%" PRIu64 " sequences, %" PRIu64 " recoveries%s\n", totals->seeds, recoveries,
            few ? "  too few" : "");
    return few;
}

/* Instructions cost too much time for many seeds: these have done something all the same. */
static unsigned stepped_print(const struct totals *totals, FILE *file) {
    static const struct {
        enum total total;
        uint64_t least;
    } rules[] = {{TOTAL_STORES, TOTALS_STEPPED_STORES},
                 {TOTAL_RECOVERIES, TOTALS_STEPPED_RECOVERIES},
                 {TOTAL_KILLED, TOTALS_STEPPED_KILLS}};
    unsigned broken = 0;

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        uint64_t count = totals->counts[OWNER_GROUP].of[rules[i].total] +
                         totals->counts[OWNER_STORE].of[rules[i].total];
        bool low = totals->seeds >= TOTALS_STEPPED_SEEDS && count < rules[i].least;

        fprintf(file, "%s%" PRIu64 " %s%s", i > 0 ? ", " : "by instruction: ", count,
                totals_known[rules[i].total].text, low ? "  too few" : "");
        broken += low;
    }
    fputc('\n', file);
    return broken;
}

unsigned totals_print(const struct totals *totals, enum totals_of what, FILE *file) {
    bool checks = what == TOTALS_OF_SEEDS && totals->seeds >= TOTALS_SEEDS_MIN;

    if (what == TOTALS_OF_SMALL) {
        return small_print(totals, file);
    }
    unsigned broken = counts_print(totals, checks, file);

    for (size_t k = 0; k < OWNER_KIND_COUNT; k++) {
        if (totals->counts[k].of[TOTAL_SEEDS] > 0) {
            broken += matrix_print(totals, k, checks, file);
        }
    }
    return what == TOTALS_OF_STEPPED ? stepped_print(totals, file) : broken;
}
