/* Run by flight.py: many threads, each with a call under way at a mount at any time.
 *
 *     flight DIR THREADS
 *
 * Each has a directory of its own in DIR, as the kernel lets one at a time make a file in one:
 * there it makes a file, writes, syncs now and then, reads, compares, closes and removes it, again
 * and again. "ready" is said when each has done so once. A line at the standard
 * input is answered by "turn" as soon as each has begun and ended a turn behind it. A thread ends
 * with the first call that fails; when all have ended, by that or as the standard input has, the
 * last line counts: turns N, and for each errno that was met its name and how many threads met it.
 * Bytes that are not those written are told as EBADMSG. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    THREADS_MAX = 100000,
    STACK_BYTES = 64 << 10,
    FILE_BYTES = 4096,
    SYNC_TURNS = 16,
    ERRNO_MAX = 256,
    LOOK_MS = 5
};

struct flyer {
    pthread_t thread;
    char *directory;
    const atomic_bool *stop;
    _Atomic long turns; /* that ended */
    atomic_bool ended;
    int error;    /* that ended it, or 0; good once it has ended */
    long awaited; /* turns behind which a line is answered: main's own */
};

static void fail(const char *what) {
    (void)fprintf(stderr, "flight: %s: %s\n", what, strerror(errno));
    exit(1);
}

static bool moved_all(ssize_t count) {
    if (count >= 0 && count < FILE_BYTES)
        errno = EBADMSG;
    return count == FILE_BYTES;
}

static bool file_is_right(int descriptor, const char *path, bool syncs, char mark) {
    char data[FILE_BYTES];
    struct stat about;

    memset(data, mark, sizeof data);
    if (!moved_all(pwrite(descriptor, data, sizeof data, 0)) || (syncs && fsync(descriptor) < 0))
        return false;
    memset(data, 0, sizeof data);
    if (!moved_all(pread(descriptor, data, sizeof data, 0)) || stat(path, &about) < 0)
        return false;
    for (size_t i = 0; i < sizeof data; i++) {
        if (data[i] != mark || about.st_size != FILE_BYTES) {
            errno = EBADMSG;
            return false;
        }
    }
    return true;
}

static bool turn(struct flyer *flyer, const char *path, long number) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int error = 0;

    if (descriptor < 0)
        return false;
    if (!file_is_right(descriptor, path, number % SYNC_TURNS == 0, (char)('a' + number % 26)))
        error = errno;
    if (close(descriptor) < 0 && error == 0)
        error = errno;
    if (error == 0 && unlink(path) < 0)
        error = errno;
    errno = error;
    atomic_fetch_add(&flyer->turns, error == 0);
    return error == 0;
}

static void *fly(void *context) {
    struct flyer *flyer = context;
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/file", flyer->directory);
    for (long i = 0; !atomic_load(flyer->stop); i++) {
        if (!turn(flyer, path, i)) {
            flyer->error = errno;
            break;
        }
    }
    atomic_store(&flyer->ended, true);
    return NULL;
}

static void launch(struct flyer *all, long threads, const char *directory,
                   const atomic_bool *stop) {
    pthread_attr_t small;

    if (pthread_attr_init(&small) || pthread_attr_setstacksize(&small, STACK_BYTES))
        fail("attributes of threads");
    for (long i = 0; i < threads; i++) {
        if (asprintf(&all[i].directory, "%s/%ld", directory, i) < 0 ||
            (mkdir(all[i].directory, 0700) < 0 && errno != EEXIST))
            fail("a directory");
    }
    for (long i = 0; i < threads; i++) {
        all[i].stop = stop;
        all[i].awaited = 1;
        errno = pthread_create(&all[i].thread, &small, fly, &all[i]);
        if (errno)
            fail("a thread");
    }
    (void)pthread_attr_destroy(&small);
}

static bool all_ended(struct flyer *all, long threads) {
    for (long i = 0; i < threads; i++) {
        if (!atomic_load(&all[i].ended))
            return false;
    }
    return true;
}

/* Whether each has as many turns as are awaited of it. */
static bool all_there(struct flyer *all, long threads) {
    for (long i = 0; i < threads; i++) {
        if (atomic_load(&all[i].turns) < all[i].awaited)
            return false;
    }
    return true;
}

static void say(const char *word) {
    (void)printf("%s\n", word);
    (void)fflush(stdout);
}

/* A line's bytes but its end say nothing. False: the input has ended. */
static bool asked(bool *line) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte = 0;

    if (poll(&input, 1, LOOK_MS) <= 0)
        return true;
    if (read(STDIN_FILENO, &byte, 1) != 1)
        return false;
    *line |= byte == '\n';
    return true;
}

static void lead(struct flyer *all, long threads) {
    const char *word = "ready";
    bool goes_on = true;

    while (goes_on && !all_ended(all, threads)) {
        bool line = false;

        goes_on = asked(&line);
        if (line) {
            word = "turn";
            /* The turn that is under way may have begun before the line. */
            for (long i = 0; i < threads; i++)
                all[i].awaited = atomic_load(&all[i].turns) + 2;
        }
        if (word && all_there(all, threads)) {
            say(word);
            word = NULL;
        }
    }
}

static void tell(const struct flyer *all, long threads) {
    long met[ERRNO_MAX] = {0};
    long turns = 0;

    for (long i = 0; i < threads; i++) {
        turns += atomic_load(&all[i].turns);
        met[all[i].error < ERRNO_MAX ? all[i].error : 0]++;
    }
    (void)printf("turns %ld", turns);
    for (int i = 1; i < ERRNO_MAX; i++) {
        if (met[i] > 0)
            (void)printf(" %s %ld", strerrorname_np(i), met[i]);
    }
    (void)printf("\n");
}

int main(int count, char **words) {
    long threads = count == 3 ? strtol(words[2], NULL, 10) : 0;
    struct rlimit files;
    atomic_bool stop = false;
    struct flyer *all;

    if (threads < 1 || threads > THREADS_MAX) {
        (void)fprintf(stderr, "Usage: flight DIR THREADS, of these 1 to %d\n", THREADS_MAX);
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        fail("the limit of open files");
    files.rlim_cur = files.rlim_max;
    all = calloc((size_t)threads, sizeof *all);
    if (!all || setrlimit(RLIMIT_NOFILE, &files) < 0)
        fail("memory, or open files");
    launch(all, threads, words[1], &stop);
    lead(all, threads);
    atomic_store(&stop, true);
    for (long i = 0; i < threads; i++) {
        (void)pthread_join(all[i].thread, NULL);
        free(all[i].directory);
    }
    tell(all, threads);
    free(all);
    return 0;
}
