/* The contract is in plain_text.h. */
#include "host/plain_text.h"

enum { DELETE = 0x7F, C1_LEAD = 0xC2, C1_FIRST = 0x80, C1_LAST = 0x9F };

char *plain_text(char *text, bool lines) {
    for (char *at = text; *at; at++) {
        uint8_t byte = (uint8_t)*at;
        uint8_t next = (uint8_t)at[1];

        if (byte == C1_LEAD && next >= C1_FIRST && next <= C1_LAST) {
            at[0] = '?';
            at[1] = '?';
        } else if ((byte < ' ' || byte == DELETE) && !(lines && (byte == '\n' || byte == '\t'))) {
            *at = '?';
        }
    }
    return text;
}
