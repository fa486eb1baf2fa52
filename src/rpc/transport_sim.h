/* Calls over the simulated network, as bytes: what a network does to them happens here.
 *
 *     client process                                         server process
 *     call -> frame, bulk -> packet ---- sim_net ----> twin from a pool -> server's actor
 *     id known? reply, bulk into the call <--- sim_net ---- frame, bulk <- call_reply
 *
 * The client keeps an id for each call in flight; a reply whose id is no longer in use is late or a
 * copy, and is dropped. A server whose pool is out of twins for a class answers -ERR_BUSY. The
 * address of a server is the log that it serves.
 *
 * It counts in the world: calls sent, calls busy, requests malformed, replies late, replies
 * malformed.
 *
 * Thread: the world's.  Memory: twins from a pool, bulk and packets from the heap. */
#pragma once
#include "env/env.h"
#include "rpc/transport.h"
#include "rpc/sim_net.h"

/* The client's end, of one incarnation of a process; context of its rpc. */
struct transport_sim;

extern const struct transport_ops transport_sim_ops;

MUST_CHECK int transport_sim_new(struct sim_net *net, struct sim_process *process,
                                 struct transport_sim **ret_transport);
/* From now on it finds out who is away (sim_aways.h): asked by transport_sim_tick, each 10 to 100
 * ms, whoever is awaited and silent for silent_ns, above 0. Without it nobody is known to be. Once,
 * before anything is called. */
void transport_sim_watch(struct transport_sim *transport, struct env *env, uint64_t silent_ns);
void transport_sim_tick(struct transport_sim *transport);
/* After the rpc. Takes NULL. */
void transport_sim_free(struct transport_sim *transport);

struct transport_sim_server_options {
    struct sim_net *net;
    struct sim_process *process;
    struct env *env; /* its clock */
    struct log_id log;
    struct actor *actor; /* takes messages of kind CALL_MESSAGE_KIND */
    uint32_t calls_max;
    uint32_t reserve_count[MESSAGE_CLASS_COUNT]; /* of them, as in a pool */
    uint64_t bulk_bytes_max;                     /* of one call, either way */
};

/* The server's end, of one incarnation; it answers from now on. */
struct transport_sim_server;

/* The errors of pool_init. */
MUST_CHECK int transport_sim_serve(const struct transport_sim_server_options *options,
                                   struct transport_sim_server **ret_server);
/* Calls that are not answered yet are gone with it: the server may not touch them any more. Takes
 * NULL. */
void transport_sim_server_free(struct transport_sim_server *server);
