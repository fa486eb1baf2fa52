/* mkdir, rmdir, link, symlink, readlink, unlink, rename, mknod. */
#include "posix.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static nlink_t links_of(const char *name) {
    struct stat status;

    WORKS(lstat(name, &status));
    return status.st_nlink;
}

static ino_t inode_of(const char *name) {
    struct stat status;

    WORKS(lstat(name, &status));
    return status.st_ino;
}

static void make_kinds(void) {
    make_file("file", 0644, "text");
    make_directory("directory", 0755);
    WORKS(symlink("absent", "link"));
    WORKS(mkfifo("fifo", 0644));
}

/* Something is mounted at "busy". */
static void mount_busy(void) {
    make_directory("busy", 0755);
    WORKS(unshare(CLONE_NEWNS));
    WORKS(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    WORKS(mount("none", "busy", "tmpfs", 0, NULL));
}

void posix_mkdir_exists(void) {
    make_kinds();
    FAILS(EEXIST, mkdir("file", 0755));
    FAILS(EEXIST, mkdir("directory", 0755));
    FAILS(EEXIST, mkdir("link", 0755));
    FAILS(EEXIST, mkdir("fifo", 0755));
    FAILS(EEXIST, mkdir(".", 0755));
    FAILS(EEXIST, mkdir("..", 0755));
    FAILS(EEXIST, mkdir("/", 0755));
}

void posix_mkdir_counts(void) {
    nlink_t before = links_of(".");
    struct stat status;

    WORKS(mkdir("directory", 01777));
    HOLDS(links_of(".") == before + 1);
    WORKS(stat("directory", &status));
    HOLDS(status.st_nlink == 2 && S_ISDIR(status.st_mode));
    HOLDS((status.st_mode & 07777) == 01777);
    HOLDS(inode_of("directory/.") == status.st_ino);
    HOLDS(inode_of("directory/..") == inode_of("."));
    WORKS(mkdir("directory/trailing/", 0755));
    HOLDS(links_of("directory") == 3);
    WORKS(rmdir("directory/trailing"));
    HOLDS(links_of("directory") == 2);
    WORKS(rmdir("directory"));
    HOLDS(links_of(".") == before);
}

void posix_rmdir_not_empty(void) {
    make_directory("directory", 0755);
    make_file("directory/file", 0644, "");
    int r = rmdir("directory");
    HOLDS(r == -1 && (errno == ENOTEMPTY || errno == EEXIST));
    WORKS(unlink("directory/file"));
    WORKS(symlink("x", "directory/link"));
    r = rmdir("directory");
    HOLDS(r == -1 && (errno == ENOTEMPTY || errno == EEXIST));
    WORKS(unlink("directory/link"));
    WORKS(rmdir("directory"));
    HOLDS(!is_there("directory"));
}

void posix_rmdir_dot(void) {
    make_directory("directory", 0755);
    FAILS(EINVAL, rmdir("directory/."));
    FAILS(EINVAL, rmdir("."));
    int r = rmdir("directory/..");
    HOLDS(r == -1 && (errno == ENOTEMPTY || errno == EEXIST));
}

void posix_rmdir_not_directory(void) {
    make_kinds();
    WORKS(symlink("directory", "to-directory"));
    FAILS(ENOTDIR, rmdir("file"));
    FAILS(ENOTDIR, rmdir("link"));
    FAILS(ENOTDIR, rmdir("fifo"));
    FAILS(ENOTDIR, rmdir("to-directory"));
}

void posix_rmdir_busy(void) {
    mount_busy();
    FAILS(EBUSY, rmdir("busy"));
    FAILS(EBUSY, rename("busy", "other"));
    make_directory("other", 0755);
    FAILS(EBUSY, rename("other", "busy"));
}

/* sticky/ is root's with the sticky bit, writable by all. */
static void make_sticky(void) {
    make_directory("sticky", 0777);
    make_file("sticky/file", 0666, "text");
    make_directory("sticky/directory", 0777);
    make_file("sticky/own", 0600, "own");
    WORKS(chown("sticky/own", NOBODY, NOBODY));
    WORKS(mkdir("sticky/own-directory", 0700));
    WORKS(chown("sticky/own-directory", NOBODY, NOBODY));
    WORKS(chmod("sticky", 01777));
}

static bool is_refused(int r) {
    return r == -1 && (errno == EPERM || errno == EACCES);
}

void posix_sticky(void) {
    make_sticky();
    make_file("free", 0666, "free");
    WORKS(chmod(".", 0777));
    become(NOBODY, NOBODY, 0);
    HOLDS(is_refused(unlink("sticky/file")));
    HOLDS(is_refused(rmdir("sticky/directory")));
    HOLDS(is_refused(rename("sticky/file", "sticky/other")));
    HOLDS(is_refused(rename("sticky/file", "moved")));
    HOLDS(is_refused(rename("sticky/own", "sticky/file")));
    HOLDS(is_refused(rename("free", "sticky/file")));
    HOLDS(is_refused(renameat2(AT_FDCWD, "sticky/own", AT_FDCWD, "sticky/file", 2)));
    WORKS(rename("sticky/own", "sticky/other"));
    WORKS(unlink("sticky/other"));
    WORKS(rmdir("sticky/own-directory"));
    become(0, 0, 0);
    HOLDS(holds_text("sticky/file", "text") && holds_text("free", "free"));
    /* The directory's owner may remove whatever is in it. */
    WORKS(chown("sticky", SOMEBODY, SOMEGROUP));
    become(SOMEBODY, SOMEGROUP, 0);
    WORKS(unlink("sticky/file"));
    WORKS(rmdir("sticky/directory"));
}

void posix_link_exists(void) {
    make_kinds();
    make_file("other", 0644, "other");
    FAILS(EEXIST, link("other", "file"));
    FAILS(EEXIST, link("other", "other"));
    FAILS(EEXIST, link("other", "directory"));
    FAILS(EEXIST, link("other", "link"));
    HOLDS(links_of("other") == 1);
}

void posix_link_directory(void) {
    make_directory("directory", 0755);
    FAILS(EPERM, link("directory", "other"));
    HOLDS(!is_there("other"));
}

void posix_cross_device(void) {
    make_file("file", 0644, "text");
    make_directory("directory", 0755);
    mount_busy();
    FAILS(EXDEV, link("file", "busy/file"));
    FAILS(EXDEV, rename("file", "busy/file"));
    FAILS(EXDEV, rename("directory", "busy/directory"));
    HOLDS(holds_text("file", "text"));
}

void posix_link_counts(void) {
    struct stat status;

    make_file("file", 0644, "text");
    WORKS(link("file", "second"));
    make_directory("directory", 0755);
    WORKS(link("file", "directory/third"));
    WORKS(stat("directory/third", &status));
    HOLDS(status.st_nlink == 3 && status.st_ino == inode_of("file"));
    int fd = WORKS(open("second", O_WRONLY));
    HOLDS(WORKS(pwrite(fd, "T", 1, 0)) == 1);
    WORKS(close(fd));
    HOLDS(holds_text("directory/third", "Text"));
    WORKS(unlink("file"));
    HOLDS(links_of("second") == 2 && holds_text("second", "Text"));
    WORKS(chmod("second", 0600));
    HOLDS(mode_of("directory/third") == 0600);
    WORKS(unlink("second"));
    HOLDS(links_of("directory/third") == 1);
}

void posix_link_kinds(void) {
    make_kinds();
    WORKS(link("fifo", "fifo-2"));
    HOLDS(links_of("fifo") == 2);
    WORKS(link("link", "link-2")); /* the link itself */
    HOLDS(links_of("link") == 2 && inode_of("link-2") == inode_of("link"));
    FAILS(ENOENT, linkat(AT_FDCWD, "link", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
    FAILS(EINVAL, linkat(AT_FDCWD, "file", AT_FDCWD, "other", 0x8000000));
    /* An open file without a name gets none: there is no way to it but by its descriptor. */
    int fd = WORKS(open("file", O_RDONLY));
    WORKS(unlink("file"));
    FAILS(ENOENT, linkat(fd, "", AT_FDCWD, "again", AT_EMPTY_PATH));
}

void posix_symlink_exists(void) {
    make_kinds();
    FAILS(EEXIST, symlink("target", "file"));
    FAILS(EEXIST, symlink("target", "directory"));
    FAILS(EEXIST, symlink("target", "link"));
}

void posix_symlink_long(void) {
    char target[5000];
    struct stat status;

    FAILS(ENAMETOOLONG, symlink(long_text(4096), "link"));
    WORKS(symlink(long_text(4095), "link"));
    HOLDS(WORKS(readlink("link", target, sizeof target)) == 4095);
    HOLDS(memcmp(target, long_text(4095), 4095) == 0);
    WORKS(lstat("link", &status));
    HOLDS(status.st_size == 4095 && S_ISLNK(status.st_mode));
    HOLDS(WORKS(readlink("link", target, 10)) == 10);
}

void posix_symlink_empty(void) {
    FAILS(ENOENT, symlink("", "link"));
    HOLDS(!is_there("link"));
}

/* The target is kept byte by byte, whatever it is. */
void posix_symlink_any(void) {
    static const char *const targets[] = {"/", "../..", "a//b/./", "\x01\xff\xfe", " "};
    char target[64];

    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        WORKS(symlink(targets[i], "link"));
        HOLDS(WORKS(readlink("link", target, sizeof target)) == (ssize_t)strlen(targets[i]));
        HOLDS(memcmp(target, targets[i], strlen(targets[i])) == 0);
        WORKS(unlink("link"));
    }
}

void posix_readlink_no_link(void) {
    char target[8];

    make_kinds();
    FAILS(EINVAL, readlink("file", target, sizeof target));
    FAILS(EINVAL, readlink("directory", target, sizeof target));
    FAILS(EINVAL, readlink("fifo", target, sizeof target));
}

void posix_unlink_directory(void) {
    make_directory("directory", 0755);
    int r = unlink("directory");
    HOLDS(r == -1 && (errno == EPERM || errno == EISDIR));
    r = unlink(".");
    HOLDS(r == -1 && (errno == EPERM || errno == EISDIR));
    HOLDS(is_there("directory"));
}

void posix_unlink_busy(void) {
    make_file("file", 0644, "text");
    WORKS(unshare(CLONE_NEWNS));
    WORKS(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    WORKS(mount("/dev/null", "file", NULL, MS_BIND, NULL));
    FAILS(EBUSY, unlink("file"));
}

void posix_unlink_kinds(void) {
    make_kinds();
    WORKS(symlink("file", "to-file"));
    WORKS(unlink("to-file"));
    HOLDS(is_there("file"));
    WORKS(unlink("link"));
    WORKS(unlink("fifo"));
    WORKS(unlink("file"));
    FAILS(ENOENT, unlink("file"));
    FAILS(EINVAL, unlinkat(AT_FDCWD, "directory", 0x8000000));
}

/* A program that runs can be removed and replaced. */
void posix_unlink_program(void) {
    make_program("program");
    pid_t process = program_start("./program");
    WORKS(unlink("program"));
    make_program("program");
    program_end(process);
}

void posix_rename_ancestor(void) {
    make_directory("a", 0755);
    make_directory("a/b", 0755);
    make_directory("a/b/c", 0755);
    FAILS(EINVAL, rename("a", "a/b"));
    FAILS(EINVAL, rename("a", "a/new"));
    FAILS(EINVAL, rename("a", "a/b/c/new"));
    FAILS(EINVAL, renameat2(AT_FDCWD, "a", AT_FDCWD, "a/b/c", 2));
    int r = rename("a/b/c", "a");
    HOLDS(r == -1 && (errno == ENOTEMPTY || errno == EEXIST));
    r = rename("a/.", "other");
    HOLDS(r == -1 && (errno == EINVAL || errno == EBUSY));
    r = rename("a/..", "other");
    HOLDS(r == -1 && (errno == EINVAL || errno == EBUSY));
    HOLDS(is_there("a/b/c"));
}

void posix_rename_to_directory(void) {
    make_kinds();
    FAILS(EISDIR, rename("file", "directory"));
    FAILS(EISDIR, rename("link", "directory"));
    HOLDS(is_there("file") && is_there("link"));
}

void posix_rename_from_directory(void) {
    make_kinds();
    FAILS(ENOTDIR, rename("directory", "file"));
    FAILS(ENOTDIR, rename("directory", "link"));
    FAILS(ENOTDIR, rename("file", "other/"));
    HOLDS(is_there("directory") && is_there("file"));
}

void posix_rename_not_empty(void) {
    make_directory("directory", 0755);
    make_directory("full", 0755);
    make_file("full/file", 0644, "");
    int r = rename("directory", "full");
    HOLDS(r == -1 && (errno == ENOTEMPTY || errno == EEXIST));
    HOLDS(is_there("directory") && is_there("full/file"));
}

/* A directory that goes to another parent has its ".." changed: which takes write permission. */
void posix_rename_other_parent(void) {
    make_directory("parent", 0777);
    make_directory("directory", 0555);
    make_file("file", 0444, "");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    WORKS(chown("directory", NOBODY, NOBODY));
    WORKS(chmod("directory", 0555));
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, rename("directory", "parent/directory"));
    WORKS(rename("directory", "renamed"));
    WORKS(rename("file", "parent/file"));
    WORKS(chmod("renamed", 0755));
    WORKS(rename("renamed", "parent/directory"));
}

void posix_rename_replaces(void) {
    ino_t inode;

    make_file("old", 0644, "old");
    make_file("new", 0644, "new");
    WORKS(link("old", "old-2"));
    inode = inode_of("new");
    WORKS(rename("new", "old"));
    HOLDS(!is_there("new") && inode_of("old") == inode && holds_text("old", "new"));
    HOLDS(links_of("old-2") == 1 && holds_text("old-2", "old"));
    make_directory("from", 0755);
    make_file("from/file", 0644, "text");
    make_directory("to", 0755);
    nlink_t before = links_of(".");
    WORKS(rename("from", "to"));
    HOLDS(!is_there("from") && is_there("to/file") && links_of(".") == before - 1);
    WORKS(symlink("x", "link"));
    WORKS(rename("old", "link"));
    HOLDS(holds_text("link", "new"));
}

/* Two names of one file: nothing happens, both stay. */
void posix_rename_same(void) {
    make_file("file", 0644, "text");
    WORKS(link("file", "second"));
    WORKS(rename("file", "second"));
    HOLDS(is_there("file") && is_there("second") && links_of("file") == 2);
    WORKS(rename("file", "file"));
    make_directory("directory", 0755);
    WORKS(rename("directory", "directory"));
    HOLDS(is_there("directory"));
}

void posix_rename_moves_directory(void) {
    make_directory("a", 0755);
    make_directory("b", 0755);
    make_directory("a/moved", 0755);
    make_file("a/moved/file", 0644, "text");
    ino_t inode = inode_of("a/moved");
    int fd = WORKS(open("a/moved/file", O_RDWR));
    HOLDS(links_of("a") == 3 && links_of("b") == 2);
    WORKS(rename("a/moved", "b/moved"));
    HOLDS(links_of("a") == 2 && links_of("b") == 3);
    HOLDS(inode_of("b/moved") == inode && inode_of("b/moved/..") == inode_of("b"));
    HOLDS(holds_text("b/moved/file", "text"));
    HOLDS(WORKS(pwrite(fd, "T", 1, 0)) == 1);
    HOLDS(holds_text("b/moved/file", "Text"));
}

void posix_rename_no_replace(void) {
    make_kinds();
    make_file("other", 0644, "other");
    FAILS(EEXIST, renameat2(AT_FDCWD, "file", AT_FDCWD, "other", 1));
    FAILS(EEXIST, renameat2(AT_FDCWD, "file", AT_FDCWD, "link", 1));
    FAILS(EEXIST, renameat2(AT_FDCWD, "file", AT_FDCWD, "file", 1));
    WORKS(renameat2(AT_FDCWD, "file", AT_FDCWD, "new", 1));
    HOLDS(!is_there("file") && holds_text("new", "text") && holds_text("other", "other"));
}

void posix_rename_exchange(void) {
    make_kinds();
    make_file("directory/inside", 0644, "inside");
    make_directory("parent", 0755);
    make_file("parent/other", 0644, "other");
    FAILS(ENOENT, renameat2(AT_FDCWD, "file", AT_FDCWD, "absent", 2));
    WORKS(renameat2(AT_FDCWD, "file", AT_FDCWD, "parent/other", 2));
    HOLDS(holds_text("file", "other") && holds_text("parent/other", "text"));
    nlink_t parent = links_of("parent");
    nlink_t here_before = links_of(".");
    WORKS(renameat2(AT_FDCWD, "directory", AT_FDCWD, "parent/other", 2));
    HOLDS(holds_text("directory", "text") && holds_text("parent/other/inside", "inside"));
    HOLDS(links_of("parent") == parent + 1 && links_of(".") == here_before - 1);
}

void posix_rename_flags(void) {
    make_file("file", 0644, "text");
    make_file("other", 0644, "other");
    FAILS(EINVAL, renameat2(AT_FDCWD, "file", AT_FDCWD, "other", 3));
    FAILS(EINVAL, renameat2(AT_FDCWD, "file", AT_FDCWD, "other", 64));
    FAILS(EINVAL, renameat2(AT_FDCWD, "file", AT_FDCWD, "other", 4)); /* whiteouts */
    HOLDS(holds_text("file", "text") && holds_text("other", "other"));
}

void posix_rename_locked(void) {
    make_directory("from", 0777);
    make_directory("to", 0555);
    make_file("from/file", 0666, "text");
    make_file("to/file", 0666, "to");
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, rename("from/file", "to/new"));
    FAILS(EACCES, rename("from/file", "to/file"));
    FAILS(EACCES, rename("to/file", "from/new"));
    FAILS(EACCES, link("from/file", "to/new"));
    become(0, 0, 0);
    HOLDS(holds_text("from/file", "text") && holds_text("to/file", "to"));
}

void posix_mknod_exists(void) {
    make_kinds();
    FAILS(EEXIST, mknod("file", S_IFREG | 0644, 0));
    FAILS(EEXIST, mkfifo("fifo", 0644));
    FAILS(EEXIST, mkfifo("directory", 0644));
    FAILS(EEXIST, mkfifo("link", 0644));
}

void posix_mknod_invalid(void) {
    int r = mknod("node", S_IFLNK | 0644, 0);

    HOLDS(r == -1 && errno == EINVAL);
    FAILS(EPERM, mknod("node", S_IFDIR | 0755, 0));
    FAILS(EINVAL, mknod("node", 0150000 | 0644, 0));
}

void posix_mknod_not_root(void) {
    become(NOBODY, NOBODY, 0);
    FAILS(EPERM, mknod("device", S_IFCHR | 0644, makedev(1, 3)));
    FAILS(EPERM, mknod("device", S_IFBLK | 0644, makedev(7, 0)));
    WORKS(mknod("fifo", S_IFIFO | 0644, 0));
    WORKS(mknod("file", S_IFREG | 0644, 0));
    WORKS(mknod("socket", S_IFSOCK | 0644, 0));
}

void posix_mknod_kinds(void) {
    static const mode_t kinds[] = {S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
    struct stat status;
    char name[16];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(name, sizeof name, "node-%zu", i);
        WORKS(mknod(name, kinds[i] | 0640, makedev(259, 70000)));
        WORKS(lstat(name, &status));
        HOLDS(status.st_mode == (kinds[i] | 0640) && status.st_nlink == 1 && status.st_size == 0);
        if (kinds[i] == S_IFCHR || kinds[i] == S_IFBLK) {
            HOLDS(status.st_rdev == makedev(259, 70000));
        }
    }
}

/* What one process writes into a FIFO another reads. */
void posix_fifo_works(void) {
    char text[8];

    WORKS(mkfifo("fifo", 0644));
    if (WORKS(fork()) == 0) {
        int fd = WORKS(open("fifo", O_WRONLY));

        HOLDS(WORKS(write(fd, "text", 4)) == 4);
        _exit(0);
    }
    int fd = WORKS(open("fifo", O_RDONLY));
    HOLDS(WORKS(read(fd, text, sizeof text)) == 4 && memcmp(text, "text", 4) == 0);
    HOLDS(WORKS(read(fd, text, sizeof text)) == 0);
    HOLDS(size_of("fifo") == 0);
}

/* Names of any bytes but NUL and '/', of 1 to 255 bytes, each its own. */
void posix_names_any(void) {
    char name[256];
    char path[300];

    for (int byte = 1; byte < 256; byte++) {
        if (byte == '/' || byte == '.') {
            continue;
        }
        name[0] = (char)byte;
        name[1] = '\0';
        make_file(name, 0644, name);
        memset(name, byte, 255);
        name[255] = '\0';
        make_directory(name, 0755);
        snprintf(path, sizeof path, "%s/%c", name, byte);
        WORKS(symlink("x", path));
    }
    for (int byte = 1; byte < 256; byte++) {
        if (byte == '/' || byte == '.') {
            continue;
        }
        name[0] = (char)byte;
        name[1] = '\0';
        HOLDS(holds_text(name, name));
        memset(name, byte, 255);
        name[255] = '\0';
        snprintf(path, sizeof path, "%s/%c", name, byte);
        WORKS(unlink(path));
        WORKS(rmdir(name));
    }
}

/* As deep as a path is long, and deeper by descriptors. */
void posix_names_deep(void) {
    enum { DEPTH = 3000 };
    char path[4096];
    size_t at = 0;

    while (at + 3 < sizeof path) {
        path[at++] = 'd';
        path[at++] = '/';
        path[at] = '\0';
        WORKS(mkdir(path, 0755));
    }
    make_file("file", 0644, "text");
    path[at++] = 'f';
    path[at] = '\0';
    WORKS(link("file", path));
    HOLDS(links_of(path) == 2);
    for (int i = 0; i < DEPTH; i++) {
        HOLDS(mkdir("d", 0755) == 0 || errno == EEXIST);
        WORKS(chdir("d"));
    }
    make_file("file", 0644, "deep");
    HOLDS(holds_text("file", "deep"));
    for (int i = 0; i < DEPTH; i++) {
        WORKS(chdir(".."));
    }
    HOLDS(links_of("file") == 2);
}
