/* The contract is in remote_client.h. */
#include "node/remote_client.h"
#include "env/env_fault.h"
#include "host/folder.h"
#include "node/links.h"
#include "node/local_gate.h"
#include "node/local_wait.h"
#include "node/session_text.h"
#include "keys/tls.h"
#include "rpc/lane.h"
#include "rpc/worker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 10, LANE_TICKS = 5, GO_ON_MS = 1, REST_MS = 500 };
enum { AWAY_TICKS = 2 }; /* who is interrupted while a server is away ends at one of these */
enum { LOGS_MAX = MAP_TARGETS_MAX + MAP_GROUPS_MAX + 2 };

/* What each thread has; the worker finds it. */
struct remote_thread {
    struct worker worker; /* first */
    struct lane_thread *lanes;
};

struct remote_client {
    struct env *env;
    struct tls_context *tls; /* NULL: on this machine */
    struct lanes *lanes;
    struct links *links;
    struct rpc *rpc;
    struct shoal_client *client;
    struct env_tick tick;
    uint32_t ticks;
    bool entered, serving, ticking;
    struct waiting begin, end; /* may outlast their waits */
    uint64_t life[2];
    void (*log)(const char *line);
};

static uint64_t worker_now(struct worker *worker) {
    return env_now_ns(worker->context);
}

static void loop_wake(void *context) {
    env_loop_wake(context);
}

static void loop_expect(void *context, bool expects) {
    env_loop_expect(context, expects);
}

static struct remote_thread *thread_here(void) {
    return (struct remote_thread *)(void *)worker_current();
}

/* Where there are too many it calls as threads without lanes do. */
void remote_client_thread_enter(void *context) {
    struct remote_client *client = context;
    struct remote_thread *thread = calloc(1, sizeof *thread);
    const struct lane_waker waker = {
        .wake = loop_wake, .expect = loop_expect, .context = env_thread_loop(client->env)};

    if (!thread) {
        abort();
    }
    worker_init(&thread->worker);
    thread->worker.now_ns = worker_now;
    thread->worker.context = client->env;
    worker_bind(&thread->worker);
    if (lane_thread_new(client->lanes, &waker, &thread->lanes) == 0) {
        lane_thread_bind(thread->lanes);
    }
}

static bool actors_run(void) {
    bool ran = false;

    while (worker_run_one(worker_current())) {
        ran = true;
    }
    return ran;
}

bool remote_client_thread_idle(void *context) {
    bool ran = actors_run();

    (void)context;
    return (thread_here()->lanes && lane_thread_turn(thread_here()->lanes)) || ran;
}

bool remote_client_thread_needed(void *context) {
    (void)context;
    return thread_here()->lanes && lane_thread_is_needed(thread_here()->lanes);
}

/* What is still awaited here ends with the lanes. */
void remote_client_thread_leave(void *context) {
    struct remote_client *client = context;
    struct remote_thread *thread = thread_here();

    (void)actors_run();
    lane_thread_free(TAKE_PTR(thread->lanes));
    while (actors_run() || env_loop_pending(client->env) > 0) {
        (void)env_loop_wait(client->env, -1, GO_ON_MS * NS_PER_MS);
    }
    worker_bind(NULL);
    free(thread);
}

/* What threads without lanes call goes by this one's. */
static int service_init(void *context) {
    struct remote_client *client = context;

    remote_client_thread_enter(context);
    if (!thread_here()->lanes) {
        remote_client_thread_leave(context);
        return -ERR_NO_MEMORY;
    }
    lanes_set_home(client->lanes, thread_here()->lanes);
    return 0;
}

static void tick_fire(struct env_tick *tick) {
    struct remote_client *client = CONTAINER_OF(tick, struct remote_client, tick);

    client_tick(client->client);
    if (++client->ticks % (lanes_anybody_away(client->lanes) ? AWAY_TICKS : LANE_TICKS) == 0) {
        lanes_tick(client->lanes);
    }
}

static void say(void *context, const char *line) {
    struct remote_client *client = context;

    client->log(line);
}

static int open_first(struct remote_client *client, const struct remote_client_options *options) {
    char name[LANE_NAME_BYTES];
    struct address address;
    struct links_options links = {.lanes = client->lanes,
                                  .by_hand = options->addresses,
                                  .by_hand_count = options->address_count,
                                  .by_hand_name = name,
                                  .has_key = client->tls != NULL};

    snprintf(name, sizeof name, "the daemon of %.*s", (int)sizeof name - 32, options->name);
    if (options->address_count == 0) {
        local_gate_address(client->env, &address);
        links.by_hand = &address;
        links.by_hand_count = 1;
    }
    return links_new(&links, &client->links);
}

static void map_came(void *context, const struct cluster_map *map) {
    struct remote_client *client = context;
    int r = links_follow(client->links, map);

    if (r < 0) {
        char line[128];

        snprintf(line, sizeof line, "some nodes of the cluster map cannot be called: %s",
                 err_text(r));
        client->log(line);
    }
}

static void began_again(void *context) {
    struct remote_client *client = context;

    client->log(
        "the session was evicted, as nothing was heard of it: a new one has begun, and what "
        "was open answers EIO until it is closed");
}

static int open_lanes(struct remote_client *client, const struct remote_client_options *wanted) {
    struct lanes_options options = {.env = client->env,
                                    .encryption = wanted->encryption,
                                    .keeps = true,
                                    .log = say,
                                    .context = client};
    struct rpc_options rpc = {.transport = &lanes_ops,
                              .env = client->env,
                              .resend_ns = NS_PER_S / 10,
                              .logs_max = LOGS_MAX};
    int r;

    client->env->ops->random(client->env, client->life, sizeof client->life);
    memcpy(options.self.life, client->life, sizeof client->life);
    r = wanted->address_count == 0 ? 0 : tls_context_call(wanted->key, &client->tls);
    options.tls = client->tls;
    if (r == 0) {
        r = lanes_new(&options, &client->lanes);
    }
    if (r == 0) {
        r = open_first(client, wanted);
    }
    if (r < 0) {
        return r;
    }
    rpc.transport_context = client->lanes;
    return rpc_new(&rpc, &client->rpc);
}

/* Of the directory of a node, which is the env's root. */
static uint64_t place_of(struct env *env, const struct remote_client_options *options) {
    uint64_t place;

    return options->directory && folder_place(env, &place) == 0 ? place : 0;
}

static int open_client(struct remote_client *client, const struct remote_client_options *options) {
    const struct client_options wanted = {
        .env = client->env,
        .rpc = client->rpc,
        .node = options->node,
        .incarnation = client->life[0] | 1,
        .origin = options->origin,
        .place = place_of(client->env, options),
        .map_came = map_came,
        .map_context = client,
        .began_again = began_again,
        .finds_manager = true,
        .request_timeout_ns = options->patience_ns ? options->patience_ns : 120 * NS_PER_S,
    };

    return client_new(&wanted, &client->client);
}

static int start_serving(struct remote_client *client) {
    const struct env_service_hooks hooks = {.init = service_init,
                                            .exit = remote_client_thread_leave,
                                            .idle = remote_client_thread_idle,
                                            .context = client};
    int r = env_service_start(client->env, &hooks);

    if (r < 0) {
        return r;
    }
    client->serving = true;
    client->tick = (struct env_tick){.period_ns = TICK_MS * NS_PER_MS, .fire = tick_fire};
    client->env->ops->tick_start(client->env, &client->tick);
    client->ticking = true;
    return 0;
}

/* -ERR_TIMED_OUT: it may still end, later. */
static int wait_for(struct remote_client *client, struct waiting *waiting, uint64_t timeout_ns) {
    uint64_t end_ns = env_now_ns(client->env) + timeout_ns;

    (void)remote_client_thread_idle(client);
    while (!waiting_is_over(waiting, client->env)) {
        (void)remote_client_thread_idle(client);
        int refusal = links_refusal(client->links);

        if (atomic_load(&waiting->state) != WAITING) {
            continue;
        }
        if (refusal < 0 || env_now_ns(client->env) >= end_ns) {
            return refusal < 0 ? refusal : -ERR_TIMED_OUT;
        }
    }
    return waiting->result;
}

/* False: the time is over. */
static bool rest(struct remote_client *client, uint64_t end_ns) {
    uint64_t now_ns = env_now_ns(client->env);
    uint64_t rested_ns = MIN(end_ns, now_ns + REST_MS * NS_PER_MS);

    for (; now_ns < rested_ns; now_ns = env_now_ns(client->env)) {
        (void)remote_client_thread_idle(client);
        (void)env_loop_wait(client->env, -1, GO_ON_MS * NS_PER_MS);
    }
    return now_ns < end_ns;
}

/* Where there are as many sessions as there may be, one that ends makes room. A call of a beginning
 * ends when its patience is over, which may be before the time is. */
static int begin(struct remote_client *client, const struct remote_client_options *options) {
    uint64_t timeout_ns = options->begin_ns      ? options->begin_ns
                          : options->patience_ns ? options->patience_ns
                                                 : 120 * NS_PER_S;
    uint64_t end_ns = env_now_ns(client->env) + timeout_ns;
    bool was_full = false;
    int r;

    do {
        uint64_t now_ns = env_now_ns(client->env);

        client->begin = (struct waiting){.loop = env_thread_loop(client->env)};
        client_start(client->client, waiting_done, &client->begin);
        r = wait_for(client, &client->begin, end_ns - MIN(end_ns, now_ns));
        was_full = was_full || r == -ERR_TOO_MANY_SESSIONS;
        if (r < 0 && options->waits) {
            options->waits(options->waits_context, r);
        }
    } while ((r == -ERR_TOO_MANY_SESSIONS || r == -ERR_TIMED_OUT) && rest(client, end_ns));
    return r == -ERR_TIMED_OUT && was_full ? -ERR_TOO_MANY_SESSIONS : r;
}

/* The caller goes on to wait for signals: nobody's call may be left to its lanes, and nobody may
 * take them for open. From now on it has none. */
static void leave_nothing(struct remote_client *client) {
    while (remote_client_thread_idle(client) || env_loop_pending(client->env) > 0) {
        (void)env_loop_wait(client->env, -1, GO_ON_MS * NS_PER_MS);
    }
    lane_thread_free(TAKE_PTR(thread_here()->lanes));
    while (env_loop_closing(client->env) > 0) { /* Else their servers count them for long. */
        (void)env_loop_wait(client->env, -1, GO_ON_MS * NS_PER_MS);
    }
}

static void say_refused(const char *name, int r, char problem[512]) {
    if (r == -ERR_ACCESS) {
        snprintf(problem, 512,
                 "%s refuses the key: it is of another cluster, or was taken out of use", name);
    } else if (r == -ERR_REVOKED) {
        snprintf(problem, 512,
                 "%s refuses the key: it is revoked; mount by another one, which `shoal key mount` "
                 "makes",
                 name);
    } else if (r == -ERR_MALFORMED) {
        snprintf(problem, 512,
                 "what answers at %s is no Shoal: name the address and port of a node's --listen",
                 name);
    } else {
        snprintf(problem, 512, "%s refuses: %s", name, err_text(r));
    }
}

static int open_all(struct remote_client *client, const struct remote_client_options *options,
                    char problem[512]) {
    const struct env_linux_options env_options = {.root = options->directory ? options->directory
                                                                             : "/"};
    int r = env_linux_new(&env_options, &client->env);

    if (r == 0) {
        r = env_thread_enter(client->env);
        client->entered = r == 0;
    }
    if (r == 0) {
        r = open_lanes(client, options);
    }
    if (r < 0) {
        return r;
    }
    remote_client_thread_enter(client);
    r = open_client(client, options);
    if (r == 0) {
        r = start_serving(client);
    }
    if (r == 0) {
        r = begin(client, options);
    }
    if (r == 0) {
        leave_nothing(client);
    }
    if (r == -ERR_TIMED_OUT && options->directory) {
        snprintf(problem, 512,
                 "the daemon of %s does not answer: start it with `shoal up %s`, or look at its "
                 "shoal.log",
                 options->directory, options->directory);
    } else if (r == -ERR_TIMED_OUT && client->client && client_map(client->client)) {
        snprintf(problem, 512,
                 "%s answers, but the first node does not, which has the manager: is it up?",
                 options->name);
    } else if (r == -ERR_TOO_MANY_SESSIONS) {
        snprintf(problem, 512,
                 "%s has as many sessions as it takes, mounts and verbs together: unmount some, or "
                 "raise sessions_max in the first node's shoal.conf",
                 options->name);
    } else if (r == -ERR_TIMED_OUT) {
        snprintf(problem, 512,
                 "nobody answers at %s: is the daemon up, with --listen, and does a firewall let "
                 "it through?",
                 options->name);
    } else if (r == -ERR_REVOKED || (r < 0 && links_refusal(client->links) < 0)) {
        say_refused(options->name, r, problem);
    }
    return r;
}

int remote_client_open(const struct remote_client_options *options,
                       struct remote_client **ret_client, char problem[512]) {
    struct remote_client *client = calloc(1, sizeof *client);
    int r;

    problem[0] = '\0';
    if (!client) {
        return -ERR_NO_MEMORY;
    }
    env_fault_watch();
    client->log = options->log;
    r = open_all(client, options, problem);
    if (r < 0) {
        if (!problem[0]) {
            snprintf(problem, 512, "no session with the cluster of %s: %s", options->name,
                     session_text(r));
        }
        remote_client_close(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

int remote_client_stop(struct remote_client *client, uint64_t timeout_ns) {
    client->end.loop = env_thread_loop(client->env);
    client_stop(client->client, waiting_done, &client->end);
    int r = wait_for(client, &client->end, timeout_ns);

    return r == -ERR_NO_SPACE ? 0 : r; /* The manager ends it when it has room for that. */
}

void remote_client_close(struct remote_client *client) {
    if (!client) {
        return;
    }
    if (client->ticking) {
        client->env->ops->tick_stop(client->env, &client->tick);
    }
    if (client->serving) {
        env_service_stop(client->env);
    }
    if (client->entered) {
        if (worker_current()) {
            remote_client_thread_leave(client);
        }
        env_thread_leave(client->env);
    }
    client_free(client->client);
    rpc_free(client->rpc);
    links_free(client->links);
    lanes_free(client->lanes);
    tls_context_free(client->tls);
    env_linux_free(client->env);
    free(client);
}

struct shoal_client *remote_client_client(struct remote_client *client) {
    return client->client;
}

struct env *remote_client_env(struct remote_client *client) {
    return client->env;
}
