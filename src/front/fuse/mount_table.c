/* Lines of /proc/self/mountinfo. */
#include "front/fuse/mount_table.h"
#include <stddef.h>
#include <string.h>

enum { FIELD_DEVICE = 2, FIELD_MOUNT_POINT = 4 };

/* The next field, ended by NUL; NULL at the end of the line. */
static char *field_next(char **at) {
    char *field = *at + strspn(*at, " \n");
    size_t bytes = strcspn(field, " \n");

    if (bytes == 0)
        return NULL;
    *at = field + bytes;
    if (**at) {
        **at = 0;
        (*at)++;
    }
    return field;
}

static bool is_octal(char c) {
    return c >= '0' && c <= '7';
}

static void unescape(char *field) {
    char *to = field;

    while (*field) {
        if (field[0] == '\\' && is_octal(field[1]) && is_octal(field[2]) && is_octal(field[3])) {
            *to++ = (char)((field[1] - '0') * 64 + (field[2] - '0') * 8 + (field[3] - '0'));
            field += 4;
        } else {
            *to++ = *field++;
        }
    }
    *to = 0;
}

bool mount_line_parse(char *line, struct mount_line *ret_line) {
    struct mount_line result = {0};
    char *field = NULL;

    for (int i = 0; i <= FIELD_MOUNT_POINT; i++) {
        field = field_next(&line);
        if (!field)
            return false;
        if (i == FIELD_DEVICE)
            result.device = field;
    }
    result.mount_point = field;
    do {
        field = field_next(&line);
        if (!field)
            return false;
    } while (strcmp(field, "-") != 0);
    result.type = field_next(&line);
    result.source = field_next(&line);
    if (!result.type || !result.source)
        return false;
    unescape(result.mount_point);
    unescape(result.source);
    *ret_line = result;
    return true;
}
