/* Another program, run beside this process until it ends, and what it says. One thread a program,
 * which asks now and then whether it has ended: nothing here waits but the closing of one that runs
 * still. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { PROGRAM_TEXT_BYTES = 1024 };
struct program;

/* Starts the program `name` that lies in the folder of this process's own, with these words, the
 * last of which is NULL; the first is its own name for itself. It reads nothing, and its signals
 * are as a shell leaves them. */
MUST_CHECK int program_start(const char *name, const char *const *words, struct program **ret);
/* Whether it has ended. *ret_status: its exit status, -1 when a signal ended it. */
bool program_has_ended(struct program *program, int *ret_status);
/* What it has said so far, standard output and standard error together; cut. */
const char *program_text(const struct program *program);
/* Kills it if it runs. Takes NULL. */
void program_close(struct program *program);
