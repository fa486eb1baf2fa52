/* The answer to a check on its way to a terminal: lines of the answer, notes of progress, and what
 * went wrong, which fsck_report.h marks. They come in pieces of any size. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fsck_lines {
    FILE *answer, *notes;
    bool progress;  /* notes of it are wanted */
    bool inside;    /* of a line; this and what follows: its own */
    char note;      /* FSCK_ of the line; 0: it is of the answer */
    uint8_t before; /* of plain_text */
};

/* struct fsck_lines as context, for whoever gives text away. */
void fsck_lines_show(void *context, const char *text, size_t size);
