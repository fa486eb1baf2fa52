/* Signals of a process, for fronts. */
#pragma once
#include "base/types.h"

/* Whether a signal waits for the thread of this id that it neither blocks nor ignores. False where
 * that isn't known, as of one that has gone. */
bool env_signal_is_pending(int thread_id);
