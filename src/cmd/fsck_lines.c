/* The contract is in fsck_lines.h. */
#include "cmd/fsck_lines.h"
#include "base/types.h"
#include "cmd/fsck_report.h"
#include "host/plain_text.h"
#include <string.h>

/* Names in the file system are anybody's. */
static void print_piece(struct fsck_lines *lines, const char *text, size_t size, FILE *to) {
    char piece[4096];

    for (size_t at = 0; at < size; at += sizeof piece) {
        size_t part = MIN(size - at, sizeof piece);

        memcpy(piece, text + at, part);
        plain_text_piece(piece, part, true, &lines->before);
        fwrite(piece, 1, part, to);
    }
}

void fsck_lines_show(void *context, const char *text, size_t size) {
    struct fsck_lines *lines = context;

    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t part = end ? (size_t)(end - text) + 1 : size;
        size_t skip = 0;

        if (!lines->inside) {
            lines->note = text[0] == FSCK_NOTE || text[0] == FSCK_ERROR ? text[0] : 0;
            skip = lines->note != 0;
            if (lines->note == FSCK_ERROR || (lines->note && lines->progress)) {
                fputs("shoal fsck: ", lines->notes);
            }
        }
        if (lines->note != FSCK_NOTE || lines->progress) {
            print_piece(lines, text + skip, part - skip,
                        lines->note ? lines->notes : lines->answer);
        }
        lines->inside = !end;
        text += part;
        size -= part;
    }
    fflush(lines->answer);
}
