/* Requests of the page. */
#include "planner/page/page.h"
#include "base/err.h"
#include "planner/answer.h"
#include "planner/report.h"
#include <string.h>

enum { FIELDS_MAX = 3 };

/* One line of a request, cut at its tabs. */
struct line {
    char text[DATA_TEXT_BYTES + 2 * DATA_NAME_BYTES];
    const char *fields[FIELDS_MAX];
    size_t count;
};

void page_deinit(struct page *page) {
    data_deinit(&page->data);
}

/* False at the end. A line that is too long or has too many fields counts none. */
static bool line_next(const char **at, struct line *line) {
    size_t size = strcspn(*at, "\n");

    line->count = 0;
    if (**at == '\0') {
        return false;
    }
    const char *text = *at;
    *at += size + (text[size] == '\n');
    size_t taken = MIN(size, sizeof line->text - 1);
    memcpy(line->text, text, taken);
    line->text[taken] = '\0';
    if (taken < size) {
        return true;
    }
    char *field = line->text;
    while (field) {
        char *tab = strchr(field, '\t');

        if (line->count == FIELDS_MAX) {
            line->count = 0;
            return true;
        }
        line->fields[line->count++] = field;
        if (tab) {
            *tab = '\0';
        }
        field = tab ? tab + 1 : NULL;
    }
    return true;
}

static void answer_problem(struct text *answer, const char *problem) {
    text_deinit(answer);
    text_add(answer, "{\"problem\": ");
    text_add_json(answer, problem);
    text_add(answer, "}");
}

static int take_rows(const char *at, struct data *data, struct plan_problem *problem) {
    struct line line;
    int r = 0;

    while (r == 0 && line_next(&at, &line)) {
        r = line.count == 3 ? data_set(data, line.fields[0], line.fields[1], line.fields[2])
                            : -ERR_MALFORMED;
    }
    if (r < 0) {
        if (r == -ERR_NO_SPACE) {
            plan_complain(problem, "more than %d settings", DATA_ROWS_MAX);
        } else if (line.count == 3) {
            plan_complain(problem, "[%.64s] %.64s is malformed or longer than %d bytes",
                          line.fields[0], line.fields[1], DATA_TEXT_BYTES - 1);
        } else {
            plan_complain(problem, "a setting is malformed or too long: \"%.40s\"", line.text);
        }
    }
    return r;
}

/* The scenario with the links and assumptions of `shoal plan run`. */
static int run_linked(struct page *page, const struct data *asked, struct data *settings,
                      struct scenario *scenario, struct plan_problem *problem) {
    int r = answer_settings(&page->data, asked, settings, problem);

    return r < 0 ? r : scenario_run(scenario, &page->data, settings, problem);
}

static void run_all(struct page *page, const char *at, struct text *answer) {
    struct data asked = {0};
    struct data settings = {0};
    struct plan_problem problem;
    struct scenario scenario;

    int r = take_rows(at, &asked, &problem);
    r = r < 0 ? r : run_linked(page, &asked, &settings, &scenario, &problem);
    if (r < 0) {
        answer_problem(answer, problem.text);
        data_deinit(&settings);
        data_deinit(&asked);
        return;
    }
    const struct report report = {.text = answer, .data = &page->data};
    text_add(answer, "{\"answer\": ");
    answer_json(&(struct answer){&page->data, &asked, &scenario}, answer);
    text_add(answer, ",\n \"models\": [");
    for (size_t i = 0; i < plan_model_count; i++) {
        text_add(answer, i > 0 ? ",\n" : "\n");
        report_json(&report, &scenario.plans[i]);
    }
    text_add(answer, "]}");
    scenario_deinit(&scenario);
    data_deinit(&settings);
    data_deinit(&asked);
}

/* The scenario gives the other inputs, so that a curve passes through the point that is shown. */
static int run_sweep(struct page *page, const struct line *line, const struct data *asked,
                     struct text *answer, struct plan_problem *problem) {
    const struct plan_model *model = line->count == 2 ? plan_model_find(line->fields[0]) : NULL;
    struct data settings = {0};
    struct scenario scenario;
    struct sweep sweep;

    if (!model) {
        plan_complain(problem, "there is no such model to sweep");
        return -ERR_NOT_FOUND;
    }
    int r = sweep_parse(&sweep, model, line->fields[1], problem);
    r = r < 0 ? r : run_linked(page, asked, &settings, &scenario, problem);
    if (r < 0) {
        data_deinit(&settings);
        return r;
    }
    const struct report report = {.text = answer, .data = &page->data, .sweep = &sweep};
    report_json(&report, scenario_plan(&scenario, model));
    scenario_deinit(&scenario);
    data_deinit(&settings);
    return 0;
}

static void sweep(struct page *page, const char *at, struct text *answer) {
    struct data settings = {0};
    struct plan_problem problem;
    struct line line;

    (void)line_next(&at, &line);
    int r = take_rows(at, &settings, &problem);
    if (r == 0) {
        r = run_sweep(page, &line, &settings, answer, &problem);
    }
    if (r < 0) {
        answer_problem(answer, problem.text);
    }
    data_deinit(&settings);
}

void page_call(struct page *page, const char *request, struct text *answer) {
    struct plan_problem problem;
    struct line line;

    text_deinit(answer);
    if (!line_next(&request, &line) || line.count != 1) {
        answer_problem(answer, "a request begins with its name");
    } else if (strcmp(line.fields[0], "run") == 0) {
        run_all(page, request, answer);
    } else if (strcmp(line.fields[0], "sweep") == 0) {
        sweep(page, request, answer);
    } else if (strcmp(line.fields[0], "describe") == 0) {
        report_describe(answer, &page->data, SHOAL_VERSION);
    } else if (strcmp(line.fields[0], "data") == 0) {
        if (take_rows(request, &page->data, &problem) < 0) {
            answer_problem(answer, problem.text);
        } else {
            text_add(answer, "{}");
        }
    } else {
        answer_problem(answer, "there is no such request");
    }
}
