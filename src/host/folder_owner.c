/* A walk over the whole tree, by descriptors that follow no link. */
#include "host/folder_owner.h"
#include "env/env_linux.h"
#include "env/errno_map.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16, OTHERS_WRITE = 0022 };

/* One place of the walk. */
struct step {
    const struct step *above; /* NULL: the root */
    const char *name;
    unsigned depth;
};

static size_t step_print(const struct step *step, char *text, size_t size) {
    size_t used = step->above ? step_print(step->above, text, size) : 0;
    const char *between = used > 0 ? "/" : "";
    int more = snprintf(text + used, size - used, "%s%s", between, step->name);

    return MIN(used + (size_t)MAX(more, 0), size - 1);
}

static int status_check(const struct stat *status, const struct step *step,
                        struct folder_stranger *ret_stranger) {
    bool has_mode = S_ISDIR(status->st_mode) || S_ISREG(status->st_mode);
    bool is_theirs = status->st_uid != geteuid();

    if (!is_theirs && !(has_mode && (status->st_mode & OTHERS_WRITE))) {
        return 0;
    }
    *ret_stranger = (struct folder_stranger){.uid = status->st_uid, .is_theirs = is_theirs};
    (void)step_print(step, ret_stranger->path, sizeof ret_stranger->path);
    return -ERR_NOT_PERMITTED;
}

static int tree_check(int fd, const struct step *step, struct folder_stranger *ret_stranger);

/* What has gone meanwhile is not there; what may not be looked at is told by whoever opens it. */
static int entry_check(int parent_fd, const struct step *step,
                       struct folder_stranger *ret_stranger) {
    struct stat status;

    if (fstatat(parent_fd, step->name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    int r = status_check(&status, step, ret_stranger);
    if (r < 0 || !S_ISDIR(status.st_mode) || step->depth >= DEPTH_MAX) {
        return r;
    }
    int fd = openat(parent_fd, step->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? 0 : tree_check(fd, step, ret_stranger);
}

static bool is_passed_over(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0;
}

/* Closes fd. */
static int tree_check(int fd, const struct step *step, struct folder_stranger *ret_stranger) {
    DIR *directory = fdopendir(fd);
    struct dirent *found;
    int r = 0;

    if (!directory) {
        r = err_from_errno(errno);
        close(fd);
        return r;
    }
    while (r == 0 && (found = readdir(directory))) {
        const struct step next = {step, found->d_name, step->depth + 1};

        if (!is_passed_over(found->d_name)) {
            r = entry_check(dirfd(directory), &next, ret_stranger);
        }
    }
    closedir(directory);
    return r;
}

int folder_owner_check(struct env *env, struct folder_stranger *ret_stranger) {
    const struct step root = {NULL, "", 0};
    struct stat status;
    int root_fd = env_linux_root(env);

    if (fstat(root_fd, &status) != 0) {
        return err_from_errno(errno);
    }
    int r = status_check(&status, &root, ret_stranger);
    if (r < 0) {
        return r;
    }
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_from_errno(errno) : tree_check(fd, &root, ret_stranger);
}
