/* Rows of data: a plain array, as there are a few hundred. */
#include "planner/data.h"
#include "base/err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void data_deinit(struct data *data) {
    for (size_t i = 0; i < data->count; i++) {
        free(data->rows[i].text);
    }
    free(data->rows);
    *data = (struct data){0};
}

static struct data_row *row_find(const struct data *data, const char *section, const char *key) {
    for (size_t i = 0; i < data->count; i++) {
        if (strcmp(data->rows[i].section, section) == 0 && strcmp(data->rows[i].key, key) == 0) {
            return &data->rows[i];
        }
    }
    return NULL;
}

static int row_add(struct data *data, const char *section, const char *key,
                   struct data_row **ret_row) {
    if (data->count == DATA_ROWS_MAX) {
        return -ERR_NO_SPACE;
    }
    if (data->count == data->capacity) {
        size_t capacity = MAX(data->capacity * 2, (size_t)64);
        struct data_row *rows = realloc(data->rows, capacity * sizeof *rows);

        if (!rows) {
            return -ERR_NO_MEMORY;
        }
        data->rows = rows;
        data->capacity = capacity;
    }
    struct data_row *row = &data->rows[data->count++];
    *row = (struct data_row){0};
    memcpy(row->section, section, strlen(section));
    memcpy(row->key, key, strlen(key));
    *ret_row = row;
    return 0;
}

int data_set(struct data *data, const char *section, const char *key, const char *text) {
    if (!section[0] || !key[0] || strlen(section) >= DATA_NAME_BYTES ||
        strlen(key) >= DATA_NAME_BYTES || strlen(text) >= DATA_TEXT_BYTES) {
        return -ERR_INVALID;
    }
    char *copy = strdup(text);
    if (!copy) {
        return -ERR_NO_MEMORY;
    }
    struct data_row *row = row_find(data, section, key);
    int r = row ? 0 : row_add(data, section, key, &row);
    if (r < 0) {
        free(copy);
        return r;
    }
    free(row->text);
    row->text = copy;
    row->file = data->file;
    return 0;
}

const char *data_text(const struct data *data, const char *section, const char *key) {
    const struct data_row *row = row_find(data, section, key);

    return row ? row->text : NULL;
}

/* The row of "section.key". */
static struct data_row *row_at(const struct data *data, const char *path) {
    const char *dot = strrchr(path, '.');
    char section[DATA_NAME_BYTES] = {0};

    if (!dot || (size_t)(dot - path) >= sizeof section) {
        return NULL;
    }
    memcpy(section, path, (size_t)(dot - path));
    return row_find(data, section, dot + 1);
}

const char *data_find(const struct data *data, const char *path) {
    const struct data_row *row = row_at(data, path);

    return row ? row->text : NULL;
}

const char *data_about(const struct data *data, const char *path, const char *what) {
    const struct data_row *row = row_at(data, path);
    char about[2 * DATA_NAME_BYTES];

    if (!row) {
        return NULL;
    }
    snprintf(about, sizeof about, "about.%s", path);
    if (!row_find(data, about, "source")) {
        snprintf(about, sizeof about, "about.%s", row->section);
    }
    const struct data_row *told = row_find(data, about, what);

    return told && told->file == row->file ? told->text : NULL;
}

int data_number(const struct data *data, const char *path, enum unit unit, double *ret_number) {
    const char *text = data_find(data, path);

    return text ? unit_parse(unit, text, ret_number) : -ERR_NOT_FOUND;
}

const char *data_section(const struct data *data, const char *prefix, size_t index) {
    for (size_t i = 0; i < data->count; i++) {
        const char *section = data->rows[i].section;
        bool first = strncmp(section, prefix, strlen(prefix)) == 0;

        /* From the end: rows of a section mostly follow one another. */
        for (size_t j = i; first && j > 0; j--) {
            first = strcmp(data->rows[j - 1].section, section) != 0;
        }
        if (first && index-- == 0) {
            return section;
        }
    }
    return NULL;
}
