/* What there is to tell of a mount that is not there: that it waits for its cluster, and for what;
 * or that it has died, where the daemon serves it itself and has not. Any thread. */
#pragma once
#include "cmd/control.h"

/* "the mount at MNT waits for its cluster since N s, asks ADDR:PORT, which does not answer". What
 * is not known is left out. */
void control_waits_text(struct control *control, char ret_text[512]);
/* What ended it, and what to do; false: nothing has, or it was taken away. */
bool control_ended_text(struct control *control, char ret_text[512]);
/* The line of `shoal status` about either; false: there is none. */
bool control_waits_print(struct control *control, struct control_socket_connection *connection);
json_t *control_waits_json(struct control *control);
json_t *control_ended_json(struct control *control);
/* Where one waits; NULL: none does. */
const char *control_waits_place(struct control *control);
