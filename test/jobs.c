/* Children and their pipes. */
#include "jobs.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXIT_REPORTED = 7,   /* of a child: the seed that it was at is reported */
    SEED_CPU_S_MAX = 300 /* longer than any takes, with sanitizers; one that goes on has no end */
};

/* Of a child: its own end of the pipe, and how long a report is. */
static int own_pipe = -1;
static size_t own_report_bytes;

struct child {
    pid_t pid; /* 0: none */
    int pipe;  /* its reports */
};

struct jobs {
    struct jobs_options options;
    size_t next;
    struct child *children;
};

static void *allocate(size_t count, size_t size_bytes) {
    void *memory = calloc(count, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

static void write_whole(int file, const void *data, size_t size) {
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t count = write(file, at, size);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            _exit(1); /* The parent has heard enough. */
        }
        at += count;
        size -= (size_t)count;
    }
}

static bool read_whole(int file, void *data, size_t size) {
    uint8_t *at = data;

    while (size > 0) {
        ssize_t count = read(file, at, size);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        at += count;
        size -= (size_t)count;
    }
    return true;
}

/* From now on; SIGPROF ends the process then. */
static void limit_seed(void) {
    const struct itimerval limit = {.it_value.tv_sec = SEED_CPU_S_MAX};

    (void)setitimer(ITIMER_PROF, &limit, NULL);
}

static void play_from(const struct jobs *jobs, size_t first, int pipe) {
    const struct jobs_options *options = &jobs->options;

    void *report = allocate(1, options->report_bytes);

    own_pipe = pipe;
    own_report_bytes = options->report_bytes;
    for (size_t i = first; i < options->seed_count; i += options->process_count) {
        memset(report, 0, options->report_bytes);
        limit_seed();
        options->play(options->context, options->seeds[i], report);
        write_whole(pipe, report, options->report_bytes);
    }
    free(report);
}

/* Plays the seeds of its turn from `first` on. */
static void child_start(struct jobs *jobs, struct child *child, size_t first) {
    int ends[2];

    fflush(NULL);
    if (pipe(ends) != 0) {
        fprintf(stderr, "%s: pipe: %s\n", jobs->options.program, strerror(errno));
        exit(1);
    }
    child->pid = fork();
    if (child->pid < 0) {
        fprintf(stderr, "%s: fork: %s\n", jobs->options.program, strerror(errno));
        exit(1);
    }
    if (child->pid == 0) {
        close(ends[0]);
        play_from(jobs, first, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    child->pipe = ends[0];
}

void jobs_end_with(const void *report) {
    (void)fflush(NULL);
    write_whole(own_pipe, report, own_report_bytes);
    _exit(EXIT_REPORTED);
}

/* How it ended; 0 when it had nothing more to do. */
static int child_end(struct child *child) {
    int status = 0;

    close(child->pipe);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
    return status;
}

struct jobs *jobs_new(const struct jobs_options *options) {
    struct jobs *jobs = allocate(1, sizeof *jobs);

    jobs->options = *options;
    jobs->options.process_count = (unsigned)MIN(options->process_count, options->seed_count);
    jobs->children = allocate(jobs->options.process_count + 1, sizeof *jobs->children);
    for (unsigned i = 0; i < jobs->options.process_count; i++) {
        child_start(jobs, &jobs->children[i], i);
    }
    return jobs;
}

/* True: there is no report of the next seed, as its process died. */
static bool died(struct jobs *jobs, struct child *child, void *report) {
    int status = child_end(child);
    size_t next = jobs->next + jobs->options.process_count;

    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REPORTED) {
        child_start(jobs, child, jobs->next);
        return false;
    }
    memset(report, 0, jobs->options.report_bytes);
    jobs->options.died(jobs->options.context, jobs->options.seeds[jobs->next],
                       !WIFSIGNALED(status)          ? "it has ended by itself"
                       : WTERMSIG(status) == SIGPROF ? "it does not end"
                                                     : strsignal(WTERMSIG(status)),
                       report);
    if (next < jobs->options.seed_count) {
        child_start(jobs, child, next);
    }
    return true;
}

bool jobs_next(struct jobs *jobs, void *ret_report) {
    const struct jobs_options *options = &jobs->options;

    if (jobs->next == options->seed_count) {
        return false;
    }
    if (options->process_count == 0) {
        uint64_t seed = options->seeds[jobs->next];

        memset(ret_report, 0, options->report_bytes);
        options->play(options->context, seed, ret_report);
    } else {
        struct child *child = &jobs->children[jobs->next % options->process_count];

        while (!read_whole(child->pipe, ret_report, options->report_bytes) &&
               !died(jobs, child, ret_report)) {
        }
    }
    jobs->next++;
    return true;
}

void jobs_free(struct jobs *jobs) {
    if (!jobs) {
        return;
    }
    for (unsigned i = 0; i < jobs->options.process_count; i++) {
        if (jobs->children[i].pid > 0) {
            kill(jobs->children[i].pid, SIGKILL);
            (void)child_end(&jobs->children[i]);
        }
    }
    free(jobs->children);
    free(jobs);
}
