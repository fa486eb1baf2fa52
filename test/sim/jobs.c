/* Children and their pipes. */
#include "jobs.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void report_fresh(struct seed_report *report, uint64_t seed) {
    memset(report, 0, sizeof *report);
    report->seed = seed;
}

static void play_from(const struct jobs *jobs, size_t first, int pipe) {
    const struct jobs_options *options = &jobs->options;

    for (size_t i = first; i < options->seed_count; i += options->process_count) {
        struct seed_report report;

        report_fresh(&report, options->seeds[i]);
        options->play(options->context, options->seeds[i], &report);
        write_whole(pipe, &report, sizeof report);
    }
}

/* Plays the seeds of its turn from `first` on. */
static void child_start(struct jobs *jobs, struct child *child, size_t first) {
    int ends[2];

    fflush(NULL);
    if (pipe(ends) != 0) {
        perror("sim: pipe");
        exit(1);
    }
    child->pid = fork();
    if (child->pid < 0) {
        perror("sim: fork");
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

static void died(struct jobs *jobs, struct child *child, struct seed_report *report) {
    int status = child_end(child);
    size_t next = jobs->next + jobs->options.process_count;

    report_fresh(report, jobs->options.seeds[jobs->next]);
    snprintf(report->failure, sizeof report->failure, "the process of the simulator died: %s",
             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it has ended by itself");
    if (next < jobs->options.seed_count) {
        child_start(jobs, child, next);
    }
}

bool jobs_next(struct jobs *jobs, struct seed_report *ret_report) {
    const struct jobs_options *options = &jobs->options;

    if (jobs->next == options->seed_count) {
        return false;
    }
    if (options->process_count == 0) {
        uint64_t seed = options->seeds[jobs->next];

        report_fresh(ret_report, seed);
        options->play(options->context, seed, ret_report);
    } else {
        struct child *child = &jobs->children[jobs->next % options->process_count];

        if (!read_whole(child->pipe, ret_report, sizeof *ret_report)) {
            died(jobs, child, ret_report);
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
