/* What the process may have of descriptors and threads. Threads: any. */
#pragma once
#include "node/config.h"

/* Whether there is enough of both for these targets; else a line that says how much is needed. */
MUST_CHECK int local_limits_check(const struct config *config, char ret_problem[256]);
/* As err_text, of what a start has met: -ERR_BUSY is that of a thread or a process. */
const char *local_limits_text(int error);
