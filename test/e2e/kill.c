/* Kills the daemon with SIGKILL right at an acknowledgement, starts it again and compares: what was
 * acknowledged is there, what was in flight happened or didn't, nothing else is there.
 *
 *     kill SHOAL DIRECTORY MOUNT SEED ROUNDS [THREADS]
 *
 * Each round, threads run operations of their own choosing until one of them, at an acknowledgement
 * chosen by chance, kills the daemon. Every third round it is killed again while it starts; every
 * eighth ends with `shoal down` instead. Nothing waits between the kill and the start but for the
 * process to be gone. Prints a line a round; exit status 1 and one line when something broke. */
#include "kill_check.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { THREADS_MAX = 16, HANG_S = 120, START_KILL_MS_MAX = 400 };

struct test {
    const char *shoal;
    const char *directory;
    const char *mount;
    struct prng prng;
    unsigned thread_count;
    int daemon;
    uint64_t kill_at; /* this acknowledgement; 0: never */
    uint64_t stop_at;
    atomic_ullong answered;
    atomic_bool killed;
    atomic_bool stopped;
    uint64_t operations;
};

struct worker_thread {
    struct test *test;
    struct tree tree;
    struct work work;
    bool pending; /* work was in flight at the kill */
    pthread_t thread;
};

static struct worker_thread threads[THREADS_MAX];

/* Names are of any bytes, lines of printable ones. */
static _Noreturn void give_up(struct test *test, const char *what) {
    fputs("FAILED: ", stdout);
    for (; *what; what++) {
        bool plain = *what >= ' ' && *what <= '~';

        printf(plain ? "%c" : "\\%02x", (unsigned char)*what);
    }
    fputc('\n', stdout);
    fflush(stdout);
    if (test->daemon > 0) {
        kill(test->daemon, SIGKILL);
    }
    _exit(1);
}

static uint64_t now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / NS_PER_MS;
}

/* The n-th acknowledgement of the round; the one that was chosen kills. */
static void acknowledged(struct test *test) {
    uint64_t count = atomic_fetch_add(&test->answered, 1) + 1;

    if (count == test->kill_at) {
        atomic_store(&test->killed, true);
        kill(test->daemon, SIGKILL);
    } else if (count >= test->stop_at) {
        atomic_store(&test->stopped, true);
    }
}

/* The bytes that a dying daemon still took are acknowledged, the others in flight. */
static void split_write(struct tree *tree, struct work *work) {
    if (work->error == 0 && work->written > 0) {
        (void)!work_apply(tree, work);
        work->offset += work->written;
        work->first += work->written;
        work->size -= work->written;
    }
}

static bool is_partial(const struct work *work) {
    return work->kind == WORK_WRITE && work->error == 0 && work->written < work->size;
}

/* False at the end of the round. */
static bool work_once(struct worker_thread *thread) {
    struct test *test = thread->test;
    struct tree *tree = &thread->tree;
    struct work *work = &thread->work;

    work_run(tree, work);
    bool killed = atomic_load(&test->killed);
    if (killed && (work->error != 0 || is_partial(work))) {
        thread->pending = true;
        return false;
    }
    acknowledged(test);
    if (is_partial(work)) {
        tree_complain(tree, "a write of %llu answers %llu", (unsigned long long)work->size,
                      (unsigned long long)work->written);
        return false;
    }
    int error = work->error;
    int want = work_apply(tree, work);
    if (error != want) {
        tree_complain(tree, "%s answers %s, not %s", work_name(work), strerrorname_np(error),
                      strerrorname_np(want));
        return false;
    }
    work_verify(tree, work);
    if (tree->problem[0] && atomic_load(&test->killed)) {
        tree->problem[0] = '\0';
    }
    return !tree->problem[0];
}

static void *thread_run(void *context) {
    struct worker_thread *thread = context;
    struct test *test = thread->test;
    bool going = true;

    thread->pending = false;
    while (going && !atomic_load(&test->killed) && !atomic_load(&test->stopped)) {
        if (work_choose(&thread->tree, &thread->work)) {
            going = work_once(thread);
        }
    }
    if (thread->tree.problem[0]) {
        atomic_store(&test->stopped, true);
    }
    return NULL;
}

static void *thread_check(void *context) {
    struct worker_thread *thread = context;

    kill_check(&thread->tree, thread->pending ? &thread->work : NULL);
    thread->pending = false;
    model_session_end(thread->tree.fs, 0);
    return NULL;
}

/* All threads run it; one that doesn't come back in HANG_S is a hang. */
static void run_all(struct test *test, void *(*run)(void *), const char *what) {
    char line[KILL_PROBLEM_BYTES + 64];
    struct timespec end;

    for (unsigned i = 0; i < test->thread_count; i++) {
        if (pthread_create(&threads[i].thread, NULL, run, &threads[i]) != 0) {
            give_up(test, "no thread can be made");
        }
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += HANG_S;
    for (unsigned i = 0; i < test->thread_count; i++) {
        if (pthread_timedjoin_np(threads[i].thread, NULL, &end) != 0) {
            snprintf(line, sizeof line, "%s: thread %u hangs in %s", what, i,
                     work_name(&threads[i].work));
            give_up(test, line);
        }
    }
    for (unsigned i = 0; i < test->thread_count; i++) {
        if (threads[i].tree.problem[0]) {
            snprintf(line, sizeof line, "%s, thread %u%s%s: %s", what, i,
                     threads[i].pending ? ", in flight " : "",
                     threads[i].pending ? work_name(&threads[i].work) : "",
                     threads[i].tree.problem);
            give_up(test, line);
        }
    }
}

static void spawn_shoal(struct test *test, const char *const words[], pid_t *ret_process) {
    int error =
        posix_spawn(ret_process, test->shoal, NULL, NULL, (char *const *)(uintptr_t)words, environ);

    if (error != 0) {
        give_up(test, strerror(error));
    }
}

static int read_holder(const struct test *test) {
    char path[KILL_PATH_BYTES];
    char text[32] = "";

    snprintf(path, sizeof path, "%s/lock", test->directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 ? (int)strtol(text, NULL, 10) : 0;
}

static void wait_for_death(struct test *test) {
    int fd = (int)syscall(SYS_pidfd_open, test->daemon, 0);

    if (fd >= 0) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        if (poll(&poll_fd, 1, HANG_S * 1000) != 1) {
            give_up(test, "the killed daemon does not die");
        }
        close(fd);
    }
}

/* Waits for the process and answers its exit status. */
static int wait_for(struct test *test, pid_t process, const char *what) {
    int status = 0;

    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) {
            give_up(test, what);
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Answers how long it took. */
static uint64_t start(struct test *test) {
    const char *const words[] = {test->shoal, "up", test->directory, "--mount", test->mount, NULL};
    uint64_t begin = now_ms();
    pid_t process;

    spawn_shoal(test, words, &process);
    if (wait_for(test, process, "up") != 0) {
        test->daemon = 0;
        give_up(test, "up failed");
    }
    test->daemon = read_holder(test);
    return now_ms() - begin;
}

/* Starts it and kills it at some moment of its start, or soon after. */
static void start_and_kill(struct test *test) {
    const char *const words[] = {test->shoal, "up", test->directory, "--foreground", "--mount",
                                 test->mount, NULL};
    pid_t process;

    spawn_shoal(test, words, &process);
    (void)poll(NULL, 0, (int)prng_below(&test->prng, START_KILL_MS_MAX));
    kill(process, SIGKILL);
    (void)wait_for(test, process, "the daemon that was killed at its start");
}

static void stop(struct test *test) {
    const char *const words[] = {test->shoal, "down", test->directory, NULL};
    pid_t process;

    spawn_shoal(test, words, &process);
    if (wait_for(test, process, "down") != 0) {
        give_up(test, "down failed");
    }
}

static void close_files(struct test *test) {
    for (unsigned i = 0; i < test->thread_count; i++) {
        for (size_t at = 0; at < HANDLES_MAX; at++) {
            if (threads[i].tree.handles[at].fd >= 0) {
                close(threads[i].tree.handles[at].fd);
                threads[i].tree.handles[at].fd = -1;
            }
        }
        if (threads[i].pending && threads[i].work.kind == WORK_WRITE) {
            split_write(&threads[i].tree, &threads[i].work);
        }
    }
}

static void one_round(struct test *test, unsigned round) {
    bool clean = prng_chance(&test->prng, 1, 8);
    uint64_t most = prng_chance(&test->prng, 1, 4) ? 40 : 4000;
    uint64_t count = prng_between(&test->prng, 1, most);

    test->kill_at = clean ? 0 : count;
    test->stop_at = clean ? count : UINT64_MAX;
    atomic_store(&test->answered, 0);
    atomic_store(&test->killed, false);
    atomic_store(&test->stopped, false);
    run_all(test, thread_run, "at work");
    close_files(test);
    if (clean) {
        stop(test);
    }
    wait_for_death(test);
    unsigned kills = 0;
    while (!clean && prng_chance(&test->prng, 1, 3)) {
        start_and_kill(test);
        kills++;
    }
    uint64_t mounted_ms = start(test);
    run_all(test, thread_check, "after the start");
    test->operations += atomic_load(&test->answered);
    printf("round %u: %s after %llu operations%s, mounted again in %llu ms\n", round,
           clean ? "stopped" : "killed", (unsigned long long)atomic_load(&test->answered),
           kills > 0 ? ", killed again at the start" : "", (unsigned long long)mounted_ms);
    fflush(stdout);
}

int main(int argc, char **argv) {
    static struct test test;

    if (argc < 6) {
        fprintf(stderr, "usage: kill SHOAL DIRECTORY MOUNT SEED ROUNDS [THREADS]\n");
        return 2;
    }
    test.shoal = argv[1];
    test.directory = argv[2];
    test.mount = argv[3];
    uint64_t seed = strtoull(argv[4], NULL, 0);
    unsigned rounds = (unsigned)strtoul(argv[5], NULL, 0);
    test.thread_count = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 0) : 4;
    test.thread_count = MIN(test.thread_count, (unsigned)THREADS_MAX);
    prng_init(&test.prng, seed);
    umask(0);
    start(&test);
    for (unsigned i = 0; i < test.thread_count; i++) {
        threads[i].test = &test;
        tree_init(&threads[i].tree, test.mount, i, prng_next(&test.prng));
        tree_make_roots(&threads[i].tree);
    }
    for (unsigned round = 1; round <= rounds; round++) {
        one_round(&test, round);
    }
    stop(&test);
    printf("seed %llu: %u rounds, %llu operations, all that was acknowledged is there\n",
           (unsigned long long)seed, rounds, (unsigned long long)test.operations);
    return 0;
}
