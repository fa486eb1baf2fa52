/* The signals of a process, from /proc. */
#include "env/env_signals.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct signal_sets {
    uint64_t own, shared, blocked, ignored;
};

static void set_read(const char *line, struct signal_sets *sets) {
    uint64_t value;

    if (sscanf(line, "SigPnd: %" SCNx64, &value) == 1) {
        sets->own = value;
    } else if (sscanf(line, "ShdPnd: %" SCNx64, &value) == 1) {
        sets->shared = value;
    } else if (sscanf(line, "SigBlk: %" SCNx64, &value) == 1) {
        sets->blocked = value;
    } else if (sscanf(line, "SigIgn: %" SCNx64, &value) == 1) {
        sets->ignored = value;
    }
}

bool env_signal_is_pending(int thread_id) {
    struct signal_sets sets = {0};
    char path[64];
    char *line = NULL;
    size_t capacity = 0;

    snprintf(path, sizeof path, "/proc/%d/status", thread_id);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    while (getline(&line, &capacity, file) > 0) {
        set_read(line, &sets);
    }
    free(line);
    fclose(file);
    return ((sets.own | sets.shared) & ~(sets.blocked | sets.ignored)) != 0;
}
