/* Models at work: settings, defaults, sweeps, scenarios, reports, and what the page asks. */

#include "unit.h"
#include "base/err.h"
#include "near.h"
#include "planner/page/page.h"
#include "planner/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every default that is data, as something valid; what the values are does not matter here. */
static void fill_data(struct data *data) {
    for (size_t i = 0; i < plan_model_count; i++) {
        for (uint32_t j = 0; j < plan_models[i]->input_count; j++) {
            const struct plan_input *input = &plan_models[i]->inputs[j];
            const char *dot = strrchr(input->fallback, '.');
            char section[DATA_NAME_BYTES] = {0};
            char text[UNIT_TEXT_BYTES];

            if (input->fallback[0] != '@') {
                continue;
            }
            assert_non_null(dot);
            memcpy(section, input->fallback + 1, (size_t)(dot - input->fallback - 1));
            unit_format_exact(input->unit, input->most < 1 ? input->most : 1e-3, text);
            if (input->least > 1e-3) {
                unit_format_exact(input->unit, input->least, text);
            }
            assert_int_equal(data_set(data, section, dot + 1, text), 0);
        }
    }
}

static void test_every_model_is_described_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < plan_model_count; i++) {
        const struct plan_model *model = plan_models[i];

        assert_ptr_equal(plan_model_find(model->name), model);
        assert_true(model->input_count > 0 && model->input_count <= PLAN_INPUTS_MAX);
        assert_true(model->output_count > 0 && model->output_count <= PLAN_OUTPUTS_MAX);
        for (uint32_t j = 0; j < model->output_count; j++) {
            const struct plan_output *output = &model->outputs[j];

            /* A formula names inputs and outputs, so no two of them may share a name. */
            assert_null(plan_input_find(model, output->name));
            assert_true(output->is_words || output->formula[0] != '\0');
            assert_true(output->label[0] != '\0');
            assert_true(source_get(output->source)->text[0] != '\0');
        }
        for (uint32_t j = 0; j < model->input_count; j++) {
            assert_ptr_equal(plan_input_find(model, model->inputs[j].name), &model->inputs[j]);
            assert_true(model->inputs[j].help[0] != '\0');
        }
    }
}

static void set(struct plan *plan, const char *name, const char *text, int expected,
                const char *message) {
    const struct plan_input *input = plan_input_find(plan->model, name);
    struct plan_problem problem = {0};

    assert_non_null(input);
    assert_int_equal(plan_set(plan, input, "--x", text, &problem), expected);
    if (message) {
        assert_string_equal(problem.text, message);
    }
}

static void test_settings(void **state) {
    (void)state;
    struct plan plan;

    assert_int_equal(plan_init(&plan, plan_model_find("checkpoint")), 0);
    set(&plan, "gpus-per-node", "8", 0, NULL);
    set(&plan, "target", "60", -ERR_MALFORMED,
        "--x takes a time with its unit, not \"60\": for example --x 60s");
    set(&plan, "nodes", "0", -ERR_INVALID, "--x takes 1 to 1,000,000, not 0: for example --x 32");
    set(&plan, "nodes", "-3", -ERR_INVALID, NULL);
    set(&plan, "mode", "later", -ERR_MALFORMED,
        "--x takes one of sync|async, not \"later\": for example --x sync");
    set(&plan, "mode", "asyn", -ERR_MALFORMED, NULL);
    set(&plan, "mode", "async", 0, NULL);
    assert_null(plan_input_find(plan.model, "no_such"));
    assert_int_equal(plan_number(&plan, plan_input_find(plan.model, "mode")), 1);
    assert_false(plan.given[plan_input_find(plan.model, "nodes") - plan.model->inputs]);
    plan_deinit(&plan);
}

static void test_a_default_that_is_missing_is_named(void **state) {
    (void)state;
    struct data data = {0};
    struct plan_problem problem;
    struct plan plan;

    assert_int_equal(plan_init(&plan, plan_model_find("cluster")), 0);
    assert_int_equal(plan_fill(&plan, &data, &problem), -ERR_NOT_FOUND);
    assert_non_null(strstr(problem.text, "calibration.step_lookup"));
    assert_int_equal(data_set(&data, "calibration", "step_lookup", "soon"), 0);
    assert_int_equal(plan_fill(&plan, &data, &problem), -ERR_MALFORMED);
    assert_non_null(strstr(problem.text, "calibration.step_lookup takes a time"));
    plan_deinit(&plan);
    data_deinit(&data);
}

/* One value more than there may be, and one that is a byte too long; those that are there stay, and
 * can be set anew. */
static void test_as_many_values_as_there_may_be(void **state) {
    (void)state;
    char longest[DATA_TEXT_BYTES + 1] = "";
    struct data data = {0};
    char key[16];

    memset(longest, 'x', DATA_TEXT_BYTES);
    for (int i = 0; i < DATA_ROWS_MAX; i++) {
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal(data_set(&data, "all", key, "1"), 0);
    }
    assert_int_equal(data_set(&data, "all", "more", "1"), -ERR_NO_SPACE);
    assert_null(data_text(&data, "all", "more"));
    assert_int_equal(data_set(&data, "all", "key7", longest), -ERR_INVALID);
    assert_string_equal(data_text(&data, "all", "key7"), "1");
    assert_int_equal(data_set(&data, "all", "key7", longest + 1), 0);
    assert_string_equal(data_text(&data, "all", "key7"), longest + 1);
    data_deinit(&data);
    assert_int_equal(data_set(&data, "all", "more", "1"), 0);
    data_deinit(&data);
}

/* A result of as many bytes as one may have stays as it was where one more is added, which it says
 * for good. */
static void test_as_long_a_text_as_there_may_be(void **state) {
    enum { PIECE_BYTES = 16 << 20 };
    (void)state;
    struct text text = {0};
    uint64_t rest = TEXT_BYTES_MAX - 1;

    for (; rest > PIECE_BYTES; rest -= PIECE_BYTES) {
        text_add(&text, "%*s", PIECE_BYTES, "");
    }
    text_add(&text, "%*s", (int)rest, "x");
    assert_int_equal(text.size, TEXT_BYTES_MAX - 1);
    assert_false(text.failed);
    for (int times = 0; times < 2; times++) {
        text_add(&text, "%s", times == 0 ? "y" : "");
        assert_true(text.failed);
        assert_int_equal(text.size, TEXT_BYTES_MAX - 1);
        assert_string_equal(text.data + text.size - 1, "x");
    }
    text_deinit(&text);
    text_add(&text, "z");
    assert_string_equal(text.data, "z");
    text_deinit(&text);
}

static void test_sweeps(void **state) {
    (void)state;
    const struct plan_model *model = plan_model_find("checkpoint");
    struct plan_problem problem;
    struct sweep sweep;

    assert_int_equal(sweep_parse(&sweep, model, "nodes=8..128:16", &problem), 0);
    assert_int_equal(sweep.step_count, 16);
    assert_true(sweep_value(&sweep, 1) == 16);
    assert_int_equal(sweep_parse(&sweep, model, "write-bandwidth=1GB/s..1TB/s:4log", &problem), 0);
    assert_true(sweep_value(&sweep, 3) == 1e12);
    assert_true(sweep_value(&sweep, 1) > 9.99e9 && sweep_value(&sweep, 1) < 10.01e9);
    assert_int_equal(sweep_parse(&sweep, model, "work=1e-320s..1e10s:3log", &problem), 0);
    assert_true(sweep_value(&sweep, 1) > 0.99e-155 && sweep_value(&sweep, 1) < 1.01e-155);
    assert_int_equal(sweep_parse(&sweep, model, "work=1e10s..1e-320s:3log", &problem), 0);
    assert_true(sweep_value(&sweep, 1) > 0.99e-155 && sweep_value(&sweep, 1) < 1.01e-155);
    const char *const bad[] = {
        "",
        "nodes",
        "nodes=8",
        "nodes=8..",
        "nodes=..8",
        "nodes=8..128:",
        "nodes=8..128:1",
        "nodes=8..128:10001",
        "nodes=8..128:4lin",
        "nodes=0..128:4",
        "nodes=8..128x:4",
        "mode=sync..async:2",
        "none=1..2:2",
        "target=0s..60s:4log",
        "target=1..60:4",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(sweep_parse(&sweep, model, bad[i], &problem), -ERR_MALFORMED);
        assert_non_null(strstr(problem.text, "for example"));
    }
}

static int run_settings(const struct data *data, const char *const rows[][3],
                        struct scenario *scenario, struct data *settings,
                        struct plan_problem *problem) {
    for (size_t i = 0; rows[i][0]; i++) {
        assert_int_equal(data_set(settings, rows[i][0], rows[i][1], rows[i][2]), 0);
    }
    return scenario_run(scenario, data, settings, problem);
}

static double figure_at(const struct scenario *scenario, const char *model, const char *output) {
    for (size_t i = 0; i < plan_model_count; i++) {
        if (strcmp(plan_models[i]->name, model) == 0) {
            const struct figure *figure =
                plan_figure(&scenario->plans[i], plan_output_find(plan_models[i], output));

            assert_null(figure->cannot);
            return figure->value;
        }
    }
    fail_msg("there is no model %s", model);
    return 0;
}

static void test_a_scenario_refers_to_figures_of_others(void **state) {
    (void)state;
    /* checkpoint needs cluster, which needs checkpoint: of each another figure. */
    static const char *const rows[][3] = {
        {"about.scenario", "title", "any text"},
        {"common", "nodes", "4"},
        {"checkpoint", "write_bandwidth", "=cluster.write_bandwidth"},
        {"cluster", "targets", "=checkpoint.gpus"},
        {"checkpoint", "gpus_per_node", "2"},
        {"checkpoint", "interval", "=checkpoint.best_daly"},
        {NULL},
    };
    struct data data = {0};
    struct data settings = {0};
    struct plan_problem problem;
    struct scenario scenario;

    fill_data(&data);
    assert_int_equal(run_settings(&data, rows, &scenario, &settings, &problem), 0);
    assert_true(figure_at(&scenario, "checkpoint", "gpus") == 8);
    assert_near(figure_at(&scenario, "checkpoint", "drain"),
                figure_at(&scenario, "checkpoint", "written") /
                    figure_at(&scenario, "cluster", "write_bandwidth"),
                1e-12);
    /* The interval is the best: idle = stall / (best + stall). */
    double stall = figure_at(&scenario, "checkpoint", "stall");
    assert_near(figure_at(&scenario, "checkpoint", "idle"),
                stall / (figure_at(&scenario, "checkpoint", "best_daly") + stall), 1e-12);
    scenario_deinit(&scenario);
    data_deinit(&settings);
    data_deinit(&data);
}

static void test_a_scenario_refuses_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *row[2][3];
        int expected;
        const char *part;
    } rows[] = {
        {{{"checkpont", "nodes", "4"}}, -ERR_NOT_FOUND, "no model \"checkpont\""},
        {{{"checkpoint", "noses", "4"}}, -ERR_NOT_FOUND, "no input \"noses\""},
        {{{"common", "noses", "4"}}, -ERR_NOT_FOUND, "no input \"noses\""},
        {{{"checkpoint", "target", "60"}}, -ERR_MALFORMED, "[checkpoint] target takes a time"},
        {{{"checkpoint", "target", "=loading"}}, -ERR_NOT_FOUND, "is no figure"},
        {{{"checkpoint", "target", "=checkpoint.verdict"}}, -ERR_NOT_FOUND, "is no figure"},
        {{{"checkpoint", "target", "=cluster.no_such"}}, -ERR_NOT_FOUND, "is no figure"},
        {{{"checkpoint", "target", "=checkpoint.size"}}, -ERR_MALFORMED, "takes a time"},
        {{{"checkpoint", "mode", "=checkpoint.size"}}, -ERR_MALFORMED, "takes no figure"},
        {{{"checkpoint", "target", "checkpoint.stall"}}, -ERR_MALFORMED, "second ="},
        {{{"checkpoint", "restart", "=checkpoint.recovery"}}, -ERR_LOOP, "does not settle"},
        {{{"checkpoint", "target", "=checkpoint.drain"}, {"checkpoint", "write_bandwidth", "0B/s"}},
         -ERR_INVALID,
         "cannot be computed: the bandwidth is zero"},
        {{{"checkpoint", "nodes", "=checkpoint.idle"}}, -ERR_INVALID, "nodes takes 1 to"},
        {{{"size", "inode_bytes", "=checkpoint.bytes_each"}}, 0, NULL},
        {{{"cluster", "lookup_cost", "0s"}, {"cluster", "rpc_cost", "0s"}}, 0, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const settings_rows[][3] = {
            {rows[i].row[0][0], rows[i].row[0][1], rows[i].row[0][2]},
            {rows[i].row[1][0], rows[i].row[1][1], rows[i].row[1][2]},
            {NULL, NULL, NULL},
        };
        struct data data = {0};
        struct data settings = {0};
        struct plan_problem problem;
        struct scenario scenario = {0};

        fill_data(&data);
        int r = run_settings(&data, settings_rows, &scenario, &settings, &problem);
        assert_int_equal(r, rows[i].expected);
        if (rows[i].part && !strstr(problem.text, rows[i].part)) {
            fail_msg("\"%s\" does not say %s", problem.text, rows[i].part);
        }
        if (r == 0) {
            scenario_deinit(&scenario);
        }
        data_deinit(&settings);
        data_deinit(&data);
    }
}

static void test_reports_never_say_inf_or_nan(void **state) {
    (void)state;
    struct data data = {0};
    struct text text = {0};

    fill_data(&data);
    for (size_t i = 0; i < plan_model_count; i++) {
        for (int extreme = 0; extreme < 2; extreme++) {
            struct plan_problem problem;
            struct plan plan;
            const struct report report = {.text = &text, .data = &data, .explain = true};

            assert_int_equal(plan_init(&plan, plan_models[i]), 0);
            for (uint32_t j = 0; j < plan.model->input_count; j++) {
                const struct plan_input *input = &plan.model->inputs[j];

                if (input->kind == PLAN_NUMBER) {
                    assert_int_equal(plan_set_number(&plan, input, input->name,
                                                     extreme ? input->most : input->least,
                                                     &problem),
                                     0);
                }
            }
            assert_int_equal(plan_fill(&plan, &data, &problem), 0);
            report_json(&report, &plan);
            report_lines(&report, &plan);
            report_csv(&report, &plan);
            plan_deinit(&plan);
        }
    }
    assert_false(text.failed);
    const char *const never[] = {": inf", ": nan", ": -inf", ": -nan", " inf ", " nan ", ",inf,"};
    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        assert_null(strstr(text.data, never[i]));
    }
    text_deinit(&text);
    data_deinit(&data);
}

static void test_text_is_escaped(void **state) {
    (void)state;
    struct text text = {0};

    text_add_json(&text, "a\"b\\c\n\x01 \xc3\xa4");
    assert_string_equal(text.data, "\"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa4\"");
    text_deinit(&text);
    text_add_csv(&text, "a\"b,c");
    assert_string_equal(text.data, "\"a\"\"b,c\"");
    text_deinit(&text);
    text_add_number(&text, 0.1);
    text_add(&text, " ");
    text_add_number(&text, 1.0 / 3);
    assert_true(strncmp(text.data, "0.1 ", 4) == 0);
    assert_true(strtod(text.data + 4, NULL) == 1.0 / 3);
    text_deinit(&text);
}

static void test_the_page_is_answered_whatever_it_asks(void **state) {
    (void)state;
    static const struct {
        const char *request;
        const char *part;
    } rows[] = {
        {"", "\"problem\""},
        {"nonsense", "no such request"},
        {"data\na\tb", "malformed"},
        {"data\na\tb\tc\td", "malformed"},
        {"run\ncheckpoint\ttarget\t60", "takes a time"},
        {"run\ncheckpoint\ttarget\t60s\n", "\"models\""},
        {"run\n\t\t", "malformed"},
        {"sweep", "no such model"},
        {"run\ncheckpoint\tnodes\t4\nsize\tnodes", "\\\"size\\\""},
        {"run\ncheckpoint\t\t4", "[checkpoint]  is malformed"},
        {"sweep\ncheckpoint", "no such model"},
        {"sweep\ncheckpoint\tnodes=1..2:2", "\"rows\""},
        {"sweep\ncheckpoint\tnodes=1..2:2\ncheckpoint\tnodes\tx", "takes a number"},
        {"sweep\nnone\tnodes=1..2:2", "no such model"},
        {"describe", "\"version\""},
    };
    struct page page = {0};
    struct text answer = {0};

    fill_data(&page.data);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        page_call(&page, rows[i].request, &answer);
        assert_false(answer.failed);
        if (!strstr(answer.data, rows[i].part)) {
            fail_msg("\"%s\" is answered %.200s", rows[i].request, answer.data);
        }
    }
    text_deinit(&answer);
    page_deinit(&page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model_is_described_whole),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_a_default_that_is_missing_is_named),
        cmocka_unit_test(test_as_many_values_as_there_may_be),
        cmocka_unit_test(test_as_long_a_text_as_there_may_be),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_a_scenario_refers_to_figures_of_others),
        cmocka_unit_test(test_a_scenario_refuses_nonsense),
        cmocka_unit_test(test_reports_never_say_inf_or_nan),
        cmocka_unit_test(test_text_is_escaped),
        cmocka_unit_test(test_the_page_is_answered_whatever_it_asks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
