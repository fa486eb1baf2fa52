/* Asking logs for the rows that a manager is rebuilt from: of other nodes by lanes of its own,
 * before this one's targets are open, and of these within the process.
 *
 * Thread: one.  Memory: a page of rows. */
#pragma once
#include "manager/rebuilt.h"
#include "node/caller.h"
#include "rpc/call.h"

struct local_cluster;

struct rebuild_asker {
    struct local_cluster *cluster; /* whose own targets are asked; NULL: others, by the caller */
    struct caller caller;
    bool is_entered; /* the caller's */
    struct actor origin;
    bool done;
};

/* Of other nodes. Whatever it answers, close is called. */
MUST_CHECK int rebuild_asker_open(struct rebuild_asker *asker, const struct caller_options *options,
                                  char problem[512]);
void rebuild_asker_close(struct rebuild_asker *asker);
/* The caller has filled opcode, log, request and bulk. -ERR_TIMED_OUT, or the call's result. */
MUST_CHECK int rebuild_ask(struct rebuild_asker *asker, struct call *call, uint64_t patience_ns);
/* All that the target's log has, which is on its disk then, goes into the rebuilt one. */
MUST_CHECK int rebuild_rows_ask(struct rebuild_asker *asker, struct rebuilt *rebuilt,
                                const struct map_target *target, uint64_t patience_ns);
