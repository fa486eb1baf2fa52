/* The file of old values, as text. Pure. */
#include "host/doctor_files.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char kept_head[] = "shoal-doctor ";
static const char kept_format[] = "1";
static const char kept_end[] = "end\n";
enum { FIELDS_MAX = 4 };

/* Digits only, and few enough that it is a number: all that such a setting can have been; anything
 * else is not written into the kernel. */
static bool is_number(const char *text) {
    size_t size = strlen(text);

    return size > 0 && size < 20 && strspn(text, "0123456789") == size;
}

static bool is_kept_kind(enum doctor_setting setting) {
    return setting == DOCTOR_HALT_POLL || setting == DOCTOR_HALT_POLL_START ||
           setting == DOCTOR_READ_AHEAD;
}

static bool setting_find(const char *name, enum doctor_setting *ret_setting) {
    for (enum doctor_setting i = 0; i < DOCTOR_SETTING_COUNT; i++) {
        if (is_kept_kind(i) && strcmp(doctor_setting_name(i), name) == 0) {
            *ret_setting = i;
            return true;
        }
    }
    return false;
}

struct doctor_kept_row *doctor_kept_find(struct doctor_kept *kept, enum doctor_setting setting,
                                         const char *of) {
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->rows[i].setting == setting && strcmp(kept->rows[i].of, of) == 0) {
            return &kept->rows[i];
        }
    }
    return NULL;
}

/* Of a line without its end: its fields, with one blank between. */
static size_t fields_cut(char *line, char *ret_fields[FIELDS_MAX]) {
    size_t count = 0;

    for (;;) {
        size_t size = strcspn(line, " ");

        if (size == 0 || count == FIELDS_MAX) {
            return 0;
        }
        ret_fields[count++] = line;
        if (line[size] == '\0') {
            return count;
        }
        line[size] = '\0';
        line += size + 1;
    }
}

static int row_parse(char *line, struct doctor_kept *kept) {
    char *fields[FIELDS_MAX];
    size_t count = fields_cut(line, fields);
    enum doctor_setting setting;

    if (count < 3 || kept->count == DOCTOR_CHANGES_MAX || !setting_find(fields[0], &setting)) {
        return -ERR_MALFORMED;
    }
    /* Only a mount's has a path behind it. */
    bool has_path = count == FIELDS_MAX;
    const char *of = has_path ? fields[3] : "";
    if (has_path != (setting == DOCTOR_READ_AHEAD) || has_path != (of[0] == '/') ||
        strlen(of) >= DOCTOR_OF_BYTES || !is_number(fields[1]) || !is_number(fields[2]) ||
        doctor_kept_find(kept, setting, of)) {
        return -ERR_MALFORMED;
    }
    struct doctor_kept_row *row = &kept->rows[kept->count++];
    row->setting = setting;
    snprintf(row->before, sizeof row->before, "%s", fields[1]);
    snprintf(row->after, sizeof row->after, "%s", fields[2]);
    snprintf(row->of, sizeof row->of, "%s", of);
    return 0;
}

/* *at goes behind the first line. */
static int head_parse(const char *text, const char **at) {
    size_t size = sizeof kept_head - 1;
    size_t line_size = strcspn(text, "\n");
    char number[24];

    if (strncmp(text, kept_head, size) != 0 || text[line_size] != '\n' ||
        line_size - size >= sizeof number) {
        return -ERR_MALFORMED;
    }
    memcpy(number, text + size, line_size - size);
    number[line_size - size] = '\0';
    if (!is_number(number)) {
        return -ERR_MALFORMED;
    }
    *at = text + line_size + 1;
    return strcmp(number, kept_format) == 0 ? 0 : -ERR_NEWER_FORMAT;
}

static int rows_parse(const char *at, struct doctor_kept *kept) {
    char line[DOCTOR_OF_BYTES + 4 * DOCTOR_VALUE_BYTES];

    while (strcmp(at, kept_end) != 0) {
        size_t size = strcspn(at, "\n");

        if (at[size] != '\n' || size >= sizeof line) {
            return -ERR_MALFORMED;
        }
        for (size_t i = 0; i < size; i++) {
            if (iscntrl((unsigned char)at[i])) {
                return -ERR_MALFORMED;
            }
        }
        memcpy(line, at, size);
        line[size] = '\0';
        int r = row_parse(line, kept);
        if (r < 0) {
            return r;
        }
        at += size + 1;
    }
    return 0;
}

int doctor_kept_parse(const char *text, size_t size_bytes, struct doctor_kept *ret_kept) {
    struct doctor_kept *kept = calloc(1, sizeof *kept);
    const char *at = text;
    int r = kept ? 0 : -ERR_NO_MEMORY;

    if (r == 0 && (size_bytes >= DOCTOR_KEPT_BYTES_MAX || strlen(text) != size_bytes)) {
        r = -ERR_MALFORMED;
    }
    if (r == 0) {
        r = head_parse(text, &at);
    }
    if (r == 0) {
        r = rows_parse(at, kept);
    }
    if (r == 0) {
        *ret_kept = *kept;
    }
    free(kept);
    return r;
}

size_t doctor_kept_print(const struct doctor_kept *kept, char ret_text[DOCTOR_KEPT_BYTES_MAX]) {
    size_t size =
        (size_t)snprintf(ret_text, DOCTOR_KEPT_BYTES_MAX, "%s%s\n", kept_head, kept_format);

    for (size_t i = 0; i < kept->count; i++) {
        const struct doctor_kept_row *row = &kept->rows[i];

        size += (size_t)snprintf(ret_text + size, DOCTOR_KEPT_BYTES_MAX - size, "%s %s %s%s%s\n",
                                 doctor_setting_name(row->setting), row->before, row->after,
                                 row->of[0] ? " " : "", row->of);
    }
    return size + (size_t)snprintf(ret_text + size, DOCTOR_KEPT_BYTES_MAX - size, "%s", kept_end);
}
