/* The service thread: ticks, and what the level above does between them. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <string.h>

int service_init(struct service *service) {
    pthread_mutex_init(&service->mutex, NULL);
    pthread_cond_init(&service->changed, NULL);
    return 0;
}

/* With the lock held. Its wait ends, so that it looks at the ticks and at `stopping` again. */
static void service_nudge(struct service *service) {
    if (service->loop) {
        env_loop_wake(service->loop);
    }
}

static struct env_tick *tick_due(struct service *service, uint64_t now_ns) {
    struct env_tick *tick = service->ticks;

    while (tick && tick->due_ns > now_ns) {
        tick = tick->next;
    }
    return tick;
}

/* Fires what is due; answers when the next one is, UINT64_MAX for none. */
static uint64_t ticks_run(struct env *env, struct service *service) {
    uint64_t now_ns = env_now_ns(env);
    uint64_t next_due_ns = UINT64_MAX;
    struct env_tick *tick;

    pthread_mutex_lock(&service->mutex);
    while ((tick = tick_due(service, now_ns)) != NULL) {
        /* Periods that went by unseen are skipped, not made up for. */
        tick->due_ns = MAX(tick->due_ns + tick->period_ns, now_ns + 1);
        service->firing = tick;
        pthread_mutex_unlock(&service->mutex);
        tick->fire(tick);
        pthread_mutex_lock(&service->mutex);
        service->firing = NULL;
        pthread_cond_broadcast(&service->changed);
    }
    for (tick = service->ticks; tick; tick = tick->next) {
        next_due_ns = MIN(next_due_ns, tick->due_ns);
    }
    pthread_mutex_unlock(&service->mutex);
    return next_due_ns;
}

static bool service_is_stopping(struct service *service) {
    pthread_mutex_lock(&service->mutex);
    bool stopping = service->stopping;
    pthread_mutex_unlock(&service->mutex);
    return stopping;
}

static void service_run(struct env *env, struct service *service) {
    while (!service_is_stopping(service)) {
        uint64_t next_due_ns = ticks_run(env, service);
        bool more = service->hooks.idle && service->hooks.idle(service->hooks.context);
        uint64_t now_ns = env_now_ns(env);
        uint64_t timeout_ns = next_due_ns > now_ns ? next_due_ns - now_ns : 0;

        if (next_due_ns == UINT64_MAX) {
            timeout_ns = UINT64_MAX;
        }
        env_loop_wait(env, -1, more ? 0 : timeout_ns);
    }
    /* What is in flight may lead to more: each completion is followed by idle as before. Answers of
     * others that are expected may never come: who awaits them lets them go in hooks.exit. */
    while (service->loop->pending_count > 0) {
        env_loop_wait(env, -1, UINT64_MAX);
        while (service->hooks.idle && service->hooks.idle(service->hooks.context)) {
            env_loop_poll(env);
        }
    }
}

static void service_announce(struct service *service, int result, struct env_loop *loop) {
    pthread_mutex_lock(&service->mutex);
    service->start_result = result;
    service->loop = loop;
    service->state = result ? SERVICE_FAILED : SERVICE_ON;
    pthread_cond_broadcast(&service->changed);
    pthread_mutex_unlock(&service->mutex);
}

static void *service_main(void *context) {
    struct env_linux *linux_env = context;
    struct service *service = &linux_env->service;
    struct env *env = &linux_env->env;
    int r = env_thread_enter(env);

    if (r) {
        service_announce(service, r, NULL);
        return NULL;
    }
    r = service->hooks.init ? service->hooks.init(service->hooks.context) : 0;
    service_announce(service, r, r ? NULL : env_thread_loop(env));
    if (!r) {
        service_run(env, service);
        if (service->hooks.exit) {
            service->hooks.exit(service->hooks.context);
        }
    }
    pthread_mutex_lock(&service->mutex);
    service->loop = NULL;
    pthread_mutex_unlock(&service->mutex);
    env_thread_leave(env);
    return NULL;
}

int env_service_start(struct env *env, const struct env_service_hooks *hooks) {
    struct service *service = &env_linux_of(env)->service;

    assert(service->state == SERVICE_OFF);
    service->hooks = *hooks;
    service->stopping = false;
    service->state = SERVICE_STARTING;
    int r = thread_start(&service->thread, "shoal-service", service_main, env_linux_of(env));
    if (r) {
        service->state = SERVICE_OFF;
        return r;
    }
    pthread_mutex_lock(&service->mutex);
    while (service->state == SERVICE_STARTING) {
        pthread_cond_wait(&service->changed, &service->mutex);
    }
    r = service->start_result;
    pthread_mutex_unlock(&service->mutex);
    if (r) {
        pthread_join(service->thread, NULL);
        service->state = SERVICE_OFF;
    }
    return r;
}

void env_service_stop(struct env *env) {
    struct service *service = &env_linux_of(env)->service;

    if (service->state == SERVICE_OFF) {
        return;
    }
    pthread_mutex_lock(&service->mutex);
    service->stopping = true;
    service_nudge(service);
    pthread_mutex_unlock(&service->mutex);
    pthread_join(service->thread, NULL);
    service->state = SERVICE_OFF;
}

struct env_loop *env_service_loop(struct env *env) {
    struct service *service = &env_linux_of(env)->service;

    pthread_mutex_lock(&service->mutex);
    struct env_loop *loop = service->loop;
    pthread_mutex_unlock(&service->mutex);
    return loop;
}

void service_deinit(struct env_linux *env) {
    env_service_stop(&env->env);
    pthread_cond_destroy(&env->service.changed);
    pthread_mutex_destroy(&env->service.mutex);
}

void linux_tick_start(struct env *env, struct env_tick *tick) {
    struct service *service = &env_linux_of(env)->service;

    assert(tick->period_ns > 0);
    pthread_mutex_lock(&service->mutex);
    tick->due_ns = env_now_ns(env) + tick->period_ns;
    tick->next = service->ticks;
    service->ticks = tick;
    service_nudge(service);
    pthread_mutex_unlock(&service->mutex);
}

void linux_tick_stop(struct env *env, struct env_tick *tick) {
    struct service *service = &env_linux_of(env)->service;
    struct env_tick **link = &service->ticks;

    pthread_mutex_lock(&service->mutex);
    while (*link && *link != tick) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = tick->next;
    }
    /* Not from fire itself, which would wait for its own end. */
    while (service->firing == tick && !(service->loop && env_thread_loop(env) == service->loop)) {
        pthread_cond_wait(&service->changed, &service->mutex);
    }
    pthread_mutex_unlock(&service->mutex);
}
