/* The chooser: rules that are read, refused and weighed, and the order of systems. */
#include "unit.h"
#include "base/err.h"
#include "base/prng.h"
#include "planner/choose.h"
#include "planner/choose_rule.h"
#include <stdio.h>
#include <string.h>

/* 32 nodes, a campaign, RDMA, 20 GB/s. */
static const struct choose_inputs plain = {
    .nodes = 32, .lifetime = 1, .network = 1, .write_needed = 20e9, .small_files = 0.2};

static void rules_that_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool applies, excludes;
        int points;
        const char *reason;
    } rows[] = {
        {"always : +4 : simple", true, false, 4, "simple"},
        {"nodes > 31:9:many", true, false, 9, "many"},
        {"nodes > 32 : -9 : many", false, false, -9, "many"},
        {"nodes >= 32 and nodes <= 32 : no : a: b", true, true, 0, "a: b"},
        {"lifetime == campaign and network != tcp : -1 : x", true, false, -1, "x"},
        {"lifetime != campaign : 1 : x", false, false, 1, "x"},
        {"write_needed == 20GB/s and small_files < 20.1% : 1 : x", true, false, 1, "x"},
        {"small_files<0.2 and nodes==32 : 1 : x", false, false, 1, "x"},
        {"off", false, false, 0, ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct choose_rule rule = {0};
        struct plan_problem problem = {{0}};

        assert_int_equal(choose_rule_read(&plan_choose, &plain, rows[i].text, &rule, &problem), 0);
        assert_int_equal(rule.applies, rows[i].applies);
        assert_int_equal(rule.excludes, rows[i].excludes);
        assert_int_equal(rule.points, rows[i].points);
        assert_string_equal(rule.reason, rows[i].reason);
    }
}

static void rules_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *problem;
    } rows[] = {
        {"", "a rule is CONDITION : POINTS : REASON"},
        {"always", "a rule is"},
        {"always : 1", "a rule is"},
        {"always : 1 : ", "a rule is"},
        {" : 1 : x", "a rule is"},
        {"always : 0 : x", "points are -9 to 9 without 0, or no, not \"0\""},
        {"always : 10 : x", "not \"10\""},
        {"always : + : x", "not \"+\""},
        {"always : never : x", "not \"never\""},
        {"nods > 1 : 1 : x", "no input is called \"nods\""},
        {"nodes : 1 : x", "\"nodes\" is no comparison"},
        {"nodes > : 1 : x", "\"nodes >\" is no comparison"},
        {"> 3 : 1 : x", "\"> 3\" is no comparison"},
        {"nodes = 3 : 1 : x", "\"nodes = 3\" is no comparison"},
        {"nodes > many : 1 : x", "nodes is compared with a number, not \"many\": "
                                 "for example nodes > 128"},
        {"write_needed > 5 : 1 : x", "for example write_needed > 20GB/s"},
        {"lifetime == forever : 1 : x", "lifetime is one of job|campaign|permanent"},
        {"lifetime >= job : 1 : x", "compare it by == or !="},
        /* Also behind what is false already. */
        {"nodes > 1000 and nods > 1 : 1 : x", "no input is called \"nods\""},
        {"nodes > 1000 and  : 1 : x", "not \"1000 and\""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct choose_rule rule = {.points = 77};
        struct plan_problem problem = {{0}};

        assert_int_equal(choose_rule_read(&plan_choose, &plain, rows[i].text, &rule, &problem),
                         -ERR_MALFORMED);
        if (!strstr(problem.text, rows[i].problem)) {
            fail_msg("\"%s\": %s", rows[i].text, problem.text);
        }
        assert_int_equal(rule.points, 77);
    }
}

/* Any text is read or refused with a reason; a sanitizer sees a step beyond its end. */
static void rules_of_any_text(void **state) {
    (void)state;
    static const char *const pieces[] = {
        "nodes",  "lifetime", "always", " and ", "and",  "==", "!=",    "<",          ">",
        "=",      " : ",      ":",      "no",    "+",    "-",  "1",     "32",         "job",
        "20GB/s", "off",      " ",      "%",     "\xff", "(",  "1e999", "small_files"};
    const uint64_t seed = 20261121;
    size_t read = 0;
    struct prng prng;

    prng_init(&prng, seed);
    for (int round = 0; round < 50000; round++) {
        struct choose_rule rule = {0};
        struct plan_problem problem = {{0}};
        char text[DATA_TEXT_BYTES] = "";

        for (uint64_t i = prng_below(&prng, 40); i > 0; i--) {
            size_t used = strlen(text);

            snprintf(text + used, sizeof text - used, "%s",
                     pieces[prng_below(&prng, ARRAY_SIZE(pieces))]);
        }
        int r = choose_rule_read(&plan_choose, &plain, text, &rule, &problem);
        if (r == 0 ? !rule.reason : r != -ERR_MALFORMED || !problem.text[0]) {
            fail_msg("seed %llu, round %d: \"%s\"", (unsigned long long)seed, round, text);
        }
        read += r == 0;
    }
    assert_true(read > 10);
}

static void set(struct data *data, const char *section, const char *key, const char *text) {
    assert_int_equal(data_set(data, section, key, text), 0);
}

static void expect_row(const struct data *data, size_t row, const char *system,
                       const char *verdict) {
    struct choose_outputs out = {0};

    assert_true(plan_choose.row(data, &plain, row, &out));
    assert_string_equal(out.system.text, system);
    assert_string_equal(out.verdict.text, verdict);
}

static void best_first(void **state) {
    (void)state;
    struct data data = {0};
    struct choose_outputs out = {0};

    set(&data, "chooser", "fits", "3");
    set(&data, "chooser.broken", "typo", "nods > 1 : 9 : x");
    set(&data, "chooser.out", "a", "always : 9 : fast");
    set(&data, "chooser.out", "b", "nodes > 1 : no : one node only");
    set(&data, "chooser.low", "a", "always : 2 : small");
    set(&data, "chooser.good", "name", "The Good One");
    set(&data, "chooser.good", "a", "nodes > 8 : 5 : large");
    set(&data, "chooser.good", "b", "network == rdma : -2 : dear");
    set(&data, "chooser.good", "c", "nodes > 64 : -9 : not shown");
    set(&data, "chooser.same", "a", "always : 3 : same");
    set(&data, "about.chooser.good", "source", "nothing");
    expect_row(&data, 0, "The Good One", "fits");
    expect_row(&data, 1, "same", "fits");
    expect_row(&data, 2, "low", "possible");
    expect_row(&data, 3, "out", "no");
    expect_row(&data, 4, "broken", "cannot be judged");
    assert_false(plan_choose.row(&data, &plain, 5, &out));

    assert_true(plan_choose.row(&data, &plain, 0, &out));
    assert_true(out.score.value == 3);
    assert_string_equal(out.reasons.text, "large");
    assert_string_equal(out.objections.text, "dear");
    assert_string_equal(out.ruled_out.text, "");
    memset(&out, 0, sizeof out);
    assert_true(plan_choose.row(&data, &plain, 3, &out));
    assert_string_equal(out.ruled_out.text, "one node only");
    memset(&out, 0, sizeof out);
    assert_true(plan_choose.row(&data, &plain, 4, &out));
    assert_string_equal(out.ruled_out.text, "[chooser.broken] typo: no input is called \"nods\"");
    assert_non_null(out.score.cannot);
    /* A user's file goes over the shipped one. */
    set(&data, "chooser.out", "b", "off");
    expect_row(&data, 0, "out", "fits");
    data_deinit(&data);
}

static void rules_that_are_missing(void **state) {
    (void)state;
    struct data data = {0};
    struct choose_outputs out = {0};

    assert_true(plan_choose.row(&data, &plain, 0, &out));
    assert_string_equal(out.verdict.text, "cannot be judged");
    assert_non_null(strstr(out.ruled_out.text, "[chooser] fits"));
    assert_false(plan_choose.row(&data, &plain, 1, &out));
    set(&data, "chooser", "fits", "3");
    memset(&out, 0, sizeof out);
    assert_true(plan_choose.row(&data, &plain, 0, &out));
    assert_non_null(strstr(out.ruled_out.text, "there is no system"));
    assert_false(plan_choose.row(&data, &plain, 1, &out));
    data_deinit(&data);
}

static void too_many(void **state) {
    (void)state;
    struct data data = {0};
    struct choose_outputs out = {0};
    char text[300];

    set(&data, "chooser", "fits", "3");
    /* Reasons that have no room are counted. */
    memset(text, 'x', sizeof text);
    memcpy(text, "always : 1 : ", 13);
    text[213] = '\0';
    for (int i = 0; i < 5; i++) {
        set(&data, "chooser.0", (char[]){(char)('a' + i), '\0'}, text);
    }
    assert_true(plan_choose.row(&data, &plain, 0, &out));
    assert_string_equal(out.reasons.text + strlen(out.reasons.text) - 9, "x; 3 more");
    for (int i = 1; i <= CHOOSE_SYSTEMS_MAX; i++) {
        snprintf(text, sizeof text, "chooser.%d", i);
        set(&data, text, "a", "always : 1 : x");
    }
    memset(&out, 0, sizeof out);
    assert_true(plan_choose.row(&data, &plain, CHOOSE_SYSTEMS_MAX, &out));
    assert_non_null(strstr(out.ruled_out.text, "more than 32 systems"));
    assert_false(plan_choose.row(&data, &plain, CHOOSE_SYSTEMS_MAX + 1, &out));
    data_deinit(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_that_are_read),    cmocka_unit_test(rules_that_are_refused),
        cmocka_unit_test(rules_of_any_text),      cmocka_unit_test(best_first),
        cmocka_unit_test(rules_that_are_missing), cmocka_unit_test(too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
