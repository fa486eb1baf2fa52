/* See session_text.h. */
#include "node/session_text.h"
#include "base/err.h"

/* The room that a session's record needs is the manager's, on the first node. */
const char *session_text(int error) {
    return error == -ERR_NO_SPACE ? "the file system of the first node's DIR is full: make room "
                                    "there"
                                  : err_text(error);
}
