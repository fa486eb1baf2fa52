/* The script for bash: three functions look words up that come from the tables, one chooses. */
#include "cmd/completion.h"
#include "planner/plan.h"
#include <stdio.h>
#include <string.h>

static const char head[] =
    "# Completion of shoal and shoald for bash; `shoal completion bash` prints it.\n"
    "\n"
    "# VERB: what its first word may be, and what its other words are: files (-f), folders (-d).\n"
    "_shoal_nouns() {\n"
    "    case $1 in\n";

static const char tail[] =
    "_shoal_take() {\n"
    "    mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$word\")\n"
    "}\n"
    "\n"
    "_shoal_paths() {\n"
    "    [ -n \"$1\" ] || return 0\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    _shoal_take \"$1\"\n"
    "}\n"
    "\n"
    "# Words of -o have commas between; \"=\" is a word of its own.\n"
    "_shoal_of_o() {\n"
    "    local before=\n"
    "    case $word in *,*) before=${word%,*}, word=${word##*,} ;; esac\n"
    "    _shoal_take -P \"$before\" -W \"$list\"\n"
    "    case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
    "}\n"
    "\n"
    "_shoal() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local verb=${COMP_WORDS[1]} first=2 kind='' kinds='' nouns='' list='' options=''\n"
    "    COMPREPLY=()\n"
    "    if [ \"${COMP_WORDS[0]##*/}\" = shoald ]; then\n"
    "        verb=shoald first=1\n"
    "    elif [ \"$COMP_CWORD\" -eq 1 ] || [ \"$verb\" = help ]; then\n"
    "        _shoal_take -W \"$_shoal_verbs help --help --version\"\n"
    "        return\n"
    "    fi\n"
    "    kind=${COMP_WORDS[first]-}\n"
    "    if [ \"$word\" = = ]; then\n"
    "        word='' before=\"-o ${before##*,}\"\n"
    "    elif [ \"$before\" = = ]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD - 2]} before=\"-o ${before##*,}\"\n"
    "    fi\n"
    "    if _shoal_value \"$verb\" \"$kind\" \"$before\"; then\n"
    "        case $before in\n"
    "        -o) _shoal_of_o ;;\n"
    "        *) [ -z \"$list\" ] || _shoal_take -W \"$list\"; _shoal_paths \"$nouns\" ;;\n"
    "        esac\n"
    "        return\n"
    "    fi\n"
    "    _shoal_nouns \"$verb\"\n"
    "    if [ -n \"$kinds\" ] && [[ $COMP_CWORD -eq $first && $word != -* ]]; then\n"
    "        _shoal_take -W \"$kinds\"\n"
    "    elif [ \"${word:0:1}\" = - ]; then\n"
    "        _shoal_options \"$verb\" \"$kind\"\n"
    "        _shoal_take -W \"$options --help\"\n"
    "    else\n"
    "        _shoal_paths \"$nouns\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _shoal shoal shoald\n";

static void print_nouns(const struct verb *verb) {
    static const char *const letters[] = {
        [VERB_PATHS] = "-f", [VERB_FOLDERS] = "-d", [VERB_NO_NOUNS] = ""};

    printf("    %s) kinds='", verb->name);
    completion_print_kinds(verb);
    printf("' nouns=%s ;;\n", letters[verb->nouns]);
}

/* An input of a model as an option. */
static void print_input(const struct plan_input *input) {
    printf("--");
    for (const char *at = input->name; *at; at++) {
        printf("%c", *at == '_' ? '-' : *at);
    }
}

/* kind: NULL is any. */
static void print_options(const struct verb *verb, const char *kind) {
    const struct verb_option *option;

    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        if (!completion_is_option_word(option) &&
            verb_option_find(verb, kind, option->name, strlen(option->name))) {
            printf("%s ", option->name);
        }
    }
}

static void print_options_of(const struct verb *verb) {
    for (const struct verb_kind *kind = verb->kinds; kind && kind->name; kind++) {
        printf("    '%s %s') options='", verb->name, kind->name);
        print_options(verb, kind->name);
        printf("' ;;\n");
    }
    for (size_t i = 0; verb == &verb_plan && i < plan_model_count; i++) {
        const struct plan_model *model = plan_models[i];

        printf("    'plan %s') options='", model->name);
        print_options(verb, model->name);
        for (uint32_t k = 0; k < model->input_count; k++) {
            print_input(&model->inputs[k]);
            printf(" ");
        }
        printf("' ;;\n");
    }
    printf("    '%s '*) options='", verb->name);
    print_options(verb, NULL);
    printf("' ;;\n");
}

static void print_models_values(void) {
    for (size_t i = 0; i < plan_model_count; i++) {
        const struct plan_model *model = plan_models[i];

        for (uint32_t k = 0; k < model->input_count; k++) {
            const struct plan_input *input = &model->inputs[k];

            printf("    'plan %s ", model->name);
            print_input(input);
            printf("') list='");
            completion_print_words(input->kind == PLAN_CHOICE ? input->choices : "");
            printf("' ;;\n");
        }
    }
}

/* "[NAME]" may be left out, so that other words may follow. */
static void print_values(const struct verb *verb) {
    const struct verb_option *option;

    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        if (!option->value || option->value[0] == '[') {
            continue;
        }
        enum completion_value kind = completion_value(option->value);
        printf("    '%s '*' %s') ", verb->name, option->name);
        if (strcmp(option->name, "-o") == 0) {
            printf("list='");
            completion_print_option_words(verb);
            printf("' ;;\n");
        } else if (kind == COMPLETION_WORDS) {
            printf("list='");
            completion_print_words(option->value);
            printf("' ;;\n");
        } else {
            printf("nouns=%s ;;\n", kind == COMPLETION_FILES     ? "-f"
                                    : kind == COMPLETION_FOLDERS ? "-d"
                                                                 : "");
        }
    }
}

/* For each verb, and for shoald. */
static void print_each(void (*print)(const struct verb *verb)) {
    for (size_t i = 0; verb_list[i]; i++) {
        print(verb_list[i]);
    }
    print(&verb_shoald);
}

void completion_print_bash(void) {
    printf("%s", head);
    print_each(print_nouns);
    printf("    esac\n}\n\n"
           "# VERB KIND: its options.\n"
           "_shoal_options() {\n    case \"$1 $2\" in\n");
    print_each(print_options_of);
    printf("    esac\n}\n\n"
           "# VERB KIND OPTION: what stands behind it; fails where nothing does.\n"
           "_shoal_value() {\n    case \"$1 $2 $3\" in\n");
    print_models_values();
    print_each(print_values);
    printf("    *) return 1 ;;\n    esac\n}\n\n_shoal_verbs='");
    for (size_t i = 0; verb_list[i]; i++) {
        printf("%s%s", i > 0 ? " " : "", verb_list[i]->name);
    }
    printf("'\n\n%s", tail);
}
