/* What `shoal plan run` says. */
#include "planner/answer.h"
#include "planner/report.h"
#include <stdio.h>
#include <string.h>

/* Whose verdicts count, the first of equals is told. */
static const char *const judges[] = {"checkpoint", "size",      "loading", "metadata",
                                     "mix",        "inference", "cost"};

static bool judge_counts(const struct answer *answer, const char *model) {
    const struct data *asked = answer->asked;

    if (strcmp(model, "cost") == 0) {
        return data_text(asked, "cost", "idle_before") || data_text(asked, "common", "idle_before");
    }
    if (strcmp(model, "inference") == 0) {
        return data_text(asked, "inference", "requests") || data_text(asked, "common", "requests");
    }
    if (strcmp(model, "mix") == 0) {
        return data_text(asked, "mix", "jobs") || data_text(asked, "common", "jobs");
    }
    return true;
}

static struct plan *plan_of(const struct answer *answer, const char *model) {
    return scenario_plan(answer->scenario, plan_model_find(model));
}

/* The plan whose verdict is the worst. */
static struct plan *worst(const struct answer *answer) {
    struct plan *found = plan_of(answer, judges[0]);

    for (size_t i = 1; i < ARRAY_SIZE(judges); i++) {
        struct plan *plan = plan_of(answer, judges[i]);

        if (judge_counts(answer, judges[i]) && plan_level(plan) < plan_level(found)) {
            found = plan;
        }
    }
    return found;
}

enum plan_level answer_level(const struct answer *answer) {
    return plan_level(worst(answer));
}

/* An input that neither the user nor a link has set. */
static bool is_assumed(const struct answer *answer, const char *model, const char *name) {
    const struct data *settings = answer->scenario->settings;
    const char *text = data_text(settings, model, name);

    if (data_text(answer->asked, model, name) || data_text(answer->asked, "common", name)) {
        return false;
    }
    text = text ? text : data_text(settings, "common", name);
    if (!text) {
        return true;
    }
    char section[DATA_NAME_BYTES];
    snprintf(section, sizeof section, "run.%.40s", model);
    bool ours =
        data_text(answer->data, section, name) || data_text(answer->data, "run.common", name);
    return ours && text[0] != '=';
}

/* "model.name" as it is shown; false when there is no such. */
struct shown {
    char text[PLAN_SHOWN_BYTES];
    struct figure figure;
    bool is_number;
    bool assumed;
};

static bool show(const struct answer *answer, const char *path, struct shown *ret_shown) {
    char model_name[DATA_NAME_BYTES] = "";
    const char *dot = strchr(path, '.');

    if (!dot || (size_t)(dot - path) >= sizeof model_name) {
        return false;
    }
    memcpy(model_name, path, (size_t)(dot - path));
    const struct plan_model *model = plan_model_find(model_name);
    const struct plan_input *input = model ? plan_input_find(model, dot + 1) : NULL;
    const struct plan_output *output = model ? plan_output_find(model, dot + 1) : NULL;
    if (!input && !output) {
        return false;
    }
    const struct plan *plan = scenario_plan(answer->scenario, model);
    *ret_shown = (struct shown){0};
    if (input) {
        plan_show_input(plan, input, ret_shown->text);
        ret_shown->assumed = is_assumed(answer, model_name, input->name);
        ret_shown->is_number = input->kind == PLAN_NUMBER;
        ret_shown->figure.value = plan_number(plan, input);
    } else {
        ret_shown->is_number = !output->is_words;
        if (!output->is_words) {
            ret_shown->figure = *plan_figure(plan, output);
        }
        report_show(plan, output, ret_shown->text);
    }
    return true;
}

/* The next {model.name} of a line; NULL behind the last. */
static const char *next_name(const char *line, char name[2 * DATA_NAME_BYTES]) {
    const char *open = strchr(line, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    if (!close || close - open >= (ptrdiff_t)2 * DATA_NAME_BYTES) {
        return NULL;
    }
    memcpy(name, open + 1, (size_t)(close - open - 1));
    name[close - open - 1] = '\0';
    return close + 1;
}

static void fill_line(const struct answer *answer, const char *line, struct text *ret_text) {
    char name[2 * DATA_NAME_BYTES];
    const char *behind;
    struct shown shown;

    for (; (behind = next_name(line, name)); line = behind) {
        text_add(ret_text, "%.*s", (int)(strchr(line, '{') - line), line);
        if (show(answer, name, &shown)) {
            text_add(ret_text, "%s%s", shown.text, shown.assumed ? " (assumed)" : "");
        } else {
            text_add(ret_text, "{%s}", name);
        }
    }
    text_add(ret_text, "%s", line);
}

/* "if model.name > 0: text" stands only where that is so; NULL: not here. */
static const char *line_here(const struct answer *answer, const char *line) {
    char name[2 * DATA_NAME_BYTES];
    struct shown shown;
    const char *colon = strchr(line, ':');

    if (strncmp(line, "if ", 3) != 0 || !colon || (size_t)(colon - line) >= sizeof name) {
        return line;
    }
    memcpy(name, line + 3, (size_t)(colon - line - 3));
    name[colon - line - 3] = '\0';
    return show(answer, name, &shown) && !shown.figure.cannot && shown.figure.value > 0 ? colon + 1
                                                                                        : NULL;
}

/* Calls take(context, label, line) for each line of the answer that is to stand here. */
struct line_taker {
    const struct answer *answer;
    struct text *text;
    const char *last; /* label of the line before */
    bool any;
    void (*take)(struct line_taker *taker, const char *label, const char *line);
};

static void each_line(struct line_taker *taker) {
    const struct data *data = taker->answer->data;

    for (size_t i = 0; i < data->count; i++) {
        const struct data_row *row = &data->rows[i];
        const char *line =
            strcmp(row->section, "answer") == 0 ? line_here(taker->answer, row->text) : NULL;

        if (line) {
            taker->take(taker, row->key, line);
            taker->last = row->key;
            taker->any = true;
        }
    }
}

/* The label up to its number: "buy 2" is of "buy". */
static size_t label_size(const char *label) {
    return strcspn(label, "_");
}

enum { LABEL_COLUMNS = 10 };

static void take_text_line(struct line_taker *taker, const char *label, const char *line) {
    struct text filled = {0};
    size_t size = label_size(label);
    bool same =
        taker->last && label_size(taker->last) == size && strncmp(taker->last, label, size) == 0;

    fill_line(taker->answer, line, &filled);
    text_add(taker->text, "%-*.*s", LABEL_COLUMNS, same ? 0 : (int)size, label);
    text_add_wrapped(taker->text, filled.data ? filled.data : "", LABEL_COLUMNS, LABEL_COLUMNS);
    taker->text->failed |= filled.failed;
    text_deinit(&filled);
}

static const char *verdict_of(const struct plan *plan) {
    return plan_words(plan, plan_output_find(plan->model, "verdict"));
}

/* Where a verdict advises a bandwidth that follows from storage nodes of which there are too few;
 * then that is the advice. NULL: it does not. */
static const char *bandwidth_advice(const struct answer *answer, const struct plan *plan) {
    static const char *const names[] = {"write_bandwidth", "read_bandwidth"};
    static const char *const advices[] = {": --write-bandwidth", ": --read-bandwidth"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *at = strstr(verdict_of(plan), advices[i]);
        const char *link = data_text(answer->scenario->settings, "common", names[i]);

        if (at && link && strncmp(link, "=size.", 6) == 0 &&
            plan_level(plan_of(answer, "size")) == LEVEL_SHORT) {
            return at;
        }
    }
    return NULL;
}

/* The worst verdict; where that is good, what the data say of it. */
static void add_sentence(const struct answer *answer, const struct plan *plan,
                         struct text *ret_text) {
    const char *good = data_find(answer->data, "answer.ok.sentence");

    if (plan_level(plan) == LEVEL_OK && good) {
        text_add(ret_text, "%s", level_word(LEVEL_OK));
        fill_line(answer, good, ret_text);
        return;
    }
    const char *verdict = verdict_of(plan);
    const char *advice = bandwidth_advice(answer, plan);
    if (advice) {
        const char *nodes = verdict_of(plan_of(answer, "size"));

        text_add(ret_text, "%.*s;%s", (int)(advice - verdict), verdict, strchr(nodes, ' '));
    } else {
        text_add(ret_text, "%s", verdict);
    }
}

/* The row of a model whose words `name` are `value`; its first one when there is none. */
static void select_row(const struct answer *answer, const char *model, const char *name,
                       const char *value) {
    struct plan *plan = plan_of(answer, model);
    const struct plan_output *output = plan_output_find(plan->model, name);

    for (size_t row = 0; plan_row(plan, answer->data, row); row++) {
        if (strcmp(plan_words(plan, output), value) == 0) {
            return;
        }
    }
    (void)plan_row(plan, answer->data, 0);
}

/* The system that was asked for; else the chooser's first. */
static void select_system(const struct answer *answer) {
    const char *asked = data_text(answer->asked, "run", "system");
    char path[2 * DATA_NAME_BYTES];

    if (!asked) {
        return;
    }
    snprintf(path, sizeof path, "system.%.60s.name", asked);
    const char *name = data_find(answer->data, path);
    select_row(answer, "choose", "system", name ? name : asked);
    select_row(answer, "systems", "system", asked);
}

void answer_sentence(const struct answer *answer, struct text *text) {
    add_sentence(answer, worst(answer), text);
}

/* What was asked for and changes nothing in the models that the answer is of. */
static bool is_unused(const struct answer *answer, const char *name, struct plan_problem *ret_why) {
    bool unused = false;

    for (size_t i = 0; i < ARRAY_SIZE(judges); i++) {
        const struct plan *plan = plan_of(answer, judges[i]);
        const struct plan_input *input = plan_input_find(plan->model, name);

        if (input && !plan_unused(plan, input, ret_why)) {
            return false;
        }
        unused = unused || input;
    }
    return unused;
}

static void add_unused(const struct answer *answer, struct text *text) {
    bool any = false;

    for (size_t i = 0; i < answer->asked->count; i++) {
        const struct data_row *row = &answer->asked->rows[i];
        struct plan_problem why;

        if (strcmp(row->section, "common") == 0 && is_unused(answer, row->key, &why)) {
            text_add(text, "%s%s", any ? ", " : "not used: ", why.text);
            any = true;
        }
    }
    text_add(text, "%s", any ? "\n" : "");
}

enum { LINES_MOST = 25 };

/* Of more lines than there may be the last before the end go. */
static void add_lines(const struct text *lines, struct text *text) {
    const char *at = lines->data ? lines->data : "";
    size_t count = 0;

    for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
        count++;
        if (count < LINES_MOST || end[1] == '\0') {
            text_add(text, "%.*s\n", (int)(end - at), at);
        }
    }
    text->failed |= lines->failed;
}

void answer_lines(const struct answer *answer, struct text *text) {
    struct plan *plan = worst(answer);
    struct text lines = {0};
    struct text sentence = {0};
    struct line_taker taker = {.answer = answer, .text = &lines, .take = take_text_line};

    select_system(answer);
    add_sentence(answer, plan, &sentence);
    text_add_wrapped(&lines, sentence.data ? sentence.data : "", 0, 2);
    each_line(&taker);
    add_unused(answer, &lines);
    text_add(&lines, "%-*s--all shows every figure, --explain NAME one of them\n", LABEL_COLUMNS,
             "");
    lines.failed |= sentence.failed;
    add_lines(&lines, text);
    text_deinit(&sentence);
    text_deinit(&lines);
}

static void take_json_line(struct line_taker *taker, const char *label, const char *line) {
    struct text filled = {0};

    fill_line(taker->answer, line, &filled);
    text_add(taker->text, "%s  {\"name\": ", taker->any ? ",\n" : "\n");
    text_add_json(taker->text, label);
    text_add(taker->text, ", \"text\": ");
    text_add_json(taker->text, filled.data ? filled.data + strspn(filled.data, " ") : "");
    text_add(taker->text, "}");
    taker->text->failed |= filled.failed;
    text_deinit(&filled);
}

static void add_json_figure(struct text *text, const char *name, const struct shown *shown) {
    text_add_json(text, name);
    text_add(text, ": {\"value\": ");
    if (!shown->is_number) {
        text_add_json(text, shown->text);
    } else if (shown->figure.cannot) {
        text_add(text, "null");
    } else {
        text_add_number(text, shown->figure.value);
    }
    text_add(text, ", \"text\": ");
    text_add_json(text, shown->text);
    text_add(text, ", \"assumed\": %s}", shown->assumed ? "true" : "false");
}

static void take_json_figures(struct line_taker *taker, const char *label, const char *line) {
    char name[2 * DATA_NAME_BYTES];
    struct shown shown;
    const char *behind;

    (void)label;
    for (; (behind = next_name(line, name)); line = behind) {
        if (show(taker->answer, name, &shown)) {
            text_add(taker->text, "%s  ", taker->last || taker->any ? ",\n" : "\n");
            add_json_figure(taker->text, name, &shown);
            taker->any = true;
        }
    }
}

void answer_json(const struct answer *answer, struct text *text) {
    struct plan *plan = worst(answer);
    struct line_taker lines = {.answer = answer, .text = text, .take = take_json_line};
    struct line_taker figures = {.answer = answer, .text = text, .take = take_json_figures};
    struct text sentence = {0};
    char level[32];

    snprintf(level, sizeof level, "%s", level_word(plan_level(plan)));
    level[strcspn(level, ":")] = '\0';
    select_system(answer);
    text_add(text, "{\"level\": ");
    text_add_json(text, level);
    text_add(text, ", \"verdict\": ");
    add_sentence(answer, plan, &sentence);
    text_add_json(text, sentence.data ? sentence.data : "");
    text->failed |= sentence.failed;
    text_deinit(&sentence);
    text_add(text, ", \"lines\": [");
    each_line(&lines);
    text_add(text, "],\n \"figures\": {");
    each_line(&figures);
    text_add(text, "}}\n");
}
