/* The number of a mutation that has ended without an answer, kept for a later call.
 *
 *     call ends, keeps its sequence -- take --> number -- give --> another call: the same mutation
 *                                                  '-- drop --> awaited no longer
 *
 * That call has the same content, or less to say: the server may have taken the first copy. (A
 * close may give chunks back that its first copy did not, meta/untouched.h: if that was taken they
 * stay.) Until then the number holds up the floor of its log, as a call under way does.
 *
 * Thread: that of the call's origin; drop: any. Memory: the caller's; all 0: no number. */
#pragma once
#include "rpc/call.h"

struct call_number {
    struct rpc *rpc;
    struct rpc_link *link;
    uint64_t sequence;
};

/* Of a call that has ended; none if it keeps none. */
struct call_number call_number_take(struct call *call);
/* Before call_start, to a call that was zeroed. */
void call_number_give(struct call *call, struct call_number *number);
void call_number_drop(struct call_number *number);
