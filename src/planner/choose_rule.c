/* Rules of the chooser: a comparison is read, checked and evaluated in one go. */
#include "planner/choose_rule.h"
#include "base/err.h"
#include <string.h>

enum { PART_BYTES = 160 };

/* The longer of two that begin alike stands first. */
static const char *const comparators[] = {"==", "!=", "<=", ">=", "<", ">"};
enum comparator { EQUAL, UNEQUAL, AT_MOST, AT_LEAST, LESS, MORE, COMPARATOR_COUNT };

static bool compare(enum comparator comparator, double left, double right) {
    switch (comparator) {
    case EQUAL:
        return left == right;
    case UNEQUAL:
        return left != right;
    case AT_MOST:
        return left <= right;
    case AT_LEAST:
        return left >= right;
    case LESS:
        return left < right;
    default:
        return left > right;
    }
}

/* [at, at + size) without the spaces around it; false when that is empty or too long. */
static bool take_part(const char *at, size_t size, char part[PART_BYTES]) {
    while (size > 0 && *at == ' ') {
        at++;
        size--;
    }
    while (size > 0 && at[size - 1] == ' ') {
        size--;
    }
    if (size == 0 || size >= PART_BYTES) {
        return false;
    }
    memcpy(part, at, size);
    part[size] = '\0';
    return true;
}

/* The index of value among the choices, or -1. */
static int choice_index(const char *choices, const char *value) {
    int index = 0;

    for (const char *at = choices;; index++) {
        size_t size = strcspn(at, "|");

        if (strlen(value) == size && memcmp(at, value, size) == 0) {
            return index;
        }
        if (at[size] == '\0') {
            return -1;
        }
        at += size + 1;
    }
}

static int read_value(const struct plan_input *input, enum comparator comparator, const char *value,
                      double *ret_number, struct plan_problem *problem) {
    if (input->kind == PLAN_CHOICE) {
        int index = choice_index(input->choices, value);

        if (index < 0) {
            plan_complain(problem, "%s is one of %s, not \"%.40s\"", input->name, input->choices,
                          value);
            return -ERR_MALFORMED;
        }
        if (comparator > UNEQUAL) {
            plan_complain(problem, "%s is a choice: compare it by == or !=", input->name);
            return -ERR_MALFORMED;
        }
        *ret_number = index;
        return 0;
    }
    if (input->kind != PLAN_NUMBER || unit_parse(input->unit, value, ret_number) < 0) {
        plan_complain(problem, "%s is compared with %s, not \"%.40s\": for example %s > %s",
                      input->name, unit_words(input->unit), value, input->name,
                      input->unit == UNIT_COUNT ? "128" : unit_example(input->unit));
        return -ERR_MALFORMED;
    }
    return 0;
}

/* One comparison: *holds stays true only if it is. */
static int read_comparison(const struct plan_model *model, const void *values, const char *text,
                           bool *holds, struct plan_problem *problem) {
    size_t name_size = strcspn(text, "=!<>");
    char name[PART_BYTES] = "";
    char value[PART_BYTES] = "";
    unsigned comparator = 0;
    double right;

    while (comparator < COMPARATOR_COUNT && strncmp(text + name_size, comparators[comparator],
                                                    strlen(comparators[comparator])) != 0) {
        comparator++;
    }
    const char *rest =
        comparator == COMPARATOR_COUNT ? "" : text + name_size + strlen(comparators[comparator]);
    if (!take_part(text, name_size, name) || !take_part(rest, strlen(rest), value)) {
        plan_complain(problem, "\"%.60s\" is no comparison: for example nodes > 128", text);
        return -ERR_MALFORMED;
    }
    const struct plan_input *input = plan_input_find(model, name);
    if (!input) {
        plan_complain(problem, "no input is called \"%.40s\"", name);
        return -ERR_MALFORMED;
    }
    int r = read_value(input, comparator, value, &right, problem);
    if (r == 0) {
        const char *at = (const char *)values + input->offset;
        double left = input->kind == PLAN_CHOICE ? *(const int *)(const void *)at
                                                 : *(const double *)(const void *)at;

        *holds = *holds && compare(comparator, left, right);
    }
    return r;
}

static int read_condition(const struct plan_model *model, const void *values, char *text,
                          bool *ret_holds, struct plan_problem *problem) {
    bool holds = true;
    int r = 0;

    if (strcmp(text, "always") == 0) {
        *ret_holds = true;
        return 0;
    }
    for (char *at = text; r == 0 && at;) {
        char *end = strstr(at, " and ");

        if (end) {
            *end = '\0';
        }
        r = read_comparison(model, values, at, &holds, problem);
        at = end ? end + strlen(" and ") : NULL;
    }
    if (r == 0) {
        *ret_holds = holds;
    }
    return r;
}

static int read_points(const char *text, struct choose_rule *rule, struct plan_problem *problem) {
    const char *digit = text + (text[0] == '+' || text[0] == '-');

    rule->excludes = strcmp(text, "no") == 0;
    if (!rule->excludes && (digit[0] < '1' || digit[0] > '9' || digit[1] != '\0')) {
        plan_complain(problem, "points are -9 to 9 without 0, or no, not \"%.40s\"", text);
        return -ERR_MALFORMED;
    }
    rule->points = rule->excludes ? 0 : (text[0] == '-' ? -1 : 1) * (digit[0] - '0');
    return 0;
}

int choose_rule_read(const struct plan_model *model, const void *values, const char *text,
                     struct choose_rule *ret_rule, struct plan_problem *problem) {
    struct choose_rule rule = {0};
    char condition[PART_BYTES];
    char points[PART_BYTES];

    if (strcmp(text, "off") == 0) {
        *ret_rule = (struct choose_rule){.reason = ""};
        return 0;
    }
    size_t size = strcspn(text, ":");
    const char *behind = text + size + (text[size] != '\0');
    size_t points_size = strcspn(behind, ":");
    rule.reason = behind + points_size + (behind[points_size] != '\0');
    rule.reason += strspn(rule.reason, " ");
    if (!take_part(text, size, condition) || !take_part(behind, points_size, points) ||
        rule.reason[0] == '\0') {
        plan_complain(problem, "a rule is CONDITION : POINTS : REASON, for example "
                               "nodes > 128 : -2 : too many");
        return -ERR_MALFORMED;
    }
    int r = read_condition(model, values, condition, &rule.applies, problem);
    r = r < 0 ? r : read_points(points, &rule, problem);
    if (r == 0) {
        *ret_rule = rule;
    }
    return r;
}
