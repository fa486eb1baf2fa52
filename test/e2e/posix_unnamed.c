/* Files without a name: O_TMPFILE, and linkat of them. */
#include "posix.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_unnamed(const char *directory, int flags) {
    return WORKS(open(directory, O_TMPFILE | O_CLOEXEC | flags, 0640));
}

static int name_it(int fd, const char *name) {
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static nlink_t links_of(int fd) {
    struct stat status;

    WORKS(fstat(fd, &status));
    return status.st_nlink;
}

static size_t entries_of(const char *directory) {
    size_t count = 0;

    DIR *listing = opendir(directory);
    HOLDS(listing);
    while (readdir(listing)) {
        count++;
    }
    WORKS(closedir(listing));
    return count;
}

void posix_unnamed_nowhere(void) {
    make_file("file", 0644, "text");
    FAILS(ENOENT, open("missing", O_TMPFILE | O_RDWR, 0600));
    FAILS(ENOTDIR, open("file", O_TMPFILE | O_RDWR, 0600));
    make_directory("gone", 0755);
    int gone = WORKS(open("gone", O_RDONLY | O_DIRECTORY));
    WORKS(rmdir("gone"));
    FAILS(ENOENT, openat(gone, ".", O_TMPFILE | O_RDWR, 0600));
}

void posix_unnamed_no_right(void) {
    make_directory("read", 0555);
    make_directory("write", 0333);
    make_directory("no-search", 0666);
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, open("read", O_TMPFILE | O_RDWR, 0600));
    FAILS(EACCES, open("no-search", O_TMPFILE | O_RDWR, 0600));
    WORKS(close(make_unnamed("write", O_RDWR)));
    become(0, 0, 0);
}

void posix_unnamed_read_only(void) {
    enter_read_only();
    FAILS(EROFS, open(".", O_TMPFILE | O_RDWR, 0600));
}

void posix_unnamed_to_read(void) {
    FAILS(EINVAL, open(".", O_TMPFILE | O_RDONLY, 0600));
}

void posix_unnamed_too_many(void) {
    const struct rlimit limit = {16, 16};
    int fd;

    WORKS(setrlimit(RLIMIT_NOFILE, &limit));
    while ((fd = open(".", O_TMPFILE | O_RDWR, 0600)) >= 0) {
    }
    HOLDS(errno == EMFILE);
}

/* It is a file like any other, but for the name; and it is gone with its last descriptor. */
void posix_unnamed_works(void) {
    static char data[300000];
    char back[sizeof data];
    struct stat status;
    size_t before = entries_of(".");

    umask(027);
    int fd = WORKS(open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
    WORKS(fstat(fd, &status));
    HOLDS(S_ISREG(status.st_mode) && (status.st_mode & 07777) == 0640);
    HOLDS(status.st_nlink == 0 && status.st_size == 0);
    memset(data, 'x', sizeof data);
    HOLDS(WORKS(write(fd, data, sizeof data)) == sizeof data);
    WORKS(fsync(fd));
    HOLDS(WORKS(pread(fd, back, sizeof back, 0)) == sizeof back);
    HOLDS(memcmp(data, back, sizeof back) == 0);
    WORKS(ftruncate(fd, 5));
    WORKS(fchmod(fd, 0600));
    WORKS(fstat(fd, &status));
    HOLDS(status.st_size == 5 && (status.st_mode & 07777) == 0600 && status.st_nlink == 0);
    HOLDS(entries_of(".") == before);
    int other = WORKS(dup(fd));
    WORKS(close(fd));
    HOLDS(WORKS(pread(other, back, sizeof back, 0)) == 5);
    WORKS(close(other));
    HOLDS(entries_of(".") == before);
}

void posix_unnamed_set_id(void) {
    struct stat status;

    make_directory("group", 0777);
    WORKS(chown("group", 0, SOMEGROUP));
    WORKS(chmod("group", 02777));
    become(NOBODY, NOBODY, 0);
    int fd = WORKS(open("group", O_TMPFILE | O_RDWR, 02770));
    WORKS(fstat(fd, &status));
    HOLDS(status.st_uid == NOBODY && status.st_gid == SOMEGROUP);
    HOLDS((status.st_mode & 07777) == 0770);
    become(0, 0, 0);
}

void posix_unnamed_named(void) {
    int fd = make_unnamed(".", O_RDWR);

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    WORKS(name_it(fd, "name"));
    HOLDS(links_of(fd) == 1);
    HOLDS(holds_text("name", "text"));
    HOLDS(mode_of("name") == 0640);
    WORKS(name_it(fd, "second"));
    HOLDS(links_of(fd) == 2);
    HOLDS(WORKS(pwrite(fd, "more", 4, 4)) == 4);
    WORKS(close(fd));
    HOLDS(holds_text("second", "textmore"));
    WORKS(unlink("name"));
    HOLDS(holds_text("second", "textmore"));
    WORKS(rename("second", "third"));
    HOLDS(holds_text("third", "textmore"));
}

/* In directories of their own, which other metadata targets may have. */
void posix_unnamed_named_elsewhere(void) {
    enum { DIRECTORIES = 12 };
    char name[64];

    for (int i = 0; i < DIRECTORIES; i++) {
        snprintf(name, sizeof name, "directory-%d", i);
        make_directory(name, 0755);
    }
    for (int i = 0; i < DIRECTORIES; i++) {
        snprintf(name, sizeof name, "directory-%d", i);
        int fd = make_unnamed(name, O_WRONLY);
        HOLDS(WORKS(write(fd, name, strlen(name))) == (ssize_t)strlen(name));
        snprintf(name, sizeof name, "directory-%d/name", (i + 1) % DIRECTORIES);
        WORKS(name_it(fd, name));
        HOLDS(links_of(fd) == 1);
        WORKS(close(fd));
        char text[64];
        snprintf(text, sizeof text, "directory-%d", i);
        HOLDS(holds_text(name, text));
        WORKS(unlink(name));
    }
}

void posix_unnamed_by_descriptor(void) {
    int fd = make_unnamed(".", O_RDWR);

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    WORKS(linkat(fd, "", AT_FDCWD, "name", AT_EMPTY_PATH));
    HOLDS(holds_text("name", "text"));
    WORKS(close(fd));
}

void posix_unnamed_for_good(void) {
    int fd = make_unnamed(".", O_RDWR | O_EXCL);

    FAILS(ENOENT, name_it(fd, "name"));
    FAILS(ENOENT, linkat(fd, "", AT_FDCWD, "name", AT_EMPTY_PATH));
    HOLDS(!is_there("name") && links_of(fd) == 0);
}

/* Whose names are gone, whether it was made with one or without, gets none any more. */
void posix_unnamed_again(void) {
    int fd = make_unnamed(".", O_RDWR);

    WORKS(name_it(fd, "name"));
    WORKS(unlink("name"));
    HOLDS(links_of(fd) == 0);
    FAILS(ENOENT, name_it(fd, "again"));
    make_file("file", 0644, "text");
    int other = WORKS(open("file", O_RDWR));
    WORKS(unlink("file"));
    FAILS(ENOENT, name_it(other, "again"));
    FAILS(ENOENT, linkat(other, "", AT_FDCWD, "again", AT_EMPTY_PATH));
}

void posix_unnamed_over_name(void) {
    int fd = make_unnamed(".", O_RDWR);

    make_file("name", 0644, "text");
    FAILS(EEXIST, name_it(fd, "name"));
    HOLDS(links_of(fd) == 0 && holds_text("name", "text"));
    WORKS(name_it(fd, "other"));
}
