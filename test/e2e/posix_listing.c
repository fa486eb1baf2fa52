/* opendir, readdir, seekdir, rewinddir, closedir; large directories that change meanwhile. */
#include "posix.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static DIR *open_here(const char *name) {
    DIR *stream = opendir(name);

    if (!stream) {
        posix_fail(__FILE__, __LINE__, "opendir fails", errno);
    }
    return stream;
}

/* The next entry but "." and "..", NULL at the end. */
static struct dirent *next(DIR *stream) {
    struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(stream);
        HOLDS(entry || errno == 0);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry;
}

void posix_opendir_not_readable(void) {
    make_directory("directory", 0333);
    become(NOBODY, NOBODY, 0);
    HOLDS(!opendir("directory") && errno == EACCES);
    FAILS(EACCES, open("directory", O_RDONLY));
    become(0, 0, 0);
    open_here("directory");
}

void posix_opendir_too_many(void) {
    struct rlimit limit;

    WORKS(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 3;
    WORKS(setrlimit(RLIMIT_NOFILE, &limit));
    WORKS(close(2));
    open_here(".");
    HOLDS(!opendir(".") && errno == EMFILE);
}

void posix_fdopendir_bad(void) {
    make_file("file", 0644, "text");
    HOLDS(!fdopendir(999) && errno == EBADF);
    HOLDS(!fdopendir(WORKS(open("file", O_RDONLY))) && errno == ENOTDIR);
}

void posix_readdir_bad(void) {
    char space[1024];

    FAILS(EBADF, syscall(SYS_getdents64, 999, space, sizeof space));
}

void posix_readdir_file(void) {
    char space[1024];

    make_file("file", 0644, "text");
    FAILS(ENOTDIR, syscall(SYS_getdents64, WORKS(open("file", O_RDONLY)), space, sizeof space));
}

void posix_readdir_small_space(void) {
    char space[8];

    FAILS(EINVAL, syscall(SYS_getdents64, WORKS(open(".", O_RDONLY)), space, sizeof space));
}

void posix_readdir_removed(void) {
    char space[1024];

    make_directory("directory", 0755);
    int fd = WORKS(open("directory", O_RDONLY));
    WORKS(rmdir("directory"));
    long r = syscall(SYS_getdents64, fd, space, sizeof space);
    HOLDS(r == 0 || (r == -1 && errno == ENOENT));
}

/* Dot and dot-dot, types, inode numbers. */
void posix_readdir_entries(void) {
    struct stat status;
    struct dirent *entry;
    int seen = 0;

    make_file("file", 0644, "text");
    make_directory("directory", 0755);
    WORKS(symlink("file", "link"));
    WORKS(mkfifo("fifo", 0644));
    DIR *stream = open_here(".");
    while ((entry = readdir(stream))) {
        unsigned char type = entry->d_type;

        WORKS(lstat(entry->d_name, &status));
        HOLDS(type == DT_UNKNOWN || type == (status.st_mode & S_IFMT) >> 12);
        HOLDS(entry->d_ino == status.st_ino);
        seen++;
    }
    HOLDS(seen == 6);
    WORKS(closedir(stream));
}

void posix_closedir_bad(void) {
    DIR *stream = open_here(".");

    WORKS(close(dirfd(stream)));
    FAILS(EBADF, closedir(stream));
}

static void make_numbered(int from, int to) {
    char name[16];

    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "n%07d", i);
        int fd = WORKS(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
        WORKS(close(fd));
    }
}

/* Back to a place that was told: the same entries from there on. */
void posix_seekdir_returns(void) {
    enum { COUNT = 2000 };
    static char names[COUNT][256];
    static long places[COUNT];
    struct dirent *entry;
    int count = 0;

    make_numbered(0, COUNT);
    DIR *stream = open_here(".");
    for (long place = telldir(stream); (entry = next(stream)); place = telldir(stream)) {
        HOLDS(count < COUNT);
        places[count] = place;
        snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
    }
    HOLDS(count == COUNT);
    for (int i = COUNT - 1; i >= 0; i -= 37) {
        seekdir(stream, places[i]);
        for (int at = i; at < COUNT && at < i + 5; at++) {
            entry = next(stream);
            HOLDS(entry && strcmp(entry->d_name, names[at]) == 0);
        }
    }
    /* Also when others have come and gone meanwhile. */
    WORKS(unlink(names[0]));
    WORKS(unlink(names[COUNT / 2 - 1]));
    make_numbered(COUNT, COUNT + 100);
    seekdir(stream, places[COUNT / 2]);
    do {
        entry = next(stream);
    } while (entry && strtol(entry->d_name + 1, NULL, 10) >= COUNT);
    HOLDS(entry && strcmp(entry->d_name, names[COUNT / 2]) == 0);
    WORKS(closedir(stream));
}

/* Begins anew: names made since are there, removed ones are not. */
void posix_rewinddir_sees_new(void) {
    struct dirent *entry;
    int count = 0;

    make_numbered(0, 10);
    DIR *stream = open_here(".");
    while (next(stream)) {
        count++;
    }
    HOLDS(count == 10);
    make_numbered(10, 15);
    WORKS(unlink("n0000003"));
    rewinddir(stream);
    for (count = 0; (entry = next(stream)); count++) {
        HOLDS(strcmp(entry->d_name, "n0000003") != 0);
    }
    HOLDS(count == 14);
    WORKS(closedir(stream));
}

/* A child of a fork shares the place. */
void posix_readdir_empty(void) {
    make_directory("directory", 0755);
    DIR *stream = open_here("directory");
    HOLDS(!next(stream));
    HOLDS(!next(stream));
    WORKS(closedir(stream));
}

/* rm -r: entries are removed as they are listed; none is left over, none comes twice. */
void posix_readdir_removing(void) {
    enum { COUNT = 5000 };
    struct dirent *entry;
    int count = 0;

    make_numbered(0, COUNT);
    DIR *stream = open_here(".");
    while ((entry = next(stream))) {
        WORKS(unlink(entry->d_name));
        count++;
    }
    HOLDS(count == COUNT);
    rewinddir(stream);
    HOLDS(!next(stream));
    WORKS(closedir(stream));
}

/* Makes and removes names that begin with "x" until it is killed. */
static pid_t change_forever(void) {
    char name[16];
    pid_t child = WORKS(fork());

    for (unsigned i = 0; child == 0; i = (i + 1) % 1000) {
        snprintf(name, sizeof name, "x%u", i);
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            posix_fail(__FILE__, __LINE__, "create beside a listing fails", errno);
        }
        close(fd);
        snprintf(name, sizeof name, "x%u", (i * 7 + 3) % 1000);
        if (unlink(name) != 0 && errno != ENOENT) {
            posix_fail(__FILE__, __LINE__, "unlink beside a listing fails", errno);
        }
    }
    return child;
}

static void list_while_changed(int count) {
    uint8_t *seen = calloc(1, (size_t)count);
    struct dirent *entry;
    int status;

    HOLDS(seen);
    make_numbered(0, count);
    pid_t child = change_forever();
    for (int round = 0; round < 3; round++) {
        DIR *stream = open_here(".");
        int found = 0;

        memset(seen, 0, (size_t)count);
        while ((entry = next(stream))) {
            if (entry->d_name[0] == 'n') {
                long number = strtol(entry->d_name + 1, NULL, 10);

                HOLDS(number >= 0 && number < count && !seen[number]);
                seen[number] = 1;
                found++;
            }
        }
        HOLDS(found == count);
        WORKS(closedir(stream));
    }
    HOLDS(WORKS(waitpid(child, &status, WNOHANG)) == 0);
    WORKS(kill(child, SIGKILL));
    WORKS(waitpid(child, &status, 0));
}

/* 100,000 names that stay are each listed once, while others come and go. */
void posix_readdir_changing(void) {
    list_while_changed(100000);
}

void posix_readdir_changing_million(void) {
    list_while_changed(1000000);
}
