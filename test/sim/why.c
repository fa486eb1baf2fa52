/* The contract is in why.h. */
#include "why.h"
#include "jobs.h"
#include "run.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LOTS = 16,  /* of each moment */
    PIECES = 6, /* that an interval is cut into */
    ROUNDS = 5, /* so that the last piece is 1/7,776 of the seed */
};
#define NEAR_NS (NS_PER_MS / 10) /* or shorter than this */

struct moment {
    uint64_t at_ns;
    uint32_t failed; /* lots */
    uint32_t others; /* of these, otherwise than the seed does */
};

struct question {
    uint64_t seed;
    uint64_t end_ns; /* when the seed has failed */
    struct moment *moments;
    uint32_t begin_failed;    /* lots, from the beginning on */
    _Atomic uint64_t *now_ns; /* shared with the child that plays the whole seed */
    char kind[SEED_FAILURE_BYTES];
    struct seed_report report; /* of the seed itself */
};

/* What a failure says, without its numbers. */
static void kind_of(const char *failure, char kind[SEED_FAILURE_BYTES]) {
    size_t size = 0;

    for (const char *letter = failure; *letter && size + 1 < SEED_FAILURE_BYTES; letter++) {
        if (*letter < '0' || *letter > '9') {
            kind[size++] = *letter;
        }
    }
    kind[size] = '\0';
}

static void play_whole(void *context, uint64_t seed, void *report) {
    const struct question *question = context;
    const struct run_turn turn = {.now_ns = question->now_ns};

    run_seed(seed, NULL, &turn, report);
}

static void died(void *context, uint64_t seed, const char *how, void *report) {
    struct seed_report *ret_report = report;

    (void)context;
    (void)seed;
    snprintf(ret_report->failure, sizeof ret_report->failure,
             "the process of the simulator died: %s", how);
}

/* A job's number is that of moment and lot. */
static void play_lot(void *context, uint64_t number, void *report) {
    const struct question *question = context;
    const struct run_turn turn = {.at_ns = question->moments[number / LOTS].at_ns,
                                  .lot = number % LOTS + 1};

    run_seed(question->seed, NULL, &turn, report);
}

static bool seed_fails(struct question *question) {
    struct jobs_options options = {.program = "sim",
                                   .report_bytes = sizeof question->report,
                                   .play = play_whole,
                                   .died = died,
                                   .context = question,
                                   .seeds = &question->seed,
                                   .seed_count = 1,
                                   .process_count = 1};
    struct jobs *jobs = jobs_new(&options);

    (void)jobs_next(jobs, &question->report);
    jobs_free(jobs);
    question->end_ns = *question->now_ns;
    kind_of(question->report.failure, question->kind);
    return !question->report.clean;
}

static void ask(struct question *question, struct moment *moments, uint32_t count, uint64_t jobs) {
    uint64_t numbers[PIECES * LOTS];
    struct seed_report report;
    char kind[SEED_FAILURE_BYTES];

    question->moments = moments;
    for (uint32_t i = 0; i < count * LOTS; i++) {
        numbers[i] = i;
    }
    struct jobs_options options = {.program = "sim",
                                   .report_bytes = sizeof report,
                                   .play = play_lot,
                                   .died = died,
                                   .context = question,
                                   .seeds = numbers,
                                   .seed_count = (size_t)count * LOTS,
                                   .process_count = (unsigned)jobs};
    struct jobs *playing = jobs_new(&options);
    for (uint32_t i = 0; i < count * LOTS && jobs_next(playing, &report); i++) {
        kind_of(report.failure, kind);
        moments[i / LOTS].failed += !report.clean;
        moments[i / LOTS].others += !report.clean && strcmp(kind, question->kind) != 0;
    }
    jobs_free(playing);
}

static void moment_print(const struct moment *moment) {
    printf("  another way from %12.6f ms on: %2" PRIu32 " of %d fail", (double)moment->at_ns / 1e6,
           moment->failed, LOTS);
    if (moment->others > 0) {
        printf(", %" PRIu32 " of them otherwise", moment->others);
    }
    printf("\n");
    fflush(stdout);
}

/* The piece behind the last moment of the interval, whose ends are known, from which on another way
 * is nearer to what it was at the beginning than to none. */
static void narrow(struct question *question, struct moment ends[2], uint64_t jobs) {
    struct moment moments[PIECES + 1] = {ends[0]};
    uint64_t step_ns = (ends[1].at_ns - ends[0].at_ns) / PIECES;
    uint32_t last = 0;

    for (uint32_t i = 1; i < PIECES; i++) {
        moments[i] = (struct moment){.at_ns = ends[0].at_ns + i * step_ns};
    }
    moments[PIECES] = ends[1];
    ask(question, &moments[1], PIECES - 1, jobs);
    for (uint32_t i = 1; i < PIECES; i++) {
        moment_print(&moments[i]);
        last = 2 * moments[i].failed < question->begin_failed + LOTS ? i : last;
    }
    ends[0] = moments[last];
    ends[1] = moments[last + 1];
}

static void tell(const struct question *question, const struct moment ends[2], const char *bug) {
    double from_ms = (double)ends[0].at_ns / 1e6;
    double to_ms = (double)ends[1].at_ns / 1e6;

    printf("most is decided between %.6f and %.6f ms: %" PRIu32 " of %d fail from before it on, "
           "%" PRIu32 " from behind it on\n",
           from_ms, to_ms, ends[0].failed, LOTS, ends[1].failed);
    printf("  ./dev sim 1 %" PRIu64 "%s%s --trace | awk '$1 >= %.6f && $1 <= %.6f'\n",
           question->seed, bug ? " --bug " : "", bug ? bug : "", from_ms, to_ms);
}

static void find(struct question *question, uint64_t jobs, const char *bug) {
    struct moment ends[2] = {{0}, {.at_ns = question->end_ns, .failed = LOTS}};

    ask(question, &ends[0], 1, jobs);
    moment_print(&ends[0]);
    question->begin_failed = ends[0].failed;
    if (ends[0].failed == LOTS) {
        printf("it fails whatever is drawn behind its beginning: its world decides, or every way "
               "leads there\n");
        return;
    }
    for (int round = 0; round < ROUNDS && ends[1].at_ns - ends[0].at_ns > NEAR_NS; round++) {
        narrow(question, ends, jobs);
    }
    tell(question, ends, bug);
}

int why(uint64_t first, uint64_t last, uint64_t jobs, const char *bug) {
    struct question question = {.seed = first};

    question.now_ns = mmap(NULL, sizeof *question.now_ns, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (question.now_ns == MAP_FAILED) {
        perror("sim: memory of a page");
        return 1;
    }
    bool fails = seed_fails(&question);
    while (!fails && question.seed < last) {
        question.seed++;
        fails = seed_fails(&question);
    }
    if (fails) {
        printf("seed %" PRIu64 " fails at %.6f ms: %s\n", question.seed,
               (double)question.end_ns / 1e6, question.report.failure);
        find(&question, jobs, bug);
        printf("1 passed, 0 failed\n");
    } else {
        printf("no seed from %" PRIu64 " to %" PRIu64 " fails\n0 passed, 1 failed\n", first, last);
    }
    munmap(question.now_ns, sizeof *question.now_ns);
    return fails ? 0 : 1;
}
