/* What completion of both shells shares. */
#include "cmd/completion.h"
#include "planner/plan.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum completion_value completion_value(const char *value) {
    static const struct {
        const char *name;
        enum completion_value kind;
    } names[] = {{"FILE", COMPLETION_FILES},
                 {"PATH", COMPLETION_FILES},
                 {"DIR", COMPLETION_FOLDERS},
                 {"MNT", COMPLETION_FOLDERS}};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strncmp(value, names[i].name, strlen(names[i].name)) == 0) {
            return names[i].kind;
        }
    }
    return islower((unsigned char)value[0]) ? COMPLETION_WORDS : COMPLETION_NOTHING;
}

void completion_print_words(const char *value) {
    for (const char *at = value; *at; at++) {
        printf("%c", *at == '|' ? ' ' : *at);
    }
}

bool completion_is_option_word(const struct verb_option *option) {
    return strchr(option->name, ' ') != NULL;
}

void completion_print_option_words(const struct verb *verb) {
    const struct verb_option *option;
    const char *gap = "";

    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        if (completion_is_option_word(option)) {
            printf("%s%s%s", gap, strchr(option->name, ' ') + 1, option->value ? "=" : "");
            gap = " ";
        }
    }
}

bool completion_has_kinds(const struct verb *verb) {
    return verb->kinds || verb == &verb_manual;
}

void completion_print_kinds(const struct verb *verb) {
    const char *gap = "";

    for (const struct verb_kind *kind = verb->kinds; kind && kind->name; kind++) {
        printf("%s%s", gap, kind->name);
        gap = " ";
    }
    for (size_t i = 0; verb == &verb_plan && i < plan_model_count; i++) {
        printf(" %s", plan_models[i]->name);
    }
    for (size_t i = 0; verb == &verb_manual && verb_list[i]; i++) {
        printf("%s ", verb_list[i]->name);
    }
    printf("%s", verb == &verb_manual ? verb_shoald.name : "");
}
