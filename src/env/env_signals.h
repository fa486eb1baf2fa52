/* Signals of a process, for fronts. */
#pragma once
#include "base/types.h"

/* Of /proc/ID/status, as far as its lines were read. */
struct env_signals {
    uint64_t own, shared, blocked, ignored;
};
void env_signals_parse(const char *line, struct env_signals *signals);
/* Whether one waits that is neither blocked nor ignored. */
bool env_signals_wait(const struct env_signals *signals);
/* Whether a signal waits for the thread of this id that it neither blocks nor ignores. False where
 * that isn't known, as of one that has gone. */
bool env_signal_is_pending(int thread_id);
