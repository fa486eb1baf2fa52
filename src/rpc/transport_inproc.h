/* Calls within one process: the struct itself goes to the server's actor and comes back. No copy,
 * no allocation, no thread hop.
 *
 *     call_start -> send: log -> actor -> actor_post -> step ... call_reply -> rpc_answered
 *
 * Its context in rpc_options is the struct log_table of those who serve; any number of rpcs may
 * share one. Reliable: nothing is lost or doubled, so nothing is resent but after -ERR_BUSY. A log
 * that is not here answers -ERR_STALE_MAP.
 *
 * Thread: any with a worker. Memory: none. */
#pragma once
#include "rpc/log_table.h"
#include "rpc/transport.h"

extern const struct transport_ops transport_inproc_ops;
/* Sends it, if the log is here. */
bool transport_inproc_try(struct log_table *logs, struct call *call);
