/* Sentences of verdicts. */
#include "planner/words.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const level_words[] = {
    [LEVEL_NEVER] = "never finishes: ",
    [LEVEL_UNPAID] = "does not pay: ",
    [LEVEL_MISSED] = "target missed: ",
    [LEVEL_LOSES] = "loses time: ",
    [LEVEL_SHORT] = "short: ",
    [LEVEL_TIGHT] = "tight: ",
    [LEVEL_OK] = "ok: ",
};

const char *level_word(enum plan_level level) {
    return level_words[level];
}

enum plan_level level_of(const char *verdict) {
    for (unsigned i = 0; i < ARRAY_SIZE(level_words); i++) {
        if (strncmp(verdict, level_words[i], strlen(level_words[i])) == 0) {
            return (enum plan_level)i;
        }
    }
    return LEVEL_NONE;
}

void words_add(struct plan_words *words, const char *text) {
    size_t used = strlen(words->text);

    snprintf(words->text + used, WORDS_BYTES - used, "%s", text);
}

void words_figure(struct plan_words *words, enum unit unit, const struct figure *figure) {
    char text[UNIT_TEXT_BYTES];

    if (figure->cannot) {
        words_add(words, figure->cannot);
        return;
    }
    unit_format(unit, figure->value, text);
    words_add(words, text);
}

/* Three digits of it, in the unit that shows it best: what is shown and what is meant agree. */
static double rounded(double value, char how) {
    double step = pow(10, floor(log10(value)) - 2);
    double steps = value / step;

    return (how == '+'   ? ceil(steps - 1e-9)
            : how == '-' ? floor(steps + 1e-9)
                         : round(steps)) *
           step;
}

void words_option(struct plan_words *words, enum unit unit, const struct figure *figure, char how) {
    char text[UNIT_TEXT_BYTES];
    size_t out = 0;

    if (figure->cannot || figure->value <= 0) {
        words_figure(words, unit, figure);
        return;
    }
    if (unit == UNIT_COUNT) {
        double whole = how == '+'   ? ceil(figure->value)
                       : how == '-' ? floor(figure->value)
                                    : round(figure->value);

        snprintf(text, sizeof text, "%.0f", whole);
        words_add(words, text);
        return;
    }
    unit_format(unit, rounded(figure->value, how), text);
    for (const char *at = text; *at; at++) {
        if (*at != ' ' && *at != ',') {
            text[out++] = *at;
        }
    }
    text[out] = '\0';
    words_add(words, text);
}
