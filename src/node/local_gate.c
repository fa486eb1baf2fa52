/* The contract is in local_gate.h. */
#include "node/local_gate.h"
#include "env/env_stream.h"
#include "host/process.h"
#include <assert.h>
#include <stdio.h>

static void gate_wake(void *context) {
    env_loop_wake(context);
}

static int admit(void *context, struct env_stream *stream) {
    struct env_stream_peer peer;

    (void)context;
    return stream->env->streams->peer(stream, &peer) == 0 &&
                   (peer.uid == 0 || peer.uid == process_own_user())
               ? 0
               : -ERR_ACCESS;
}

/* A Unix address holds 107 bytes, a directory's path more: the descriptor stands for it. */
void local_gate_address(struct env *env, struct address *ret_address) {
    *ret_address = (struct address){.kind = ADDRESS_UNIX};
    snprintf(ret_address->name, sizeof ret_address->name, "/proc/self/fd/%d/" LOCAL_GATE_NAME,
             env_linux_root(env));
}

int local_gate_begin(struct local_gate *local, const struct gate_options *options,
                     const char *listen, char ret_problem[256]) {
    struct env *env = options->env;
    int r;

    local->options = *options;
    local->options.admit = admit;
    local->listens = listen[0] != '\0';
    if (local->listens) {
        r = address_parse(listen, &local->listen);
        assert(r == 0); /* As the configuration has it. */
    }
    local->waiting = (struct waiting){.loop = env_thread_loop(env)};
    atomic_store(&local->stage, GATE_OPENING);
    r = waiting_end(&local->waiting, env);
    if (r < 0) {
        snprintf(ret_problem, 256, "%s cannot be listened at: %s%s",
                 local->refused ? listen : LOCAL_GATE_NAME, err_text(r),
                 local->refused ? ": name by --listen an address of this machine, and a port that "
                                  "is free; listen in shoal.conf keeps the first one"
                                : "");
    }
    return r;
}

static void accepted_too_soon(struct env_listener *listener, struct env_stream *stream) {
    (void)listener;
    env_stream_close(stream);
}

int local_gate_probe(struct env *env, const char *listen, char ret_problem[512]) {
    const struct env_listen_options options = {.accepted = accepted_too_soon};
    struct env_listener *listener;
    struct address address;

    if (listen[0] == '\0') {
        return 0;
    }
    int r = address_parse(listen, &address);
    assert(r == 0); /* As the configuration has it. */
    bool enters = !env_thread_loop(env);
    r = enters ? env_thread_enter(env) : 0;
    if (r < 0) {
        snprintf(ret_problem, 512, "%s", err_text(r));
        return r;
    }
    r = env->streams->listen(env, &address, &options, &listener);
    if (r == 0) {
        env->streams->listener_close(listener);
    } else {
        snprintf(ret_problem, 512,
                 "%s cannot be listened at: %s: name by --listen an address of this machine, and a "
                 "port that is free",
                 listen, err_text(r));
    }
    if (enters) {
        env_thread_leave(env);
    }
    return r;
}

void local_gate_end(struct local_gate *local) {
    struct env *env = local->options.env;

    if (atomic_load(&local->stage) != GATE_OPEN) {
        return;
    }
    local->waiting = (struct waiting){.loop = env_thread_loop(env)};
    atomic_store(&local->stage, GATE_CLOSING);
    (void)waiting_end(&local->waiting, env);
}

static int gate_open(struct local_gate *local) {
    struct gate_options options = local->options;
    struct address address;
    int r;

    options.waker = (struct lane_waker){.wake = gate_wake, .context = env_thread_loop(options.env)};
    r = gate_new(&options, &local->gate);
    local_gate_address(options.env, &address);
    r = r < 0 ? r : gate_listen(local->gate, &address);
    if (r == 0 && local->listens) {
        r = gate_listen(local->gate, &local->listen);
        local->refused = r < 0;
    }
    return r;
}

bool local_gate_turn(struct local_gate *local) {
    return local->gate && gate_turn(local->gate);
}

void local_gate_tick(struct local_gate *local) {
    unsigned stage = atomic_load(&local->stage);

    if (stage == GATE_OPENING) {
        int r = gate_open(local);

        atomic_store(&local->stage, r < 0 ? GATE_CLOSED : GATE_OPEN);
        waiting_done(&local->waiting, r);
    } else if (stage == GATE_CLOSING) {
        gate_close(local->gate);
        if (gate_is_idle(local->gate)) {
            atomic_store(&local->stage, GATE_CLOSED);
            waiting_done(&local->waiting, 0);
        }
    }
    if (local->gate) {
        struct gate_stats stats;

        gate_tick(local->gate);
        gate_stats(local->gate, &stats);
        atomic_store_explicit(&local->open_count, stats.connection_count, memory_order_relaxed);
        atomic_store_explicit(&local->lanes_granted, stats.lanes_granted, memory_order_relaxed);
    }
}

void local_gate_leave(struct local_gate *local) {
    gate_free(TAKE_PTR(local->gate));
}
