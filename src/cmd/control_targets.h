/* For status: all targets of the cluster, by the newest map that this node has. */
#pragma once
#include "cmd/control.h"

/* An array: id (the number that `shoal target lost` takes), name, kind, node, state. */
json_t *control_targets_json(struct control *control);
void control_targets_print(struct control *control, struct control_socket_connection *connection);
