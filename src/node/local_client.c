/* The session of the process itself: that of its mount and of its verbs. The first node begins it
 * at its start; another one when it is asked for, as the manager may be away. */
#include "node/local_internal.h"
#include <assert.h>

enum { REST_MS = 100 };
/* How long the end of the session may take once a target has failed, or of one that has joined. */
#define SHORT_WAIT_NS (2 * NS_PER_S)

/* The first failure of all targets, or 0. */
static int any_failure(struct local_cluster *cluster) {
    int r = 0;

    for (uint32_t i = local_target_first(&cluster->config);
         i < local_target_end(&cluster->config) && r == 0;
         i = local_target_next(&cluster->config, i)) {
        r = local_cluster_failure(cluster, i);
    }
    return r;
}

/* While a target is still to answer that has failed, no longer than a moment. */
static int wait_unless_failed(struct local_cluster *cluster, struct waiting *waiting) {
    uint64_t end_ns = UINT64_MAX;

    while (!waiting_is_over(waiting, cluster->env)) {
        uint64_t now_ns = env_now_ns(cluster->env);

        if (end_ns == UINT64_MAX && any_failure(cluster) < 0) {
            end_ns = now_ns + SHORT_WAIT_NS;
        }
        if (now_ns >= end_ns && atomic_load(&waiting->state) == WAITING) {
            return any_failure(cluster);
        }
    }
    return waiting->result;
}

static void begun(void *context, int result) {
    struct local_cluster *cluster = context;

    atomic_store(&cluster->begin_result, result);
    atomic_store(&cluster->client_stage, result < 0 ? CLIENT_NONE : CLIENT_READY);
    if (cluster->session_begin.loop) { /* The start waits for it, or has. */
        waiting_done(&cluster->session_begin, result);
    }
}

/* When the manager is loaded, how many sessions it knows. */
static int manager_wait(struct local_cluster *cluster) {
    struct call call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                        .request.map_get.known_version = UINT64_MAX};

    return local_cluster_ask(cluster, &call);
}

/* Where there are as many sessions as there may be, or no room for the record of one more, it is
 * begun when somebody needs it: those that are there renew theirs only at a node that serves, and
 * would fall silent meanwhile. So it is where the manager was rebuilt, and a beginning may have to
 * wait for one of these. */
int local_client_begin(struct local_cluster *cluster) {
    assert(config_is_first(&cluster->config));
    int loaded = manager_wait(cluster);
    if (loaded < 0 || manager_nameless_count(cluster->manager) > 0) {
        return loaded;
    }
    cluster->session_begin = (struct waiting){.loop = env_thread_loop(cluster->env)};
    atomic_store(&cluster->client_stage, CLIENT_BEGINNING);
    client_start(cluster->client, begun, cluster);
    int r = wait_unless_failed(cluster, &cluster->session_begin);

    return r == -ERR_TOO_MANY_SESSIONS || r == -ERR_NO_SPACE ? 0 : r;
}

int local_cluster_client_begin(struct local_cluster *cluster, uint64_t patience_ns) {
    uint64_t end_ns = env_now_ns(cluster->env) + patience_ns;
    int result = -ERR_TIMED_OUT;
    bool asked = false;

    for (;;) {
        unsigned stage = atomic_load(&cluster->client_stage);

        if (stage == CLIENT_READY) {
            return 0;
        }
        if (stage == CLIENT_NONE && asked) { /* It has ended since. */
            result = atomic_load(&cluster->begin_result);
            if (result != -ERR_TOO_MANY_SESSIONS) {
                return result;
            }
        }
        if (stage == CLIENT_NONE &&
            atomic_compare_exchange_strong(&cluster->client_stage, &stage, CLIENT_BEGINNING)) {
            client_start(cluster->client, begun, cluster);
        }
        asked = true;
        if (env_now_ns(cluster->env) >= end_ns) {
            return result;
        }
        local_cluster_rest(cluster);
    }
}

/* What our own targets need not be told at the next start. */
static void ends_wait(struct local_cluster *cluster) {
    uint64_t end_ns = env_now_ns(cluster->env) + SHORT_WAIT_NS;

    while (manager_ending_count(cluster->manager) > 0 && any_failure(cluster) == 0 &&
           env_now_ns(cluster->env) < end_ns) {
        while (worker_run_one(worker_current())) {
        }
        (void)env_loop_wait(cluster->env, -1, NS_PER_MS);
    }
}

/* The end of the session is told to all targets, however long that takes; one that has failed, or
 * has no room for it, is told at the next start. That of one that has joined is the manager's to
 * end when it is silent. */
int local_client_stop(struct local_cluster *cluster) {
    struct waiting *waiting = &cluster->session_end;
    bool first = config_is_first(&cluster->config);
    uint64_t end_ns = env_now_ns(cluster->env) + SHORT_WAIT_NS;

    if (atomic_load(&cluster->client_stage) == CLIENT_NONE) {
        if (first) {
            ends_wait(cluster);
        }
        return 0;
    }
    waiting->loop = env_thread_loop(cluster->env);
    client_stop(cluster->client, waiting_done, waiting);
    if (first) {
        int r = wait_unless_failed(cluster, waiting);

        ends_wait(cluster);
        return r == -ERR_NO_SPACE ? 0 : r;
    }
    while (!waiting_is_over(waiting, cluster->env)) {
        if (env_now_ns(cluster->env) >= end_ns && atomic_load(&waiting->state) == WAITING) {
            break;
        }
    }
    return 0;
}

struct shoal_client *local_cluster_client(struct local_cluster *cluster) {
    return atomic_load(&cluster->client_stage) == CLIENT_READY ? cluster->client : NULL;
}

void local_asker_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *next = first->next;

        call_done_message(first);
        first = next;
    }
}

struct asking {
    struct waiting waiting;
    atomic_uint left;
};

static void call_asked(struct call *call) {
    struct asking *asking = call->context;

    if (atomic_fetch_sub(&asking->left, 1) == 1) {
        waiting_done(&asking->waiting, 0);
    }
}

void local_cluster_ask_all(struct local_cluster *cluster, struct call *calls, uint32_t count) {
    struct asking asking = {.waiting.loop = env_thread_loop(cluster->env), .left = count};

    for (uint32_t i = 0; i < count; i++) {
        calls[i].origin = &cluster->asker;
        calls[i].done = call_asked;
        calls[i].context = &asking;
        call_start(cluster->rpcs[RPC_ASKER], &calls[i]);
    }
    if (count > 0) {
        (void)waiting_end(&asking.waiting, cluster->env);
    }
}

int local_cluster_ask(struct local_cluster *cluster, struct call *call) {
    local_cluster_ask_all(cluster, call, 1);
    return call->result;
}

void local_cluster_rest(struct local_cluster *cluster) {
    while (worker_run_one(worker_current())) {
    }
    (void)env_loop_wait(cluster->env, -1, REST_MS * NS_PER_MS);
}
