/* Texts from elsewhere (paths, names, what other processes tell) in JSON, which is UTF-8. */
#pragma once
#include <jansson.h>

/* As it is; where it is not UTF-8, with '?' in place of each byte that is not ASCII. NULL: there is
 * no text, or no memory, and "o?" makes null of it. */
json_t *json_text(const char *text);
