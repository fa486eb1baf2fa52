/* Mount points: checking, taking, leaving. */
#include "front/fuse/channel_mount.h"
#include "env/errno_map.h"
#include "front/fuse/channel_way.h"
#include "front/fuse/mount_table.h"
#include "front/fuse/problem.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_SYSTEM_TYPE "fuse.shoal"
#define TABLE_PATH "/proc/self/mountinfo"
#define CONTROL_PATH "/sys/fs/fuse/connections"

static void file_closep(FILE **file) {
    if (*file)
        (void)fclose(*file);
}

static void charp_freep(char **text) {
    free(*text);
}

/* What is mounted at a place, on top. */
struct mount_found {
    char device[24];
    char type[64];
};

typedef void mount_visit_fn(void *context, const struct mount_line *line);

/* Shows each line of the table of mounts; those further down lie on top. An error: the table can't
 * be read. */
static int mounts_visit(mount_visit_fn *visit, void *context) {
    _cleanup_(file_closep) FILE *table = fopen(TABLE_PATH, "re");
    _cleanup_(charp_freep) char *text = NULL;
    size_t text_bytes = 0;
    struct mount_line line;

    if (!table)
        return err_from_errno(errno);
    while (getline(&text, &text_bytes, table) > 0) {
        if (mount_line_parse(text, &line))
            visit(context, &line);
    }
    return ferror(table) ? -ERR_IO : 0;
}

static int refuse_blind(const char *path, int error, struct fuse_problem *problem) {
    return problem_set(problem, error, "%s: %s cannot be read: %s%s", path, TABLE_PATH,
                       err_text(error),
                       error == -ERR_TOO_MANY_OPEN ? "; raise the limit (ulimit -n)" : "");
}

struct mount_wanted {
    const char *path;
    struct mount_found *found;
    bool is_there;
};

static void mount_compare(void *context, const struct mount_line *line) {
    struct mount_wanted *wanted = context;

    if (strcmp(line->mount_point, wanted->path) == 0) {
        (void)snprintf(wanted->found->type, sizeof(wanted->found->type), "%s", line->type);
        (void)snprintf(wanted->found->device, sizeof(wanted->found->device), "%s", line->device);
        wanted->is_there = true;
    }
}

/* -ERR_NOT_FOUND when nothing is mounted there; else the table can't be read. */
static int mount_find(const char *path, struct mount_found *ret_found) {
    struct mount_wanted wanted = {.path = path, .found = ret_found};
    int r = mounts_visit(mount_compare, &wanted);

    return r < 0 ? r : wanted.is_there ? 0 : -ERR_NOT_FOUND;
}

/* realpath, except that the last component is left alone: asking a dead mount for it fails. */
static char *path_of_dead(const char *path) {
    char *for_parent = strdup(path);
    char *for_name = strdup(path);
    char *parent = for_parent ? realpath(dirname(for_parent), NULL) : NULL;
    char *result = NULL;

    if (parent && for_name &&
        asprintf(&result, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, basename(for_name)) < 0)
        result = NULL;
    free(parent);
    free(for_name);
    free(for_parent);
    return result;
}

/* The path without the current directory's place, "." and repeated slashes. NULL where it has
 * "..": what that names is a matter of the links before it. */
static char *path_of_text(const char *path) {
    char *result = NULL;
    char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *whole = NULL;
    size_t used = 0;

    if (asprintf(&whole, "%s/%s", cwd ? cwd : "", path) >= 0) {
        size_t size = strlen(whole) + 2;

        result = malloc(size);
        for (char *rest = whole, *part; result && (part = strsep(&rest, "/")) != NULL;) {
            if (strcmp(part, "..") == 0) {
                free(result);
                result = NULL;
            } else if (part[0] != '\0' && strcmp(part, ".") != 0) {
                used += (size_t)snprintf(result + used, size - used, "/%s", part);
            }
        }
        if (result && used == 0)
            (void)snprintf(result, size, "/");
        free(whole);
    }
    free(cwd);
    return result;
}

/* What mounts of Shoal there are for a path. */
struct mount_place_of {
    const char *path;
    bool at, above;
    char *source; /* of the last one; to be freed */
};

static void mount_place_see(void *context, const struct mount_line *line) {
    struct mount_place_of *place = context;
    size_t size = strlen(line->mount_point);

    if (strcmp(line->type, FILE_SYSTEM_TYPE) == 0 &&
        strncmp(place->path, line->mount_point, size) == 0) {
        place->at |= place->path[size] == '\0';
        place->above |= place->path[size] == '/';
        if (place->path[size] == '\0' || place->path[size] == '/') {
            free(place->source);
            place->source = strdup(line->source);
        }
    }
}

static struct mount_place_of mount_place_of(const char *path) {
    struct mount_place_of place = {.path = path};

    if (path && mounts_visit(mount_place_see, &place) < 0)
        place.at = place.above = false;
    return place;
}

char *fuse_path_source(const char *path) {
    _cleanup_(charp_freep) char *text = path_of_text(path);
    struct mount_place_of place = mount_place_of(text);

    return place.source;
}

int fuse_path_unmount(const char *path) {
    _cleanup_(charp_freep) char *text = path_of_text(path);
    struct mount_place_of place = mount_place_of(text);

    free(place.source);
    if (!place.at)
        return -ERR_NOT_FOUND;
    int r = channel_path_unmount(text, 0);
    return r < 0 ? err_from_errno(-r) : 0;
}

bool fuse_path_in_mount(const char *path, char **ret_path, bool *ret_is_mount_point) {
    char *text = path_of_text(path);
    struct mount_place_of place = mount_place_of(text);

    if (!place.at && !place.above) {
        free(text);
        free(place.source);
        text = path_of_dead(path);
        place = mount_place_of(text);
        place.above = false;
    }
    free(place.source);
    *ret_is_mount_point = place.at;
    if (!place.at && !place.above) {
        free(text);
        return false;
    }
    *ret_path = text;
    return true;
}

static int refuse_unreachable(const char *path, int error, struct fuse_problem *problem) {
    switch (error) {
    case ENOENT:
        return problem_set(problem, -ERR_NOT_FOUND,
                           "%s: the mount point doesn't exist; create it: mkdir -p %s", path, path);
    case ENOTDIR:
        return problem_set(problem, -ERR_NOT_DIRECTORY,
                           "%s: the mount point is not a directory; name one", path);
    default:
        return problem_set(problem, -ERR_ACCESS, "%s: the mount point can't be reached: %s", path,
                           strerror(error));
    }
}

/* What the kernel answers for a mount whose server is gone. Over io_uring a request that meets the
 * end of a server's thread gets ECANCELED. */
static bool is_of_dead(int error) {
    return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED;
}

/* A killed server's connection lasts until the kernel has ended that process's I/O, up to a second,
 * and until then what the kernel has cached is answered. It caches no statfs, so that waits. */
bool fuse_path_is_dead(const char *path) {
    struct statfs space;

    return statfs(path, &space) < 0 && is_of_dead(errno);
}

static int refuse_mounted(const char *path, const char *type, struct fuse_problem *problem) {
    return problem_set(problem, -ERR_IN_USE,
                       "%s: a file system of type %s is mounted there already; unmount it, or name "
                       "another directory",
                       path, type);
}

/* What is mounted at one place, one on top of the other. */
struct mount_stack {
    const char *path;
    unsigned count;
    char foreign[64]; /* the type of the topmost that is none of ours; empty: all are */
};

static void mount_stack_see(void *context, const struct mount_line *line) {
    struct mount_stack *stack = context;

    if (strcmp(line->mount_point, stack->path) == 0) {
        stack->count++;
        if (strcmp(line->type, FILE_SYSTEM_TYPE) != 0)
            (void)snprintf(stack->foreign, sizeof(stack->foreign), "%s", line->type);
    }
}

/* What is on top there doesn't answer: whether all that is mounted there can be cleared. */
static int stale_look(const char *path, char **ret_path, struct fuse_problem *problem) {
    _cleanup_(charp_freep) char *place = path_of_dead(path);
    struct mount_stack stack = {.path = place};
    struct mount_found found;
    int r = place ? mount_find(place, &found) : -ERR_NOT_FOUND;

    if (r == -ERR_NOT_FOUND)
        return problem_set(problem, -ERR_IN_USE,
                           "%s: the file system there doesn't answer; unmount it", path);
    if (r < 0)
        return refuse_blind(path, r, problem);
    if (strcmp(found.type, FILE_SYSTEM_TYPE) != 0)
        return problem_set(problem, -ERR_IN_USE,
                           "%s: a dead mount of type %s is there; unmount it with: umount -l %s",
                           path, found.type, path);
    r = mounts_visit(mount_stack_see, &stack);
    if (r < 0)
        return refuse_blind(path, r, problem);
    if (stack.foreign[0])
        return refuse_mounted(path, stack.foreign, problem);
    *ret_path = TAKE_PTR(place);
    return 0;
}

/* What is asked about the path got an error: a dead mount's, or one to be told. */
static int unanswered_look(const char *path, int error, char **ret_path,
                           struct fuse_problem *problem) {
    return is_of_dead(error) ? stale_look(path, ret_path, problem)
                             : refuse_unreachable(path, error, problem);
}

static int refuse_mounting(const char *path, struct fuse_problem *problem) {
    return problem_set(problem, -ERR_NOT_PERMITTED, "%s: mounting needs root", path);
}

static int refuse_changed(const char *path, struct fuse_problem *problem) {
    return problem_set(problem, -ERR_LOOP,
                       "%s: a symbolic link has come into the way to the mount point since it was "
                       "looked at; name a directory that nobody else may move",
                       path);
}

int mount_may(const char *path, struct fuse_problem *problem) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    unsigned index = CAP_TO_INDEX(CAP_SYS_ADMIN);

    if (syscall(SYS_capget, &header, data) == 0 &&
        !(data[index].effective & CAP_TO_MASK(CAP_SYS_ADMIN)))
        return refuse_mounting(path, problem);
    return 0;
}

int mount_point_look(const char *path, char **ret_path, struct fuse_problem *problem) {
    _cleanup_(charp_freep) char *place = NULL;
    struct mount_found found;
    struct stat attributes;

    if (stat(path, &attributes) < 0)
        return unanswered_look(path, errno, ret_path, problem);
    if (!S_ISDIR(attributes.st_mode))
        return refuse_unreachable(path, ENOTDIR, problem);
    place = realpath(path, NULL);
    if (!place)
        return unanswered_look(path, errno, ret_path, problem);
    int r = mount_find(place, &found);
    if (r < 0 && r != -ERR_NOT_FOUND)
        return refuse_blind(path, r, problem);
    if (r == 0) {
        if (strcmp(found.type, FILE_SYSTEM_TYPE) == 0 && fuse_path_is_dead(place))
            return stale_look(place, ret_path, problem);
        return refuse_mounted(path, found.type, problem);
    }
    *ret_path = TAKE_PTR(place);
    return 0;
}

int mount_point_look_again(const char *place, char **ret_path, struct fuse_problem *problem) {
    _cleanup_(charp_freep) char *path = NULL;
    int r = mount_point_look(place, &path, problem);

    if (r == 0 && strcmp(path, place) != 0)
        return refuse_changed(place, problem);
    if (r == 0)
        *ret_path = TAKE_PTR(path);
    return r;
}

/* Takes away the mounts at the place whose servers are gone. All are counted before, so that
 * nothing but the caller's mount follows when the last is gone. */
static int stale_clear(const char *path, struct fuse_problem *problem) {
    struct mount_stack stack = {.path = path};
    struct mount_found found;
    int r = mounts_visit(mount_stack_see, &stack);

    if (r < 0)
        return refuse_blind(path, r, problem);
    if (stack.foreign[0])
        return refuse_mounted(path, stack.foreign, problem);
    for (unsigned left = stack.count; left > 0; left--) {
        if (!fuse_path_is_dead(path))
            return mount_find(path, &found) == 0 ? refuse_mounted(path, found.type, problem) : 0;
        if (channel_path_unmount(path, MNT_DETACH) == -EPERM)
            return problem_set(problem, -ERR_NOT_PERMITTED,
                               "%s: clearing the mount that a killed Shoal left needs root", path);
    }
    return 0;
}

int fuse_path_clear(const char *path) {
    struct fuse_problem problem;

    return stale_clear(path, &problem);
}

static unsigned long flags_of(const struct mount_place *place) {
    return MS_NOATIME | (place->read_only ? MS_RDONLY : 0UL) |
           (place->no_set_id ? MS_NOSUID : 0UL) | (place->no_devices ? MS_NODEV : 0UL) |
           (place->no_programs ? MS_NOEXEC : 0UL);
}

/* By the way, as whoever owns a directory on it may have changed it since it was looked at. */
static int way_attach(struct mount_place *place, const struct channel_way *way, const char *options,
                      struct fuse_problem *problem) {
    struct mount_found found;
    /* Access times are set by utimes only, so the kernel needn't keep any. */
    int r = channel_way_mount(way, place->source, FILE_SYSTEM_TYPE, flags_of(place), options);

    if (r == -EPERM)
        return refuse_mounting(place->path, problem);
    if (r == -ENOTDIR)
        return refuse_changed(place->path, problem);
    if (r < 0)
        return problem_set(problem, -ERR_IO, "%s: mounting failed: %s", place->path, strerror(-r));
    r = mount_find(place->path, &found);
    if (r < 0) {
        (void)!channel_way_unmount(way, MNT_DETACH);
        return r == -ERR_NOT_FOUND ? problem_set(problem, -ERR_IO, "%s: %s doesn't list the mount",
                                                 place->path, TABLE_PATH)
                                   : refuse_blind(place->path, r, problem);
    }
    memcpy(place->device, found.device, sizeof(place->device));
    return 0;
}

int mount_attach(struct mount_place *place, int descriptor, uint32_t read_bytes_max,
                 struct fuse_problem *problem) {
    struct channel_way way;
    char options[160];
    int r;

    place->spare_descriptor = open("/", O_PATH | O_CLOEXEC);
    if (place->spare_descriptor < 0)
        return refuse_blind(place->path, err_from_errno(errno), problem);
    (void)snprintf(options, sizeof(options),
                   "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,"
                   "max_read=%u",
                   descriptor, read_bytes_max);
    r = stale_clear(place->path, problem);
    if (r < 0)
        return r;
    r = channel_way_open(place->path, &way);
    if (r == -ENOTDIR)
        return refuse_changed(place->path, problem);
    if (r < 0)
        return refuse_unreachable(place->path, -r, problem);
    r = way_attach(place, &way, options, problem);
    channel_way_close(&way);
    return r;
}

/* 0 when ours is still the one on top there, -ERR_NOT_FOUND, or why that can't be told. */
static int mount_look(const struct mount_place *place) {
    struct mount_found found;
    int r = place->device[0] ? mount_find(place->path, &found) : -ERR_NOT_FOUND;

    if (r == 0 &&
        (strcmp(found.device, place->device) != 0 || strcmp(found.type, FILE_SYSTEM_TYPE) != 0))
        return -ERR_NOT_FOUND;
    return r;
}

bool mount_is_there(const struct mount_place *place) {
    return mount_look(place) != -ERR_NOT_FOUND;
}

int mount_detach(struct mount_place *place) {
    int r = mount_look(place);

    if (r < 0)
        return r == -ERR_NOT_FOUND ? 0 : r;
    return channel_path_unmount(place->path, 0) == -EBUSY ? -ERR_IN_USE : 0;
}

/* The number behind the colon names the connection. */
void mount_connection_abort(const struct mount_place *place) {
    const char *number = strchr(place->device, ':');
    char path[80];
    FILE *file;

    if (!number)
        return;
    (void)snprintf(path, sizeof(path), CONTROL_PATH "/%s/abort", number + 1);
    file = fopen(path, "we");
    if (!file && mount("fusectl", CONTROL_PATH, "fusectl", 0, NULL) == 0)
        file = fopen(path, "we");
    if (file) {
        (void)fputs("1", file);
        (void)fclose(file);
    }
}

static void spare_close(struct mount_place *place) {
    if (place->spare_descriptor >= 0)
        (void)close(place->spare_descriptor);
    place->spare_descriptor = -1;
}

void mount_place_deinit(struct mount_place *place) {
    spare_close(place);
    free(place->path);
    place->path = NULL;
}

/* The threads that serve end with the connection, so it has to end. Where not even the spare
 * descriptor helps, the name is taken away unseen: the connection is one of ours still. */
void mount_abort(struct mount_place *place) {
    if (!place->device[0])
        return;
    spare_close(place);
    mount_connection_abort(place);
    if (mount_is_there(place) && channel_path_unmount(place->path, MNT_DETACH) == -EMFILE)
        (void)umount2(place->path, MNT_DETACH | UMOUNT_NOFOLLOW);
}
