/* What verbs share: complaints, help, numbers. */
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

void verb_help(const struct verb *verb) {
    printf("%s%s%s%s\n\n%s\n%s%s\nExample:\n  %s\n", program_of(verb), verb->name,
           verb->arguments[0] ? " " : "", verb->arguments, verb->summary,
           verb->options[0] ? "\n" : "", verb->options, verb->example);
}

bool verb_is_help(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
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
