/* Going into the background: fork, and a pipe for the report. */
#include "host/background.h"
#include "env/errno_map.h"
#include "host/plain_file.h"
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

enum { LOG_MODE = 0600 };

struct background_result {
    int status;
    char message[BACKGROUND_MESSAGE_BYTES];
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

/* A log that waits for a reader would hold up who writes it; one that another user has laid there
 * may lead anywhere. */
static int log_open(const char *log_path) {
    struct stat status;
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  LOG_MODE);

    if (fd < 0) {
        return errno == ENXIO ? -ERR_NOT_FILE : err_from_errno(errno);
    }
    int r = fstat(fd, &status) == 0 ? 0 : err_from_errno(errno);
    if (r == 0 && !S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
        r = -ERR_NOT_FILE;
    }
    if (r == 0 && S_ISREG(status.st_mode) && !plain_file_status_is_own(&status)) {
        r = -ERR_NOT_PERMITTED;
    }
    if (r == 0 && fcntl(fd, F_SETFL, O_APPEND) < 0) {
        r = err_from_errno(errno);
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    return fd;
}

/* The child's descriptors 0 to 2. */
static int output_redirect(const char *log_path) {
    int log_fd = log_open(log_path);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int r = 0;

    if (log_fd < 0) {
        r = log_fd;
    } else if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0) {
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

static void parent_wait(struct background *background, int fd) {
    struct background_result report;
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

static const char *log_problem(int r) {
    return r == -ERR_NOT_PERMITTED ? "a log has to be yours, and nobody else's to write to"
           : r == -ERR_LOOP        ? "a log may be no symbolic link"
                                   : err_text(r);
}

int background_enter(struct background *background, const char *log_path) {
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
        snprintf(message, sizeof message, "%s: %s", log_path, log_problem(r));
        background_report(background, 1, message);
        _exit(1);
    }
    return 0;
}

void background_report(struct background *background, int status, const char *message) {
    struct background_result report = {.status = status};

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
