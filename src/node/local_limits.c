/* See local_limits.h. */
#include "node/local_limits.h"
#include "host/machine.h"
#include <inttypes.h>
#include <stdio.h>

enum { DESCRIPTORS_MIN = 64, DESCRIPTORS_OF_EACH = 8, THREADS_MIN = 32, THREADS_OF_EACH = 2 };
#define THREADS_RAISE                                                                              \
    "raise the limit (ulimit -u, TasksMax= of its service, or what its container may have)"

/* Each target has its files, each thread its rings and its channel to the kernel. A cluster that
 * gets on its way and then finds none left would fail at whatever needs one first. */
static int check_descriptors(const struct config *config, char problem[256]) {
    uint64_t needed =
        DESCRIPTORS_MIN +
        DESCRIPTORS_OF_EACH * (config->ost_count + config->mdt_count + machine_processors());
    uint64_t limit = machine_descriptors_raise();

    if (limit >= needed) {
        return 0;
    }
    snprintf(problem, 256,
             "%" PRIu64 " files may be open at a time, %" PRIu64
             " are needed: raise the limit (ulimit -Hn)",
             limit, needed);
    return -ERR_TOO_MANY_OPEN;
}

/* Those of the daemon and of its mount, tried: several limits count them, of which some are told to
 * nobody, and who else has threads below them changes. */
static int check_threads(char problem[256]) {
    unsigned needed = THREADS_MIN + THREADS_OF_EACH * machine_processors();
    int r = machine_threads_try(needed);

    if (r == -ERR_BUSY) {
        snprintf(problem, 256, "%u threads cannot be had: " THREADS_RAISE, needed);
    } else if (r < 0) {
        snprintf(problem, 256, "%s", err_text(r));
    }
    return r;
}

int local_limits_check(const struct config *config, char ret_problem[256]) {
    int r = check_descriptors(config, ret_problem);

    return r < 0 ? r : check_threads(ret_problem);
}

const char *local_limits_text(int error) {
    return error == -ERR_BUSY ? "threads cannot be had: " THREADS_RAISE : err_text(error);
}
