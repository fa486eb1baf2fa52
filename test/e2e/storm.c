/* Run by storm.py: one user's storm, and what another user's small files take meanwhile.
 *
 *     storm load KIND DIR PROCESSES UID      until its standard input ends
 *     storm quiet DIR UID COUNT PAUSE_US     create + write + close + unlink, COUNT times
 *
 * KIND is fsync (4 KiB and fsync, again and again), write or direct (4 MiB at a time into a file
 * of 8 MiB each, by the kernel or with O_DIRECT), signal (write, by programs that a timer
 * interrupts all the time), copy (4 MiB by copy_file_range from one half of such a file to the
 * other), list (all names of DIR). load says "ready" when each process has done its first step, and
 * at its end how many steps all have done. quiet says the 50th, 99th and 100th percentile in
 * microseconds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SMALL_BYTES = 4096,
    PIECE_BYTES = 64 << 10,
    LARGE_BYTES = 4 << 20,
    FILE_BYTES = 8 << 20,
    PROCESSES_MAX = 4096,
    COUNT_MAX = 1 << 20,
    TIMER_US = 3000
};

struct tally {
    _Atomic long steps;
    _Atomic long ready;
};

static void fail(const char *what) {
    (void)fprintf(stderr, "storm: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long number_of(const char *text, long least, long most) {
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end || number < least || number > most) {
        (void)fprintf(stderr, "storm: %s: not a number from %ld to %ld\n", text, least, most);
        exit(2);
    }
    return number;
}

static void become(long uid) {
    if (setgid((gid_t)uid) < 0 || setuid((uid_t)uid) < 0)
        fail("becoming another user");
}

static int file_open(const char *directory, long number, int flags) {
    char path[4096];
    int descriptor;

    (void)snprintf(path, sizeof path, "%s/storm-%ld-%ld", directory, (long)getpid(), number);
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    if (descriptor < 0)
        fail(path);
    return descriptor;
}

/* A signal may cut it short. */
static void put(int descriptor, const void *data, size_t bytes, off_t offset) {
    for (size_t done = 0; done < bytes;) {
        ssize_t count =
            pwrite(descriptor, (const char *)data + done, bytes - done, offset + (off_t)done);

        if (count <= 0)
            fail("write");
        done += (size_t)count;
    }
}

static void step_list(const char *path) {
    DIR *directory = opendir(path);

    if (!directory)
        fail(path);
    for (errno = 0; readdir(directory);)
        errno = 0;
    if (errno)
        fail("readdir");
    (void)closedir(directory);
}

struct step {
    const char *kind, *directory;
    int descriptor;
    void *data;
};

static void step_copy(const struct step *step) {
    off_t from = 0;
    off_t to = LARGE_BYTES;

    while (from < LARGE_BYTES) {
        if (copy_file_range(step->descriptor, &from, step->descriptor, &to,
                            (size_t)(LARGE_BYTES - from), 0) <= 0)
            fail("copy_file_range");
    }
}

static void wake(int number) {
    (void)number;
}

static void interrupt_often(void) {
    const struct sigaction action = {.sa_handler = wake, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, TIMER_US}, {0, TIMER_US}};

    if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
        fail("a timer");
}

static void step_do(const struct step *step, long number) {
    if (strcmp(step->kind, "list") == 0) {
        step_list(step->directory);
    } else if (strcmp(step->kind, "fsync") == 0) {
        put(step->descriptor, step->data, SMALL_BYTES, 0);
        if (fsync(step->descriptor) < 0)
            fail("fsync");
    } else if (strcmp(step->kind, "copy") == 0) {
        step_copy(step);
    } else {
        put(step->descriptor, step->data, LARGE_BYTES, number * LARGE_BYTES % FILE_BYTES);
    }
}

static void work(const char *kind, const char *directory, long number, struct tally *tally) {
    struct step step = {.kind = kind, .directory = directory, .descriptor = -1};

    step.data = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (step.data == MAP_FAILED)
        fail("mmap");
    memset(step.data, (int)number + 1, LARGE_BYTES);
    if (strcmp(kind, "list") != 0)
        step.descriptor = file_open(directory, number, strcmp(kind, "direct") == 0 ? O_DIRECT : 0);
    /* Piecemeal, so that only the copies are large. */
    for (off_t at = 0; strcmp(kind, "copy") == 0 && at < LARGE_BYTES; at += PIECE_BYTES)
        put(step.descriptor, step.data, PIECE_BYTES, at);
    if (strcmp(kind, "signal") == 0)
        interrupt_often();
    for (long i = 0;; i++) {
        step_do(&step, i);
        atomic_fetch_add(&tally->steps, 1);
        if (i == 0)
            atomic_fetch_add(&tally->ready, 1);
    }
}

static void load(char **words) {
    long processes = number_of(words[2], 1, PROCESSES_MAX);
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *all = calloc((size_t)processes, sizeof *all);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    pid_t parent = getpid();

    if (tally == MAP_FAILED || !all)
        fail("memory");
    become(number_of(words[3], 1, INT32_MAX));
    for (long i = 0; i < processes; i++) {
        all[i] = fork();
        if (all[i] < 0)
            fail("fork");
        if (all[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                exit(1);
            work(words[0], words[1], i, tally);
        }
    }
    while (atomic_load(&tally->ready) < processes) {
        if (poll(&input, 1, 10) != 0)
            break;
        if (waitpid(-1, NULL, WNOHANG) > 0)
            fail("a process of the storm ended");
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (poll(&input, 1, -1) < 0 && errno == EINTR)
        ;
    (void)printf("%ld\n", atomic_load(&tally->steps));
    for (long i = 0; i < processes; i++)
        (void)kill(all[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    free(all);
}

static long now_us(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int long_compare(const void *a, const void *b) {
    long x = *(const long *)a;
    long y = *(const long *)b;

    return (x > y) - (x < y);
}

static void quiet(char **words) {
    static char data[SMALL_BYTES];
    long count = number_of(words[2], 1, COUNT_MAX);
    long pause_us = number_of(words[3], 0, 1000000);
    long *took = calloc((size_t)count, sizeof *took);
    char path[4096];

    if (!took)
        fail("memory");
    become(number_of(words[1], 1, INT32_MAX));
    (void)snprintf(path, sizeof path, "%s/quiet-%ld", words[0], (long)getpid());
    for (long i = 0; i < count; i++) {
        struct timespec pause = {.tv_nsec = pause_us * 1000};
        long start = now_us();
        int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (descriptor < 0)
            fail(path);
        put(descriptor, data, sizeof data, 0);
        if (close(descriptor) < 0 || unlink(path) < 0)
            fail(path);
        took[i] = now_us() - start;
        if (pause_us > 0)
            (void)nanosleep(&pause, NULL);
    }
    qsort(took, (size_t)count, sizeof *took, long_compare);
    (void)printf("%ld %ld %ld\n", took[count / 2], took[count * 99 / 100], took[count - 1]);
    free(took);
}

int main(int count, char **words) {
    if (count == 6 && strcmp(words[1], "load") == 0) {
        load(words + 2);
    } else if (count == 6 && strcmp(words[1], "quiet") == 0) {
        quiet(words + 2);
    } else {
        (void)fprintf(stderr, "Usage: storm load KIND DIR PROCESSES UID | "
                              "storm quiet DIR UID COUNT PAUSE_US\n");
        return 2;
    }
    return 0;
}
