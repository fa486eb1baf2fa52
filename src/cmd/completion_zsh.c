/* The script for zsh: for each verb the words of _arguments, which chooses. */
#include "cmd/completion.h"
#include "planner/plan.h"
#include <stdio.h>
#include <string.h>

/* Within single quotes of the shell, where brackets and colons are _arguments' own. */
static void print_told(const char *text) {
    for (const char *at = text; *at; at++) {
        if (*at == '\'') {
            printf("'\\''");
        } else {
            printf("%s%c", strchr("[]:\\", *at) ? "\\" : "", *at);
        }
    }
}

static void print_value(const struct verb *verb, const struct verb_option *option) {
    printf(":");
    print_told(option->value);
    switch (completion_value(option->value)) {
    case COMPLETION_FILES:
        printf(":_files");
        break;
    case COMPLETION_FOLDERS:
        printf(":_files -/");
        break;
    case COMPLETION_WORDS:
        printf(":(");
        completion_print_words(option->value);
        printf(")");
        break;
    case COMPLETION_NOTHING:
        printf(": ");
        if (strcmp(option->name, "-o") == 0) {
            printf("_sequence compadd - ");
            completion_print_option_words(verb);
        }
        break;
    }
}

/* What may be said more than once has a star. */
static void print_option(const struct verb *verb, const struct verb_option *option) {
    printf(" \\\n            '%s%s[", strstr(option->help, "repeatable") ? "*" : "", option->name);
    print_told(option->help);
    printf("]");
    if (option->value && option->value[0] != '[') {
        print_value(verb, option);
    }
    printf("'");
}

static void print_verb(const struct verb *verb) {
    static const char *const nouns[] = {
        [VERB_PATHS] = "_files", [VERB_FOLDERS] = "_files -/", [VERB_NO_NOUNS] = " "};
    const struct verb_option *option;

    printf("    %s)\n        _arguments", verb->name);
    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        if (!completion_is_option_word(option)) {
            print_option(verb, option);
        }
    }
    if (completion_has_kinds(verb)) {
        printf(" \\\n            '1:word:(");
        completion_print_kinds(verb);
        printf(")'");
    }
    printf(" \\\n            '*:word:%s' ;;\n", nouns[verb->nouns]);
}

void completion_print_zsh(void) {
    printf("#compdef shoal shoald\n"
           "# Completion of shoal and shoald for zsh; `shoal completion zsh` prints it.\n\n"
           "_shoal_verb() {\n    case $1 in\n");
    for (size_t i = 0; verb_list[i]; i++) {
        print_verb(verb_list[i]);
    }
    print_verb(&verb_shoald);
    printf("    esac\n}\n\n_shoal() {\n"
           "    if [[ $service == shoald ]]; then\n        _shoal_verb shoald\n        return\n"
           "    fi\n    if (( CURRENT == 2 )); then\n        local -a verbs\n        verbs=(\n");
    for (size_t i = 0; verb_list[i]; i++) {
        printf("            '%s:", verb_list[i]->name);
        print_told(verb_list[i]->summary);
        printf("'\n");
    }
    printf("        )\n        _describe verb verbs\n        return\n    fi\n"
           "    shift words\n    (( CURRENT-- ))\n    _shoal_verb $words[1]\n}\n\n"
           "_shoal \"$@\"\n");
}
