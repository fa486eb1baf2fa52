/* The contract is in channel_way.h. The kernel takes descriptors for mount points by their names in
 * /proc only. */
#include "front/fuse/channel_way.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum {
    STEP_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    TEXT_BYTES = NAME_BYTES_MAX + 40,
};

/* Goes one step; the descriptor before is closed. */
static int step(int *folder, const char *name) {
    int next = openat(*folder, name, STEP_FLAGS);
    int r = next < 0 ? -errno : 0;

    (void)close(*folder);
    *folder = next;
    return r;
}

int channel_way_open(const char *path, struct channel_way *ret_way) {
    struct channel_way way = {.folder = open("/", STEP_FLAGS), .name = "."};
    const char *at = path + strspn(path, "/");
    int r = way.folder < 0 ? -errno : path[0] == '/' ? 0 : -EINVAL;

    while (r == 0 && *at) {
        size_t size = strcspn(at, "/");
        const char *next = at + size + strspn(at + size, "/");

        if (size > NAME_BYTES_MAX) {
            r = -ENAMETOOLONG;
            break;
        }
        memcpy(way.name, at, size);
        way.name[size] = '\0';
        if (strcmp(way.name, "..") == 0)
            r = -EINVAL;
        else if (*next)
            r = step(&way.folder, way.name);
        at = next;
    }
    if (r < 0) {
        channel_way_close(&way);
        return r;
    }
    *ret_way = way;
    return 0;
}

void channel_way_close(struct channel_way *way) {
    if (way->folder >= 0)
        (void)close(way->folder);
    way->folder = -1;
}

int channel_way_mount(const struct channel_way *way, const char *source, const char *type,
                      unsigned long flags, const char *options) {
    char text[TEXT_BYTES];
    int place = openat(way->folder, way->name, STEP_FLAGS);
    int r;

    if (place < 0)
        return -errno;
    (void)snprintf(text, sizeof(text), "/proc/self/fd/%d", place);
    r = mount(source, text, type, flags, options) < 0 ? -errno : 0;
    (void)close(place);
    return r;
}

int channel_way_unmount(const struct channel_way *way, int flags) {
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "/proc/self/fd/%d/%s", way->folder, way->name);
    return umount2(text, flags | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

int channel_path_unmount(const char *path, int flags) {
    struct channel_way way;
    int r = channel_way_open(path, &way);

    if (r < 0)
        return r;
    r = channel_way_unmount(&way, flags);
    channel_way_close(&way);
    return r;
}
