/* The way to a mount point, step by step and along no symbolic link: whoever may rename what leads
 * to it, or lay a link there, cannot bring root to mount or unmount somewhere else. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct channel_way {
    int folder; /* that the mount point lies in; -1: none */
    char name[NAME_BYTES_MAX + 1];
};

/* path: absolute, without symbolic links, as it was when somebody looked. 0 or -errno: ENOTDIR also
 * where a symbolic link is now. A mount point that does not answer is not asked. */
MUST_CHECK int channel_way_open(const char *path, struct channel_way *ret_way);
void channel_way_close(struct channel_way *way);

/* mount(2) of the type at its end, which has to be a directory and no link; 0 or -errno. */
MUST_CHECK int channel_way_mount(const struct channel_way *way, const char *source,
                                 const char *type, unsigned long flags, const char *options);
/* umount2(2) there; 0 or -errno. */
MUST_CHECK int channel_way_unmount(const struct channel_way *way, int flags);
/* The same of a path. */
MUST_CHECK int channel_path_unmount(const char *path, int flags);
