/* From a question to the settings of all models. */
#include "base/err.h"
#include "planner/answer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GPUS_A_NODE = 8 };

struct work {
    const struct data *data;
    const struct data *asked;
    struct data *settings;
    struct plan_problem *problem;
};

static bool is_set(const struct work *work, const char *section, const char *key) {
    return data_text(work->settings, section, key) || data_text(work->asked, "common", key);
}

/* Sets what is not said. */
static int set(struct work *work, const char *section, const char *key, const char *text) {
    if (is_set(work, section, key)) {
        return 0;
    }
    int r = data_set(work->settings, section, key, text);
    if (r < 0) {
        plan_complain(work->problem, "%.40s cannot be set: %s", key, err_text(r));
    }
    return r;
}

/* Sets what an option means, over what a scenario says. */
static int put(struct work *work, const char *section, const char *key, const char *text) {
    int r = data_set(work->settings, section, key, text);

    if (r < 0) {
        plan_complain(work->problem, "%.40s cannot be set: %s", key, err_text(r));
    }
    return r;
}

/* Whole nodes of at most eight GPUs, all alike. */
static int take_gpus(struct work *work, const char *text) {
    double gpus;
    double each = GPUS_A_NODE;
    char shown[UNIT_TEXT_BYTES];

    if (unit_parse(UNIT_COUNT, text, &gpus) < 0 || gpus < 1 || gpus > 1e9 || gpus != floor(gpus)) {
        plan_complain(
            work->problem,
            "--gpus takes a whole number from 1 on, not \"%.60s\": for example --gpus 256", text);
        return -ERR_MALFORMED;
    }
    while (fmod(gpus, each) != 0) {
        each--;
    }
    snprintf(shown, sizeof shown, "%.0f", gpus / each);
    int r = put(work, "common", "nodes", shown);
    if (r == 0) {
        r = put(work, "scaling", "clients", shown);
    }
    if (r == 0) {
        r = put(work, "metadata", "listing_nodes", shown);
    }
    snprintf(shown, sizeof shown, "%.0f", each);
    return r < 0 ? r : put(work, "common", "gpus_per_node", shown);
}

static int take_sample_size(struct work *work, const char *text) {
    int r = put(work, "loading", "workload", "custom");

    return r < 0 ? r : put(work, "loading", "custom_size", text);
}

static int take_samples(struct work *work, const char *text) {
    int r = put(work, "loading", "workload", "custom");

    return r < 0 ? r : put(work, "loading", "custom_rate", text);
}

static int take_files(struct work *work, const char *text) {
    return put(work, "size", "file_count", text);
}

/* Copies rows of the data's [SECTION.NAME] to the settings: "model.input = value". */
static int take_section(struct work *work, const char *option, const char *section,
                        const char *name) {
    char path[DATA_NAME_BYTES];
    bool any = false;
    int r = 0;

    snprintf(path, sizeof path, "%s.%.40s", section, name);
    for (size_t i = 0; r == 0 && i < work->data->count; i++) {
        const struct data_row *row = &work->data->rows[i];
        const char *dot = strchr(row->key, '.');
        char model[DATA_NAME_BYTES] = "";

        any = any || strcmp(row->section, path) == 0;
        if (strcmp(row->section, path) != 0 || !dot || strcmp(row->text, "unknown") == 0) {
            continue;
        }
        memcpy(model, row->key, (size_t)(dot - row->key));
        r = set(work, model, dot + 1, row->text);
    }
    if (any) {
        return r;
    }
    char known[200] = "";
    const char *found;
    for (size_t i = 0; (found = data_section(work->data, section, i)); i++) {
        size_t used = strlen(known);

        snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                 found + strlen(section) + 1);
    }
    plan_complain(work->problem, "--%s takes one of %s, not \"%.60s\"", option, known, name);
    return -ERR_NOT_FOUND;
}

static int take_gpu(struct work *work, const char *text) {
    return take_section(work, "gpu", "gpu", text);
}

static int take_system(struct work *work, const char *text) {
    return take_section(work, "system", "system", text);
}

static const struct {
    const char *name;
    int (*take)(struct work *work, const char *text);
} options[] = {
    {"gpus", take_gpus},
    {"gpu", take_gpu},
    {"system", take_system},
    {"files", take_files},
    {"sample_size", take_sample_size},
    {"samples_per_second", take_samples},
};

bool answer_asks(const struct data *asked) {
    for (size_t i = 0; i < asked->count; i++) {
        if (strncmp(asked->rows[i].section, "about.", 6) != 0) {
            return true;
        }
    }
    return false;
}

bool answer_has_option(const char *name) {
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (strcmp(options[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* What is asked of models. */
static int take_rows(struct work *work) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < work->asked->count; i++) {
        const struct data_row *row = &work->asked->rows[i];

        if (strcmp(row->section, "run") != 0) {
            r = data_set(work->settings, row->section, row->key, row->text);
        }
    }
    if (r < 0) {
        plan_complain(work->problem, "the settings cannot be kept: %s", err_text(r));
    }
    return r;
}

/* The command's own options, over that. */
static int take_options(struct work *work) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < work->asked->count; i++) {
        const struct data_row *row = &work->asked->rows[i];
        size_t k = 0;

        if (strcmp(row->section, "run") != 0) {
            continue;
        }
        while (k < ARRAY_SIZE(options) && strcmp(options[k].name, row->key) != 0) {
            k++;
        }
        if (k == ARRAY_SIZE(options)) {
            plan_complain(work->problem, "[run] has no option \"%.40s\": for example gpus = 256",
                          row->key);
            return -ERR_NOT_FOUND;
        }
        r = options[k].take(work, row->text);
    }
    return r;
}

/* The data's [run.SECTION] rows. */
static int take_links(struct work *work) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < work->data->count; i++) {
        const struct data_row *row = &work->data->rows[i];

        if (strncmp(row->section, "run.", 4) == 0) {
            r = set(work, row->section + 4, row->key, row->text);
        }
    }
    return r;
}

int answer_settings(const struct data *data, const struct data *asked, struct data *settings,
                    struct plan_problem *problem) {
    struct work work = {data, asked, settings, problem};
    int r = take_rows(&work);

    r = r < 0 ? r : take_options(&work);
    return r < 0 ? r : take_links(&work);
}
