/* Where simulated connections come in: hosts, listeners, and what waits to be accepted. */
#include "env/sim_stream_internal.h"
#include <assert.h>
#include <stdlib.h>

enum { BACKLOG_DEFAULT = 128 };

static struct sim_listener *listener_of(struct env_listener *base) {
    return CONTAINER_OF(base, struct sim_listener, listener);
}

static struct sim_streams *streams_of(const struct sim_listener *listener) {
    return sim_streams_of(listener->env->process->sim);
}

static struct address host_address(const struct address *address) {
    struct address host = *address;

    host.port = 0;
    return host;
}

static struct sim_stream_host *host_find(struct sim_streams *streams,
                                         const struct address *address) {
    struct address wanted = host_address(address);

    for (struct list_node *node = list_first(&streams->hosts); node;
         node = list_next(&streams->hosts, node)) {
        struct sim_stream_host *host = CONTAINER_OF(node, struct sim_stream_host, node);

        if (address_is(&host->address, &wanted)) {
            return host;
        }
    }
    return NULL;
}

static void host_set(struct sim_streams *streams, const struct address *address,
                     struct sim_process *process) {
    struct sim_stream_host *host = host_find(streams, address);

    if (!host) {
        host = sim_allocate(sizeof *host);
        host->address = host_address(address);
        list_push_back(&streams->hosts, &host->node);
    }
    host->process = process;
}

/* One of those at an address, by lot; NULL without. */
static struct sim_listener *listener_draw(struct sim_streams *streams,
                                          const struct address *address) {
    struct sim_listener *drawn = NULL;
    uint64_t count = 0;

    for (struct list_node *node = list_first(&streams->listeners); node;
         node = list_next(&streams->listeners, node)) {
        struct sim_listener *listener = CONTAINER_OF(node, struct sim_listener, node);

        if (address_is(&listener->address, address) &&
            prng_below(sim_prng(streams->sim), ++count) == 0) {
            drawn = listener;
        }
    }
    return drawn;
}

static void listener_drop(void *context) {
    struct sim_listener *listener = context;

    listener->event_count--;
    sim_listener_put(listener);
}

static bool process_is_full(const struct env_sim *env) {
    return list_count(&env->streams) >= env->process->stream_limit;
}

static void accept_run(void *context);

static void listener_wake(struct sim_listener *listener) {
    if (listener->closed || listener->env->dead) {
        return;
    }
    listener->event_count++;
    sim_schedule_event(streams_of(listener)->sim,
                       &(struct sim_event){.process = listener->env->process,
                                           .delay_ns = sim_stream_delay(streams_of(listener)),
                                           .kind = "accept",
                                           .run = accept_run,
                                           .drop = listener_drop,
                                           .context = listener});
}

static void connection_accept(struct sim_listener *listener) {
    struct list_node *node = list_pop_front(&listener->waiting);
    struct sim_link *link = CONTAINER_OF(node, struct sim_link, waiting);

    listener->waiting_count--;
    link->state = LINK_OPEN;
    struct sim_end *end = sim_end_new(listener->env, link, 1);
    end->opened = true;
    sim_link_put(link);
    sim_end_wake(end, 0);
    if (link->reset_waiting) {
        link->ends[1] = NULL;
        sim_end_finish(end, -ERR_RESET, 0);
    }
    if (listener->waiting_count > 0) {
        listener_wake(listener);
    }
    listener->options.accepted(&listener->listener, &end->stream);
}

static void accept_put_off(struct sim_listener *listener) {
    struct sim *sim = listener->env->process->sim;

    sim_count(sim, "streams accepted late", 1);
    if (!listener->env->streams_full_told) {
        listener->env->streams_full_told = true;
        sim_count(sim, "streams full", 1);
        if (listener->options.full) {
            listener->options.full(&listener->listener);
        }
    }
}

static void accept_run(void *context) {
    struct sim_listener *listener = context;

    if (!listener->closed && listener->waiting_count > 0) {
        if (!process_is_full(listener->env)) {
            connection_accept(listener);
        } else {
            accept_put_off(listener);
        }
    }
    listener_drop(listener);
}

void sim_listeners_look(struct sim_process *process) {
    struct list *listeners = &process->env->listeners;

    for (struct list_node *node = list_first(listeners); node; node = list_next(listeners, node)) {
        struct sim_listener *listener = CONTAINER_OF(node, struct sim_listener, node_of_env);

        if (listener->waiting_count > 0) {
            listener_wake(listener);
        }
    }
}

static void link_opened(void *context) {
    struct sim_link *link = context;

    if (link->ends[0]) {
        link->ends[0]->open_owed = true;
        sim_end_wake(link->ends[0], 0);
    }
}

static void syn_enter(struct sim_link *link, struct sim_listener *listener) {
    struct sim_streams *streams = link->streams;
    unsigned backlog = listener->options.backlog ? listener->options.backlog : BACKLOG_DEFAULT;

    if (listener->waiting_count >= backlog) {
        /* As Linux drops what has no room in the queue: it is sent again. */
        sim_link_schedule(link, NS_PER_S, "connect", sim_syn_arrive);
        return;
    }
    sim_count(streams->sim, "streams opened", 1);
    link->state = LINK_WAITING;
    list_push_back(&listener->waiting, &link->waiting);
    listener->waiting_count++;
    link->hold_count++;
    listener_wake(listener);
    sim_link_schedule(link, sim_stream_delay(streams), "opened", link_opened);
}

static void syn_refuse(struct sim_link *link, int reason) {
    sim_count(link->streams->sim, "streams refused", 1);
    sim_link_refuse(link, 0, reason);
}

void sim_syn_arrive(void *context) {
    struct sim_link *link = context;
    struct sim_streams *streams = link->streams;
    struct sim_stream_host *host = host_find(streams, &link->address);

    if (!link->ends[0] || link->state != LINK_CONNECTING) {
        return;
    }
    link->syn_stuck = false;
    if (!host) {
        syn_refuse(link, -ERR_UNREACHABLE);
        return;
    }
    link->processes[1] = host->process;
    if (!sim_path_is_open(streams, link->processes[0], host->process) ||
        !sim_path_is_open(streams, host->process, link->processes[0]) || host->process->dark) {
        link->syn_stuck = true;
        return;
    }
    struct sim_listener *listener = listener_draw(streams, &link->address);
    if (listener) {
        syn_enter(link, listener);
    } else {
        syn_refuse(link, -ERR_REFUSED);
    }
}

static int address_claim(struct env_sim *env, struct address *address) {
    struct sim_streams *streams = sim_streams_of(env->process->sim);

    if (address->port == 0 && address->kind != ADDRESS_UNIX) {
        address->port = streams->port_next++;
    }
    for (struct list_node *node = list_first(&streams->listeners); node;
         node = list_next(&streams->listeners, node)) {
        struct sim_listener *listener = CONTAINER_OF(node, struct sim_listener, node);

        if (listener->env != env && address_is(&listener->address, address)) {
            return -ERR_IN_USE;
        }
    }
    host_set(streams, address, env->process);
    return 0;
}

int sim_listen(struct env *base, const struct address *address,
               const struct env_listen_options *options, struct env_listener **ret_listener) {
    struct env_sim *env = env_sim_of(base);
    struct address claimed = *address;

    assert(options->accepted);
    if (!may_read(env)) {
        return -ERR_CLOSED;
    }
    int r = address_claim(env, &claimed);
    if (r) {
        return r;
    }
    struct sim_listener *listener = sim_allocate(sizeof *listener);
    listener->listener = (struct env_listener){.env = base, .context = options->context};
    listener->env = env;
    listener->options = *options;
    listener->address = claimed;
    list_init(&listener->waiting);
    list_push_back(&env->listeners, &listener->node_of_env);
    list_push_back(&streams_of(listener)->listeners, &listener->node);
    *ret_listener = &listener->listener;
    return 0;
}

void sim_listener_address(struct env_listener *base, struct address *ret_address) {
    *ret_address = listener_of(base)->address;
}

/* Without power nobody resets what waits. */
void sim_listener_kill(struct sim_listener *listener, bool power) {
    struct list_node *node;

    list_remove(&listener->node);
    while ((node = list_pop_front(&listener->waiting)) != NULL) {
        struct sim_link *link = CONTAINER_OF(node, struct sim_link, waiting);

        link->state = LINK_OPEN;
        if (!power) {
            sim_link_refuse(link, 0, -ERR_RESET);
        }
        sim_link_put(link);
    }
    listener->waiting_count = 0;
}

void sim_listener_put(struct sim_listener *listener) {
    if (listener->closed && listener->event_count == 0) {
        free(listener);
    }
}

/* What waits goes to another listener at the address, or is reset. */
void sim_listener_close(struct env_listener *base) {
    if (!base) {
        return;
    }
    struct sim_listener *listener = listener_of(base);
    struct sim_listener *other;
    struct list_node *node;

    list_remove(&listener->node);
    other = listener_draw(streams_of(listener), &listener->address);
    while (other && (node = list_pop_front(&listener->waiting)) != NULL) {
        list_push_back(&other->waiting, node);
        other->waiting_count++;
        listener_wake(other);
    }
    sim_listener_kill(listener, false);
    list_remove(&listener->node_of_env);
    listener->closed = true;
    sim_listener_put(listener);
}
