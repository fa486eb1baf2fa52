/* Processes and signals: fork, sigtimedwait, /proc. */
#include "env/env_process.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct report {
    int status;
    char message[ENV_BACKGROUND_MESSAGE_BYTES];
};

/* What the caller's shell had open is not the child's: a pipe that it kept would never end. */
static int others_close(int report_fd, int *ret_report_fd) {
    int fd = 3;

    if (report_fd != fd && dup3(report_fd, fd, O_CLOEXEC) < 0) {
        return err_from_errno(errno);
    }
    *ret_report_fd = fd;
    return close_range((unsigned)fd + 1, ~0U, 0) == 0 ? 0 : err_from_errno(errno);
}

/* The child's descriptors 0 to 2. A log that waits for a reader would hold up who writes it. */
static int output_redirect(const char *log_path) {
    struct stat status;

    if (stat(log_path, &status) == 0 && S_ISFIFO(status.st_mode)) {
        return -ERR_NOT_FILE;
    }
    int log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int r = 0;

    if (log_fd < 0 || null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 ||
        dup2(log_fd, 2) < 0) {
        r = err_from_errno(errno);
    }
    /* Below 3 they are what they should be already. */
    if (log_fd > 2) {
        close(log_fd);
    }
    if (null_fd > 2) {
        close(null_fd);
    }
    return r;
}

static void parent_wait(struct env_background *background, int fd) {
    struct report report;
    size_t size = 0;
    ssize_t got;

    do {
        got = read(fd, (char *)&report + size, sizeof report - size);
        size += got > 0 ? (size_t)got : 0;
    } while (size < sizeof report && (got > 0 || (got < 0 && errno == EINTR)));
    close(fd);
    background->is_parent = true;
    background->report_fd = -1;
    if (size < sizeof report) {
        background->status = -1;
        snprintf(background->message, sizeof background->message,
                 "the process in the background ended before it was ready");
        return;
    }
    background->status = report.status;
    memcpy(background->message, report.message, sizeof report.message);
    background->message[sizeof background->message - 1] = '\0';
}

int env_background_enter(struct env_background *background, const char *log_path) {
    int ends[2];

    memset(background, 0, sizeof *background);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return err_from_errno(errno);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        int r = err_from_errno(errno);

        close(ends[0]);
        close(ends[1]);
        return r;
    }
    if (child > 0) {
        close(ends[1]);
        parent_wait(background, ends[0]);
        return 0;
    }
    (void)setsid();
    int r = others_close(ends[1], &background->report_fd);
    if (!r) {
        r = output_redirect(log_path);
    }
    if (!r && chdir("/") != 0) {
        r = err_from_errno(errno);
    }
    if (r) {
        char message[256];

        background->report_fd = background->report_fd > 0 ? background->report_fd : ends[1];
        snprintf(message, sizeof message, "%s: %s", log_path, err_text(r));
        env_background_report(background, 1, message);
        _exit(1);
    }
    return 0;
}

void env_background_report(struct env_background *background, int status, const char *message) {
    struct report report = {.status = status};

    if (background->report_fd <= 0) {
        return;
    }
    snprintf(report.message, sizeof report.message, "%s", message);
    /* Less than PIPE_BUF, so it goes at once or not at all; a parent that was killed misses it. */
    static_assert(sizeof report <= 4096, "a report is one write");
    (void)!write(background->report_fd, &report, sizeof report);
    close(background->report_fd);
    background->report_fd = -1;
}

static sigset_t stop_signals(void) {
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    return signals;
}

void env_signals_block(void) {
    sigset_t signals = stop_signals();
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

int env_signal_wait(uint64_t timeout_ns, int *ret_signal) {
    sigset_t signals = stop_signals();
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / NS_PER_S),
        .tv_nsec = (long)(timeout_ns % NS_PER_S),
    };
    int signal_number;

    /* A handler of another signal, or being stopped and continued, starts the time anew. */
    do {
        signal_number = sigtimedwait(&signals, NULL, timeout_ns == UINT64_MAX ? NULL : &timeout);
    } while (signal_number < 0 && errno == EINTR);
    if (signal_number < 0) {
        return errno == EAGAIN ? -ERR_TIMED_OUT : err_from_errno(errno);
    }
    *ret_signal = signal_number;
    return 0;
}

bool env_is_terminal(FILE *file) {
    return isatty(fileno(file)) == 1;
}

void env_time_print(char ret_text[ENV_TIME_BYTES]) {
    time_t now = time(NULL);
    struct tm parts = {.tm_mday = 1};

    (void)gmtime_r(&now, &parts);
    (void)strftime(ret_text, ENV_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

uint64_t env_descriptors_raise(void) {
    struct rlimit limit = {.rlim_cur = UINT64_MAX};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
    }
    return limit.rlim_cur;
}

unsigned env_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (unsigned)count : 1;
}

int env_process_id(void) {
    return getpid();
}

int env_process_signal(int process_id, int signal_number) {
    if (process_id <= 0) {
        return -ERR_INVALID;
    }
    if (kill(process_id, signal_number) == 0) {
        return 0;
    }
    return errno == ESRCH ? -ERR_NOT_FOUND : err_from_errno(errno);
}

/* The numbers of a line "Groups:\t4 24 27". */
static size_t groups_parse(const char *line, size_t count_max, uint32_t *ret_groups) {
    size_t count = 0;

    for (;;) {
        char *end;
        unsigned long group = strtoul(line, &end, 10);

        if (end == line) {
            return count;
        }
        if (count < count_max) {
            ret_groups[count] = (uint32_t)group;
        }
        count++;
        line = end;
    }
}

int env_process_groups(int process_id, size_t count_max, uint32_t *ret_groups, size_t *ret_count) {
    static const char label[] = "Groups:";
    char path[64];
    char *line = NULL;
    size_t capacity = 0;
    int r = -ERR_NOT_FOUND;

    snprintf(path, sizeof path, "/proc/%d/status", process_id);
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT || errno == ESRCH ? -ERR_NOT_FOUND : err_from_errno(errno);
    }
    while (r && getline(&line, &capacity, file) > 0) {
        if (strncmp(line, label, sizeof label - 1) == 0) {
            *ret_count = groups_parse(line + sizeof label - 1, count_max, ret_groups);
            r = 0;
        }
    }
    free(line);
    fclose(file);
    return r;
}
