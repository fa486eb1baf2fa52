/* Signals that say stop, and other processes of this machine. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"

/* Blocks SIGTERM, SIGINT and SIGHUP in this thread and those it starts, and ignores SIGPIPE and
 * SIGXFSZ, so that a write which fails for a limit of its process is told by its error: before any
 * other thread exists. */
void process_signals_block(void);
/* The next of those three; -ERR_TIMED_OUT after timeout_ns (UINT64_MAX: never). */
MUST_CHECK int process_signal_wait(uint64_t timeout_ns, int *ret_signal);

/* Of the environment; NULL where it has none of that name, or an empty one. */
const char *process_variable(const char *name);
int process_own_id(void);
uint32_t process_own_user(void); /* the effective one */
/* Whether this process is killed when the thread that started it ends. */
void process_end_with_parent(bool ends);
/* At once, as if it were killed. */
_Noreturn void process_exit(int status);
/* -ERR_NOT_FOUND when there is no such process. */
MUST_CHECK int process_signal(int process_id, int signal_number);
