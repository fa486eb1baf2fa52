/* Other nodes that do not answer this one: since when, what they have, and what waits for them. */
#pragma once
#include "cmd/control.h"
#include <jansson.h>

/* A line each. */
void control_away_print(struct control *control, struct control_socket_connection *connection);
/* An array of {node, address, for_s, targets, calls}; targets are numbers of the cluster. */
json_t *control_away_json(struct control *control);
