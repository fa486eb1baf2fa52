/* Works on one mount while faults are made below it, and compares.
 *
 *     chaos_load MOUNT STATE SHARED SEED INDEX MOUNTS THREADS
 *
 * STATE and SHARED are files that are mapped (chaos_load.h), SHARED by the processes of all MOUNTS
 * mounts; this is the INDEX-th. The last of the threads shares files, the others have trees. No
 * call may fail that the model says succeeds: a daemon that is away is waited for. Commands on
 * standard input, each answered by a line:
 *
 *     make          what is shared: "made"
 *     go            works; says nothing
 *     hold          ends with the calls at hand, closes all files: "held"
 *     check MOUNT   compares all of its trees by that mount: "checked"
 *
 * "FAILED ..." is what was found; it ends then. */
#include "chaos_load.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct chaos_thread {
    struct chaos_state *state;
    struct chaos_share *share; /* NULL: it has a tree */
    struct tree tree;
    struct work work;
    pthread_t thread;
};

static struct chaos_thread threads[CHAOS_THREADS_MAX];
static struct chaos_share share;
static unsigned thread_count;
static atomic_bool stopped;
static const char *checked_mount;

static uint64_t now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void chaos_begin(struct chaos_state *state) {
    atomic_store(&state->began_ns, now_ns());
}

void chaos_end(struct chaos_state *state) {
    uint64_t began_ns = atomic_load(&state->began_ns);
    uint64_t ended_ns = now_ns();

    if (ended_ns - began_ns > CHAOS_SLOW_NS) {
        state->slow[atomic_load(&state->slow_count) % CHAOS_SLOW_MAX] =
            (struct chaos_slow){began_ns, ended_ns};
        atomic_fetch_add(&state->slow_count, 1);
    }
    atomic_fetch_add(&state->call_count, 1);
    atomic_store(&state->began_ns, 0);
}

/* Names are of any bytes, lines of printable ones. */
static _Noreturn void give_up(const char *what) {
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    fputs("FAILED ", stdout);
    for (; *what; what++) {
        bool plain = *what >= ' ' && *what <= '~';

        printf(plain ? "%c" : "\\%02x", (unsigned char)*what);
    }
    fputc('\n', stdout);
    fflush(stdout);
    _exit(1);
}

/* Ends the process where something broke. */
static void judge(const struct chaos_thread *thread) {
    char line[KILL_PROBLEM_BYTES + 64];
    const char *problem = thread->share ? thread->share->problem : thread->tree.problem;

    if (problem[0]) {
        snprintf(line, sizeof line, "thread %u: %s", thread->tree.thread, problem);
        give_up(line);
    }
}

static void work_once(struct chaos_thread *thread) {
    struct tree *tree = &thread->tree;
    struct work *work = &thread->work;

    chaos_begin(thread->state);
    work_run(tree, work);
    chaos_end(thread->state);
    int error = work->error;
    if (work->kind == WORK_WRITE && error == 0 && work->written < work->size) {
        tree_complain(tree, "a write of %llu answers %llu", (unsigned long long)work->size,
                      (unsigned long long)work->written);
        return;
    }
    int want = work_apply(tree, work);
    if (error != want) {
        tree_complain(tree, "%s answers %s, not %s", work_name(work), strerrorname_np(error),
                      strerrorname_np(want));
        return;
    }
    chaos_begin(thread->state);
    work_verify(tree, work);
    chaos_end(thread->state);
    thread->state->counts[work->kind]++;
}

static void *thread_work(void *context) {
    struct chaos_thread *thread = context;

    while (!atomic_load(&stopped)) {
        if (thread->share) {
            chaos_share_step(thread->share);
        } else if (work_choose(&thread->tree, &thread->work)) {
            work_once(thread);
        }
        judge(thread);
    }
    return NULL;
}

static void *thread_check(void *context) {
    struct chaos_thread *thread = context;
    const char *mount = thread->tree.mount;

    if (thread->share) {
        chaos_share_check(thread->share, checked_mount);
    } else {
        thread->tree.mount = checked_mount;
        chaos_begin(thread->state);
        kill_check(&thread->tree, NULL);
        atomic_store(&thread->state->began_ns, 0);
        thread->tree.mount = mount;
    }
    judge(thread);
    return NULL;
}

static void start_all(void *(*run)(void *)) {
    for (unsigned i = 0; i < thread_count; i++) {
        if (pthread_create(&threads[i].thread, NULL, run, &threads[i]) != 0) {
            give_up("no thread can be made");
        }
    }
}

static void join_all(void) {
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_join(threads[i].thread, NULL);
    }
}

/* What is open is not compared: sizes are told at the close. */
static void close_files(struct chaos_thread *thread) {
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        int fd = thread->tree.handles[i].fd;

        if (!thread->share && fd >= 0) {
            chaos_begin(thread->state);
            int r = close(fd);
            int error = errno;
            chaos_end(thread->state);
            thread->tree.handles[i].fd = -1;
            if (r != 0) {
                tree_complain(&thread->tree, "close: %s", strerror(error));
            }
        }
    }
    if (!thread->share) {
        tree_drop_handles(&thread->tree);
    }
    judge(thread);
}

static void obey(char *line) {
    const char *said = NULL;

    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "make") == 0) {
        chaos_share_make(&share);
        judge(&threads[thread_count - 1]);
        said = "made";
    } else if (strcmp(line, "go") == 0) {
        atomic_store(&stopped, false);
        start_all(thread_work);
        return;
    } else if (strcmp(line, "hold") == 0) {
        atomic_store(&stopped, true);
        join_all();
        for (unsigned i = 0; i < thread_count; i++) {
            close_files(&threads[i]);
        }
        said = "held";
    } else if (strncmp(line, "check ", 6) == 0) {
        checked_mount = line + 6;
        start_all(thread_check);
        join_all();
        said = "checked";
    }
    puts(said ? said : "FAILED a command that is none");
    fflush(stdout);
}

static void *map_file(const char *path, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        give_up(path);
    }
    close(fd);
    return at;
}

static void prepare(char **words) {
    uint64_t seed = strtoull(words[4], NULL, 10);
    unsigned index = (unsigned)strtoul(words[5], NULL, 10);
    unsigned mount_count = (unsigned)strtoul(words[6], NULL, 10);
    struct chaos_state *states = map_file(words[2], thread_count * sizeof *states);
    struct prng prng;

    prng_init(&prng, seed + index);
    for (unsigned i = 0; i < thread_count; i++) {
        tree_init(&threads[i].tree, words[1], index * thread_count + i, prng_next(&prng));
        threads[i].state = &states[i];
    }
    for (unsigned i = 0; i + 1 < thread_count; i++) {
        tree_make_roots(&threads[i].tree);
        judge(&threads[i]);
    }
    share = (struct chaos_share){
        .mount = words[1],
        .files =
            map_file(words[3], CHAOS_MOUNTS_MAX * CHAOS_SHARED_FILES * sizeof(struct chaos_shared)),
        .mount_index = index,
        .mount_count = mount_count,
        .state = &states[thread_count - 1],
    };
    prng_init(&share.prng, prng_next(&prng));
    threads[thread_count - 1].share = &share;
}

int main(int count, char **words) {
    char line[KILL_PATH_BYTES];

    thread_count = count == 8 ? (unsigned)strtoul(words[7], NULL, 10) : 0;
    if (thread_count < 2 || thread_count > CHAOS_THREADS_MAX ||
        strtoul(words[6], NULL, 10) > CHAOS_MOUNTS_MAX) {
        fprintf(stderr, "chaos_load MOUNT STATE SHARED SEED INDEX MOUNTS THREADS\n");
        return 2;
    }
    umask(0);
    prepare(words);
    while (fgets(line, sizeof line, stdin)) {
        obey(line);
    }
    return 0;
}
