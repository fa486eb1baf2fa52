/* plan: how much storage a training run needs, what it costs, and why. */
#include "base/err.h"
#include "cmd/plan/plan_calibration.h"
#include "cmd/plan/plan_files.h"
#include "cmd/plan/plan_run.h"
#include "cmd/plan/plan_serve.h"
#include "cmd/plan/plan_words.h"
#include "cmd/verb.h"
#include "planner/answer.h"
#include "planner/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line names the option and an example, which is more use than the verb's usage. */
static int words_refuse(const struct verb *verb, const struct plan_problem *problem) {
    (void)verb_fail(verb, "%s", problem->text);
    return EXIT_USAGE;
}

static int refuse_name(const struct verb *verb, const struct plan_model *model, const char *word) {
    (void)verb_fail(verb, "%s has no option %.60s: `shoal plan %s --help` lists them", model->name,
                    word, model->name);
    return EXIT_USAGE;
}

static void report_one(const struct plan_words_given *words, const struct report *report,
                       struct plan *plan) {
    (words->json ? report_json : words->csv ? report_csv : report_lines)(report, plan);
}

static int set_inputs(const struct verb *verb, const struct plan_words_given *words,
                      struct plan *plan, struct plan_problem *problem) {
    for (size_t i = 0; i < words->setting_count; i++) {
        const char *name = words->names[i];
        const struct plan_input *input = plan_words_input(plan->model, name);

        if (!input) {
            return refuse_name(verb, plan->model, name);
        }
        if (plan->given[input - plan->model->inputs]) {
            return verb_usage(verb, "%s is given twice", name);
        }
        if (plan_set(plan, input, name, words->values[i], problem) < 0) {
            return words_refuse(verb, problem);
        }
    }
    return EXIT_OK;
}

static int output_finish(const struct verb *verb, const struct text *text) {
    if (text->failed) {
        return verb_fail(verb, "the result is too large for the memory there is");
    }
    fwrite(text->data, 1, text->size, stdout);
    return fflush(stdout) == 0 ? EXIT_OK : verb_fail(verb, "the result cannot be written");
}

static struct report report_of(const struct plan_words_given *words, struct text *text,
                               const struct data *data, const struct sweep *sweep) {
    return (struct report){.text = text,
                           .data = data,
                           .sweep = words->sweep ? sweep : NULL,
                           .all = words->all,
                           .explain = words->explain,
                           .explain_name = words->explain_name};
}

/* A figure of the model that is to be explained. */
static int check_explained(const struct verb *verb, const struct plan_words_given *words) {
    if (words->explain_name && words->model &&
        !plan_output_find(words->model, words->explain_name)) {
        (void)verb_fail(verb,
                        "%s has no figure %.60s: `shoal plan %s --help` lists them, for "
                        "example --explain %s",
                        words->model->name, words->explain_name, words->model->name,
                        words->model->outputs[0].name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* Whether an option gives it. */
static bool is_given(const struct plan_words_given *words, const struct plan_input *input) {
    bool given = false;

    for (size_t i = 0; i < words->setting_count; i++) {
        given = given || plan_words_input(words->model, words->names[i]) == input;
    }
    return given;
}

static int run_model(const struct verb *verb, const struct plan_words_given *words,
                     const struct data *data) {
    struct plan_problem problem;
    struct sweep sweep = {0};
    struct plan plan;
    struct text text = {0};
    int status;

    if (plan_init(&plan, words->model) < 0) {
        return verb_fail(verb, "memory ran out");
    }
    struct report report = report_of(words, &text, data, &sweep);
    status = set_inputs(verb, words, &plan, &problem);
    if (status == EXIT_OK && words->sweep &&
        sweep_parse(&sweep, words->model, words->sweep, &problem) < 0) {
        status = words_refuse(verb, &problem);
    }
    if (status == EXIT_OK && plan_fill(&plan, data, &problem) < 0) {
        status = verb_fail(verb, "%s", problem.text);
    }
    if (status == EXIT_OK) {
        report.swept_given = words->sweep && is_given(words, sweep.input);
        report_one(words, &report, &plan);
        text_add(&text, "%s", words->json ? "\n" : "");
        status = output_finish(verb, &text);
    }
    text_deinit(&text);
    plan_deinit(&plan);
    return status;
}

static void report_all(const struct plan_words_given *words, const struct report *report,
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
static int set_settings(const struct verb *verb, const struct plan_words_given *words,
                        struct data *settings) {
    struct plan_problem problem;

    if (plan_files_load(words->from, settings, &problem) < 0) {
        return verb_fail(verb, "%s", problem.text);
    }
    for (size_t i = 0; i < words->setting_count; i++) {
        const struct plan_input *input = plan_words_input(words->model, words->names[i]);

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

static int report_scenario(const struct verb *verb, const struct plan_words_given *words,
                           const struct data *data, struct scenario *scenario) {
    struct plan_problem problem;
    struct sweep sweep = {0};
    struct text text = {0};
    struct report report = report_of(words, &text, data, &sweep);
    int status = EXIT_OK;

    if (words->sweep && sweep_parse(&sweep, words->model, words->sweep, &problem) < 0) {
        status = words_refuse(verb, &problem);
    } else if (words->model) {
        report.swept_given = words->sweep && is_given(words, sweep.input);
        report_one(words, &report, scenario_plan(scenario, words->model));
        text_add(&text, "%s", words->json ? "\n" : "");
        status = output_finish(verb, &text);
    } else {
        report_all(words, &report, scenario);
        status = output_finish(verb, &text);
    }
    text_deinit(&text);
    return status;
}

static int run_scenario(const struct verb *verb, const struct plan_words_given *words,
                        const struct data *data) {
    struct plan_problem problem;
    struct scenario scenario;
    struct data asked = {0};
    struct data settings = {0};
    int status = set_settings(verb, words, &asked);

    if (status == EXIT_OK && !answer_asks(&asked)) {
        status = verb_fail(verb,
                           "%s sets nothing: a line is key = value below a [section], for "
                           "example [common] params = 70B",
                           words->from);
    } else if (status == EXIT_OK && (answer_settings(data, &asked, &settings, &problem) < 0 ||
                                     scenario_run(&scenario, data, &settings, &problem) < 0)) {
        status = verb_fail(verb, "%s: %s", words->from, problem.text);
    } else if (status == EXIT_OK) {
        status = report_scenario(verb, words, data, &scenario);
        scenario_deinit(&scenario);
    }
    data_deinit(&settings);
    data_deinit(&asked);
    return status;
}

/* The shipped data, with those of the user over them. */
static int load_data(const struct plan_words_given *words, struct data *data,
                     struct plan_problem *problem) {
    int r = plan_files_shipped(data, problem);

    for (size_t i = 0; r == 0 && i < words->data_file_count; i++) {
        r = plan_files_over(words->data_files[i], data, problem);
    }
    return r < 0 ? r
                 : plan_calibration_load(words->calibrations, words->calibration_count, data,
                                         problem);
}

static int run_plan(const struct verb *verb, int argc, char **argv) {
    struct plan_words_given words = {0};
    struct plan_problem problem;
    struct data data = {0};

    if (argc == 1) {
        verb->help(verb, argc, argv);
        return EXIT_OK;
    }
    int status = plan_words_parse(verb, argc, argv, &words);
    if (status == EXIT_OK) {
        status = check_explained(verb, &words);
    }
    if (status != EXIT_OK) {
        return status;
    }
    if (words.serve || words.html) {
        return plan_page(verb, &words);
    }
    if (load_data(&words, &data, &problem) < 0) {
        status = verb_fail(verb, "%s", problem.text);
    } else {
        status = words.run    ? plan_run(verb, &words, &data)
                 : words.from ? run_scenario(verb, &words, &data)
                              : run_model(verb, &words, &data);
    }
    data_deinit(&data);
    return status;
}

static void print_input(const struct plan_input *input) {
    char head[DATA_NAME_BYTES + 2];
    char text[1024];

    snprintf(head, sizeof head, "--%s", input->name);
    for (char *at = strchr(head, '_'); at; at = strchr(at, '_')) {
        *at = '-';
    }
    snprintf(text, sizeof text, "%s (%s%sdefault %s)", input->help,
             input->kind == PLAN_CHOICE ? input->choices : "",
             input->kind == PLAN_CHOICE ? "; " : "",
             input->fallback[0] != '\0' ? input->fallback : "none");
    verb_print_line(head, text, VERB_OPTION_COLUMN);
}

static void print_model_help(const struct plan_model *model) {
    char line[1024];

    snprintf(line, sizeof line,
             "shoal plan %s [--OPTION VALUE]... [--explain] [--json|--csv] "
             "[--sweep NAME=FROM..TO[:STEPS[log]]]",
             model->name);
    verb_print_text(line, 0, 6);
    printf("\n");
    verb_print_text(model->summary, 0, 0);
    printf("\n");
    for (uint32_t i = 0; i < model->input_count; i++) {
        print_input(&model->inputs[i]);
    }
    printf("\nResults, which a scenario takes as =%s.NAME:\n", model->name);
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct plan_output *output = &model->outputs[i];

        snprintf(line, sizeof line, "%s%s", output->label, output->is_words ? " (words)" : "");
        verb_print_line(output->name, line, VERB_OPTION_COLUMN);
    }
    snprintf(line, sizeof line, "shoal plan %s %s", model->name, model->example);
    printf("\nExample:\n  ");
    verb_print_text(line, 2, 6);
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
        verb_print_line(plan_models[i]->name, plan_models[i]->summary, VERB_LIST_COLUMN);
    }
}

static const struct verb_kind plan_kinds[] = {
    {"run", "one answer from all models; exits with 3 when something is short"},
    {NULL, NULL},
};

const struct verb verb_plan = {
    .name = "plan",
    .arguments = "run [--OPTION VALUE]... | MODEL [--OPTION VALUE]... | --from FILE.ini [MODEL] | "
                 "--serve ADDR:PORT | --html FILE",
    .summary = "Says what storage a training run needs, what it costs, and why.",
    .kinds = plan_kinds,
    .options = plan_options,
    .nouns = VERB_NO_NOUNS,
    .example = "shoal plan checkpoint --params 70B --nodes 32 --gpus-per-node 8 --target 60s",
    .run = run_plan,
    .help = help_plan};
