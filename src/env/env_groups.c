/* The groups of a process, from /proc. */
#include "env/env_groups.h"
#include "env/errno_map.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool env_groups_parse(const char *line, size_t count_max, uint32_t *ret_groups, size_t *ret_count) {
    static const char label[] = "Groups:";
    size_t count = 0;

    if (strncmp(line, label, sizeof label - 1) != 0) {
        return false;
    }
    line += sizeof label - 1;
    for (;;) {
        char *end;
        unsigned long group = strtoul(line, &end, 10);

        if (end == line) {
            *ret_count = count;
            return true;
        }
        if (count < count_max) {
            ret_groups[count] = (uint32_t)group;
        }
        count++;
        line = end;
    }
}

int env_groups_get(int process_id, size_t count_max, uint32_t *ret_groups, size_t *ret_count) {
    char path[64];
    char *line = NULL;
    size_t capacity = 0;
    int r = -ERR_NOT_FOUND;

    snprintf(path, sizeof path, "/proc/%d/status", process_id);
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT || errno == ESRCH ? -ERR_NOT_FOUND : err_from_errno(errno);
    }
    while (r && getline(&line, &capacity, file) > 0) {
        r = env_groups_parse(line, count_max, ret_groups, ret_count) ? 0 : r;
    }
    free(line);
    fclose(file);
    return r;
}
