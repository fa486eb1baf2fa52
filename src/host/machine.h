/* What this machine has and how a command meets it: clock, processors, terminal, limits, threads
 * that run at the same time. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <stdio.h>

/* Whether what is written there is read by a person. */
bool machine_is_terminal(FILE *file);

/* Whether the next line of standard input is just that word. */
bool machine_is_answered(const char *word);

/* Now, in UTC, for a log: "2026-01-31T23:59:59Z". */
enum { MACHINE_TIME_BYTES = 21 };
void machine_time_print(char ret_text[MACHINE_TIME_BYTES]);

/* Lets this process, and what it starts, open as many files as it may at most; answers how many. */
uint64_t machine_descriptors_raise(void);
unsigned machine_processors(void);

uint64_t machine_clock_ns(void); /* monotonic */

/* Bytes that nobody can guess; it waits where a machine that has just started has none yet. */
void machine_random(void *data, size_t size);

/* Whether so many threads can be had at a time: they are begun, and end. -ERR_BUSY,
 * -ERR_NO_MEMORY. */
MUST_CHECK int machine_threads_try(unsigned count);

/* Calls run(context, 0) on a thread of its own, which join waits for and frees. -ERR_NO_MEMORY,
 * -ERR_BUSY: no more threads can be had. */
struct machine_thread;
MUST_CHECK int machine_thread_begin(void (*run)(void *context, unsigned index), void *context,
                                    struct machine_thread **ret_thread);
void machine_thread_join(struct machine_thread *thread);

/* Calls run(context, 0..count - 1), each on a thread of its own, and waits for all. When a thread
 * cannot be had, those there are still run, and the result is -ERR_BUSY. */
MUST_CHECK int machine_threads(unsigned count, void (*run)(void *context, unsigned index),
                               void *context);
