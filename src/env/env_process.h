/* Processes and signals, for commands and fronts: going into the background, waiting to be told
 * to stop, what groups a caller belongs to. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <stdio.h>

/* Going into the background. The parent waits until the child reports, so that a command returns
 * when what it started works, with its exit status and its words.
 *
 *     parent: enter ........................ returns, is_parent, status and message are the report
 *     child:  enter returns .. starts up .. report .. runs on
 *
 * The child has no terminal, stands in "/" (resolve paths before), reads nothing, and its output
 * is appended to the log; of the caller's descriptors it keeps none. It has the calling thread
 * only: no env may exist yet. */
enum { ENV_BACKGROUND_MESSAGE_BYTES = 1024 };
struct env_background {
    bool is_parent;
    int status; /* as the child reported; -1 when it ended without a report */
    char message[ENV_BACKGROUND_MESSAGE_BYTES];
    int report_fd; /* the child's */
};
MUST_CHECK int env_background_enter(struct env_background *background, const char *log_path);
/* Once. A longer message is cut. */
void env_background_report(struct env_background *background, int status, const char *message);

/* Blocks SIGTERM, SIGINT and SIGHUP in this thread and those it starts, and ignores SIGPIPE and
 * SIGXFSZ, so that a write which fails for a limit of its process is told by its error: before any
 * other thread exists. */
void env_signals_block(void);
/* The next of those three; -ERR_TIMED_OUT after timeout_ns (UINT64_MAX: never). */
MUST_CHECK int env_signal_wait(uint64_t timeout_ns, int *ret_signal);

/* Whether what is written there is read by a person. */
bool env_is_terminal(FILE *file);

/* Now, in UTC, for a log: "2026-01-31T23:59:59Z". */
enum { ENV_TIME_BYTES = 21 };
void env_time_print(char ret_text[ENV_TIME_BYTES]);

/* Lets this process, and what it starts, open as many files as it may at most; answers how many. */
uint64_t env_descriptors_raise(void);
unsigned env_processors(void);

int env_process_id(void);
/* -ERR_NOT_FOUND when there is no such process. */
MUST_CHECK int env_process_signal(int process_id, int signal_number);
/* The supplementary groups of a process. Answers how many there are in ret_count, at most
 * count_max of which are in ret_groups. -ERR_NOT_FOUND when the process has gone. */
MUST_CHECK int env_process_groups(int process_id, size_t count_max, uint32_t *ret_groups,
                                  size_t *ret_count);
