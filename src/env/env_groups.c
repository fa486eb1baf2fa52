/* The groups of a process, from /proc. */
#include "env/env_groups.h"
#include "env/errno_map.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a line "Groups:\t4 24 27". */
static size_t groups_parse(const char *line, size_t count_max, uint32_t *ret_groups) {
    size_t count = 0;

    for (;;) {
        char *end;
        unsigned long group = strtoul(line, &end, 10);

        if (end == line) {
            return count;
        }
        if (count < count_max) {
            ret_groups[count] = (uint32_t)group;
        }
        count++;
        line = end;
    }
}

int env_groups_get(int process_id, size_t count_max, uint32_t *ret_groups, size_t *ret_count) {
    static const char label[] = "Groups:";
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
        if (strncmp(line, label, sizeof label - 1) == 0) {
            *ret_count = groups_parse(line + sizeof label - 1, count_max, ret_groups);
            r = 0;
        }
    }
    free(line);
    fclose(file);
    return r;
}
