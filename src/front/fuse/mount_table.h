/* Lines of /proc/self/mountinfo:
 *
 *     36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *           device     mount point     optional     type source
 *
 * Space, tab, line break and backslash within a field are written as \ and three octal digits. */
#pragma once
#include <stdbool.h>

struct mount_line {
    char *device; /* major:minor */
    char *mount_point;
    char *type;
    char *source;
};

/* Cuts the line up in place. False when it isn't such a line. */
bool mount_line_parse(char *line, struct mount_line *ret_line);
