/* The contract is in plain_text.h. */
#include "host/plain_text.h"
#include <string.h>

enum { DELETE = 0x7F, C1_LEAD = 0xC2, C1_FIRST = 0x80, C1_LAST = 0x9F };

void plain_text_piece(char *text, size_t size, bool lines, uint8_t *before) {
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        bool is_c1 = *before == C1_LEAD && byte >= C1_FIRST && byte <= C1_LAST;
        bool stays = lines && (byte == '\n' || byte == '\t');

        *before = byte;
        if (is_c1 && i > 0) {
            text[i - 1] = '?';
        }
        if (is_c1 || ((byte < ' ' || byte == DELETE) && !stays)) {
            text[i] = '?';
        }
    }
}

char *plain_text(char *text, bool lines) {
    uint8_t before = 0;

    plain_text_piece(text, strlen(text), lines, &before);
    return text;
}
