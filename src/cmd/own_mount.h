/* A node's own mount where a process of its own serves it: `shoal mount DIR MNT -o own`, as the
 * daemon starts it, one for each directory. What tells of it, whichever of both has died:
 *
 *     DIR/mount.lock    held by that process
 *     DIR/mount.place   where it mounts: from before until it has taken the mount away
 *     DIR/mount.channel what its requests come by, and what it counts of that, now and then
 *     DIR/mount.waits   while it has no session: why
 *
 * Nothing here waits for a mount that does not answer. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include "cmd/find.h"
#include <jansson.h>

/* Of fuse_mount_tuned, for a log. */
#define MOUNT_TUNED                                                                                \
    "/sys/module/fuse/parameters/enable_uring was N and is Y now, so that requests can come by "   \
    "io_uring: tune = no in shoal.conf, or -o tune=no, leaves it"

/* LEFT: its process has been killed, and the dead mount is still there. */
enum own_mount_state { OWN_MOUNT_NONE, OWN_MOUNT_LIVES, OWN_MOUNT_LEFT };

/* What the requests of a mount come by: fuse_mount_channel and more, as words. */
enum { OWN_MOUNT_WHY_BYTES = 512 };
struct own_mount_channel {
    const char *name; /* NULL: only its process knows, and what follows is nothing */
    bool may_stand_aside;
    uint64_t stood_aside, served_aside;
    char why[OWN_MOUNT_WHY_BYTES]; /* fuse_mount_channel_why */
};

/* A line of DIR/mount.channel, "NAME MAY STOOD SERVED WHY", and what it says: no name where it is
 * none. The printed line ends by NUL; its length is answered. */
size_t own_mount_channel_line(const struct own_mount_channel *channel,
                              char ret_line[OWN_MOUNT_WHY_BYTES + 64]);
void own_mount_channel_parse(const char *line, struct own_mount_channel *ret_channel);

struct own_mount {
    enum own_mount_state state;
    int process; /* of one that lives */
    struct own_mount_channel channel;
    char place[FIND_PATH_BYTES]; /* unless there is none */
};

struct fuse_mount;
void own_mount_channel_get(const struct fuse_mount *mount, struct own_mount_channel *ret_channel);
/* For a log: empty where the device was asked for. */
void own_mount_channel_print(const struct fuse_mount *mount,
                             char ret_line[OWN_MOUNT_WHY_BYTES + 64]);

/* What status tells of one that lives. */
json_t *own_mount_json(const struct own_mount *mount);

/* Of a directory that can't be looked at, as of one that has none: NONE. */
void own_mount_look(const char *directory, struct own_mount *ret_mount);
/* Takes the mount away, unless programs use it; one line in problem. Its process ends behind it. */
MUST_CHECK int own_mount_detach(const char *directory, char problem[512]);
/* That line, where programs use it. */
void own_mount_say_used(const char *place, char problem[512]);
/* Whether a process has the lock: one that mounts, serves, or ends its session. */
bool own_mount_runs(const char *directory);

/* For that process: before it mounts, and when its mount is gone. A line in problem. */
struct own_mount_holder;
MUST_CHECK int own_mount_take(const char *directory, const char *place,
                              struct own_mount_holder **ret_holder, char problem[512]);
/* Tells who looks what it is served by: at first, and as often as one likes. What can't be told is
 * not. Takes no holder (NULL), too. */
void own_mount_tell(struct own_mount_holder *holder, const struct fuse_mount *mount);
/* For the daemon that waits for it: why it has no session yet, an error. Takes no holder, too. */
void own_mount_tell_wait(struct own_mount_holder *holder, int result);
/* What was told so last: -ERR_TOO_MANY_SESSIONS or -ERR_TIMED_OUT, or 0, nothing. */
int own_mount_wait_read(const char *directory);
/* Before a process is started that may tell. */
void own_mount_wait_forget(const char *directory);
/* Takes NULL. */
void own_mount_leave(struct own_mount_holder *holder);
