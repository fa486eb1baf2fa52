/* execve. */
#include "posix.h"
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the call fails with, or 0 and how the program ended. */
static int run_as(uid_t user, gid_t group, const char *name, int *ret_status) {
    int ends[2];
    int error = 0;

    WORKS(pipe2(ends, O_CLOEXEC));
    pid_t child = WORKS(fork());
    if (child == 0) {
        gid_t none = 0;

        /* What an interpreter says of a script that it may not read is not ours to show. */
        WORKS(dup2(WORKS(open("/dev/null", O_WRONLY)), STDERR_FILENO));
        if (setgroups(0, &none) == 0 && setgid(group) == 0 && setuid(user) == 0) {
            execl(name, name, "0", (char *)NULL);
        }
        error = errno;
        (void)!write(ends[1], &error, sizeof error);
        _exit(1);
    }
    WORKS(close(ends[1]));
    HOLDS(WORKS(read(ends[0], &error, sizeof error)) >= 0);
    WORKS(close(ends[0]));
    WORKS(waitpid(child, ret_status, 0));
    return error;
}

static bool runs_as(uid_t user, gid_t group, const char *name) {
    int status;

    return run_as(user, group, name, &status) == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int fails_as(uid_t user, gid_t group, const char *name) {
    int status;

    return run_as(user, group, name, &status);
}

/* Who may execute a file need not be one who may read it. */
void posix_exec_only(void) {
    make_program("program");
    WORKS(chmod("program", 0711));
    HOLDS(runs_as(NOBODY, NOBODY, "program"));
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, open("program", O_RDONLY));
    become(0, 0, 0);
    WORKS(chown("program", SOMEBODY, SOMEGROUP));
    WORKS(chmod("program", 0110));
    HOLDS(runs_as(SOMEBODY, NOBODY, "program"));
    HOLDS(runs_as(NOBODY, SOMEGROUP, "program"));
    HOLDS(runs_as(0, 0, "program"));
    HOLDS(fails_as(NOBODY, NOBODY, "program") == EACCES);
}

void posix_exec_refused(void) {
    make_program("program");
    WORKS(chmod("program", 0644));
    HOLDS(fails_as(NOBODY, NOBODY, "program") == EACCES);
    HOLDS(fails_as(0, 0, "program") == EACCES);
    WORKS(chmod("program", 0744));
    HOLDS(fails_as(NOBODY, NOBODY, "program") == EACCES);
    HOLDS(runs_as(0, 0, "program"));
    make_directory("directory", 0755);
    HOLDS(fails_as(0, 0, "directory") == EACCES);
    make_directory("locked", 0700);
    WORKS(rename("program", "locked/program"));
    WORKS(chmod("locked/program", 0755));
    HOLDS(fails_as(NOBODY, NOBODY, "locked/program") == EACCES);
}

void posix_exec_no_program(void) {
    make_file("file", 0755, "nothing that a machine knows");
    HOLDS(fails_as(0, 0, "file") == ENOEXEC);
    make_file("empty", 0755, "");
    HOLDS(fails_as(0, 0, "empty") == ENOEXEC);
}

void posix_exec_busy(void) {
    make_program("program");
    int fd = WORKS(open("program", O_WRONLY | O_CLOEXEC));
    HOLDS(fails_as(0, 0, "program") == ETXTBSY);
    WORKS(close(fd));
    HOLDS(runs_as(0, 0, "program"));
}

/* The interpreter reads it, as whoever runs it. */
void posix_exec_script(void) {
    int status;

    make_file("script", 0755, "#!/bin/sh\nexit 0\n");
    HOLDS(runs_as(NOBODY, NOBODY, "script"));
    WORKS(chmod("script", 0711));
    HOLDS(run_as(NOBODY, NOBODY, "script", &status) == 0);
    HOLDS(WIFEXITED(status) && WEXITSTATUS(status) != 0);
}
