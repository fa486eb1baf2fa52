/* Verdicts: how good or bad, and sentences that name figures. */
#pragma once
#include "planner/figure.h"

/* The worst first. */
enum plan_level {
    LEVEL_NEVER,
    LEVEL_UNPAID,
    LEVEL_MISSED,
    LEVEL_LOSES,
    LEVEL_SHORT,
    LEVEL_TIGHT,
    LEVEL_OK,
    LEVEL_NONE, /* there is no verdict */
};

/* What a verdict of that level begins with: "short: ". */
const char *level_word(enum plan_level level);
/* The level that a verdict begins with; LEVEL_NONE when it begins with none. */
enum plan_level level_of(const char *verdict);

/* Appends; what has no room any more is cut. */
void words_add(struct plan_words *words, const char *text);
/* The figure as it is shown, or why there is none. */
void words_figure(struct plan_words *words, enum unit unit, const struct figure *figure);
/* The figure as an option takes it, three digits, rounded '+' up, '-' down or '=' to the nearest;
 * counts are whole. */
void words_option(struct plan_words *words, enum unit unit, const struct figure *figure, char how);
