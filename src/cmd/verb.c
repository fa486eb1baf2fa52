/* What verbs share: complaints, the reading of words and numbers. */
#include "cmd/verb.h"
#include "host/plain_text.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINT_BYTES = 2048 };

static const char *program_of(const struct verb *verb) {
    return strcmp(verb->name, "shoald") == 0 ? "" : "shoal ";
}

/* What users gave comes back in it: one line, without what a terminal takes for orders, and not
 * longer than is of use. */
__attribute__((format(printf, 2, 0))) static void complain(const struct verb *verb,
                                                           const char *format, va_list arguments) {
    char text[COMPLAINT_BYTES];

    int size = vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "%s%s: %s%s", program_of(verb), verb->name,
            size > 0 ? plain_text(text, false) : "", size >= COMPLAINT_BYTES ? "..." : "");
}

int verb_usage(const struct verb *verb, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    complain(verb, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (usage: %s%s", program_of(verb), verb->name);
    if (strchr(verb->arguments, '\n')) {
        fprintf(stderr, " %.*s...: `%s%s --help` tells more)\n", (int)strcspn(verb->arguments, "["),
                verb->arguments, program_of(verb), verb->name);
        return EXIT_USAGE;
    }
    fprintf(stderr, "%s%s)\n", verb->arguments[0] ? " " : "", verb->arguments);
    return EXIT_USAGE;
}

int verb_fail(const struct verb *verb, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    complain(verb, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

void verb_note(const struct verb *verb, const char *format, ...) {
    va_list arguments;
    char text[COMPLAINT_BYTES];

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s%s: note: %s\n", program_of(verb), verb->name, plain_text(text, false));
}

bool verb_is_help(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* The verb's own rows, then those that it shares. */
const struct verb_option *verb_option_at(const struct verb *verb, size_t index) {
    const struct verb_option *tables[] = {verb->options, verb->shared};

    for (size_t i = 0; i < 2; i++) {
        for (const struct verb_option *row = tables[i]; row && row->name; row++) {
            if (index-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static bool is_of(const struct verb_option *option, const char *kind) {
    size_t size = strlen(kind);

    for (const char *at = option->of; at && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");

        if (word == size && memcmp(at, kind, size) == 0) {
            return true;
        }
        at += word;
    }
    return !option->of;
}

const struct verb_option *verb_option_find(const struct verb *verb, const char *kind,
                                           const char *name, size_t name_size) {
    const struct verb_option *row;

    for (size_t i = 0; (row = verb_option_at(verb, i)); i++) {
        if (strlen(row->name) == name_size && memcmp(row->name, name, name_size) == 0 &&
            (!kind || is_of(row, kind))) {
            return row;
        }
    }
    return NULL;
}

int verb_option_take(const struct verb *verb, const struct verb_option *option, const char *value,
                     void *words) {
    void *place = (char *)words + option->offset;

    if (option->take) {
        return option->take(verb, value, words);
    }
    if (option->value) {
        *(const char **)place = value;
    } else {
        *(bool *)place = true;
    }
    return EXIT_OK;
}

int verb_parse(const struct verb *verb, const char *kind, char *const *argv,
               int (*noun)(const struct verb *verb, const char *word, void *words), void *words) {
    int status = EXIT_OK;

    for (size_t i = 0; argv[i] && status == EXIT_OK; i++) {
        const char *word = argv[i];
        bool dashed = word[0] == '-';
        const struct verb_option *option =
            dashed && !strchr(word, ' ') ? verb_option_find(verb, kind, word, strlen(word)) : NULL;

        if (!option && (dashed || !noun)) {
            status = verb_usage(verb, dashed ? "there is no option %s" : "\"%s\" is not understood",
                                word);
        } else if (!option) {
            status = noun(verb, word, words);
        } else if (option->value && !argv[i + 1]) {
            status = verb_usage(verb, "the value of %s is missing", word);
        } else {
            i += option->value != NULL;
            status = verb_option_take(verb, option, option->value ? argv[i] : "", words);
        }
    }
    return status;
}

bool verb_is_version(const char *word) {
    return strcmp(word, "--version") == 0;
}

bool verb_parse_count(const char *text, unsigned long long *ret_count) {
    char *end;

    unsigned long long count = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || count == ULLONG_MAX) {
        return false;
    }
    *ret_count = count;
    return true;
}

bool verb_parse_bytes(const char *text, unsigned long long *ret_bytes) {
    static const char units[] = "KMGT";
    char *end;

    unsigned long long bytes = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || bytes == ULLONG_MAX) {
        return false;
    }
    if (*end != '\0') {
        const char *unit = strchr(units, *end);

        if (!unit || end[1] != '\0') {
            return false;
        }
        for (const char *at = units; at <= unit; at++) {
            if (bytes > ~0ULL / 1024) {
                return false;
            }
            bytes *= 1024;
        }
    }
    *ret_bytes = bytes;
    return true;
}
