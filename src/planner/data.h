/* What users may edit: prices, rules of the chooser, measured costs of operations, presets.
 * Sections of key = value, as their INI files under share/shoal/ hold them; whoever reads the files
 * hands the rows in, in their order.
 *
 * A key is found as "section.key". A section "about.NAME" tells of section NAME: `source`, `url`,
 * `date`. Thread: one fills it, then any reads.  Memory: its own, freed by data_deinit. */
#pragma once
#include "base/types.h"
#include "planner/unit.h"

enum { DATA_NAME_BYTES = 64, DATA_TEXT_BYTES = 512, DATA_ROWS_MAX = 4096 };

struct data_row {
    char section[DATA_NAME_BYTES];
    char key[DATA_NAME_BYTES];
    char *text;
    uint32_t file;
};

struct data {
    struct data_row *rows;
    size_t count;
    size_t capacity;
    uint32_t file; /* of the rows that are set; whoever begins another file counts it up */
};

void data_deinit(struct data *data);
/* A row that is there already is replaced, so that a user's file goes over the shipped one.
 * -ERR_INVALID: a name or a text too long, or empty names. -ERR_NO_SPACE: DATA_ROWS_MAX.
 * -ERR_NO_MEMORY. */
MUST_CHECK int data_set(struct data *data, const char *section, const char *key, const char *text);
/* NULL when there is none. */
const char *data_text(const struct data *data, const char *section, const char *key);
/* The text of "section.key". */
const char *data_find(const struct data *data, const char *path);
/* -ERR_NOT_FOUND; -ERR_MALFORMED when it is no quantity of that unit. */
MUST_CHECK int data_number(const struct data *data, const char *path, enum unit unit,
                           double *ret_number);
/* What the data tell of the row "section.key" under `what`, `source`, `url` or `date`: the section
 * about.section.key if there is one, else about.section. NULL when neither has it. What
 * one file tells is of its own rows: a user's price is not the shipped one's. */
const char *data_about(const struct data *data, const char *path, const char *what);
/* The name of the index-th section that begins with prefix, in order of first appearance; NULL
 * behind the last. */
const char *data_section(const struct data *data, const char *prefix, size_t index);
