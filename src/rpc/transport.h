/* What carries calls: within the process (transport_inproc.h), over a simulated network
 * (transport_sim.h).
 *
 * Thread: any with a worker. Memory: the transport's own. */
#pragma once
#include "rpc/call.h"

struct transport_ops {
    /* Delivers to whom serves call->header.log; at some time rpc_answered may be called for it.
     * The call may be gone when this returns. */
    void (*send)(void *transport, struct call *call);
    /* The call is over for the client: its memory may not be touched from now on, and rpc_answered
     * not be called. NULL where reliable. */
    void (*forget)(void *transport, struct call *call);
    /* rpc_is_away; NULL: nobody is known to be. Any thread. */
    bool (*is_away)(void *transport, struct log_id log);
    /* The call's server has been away for as long as its patience: who has the call, which is not
     * sent, or not reliably, ends it with -ERR_AWAY. NULL: nobody is known to be. Any thread. */
    bool (*has_waited)(void *transport, const struct call *call);
    /* Every call that is sent gets rpc_answered once. */
    bool reliable;
};

/* A call with a patience waits until its server has been away for that long, whatever its deadline
 * was by then, and ends with -ERR_AWAY; one that comes later, while the server stays away, ends so
 * at once. Only where is_away is told. */

/* Whether the caller, who is asked now, waits no more. A call whose server is known not to answer
 * ends with -ERR_INTERRUPTED then; who holds it asks at its ticks, from any thread. */
bool call_is_unwanted(const struct call *call);
/* -ERR_AWAY, -ERR_TIMED_OUT, -ERR_INTERRUPTED: the server may have done it, and may do it later. */
bool call_is_unanswered(int result);
/* Whether who serves the log is known not to answer; of log 0: whether anybody is. */
bool rpc_is_away(const struct rpc *rpc, struct log_id log);
/* By the transport, in any thread with a worker: the reply has been copied into the call. */
void rpc_answered(struct rpc *rpc, struct call *call, int result);
