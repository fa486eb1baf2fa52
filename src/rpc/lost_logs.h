/* Logs that nobody will ever answer for: a set that only grows.
 *
 * Thread: any, without locks. Memory: from new to free. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <stdatomic.h>

struct lost_logs {
    _Atomic uint32_t count;
    uint32_t place_count;
    _Atomic uint64_t places[]; /* open addressing; 0: free */
};

/* NULL without memory. */
struct lost_logs *lost_logs_new(uint32_t logs_max);
/* Takes NULL. */
void lost_logs_free(struct lost_logs *logs);
/* One that is there already, log 0, and what finds no place change nothing. */
void lost_logs_add(struct lost_logs *logs, struct log_id log);
bool lost_logs_have(const struct lost_logs *logs, struct log_id log);
/* How many there are: no fewer than this thread has been told of one by one. */
uint32_t lost_logs_count(const struct lost_logs *logs);

struct rpc;
/* Those of rpc_log_lose, from rpc_new to rpc_free. (call.c) */
const struct lost_logs *rpc_lost_logs(const struct rpc *rpc);
