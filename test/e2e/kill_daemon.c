/* See kill_daemon.h. */
#include "kill_daemon.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ALONG_MAX = 4, DEATH_MS_MAX = 120000, PATH_BYTES = 4096 };

static const pid_t *along[ALONG_MAX];
static unsigned along_count;

/* Names are of any bytes, lines of printable ones. */
_Noreturn void kill_give_up(const char *what) {
    fputs("FAILED: ", stdout);
    for (; *what; what++) {
        bool plain = *what >= ' ' && *what <= '~';

        printf(plain ? "%c" : "\\%02x", (unsigned char)*what);
    }
    fputc('\n', stdout);
    fflush(stdout);
    for (unsigned i = 0; i < along_count; i++) {
        if (*along[i] > 0) {
            kill(*along[i], SIGKILL);
        }
    }
    _exit(1);
}

void kill_take_along(const pid_t *process) {
    if (along_count == ALONG_MAX) {
        abort();
    }
    along[along_count++] = process;
}

uint64_t kill_now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

static pid_t spawn_shoal(const struct kill_daemon *daemon, const char *const words[]) {
    pid_t process;
    int error =
        posix_spawn(&process, daemon->shoal, NULL, NULL, (char *const *)(uintptr_t)words, environ);

    if (error != 0) {
        kill_give_up(strerror(error));
    }
    return process;
}

/* Waits for the process and answers its exit status. */
static int wait_for(pid_t process, const char *what) {
    int status = 0;

    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) {
            kill_give_up(what);
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t kill_daemon_holder(const struct kill_daemon *daemon) {
    char path[PATH_BYTES];
    char text[32] = "";

    snprintf(path, sizeof path, "%s/lock", daemon->directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

void kill_daemon_wait(const struct kill_daemon *daemon) {
    int fd = (int)syscall(SYS_pidfd_open, daemon->process, 0);

    if (fd >= 0) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        if (poll(&poll_fd, 1, DEATH_MS_MAX) != 1) {
            kill_give_up("the killed daemon does not die");
        }
        close(fd);
    }
}

uint64_t kill_daemon_start(struct kill_daemon *daemon) {
    const char *const words[] = {daemon->shoal,     "up",
                                 daemon->directory, daemon->mount ? "--mount" : NULL,
                                 daemon->mount,     NULL};
    uint64_t begin = kill_now_ms();

    if (wait_for(spawn_shoal(daemon, words), "up") != 0) {
        daemon->process = 0;
        kill_give_up("up failed");
    }
    daemon->process = kill_daemon_holder(daemon);
    if (daemon->process <= 0) {
        kill_give_up("up names no process");
    }
    return kill_now_ms() - begin;
}

void kill_daemon_start_and_kill(const struct kill_daemon *daemon, uint64_t after_ms) {
    const char *const words[] = {
        daemon->shoal, "up", daemon->directory, "--foreground", daemon->mount ? "--mount" : NULL,
        daemon->mount, NULL};
    pid_t process = spawn_shoal(daemon, words);

    (void)poll(NULL, 0, (int)after_ms);
    kill(process, SIGKILL);
    (void)wait_for(process, "the daemon that was killed at its start");
}

void kill_daemon_stop(const struct kill_daemon *daemon) {
    const char *const words[] = {daemon->shoal, "down", daemon->directory, NULL};

    if (wait_for(spawn_shoal(daemon, words), "down") != 0) {
        kill_give_up("down failed");
    }
}
