/* Clock, processors, limits and threads: plain system calls. */
#include "host/machine.h"
#include "base/err.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TRIED_STACK_BYTES = 262144 };

bool machine_is_terminal(FILE *file) {
    return isatty(fileno(file)) == 1;
}

/* By bytes, so that what follows the line is left for whoever reads it. */
bool machine_is_answered(const char *word) {
    size_t at = 0;
    bool same = true;
    char byte;

    while (read(STDIN_FILENO, &byte, 1) == 1) {
        if (byte == '\n') {
            return same && word[at] == '\0';
        }
        same = same && word[at] == byte && byte != '\0';
        at += same;
    }
    return false;
}

void machine_time_print(char ret_text[MACHINE_TIME_BYTES]) {
    time_t now = time(NULL);
    struct tm parts = {.tm_mday = 1};

    (void)gmtime_r(&now, &parts);
    (void)strftime(ret_text, MACHINE_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

uint64_t machine_descriptors_raise(void) {
    struct rlimit limit = {.rlim_cur = UINT64_MAX};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
    }
    return limit.rlim_cur;
}

unsigned machine_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (unsigned)count : 1;
}

uint64_t machine_clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct machine_thread {
    pthread_t thread;
    bool started;
    unsigned index;
    void (*run)(void *context, unsigned index);
    void *context;
};

static void *thread_main(void *context) {
    struct machine_thread *thread = context;

    thread->run(thread->context, thread->index);
    return NULL;
}

int machine_thread_begin(void (*run)(void *context, unsigned index), void *context,
                         struct machine_thread **ret_thread) {
    struct machine_thread *thread = calloc(1, sizeof *thread);

    if (!thread) {
        return -ERR_NO_MEMORY;
    }
    *thread = (struct machine_thread){.run = run, .context = context};
    if (pthread_create(&thread->thread, NULL, thread_main, thread) != 0) {
        free(thread);
        return -ERR_BUSY;
    }
    *ret_thread = thread;
    return 0;
}

void machine_thread_join(struct machine_thread *thread) {
    pthread_join(thread->thread, NULL);
    free(thread);
}

int machine_threads(unsigned count, void (*run)(void *context, unsigned index), void *context) {
    struct machine_thread *threads = calloc(count, sizeof *threads);
    int r = threads ? 0 : -ERR_NO_MEMORY;

    for (unsigned i = 0; r == 0 && i < count; i++) {
        threads[i] = (struct machine_thread){.index = i, .run = run, .context = context};
        threads[i].started =
            pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]) == 0;
        r = threads[i].started ? 0 : -ERR_BUSY;
    }
    for (unsigned i = 0; threads && i < count; i++) {
        if (threads[i].started) {
            pthread_join(threads[i].thread, NULL);
        }
    }
    free(threads);
    return r;
}

static void *thread_wait(void *context) {
    pthread_mutex_t *gate = context;

    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* With small stacks: of memory it says nothing. */
int machine_threads_try(unsigned count) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_attr_t attributes;
    unsigned started = 0;
    int failure = 0;

    if (!threads || pthread_attr_init(&attributes) != 0) {
        free(threads);
        return -ERR_NO_MEMORY;
    }
    (void)pthread_attr_setstacksize(&attributes, TRIED_STACK_BYTES);
    pthread_mutex_lock(&gate);
    while (started < count && failure == 0) {
        failure = pthread_create(&threads[started], &attributes, thread_wait, &gate);
        started += failure == 0;
    }
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_attr_destroy(&attributes);
    free(threads);
    assert(failure == 0 || failure == EAGAIN);
    return failure ? -ERR_BUSY : 0;
}

void machine_random(void *data, size_t size) {
    uint8_t *to = data;

    while (size > 0) {
        ssize_t got = getrandom(to, MIN(size, (size_t)256), 0);

        /* Up to 256 bytes it fails only when a signal came before the pool was ready. */
        to += MAX(got, 0);
        size -= (size_t)MAX(got, 0);
    }
}
