/* Calls within one process: the struct itself goes to the server's actor and comes back. No copy,
 * no allocation, no thread hop.
 *
 *     call_start -> send: log -> actor -> actor_post -> step ... call_reply -> rpc_answered
 *
 * Reliable: nothing is lost or doubled, so nothing is resent but after -ERR_BUSY. A log that is
 * not here answers -ERR_STALE_MAP.
 *
 * Thread: add and remove one at a time, beside any calls; all else from any thread with a worker.
 * Memory: a table, from new to free. */
#pragma once
#include "rpc/transport.h"

struct transport_inproc;

/* Its context in rpc_options is the struct. Any number of rpcs may share one. */
extern const struct transport_ops transport_inproc_ops;

MUST_CHECK int transport_inproc_new(uint32_t logs_max, struct transport_inproc **ret_transport);
/* No call may be in flight. Takes NULL. */
void transport_inproc_free(struct transport_inproc *transport);
/* -ERR_EXISTS, or -ERR_TOO_MANY_OPEN when the table is full. The actor takes messages of kind
 * CALL_MESSAGE_KIND. */
MUST_CHECK int transport_inproc_add(struct transport_inproc *transport, struct log_id log,
                                    struct actor *actor);
/* Calls that start later do not reach the actor; those that are there it must still answer. */
void transport_inproc_remove(struct transport_inproc *transport, struct log_id log);
