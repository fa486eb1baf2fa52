/* The mount of a daemon: in its own process, or in one that it starts and that outlives it, as its
 * configuration says. On the daemon's first thread, where nothing else is said. */
#pragma once
#include "cmd/control.h"
#include "cmd/own_mount.h"

/* Of one that `shoal umount` has met while it waited. */
void daemon_mount_print_given_up(const char *mount_point, char ret_text[512]);

/* It answers when this returns; or waits for its cluster, which may be so where a node has joined
 * and nobody answers within request_timeout_ms: then mount_waits is set. Or it was given up while
 * this waited: then 0, too, the stage is MOUNT_GIVEN_UP and one line in problem. One of this
 * directory in a process of its own that is there already stays. On failure nothing is mounted, and
 * one line is in problem. */
MUST_CHECK int daemon_mount_start(struct control *control, const char *mount_point,
                                  char problem[512]);
/* What `shoal up` has asked of a daemon that runs. */
void daemon_mount_wanted(struct control *control);
/* One that waits is made when it can be; a line a minute says that it waits. To be called often. */
void daemon_mount_go_on(struct control *control);
/* Says it, once, where the kernel has ended the mount of this process. Likewise. */
void daemon_mount_watch(struct control *control);
/* Stops that of this process, if there is one. */
void daemon_mount_end(struct control *control);
/* Gives up one that waits: before the daemon stops. */
void daemon_mount_give_up(struct control *control);
/* It is being made, or waits. Any thread, as the next two. */
bool daemon_mount_waits(struct control *control);
/* Where, and by which process: this one, or that of its own mount. */
void daemon_mounted_at(struct control *control, struct own_mount *ret_mount);
/* Takes it away, unless it is in use, or ends that it is waited for: an exit status, with a line.
 */
int daemon_unmount(struct control *control, struct control_socket_connection *connection,
                   enum control_unwanted by);
