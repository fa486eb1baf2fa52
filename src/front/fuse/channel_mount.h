/* Mount points: checking, taking, leaving. One thread at a time. */
#pragma once
#include "front/fuse/fuse.h"

/* Whether a file system can be mounted there; what a killed Shoal left doesn't matter, and stays.
 * Answers the place without symbolic links, to be freed, or the error with its line. */
MUST_CHECK int mount_point_look(const char *path, char **ret_path, struct fuse_problem *problem);
/* The same of a place that it has answered: -ERR_LOOP where a symbolic link leads there now. */
MUST_CHECK int mount_point_look_again(const char *place, char **ret_path,
                                      struct fuse_problem *problem);
/* Whether this process may mount at all: 0 or -ERR_NOT_PERMITTED. */
MUST_CHECK int mount_may(const char *path, struct fuse_problem *problem);
/* A mount of ours: where, and the kernel's number of it, by which it is told from others. */
struct mount_place {
    char *path;
    const char *source;                                 /* for the table of mounts; the caller's */
    bool read_only, no_set_id, no_devices, no_programs; /* as mount(8) has them */
    char device[24];                                    /* major:minor; empty: never mounted */
    int spare_descriptor; /* let go when the mount is to end, which takes one; or -1 */
};
/* Frees what it holds. */
void mount_place_deinit(struct mount_place *place);

/* Mounts at place->path what is served through the descriptor of /dev/fuse, in place of what a
 * killed Shoal left there: until then who uses that gets ENOTCONN. */
MUST_CHECK int mount_attach(struct mount_place *place, int descriptor, uint32_t read_bytes_max,
                            struct fuse_problem *problem);
/* The next three ask that the connection lives (channel_dev_connected). */
bool mount_is_there(const struct mount_place *place); /* true also when that can't be told */
/* Takes it away; 0 also when somebody did. -ERR_IN_USE when programs use it; others when the table
 * of mounts can't be read, and nothing has changed. */
MUST_CHECK int mount_detach(struct mount_place *place);
/* Ends the connection and leaves the rest to mount_abort. Any thread, once it is attached. */
void mount_connection_abort(const struct mount_place *place);
/* Also when programs use it: their calls fail from here on. Ends the connection by the kernel's
 * control file system for FUSE; where that is refused, it ends with its last user. */
void mount_abort(struct mount_place *place);
