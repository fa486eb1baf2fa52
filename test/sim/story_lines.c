/* Which lines of a trace a golden file has. */
#include "story_lines.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 600 };

/* Without the digits behind the word. */
static void number_drop(char *line, const char *word) {
    char *at = strstr(line, word);

    if (at) {
        at += strlen(word);
        size_t digits = strspn(at, "0123456789");

        memmove(at, at + digits, strlen(at + digits) + 1);
    }
}

/* What comes by the clock, and copies of what nobody answers. */
static bool is_noise(const char *line) {
    static const char *const signs[] = {": session_renew ", ": session_floor ", ": log_starts ",
                                        ": map_changes "};
    const char *attempt = strstr(line, " attempt ");

    for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
        if (strstr(line, signs[i])) {
            return true;
        }
    }
    return attempt && strtoul(attempt + strlen(" attempt "), NULL, 10) > 2;
}

/* Of the trace: what was asked and answered, messages, writes and flushes, what befell nodes.
 * Without times, which nothing depends on. */
static void line_keep(char *line, bool is_brief, FILE *file) {
    static const char *const kinds[] = {"write", "sync", "kill", "power", "start"};
    const char *rest = strstr(line, " ms ");
    char node[32] = "";
    char kind[32] = "";

    if (line[0] == '>' || line[0] == '<') {
        fputs(line, file);
        return;
    }
    if (!rest || sscanf(rest + 4, "%31s %31s", node, kind) != 2 || (is_brief && is_noise(line))) {
        return;
    }
    number_drop(line, " mtime_ns=");
    if (is_brief) {
        number_drop(line, " decided_ns=");
    }
    if (strcmp(kind, "->") == 0) {
        fprintf(file, "  %s", rest + 4);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            fprintf(file, "  %s", rest + 4);
        }
    }
}

char *story_lines(char *trace, bool is_brief) {
    char *kept = NULL;
    size_t size;
    char line[LINE_BYTES];
    FILE *out = open_memstream(&kept, &size);
    FILE *in = fmemopen(trace, strlen(trace), "r");

    while (in && fgets(line, sizeof line, in)) {
        line_keep(line, is_brief, out);
    }
    fclose(in);
    fclose(out);
    return kept;
}
