/* Who else may call the targets of this process: clients in processes of their own, over a Unix
 * socket in the cluster's directory, where root and who started the daemon are let in by the
 * kernel's word; and who has a key, by TCP, if there is an address to listen at.
 *
 * Thread: begin, end on the thread that opens and stops the cluster; the rest on the service
 * thread, whose loop it listens on. Memory: the gate's, and that of its connections. */
#pragma once
#include "base/err.h"
#include "node/local_wait.h"
#include "rpc/gate.h"
#include <stdatomic.h>

#define LOCAL_GATE_NAME "clients.sock"

/* OPENING and CLOSING are asked for by the one thread, and done by the other. */
enum local_gate_stage { GATE_NONE, GATE_OPENING, GATE_OPEN, GATE_CLOSING, GATE_CLOSED };

struct local_gate {
    struct gate_options options;
    struct gate *gate; /* the service thread's */
    atomic_uint stage; /* enum local_gate_stage */
    struct waiting waiting;
    struct address listen;
    bool listens;                               /* by TCP, too */
    bool refused;                               /* what failed was that */
    _Atomic uint32_t open_count, lanes_granted; /* as of the last tick */
};

/* Where clients of the cluster whose directory env's root is find it, in any process. */
void local_gate_address(struct env *env, struct address *ret_address);
/* Listens: nobody else must have begun to stop. env's root is the directory. listen: an address for
 * TCP, or an empty text. On failure ret_problem says of what. */
MUST_CHECK int local_gate_begin(struct local_gate *local, const struct gate_options *options,
                                const char *listen, char ret_problem[256]);
/* Whether that address can be listened at, before a directory is made that keeps it; an empty text
 * can. From any thread. */
MUST_CHECK int local_gate_probe(struct env *env, const char *listen, char ret_problem[512]);
/* Takes no more requests and waits for those at work; what has begun ends by its deadline at the
 * latest. */
void local_gate_end(struct local_gate *local);

/* On the service thread: at each turn (true: something was done), each tick, at its end. */
bool local_gate_turn(struct local_gate *local);
void local_gate_tick(struct local_gate *local);
void local_gate_leave(struct local_gate *local);
