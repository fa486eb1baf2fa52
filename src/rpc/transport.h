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
    /* Every call that is sent gets rpc_answered once. */
    bool reliable;
};

/* By the transport, in any thread with a worker: the reply has been copied into the call. */
void rpc_answered(struct rpc *rpc, struct call *call, int result);
