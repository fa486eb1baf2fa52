/* The chooser: all systems are judged for each row, as rows are in the order of the verdicts. */
#include "planner/choose.h"
#include "planner/choose_rule.h"
#include <stdio.h>
#include <string.h>

/* In the order of the rows. */
enum verdict { FITS, POSSIBLE, NO, UNREADABLE };
static const char *const verdicts[] = {"fits", "possible", "no", "cannot be judged"};

struct judgement {
    const char *section;
    enum verdict verdict;
    int score;
};

/* Reasons of one kind; what has no room any more is counted. */
struct reasons {
    struct plan_words *words;
    unsigned left_out;
};

static void add_reason(struct reasons *reasons, const char *reason) {
    char *text = reasons->words->text;
    size_t used = strlen(text);
    int size = snprintf(text + used, WORDS_BYTES - used, "%s%s", used > 0 ? "; " : "", reason);

    /* 16 bytes stay for the count. */
    if (used + (size_t)size + 16 > WORDS_BYTES) {
        text[used] = '\0';
        reasons->left_out++;
    }
}

static void end_reasons(struct reasons *reasons) {
    size_t used = strlen(reasons->words->text);

    if (reasons->left_out > 0) {
        snprintf(reasons->words->text + used, WORDS_BYTES - used, "; %u more", reasons->left_out);
    }
}

/* Reads all rules of a system, also for their reasons; UNREADABLE at the first that is wrong. */
static struct judgement judge(const struct data *data, const void *inputs, const char *section,
                              struct choose_outputs *out) {
    struct judgement judgement = {.section = section, .verdict = POSSIBLE};
    struct reasons ruled_out = {&out->ruled_out, 0};
    struct reasons reasons = {&out->reasons, 0};
    struct reasons objections = {&out->objections, 0};
    struct plan_problem problem;
    struct choose_rule rule;

    for (size_t i = 0; i < data->count; i++) {
        const struct data_row *row = &data->rows[i];

        if (strcmp(row->section, section) != 0 || strcmp(row->key, "name") == 0) {
            continue;
        }
        if (choose_rule_read(&plan_choose, inputs, row->text, &rule, &problem) < 0) {
            out->score = figure_cannot("a rule of this system cannot be read");
            snprintf(out->ruled_out.text, WORDS_BYTES, "[%s] %s: %s", row->section, row->key,
                     problem.text);
            judgement.verdict = UNREADABLE;
            return judgement;
        }
        if (rule.applies) {
            add_reason(rule.excludes     ? &ruled_out
                       : rule.points < 0 ? &objections
                                         : &reasons,
                       rule.reason);
            judgement.score += rule.points;
            judgement.verdict = rule.excludes ? NO : judgement.verdict;
        }
    }
    end_reasons(&ruled_out);
    end_reasons(&reasons);
    end_reasons(&objections);
    out->score = figure_of(judgement.score);
    return judgement;
}

static bool better(const struct judgement *one, const struct judgement *other) {
    return one->verdict != other->verdict ? one->verdict < other->verdict
                                          : one->score > other->score;
}

/* Judges all systems; equals stay in the order of the data. */
static size_t judge_all(const struct data *data, const void *inputs, double fits,
                        struct judgement judgements[CHOOSE_SYSTEMS_MAX]) {
    size_t count = 0;
    const char *section;

    while (count < CHOOSE_SYSTEMS_MAX && (section = data_section(data, "chooser.", count))) {
        struct choose_outputs scratch = {0};
        struct judgement judgement = judge(data, inputs, section, &scratch);
        size_t place = count++;

        if (judgement.verdict == POSSIBLE && judgement.score >= fits) {
            judgement.verdict = FITS;
        }
        for (; place > 0 && better(&judgement, &judgements[place - 1]); place--) {
            judgements[place] = judgements[place - 1];
        }
        judgements[place] = judgement;
    }
    return count;
}

static void say_unusable(const char *why, struct choose_outputs *out) {
    snprintf(out->verdict.text, WORDS_BYTES, "%s", verdicts[UNREADABLE]);
    snprintf(out->ruled_out.text, WORDS_BYTES, "%s", why);
    out->score = figure_cannot("the rules cannot be used");
}

bool choose_system(const struct data *data, const void *inputs, size_t row,
                   struct choose_outputs *out) {
    struct judgement judgements[CHOOSE_SYSTEMS_MAX];
    double fits;

    if (data_number(data, "chooser.fits", UNIT_COUNT, &fits) < 0) {
        if (row == 0) {
            say_unusable("[chooser] fits: it takes a number, for example fits = 5", out);
        }
        return row == 0;
    }
    size_t count = judge_all(data, inputs, fits, judgements);
    if (count == 0 && row == 0) {
        say_unusable("there is no system: sections are called [chooser.NAME]", out);
        return true;
    }
    if (row == count && data_section(data, "chooser.", CHOOSE_SYSTEMS_MAX)) {
        say_unusable("there are more than 32 systems: the others were not looked at", out);
        return true;
    }
    if (row >= count) {
        return false;
    }
    const char *section = judgements[row].section;
    const char *name = data_text(data, section, "name");
    (void)judge(data, inputs, section, out);
    snprintf(out->system.text, WORDS_BYTES, "%s", name ? name : section + strlen("chooser."));
    snprintf(out->verdict.text, WORDS_BYTES, "%s", verdicts[judgements[row].verdict]);
    out->why = out->ruled_out.text[0] ? out->ruled_out
               : out->reasons.text[0] ? out->reasons
                                      : out->objections;
    return true;
}
