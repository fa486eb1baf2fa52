/* What the words of `shoal plan` say. */
#pragma once
#include "cmd/verb.h"
#include "planner/plan.h"

enum { PLAN_FILES_MAX = 16, PLAN_SETTINGS_MAX = 2 * PLAN_INPUTS_MAX };

struct plan_words_given {
    const struct plan_model *model;
    const char *from;
    const char *serve;
    const char *html;
    const char *sweep;
    const char *explain_name;
    const char *data_files[PLAN_FILES_MAX];
    const char *calibrations[PLAN_FILES_MAX];
    size_t data_file_count;
    size_t calibration_count;
    const char *names[PLAN_SETTINGS_MAX]; /* "--target" */
    const char *values[PLAN_SETTINGS_MAX];
    size_t setting_count;
    bool run; /* shoal plan run */
    bool json, csv, explain, all, emit, force, listen_anywhere;
};

/* The rows of the verb. */
extern const struct verb_option plan_options[];

/* Exit statuses; a refusal has been printed. */
int plan_words_parse(const struct verb *verb, int argc, char **argv,
                     struct plan_words_given *ret_words);
/* The input that a word like --gpus-per-node names, or NULL. */
const struct plan_input *plan_words_input(const struct plan_model *model, const char *word);
