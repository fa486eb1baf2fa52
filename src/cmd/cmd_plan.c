/* plan: how much storage a training run needs, what it costs, and why. */
#include "base/err.h"
#include "cmd/plan_calibration.h"
#include "cmd/plan_files.h"
#include "cmd/plan_serve.h"
#include "cmd/verb.h"
#include "planner/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 16, SETTINGS_MAX = PLAN_INPUTS_MAX };

struct words {
    const struct plan_model *model;
    const char *from;
    const char *serve;
    const char *html;
    const char *sweep;
    const char *data_files[FILES_MAX];
    const char *calibrations[FILES_MAX];
    size_t data_file_count;
    size_t calibration_count;
    const char *names[SETTINGS_MAX]; /* "--target" */
    const char *values[SETTINGS_MAX];
    size_t setting_count;
    bool json, csv, explain;
};

static const struct {
    const char *name;
    size_t offset;
} text_words[] = {
    {"--from", offsetof(struct words, from)},
    {"--serve", offsetof(struct words, serve)},
    {"--html", offsetof(struct words, html)},
    {"--sweep", offsetof(struct words, sweep)},
};

static bool take_flag(struct words *words, const char *word) {
    bool *flag = strcmp(word, "--json") == 0      ? &words->json
                 : strcmp(word, "--csv") == 0     ? &words->csv
                 : strcmp(word, "--explain") == 0 ? &words->explain
                                                  : NULL;

    if (flag) {
        *flag = true;
    }
    return flag != NULL;
}

static const char *take_file(const char *files[FILES_MAX], size_t *count, const char *value) {
    if (*count == FILES_MAX) {
        return "is one file too many, 16 are allowed";
    }
    files[(*count)++] = value;
    return NULL;
}

/* A word with a value. NULL: it was taken; else what is wrong. */
static const char *take_value(struct words *words, const char *word, const char *value) {
    for (size_t i = 0; i < ARRAY_SIZE(text_words); i++) {
        if (strcmp(word, text_words[i].name) == 0) {
            const char **place = (void *)((char *)words + text_words[i].offset);

            if (*place) {
                return "is given twice";
            }
            *place = value;
            return NULL;
        }
    }
    if (strcmp(word, "--data") == 0) {
        return take_file(words->data_files, &words->data_file_count, value);
    }
    if (strcmp(word, "--calibration") == 0) {
        return take_file(words->calibrations, &words->calibration_count, value);
    }
    for (size_t i = 0; i < words->setting_count; i++) {
        if (strcmp(words->names[i], word) == 0) {
            return "is given twice";
        }
    }
    if (words->setting_count == SETTINGS_MAX) {
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

static int take_words(const struct verb *verb, int count, char **given, struct words *words) {
    for (int i = 0; i < count; i++) {
        const char *wrong = NULL;

        if (given[i][0] != '-') {
            if (words->model || !plan_model_find(given[i])) {
                return verb_usage(
                    verb, words->model ? "one model, not %s as well" : "there is no model \"%s\"",
                    given[i]);
            }
            words->model = plan_model_find(given[i]);
        } else if (!take_flag(words, given[i])) {
            if (i + 1 == count) {
                return verb_usage(verb, "%s needs a value", given[i]);
            }
            wrong = take_value(words, given[i], given[i + 1]);
            if (wrong) {
                return verb_usage(verb, "%s %s", given[i], wrong);
            }
            i++;
        }
    }
    return EXIT_OK;
}

static int parse_words(const struct verb *verb, int argc, char **argv, struct words *words) {
    char **given = calloc((size_t)argc * 2, sizeof *given);

    if (!given) {
        return verb_fail(verb, "memory ran out");
    }
    int count = split_words(argc, argv, given);
    int status = take_words(verb, count, given, words);
    free(given);
    return status;
}

/* What does not go together. */
static int check_words(const struct verb *verb, const struct words *words) {
    size_t jobs = (words->model != NULL || words->from != NULL) + (words->serve != NULL) +
                  (words->html != NULL);

    if (jobs != 1) {
        return verb_usage(verb, "say one of a model, --from FILE, --serve ADDR:PORT, --html FILE");
    }
    if (words->json && words->csv) {
        return verb_usage(verb, "--json or --csv, not both");
    }
    if (!words->model && (words->setting_count > 0 || words->sweep)) {
        return verb_usage(verb, "%s is for a model: for example shoal plan checkpoint %s",
                          words->sweep ? "--sweep" : words->names[0],
                          words->sweep ? "--sweep nodes=8..128:16" : "--target 60s");
    }
    if ((words->serve || words->html) && (words->json || words->csv || words->explain ||
                                          words->data_file_count + words->calibration_count > 0)) {
        return verb_usage(verb, "the page takes no further options");
    }
    return EXIT_OK;
}

/* The line names the option and an example, which is more use than the verb's usage. */
static int refuse(const struct verb *verb, const struct plan_problem *problem) {
    (void)verb_fail(verb, "%s", problem->text);
    return EXIT_USAGE;
}

static const struct plan_input *input_of(const struct plan_model *model, const char *word) {
    return strncmp(word, "--", 2) == 0 ? plan_input_find(model, word + 2) : NULL;
}

static int refuse_name(const struct verb *verb, const struct plan_model *model, const char *word) {
    (void)verb_fail(verb, "%s has no option %.60s: `shoal plan %s --help` lists them", model->name,
                    word, model->name);
    return EXIT_USAGE;
}

static void report_one(const struct words *words, const struct report *report, struct plan *plan) {
    (words->json ? report_json : words->csv ? report_csv : report_lines)(report, plan);
}

static int set_inputs(const struct verb *verb, const struct words *words, struct plan *plan,
                      struct plan_problem *problem) {
    for (size_t i = 0; i < words->setting_count; i++) {
        const char *name = words->names[i];
        const struct plan_input *input = input_of(plan->model, name);

        if (!input) {
            return refuse_name(verb, plan->model, name);
        }
        if (plan->given[input - plan->model->inputs]) {
            return verb_usage(verb, "%s is given twice", name);
        }
        if (plan_set(plan, input, name, words->values[i], problem) < 0) {
            return refuse(verb, problem);
        }
    }
    return EXIT_OK;
}

static int finish(const struct verb *verb, const struct text *text) {
    if (text->failed) {
        return verb_fail(verb, "the result is too large for the memory there is");
    }
    fwrite(text->data, 1, text->size, stdout);
    return fflush(stdout) == 0 ? EXIT_OK : verb_fail(verb, "the result cannot be written");
}

static int run_model(const struct verb *verb, const struct words *words, const struct data *data) {
    struct plan_problem problem;
    struct sweep sweep;
    struct plan plan;
    struct text text = {0};
    int status;

    if (plan_init(&plan, words->model) < 0) {
        return verb_fail(verb, "memory ran out");
    }
    const struct report report = {&text, data, words->sweep ? &sweep : NULL, words->explain};
    status = set_inputs(verb, words, &plan, &problem);
    if (status == EXIT_OK && words->sweep &&
        sweep_parse(&sweep, words->model, words->sweep, &problem) < 0) {
        status = refuse(verb, &problem);
    }
    if (status == EXIT_OK && plan_fill(&plan, data, &problem) < 0) {
        status = verb_fail(verb, "%s", problem.text);
    }
    if (status == EXIT_OK) {
        report_one(words, &report, &plan);
        text_add(&text, "%s", words->json ? "\n" : "");
        status = finish(verb, &text);
    }
    text_deinit(&text);
    plan_deinit(&plan);
    return status;
}

static void report_all(const struct words *words, const struct report *report,
                       struct scenario *scenario) {
    struct text *text = report->text;

    text_add(text, "%s", words->json ? "{\"models\": [\n " : "");
    for (size_t i = 0; i < plan_model_count; i++) {
        text_add(text, "%s", i == 0 ? "" : words->json ? ",\n " : words->csv ? "\r\n" : "\n");
        report_one(words, report, &scenario->plans[i]);
    }
    text_add(text, "%s", words->json ? "]}\n" : "");
}

/* Options go over what the file says. */
static int set_settings(const struct verb *verb, const struct words *words, struct data *settings) {
    struct plan_problem problem;

    if (plan_files_load(words->from, settings, &problem) < 0) {
        return verb_fail(verb, "%s", problem.text);
    }
    for (size_t i = 0; i < words->setting_count; i++) {
        const struct plan_input *input = input_of(words->model, words->names[i]);

        if (!input) {
            return refuse_name(verb, words->model, words->names[i]);
        }
        int r = data_set(settings, words->model->name, input->name, words->values[i]);
        if (r < 0) {
            return verb_fail(verb, "%s cannot be set: %s", words->names[i], err_text(r));
        }
    }
    return EXIT_OK;
}

static int report_scenario(const struct verb *verb, const struct words *words,
                           const struct data *data, struct scenario *scenario) {
    struct plan_problem problem;
    struct sweep sweep;
    struct text text = {0};
    const struct report report = {&text, data, words->sweep ? &sweep : NULL, words->explain};
    int status = EXIT_OK;

    if (words->sweep && sweep_parse(&sweep, words->model, words->sweep, &problem) < 0) {
        status = refuse(verb, &problem);
    } else if (words->model) {
        report_one(words, &report, scenario_plan(scenario, words->model));
        text_add(&text, "%s", words->json ? "\n" : "");
        status = finish(verb, &text);
    } else {
        report_all(words, &report, scenario);
        status = finish(verb, &text);
    }
    text_deinit(&text);
    return status;
}

static int run_scenario(const struct verb *verb, const struct words *words,
                        const struct data *data) {
    struct plan_problem problem;
    struct scenario scenario;
    struct data settings = {0};
    int status = set_settings(verb, words, &settings);

    if (status == EXIT_OK && scenario_run(&scenario, data, &settings, &problem) < 0) {
        status = verb_fail(verb, "%s: %s", words->from, problem.text);
    } else if (status == EXIT_OK) {
        status = report_scenario(verb, words, data, &scenario);
        scenario_deinit(&scenario);
    }
    data_deinit(&settings);
    return status;
}

static int run_plan(const struct verb *verb, int argc, char **argv) {
    struct words words = {0};
    struct plan_problem problem;
    struct data data = {0};
    int status = parse_words(verb, argc, argv, &words);

    if (status == EXIT_OK) {
        status = check_words(verb, &words);
    }
    if (status != EXIT_OK) {
        return status;
    }
    if (words.serve || words.html) {
        int r = words.serve ? plan_serve(words.serve, &problem) : plan_html(words.html, &problem);

        return r < 0 ? verb_fail(verb, "%s", problem.text) : EXIT_OK;
    }
    int r = plan_files_shipped(&data, &problem);
    for (size_t i = 0; r == 0 && i < words.data_file_count; i++) {
        r = plan_files_over(words.data_files[i], &data, &problem);
    }
    if (r == 0) {
        r = plan_calibration_load(words.calibrations, words.calibration_count, &data, &problem);
    }
    if (r < 0) {
        status = verb_fail(verb, "%s", problem.text);
    } else {
        status = words.from ? run_scenario(verb, &words, &data) : run_model(verb, &words, &data);
    }
    data_deinit(&data);
    return status;
}

static void print_model_help(const struct plan_model *model) {
    printf("shoal plan %s [--OPTION VALUE]... [--explain] [--json|--csv] "
           "[--sweep NAME=FROM..TO[:STEPS[log]]]\n\n%s\n\n",
           model->name, model->summary);
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct plan_input *input = &model->inputs[i];
        char name[DATA_NAME_BYTES];

        snprintf(name, sizeof name, "%s", input->name);
        for (char *at = strchr(name, '_'); at; at = strchr(at, '_')) {
            *at = '-';
        }
        printf("  --%-22s %s (%s%sdefault %s)\n", name, input->help,
               input->kind == PLAN_CHOICE ? input->choices : "",
               input->kind == PLAN_CHOICE ? "; " : "",
               input->fallback[0] != '\0' ? input->fallback : "none");
    }
    printf("\nResults, which a scenario takes as =%s.NAME:\n", model->name);
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct plan_output *output = &model->outputs[i];

        printf("  %-24s %s%s\n", output->name, output->label, output->is_words ? " (words)" : "");
    }
    printf("\nExample:\n  shoal plan %s %s\n", model->name, model->example);
}

static void help_plan(const struct verb *verb, int argc, char **argv) {
    const struct plan_model *model = argc > 1 ? plan_model_find(argv[1]) : NULL;

    if (model) {
        print_model_help(model);
        return;
    }
    verb_help(verb);
    printf("\nModels; `shoal plan MODEL --help` lists the options of each:\n");
    for (size_t i = 0; i < plan_model_count; i++) {
        printf("  %-11s %s\n", plan_models[i]->name, plan_models[i]->summary);
    }
}

const struct verb verb_plan = {
    "plan",
    "MODEL [--OPTION VALUE]... | --from FILE.ini [MODEL] | --serve ADDR:PORT | --html FILE",
    "Says what storage a training run needs, what it costs, and why.",
    "  --explain           formula, values and source of each result\n"
    "  --json, --csv       for programs: SI base units (bytes, seconds, bytes a second, $)\n"
    "  --sweep NAME=FROM..TO[:STEPS[log]]  one option through a range\n"
    "  --from FILE.ini     all models on one scenario, or MODEL alone, with options over the file\n"
    "  --data FILE.ini     prices, presets, rules that go over the shipped ones; repeatable\n"
    "  --calibration FILE  what `shoal bench --json` printed on your machine; repeatable\n"
    "  --serve ADDR:PORT   the same as a web page, on 127.0.0.1 when only PORT is given\n"
    "  --html FILE         the page as one file; - prints it\n",
    "shoal plan checkpoint --params 70B --nodes 32 --gpus-per-node 8 --target 60s",
    run_plan,
    help_plan};
