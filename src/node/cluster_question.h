/* A verb's words to a cluster, from a process without a daemon: the first node that answers handles
 * them as at its control socket, and tells what all nodes say where the verb is of all.
 *
 * Thread: one that has not entered an env; it waits. Memory: the answer's. */
#pragma once
#include "base/types.h"
#include "base/err.h"

struct cluster_question {
    const char *addresses;     /* as `join` has it */
    const char *key_path;      /* of the members' key */
    struct bytes words;        /* each ended by NUL */
    uint64_t patience_ns;      /* for the answer, once somebody is there; 0: as long as it takes */
    struct buffer *ret_answer; /* at most 3 MiB */
};

/* The status that it ended with goes to ret_status. -ERR_TIMED_OUT: nobody answers, within 10 s at
 * first; -ERR_TOO_SMALL; or why it is refused; with a line in problem. */
MUST_CHECK int cluster_ask(const struct cluster_question *question, int *ret_status,
                           char problem[512]);
