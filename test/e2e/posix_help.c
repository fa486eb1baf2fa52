/* What rows share. */
#include "posix.h"
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPACE_WAIT_S = 20 };

void make_file(const char *name, mode_t mode, const char *text) {
    int fd = WORKS(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));

    HOLDS(WORKS(write(fd, text, strlen(text))) == (ssize_t)strlen(text));
    WORKS(close(fd));
    WORKS(chmod(name, mode));
}

void make_directory(const char *name, mode_t mode) {
    WORKS(mkdir(name, 0700));
    WORKS(chmod(name, mode));
}

void become(uid_t user, gid_t group, gid_t supplementary) {
    WORKS(seteuid(0));
    WORKS(setegid(group));
    WORKS(setgroups(supplementary != 0, &supplementary));
    WORKS(seteuid(user));
}

mode_t mode_of(const char *name) {
    struct stat status;

    WORKS(lstat(name, &status));
    return status.st_mode & 07777;
}

off_t size_of(const char *name) {
    struct stat status;

    WORKS(lstat(name, &status));
    return status.st_size;
}

bool is_there(const char *name) {
    struct stat status;

    return lstat(name, &status) == 0;
}

bool holds_text(const char *name, const char *text) {
    char data[4096];
    int fd = WORKS(open(name, O_RDONLY | O_CLOEXEC));
    ssize_t got = WORKS(read(fd, data, sizeof data));

    WORKS(close(fd));
    return (size_t)got == strlen(text) && memcmp(data, text, (size_t)got) == 0;
}

void enter_read_only(void) {
    char *directory = getcwd(NULL, 0);

    HOLDS(directory);
    WORKS(unshare(CLONE_NEWNS));
    WORKS(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    WORKS(mount(directory, directory, NULL, MS_BIND, NULL));
    WORKS(mount("none", directory, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
    WORKS(chdir(directory));
    free(directory);
}

static void on_signal(int number) {
    (void)number;
}

void interrupt_soon(void) {
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval timer = {.it_interval = {.tv_usec = 20000},
                                    .it_value = {.tv_usec = 20000}};

    WORKS(sigaction(SIGVTALRM, &action, NULL));
    WORKS(sigaction(SIGALRM, &action, NULL));
    WORKS(setitimer(ITIMER_REAL, &timer, NULL));
}

/* A copy of sleep(1). */
void make_program(const char *name) {
    char data[65536];
    int from = WORKS(open("/bin/sleep", O_RDONLY | O_CLOEXEC));
    int to = WORKS(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    ssize_t got;

    while ((got = WORKS(read(from, data, sizeof data))) > 0) {
        HOLDS(WORKS(write(to, data, (size_t)got)) == got);
    }
    WORKS(close(from));
    WORKS(close(to));
}

pid_t program_start(const char *name) {
    int ends[2];
    char byte;

    WORKS(pipe2(ends, O_CLOEXEC));
    pid_t child = WORKS(fork());
    if (child == 0) {
        execl(name, name, "100", (char *)NULL);
        (void)!write(ends[1], "x", 1);
        _exit(1);
    }
    WORKS(close(ends[1]));
    /* The pipe ends when the program has been started, and tells when it could not be. */
    HOLDS(WORKS(read(ends[0], &byte, 1)) == 0);
    WORKS(close(ends[0]));
    return child;
}

void program_end(pid_t process) {
    WORKS(kill(process, SIGKILL));
    WORKS(waitpid(process, NULL, 0));
}

const char *long_text(size_t size) {
    char *text = malloc(size + 1);

    HOLDS(text);
    memset(text, 'n', size);
    text[size] = '\0';
    return text;
}

uint64_t blocks_free(void) {
    struct statvfs space;

    WORKS(statvfs(".", &space));
    return space.f_bavail;
}

void wait_for_space(uint64_t blocks) {
    int fd = WORKS(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct timespec now;
    struct timespec end;

    WORKS(clock_gettime(CLOCK_MONOTONIC, &end));
    end.tv_sec += SPACE_WAIT_S;
    do {
        WORKS(fsync(fd));
        WORKS(clock_gettime(CLOCK_MONOTONIC, &now));
    } while (blocks_free() < blocks && now.tv_sec < end.tv_sec);
    HOLDS(blocks_free() >= blocks);
    WORKS(close(fd));
}
