/* The signals of a process, from /proc. */
#include "env/env_signals.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void env_signals_parse(const char *line, struct env_signals *signals) {
    uint64_t value;

    if (sscanf(line, "SigPnd: %" SCNx64, &value) == 1) {
        signals->own = value;
    } else if (sscanf(line, "ShdPnd: %" SCNx64, &value) == 1) {
        signals->shared = value;
    } else if (sscanf(line, "SigBlk: %" SCNx64, &value) == 1) {
        signals->blocked = value;
    } else if (sscanf(line, "SigIgn: %" SCNx64, &value) == 1) {
        signals->ignored = value;
    }
}

bool env_signals_wait(const struct env_signals *signals) {
    return ((signals->own | signals->shared) & ~(signals->blocked | signals->ignored)) != 0;
}

bool env_signal_is_pending(int thread_id) {
    struct env_signals signals = {0};
    char path[64];
    char *line = NULL;
    size_t capacity = 0;

    snprintf(path, sizeof path, "/proc/%d/status", thread_id);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    while (getline(&line, &capacity, file) > 0) {
        env_signals_parse(line, &signals);
    }
    free(line);
    fclose(file);
    return env_signals_wait(&signals);
}
