/* Text that grows as it is written: results as JSON, tables and lines.
 *
 * Thread: the caller's.  Memory: its own, freed by text_deinit; when it runs out, or when the text
 * would pass TEXT_BYTES_MAX, the text stays as it was and `failed` is set for good. */
#pragma once
#include "base/types.h"
#include <stdarg.h>

#define TEXT_BYTES_MAX (UINT64_C(256) << 20)

struct text {
    char *data; /* NUL-terminated once something was added; NULL before */
    size_t size;
    size_t capacity;
    bool failed;
};

void text_deinit(struct text *text);
PRINTF_LIKE(2, 3) void text_add(struct text *text, const char *format, ...);
/* The string in quotes, as JSON (RFC 8259) wants it. Bytes that are not ASCII pass unchanged. */
void text_add_json(struct text *text, const char *string);
/* The string as a field of a CSV line (RFC 4180): quoted where it has to be. */
void text_add_csv(struct text *text, const char *string);
/* A finite number with the digits that bring it back. */
void text_add_number(struct text *text, double number);
/* Words, their line broken before column 100, which begins at column `at`; further lines are
 * indented. Ends with a line's end. */
void text_add_wrapped(struct text *text, const char *words, size_t at, size_t indent);
