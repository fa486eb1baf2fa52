/* Locks within one mount: fcntl's and flock's. */
#include "posix.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static int fcntl_lock(int fd, int command, short type, off_t from, off_t size) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = size};

    return fcntl(fd, command, &lock);
}

/* Runs the rest in a child while the parent holds the lock; the child's end is waited for. */
static bool child_is_well(pid_t child) {
    int status;

    WORKS(waitpid(child, &status, 0));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void posix_fcntl_lock_held(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    WORKS(fcntl_lock(fd, F_SETLK, F_WRLCK, 0, 10));
    pid_t child = WORKS(fork());
    if (child == 0) {
        int other = WORKS(open("file", O_RDWR));

        HOLDS(fcntl_lock(other, F_SETLK, F_WRLCK, 5, 1) == -1);
        HOLDS(errno == EAGAIN || errno == EACCES);
        HOLDS(fcntl_lock(other, F_SETLK, F_RDLCK, 9, 100) == -1);
        WORKS(fcntl_lock(other, F_SETLK, F_WRLCK, 10, 1));
        _exit(0);
    }
    HOLDS(child_is_well(child));
}

void posix_fcntl_lock_shared(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    WORKS(fcntl_lock(fd, F_SETLK, F_RDLCK, 0, 0));
    pid_t child = WORKS(fork());
    if (child == 0) {
        int other = WORKS(open("file", O_RDWR));

        WORKS(fcntl_lock(other, F_SETLK, F_RDLCK, 0, 0));
        FAILS(EAGAIN, fcntl_lock(other, F_SETLK, F_WRLCK, 100, 1));
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        WORKS(fcntl(other, F_GETLK, &lock));
        HOLDS(lock.l_type == F_RDLCK && lock.l_pid == getppid());
        _exit(0);
    }
    HOLDS(child_is_well(child));
}

/* Closing any descriptor of the file drops the process's locks. */
void posix_fcntl_lock_dropped(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    WORKS(fcntl_lock(fd, F_SETLK, F_WRLCK, 0, 0));
    WORKS(close(WORKS(open("file", O_RDONLY))));
    pid_t child = WORKS(fork());
    if (child == 0) {
        WORKS(fcntl_lock(WORKS(open("file", O_RDWR)), F_SETLK, F_WRLCK, 0, 0));
        _exit(0);
    }
    HOLDS(child_is_well(child));
}

void posix_fcntl_lock_bad(void) {
    make_file("file", 0644, "text");
    FAILS(EBADF, fcntl_lock(999, F_SETLK, F_WRLCK, 0, 0));
    FAILS(EBADF, fcntl_lock(WORKS(open("file", O_RDONLY)), F_SETLK, F_WRLCK, 0, 0));
    FAILS(EBADF, fcntl_lock(WORKS(open("file", O_WRONLY)), F_SETLK, F_RDLCK, 0, 0));
}

void posix_fcntl_lock_invalid(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    FAILS(EINVAL, fcntl_lock(fd, F_SETLK, 77, 0, 0));
    FAILS(EINVAL, fcntl_lock(fd, F_SETLK, F_WRLCK, -1, 0));
}

void posix_fcntl_lock_overflow(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = INT64_MAX, .l_len = INT64_MAX};
    FAILS(EOVERFLOW, fcntl(fd, F_SETLK, &lock));
}

void posix_fcntl_lock_interrupted(void) {
    int ends[2];
    char byte;

    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    WORKS(pipe(ends));
    pid_t child = WORKS(fork());
    if (child == 0) {
        WORKS(fcntl_lock(fd, F_SETLK, F_WRLCK, 0, 0));
        (void)!write(ends[1], "x", 1);
        pause();
    }
    HOLDS(WORKS(read(ends[0], &byte, 1)) == 1);
    interrupt_soon();
    FAILS(EINTR, fcntl_lock(fd, F_SETLKW, F_WRLCK, 0, 0));
    WORKS(kill(child, SIGKILL));
}

/* Two that wait for each other: one is told. */
void posix_fcntl_lock_deadlock(void) {
    int ends[2];
    char byte;

    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    WORKS(pipe(ends));
    WORKS(fcntl_lock(fd, F_SETLK, F_WRLCK, 0, 1));
    pid_t child = WORKS(fork());
    if (child == 0) {
        WORKS(fcntl_lock(fd, F_SETLK, F_WRLCK, 1, 1));
        (void)!write(ends[1], "x", 1);
        int r = fcntl_lock(fd, F_SETLKW, F_WRLCK, 0, 1);
        _exit(r == 0 || errno == EDEADLK ? 0 : 1);
    }
    HOLDS(WORKS(read(ends[0], &byte, 1)) == 1);
    int r = fcntl_lock(fd, F_SETLKW, F_WRLCK, 1, 1);
    HOLDS(r == 0 || errno == EDEADLK);
    WORKS(fcntl_lock(fd, F_SETLK, F_UNLCK, 0, 0));
    HOLDS(child_is_well(child));
}

void posix_flock_held(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    int other = WORKS(open("file", O_RDWR));
    WORKS(flock(fd, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(other, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(other, LOCK_SH | LOCK_NB));
    WORKS(flock(fd, LOCK_SH));
    WORKS(flock(other, LOCK_SH | LOCK_NB));
    WORKS(flock(fd, LOCK_UN));
    WORKS(flock(other, LOCK_EX | LOCK_NB));
    WORKS(close(other));
    WORKS(flock(fd, LOCK_EX | LOCK_NB));
}

void posix_flock_invalid(void) {
    make_file("file", 0644, "text");
    FAILS(EINVAL, flock(WORKS(open("file", O_RDWR)), 77));
    FAILS(EBADF, flock(999, LOCK_EX));
}
