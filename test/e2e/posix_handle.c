/* Handles of files, by which NFS servers and programs come back to them. */
#include "posix.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
};

static void handle_get(const char *name, struct handle *ret_handle) {
    int mount_id;

    ret_handle->head.handle_bytes = sizeof ret_handle->bytes;
    WORKS(name_to_handle_at(AT_FDCWD, name, &ret_handle->head, &mount_id, 0));
}

static int handle_open(struct handle *handle, int flags) {
    int here_fd = WORKS(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int fd = open_by_handle_at(here_fd, &handle->head, flags | O_CLOEXEC);
    int error = errno;

    WORKS(close(here_fd));
    errno = error;
    return fd;
}

/* The kernel drops all that it remembers of names and inodes, and that nobody uses. */
static void forget_all(void) {
    int fd = WORKS(open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));

    HOLDS(WORKS(write(fd, "2", 1)) == 1);
    WORKS(close(fd));
}

static bool fd_holds(int fd, const char *text) {
    char data[64];
    ssize_t got = WORKS(pread(fd, data, sizeof data, 0));

    return (size_t)got == strlen(text) && memcmp(data, text, (size_t)got) == 0;
}

void posix_handle_bad(void) {
    struct handle handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount_id;

    FAILS(EBADF, name_to_handle_at(999, "file", &handle.head, &mount_id, 0));
    make_file("file", 0644, "text");
    handle_get("file", &handle);
    FAILS(EBADF, open_by_handle_at(999, &handle.head, O_RDONLY));
    handle.head.handle_bytes = MAX_HANDLE_SZ + 1;
    FAILS(EINVAL, handle_open(&handle, O_RDONLY));
}

void posix_handle_small(void) {
    struct handle handle = {.head = {.handle_bytes = 0}};
    int mount_id;

    FAILS(EOVERFLOW, name_to_handle_at(AT_FDCWD, ".", &handle.head, &mount_id, 0));
    HOLDS(handle.head.handle_bytes > 0 && handle.head.handle_bytes <= MAX_HANDLE_SZ);
}

void posix_handle_not_root(void) {
    struct handle handle;

    make_file("file", 0644, "text");
    handle_get("file", &handle);
    become(NOBODY, NOBODY, 0);
    FAILS(EPERM, handle_open(&handle, O_RDONLY));
    become(0, 0, 0);
}

void posix_handle_of_link(void) {
    struct handle handle;
    char target[16];

    WORKS(symlink("target", "link"));
    handle_get("link", &handle);
    forget_all();
    FAILS(ELOOP, handle_open(&handle, O_RDONLY));
    int fd = WORKS(handle_open(&handle, O_PATH));
    HOLDS(WORKS(readlinkat(fd, "", target, sizeof target)) == 6);
}

/* Numbers that nobody has: two words of the inode's, one of the generation's, each changed where
 * what comes out is far from any that there is. */
void posix_handle_forged(void) {
    static const unsigned char places[] = {2, 7, 8, 11};
    struct handle handle;

    make_file("file", 0644, "text");
    handle_get("file", &handle);
    forget_all();
    HOLDS(handle.head.handle_bytes >= 12);
    for (size_t i = 0; i < sizeof places; i++) {
        struct handle forged = handle;

        forged.bytes[places[i]] ^= 0x55;
        FAILS(ESTALE, handle_open(&forged, O_RDONLY));
    }
    WORKS(close(WORKS(handle_open(&handle, O_RDONLY))));
}

void posix_handle_gone(void) {
    struct handle handle;

    make_file("file", 0644, "text");
    handle_get("file", &handle);
    WORKS(unlink("file"));
    FAILS(ESTALE, handle_open(&handle, O_RDONLY));
    make_file("file", 0644, "other");
    FAILS(ESTALE, handle_open(&handle, O_RDONLY));
    make_directory("directory", 0755);
    handle_get("directory", &handle);
    WORKS(rmdir("directory"));
    forget_all();
    FAILS(ESTALE, handle_open(&handle, O_RDONLY));
}

void posix_handle_forgotten(void) {
    struct handle handle, root;

    make_directory("a", 0755);
    make_directory("a/b", 0755);
    make_file("a/b/file", 0640, "text");
    handle_get("a/b/file", &handle);
    WORKS(rename("a/b/file", "a/moved"));
    forget_all();
    int fd = WORKS(handle_open(&handle, O_RDWR));
    HOLDS(fd_holds(fd, "text"));
    HOLDS(WORKS(pwrite(fd, "more", 4, 4)) == 4);
    WORKS(close(fd));
    forget_all();
    HOLDS(holds_text("a/moved", "textmore"));
    handle_get("/proc/self/cwd/..", &root);
    forget_all();
    WORKS(close(WORKS(handle_open(&root, O_RDONLY))));
    HOLDS(is_there("a/moved"));
}

/* It has its place again: the way up from it is known. */
void posix_handle_of_directory(void) {
    struct handle handle;
    char path[PATH_MAX], wanted[PATH_MAX];

    make_directory("a", 0755);
    make_directory("a/b", 0700);
    make_directory("a/b/c", 0755);
    make_file("a/b/file", 0644, "text");
    WORKS(chown("a/b", SOMEBODY, SOMEGROUP));
    HOLDS(realpath("a/b/c", wanted));
    handle_get("a/b/c", &handle);
    forget_all();
    int fd = WORKS(handle_open(&handle, O_RDONLY | O_DIRECTORY));
    WORKS(fchdir(fd));
    HOLDS(getcwd(path, sizeof path) && strcmp(path, wanted) == 0);
    HOLDS(holds_text("../file", "text"));
}

/* Its names are gone, and somebody has it open. */
void posix_handle_of_open(void) {
    struct handle handle;

    make_file("file", 0644, "text");
    int open_fd = WORKS(open("file", O_RDWR | O_CLOEXEC));
    handle_get("file", &handle);
    WORKS(unlink("file"));
    forget_all();
    int fd = WORKS(handle_open(&handle, O_RDONLY));
    HOLDS(fd_holds(fd, "text"));
    WORKS(close(open_fd));
    HOLDS(fd_holds(fd, "text"));
    WORKS(close(fd));
    forget_all();
    FAILS(ESTALE, handle_open(&handle, O_RDONLY));
}
