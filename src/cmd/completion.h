/* Scripts by which shells complete words of `shoal` and `shoald`, made from the verbs' tables. */
#pragma once
#include "cmd/verb.h"

/* What stands behind an option, by what help calls it. */
enum completion_value {
    COMPLETION_NOTHING,
    COMPLETION_FILES,   /* FILE, PATH */
    COMPLETION_FOLDERS, /* DIR, MNT */
    COMPLETION_WORDS,   /* on|off */
};
enum completion_value completion_value(const char *value);

/* "on|off" with spaces between the words. */
void completion_print_words(const char *value);
/* The kinds of a verb, as completion has them: of plan the models as well, of manual the verbs. */
void completion_print_kinds(const struct verb *verb);
bool completion_has_kinds(const struct verb *verb);
/* The words of -o of a verb, "NAME" or "NAME=". */
void completion_print_option_words(const struct verb *verb);
/* Whether it is a word of -o. */
bool completion_is_option_word(const struct verb_option *option);

void completion_print_bash(void);
void completion_print_zsh(void);
