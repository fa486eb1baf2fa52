/* See kill_threads.h. */
#include "kill_threads.h"
#include "kill_check.h"
#include "kill_daemon.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct worker_thread {
    struct kill_threads *threads;
    struct tree tree;
    struct work work;
    bool pending; /* work was in flight at the kill */
    pthread_t thread;
};

static struct worker_thread workers[KILL_THREADS_MAX];

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
static bool work_once(struct worker_thread *worker) {
    struct kill_threads *threads = worker->threads;
    struct tree *tree = &worker->tree;
    struct work *work = &worker->work;
    uint64_t began_ms = kill_now_ms();

    work_run(tree, work);
    bool killed = atomic_load(&threads->killed);
    if (killed && (work->error != 0 || is_partial(work))) {
        worker->pending = true;
        return false;
    }
    threads->acknowledged(threads, began_ms);
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
    if (tree->problem[0] && atomic_load(&threads->killed)) {
        tree->problem[0] = '\0';
    }
    return !tree->problem[0];
}

static void *thread_run(void *context) {
    struct worker_thread *worker = context;
    struct kill_threads *threads = worker->threads;
    bool going = true;

    worker->pending = false;
    while (going && !atomic_load(&threads->killed) && !atomic_load(&threads->stopped)) {
        if (work_choose(&worker->tree, &worker->work)) {
            going = work_once(worker);
        }
    }
    if (worker->tree.problem[0]) {
        atomic_store(&threads->stopped, true);
        if (threads->broken) {
            threads->broken(threads);
        }
    }
    return NULL;
}

static void *thread_check(void *context) {
    struct worker_thread *worker = context;

    kill_check(&worker->tree, worker->pending ? &worker->work : NULL);
    worker->pending = false;
    model_session_end(worker->tree.fs, 0);
    return NULL;
}

static void begin(struct kill_threads *threads, void *(*run)(void *)) {
    for (unsigned i = 0; i < threads->count; i++) {
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0) {
            kill_give_up("no thread can be made");
        }
    }
}

void kill_threads_make(struct kill_threads *threads, const char *mount, struct prng *prng) {
    for (unsigned i = 0; i < threads->count; i++) {
        workers[i].threads = threads;
        tree_init(&workers[i].tree, mount, i, prng_next(prng));
        tree_make_roots(&workers[i].tree);
    }
}

void kill_threads_begin(struct kill_threads *threads) {
    begin(threads, thread_run);
}

void kill_threads_join(struct kill_threads *threads, const char *what) {
    char line[KILL_PROBLEM_BYTES + 64];
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += KILL_HANG_S;
    for (unsigned i = 0; i < threads->count; i++) {
        if (pthread_timedjoin_np(workers[i].thread, NULL, &end) != 0) {
            snprintf(line, sizeof line, "%s: thread %u hangs in %s", what, i,
                     work_name(&workers[i].work));
            kill_give_up(line);
        }
    }
    for (unsigned i = 0; i < threads->count; i++) {
        if (workers[i].tree.problem[0]) {
            snprintf(line, sizeof line, "%s, thread %u%s%s: %s", what, i,
                     workers[i].pending ? ", in flight " : "",
                     workers[i].pending ? work_name(&workers[i].work) : "",
                     workers[i].tree.problem);
            kill_give_up(line);
        }
    }
}

void kill_threads_close(struct kill_threads *threads) {
    for (unsigned i = 0; i < threads->count; i++) {
        struct worker_thread *worker = &workers[i];

        for (size_t at = 0; at < HANDLES_MAX; at++) {
            if (worker->tree.handles[at].fd >= 0) {
                close(worker->tree.handles[at].fd);
                worker->tree.handles[at].fd = -1;
            }
        }
        if (worker->pending && worker->work.kind == WORK_WRITE) {
            split_write(&worker->tree, &worker->work);
        }
    }
}

void kill_threads_compare(struct kill_threads *threads, const char *mount, const char *what) {
    const char *own = workers[0].tree.mount;

    for (unsigned i = 0; i < threads->count; i++) {
        workers[i].tree.mount = mount;
    }
    begin(threads, thread_check);
    kill_threads_join(threads, what);
    for (unsigned i = 0; i < threads->count; i++) {
        workers[i].tree.mount = own;
    }
}
