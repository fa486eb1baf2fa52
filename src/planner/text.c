/* Text that grows: doubling, up to a limit. */
#include "planner/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_deinit(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

static bool text_reserve(struct text *text, size_t more) {
    size_t wanted = text->size + more + 1;
    size_t capacity = MAX(text->capacity, (size_t)1024);

    if (text->failed || wanted > TEXT_BYTES_MAX) {
        text->failed = true;
        return false;
    }
    while (capacity < wanted) {
        capacity *= 2;
    }
    if (capacity != text->capacity) {
        char *data = realloc(text->data, capacity);

        if (!data) {
            text->failed = true;
            return false;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return true;
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_list again;

    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    if (size >= 0 && text_reserve(text, (size_t)size)) {
        vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(arguments);
}

void text_add_json(struct text *text, const char *string) {
    text_add(text, "\"");
    while (*string) {
        size_t plain = 0;

        while ((unsigned char)string[plain] >= 0x20 && string[plain] != '"' &&
               string[plain] != '\\' && string[plain] != 0x7f) {
            plain++;
        }
        text_add(text, "%.*s", (int)plain, string);
        string += plain;
        if (*string == '"' || *string == '\\') {
            text_add(text, "\\%c", *string++);
        } else if (*string) {
            text_add(text, "\\u%04x", (unsigned)(unsigned char)*string++);
        }
    }
    text_add(text, "\"");
}

void text_add_csv(struct text *text, const char *string) {
    if (!strpbrk(string, ",\"\r\n")) {
        text_add(text, "%s", string);
        return;
    }
    text_add(text, "\"");
    for (; *string; string++) {
        text_add(text, *string == '"' ? "\"\"" : "%c", *string);
    }
    text_add(text, "\"");
}

void text_add_number(struct text *text, double number) {
    char digits[32];

    /* The fewest digits of 15, 16 and 17 that read back as the same number. */
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) {
            break;
        }
    }
    text_add(text, "%s", digits);
}

void text_add_wrapped(struct text *text, const char *words, size_t at, size_t indent) {
    enum { COLUMNS = 100 };
    bool begun = false;

    for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
        size_t size = strcspn(words, " ");

        if (begun && at + 1 + size > COLUMNS) {
            text_add(text, "\n%*s", (int)indent, "");
            at = indent;
        } else if (begun) {
            text_add(text, " ");
            at++;
        }
        text_add(text, "%.*s", (int)size, words);
        at += size;
        words += size;
        begun = true;
    }
    text_add(text, "\n");
}
