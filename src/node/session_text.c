/* See session_text.h. */
#include "node/session_text.h"
#include "node/local_internal.h"
#include "base/err.h"

/* The room that a session's record needs is the manager's, on the first node. */
const char *session_text(int error) {
    return error == -ERR_NO_SPACE ? "the file system of the first node's DIR is full: make room "
                                    "there"
                                  : err_text(error);
}

const char *session_silence_text(const struct local_cluster *cluster) {
    return cluster->manager && manager_nameless_count(cluster->manager) > 0
               ? "the manager was rebuilt, and waits for sessions of before: try again in a while, "
                 "at most session_timeout_ms after that"
               : "the cluster's manager does not answer: is the first node up?";
}
