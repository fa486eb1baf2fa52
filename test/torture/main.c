/* torture SEEDS [FIRST] [--jobs N] [--bug NAME] [--trace] [--once]: plays seeds, each twice unless
 * once is enough, and says what broke and how to see it. torture --small: small.h.
 *
 * The seeds of regressions.txt come first. With a bug it is the other way round: it succeeds with
 * the first seed that breaks, and fails when none does. */
#include "base/bug.h"
#include "jobs.h"
#include "seed.h"
#include "small.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOBS_MAX = 64, SEEDS_MAX = 10000000, LINE_BYTES = 512, REGRESSIONS_MAX = 1000 };

struct words {
    uint64_t count;
    uint64_t first;
    uint64_t jobs;
    const char *bug; /* NULL: none was named */
    bool trace;
    bool once;
    bool small;
    struct machine *machine;
};

static bool number_parse(const char *text, uint64_t *ret_number) {
    char *end;

    *ret_number = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse(int argc, char **argv, struct words *words) {
    uint64_t *numbers[] = {&words->count, &words->first};
    size_t taken = 0;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--trace") == 0) {
            words->trace = true;
        } else if (strcmp(argv[i], "--once") == 0) {
            words->once = true;
        } else if (strcmp(argv[i], "--small") == 0) {
            words->small = true;
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
    return words->count > 0 && words->count <= SEEDS_MAX;
}

/* Both runs of a seed must go the same way to the last event. A process has a machine of its own:
 * what is mapped twice is not divided by a fork. */
static void play_twice(void *context, uint64_t seed, void *report) {
    struct words *words = context;
    struct seed_report *ret_report = report;
    static struct seed_report again;

    if (!words->machine) {
        fail_signals();
        words->machine = machine_new();
    }
    seed_run(words->machine, seed, words->trace ? stdout : NULL, ret_report);
    if (!ret_report->clean || words->once) {
        return;
    }
    again = (struct seed_report){.seed = seed};
    seed_run(words->machine, seed, NULL, &again);
    if (!again.clean || again.hash != ret_report->hash) {
        ret_report->clean = false;
        (void)snprintf(ret_report->failure, sizeof ret_report->failure,
                       "two runs differ (%016" PRIx64 ", %016" PRIx64 ") %.500s", ret_report->hash,
                       again.hash, again.failure);
    }
}

static void play_small(void *context, uint64_t number, void *report) {
    struct words *words = context;

    if (!words->machine) {
        fail_signals();
        words->machine = machine_new();
    }
    small_run(words->machine, number, words->trace ? stdout : NULL, report);
}

static void died(void *context, uint64_t seed, const char *how, void *report) {
    struct seed_report *ret_report = report;

    (void)context;
    ret_report->seed = seed;
    (void)snprintf(ret_report->failure, sizeof ret_report->failure, "the process died: %s", how);
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
static size_t regressions_read(uint64_t *seeds) {
    FILE *file = fopen(TORTURE_DIRECTORY "/regressions.txt", "r");
    char line[LINE_BYTES];
    size_t count = 0;

    if (!file) {
        perror("torture: " TORTURE_DIRECTORY "/regressions.txt");
        exit(1);
    }
    while (count < REGRESSIONS_MAX && fgets(line, sizeof line, file)) {
        char *end;
        uint64_t seed = strtoull(line, &end, 10);

        if (end != line && !is_among(seeds, count, seed)) {
            seeds[count++] = seed;
        }
    }
    (void)fclose(file);
    return count;
}

/* Seeds that are named one by one are played alone; a bug must be caught by the seeds that were
 * asked for. */
static uint64_t *seeds_new(const struct words *words, bool bug, size_t *ret_count) {
    uint64_t *seeds = calloc(words->count + REGRESSIONS_MAX, sizeof *seeds);

    if (!seeds) {
        abort();
    }
    size_t listed = words->count > 1 && !bug && !words->small ? regressions_read(seeds) : 0;
    size_t count = listed;
    for (uint64_t i = 0; i < words->count; i++) {
        if (!is_among(seeds, listed, words->first + i)) {
            seeds[count++] = words->first + i;
        }
    }
    *ret_count = count;
    return seeds;
}

static void tell_failure(const struct seed_report *report, const char *bug, bool small) {
    printf("seed %" PRIu64 ": %s\n", report->seed, report->failure);
    printf("  again: ./dev torture %s%s1 %" PRIu64 "%s%s --trace\n",
           machine_is_stepped() ? "--release " : "", small ? "--small " : "", report->seed,
           bug ? " --bug " : "", bug ? bug : "");
    (void)fflush(stdout);
}

static int play_clean(struct jobs *jobs, const char *bug, bool small) {
    static struct totals totals;
    static struct seed_report report;

    while (jobs_next(jobs, &report)) {
        totals_add(&totals, &report);
        if (!report.clean) {
            tell_failure(&report, bug, small);
        }
    }
    enum totals_of what = small                  ? TOTALS_OF_SMALL
                          : machine_is_stepped() ? TOTALS_OF_STEPPED
                                                 : TOTALS_OF_SEEDS;
    uint64_t failed = totals.failed + totals_print(&totals, what, stdout);

    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", totals.seeds - totals.failed, failed);
    return failed > 0;
}

static int play_bug(struct jobs *jobs, const char *bug) {
    static struct seed_report report;
    uint64_t count = 0;

    while (jobs_next(jobs, &report)) {
        count++;
        if (!report.clean) {
            printf("%s is caught by the %" PRIu64 ". seed\n", bug, count);
            tell_failure(&report, bug, false);
            printf("1 passed, 0 failed\n");
            return 0;
        }
    }
    printf("%s is not caught by %" PRIu64 " seeds\n0 passed, 1 failed\n", bug, count);
    return 1;
}

/* The sequences of the small scope are numbered from 0 on; one may be named. */
static bool small_words(struct words *words) {
    if (words->small && words->count == 1 && words->first == 1 && !words->trace) {
        words->first = 0;
        words->count = small_count();
    }
    return !words->small || words->first + words->count <= small_count();
}

int main(int argc, char **argv) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    static struct words words = {.count = 1, .first = 1};

    words.jobs = (uint64_t)MIN(MAX(processors, 1L), (long)JOBS_MAX);
    if (!parse(argc, argv, &words) || !small_words(&words)) {
        fprintf(stderr, "usage: torture SEEDS [FIRST] [--jobs N] [--bug NAME] [--trace] [--once]\n"
                        "       torture --small [COUNT FIRST] [--jobs N] [--trace]\n");
        return 2;
    }
    if (!machine_is_possible()) {
        printf("skipped, for want of an x86-64 processor\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    if (words.bug && !bug_choose(words.bug)) {
        fprintf(stderr, "torture: this build has no bug '%s'; ./dev torture --bug makes one\n",
                words.bug);
        return 2;
    }
    /* Engines come and go: what one gave back serves the next, without asking the kernel. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* the last lines are those that matter */
    bool bug = words.bug && strcmp(words.bug, "none") != 0;
    struct jobs_options options = {.program = "torture",
                                   .report_bytes = sizeof(struct seed_report),
                                   .play = words.small ? play_small : play_twice,
                                   .died = died,
                                   .context = &words};
    uint64_t *seeds = seeds_new(&words, bug, &options.seed_count);

    options.seeds = seeds;
    options.process_count = words.trace ? 1 : (unsigned)words.jobs;
    struct jobs *jobs = jobs_new(&options);
    int status = bug ? play_bug(jobs, words.bug) : play_clean(jobs, words.bug, words.small);

    jobs_free(jobs);
    free(seeds);
    return status;
}
