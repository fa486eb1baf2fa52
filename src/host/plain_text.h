/* Text from elsewhere (a path, the answer of a daemon, a name in a file system) on its way to a
 * terminal or a log: nothing in it is an order to the one or a line of its own in the other. */
#pragma once
#include "base/types.h"

/* Puts '?' in place of control characters, those of UTF-8's C1 included. lines: newlines and tabs
 * stay. Answers text. */
char *plain_text(char *text, bool lines);
/* Likewise of one piece after the other; *before is 0 at first. */
void plain_text_piece(char *text, size_t size, bool lines, uint8_t *before);
