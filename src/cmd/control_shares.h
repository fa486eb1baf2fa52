/* Who has met his share of what users share, as far as this node knows: at its own mount where the
 * daemon serves it, at its metadata targets, and, on the manager's node, at mounts whose processes
 * have told. The last of each. */
#pragma once
#include "cmd/control.h"
#include <jansson.h>

/* A line each. */
void control_shares_print(struct control *control, struct control_socket_connection *connection);
/* An array of {user, share, at, session}; session is 0 but for mounts of other processes. */
json_t *control_shares_json(struct control *control);
