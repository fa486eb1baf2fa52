/* sim SEEDS [FIRST] [--jobs N] [--bug NAME] [--packets | --streams] [--trace] [--once]: plays
 * seeds, each twice unless told otherwise or for a bug, and says what broke and how to see it.
 * sim stories [--write | --bug NAME]: see stories.h.
 * sim why SEED [LAST] [--jobs N] [--bug NAME] [--packets | --streams]: see why.h.
 * sim joins [--bug NAME]: see joins.h.
 *
 * The seeds of regressions.txt come first, but not in the build with bugs. With a bug it is the
 * other way round: it succeeds with the first seed that breaks, and fails when none does. */
#include "base/bug.h"
#include "jobs.h"
#include "joins.h"
#include "run.h"
#include "stories.h"
#include "why.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOBS_MAX = 64, SEEDS_MAX = 10000000, LINE_BYTES = 512 };

struct words {
    uint64_t count;
    uint64_t first;
    uint64_t jobs;
    const char *bug; /* NULL: none was named */
    bool trace;
    bool once;
    enum run_carrier carrier;
    bool why; /* of the seeds from first to last, the first that fails is asked about */
    uint64_t last;
};

static bool number_parse(const char *text, uint64_t *ret_number) {
    char *end;

    *ret_number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse(int argc, char **argv, struct words *words) {
    bool why = argc > 2 && strcmp(argv[1], "why") == 0;
    uint64_t *numbers[] = {why ? &words->first : &words->count, why ? &words->last : &words->first};
    size_t taken = 0;

    words->why = why;
    words->first = why ? 0 : words->first; /* which must be named */
    for (int i = words->why ? 2 : 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--trace") == 0) {
            words->trace = true;
        } else if (strcmp(argv[i], "--once") == 0) {
            words->once = true;
        } else if (strcmp(argv[i], "--packets") == 0 || strcmp(argv[i], "--streams") == 0) {
            words->carrier = argv[i][2] == 'p' ? CARRIER_PACKETS : CARRIER_STREAMS;
        } else if (strcmp(argv[i], "--bug") == 0 && more) {
            words->bug = argv[++i];
        } else if (strcmp(argv[i], "--jobs") == 0 && more) {
            if (!number_parse(argv[++i], &words->jobs) || words->jobs > JOBS_MAX) {
                return false;
            }
        } else if (taken == ARRAY_SIZE(numbers) || !number_parse(argv[i], numbers[taken++])) {
            return false;
        }
    }
    return words->count > 0 && words->count <= SEEDS_MAX && !(words->why && words->trace) &&
           !(words->why && words->first == 0);
}

/* Both runs of a seed, where it has two, must go the same way to the last event. */
static void play_twice(void *context, uint64_t seed, void *report) {
    const struct words *words = context;
    struct seed_report *ret_report = report;
    struct seed_report again = {.seed = seed};

    ret_report->seed = seed;
    run_seed(seed, words->trace ? stdout : NULL, NULL, ret_report);
    if (!ret_report->clean || words->once) {
        return;
    }
    run_seed(seed, NULL, NULL, &again);
    if (!again.clean || again.hash != ret_report->hash) {
        ret_report->clean = false;
        snprintf(ret_report->failure, sizeof ret_report->failure,
                 "two runs differ (%016" PRIx64 ", %016" PRIx64 ")", ret_report->hash, again.hash);
    }
}

static void died(void *context, uint64_t seed, const char *how, void *report) {
    struct seed_report *ret_report = report;

    (void)context;
    ret_report->seed = seed;
    snprintf(ret_report->failure, sizeof ret_report->failure,
             "the process of the simulator died: %s", how);
}

static bool is_among(const uint64_t *seeds, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        if (seeds[i] == seed) {
            return true;
        }
    }
    return false;
}

/* Seeds of regressions.txt: a number first in each line that is no comment. */
static size_t regressions_read(uint64_t *seeds, size_t capacity) {
    FILE *file = fopen(SIM_DIRECTORY "/regressions.txt", "r");
    char line[LINE_BYTES];
    size_t count = 0;

    if (!file) {
        perror("sim: " SIM_DIRECTORY "/regressions.txt");
        exit(1);
    }
    while (count < capacity && fgets(line, sizeof line, file)) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);

        if (end != line && !is_among(seeds, count, seed)) {
            seeds[count++] = seed;
        }
    }
    fclose(file);
    return count;
}

/* Seeds that are named one by one are played alone; a bug must be caught by the seeds that were
 * asked for. A seed of regressions.txt that was asked for as well is played once. */
static uint64_t *seeds_new(const struct words *words, size_t *ret_count) {
    enum { REGRESSIONS_MAX = 1000 };
    uint64_t *seeds = calloc(words->count + REGRESSIONS_MAX, sizeof *seeds);
    size_t listed = 0;

    if (!seeds) {
        abort();
    }
    if (words->count > 1 && !words->bug) {
        listed = regressions_read(seeds, REGRESSIONS_MAX);
    }
    size_t count = listed;
    for (uint64_t i = 0; i < words->count; i++) {
        if (!is_among(seeds, listed, words->first + i)) {
            seeds[count++] = words->first + i;
        }
    }
    *ret_count = count;
    return seeds;
}

/* As run_carry_by was told. */
static const char *const carrier_words[] = {"", " --packets", " --streams"};
static enum run_carrier carrier;

static void tell_failure(const struct seed_report *report, const char *bug) {
    printf("seed %" PRIu64 ": %s\n", report->seed, report->failure);
    printf("  again: ./dev sim 1 %" PRIu64 "%s%s%s --trace\n", report->seed, bug ? " --bug " : "",
           bug ? bug : "", carrier_words[carrier]);
    fflush(stdout);
}

static int play_clean(struct jobs *jobs, const char *bug) {
    struct totals totals = {.seeds = 0};
    struct seed_report report;

    while (jobs_next(jobs, &report)) {
        totals_add(&totals, &report);
        if (!report.clean) {
            tell_failure(&report, bug);
        }
    }
    unsigned broken = totals_print(&totals, stdout);
    uint64_t failed = totals.failed + broken;

    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", totals.seeds - totals.failed, failed);
    totals_deinit(&totals);
    return failed > 0;
}

static int play_bug(struct jobs *jobs, const char *bug) {
    struct seed_report report;
    uint64_t count = 0;

    while (jobs_next(jobs, &report)) {
        count++;
        if (!report.clean) {
            printf("%s is caught by the %" PRIu64 ". seed\n", bug, count);
            tell_failure(&report, bug);
            printf("1 passed, 0 failed\n");
            return 0;
        }
    }
    printf("%s is not caught by %" PRIu64 " seeds\n0 passed, 1 failed\n", bug, count);
    return 1;
}

static bool names_bug(int argc, char **argv) {
    return argc == 4 && strcmp(argv[2], "--bug") == 0 && bug_choose(argv[3]);
}

static int bug_judge(const char *bug, bool caught) {
    printf("%s is %scaught\n%d passed, %d failed\n", bug, caught ? "" : "not ", caught, !caught);
    return !caught;
}

int main(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct words words = {
        .count = 1, .first = 1, .jobs = (uint64_t)MIN(MAX(processors, 1L), (long)JOBS_MAX)};

    if (argc > 1 && argc <= 3 && strcmp(argv[1], "stories") == 0) {
        bool write = argc == 3 && strcmp(argv[2], "--write") == 0;

        if (argc == 2 || write) {
            return stories_play(SIM_DIRECTORY "/golden", write) > 0;
        }
    }
    if (argc > 1 && strcmp(argv[1], "stories") == 0 && names_bug(argc, argv)) {
        return bug_judge(argv[3], stories_play(SIM_DIRECTORY "/golden", false) > 0);
    }
    if (argc > 1 && strcmp(argv[1], "joins") == 0 && (argc == 2 || names_bug(argc, argv))) {
        return argc == 2 ? joins_play() > 0 : bug_judge(argv[3], joins_play() > 0);
    }
    if (!parse(argc, argv, &words)) {
        fprintf(stderr,
                "usage: sim SEEDS [FIRST] [--jobs N] [--bug NAME] [--packets | --streams] "
                "[--trace] [--once]\n"
                "       sim why SEED [LAST] [--jobs N] [--bug NAME] [--packets | --streams]\n"
                "       sim stories [--write | --bug NAME]\n"
                "       sim joins [--bug NAME]\n");
        return 2;
    }
    if (words.bug && !bug_choose(words.bug)) {
        fprintf(stderr, "sim: this build has no bug '%s'; ./dev sim --bug makes one that has\n",
                words.bug);
        return 2;
    }
    /* Worlds come and go: what one gave back serves the next, without asking the kernel. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    carrier = words.carrier;
    run_carry_by(carrier);
    if (words.why) {
        return why(words.first, MAX(words.first, words.last), words.jobs, words.bug);
    }
    bool bug = words.bug && strcmp(words.bug, "none") != 0;
    words.once = words.once || bug;
    struct jobs_options options = {.program = "sim",
                                   .report_bytes = sizeof(struct seed_report),
                                   .play = play_twice,
                                   .died = died,
                                   .context = &words};
    uint64_t *seeds = seeds_new(&words, &options.seed_count);
    options.seeds = seeds;
    options.process_count = words.trace || options.seed_count == 1 ? 0 : (unsigned)words.jobs;
    struct jobs *jobs = jobs_new(&options);
    int status = bug ? play_bug(jobs, words.bug) : play_clean(jobs, words.bug);
    jobs_free(jobs);
    free(seeds);
    return status;
}
