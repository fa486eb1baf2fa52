/* Going into the background. The parent waits until the child reports, so that a command returns
 * when what it started works, with its exit status and its words.
 *
 *     parent: enter ........................ returns, is_parent, status and message are the report
 *     child:  enter returns .. starts up .. report .. runs on
 *
 * The child has no terminal, stands in "/" (resolve paths before), reads nothing, and its output
 * is appended to the log; of the caller's descriptors it keeps none. It has the calling thread
 * only: no env may exist yet. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { BACKGROUND_MESSAGE_BYTES = 1024 };
struct background {
    bool is_parent;
    int status; /* as the child reported; -1 when it ended without a report */
    char message[BACKGROUND_MESSAGE_BYTES];
    int report_fd; /* the child's */
};
MUST_CHECK int background_enter(struct background *background, const char *log_path);
/* Once. A longer message is cut. */
void background_report(struct background *background, int status, const char *message);
