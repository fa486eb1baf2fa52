/* The words of `shoal plan`: nouns, flags, options with values. */
#include "cmd/plan/plan_words.h"
#include <stdlib.h>
#include <string.h>

/* A setting: as inputs of models, it is kept with its name. */
#define RUN_ROW(text, shown, told) {.name = (text), .value = (shown), .help = told, .of = "run"}

const struct verb_option plan_options[] = {
    RUN_ROW("--params", "N", "parameters of the model; any input of a model is an option, too"),
    RUN_ROW("--gpus", "N", "how many train"),
    RUN_ROW("--dataset", "BYTES", "what is read in an epoch"),
    RUN_ROW("--gpu", "NAME", "of run.ini"),
    RUN_ROW("--system", "NAME", "of systems.ini"),
    RUN_ROW("--files", "N", "in how many files the data set lies"),
    RUN_ROW("--sample-size", "BYTES", "of a sample, on the average"),
    RUN_ROW("--samples-per-second", "N", "that all GPUs together take"),
    VERB_FLAG("--all", struct plan_words_given, all,
              "every input and figure, not only the first ones"),
    {.name = "--explain",
     .value = "[NAME]",
     .help = "formula, values and source of each figure, or of one",
     .offset = offsetof(struct plan_words_given, explain)},
    {.name = "--emit",
     .of = "run",
     .help = "the commands of a Shoal cluster like that, on this machine",
     .offset = offsetof(struct plan_words_given, emit)},
    VERB_FLAG("--json", struct plan_words_given, json,
              "for programs: SI base units (bytes, seconds, bytes a second, $)"),
    VERB_FLAG("--csv", struct plan_words_given, csv, "likewise, as a table"),
    VERB_TEXT("--sweep", "NAME=FROM..TO[:STEPS[log]]", struct plan_words_given, sweep,
              "one option through a range"),
    VERB_TEXT("--from", "FILE.ini", struct plan_words_given, from,
              "all models on one scenario, or MODEL alone, with options over the file"),
    VERB_TEXT("--data", "FILE.ini", struct plan_words_given, data_files,
              "prices, presets, rules that go over the shipped ones; repeatable"),
    VERB_TEXT("--calibration", "FILE", struct plan_words_given, calibrations,
              "what `shoal bench --json` printed on your machine; repeatable"),
    VERB_TEXT("--serve", "ADDR:PORT", struct plan_words_given, serve,
              "the same as a web page, on 127.0.0.1 when only PORT is given"),
    VERB_FLAG("--listen-anywhere", struct plan_words_given, listen_anywhere,
              "--serve takes any address, not only one of this machine itself"),
    VERB_TEXT("--html", "FILE", struct plan_words_given, html, "the page as one file; - prints it"),
    VERB_FLAG("--force", struct plan_words_given, force, "--html writes over a file"),
    {.name = NULL},
};

/* NULL: a setting, or no option at all. */
static const struct verb_option *row_of(const struct verb *verb, const char *word) {
    const struct verb_option *row = verb_option_find(verb, NULL, word, strlen(word));

    return row && row->of && row->value ? NULL : row;
}

/* It is a flag, behind which a name may stand. */
static bool may_have_name(const struct verb_option *row) {
    return row && row->value && row->value[0] == '[';
}

static bool take_flag(const struct verb *verb, struct plan_words_given *words, const char *word) {
    const struct verb_option *row = row_of(verb, word);

    if (!row || (row->value && !may_have_name(row))) {
        return false;
    }
    *(bool *)((char *)words + row->offset) = true;
    return true;
}

static const char *take_file(const char *files[PLAN_FILES_MAX], size_t *count, const char *value) {
    if (*count == PLAN_FILES_MAX) {
        return "is one file too many, 16 are allowed";
    }
    files[(*count)++] = value;
    return NULL;
}

/* A word with a value. NULL: it was taken; else what is wrong. */
static const char *take_value(const struct verb *verb, struct plan_words_given *words,
                              const char *word, const char *value) {
    const struct verb_option *row = row_of(verb, word);

    if (row && row->offset == offsetof(struct plan_words_given, data_files)) {
        return take_file(words->data_files, &words->data_file_count, value);
    }
    if (row && row->offset == offsetof(struct plan_words_given, calibrations)) {
        return take_file(words->calibrations, &words->calibration_count, value);
    }
    if (row) {
        const char **place = (void *)((char *)words + row->offset);

        if (*place) {
            return "is given twice";
        }
        *place = value;
        return NULL;
    }
    for (size_t i = 0; i < words->setting_count; i++) {
        if (strcmp(words->names[i], word) == 0) {
            return "is given twice";
        }
    }
    if (words->setting_count == PLAN_SETTINGS_MAX) {
        return "is one option too many";
    }
    words->names[words->setting_count] = word;
    words->values[words->setting_count++] = value;
    return NULL;
}

/* "--name=value" is two words, as "--name value" is. */
static int split_words(int argc, char **argv, char *ret_words[]) {
    int count = 0;

    for (int i = 1; i < argc; i++) {
        char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;

        ret_words[count++] = argv[i];
        if (equals) {
            *equals = '\0';
            ret_words[count++] = equals + 1;
        }
    }
    return count;
}

/* Whether some model, or the verb itself, takes it. */
static bool is_known(const struct verb *verb, const char *word) {
    bool known = row_of(verb, word) != NULL;

    for (size_t i = 0; i < plan_model_count; i++) {
        known = known || plan_words_input(plan_models[i], word);
    }
    return known;
}

/* A word without dashes: a model, or run; behind --explain a figure. */
static int take_noun(const struct verb *verb, const char *word, bool explained,
                     struct plan_words_given *words) {
    const struct plan_model *model = plan_model_find(word);

    if (explained && !words->explain_name && !model && strcmp(word, "run") != 0) {
        words->explain_name = word;
        return EXIT_OK;
    }
    if (words->model || words->run) {
        return verb_usage(verb, "one model, not %s as well", word);
    }
    if (!model && strcmp(word, "run") != 0) {
        return verb_usage(verb, "there is no model \"%s\"", word);
    }
    words->model = model;
    words->run = !model;
    return EXIT_OK;
}

static int take_words(const struct verb *verb, int count, char **given,
                      struct plan_words_given *words) {
    for (int i = 0; i < count; i++) {
        const char *wrong = NULL;
        int status = EXIT_OK;

        if (given[i][0] != '-') {
            bool named = i > 0 && may_have_name(row_of(verb, given[i - 1]));

            status = take_noun(verb, given[i], named, words);
        } else if (!take_flag(verb, words, given[i])) {
            if (i + 1 == count) {
                return verb_usage(
                    verb, is_known(verb, given[i]) ? "%s needs a value" : "there is no option %s",
                    given[i]);
            }
            wrong = take_value(verb, words, given[i], given[i + 1]);
            status = wrong ? verb_usage(verb, "%s %s", given[i], wrong) : EXIT_OK;
            i++;
        }
        if (status != EXIT_OK) {
            return status;
        }
    }
    return EXIT_OK;
}

/* The page takes what it is to show, and no model. */
static int check_page(const struct verb *verb, const struct plan_words_given *words) {
    if (words->model || words->run || (words->serve && words->html)) {
        return verb_usage(verb, "say one of a model, run, --from FILE, --serve ADDR:PORT, "
                                "--html FILE");
    }
    if (words->json || words->csv || words->explain || words->all || words->emit ||
        words->calibration_count > 0 || words->setting_count > 0 || words->sweep) {
        return verb_usage(verb, "the page takes no further options but --from and --data");
    }
    return EXIT_OK;
}

/* What does not go together. */
static int check_words(const struct verb *verb, const struct plan_words_given *words) {
    if (words->serve || words->html) {
        return check_page(verb, words);
    }
    if (!words->model && !words->run && !words->from) {
        return verb_usage(verb, "say one of a model, run, --from FILE, --serve ADDR:PORT, "
                                "--html FILE");
    }
    if (words->json && words->csv) {
        return verb_usage(verb, "--json or --csv, not both");
    }
    if (words->force || words->listen_anywhere || (words->emit && !words->run)) {
        return verb_usage(verb, "--force is for --html, --listen-anywhere for --serve, --emit for "
                                "run");
    }
    if (words->run && (words->csv || words->sweep)) {
        return verb_usage(verb, "%s is for a model: for example shoal plan size %s",
                          words->csv ? "--csv" : "--sweep",
                          words->csv ? "--csv" : "--sweep storage_nodes=8..128:16");
    }
    if (!words->model && !words->run && (words->setting_count > 0 || words->sweep)) {
        return verb_usage(verb, "%s is for a model: for example shoal plan checkpoint %s",
                          words->sweep ? "--sweep" : words->names[0],
                          words->sweep ? "--sweep nodes=8..128:16" : "--target 60s");
    }
    return EXIT_OK;
}

const struct plan_input *plan_words_input(const struct plan_model *model, const char *word) {
    return strncmp(word, "--", 2) == 0 ? plan_input_find(model, word + 2) : NULL;
}

int plan_words_parse(const struct verb *verb, int argc, char **argv,
                     struct plan_words_given *ret_words) {
    char **given = calloc((size_t)argc * 2, sizeof *given);

    if (!given) {
        return verb_fail(verb, "memory ran out");
    }
    int count = split_words(argc, argv, given);
    int status = take_words(verb, count, given, ret_words);
    free(given);
    return status == EXIT_OK ? check_words(verb, ret_words) : status;
}
