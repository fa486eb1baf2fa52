/* A stand-in for libshoal: how operations are handed over. */
#include "memory_shoal.h"
#include "memory_shoal_tree.h"
#include "base/types.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct shoal_client {
    struct memory_shoal_options options;
    struct tree *tree;
    _Atomic uint64_t counts[TREE_OPERATION_MAX + 1];
    _Atomic uint32_t fail_counts[TREE_OPERATION_MAX + 1];
    _Atomic int fail_errors[TREE_OPERATION_MAX + 1];
    void (*waits)(void *context);
    void *waits_context;
    void (*acts)(void *context);
    void *acts_context;
    /* MEMORY_SHOAL_THREAD */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct shoal_request *first, *last; /* linked by internal[0] */
    bool stopping;
};

static bool fails(struct shoal_client *client, enum shoal_operation operation) {
    uint32_t left = atomic_load_explicit(&client->fail_counts[operation], memory_order_relaxed);

    while (left > 0)
        if (atomic_compare_exchange_weak(&client->fail_counts[operation], &left, left - 1))
            return true;
    return false;
}

static int64_t run(struct shoal_client *client, struct shoal_request *request) {
    enum shoal_operation operation = request->operation;

    if ((unsigned)operation <= TREE_OPERATION_MAX) {
        atomic_fetch_add_explicit(&client->counts[operation], 1, memory_order_relaxed);
        if (fails(client, operation))
            return atomic_load(&client->fail_errors[operation]);
    }
    if (client->waits) {
        client->waits(client->waits_context);
        int wish = request->interrupted ? request->interrupted(request) : 0;

        if (wish == SHOAL_ABANDONED || (wish != 0 && operation != SHOAL_OPEN &&
                                        operation != SHOAL_CREATE && operation != SHOAL_RELEASE))
            return -EINTR;
    }
    int64_t result = tree_run(client->tree, request);
    if (client->acts)
        client->acts(client->acts_context);
    return result;
}

struct job {
    struct env_job job;
    struct shoal_client *client;
    struct shoal_request *request;
};

static void job_run(struct env_job *base) {
    struct job *job = CONTAINER_OF(base, struct job, job);

    job->request->result = run(job->client, job->request);
}

static void job_done(struct env_job *base) {
    struct job *job = CONTAINER_OF(base, struct job, job);

    job->request->done(job->request);
}

static void *thread_main(void *context) {
    struct shoal_client *client = context;

    pthread_mutex_lock(&client->mutex);
    for (;;) {
        struct shoal_request *request = client->first;

        if (request) {
            client->first = (void *)(uintptr_t)request->internal[0];
            pthread_mutex_unlock(&client->mutex);
            request->result = run(client, request);
            request->done(request);
            pthread_mutex_lock(&client->mutex);
        } else if (client->stopping) {
            break;
        } else {
            pthread_cond_wait(&client->filled, &client->mutex);
        }
    }
    pthread_mutex_unlock(&client->mutex);
    return NULL;
}

static void thread_submit(struct shoal_client *client, struct shoal_request *request) {
    request->internal[0] = 0;
    pthread_mutex_lock(&client->mutex);
    if (client->first)
        client->last->internal[0] = (uintptr_t)request;
    else
        client->first = request;
    client->last = request;
    pthread_cond_signal(&client->filled);
    pthread_mutex_unlock(&client->mutex);
}

void shoal_submit(struct shoal_client *client, struct shoal_request *request) {
    struct job *job = (void *)request->internal;

    static_assert(sizeof(*job) <= sizeof(request->internal), "it lies there");
    switch (client->options.mode) {
    case MEMORY_SHOAL_INLINE:
        request->result = run(client, request);
        request->done(request);
        break;
    case MEMORY_SHOAL_JOB:
        *job = (struct job){
            .job = {.lane = ENV_LANE_READ, .run = job_run, .done = job_done},
            .client = client,
            .request = request,
        };
        env_job_submit(client->options.env, &job->job);
        break;
    case MEMORY_SHOAL_THREAD:
        thread_submit(client, request);
        break;
    }
}

int64_t shoal_run(struct shoal_client *client, struct shoal_request *request) {
    request->result = run(client, request);
    return request->result;
}

struct shoal_client *memory_shoal_new(const struct memory_shoal_options *options) {
    struct shoal_client *client = memory_need(calloc(1, sizeof(*client)));

    client->options = *options;
    client->tree = tree_new(options->root_mode ? options->root_mode : 0755);
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->filled, NULL);
    if (options->mode == MEMORY_SHOAL_THREAD &&
        pthread_create(&client->thread, NULL, thread_main, client) != 0)
        abort();
    return client;
}

void memory_shoal_free(struct shoal_client *client) {
    if (client->options.mode == MEMORY_SHOAL_THREAD) {
        pthread_mutex_lock(&client->mutex);
        client->stopping = true;
        pthread_cond_signal(&client->filled);
        pthread_mutex_unlock(&client->mutex);
        pthread_join(client->thread, NULL);
    }
    pthread_cond_destroy(&client->filled);
    pthread_mutex_destroy(&client->mutex);
    tree_free(client->tree);
    free(client);
}

uint64_t memory_shoal_count(struct shoal_client *client, enum shoal_operation operation) {
    return atomic_load(&client->counts[operation]);
}

uint64_t memory_shoal_open_count(struct shoal_client *client) {
    return atomic_load(&client->tree->open_count);
}

uint64_t memory_shoal_inode_count(struct shoal_client *client) {
    return atomic_load(&client->tree->inode_count);
}

void memory_shoal_fail(struct shoal_client *client, enum shoal_operation operation, int error,
                       unsigned count) {
    atomic_store(&client->fail_errors[operation], error);
    atomic_store(&client->fail_counts[operation], count);
}

void memory_shoal_behind(struct shoal_client *client, void (*acts)(void *context), void *context) {
    client->acts = acts;
    client->acts_context = context;
}

void memory_shoal_wait(struct shoal_client *client, void (*waits)(void *context), void *context) {
    client->waits = waits;
    client->waits_context = context;
}

size_t memory_shoal_write_misalignment(struct shoal_client *client) {
    return atomic_load(&client->tree->misalignment);
}

size_t memory_shoal_listing_bytes(struct shoal_client *client) {
    return atomic_load(&client->tree->listing_bytes);
}
