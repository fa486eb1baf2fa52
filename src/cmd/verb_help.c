/* What `shoal VERB --help` prints, from the verb's tables. */
#include "cmd/verb.h"
#include <stdio.h>
#include <string.h>

enum { MARGIN = 2, SYNOPSIS_INDENT = 6 };

/* Of the next word; spaces in a bracket don't end it. */
static size_t word_size(const char *text) {
    size_t size = 0;
    int depth = 0;

    while (text[size] && (depth > 0 || (text[size] != ' ' && text[size] != '\n'))) {
        depth += (text[size] == '[') - (text[size] == ']');
        size++;
    }
    return size;
}

/* A list of choices that is longer than a line is cut behind one of them. */
static size_t size_cut(const char *text, size_t room) {
    size_t size = room;

    while (size > 0 && text[size - 1] != '|') {
        size--;
    }
    return size > 0 ? size : room;
}

void verb_print_text(const char *text, size_t column, size_t indent) {
    size_t margin = 0; /* of this line */
    bool begun = false;

    while (*text) {
        if (*text == '\n') {
            printf("\n");
            column = margin = indent;
            begun = false;
            text++;
            continue;
        }
        size_t size = word_size(text);
        bool cut = size > VERB_COLUMNS - indent;

        size = cut ? size_cut(text, VERB_COLUMNS - indent) : size;
        if (begun && column + 1 + size > VERB_COLUMNS) {
            printf("\n");
            column = margin = indent;
            begun = false;
        }
        printf("%*s%.*s", begun ? 1 : (int)margin, "", (int)size, text);
        column += (size_t)begun + size;
        begun = true;
        column = cut ? VERB_COLUMNS : column; /* The rest of it begins a line. */
        text += size;
        text += strspn(text, " ");
    }
    printf("\n");
}

void verb_print_line(const char *head, const char *text, size_t column) {
    size_t at = MARGIN + strlen(head);

    printf("%*s%s", MARGIN, "", head);
    if (at + 2 > column) {
        printf("\n");
        at = 0;
    }
    printf("%*s", (int)(column - at), "");
    verb_print_text(text, column, column);
}

/* The next "|" outside of brackets with a space before it, or the end. */
static const char *way_end(const char *at) {
    int depth = 0;

    for (; *at; at++) {
        depth += (*at == '[') - (*at == ']');
        if (depth == 0 && strncmp(at, " | ", 3) == 0) {
            break;
        }
    }
    return at;
}

const char *verb_way_next(const char *arguments, const char *way, size_t *ret_size) {
    const char *begin = arguments;

    if (way) {
        begin = way_end(way);
        if (!*begin) {
            return NULL;
        }
        begin += 3;
    }
    *ret_size = (size_t)(way_end(begin) - begin);
    return begin;
}

/* A line for each way to say it. Line breaks of the arguments are spaces here. */
static void print_synopsis(const struct verb *verb) {
    const char *program = strcmp(verb->name, "shoald") == 0 ? "" : "shoal ";
    const char *way = NULL;
    char line[1024];
    size_t size;

    while ((way = verb_way_next(verb->arguments, way, &size))) {
        int used = snprintf(line, sizeof line, "%s%s %.*s", program, verb->name, (int)size, way);

        for (char *at = line; used > 0 && *at; at++) {
            *at = *at == '\n' ? ' ' : *at;
        }
        verb_print_text(line, 0, SYNOPSIS_INDENT);
    }
}

void verb_option_text(const struct verb_option *option, char ret_text[VERB_TEXT_BYTES]) {
    size_t used = 0;

    for (const char *at = option->of; at && *at; at++) {
        used += (size_t)snprintf(ret_text + used, VERB_TEXT_BYTES - used, "%s%c",
                                 *at == ' ' ? "," : "", *at);
    }
    snprintf(ret_text + used, VERB_TEXT_BYTES - used, "%s%s", option->of ? ": " : "", option->help);
}

static void print_option(const struct verb_option *option) {
    char head[128];
    char text[VERB_TEXT_BYTES];
    bool is_word = strncmp(option->name, "-o ", 3) == 0;

    snprintf(head, sizeof head, "%s%s%s", option->name,
             !option->value ? ""
             : is_word      ? "="
                            : " ",
             option->value ? option->value : "");
    verb_option_text(option, text);
    verb_print_line(head, text, VERB_OPTION_COLUMN);
}

void verb_help(const struct verb *verb) {
    const struct verb_option *option;

    print_synopsis(verb);
    printf("\n");
    verb_print_text(verb->summary, 0, 0);
    printf("%s", verb->kinds ? "\n" : "");
    for (const struct verb_kind *kind = verb->kinds; kind && kind->name; kind++) {
        verb_print_line(kind->name, kind->help, VERB_LIST_COLUMN);
    }
    printf("%s", verb_option_at(verb, 0) ? "\n" : "");
    for (size_t i = 0; (option = verb_option_at(verb, i)); i++) {
        print_option(option);
    }
    if (verb->notes) {
        printf("\n");
        verb_print_text(verb->notes, 0, 0);
    }
    printf("\nExample:\n  %s\n", verb->example);
}
