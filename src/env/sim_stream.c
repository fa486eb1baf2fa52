/* The ends of simulated connections, and the table of their functions. Whatever there is to tell
 * an end is told by one event of its process, in which it looks at what holds by then. */
#include "env/sim_stream.h"
#include "env/sim_stream_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_PER_MILLION = 60000 }; /* sends and receives that stop before they have to */

static struct sim_end *end_of(struct env_stream *stream) {
    return CONTAINER_OF(stream, struct sim_end, stream);
}

static struct sim_streams *streams_of(const struct sim_end *end) {
    return end->link->streams;
}

static struct sim_pipe *pipe_out(const struct sim_end *end) {
    return &end->link->pipes[end->side];
}

static struct sim_pipe *pipe_in(const struct sim_end *end) {
    return &end->link->pipes[1 - end->side];
}

struct sim_end *sim_end_new(struct env_sim *env, struct sim_link *link, unsigned side) {
    struct sim_end *end = sim_allocate(sizeof *end);

    end->stream.env = &env->env;
    end->env = env;
    end->link = link;
    end->side = side;
    link->hold_count++;
    link->ends[side] = end;
    link->processes[side] = env->process;
    list_push_back(&env->streams, &end->node);
    return end;
}

void sim_end_put(struct sim_end *end) {
    if (end->closed && end->event_count == 0) {
        list_remove(&end->node);
        sim_link_put(end->link);
        free(end);
    }
}

static size_t pipe_room(const struct sim_pipe *pipe) {
    return pipe->capacity - (size_t)(pipe->sent - pipe->acked);
}

static void end_tell(struct sim_end *end, enum env_stream_event event) {
    end->stream.event(&end->stream, event, event == ENV_STREAM_ENDED ? end->reason : 0);
}

static bool end_has_bytes(const struct sim_end *end) {
    const struct sim_pipe *pipe = pipe_in(end);

    return pipe->arrived > pipe->received || pipe->fin_arrived;
}

/* A reset comes before all else: what lies there is not read any more. */
static void end_look(struct sim_end *end) {
    if (end->stream.drops_unread && end->link->is_path && pipe_in(end)->fin_arrived && !end->over) {
        end->link->ends[end->side] = NULL;
        end->over = true;
        end->reason = -ERR_RESET;
    }
    if (end->open_owed && !end->over) {
        end->open_owed = false;
        end->opened = true;
        end_tell(end, ENV_STREAM_OPEN);
    }
    if (end->opened && !end->closed && !end->over && !end->readable_told && end_has_bytes(end)) {
        end->readable_told = true;
        end->stream.readable_ns = env_now_ns(end->stream.env);
        end_tell(end, ENV_STREAM_READABLE);
    }
    if (!end->closed && !end->over && end->writable_owed && pipe_room(pipe_out(end)) > 0) {
        end->writable_owed = false;
        end_tell(end, ENV_STREAM_WRITABLE);
    }
    if (!end->closed && end->over && !end->over_told) {
        end->over_told = true;
        end_tell(end, ENV_STREAM_ENDED);
    }
}

static void end_drop(void *context) {
    struct sim_end *end = context;

    end->event_count--;
    sim_end_put(end);
}

static void end_run(void *context) {
    struct sim_end *end = context;

    if (!end->closed) {
        end_look(end);
    }
    end_drop(end);
}

static void end_schedule(struct sim_end *end, uint64_t delay_ns, void (*run)(void *context)) {
    end->event_count++;
    sim_schedule_event(streams_of(end)->sim, &(struct sim_event){.process = end->env->process,
                                                                 .delay_ns = delay_ns,
                                                                 .kind = "stream",
                                                                 .run = run,
                                                                 .drop = end_drop,
                                                                 .context = end});
}

void sim_end_wake(struct sim_end *end, uint64_t delay_ns) {
    if (!end->env->dead && !end->closed) {
        end_schedule(end, delay_ns, end_run);
    }
}

void sim_end_finish(struct sim_end *end, int reason, uint64_t delay_ns) {
    if (!end->over) {
        end->over = true;
        end->reason = reason;
        sim_end_wake(end, delay_ns);
    }
}

static void deadline_run(void *context) {
    struct sim_end *end = context;

    if (!end->closed && !end->opened && !end->over) {
        if (end->link->ends[end->side] == end) {
            end->link->ends[end->side] = NULL;
        }
        sim_end_finish(end, -ERR_TIMED_OUT, 0);
    }
    end_drop(end);
}

static int sim_connect(struct env *base, const struct address *address,
                       const struct env_connect_options *options, struct env_stream **ret_stream) {
    struct env_sim *env = env_sim_of(base);
    struct sim_streams *streams = sim_streams_of(env->process->sim);

    assert(options->event);
    if (!may_read(env)) {
        return -ERR_CLOSED;
    }
    struct sim_link *link = sim_link_new(streams);
    struct sim_end *end = sim_end_new(env, link, 0);
    end->stream.event = options->event;
    end->stream.context = options->context;
    link->address = *address;
    link->is_path = address->kind == ADDRESS_UNIX;
    link->client_address = (struct address){.kind = ADDRESS_NAME, .port = streams->port_next++};
    size_t size = strlen(env->process->name);
    memcpy(link->client_address.name, env->process->name,
           MIN(size, (size_t)ADDRESS_NAME_BYTES_MAX));
    sim_link_schedule(link, sim_stream_delay(streams), "connect", sim_syn_arrive);
    if (options->deadline_ns != UINT64_MAX) {
        uint64_t now_ns = env_now_ns(base);

        end_schedule(end, options->deadline_ns > now_ns ? options->deadline_ns - now_ns : 0,
                     deadline_run);
    }
    *ret_stream = &end->stream;
    return 0;
}

/* -ERR_BUSY before OPEN. */
static int end_check(const struct sim_end *end) {
    assert(!end->closed);
    if (end->env->dead || (end->over && (end->over_told || end->reason == 0))) {
        return -ERR_CLOSED;
    }
    return end->opened ? 0 : -ERR_BUSY;
}

/* Now and then fewer than would go. */
static size_t some_of(struct sim_streams *streams, size_t count) {
    if (count > 1 && sim_stream_chance(streams, SHORT_PER_MILLION)) {
        return prng_between(sim_prng(streams->sim), 1, count - 1);
    }
    return count;
}

static void pipe_put(struct sim_pipe *pipe, const uint8_t *data, size_t size) {
    while (size > 0) {
        size_t at = pipe->sent % pipe->capacity;
        size_t piece = MIN(size, pipe->capacity - at);

        memcpy(pipe->data + at, data, piece);
        pipe->sent += piece;
        data += piece;
        size -= piece;
    }
}

static void pipe_get(struct sim_pipe *pipe, uint8_t *data, size_t size) {
    while (size > 0) {
        size_t at = pipe->received % pipe->capacity;
        size_t piece = MIN(size, pipe->capacity - at);

        memcpy(data, pipe->data + at, piece);
        pipe->received += piece;
        data += piece;
        size -= piece;
    }
}

static int sim_send(struct env_stream *stream, const struct bytes *parts, size_t part_count,
                    size_t *ret_sent) {
    struct sim_end *end = end_of(stream);
    int r = end_check(end);

    if (r || end->over || !may_read(end->env)) {
        return r ? r : -ERR_CLOSED;
    }
    struct sim_pipe *pipe = pipe_out(end);
    uint64_t before = pipe->sent;
    size_t total = 0;
    assert(part_count <= ENV_STREAM_PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        total += parts[i].size;
    }
    size_t left = end->writable_owed ? 0 : MIN(total, pipe_room(pipe));
    left = some_of(streams_of(end), left);
    for (size_t i = 0; i < part_count && left > 0; i++) {
        size_t piece = MIN(parts[i].size, left);

        pipe_put(pipe, parts[i].data, piece);
        left -= piece;
    }
    *ret_sent = (size_t)(pipe->sent - before);
    if (*ret_sent < total && !end->writable_owed) {
        end->writable_owed = true;
        if (pipe_room(pipe) > 0) {
            sim_end_wake(end, sim_stream_delay(streams_of(end)));
        }
    }
    sim_link_launch(end->link, end->side, before);
    return 0;
}

/* What came is taken; the rest of it, or what comes, is told anew. */
static void end_drained(struct sim_end *end, bool emptied) {
    if (emptied) {
        end->readable_told = false;
        if (end_has_bytes(end)) {
            sim_end_wake(end, sim_stream_delay(streams_of(end)));
        }
    }
}

static int sim_receive(struct env_stream *stream, struct buffer *parts, size_t part_count,
                       size_t *ret_received) {
    struct sim_end *end = end_of(stream);
    int r = end_check(end);

    if (r || !end->readable_told) {
        return r ? r : -ERR_BUSY;
    }
    struct sim_pipe *pipe = pipe_in(end);
    uint64_t before = pipe->received;
    size_t room = 0;
    assert(part_count <= ENV_STREAM_PARTS_MAX);
    for (size_t i = 0; i < part_count; i++) {
        room += parts[i].capacity - parts[i].size;
    }
    assert(room > 0);
    if (pipe->arrived == pipe->received) {
        if (pipe->fin_arrived) {
            end->link->ends[end->side] = NULL;
            sim_end_finish(end, 0, 0);
            return -ERR_CLOSED;
        }
        end_drained(end, true);
        return -ERR_BUSY;
    }
    size_t left = some_of(streams_of(end), MIN(room, (size_t)(pipe->arrived - pipe->received)));
    for (size_t i = 0; i < part_count && left > 0; i++) {
        size_t piece = MIN(parts[i].capacity - parts[i].size, left);

        pipe_get(pipe, parts[i].data + parts[i].size, piece);
        parts[i].size += piece;
        left -= piece;
    }
    *ret_received = (size_t)(pipe->received - before);
    sim_trace(streams_of(end)->sim, "received", end->link->number, *ret_received);
    sim_link_acknowledge(end->link, 1 - end->side);
    end_drained(end, *ret_received < room);
    return 0;
}

static void sim_again(struct env_stream *stream) {
    struct sim_end *end = end_of(stream);

    end_drained(end, true);
}

static void end_close(struct sim_end *end, bool resets) {
    struct sim_link *link = end->link;

    assert(!end->closed);
    end->closed = true;
    if (link->ends[end->side] == end) {
        if (resets && !link->is_path) {
            sim_link_reset(link, end->side);
        } else {
            sim_link_close(link, end->side);
        }
    }
    list_remove(&end->node);
    if (!end->env->dead) {
        sim_listeners_look(end->env->process);
    }
    sim_end_put(end);
}

static void sim_close(struct env_stream *stream) {
    if (stream) {
        end_close(end_of(stream), false);
    }
}

static void sim_reset(struct env_stream *stream) {
    if (stream) {
        end_close(end_of(stream), true);
    }
}

static int sim_peer(struct env_stream *stream, struct env_stream_peer *ret_peer) {
    const struct sim_end *end = end_of(stream);
    const struct sim_process *process = end->link->processes[1 - end->side];

    if (!end->link->is_path || !process) {
        return -ERR_NOT_SUPPORTED;
    }
    *ret_peer = (struct env_stream_peer){
        .pid = process->index + 1, .uid = process->uid, .gid = process->gid};
    return 0;
}

static void sim_peer_address(struct env_stream *stream, struct address *ret_address) {
    const struct sim_end *end = end_of(stream);
    const struct sim_link *link = end->link;

    *ret_address = end->side == 0 || link->is_path ? link->address : link->client_address;
}

static int sim_own_address(struct env_stream *stream, struct address *ret_address) {
    const struct sim_end *end = end_of(stream);
    const struct sim_link *link = end->link;

    *ret_address = end->side == 1 || link->is_path ? link->address : link->client_address;
    return 0;
}

const struct env_stream_ops sim_stream_ops = {
    .listen = sim_listen,
    .listener_address = sim_listener_address,
    .listener_close = sim_listener_close,
    .connect = sim_connect,
    .send = sim_send,
    .receive = sim_receive,
    .again = sim_again,
    .close = sim_close,
    .reset = sim_reset,
    .peer = sim_peer,
    .peer_address = sim_peer_address,
    .own_address = sim_own_address,
};

/* The kernel of a killed process ends its streams, for better or worse; a machine without power
 * says nothing, and some of what was under way had left it. */
static void end_kill(struct sim_end *end, bool power) {
    struct sim_link *link = end->link;
    struct sim_streams *streams = link->streams;
    bool luck = prng_chance(sim_prng(streams->sim), 1, 2);

    if (link->ends[end->side] != end) {
        return;
    }
    sim_count(streams->sim, power ? "streams lost with power" : "streams killed", 1);
    if (power) {
        link->ends[end->side] = NULL;
        link->pipes[end->side].lost = luck;
    } else if (luck && !link->is_path) {
        sim_link_reset(link, end->side);
    } else {
        sim_link_close(link, end->side);
    }
}

void sim_streams_kill(struct env_sim *env, bool power) {
    for (struct list_node *node = list_first(&env->streams); node;
         node = list_next(&env->streams, node)) {
        end_kill(CONTAINER_OF(node, struct sim_end, node), power);
    }
    for (struct list_node *node = list_first(&env->listeners); node;
         node = list_next(&env->listeners, node)) {
        sim_listener_kill(CONTAINER_OF(node, struct sim_listener, node_of_env), power);
    }
}

void sim_streams_close(struct env_sim *env) {
    struct list_node *node;

    while ((node = list_first(&env->streams)) != NULL) {
        struct sim_end *end = CONTAINER_OF(node, struct sim_end, node);

        if (end->link->ends[end->side] == end) {
            end->link->ends[end->side] = NULL;
        }
        end->closed = true;
        list_remove(node);
        sim_end_put(end);
    }
    while ((node = list_first(&env->listeners)) != NULL) {
        struct sim_listener *listener = CONTAINER_OF(node, struct sim_listener, node_of_env);

        sim_listener_kill(listener, true);
        listener->closed = true;
        list_remove(node);
        sim_listener_put(listener);
    }
}

void sim_stream_limit(struct sim_process *process, uint32_t stream_limit) {
    process->stream_limit = stream_limit;
    sim_listeners_look(process);
}

void sim_stream_identity(struct sim_process *process, uint32_t uid, uint32_t gid) {
    process->uid = uid;
    process->gid = gid;
}
