/* The contract is in json_text.h. */
#include "cmd/json_text.h"
#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text) {
    json_t *json = json_string(text);
    char *plain = json || !text ? NULL : strdup(text);

    if (plain) {
        for (char *at = plain; *at; at++) {
            *at = (unsigned char)*at < 128 ? *at : '?';
        }
        json = json_string(plain);
        free(plain);
    }
    return json;
}
