/* What the machine knows of other processes: /proc/PID/status. */
#include "env/env_process.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_LINE "Groups:"

/* 65,536 groups of up to 10 digits fit a line of this; getline takes as much as there is. */
static uint32_t groups_parse(const char *text, uint32_t *groups, uint32_t groups_max) {
    uint32_t count = 0;

    while (count < groups_max) {
        char *end;
        unsigned long group;

        errno = 0;
        group = strtoul(text, &end, 10);
        if (end == text || errno != 0 || group > UINT32_MAX)
            break;
        groups[count++] = (uint32_t)group;
        text = end;
    }
    return count;
}

int env_process_groups(uint32_t process, uint32_t *groups, uint32_t groups_max,
                       uint32_t *ret_count) {
    char path[40];
    char *line = NULL;
    size_t line_bytes = 0;
    int r = -ERR_NOT_FOUND;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%u/status", process);
    file = fopen(path, "re");
    if (!file)
        return -ERR_NOT_FOUND;
    while (r < 0 && getline(&line, &line_bytes, file) > 0) {
        if (strncmp(line, GROUPS_LINE, strlen(GROUPS_LINE)) == 0) {
            *ret_count = groups_parse(line + strlen(GROUPS_LINE), groups, groups_max);
            r = 0;
        }
    }
    free(line);
    (void)fclose(file);
    return r;
}
