/* For status: by what data files are read and written. */
#pragma once
#include "cmd/control.h"
#include "env/env.h"

/* To a storage target's row: data_read_by, data_written_by, data_direct. */
void control_ways_add(json_t *target, const struct env_file_ways *ways);
void control_ways_print(struct control *control, struct control_socket_connection *connection);
