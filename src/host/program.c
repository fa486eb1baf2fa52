/* Programs: posix_spawn, and a pipe for what they say. */
#include "host/program.h"
#include "env/errno_map.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct program {
    pid_t process; /* 0: it has ended */
    int status;
    int text_fd;
    size_t text_bytes;
    char text[PROGRAM_TEXT_BYTES];
};

/* Beside ours, also where ours has been replaced since. */
static int path_print(const char *name, char path[PATH_MAX]) {
    char own[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);

    if (size < 0) {
        return err_from_errno(errno);
    }
    own[size] = '\0';
    char *end = strrchr(own, '/');
    int folder_bytes = end ? (int)(end - own) : 0;
    return snprintf(path, PATH_MAX, "%.*s/%s", folder_bytes, own, name) < PATH_MAX
               ? 0
               : -ERR_NAME_TOO_LONG;
}

/* Nothing of what this process blocks or ignores is the program's. */
static void attributes_fill(posix_spawnattr_t *attributes) {
    sigset_t signals;

    sigemptyset(&signals);
    (void)posix_spawnattr_setsigmask(attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    (void)posix_spawnattr_setsigdefault(attributes, &signals);
    (void)posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(const char *path, const char *const *words, int text_fd, pid_t *ret_process) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);

    if (error) {
        return err_from_errno(error);
    }
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return err_from_errno(error);
    }
    attributes_fill(&attributes);
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, text_fd, 1);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, text_fd, 2);
    if (!error) {
        error =
            posix_spawn(ret_process, path, &actions, &attributes, (char *const *)words, environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error ? err_from_errno(error) : 0;
}

int program_start(const char *name, const char *const *words, struct program **ret) {
    char path[PATH_MAX];
    int ends[2];
    int r = path_print(name, path);

    if (r < 0) {
        return r;
    }
    struct program *program = calloc(1, sizeof *program);
    if (!program) {
        return -ERR_NO_MEMORY;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        r = err_from_errno(errno);
        free(program);
        return r;
    }
    program->text_fd = ends[0];
    r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? err_from_errno(errno) : 0;
    if (r == 0) {
        r = spawn(path, words, ends[1], &program->process);
    }
    close(ends[1]);
    if (r < 0) {
        program_close(program);
        return r;
    }
    *ret = program;
    return 0;
}

/* What there is no room for is read and left out, so that it does not wait for a reader. */
static void text_read(struct program *program) {
    char part[256];
    ssize_t got;

    while ((got = read(program->text_fd, part, sizeof part)) > 0) {
        size_t size = MIN((size_t)got, sizeof program->text - 1 - program->text_bytes);

        memcpy(program->text + program->text_bytes, part, size);
        program->text_bytes += size;
        program->text[program->text_bytes] = '\0';
    }
}

bool program_has_ended(struct program *program, int *ret_status) {
    int status;

    if (program->process > 0 && waitpid(program->process, &status, WNOHANG) == program->process) {
        program->process = 0;
        program->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    text_read(program);
    if (program->process == 0) {
        *ret_status = program->status;
    }
    return program->process == 0;
}

const char *program_text(const struct program *program) {
    return program->text;
}

void program_close(struct program *program) {
    if (!program) {
        return;
    }
    if (program->process > 0) {
        (void)kill(program->process, SIGKILL);
        (void)waitpid(program->process, NULL, 0);
    }
    close(program->text_fd);
    free(program);
}
