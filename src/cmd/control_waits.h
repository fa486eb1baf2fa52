/* What there is to tell of a mount that is not there: that it waits for its cluster, and for what.
 * Any thread. */
#pragma once
#include "cmd/control.h"

/* "the mount at MNT waits for its cluster since N s, asks ADDR:PORT, which does not answer". What
 * is not known is left out. */
void control_waits_text(struct control *control, char ret_text[512]);
/* The line of `shoal status`, where one waits; false: none does. */
bool control_waits_print(struct control *control, struct control_socket_connection *connection);
/* NULL for JSON, too. */
json_t *control_waits_json(struct control *control);
/* Where one waits; NULL: none does. */
const char *control_waits_place(struct control *control);
