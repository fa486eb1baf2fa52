/* Files of settings, and those that doctor_change.c keeps. Paths are those of the machine; root
 * goes in front. */
#pragma once
#include "host/doctor.h"
#include <stdio.h>

enum { DOCTOR_FILE_BYTES = 512 };

/* The root and the path behind it; the sizes of both are checked. */
MUST_CHECK int doctor_path(const char *root, const char *path, char ret_path[DOCTOR_FILE_BYTES]);
/* The first line of a small file, without blanks at its ends; -ERR_MALFORMED where it does not fit,
 * or has a character that does not print. */
MUST_CHECK int doctor_value_read(const char *root, const char *path,
                                 char ret_value[DOCTOR_VALUE_BYTES]);
/* Writes it as `echo` would, and looks whether it is there. */
MUST_CHECK int doctor_value_write(const char *root, const char *path, const char *value);
/* Why the file can't be written, though nothing is. */
int doctor_value_denied(const char *root, const char *path);
bool doctor_file_exists(const char *root, const char *path);
/* A text to read by lines. */
MUST_CHECK int doctor_file_open(const char *root, const char *path, FILE **ret_file);
/* Calls each for the names in a folder that begin with a letter or digit, in their order, until
 * it answers false. A folder that is not there has none. */
void doctor_folder_walk(const char *root, const char *path,
                        bool (*each)(void *context, const char *name), void *context);

/* A line of /proc/self/mountinfo; it points into the line. */
struct doctor_mount {
    unsigned major, minor;
    const char *place; /* as it stands there: a space is \040 */
    const char *options;
    const char *kind;
    const char *super_options;
};
/* False for a line that is none; it is cut into pieces. */
bool doctor_mount_parse(char *line, struct doctor_mount *ret_mount);
/* Whether the word is one of those between commas. */
bool doctor_option_is(const char *options, const char *word);

/* What was changed, as it is kept on disk:
 *
 *     shoal-doctor 1
 *     guest_halt_poll_ns 0 200000
 *     read_ahead_kb 128 1024 /mnt/shoal
 *     end
 *
 * A name, the value before, the value after, and of what. */
struct doctor_kept_row {
    enum doctor_setting setting;
    char before[DOCTOR_VALUE_BYTES];
    char after[DOCTOR_VALUE_BYTES];
    char of[DOCTOR_OF_BYTES];
};
struct doctor_kept {
    size_t count;
    struct doctor_kept_row rows[DOCTOR_CHANGES_MAX];
};
enum { DOCTOR_KEPT_BYTES_MAX = 65536 };
/* -ERR_NEWER_FORMAT for another number in its first line, -ERR_MALFORMED for any other text that
 * doctor_kept_print has not printed. */
MUST_CHECK int doctor_kept_parse(const char *text, size_t size_bytes, struct doctor_kept *ret_kept);
/* How many bytes, without the NUL behind them. */
size_t doctor_kept_print(const struct doctor_kept *kept, char ret_text[DOCTOR_KEPT_BYTES_MAX]);
/* The row about it, or NULL. */
struct doctor_kept_row *doctor_kept_find(struct doctor_kept *kept, enum doctor_setting setting,
                                         const char *of);
