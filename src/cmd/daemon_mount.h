/* The mount of a daemon: in its own process, or in one that it starts and that outlives it, as its
 * configuration says. All on the daemon's first thread but daemon_mounted_at, which any may ask. */
#pragma once
#include "cmd/control.h"
#include "cmd/own_mount.h"

/* It answers when this returns. One of this directory in a process of its own that is there already
 * stays. On failure nothing is mounted, and one line is in problem. */
MUST_CHECK int daemon_mount_start(struct control *control, const char *mount_point,
                                  char problem[512]);
/* What `shoal up` has asked of a daemon that runs. */
void daemon_mount_wanted(struct control *control);
/* Where, and by which process: this one, or that of its own mount. */
void daemon_mounted_at(struct control *control, struct own_mount *ret_mount);
/* Takes it away, unless it is in use: an exit status, with a line. */
int daemon_unmount(struct control *control, struct control_socket_connection *connection);
