/* What calls a cluster on one thread, by addresses of any of its nodes and the members' key: for a
 * process that has no daemon, or none yet.
 *
 * Thread: one, which has entered env, from open to close. Memory: lanes and an rpc, until close. */
#pragma once
#include "env/env_linux.h"
#include "keys/tls.h"
#include "node/links.h"
#include "rpc/worker.h"

struct caller_options {
    struct env *env;
    const char *addresses;     /* as `join` has it */
    const char *key_path;      /* of the members' key */
    const uint8_t *cluster_id; /* 16 bytes: who is of another refuses; NULL: any */
    enum link_encryption encryption;
    uint64_t connect_ns;   /* one attempt at an address; 0: as lanes have it */
    uint64_t clock_max_ns; /* as lanes have it */
    uint32_t logs_max;     /* that it calls; 0: two, the manager's and that of whoever is reached */
};

struct caller {
    struct env *env;
    struct worker worker;
    struct worker *before; /* that the thread had; it gets it back; or NULL */
    struct tls_context *tls;
    struct lanes *lanes;
    struct links *links;
    struct lane_thread *thread;
    struct rpc *rpc;
    char said[256]; /* the last line of the lanes, or of whoever says more */
};

/* -ERR_INVALID for addresses that are none; what key_path_read_members answers, with its line in
 * problem; -ERR_NO_MEMORY. After a failure, too, close takes it. */
MUST_CHECK int caller_open(struct caller *caller, const struct caller_options *options,
                           char problem[512]);
/* Waits a moment, and does what is due. */
void caller_turn(struct caller *caller);
/* What has been posted here, and sent by it. */
void caller_run(struct caller *caller);
/* As the log hook of who shares the caller. */
void caller_say(void *caller, const char *line);
/* Ends the lanes: what is awaited ends with -ERR_CLOSED. Who has origins frees them after it. */
void caller_leave(struct caller *caller);
/* After leave; frees. */
void caller_close(struct caller *caller);
