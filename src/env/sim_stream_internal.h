/* What the files of simulated streams share.
 *
 *     env_stream   sim_end --.                  .-- sim_end   env_stream
 *                             '-- sim_link ----'
 *                                 two pipes: bytes that were sent and are not acknowledged
 *
 *     pipe:   acked <= received <= arrived <= door <= sent
 *             (room again) (by the user) (may be read) (at a cut) (by the user)
 *
 * An end may go before its link: then its place in it is empty. A link lives as long as an end or
 * an event names it. */
#pragma once
#include "env/sim_internal.h"
#include "env/sim_stream.h"

struct sim_pipe {
    uint8_t *data; /* a ring of capacity bytes, by position */
    size_t capacity;
    uint64_t sent;
    uint64_t door;
    uint64_t arrived;
    uint64_t received;
    uint64_t acked;
    uint64_t newest_ns; /* nothing arrives before what was sent before it */
    bool fin_at_door;   /* behind door */
    bool fin_arrived;
    bool lost; /* what is under way does not arrive */
    bool watched;
};

enum sim_link_state { LINK_CONNECTING, LINK_WAITING, LINK_OPEN };

struct sim_link {
    struct list_node node;    /* of the world's */
    struct list_node waiting; /* of the listener's */
    struct sim_streams *streams;
    uint64_t number;
    unsigned hold_count;
    enum sim_link_state state;
    bool is_path;
    bool syn_stuck;
    bool reset_waiting;     /* before it was accepted */
    struct address address; /* that was asked for */
    struct address client_address;
    struct sim_process *processes[2]; /* 0: connected, 1: accepted */
    struct sim_end *ends[2];
    struct sim_pipe pipes[2]; /* by the side that sends */
};

struct sim_end {
    struct env_stream stream;
    struct list_node node; /* of the env's */
    struct env_sim *env;
    struct sim_link *link;
    unsigned side;
    bool opened;
    bool open_owed;
    bool readable_told;
    bool writable_owed;
    bool over;
    bool over_told;
    bool closed;
    int reason;
    unsigned event_count; /* that name it */
};

struct sim_listener {
    struct env_listener listener;
    struct list_node node; /* of the world's, while it listens */
    struct list_node node_of_env;
    struct env_sim *env;
    struct env_listen_options options;
    struct address address;
    struct list waiting; /* links */
    size_t waiting_count;
    bool closed;
    unsigned event_count;
};

/* A host's name, and who has it. */
struct sim_stream_host {
    struct list_node node;
    struct address address; /* port 0 */
    struct sim_process *process;
};

struct sim_stream_cut {
    struct list_node node;
    const struct sim_process *from;
    const struct sim_process *to;
};

struct sim_streams {
    struct sim *sim;
    struct sim_stream_faults faults;
    struct list cuts;
    struct list hosts;
    struct list listeners;
    struct list links;
    uint64_t link_count;
    uint16_t port_next;
};

/* sim_stream.c */
/* Tells what there is to tell, after a delay. */
void sim_end_wake(struct sim_end *end, uint64_t delay_ns);
/* The stream is over; told next. */
void sim_end_finish(struct sim_end *end, int reason, uint64_t delay_ns);
/* An end of the link's side. */
struct sim_end *sim_end_new(struct env_sim *env, struct sim_link *link, unsigned side);
void sim_end_put(struct sim_end *end);

/* sim_link.c */
struct sim_link *sim_link_new(struct sim_streams *streams);
void sim_link_put(struct sim_link *link);
uint64_t sim_stream_delay(struct sim_streams *streams);
bool sim_stream_chance(struct sim_streams *streams, uint32_t per_million);
bool sim_path_is_open(const struct sim_streams *streams, const struct sim_process *from,
                      const struct sim_process *to);
/* Launches what was put into the pipe behind position `from`. */
void sim_link_launch(struct sim_link *link, unsigned side, uint64_t from);
/* Room for the sender again, if it learns of it. */
void sim_link_acknowledge(struct sim_link *link, unsigned side);
/* The end of a side goes, by the words of close and reset. */
void sim_link_close(struct sim_link *link, unsigned side);
void sim_link_reset(struct sim_link *link, unsigned side);
/* The end of that side learns that it is reset. */
void sim_link_refuse(struct sim_link *link, unsigned side, int reason);
/* An event of the world that names the link. */
void sim_link_schedule(struct sim_link *link, uint64_t delay_ns, const char *kind,
                       void (*run)(void *context));

/* sim_listener.c */
int sim_listen(struct env *base, const struct address *address,
               const struct env_listen_options *options, struct env_listener **ret_listener);
void sim_listener_address(struct env_listener *listener, struct address *ret_address);
void sim_listener_close(struct env_listener *listener);
/* A connection's first segment arrives; context is the link. */
void sim_syn_arrive(void *context);
/* A stream has gone: listeners of the process that wait for it look again. */
void sim_listeners_look(struct sim_process *process);
void sim_listener_kill(struct sim_listener *listener, bool power);
void sim_listener_put(struct sim_listener *listener);
