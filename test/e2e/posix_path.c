/* What can be wrong with a path, for every operation that takes one. */
#include "posix.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* What the last name must stand for. */
enum object { NEW, A_FILE, A_DIRECTORY, A_LINK };

enum { AT = 1, FOLLOWS = 2, CHANGES = 4 };

struct path_call {
    const char *operation;
    int (*call)(int directory, const char *path);
    enum object object;
    unsigned flags;
};

static int call_open(int directory, const char *path) {
    return openat(directory, path, O_RDONLY | O_CLOEXEC);
}

static int call_open_write(int directory, const char *path) {
    return openat(directory, path, O_RDWR | O_CLOEXEC);
}

static int call_create(int directory, const char *path) {
    return openat(directory, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
}

static int call_stat(int directory, const char *path) {
    struct stat status;

    return fstatat(directory, path, &status, 0);
}

static int call_lstat(int directory, const char *path) {
    struct stat status;

    return fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW);
}

static int call_chmod(int directory, const char *path) {
    return fchmodat(directory, path, 0600, 0);
}

static int call_chown(int directory, const char *path) {
    return fchownat(directory, path, geteuid(), getegid(), 0);
}

static int call_lchown(int directory, const char *path) {
    return fchownat(directory, path, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW);
}

static int call_utimensat(int directory, const char *path) {
    return utimensat(directory, path, NULL, 0);
}

static int call_access(int directory, const char *path) {
    return faccessat(directory, path, W_OK, AT_EACCESS);
}

static int call_truncate(int directory, const char *path) {
    (void)directory;
    return truncate(path, 0);
}

static int call_mkdir(int directory, const char *path) {
    return mkdirat(directory, path, 0755);
}

static int call_rmdir(int directory, const char *path) {
    return unlinkat(directory, path, AT_REMOVEDIR);
}

static int call_link_from(int directory, const char *path) {
    return linkat(directory, path, AT_FDCWD, "made", 0);
}

static int call_link_to(int directory, const char *path) {
    return linkat(AT_FDCWD, "other", directory, path, 0);
}

static int call_symlink(int directory, const char *path) {
    return symlinkat("target", directory, path);
}

static int call_readlink(int directory, const char *path) {
    char target[8];

    return (int)readlinkat(directory, path, target, sizeof target);
}

static int call_unlink(int directory, const char *path) {
    return unlinkat(directory, path, 0);
}

static int call_rename_from(int directory, const char *path) {
    return renameat(directory, path, AT_FDCWD, "made");
}

static int call_rename_to(int directory, const char *path) {
    return renameat(AT_FDCWD, "other", directory, path);
}

static int call_opendir(int directory, const char *path) {
    (void)directory;
    DIR *stream = opendir(path);

    return stream ? closedir(stream) : -1;
}

static int call_mknod(int directory, const char *path) {
    return mknodat(directory, path, S_IFREG | 0644, 0);
}

static int call_mkfifo(int directory, const char *path) {
    return mkfifoat(directory, path, 0644);
}

static int call_statvfs(int directory, const char *path) {
    struct statvfs space;

    (void)directory;
    return statvfs(path, &space);
}

static const struct path_call calls[] = {
    {"open", call_open, A_FILE, AT | FOLLOWS},
    {"open", call_open_write, A_FILE, AT | FOLLOWS | CHANGES},
    {"open", call_create, NEW, AT | FOLLOWS | CHANGES},
    {"stat", call_stat, A_FILE, AT | FOLLOWS},
    {"stat", call_lstat, A_FILE, AT},
    {"chmod", call_chmod, A_FILE, AT | FOLLOWS | CHANGES},
    {"chown", call_chown, A_FILE, AT | FOLLOWS | CHANGES},
    {"chown", call_lchown, A_FILE, AT | CHANGES},
    {"utimensat", call_utimensat, A_FILE, AT | FOLLOWS | CHANGES},
    {"access", call_access, A_FILE, AT | FOLLOWS | CHANGES},
    {"truncate", call_truncate, A_FILE, FOLLOWS | CHANGES},
    {"mkdir", call_mkdir, NEW, AT | CHANGES},
    {"rmdir", call_rmdir, A_DIRECTORY, AT | CHANGES},
    {"link", call_link_from, A_FILE, AT | CHANGES},
    {"link", call_link_to, NEW, AT | CHANGES},
    {"symlink", call_symlink, NEW, AT | CHANGES},
    {"readlink", call_readlink, A_LINK, AT},
    {"unlink", call_unlink, A_FILE, AT | CHANGES},
    {"rename", call_rename_from, A_FILE, AT | CHANGES},
    {"rename", call_rename_to, NEW, AT | CHANGES},
    {"opendir", call_opendir, A_DIRECTORY, FOLLOWS},
    {"mknod", call_mknod, NEW, AT | CHANGES},
    {"mkfifo", call_mkfifo, NEW, AT | CHANGES},
    {"statvfs", call_statvfs, A_FILE, FOLLOWS},
};

static void make_object(const char *name, enum object object) {
    switch (object) {
    case NEW:
        break;
    case A_FILE:
        make_file(name, 0666, "text");
        break;
    case A_DIRECTORY:
        make_directory(name, 0777);
        break;
    case A_LINK:
        WORKS(symlink("target", name));
        break;
    }
}

/* Runs the check for all calls of the row's operation. */
static void each_call(void (*check)(const struct path_call *call)) {
    size_t count = 0;

    make_file("other", 0666, "other");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].operation, here->operation) == 0) {
            check(&calls[i]);
            count++;
        }
    }
    HOLDS(count > 0);
}

static void check_missing(const struct path_call *call) {
    FAILS(ENOENT, call->call(AT_FDCWD, "absent/object"));
    FAILS(ENOENT, call->call(AT_FDCWD, ""));
    if (call->object != NEW) {
        FAILS(ENOENT, call->call(AT_FDCWD, "absent"));
    }
    if (call->flags & FOLLOWS && call->object != NEW) {
        (void)symlink("absent", "dangling");
        FAILS(ENOENT, call->call(AT_FDCWD, "dangling"));
    }
}

void posix_path_missing(void) {
    each_call(check_missing);
}

static void check_not_directory(const struct path_call *call) {
    int fd = WORKS(open("other", O_RDONLY | O_CLOEXEC));

    FAILS(ENOTDIR, call->call(AT_FDCWD, "other/object"));
    FAILS(ENOTDIR, call->call(AT_FDCWD, "other/object/object"));
    if (call->flags & AT) {
        FAILS(ENOTDIR, call->call(fd, "object"));
    }
    WORKS(close(fd));
}

void posix_path_not_directory(void) {
    each_call(check_not_directory);
}

static void check_long_name(const struct path_call *call) {
    char path[1024];

    snprintf(path, sizeof path, "%s/object", long_text(256));
    FAILS(ENAMETOOLONG, call->call(AT_FDCWD, long_text(256)));
    FAILS(ENAMETOOLONG, call->call(AT_FDCWD, path));
    FAILS(ENAMETOOLONG, call->call(AT_FDCWD, long_text(4095)));
    make_object(long_text(255), call->object);
    WORKS(call->call(AT_FDCWD, long_text(255)));
    (void)remove(long_text(255));
    (void)remove("made");
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

void posix_path_long_name(void) {
    each_call(check_long_name);
}

/* ././././object, so many bytes with the NUL. */
static char *dotted_path(size_t size) {
    static const char name[] = "object";
    char *path = malloc(size);
    size_t at = 0;

    HOLDS(path);
    while (size - at > sizeof name + 1) {
        memcpy(path + at, "./", 2);
        at += 2;
    }
    if (size - at > sizeof name) {
        path[at++] = '/';
    }
    memcpy(path + at, name, sizeof name);
    return path;
}

static void check_long_path(const struct path_call *call) {
    FAILS(ENAMETOOLONG, call->call(AT_FDCWD, dotted_path(4097)));
    FAILS(ENAMETOOLONG, call->call(AT_FDCWD, dotted_path(10000)));
    make_object("object", call->object);
    WORKS(call->call(AT_FDCWD, dotted_path(4096)));
    (void)remove("object");
    (void)remove("made");
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

void posix_path_long_path(void) {
    each_call(check_long_path);
}

static void check_loop(const struct path_call *call) {
    FAILS(ELOOP, call->call(AT_FDCWD, "loop/object"));
    FAILS(ELOOP, call->call(AT_FDCWD, "link40/object"));
    if ((call->flags & FOLLOWS) && call->call != call_create) {
        FAILS(ELOOP, call->call(AT_FDCWD, "loop"));
    }
    make_object("directory/object", call->object);
    WORKS(call->call(AT_FDCWD, "link39/object"));
    (void)remove("directory/object");
    (void)remove("made");
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

/* link39 is 40 links away from the directory, which are as many as the system follows. */
void posix_path_loop(void) {
    char from[16];
    char to[16] = "directory";

    WORKS(symlink("loop", "loop"));
    make_directory("directory", 0777);
    for (int i = 0; i <= 40; i++) {
        snprintf(from, sizeof from, "link%d", i);
        WORKS(symlink(to, from));
        memcpy(to, from, sizeof to);
    }
    each_call(check_loop);
}

static void check_no_search(const struct path_call *call) {
    become(0, 0, 0);
    make_object("locked/object", call->object);
    WORKS(chmod("locked", 0666));
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, call->call(AT_FDCWD, "locked/object"));
    FAILS(EACCES, call->call(AT_FDCWD, "locked/absent"));
    become(0, 0, 0);
    WORKS(call->call(AT_FDCWD, "locked/object"));
    (void)remove("locked/object");
    (void)remove("made");
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

void posix_path_no_search(void) {
    make_directory("locked", 0777);
    each_call(check_no_search);
}

/* Search is judged by owner, then group, then others, and by the first that fits alone. */
static void check_which_search(const struct path_call *call) {
    static const struct {
        uid_t user;
        gid_t group;
        gid_t supplementary;
        bool may;
    } whos[] = {
        {SOMEBODY, NOBODY, 0, false}, /* owner: no */
        {NOBODY, SOMEGROUP, 0, false},
        {NOBODY, NOBODY, SOMEGROUP, false}, /* by the supplementary group: no */
        {NOBODY, NOBODY, 0, true},
    };

    for (size_t i = 0; i < sizeof whos / sizeof whos[0]; i++) {
        become(0, 0, 0);
        make_object("odd/object", call->object);
        become(whos[i].user, whos[i].group, whos[i].supplementary);
        if (whos[i].may) {
            int r = call->call(AT_FDCWD, "odd/object");

            HOLDS(r >= 0 || errno == EPERM);
        } else {
            FAILS(EACCES, call->call(AT_FDCWD, "odd/object"));
        }
        become(0, 0, 0);
        (void)remove("odd/object");
        (void)remove("made");
        if (!is_there("other")) {
            make_file("other", 0666, "other");
        }
    }
}

void posix_path_which_search(void) {
    make_directory("odd", 0707);
    WORKS(chmod("odd", 0007));
    WORKS(chown("odd", SOMEBODY, SOMEGROUP));
    each_call(check_which_search);
}

/* Names are made and removed by the directory's right to write, whatever the file's. */
static void check_no_write(const struct path_call *call) {
    if (!(call->flags & CHANGES) || (call->object != NEW && call->object != A_DIRECTORY &&
                                     call->call != call_unlink && call->call != call_rename_from)) {
        return;
    }
    make_object("closed/object", call->object);
    WORKS(chmod("closed", 0555));
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, call->call(AT_FDCWD, "closed/object"));
    become(0, 0, 0);
    WORKS(call->call(AT_FDCWD, "closed/object"));
    (void)remove("closed/object");
    (void)remove("made");
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

void posix_path_no_write(void) {
    make_directory("closed", 0777);
    each_call(check_no_write);
}

static void check_bad_descriptor(const struct path_call *call) {
    if (call->flags & AT) {
        FAILS(EBADF, call->call(999, "object"));
        FAILS(EBADF, call->call(-1, "object"));
    }
}

void posix_path_bad_descriptor(void) {
    each_call(check_bad_descriptor);
}

/* Relative to a directory's descriptor, also when it has been moved since. */
static void check_descriptor(const struct path_call *call) {
    if (!(call->flags & AT)) {
        return;
    }
    make_directory("before", 0777);
    make_object("before/object", call->object);
    int fd = WORKS(open("before", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    WORKS(rename("before", "after"));
    WORKS(call->call(fd, "object"));
    WORKS(close(fd));
    (void)remove("after/object");
    (void)remove("made");
    WORKS(rmdir("after"));
    if (!is_there("other")) {
        make_file("other", 0666, "other");
    }
}

void posix_path_descriptor(void) {
    each_call(check_descriptor);
}

static void check_read_only(const struct path_call *call) {
    if (call->flags & CHANGES) {
        FAILS(EROFS, call->call(AT_FDCWD, call->object == NEW      ? "object"
                                          : call->object == A_FILE ? "file"
                                          : call->object == A_LINK ? "link"
                                                                   : "directory"));
    }
}

static void read_only_calls(void) {
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].operation, here->operation) == 0) {
            check_read_only(&calls[i]);
        }
    }
}

void posix_path_read_only(void) {
    make_file("other", 0666, "other");
    make_object("file", A_FILE);
    make_object("directory", A_DIRECTORY);
    make_object("link", A_LINK);
    enter_read_only();
    read_only_calls();
}
