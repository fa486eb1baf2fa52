/* manual: prints pages for man(1), made from the verbs' tables. */
#include "cmd/verb.h"
#include "planner/plan.h"
#include <ctype.h>
#include <shoal/shoal.h>
#include <stdio.h>
#include <string.h>

/* Text of roff: nothing in it is an order. A line break ends a paragraph. */
static void print_roff(const char *text, size_t size) {
    bool begun = false;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || (text[i] == ' ' && !begun)) {
            if (text[i] == '\n' && begun) {
                printf("\n.PP\n");
            }
            begun = false;
            continue;
        }
        printf("%s", !begun && (text[i] == '.' || text[i] == '\'') ? "\\&" : "");
        switch (text[i]) {
        case '\\':
            printf("\\e");
            break;
        case '-':
            printf("\\-");
            break;
        case '`': /* What is typed stands between two of them. */
            printf("\\(ga");
            break;
        default:
            printf("%c", text[i]);
        }
        begun = true;
    }
    printf("\n");
}

static void print_text(const char *text) {
    print_roff(text, strlen(text));
}

static void print_head(const char *name, int section, const char *summary) {
    printf(".\\\" Made by `shoal manual`.\n.TH ");
    for (const char *at = name; *at; at++) {
        printf("%c", toupper((unsigned char)*at));
    }
    printf(" %d \"\" \"shoal %d.%d\" Shoal\n.SH NAME\n", section, SHOAL_VERSION_MAJOR,
           SHOAL_VERSION_MINOR);
    printf("%s \\- ", name);
    print_text(summary);
}

static void print_item(const char *bold, const char *italic, const char *text) {
    printf(".TP\n\\fB");
    for (const char *at = bold; *at; at++) {
        printf("%s%c", *at == '-' ? "\\" : "", *at);
    }
    printf("\\fR%s\\fI%s\\fR\n", italic ? strchr(bold, ' ') ? "=" : " " : "", italic ? italic : "");
    print_text(text);
}

/* Line breaks of the arguments are spaces here. */
static void print_way(const char *program, const char *name, const char *way, size_t size) {
    char line[1024];
    int used = snprintf(line, sizeof line, "%.*s", (int)size, way);

    for (char *at = line; used > 0 && *at; at++) {
        *at = *at == '\n' ? ' ' : *at;
    }
    printf(".PP\n\\fB%s%s\\fR%s", program, name, line[0] ? " " : "");
    print_text(line);
}

static void print_options(const struct verb *verb) {
    const struct verb_option *option;

    if (verb_option_at(verb, 0)) {
        printf(".SH OPTIONS\n");
    }
    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        char text[VERB_TEXT_BYTES];

        verb_option_text(option, text);
        print_item(option->name, option->value, text);
    }
}

static void print_example(const struct verb *verb) {
    printf(".SH EXAMPLE\n.nf\n");
    print_text(verb->example);
    printf(".fi\n");
}

static void print_verb(const struct verb *verb) {
    bool is_daemon = verb == &verb_shoald;
    char name[64];
    const char *way = NULL;
    size_t size;

    snprintf(name, sizeof name, "%s%s", is_daemon ? "" : "shoal\\-", verb->name);
    print_head(name, is_daemon ? 8 : 1, verb->summary);
    printf(".SH SYNOPSIS\n");
    while ((way = verb_way_next(verb->arguments, way, &size))) {
        print_way(is_daemon ? "" : "shoal ", verb->name, way, size);
    }
    if (verb->kinds) {
        printf(".SH WORDS\n");
    }
    for (const struct verb_kind *kind = verb->kinds; kind && kind->name; kind++) {
        print_item(kind->name, NULL, kind->help);
    }
    for (size_t i = 0; verb == &verb_plan && i < plan_model_count; i++) {
        print_item(plan_models[i]->name, NULL, plan_models[i]->summary);
    }
    print_options(verb);
    if (verb->notes) {
        printf(".SH NOTES\n");
        print_text(verb->notes);
    }
    print_example(verb);
    printf(".SH \"SEE ALSO\"\n\\fBshoal\\fR(1)\n");
}

static void print_first(void) {
    print_head("shoal", 1, "a parallel file system for AI training");
    printf(".SH SYNOPSIS\n\\fBshoal\\fR \\fIVERB\\fR ...\n.SH VERBS\n");
    for (size_t i = 0; verb_list[i]; i++) {
        print_item(verb_list[i]->name, NULL, verb_list[i]->summary);
    }
    printf(".PP\n\\fBshoal\\fR \\fIVERB\\fR \\fB\\-\\-help\\fR tells more, as the page "
           "\\fBshoal\\-\\fIVERB\\fR(1) does.\n"
           ".SH \"EXIT STATUS\"\n"
           "0 success, 1 failure, 2 usage, 3 not all nodes have answered.\n"
           ".SH ENVIRONMENT\n");
    print_item("SHOAL_CLUSTER", NULL,
               "the cluster that verbs over all nodes ask where none is named: a directory, or "
               "addresses");
    print_item("SHOAL_KEY", NULL, "the file of the members' key, for addresses");
    printf(".SH \"SEE ALSO\"\n\\fBshoald\\fR(8)\n");
}

static int name_take(const struct verb *verb, const char *word, void *context) {
    const struct verb **page = context;

    if (*page) {
        return verb_usage(verb, "one verb, not %s as well", word);
    }
    *page = verb_find_any(word);
    return *page ? EXIT_OK : verb_usage(verb, "there is no verb \"%s\"", word);
}

static int run_manual(const struct verb *verb, int argc, char **argv) {
    const struct verb *page = NULL;
    int status = verb_parse(verb, NULL, argv + 1, name_take, &page);

    (void)argc;
    if (status == EXIT_OK && page) {
        print_verb(page);
    } else if (status == EXIT_OK) {
        print_first();
    }
    return status;
}

const struct verb verb_manual = {
    .name = "manual",
    .arguments = "[VERB]",
    .summary = "Prints the page of a verb, or of all, for man(1).",
    .notes = "`meson install` puts shoal(1), shoald(8) and a page for each verb where man looks.",
    .nouns = VERB_NO_NOUNS,
    .example = "shoal manual up | man -l -",
    .run = run_manual};
