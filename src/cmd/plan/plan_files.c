/* Data files and scenarios of `shoal plan`. */
#include "cmd/plan/plan_files.h"
#include "base/err.h"
#include "host/plain_file.h"
#include <ini.h>
#include <stdlib.h>
#include <string.h>

/* With its end and a zero byte it fits what inih reads at a time. */
enum { LINE_BYTES_MAX = INI_MAX_LINE - 2 };

struct plan_reader {
    struct data *data;
    struct data seen; /* of this text: a key that stands twice is a slip */
    struct plan_problem *problem;
    const char *name;
    int result;
};

const struct plan_file *plan_file_find(const char *name) {
    for (size_t i = 0; i < plan_file_count; i++) {
        if (strcmp(plan_files[i].name, name) == 0) {
            return &plan_files[i];
        }
    }
    return NULL;
}

static int take_line(void *context, const char *section, const char *key, const char *value) {
    struct plan_reader *reader = context;

    /* The reader goes on behind a line that was refused: the first one is told. */
    if (reader->result < 0) {
        return 0;
    }
    if (data_text(&reader->seen, section, key)) {
        plan_complain(reader->problem,
                      "%s: [%s] has \"%.40s\" twice, or a line below it begins "
                      "with a space",
                      reader->name, section, key);
        reader->result = -ERR_EXISTS;
        return 0;
    }
    int r = data_set(&reader->seen, section, key, value);
    if (r == 0) {
        r = data_set(reader->data, section, key, value);
    }
    if (r == 0) {
        return 1;
    }
    reader->result = r;
    if (r == -ERR_INVALID) {
        plan_complain(reader->problem,
                      "%s: \"%.40s\" stands in no section or is too long: a line is key = value "
                      "below a [section]",
                      reader->name, key);
    } else if (r == -ERR_NO_SPACE) {
        plan_complain(reader->problem, "%s: more than %d values in all", reader->name,
                      DATA_ROWS_MAX);
    } else {
        plan_complain(reader->problem, "%s: %s", reader->name, err_text(r));
    }
    return 0;
}

/* What the reader would cut in two, so that the second part might pass for a line. 0: none. */
static int long_line(const char *text) {
    for (int line = 1; *text; line++) {
        size_t size = strcspn(text, "\n");

        if (size > LINE_BYTES_MAX) {
            return line;
        }
        text += size + (text[size] == '\n');
    }
    return 0;
}

/* The line of a [ that no ] follows, or that has nothing in it: the reader would take what is below
 * for the section's before. 0: none. */
static int open_section(const char *text) {
    for (int line = 1; *text; line++) {
        size_t size = strcspn(text, "\n");
        const char *at = text + strspn(text, " \t\r");

        if (*at == '[') {
            const char *close = memchr(at, ']', (size_t)(text + size - at));

            if (!close || close == at + 1) {
                return line;
            }
        }
        text += size + (text[size] == '\n');
    }
    return 0;
}

int plan_files_parse(const char *text, const char *name, struct data *data,
                     struct plan_problem *problem) {
    int too_long = long_line(text);

    if (too_long > 0) {
        plan_complain(problem, "%s: line %d is longer than %d bytes", name, too_long,
                      LINE_BYTES_MAX);
        return -ERR_MALFORMED;
    }
    int open = open_section(text);
    if (open > 0) {
        plan_complain(problem,
                      "%s: line %d begins a section that has no name and ]: for example "
                      "[checkpoint]",
                      name, open);
        return -ERR_MALFORMED;
    }
    struct plan_reader reader = {.data = data, .problem = problem, .name = name};
    int line = ini_parse_string(text, take_line, &reader);

    data_deinit(&reader.seen);

    if (reader.result < 0) {
        return reader.result;
    }
    if (line != 0) {
        plan_complain(problem,
                      "%s: line %d is neither [section] nor key = value, nor a comment after ;",
                      name, line);
        return -ERR_MALFORMED;
    }
    return 0;
}

int plan_files_shipped(struct data *data, struct plan_problem *problem) {
    for (size_t i = 0; i < plan_file_count; i++) {
        const struct plan_file *file = &plan_files[i];
        size_t size = strlen(file->name);

        if (size > 4 && strcmp(file->name + size - 4, ".ini") == 0 && !strchr(file->name, '/')) {
            int r = plan_files_parse((const char *)file->data, file->name, data, problem);

            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

int plan_files_read(const char *path, char **ret_text, struct plan_problem *problem) {
    char *text = calloc(1, PLAN_FILE_BYTES_MAX + 2);
    size_t size = 0;
    int fd;

    int r = text ? plain_file_open(path, PLAIN_FILE_READ, &fd) : -ERR_NO_MEMORY;
    if (r == 0) {
        r = plain_file_read(fd, text, PLAN_FILE_BYTES_MAX + 1, 0, &size);
        int closed = plain_file_close(fd);

        if (r == 0) {
            r = closed;
        }
    }
    if (r == 0 && size > PLAN_FILE_BYTES_MAX) {
        r = -ERR_FILE_TOO_BIG;
    }
    if (r == 0 && strlen(text) != size) {
        plan_complain(problem, "%s holds a zero byte: it is no text", path);
        free(text);
        return -ERR_MALFORMED;
    }
    if (r < 0) {
        plan_complain(problem, "%s cannot be read: %s", path, err_text(r));
        free(text);
        return r;
    }
    *ret_text = text;
    return 0;
}

int plan_files_load(const char *path, struct data *data, struct plan_problem *problem) {
    char *text;
    int r = plan_files_read(path, &text, problem);

    if (r == 0) {
        r = plan_files_parse(text, path, data, problem);
        free(text);
    }
    return r;
}

/* Whether the models look for rows of this section by themselves. */
static bool may_be_new(const char *section) {
    static const char *const open_sections[] = {"about.", "chooser.", "latency.",
                                                "answer", "run.",     "system."};

    for (size_t i = 0; i < ARRAY_SIZE(open_sections); i++) {
        if (strncmp(section, open_sections[i], strlen(open_sections[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int rows_merge(const char *path, const struct data *rows, struct data *data,
                      struct plan_problem *problem) {
    int r = 0;

    data->file++;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        const struct data_row *row = &rows->rows[i];

        if (!may_be_new(row->section) && !data_text(data, row->section, row->key)) {
            plan_complain(problem,
                          "%s: there is no [%s] %s to go over: the files in share/shoal have all "
                          "sections and keys",
                          path, row->section, row->key);
            return -ERR_NOT_FOUND;
        }
        r = data_set(data, row->section, row->key, row->text);
    }
    if (r < 0) {
        plan_complain(problem, "%s: %s", path, err_text(r));
    }
    return r;
}

int plan_files_over(const char *path, struct data *data, struct plan_problem *problem) {
    struct data rows = {0};
    int r = plan_files_load(path, &rows, problem);

    if (r == 0) {
        r = rows_merge(path, &rows, data, problem);
    }
    data_deinit(&rows);
    return r;
}
