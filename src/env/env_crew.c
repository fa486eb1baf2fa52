/* The contract is in env_crew.h. */
#include "env/env_crew.h"
#include "env/env_linux_internal.h"
#include <assert.h>
#include <stdlib.h>

struct env_crew {
    struct env_crew_options options;
    pthread_mutex_t mutex; /* guards what follows, up to the threads */
    pthread_cond_t changed;
    unsigned working_count;
    bool released;
    unsigned started_count; /* the caller's */
    pthread_t threads[];
};

static void *crew_main(void *context) {
    struct env_crew *crew = context;

    crew->options.work(crew->options.context);
    pthread_mutex_lock(&crew->mutex);
    crew->working_count--;
    pthread_cond_broadcast(&crew->changed);
    while (!crew->released) {
        pthread_cond_wait(&crew->changed, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
    crew->options.leave(crew->options.context);
    return NULL;
}

int env_crew_new(const struct env_crew_options *options, struct env_crew **ret_crew) {
    unsigned count = options->thread_count;
    struct env_crew *crew = calloc(1, sizeof *crew + count * sizeof crew->threads[0]);

    if (!crew) {
        return -ERR_NO_MEMORY;
    }
    crew->options = *options;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->changed, NULL);
    pthread_mutex_lock(&crew->mutex);
    while (crew->started_count < count &&
           thread_start(&crew->threads[crew->started_count], "shoal-start", crew_main, crew) == 0) {
        crew->started_count++;
        crew->working_count++;
    }
    pthread_mutex_unlock(&crew->mutex);
    *ret_crew = crew;
    return 0;
}

void env_crew_wait(struct env_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    while (crew->working_count > 0) {
        pthread_cond_wait(&crew->changed, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
}

void env_crew_release(struct env_crew *crew) {
    pthread_mutex_lock(&crew->mutex);
    assert(crew->working_count == 0 && !crew->released);
    crew->released = true;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
}

void env_crew_free(struct env_crew *crew) {
    if (!crew) {
        return;
    }
    assert(crew->released);
    for (unsigned i = 0; i < crew->started_count; i++) {
        pthread_join(crew->threads[i], NULL);
    }
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->mutex);
    free(crew);
}
