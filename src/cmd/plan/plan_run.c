/* `shoal plan run`: its words become rows, the planner answers. */
#include "cmd/plan/plan_run.h"
#include "base/err.h"
#include "cmd/plan/plan_files.h"
#include "planner/answer.h"
#include "planner/report.h"
#include <stdio.h>
#include <string.h>

static int words_refuse(const struct verb *verb, const char *text) {
    (void)verb_fail(verb, "%s", text);
    return EXIT_USAGE;
}

/* "--gpus-per-node" as "gpus_per_node". */
static bool name_of(const char *word, char name[DATA_NAME_BYTES]) {
    if (strncmp(word, "--", 2) != 0 || strlen(word + 2) >= DATA_NAME_BYTES) {
        return false;
    }
    snprintf(name, DATA_NAME_BYTES, "%s", word + 2);
    for (char *at = strchr(name, '-'); at; at = strchr(at, '-')) {
        *at = '_';
    }
    return true;
}

static const struct plan_input *input_of(const char *name) {
    const struct plan_input *input = NULL;

    for (size_t i = 0; !input && i < plan_model_count; i++) {
        input = plan_input_find(plan_models[i], name);
    }
    return input;
}

/* A value is checked here, where the message can name the option. */
static int check_value(const char *word, const char *name, const char *value,
                       struct plan_problem *problem) {
    struct plan plan;
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan_model_count; i++) {
        const struct plan_input *input = plan_input_find(plan_models[i], name);

        if (input) {
            r = plan_init(&plan, plan_models[i]);
            if (r == 0) {
                r = plan_set(&plan, input, word, value, problem);
            }
            plan_deinit(&plan);
        }
    }
    return r;
}

static int take_option(const struct verb *verb, const char *word, const char *value,
                       struct data *asked) {
    struct plan_problem problem = {""};
    char name[DATA_NAME_BYTES];
    bool good = name_of(word, name);

    if (!good || (!answer_has_option(name) && !input_of(name))) {
        (void)verb_fail(verb,
                        "run has no option %.60s: `shoal plan --help` tells of its options, for "
                        "example --params 70B --gpus 256",
                        word);
        return EXIT_USAGE;
    }
    if (!answer_has_option(name) && check_value(word, name, value, &problem) < 0) {
        return words_refuse(verb, problem.text);
    }
    const char *checked = strcmp(name, "sample_size") == 0          ? "custom_size"
                          : strcmp(name, "samples_per_second") == 0 ? "custom_rate"
                          : strcmp(name, "files") == 0              ? "file_count"
                                                                    : NULL;
    if (checked && check_value(word, checked, value, &problem) < 0) {
        return words_refuse(verb, problem.text);
    }
    int r = data_set(asked, answer_has_option(name) ? "run" : "common", name, value);
    for (size_t i = 0; r == 0 && i < plan_model_count; i++) {
        const char *model = plan_models[i]->name;

        if (!answer_has_option(name) && data_text(asked, model, name)) {
            r = data_set(asked, model, name, value);
        }
    }
    return r < 0 ? verb_fail(verb, "%s cannot be set: %s", word, err_text(r)) : EXIT_OK;
}

/* Options go over what the file says, also where it says it of one model. */
static int words_ask(const struct verb *verb, const struct plan_words_given *words,
                     struct data *asked) {
    struct plan_problem problem;
    int status = EXIT_OK;

    if (words->from && plan_files_load(words->from, asked, &problem) < 0) {
        return verb_fail(verb, "%s", problem.text);
    }
    for (size_t i = 0; status == EXIT_OK && i < words->setting_count; i++) {
        status = take_option(verb, words->names[i], words->values[i], asked);
    }
    return status;
}

/* What this build has: a cluster on one machine. */
static void commands_emit(const struct answer *answer, struct text *text) {
    const struct plan *size = scenario_plan(answer->scenario, plan_model_find("size"));
    const struct plan *stripe = scenario_plan(answer->scenario, plan_model_find("stripe"));
    double targets = plan_figure(size, plan_output_find(size->model, "targets"))->value;
    const struct figure *count = plan_figure(stripe, plan_output_find(stripe->model, "best_count"));
    const struct figure *best = plan_figure(stripe, plan_output_find(stripe->model, "best_size"));

    text_add(text, "shoal up /var/lib/shoal --mount /mnt/shoal --osts %.0f\n",
             targets < 64 ? targets : 64);
    if (!count->cannot && !best->cannot) {
        text_add(text, "shoal stripe set /mnt/shoal --count %.0f --size %.0fK\n",
                 count->value < 64 ? count->value : 64, best->value / 1024);
    }
}

/* NAME, or MODEL.NAME, of any model. */
static int figures_explain(const struct verb *verb, const struct answer *answer,
                           const struct plan_words_given *words, struct text *text) {
    const char *name = words->explain_name;
    const char *dot = strchr(name, '.');
    bool any = false;

    for (size_t i = 0; i < plan_model_count; i++) {
        const struct plan_model *model = plan_models[i];
        bool asked = !dot || (strlen(model->name) == (size_t)(dot - name) &&
                              strncmp(model->name, name, (size_t)(dot - name)) == 0);

        if (asked && plan_output_find(model, dot ? dot + 1 : name)) {
            const struct report report = {
                .text = text, .data = answer->data, .explain_name = dot ? dot + 1 : name};

            text_add(text, "%s.", model->name);
            report_lines(&report, scenario_plan(answer->scenario, model));
            any = true;
        }
    }
    if (!any) {
        (void)verb_fail(verb, "no model has a figure %.60s: for example --explain best_daly", name);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int write_answer(const struct verb *verb, const struct plan_words_given *words,
                        const struct answer *answer) {
    struct text text = {0};
    int status = EXIT_OK;

    if (words->emit) {
        commands_emit(answer, &text);
    } else if (words->explain_name) {
        status = figures_explain(verb, answer, words, &text);
    } else if (words->json) {
        answer_json(answer, &text);
    } else {
        answer_lines(answer, &text);
    }
    for (size_t i = 0;
         status == EXIT_OK && (words->all || (words->explain && !words->explain_name)) &&
         i < plan_model_count;
         i++) {
        const struct report report = {
            .text = &text, .data = answer->data, .all = true, .explain = words->explain};

        text_add(&text, "\n");
        report_lines(&report, &answer->scenario->plans[i]);
    }
    if (text.failed) {
        status = verb_fail(verb, "the result is too large for the memory there is");
    } else if (status == EXIT_OK) {
        fwrite(text.data, 1, text.size, stdout);
        status = fflush(stdout) == 0 ? EXIT_OK : verb_fail(verb, "the result cannot be written");
    }
    text_deinit(&text);
    return status;
}

static int answer_it(const struct verb *verb, const struct plan_words_given *words,
                     const struct data *data, const struct data *asked) {
    struct plan_problem problem;
    struct data settings = {0};
    struct scenario scenario;
    int status;

    if (answer_settings(data, asked, &settings, &problem) < 0 ||
        scenario_run(&scenario, data, &settings, &problem) < 0) {
        data_deinit(&settings);
        return words_refuse(verb, problem.text);
    }
    const struct answer answer = {data, asked, &scenario};
    status = write_answer(verb, words, &answer);
    if (status == EXIT_OK && answer_level(&answer) < LEVEL_TIGHT) {
        status = EXIT_SHORT;
    }
    scenario_deinit(&scenario);
    data_deinit(&settings);
    return status;
}

int plan_run(const struct verb *verb, const struct plan_words_given *words,
             const struct data *data) {
    struct data asked = {0};
    int status = words_ask(verb, words, &asked);

    if (status == EXIT_OK && !answer_asks(&asked)) {
        status = verb_usage(verb, "run needs what it is to answer: for example shoal plan run "
                                  "--params 70B --gpus 256 --dataset 10TB");
    }
    if (status == EXIT_OK) {
        status = answer_it(verb, words, data, &asked);
    }
    data_deinit(&asked);
    return status;
}
