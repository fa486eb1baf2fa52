/* open, openat, creat, close. */
#include "posix.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each access mode asks for its own bits, of the owner's, the group's or the others' three. */
void posix_open_modes(void) {
    static const struct {
        mode_t mode;
        int flags;
        bool may;
    } cases[] = {
        {04, O_RDONLY, true},  {04, O_WRONLY, false},           {04, O_RDWR, false},
        {02, O_WRONLY, true},  {02, O_RDONLY, false},           {02, O_RDWR, false},
        {06, O_RDWR, true},    {04, O_RDONLY | O_TRUNC, false}, {02, O_WRONLY | O_TRUNC, true},
        {00, O_RDONLY, false}, {01, O_RDONLY, false},
    };
    static const struct {
        uid_t user;
        gid_t group;
        gid_t supplementary;
        int shift;
    } whos[] = {{SOMEBODY, NOBODY, 0, 6},
                {NOBODY, SOMEGROUP, 0, 3},
                {NOBODY, NOBODY, SOMEGROUP, 3},
                {NOBODY, NOBODY, 0, 0}};

    make_file("file", 0, "text");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t who = 0; who < sizeof whos / sizeof whos[0]; who++) {
            become(0, 0, 0);
            /* The two others' three bits say the opposite. */
            WORKS(chmod("file", (0777 & ~(mode_t)(7 << whos[who].shift)) | cases[i].mode
                                                                               << whos[who].shift));
            become(whos[who].user, whos[who].group, whos[who].supplementary);
            if (cases[i].may) {
                WORKS(close(WORKS(open("file", cases[i].flags | O_CLOEXEC))));
            } else {
                FAILS(EACCES, open("file", cases[i].flags | O_CLOEXEC));
            }
        }
    }
    become(0, 0, 0);
    WORKS(chmod("file", 0));
    WORKS(close(WORKS(open("file", O_RDWR | O_CLOEXEC))));
}

void posix_open_exists(void) {
    make_file("file", 0644, "text");
    make_directory("directory", 0755);
    WORKS(symlink("absent", "link"));
    FAILS(EEXIST, open("file", O_CREAT | O_EXCL | O_RDWR, 0644));
    FAILS(EEXIST, open("directory", O_CREAT | O_EXCL | O_RDWR, 0644));
    FAILS(EEXIST, open("link", O_CREAT | O_EXCL | O_RDWR, 0644));
    HOLDS(!is_there("absent"));
    HOLDS(holds_text("file", "text"));
}

void posix_open_interrupted(void) {
    WORKS(mkfifo("fifo", 0644));
    interrupt_soon();
    FAILS(EINTR, open("fifo", O_RDONLY));
    FAILS(EINTR, open("fifo", O_WRONLY));
}

void posix_open_directory(void) {
    make_directory("directory", 0755);
    FAILS(EISDIR, open("directory", O_WRONLY));
    FAILS(EISDIR, open("directory", O_RDWR));
    FAILS(EISDIR, open("directory", O_RDONLY | O_TRUNC));
    FAILS(EISDIR, open("directory", O_RDONLY | O_CREAT, 0644));
    FAILS(EISDIR, open("absent/", O_RDWR | O_CREAT, 0644));
    WORKS(open("directory", O_RDONLY | O_DIRECTORY));
}

void posix_open_link(void) {
    make_file("file", 0644, "text");
    WORKS(symlink("file", "link"));
    FAILS(ELOOP, open("link", O_RDONLY | O_NOFOLLOW));
    FAILS(ELOOP, open("link", O_RDWR | O_CREAT | O_NOFOLLOW, 0644));
    WORKS(open("link", O_RDONLY | O_NOFOLLOW | O_PATH));
}

void posix_open_too_many(void) {
    struct rlimit limit;

    make_file("file", 0644, "text");
    WORKS(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 3;
    WORKS(setrlimit(RLIMIT_NOFILE, &limit));
    WORKS(close(2));
    WORKS(open("file", O_RDONLY));
    FAILS(EMFILE, open("file", O_RDONLY));
    FAILS(EMFILE, open("new", O_RDWR | O_CREAT, 0644));
}

void posix_open_no_directory(void) {
    make_file("file", 0644, "text");
    FAILS(ENOTDIR, open("file", O_RDONLY | O_DIRECTORY));
    FAILS(ENOTDIR, open("file/", O_RDONLY));
}

void posix_open_no_reader(void) {
    WORKS(mkfifo("fifo", 0644));
    FAILS(ENXIO, open("fifo", O_WRONLY | O_NONBLOCK));
    WORKS(open("fifo", O_RDONLY | O_NONBLOCK));
    WORKS(open("fifo", O_WRONLY | O_NONBLOCK));
}

void posix_open_device_missing(void) {
    WORKS(mknod("device", S_IFCHR | 0644, makedev(240, 77)));
    FAILS(ENXIO, open("device", O_RDONLY));
    WORKS(mknod("null", S_IFCHR | 0644, makedev(1, 3)));
    if (open("null", O_WRONLY) < 0) {
        HOLDS(errno == EACCES); /* mounted nodev */
    }
}

void posix_open_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = WORKS(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));

    WORKS(bind(fd, (struct sockaddr *)&address, sizeof address));
    FAILS(ENXIO, open("socket", O_RDWR));
    WORKS(listen(fd, 1));
    int other = WORKS(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    WORKS(connect(other, (struct sockaddr *)&address, sizeof address));
}

void posix_open_busy(void) {
    make_program("program");
    pid_t process = program_start("./program");
    FAILS(ETXTBSY, open("program", O_WRONLY));
    FAILS(ETXTBSY, open("program", O_RDWR | O_TRUNC));
    FAILS(ETXTBSY, truncate("program", 0));
    WORKS(close(WORKS(open("program", O_RDONLY))));
    program_end(process);
    int fd = WORKS(open("program", O_WRONLY));
    pid_t child = WORKS(fork());
    if (child == 0) {
        execl("./program", "./program", "0", (char *)NULL);
        _exit(errno == ETXTBSY ? 0 : 1);
    }
    int status;
    WORKS(waitpid(child, &status, 0));
    HOLDS(status == 0);
    WORKS(close(fd));
}

void posix_open_exclusive_once(void) {
    enum { PROCESSES = 8, NAMES = 50 };
    int ends[2];
    char won = 0;
    size_t count = 0;

    WORKS(pipe(ends));
    for (int i = 0; i < PROCESSES; i++) {
        if (WORKS(fork()) == 0) {
            char name[] = "name-00";

            for (int at = 0; at < NAMES; at++) {
                name[5] = (char)('0' + at / 10);
                name[6] = (char)('0' + at % 10);
                int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
                if (fd >= 0) {
                    (void)!write(ends[1], "x", 1);
                    close(fd);
                } else if (errno != EEXIST) {
                    (void)!write(ends[1], "?", 1);
                }
            }
            _exit(0);
        }
    }
    WORKS(close(ends[1]));
    while (WORKS(read(ends[0], &won, 1)) == 1) {
        HOLDS(won == 'x');
        count++;
    }
    HOLDS(count == NAMES);
}

void posix_open_truncates(void) {
    make_file("file", 0644, "text");
    WORKS(close(WORKS(open("file", O_RDWR | O_CREAT, 0600))));
    HOLDS(holds_text("file", "text"));
    HOLDS(mode_of("file") == 0644);
    WORKS(close(WORKS(creat("file", 0600))));
    HOLDS(size_of("file") == 0);
    HOLDS(mode_of("file") == 0644);
}

/* What the creator may do is not bounded by the mode that the file gets. */
void posix_open_own_mode(void) {
    char byte;

    become(SOMEBODY, SOMEGROUP, 0);
    int fd = WORKS(open("file", O_RDWR | O_CREAT | O_EXCL, 0));
    HOLDS(WORKS(write(fd, "x", 1)) == 1);
    HOLDS(WORKS(pread(fd, &byte, 1, 0)) == 1);
    HOLDS(mode_of("file") == 0);
    FAILS(EACCES, open("file", O_RDONLY));
}

/* An open file keeps the rights that it was opened with. */
void posix_open_keeps_rights(void) {
    char byte;

    make_file("file", 0666, "text");
    become(NOBODY, NOBODY, 0);
    int fd = WORKS(open("file", O_RDWR));
    become(0, 0, 0);
    WORKS(chmod("file", 0));
    become(NOBODY, NOBODY, 0);
    HOLDS(WORKS(pwrite(fd, "x", 1, 0)) == 1);
    HOLDS(WORKS(pread(fd, &byte, 1, 0)) == 1);
    WORKS(ftruncate(fd, 2));
    FAILS(EACCES, open("file", O_RDONLY));
}

void posix_open_umask(void) {
    WORKS(umask(027));
    WORKS(close(WORKS(open("file", O_RDWR | O_CREAT, 0777))));
    WORKS(mkdir("directory", 0777));
    WORKS(mkfifo("fifo", 0666));
    HOLDS(mode_of("file") == 0750);
    HOLDS(mode_of("directory") == 0750);
    HOLDS(mode_of("fifo") == 0640);
}

/* A new file is the creator's; under a set-group-ID directory it has that one's group. */
void posix_open_owner(void) {
    struct stat status;

    make_directory("plain", 0777);
    make_directory("group", 0777);
    WORKS(chown("group", 0, SOMEGROUP));
    WORKS(chmod("group", 02777));
    become(SOMEBODY, NOBODY, 0);
    WORKS(close(WORKS(creat("plain/file", 0644))));
    WORKS(close(WORKS(creat("group/file", 0644))));
    WORKS(mkdir("group/directory", 0755));
    WORKS(symlink("x", "group/link"));
    WORKS(mkfifo("group/fifo", 0644));
    WORKS(stat("plain/file", &status));
    HOLDS(status.st_uid == SOMEBODY && status.st_gid == NOBODY);
    WORKS(stat("group/file", &status));
    HOLDS(status.st_uid == SOMEBODY && status.st_gid == SOMEGROUP);
    WORKS(stat("group/directory", &status));
    HOLDS(status.st_gid == SOMEGROUP && (status.st_mode & S_ISGID));
    WORKS(lstat("group/link", &status));
    HOLDS(status.st_gid == SOMEGROUP);
    WORKS(stat("group/fifo", &status));
    HOLDS(status.st_gid == SOMEGROUP);
    /* Who is no member can't make a program of that group. */
    WORKS(close(WORKS(creat("group/program", 02755))));
    HOLDS(!(mode_of("group/program") & S_ISGID));
    become(SOMEBODY, NOBODY, SOMEGROUP);
    WORKS(close(WORKS(creat("group/tool", 02755))));
    HOLDS(mode_of("group/tool") == 02755);
    WORKS(mknod("group/node", S_IFREG | 02755, 0));
    HOLDS(mode_of("group/node") == 02755);
}

void posix_close_bad(void) {
    int fd = WORKS(open(".", O_RDONLY));

    WORKS(close(fd));
    FAILS(EBADF, close(fd));
    FAILS(EBADF, close(-1));
}

/* Removed while it is open, a file lives on until the last close, also over an execve. */
void posix_open_unlinked(void) {
    char text[8];
    struct stat status;

    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR));
    int other = WORKS(open("file", O_RDONLY));
    WORKS(unlink("file"));
    HOLDS(!is_there("file"));
    WORKS(fstat(fd, &status));
    HOLDS(status.st_nlink == 0 && status.st_size == 4);
    HOLDS(WORKS(pwrite(fd, "more", 4, 4)) == 4);
    HOLDS(WORKS(pread(other, text, 8, 0)) == 8 && memcmp(text, "textmore", 8) == 0);
    WORKS(close(fd));
    HOLDS(WORKS(pread(other, text, 8, 0)) == 8);
    make_file("file", 0644, "new");
    HOLDS(WORKS(pread(other, text, 8, 0)) == 8 && memcmp(text, "textmore", 8) == 0);
    WORKS(fchmod(other, 0600));
    WORKS(fstat(other, &status));
    HOLDS((status.st_mode & 07777) == 0600);
    HOLDS(mode_of("file") == 0644);
}

void posix_open_replaced(void) {
    char text[8];

    make_file("old", 0644, "old");
    make_file("new", 0644, "new!");
    int fd = WORKS(open("old", O_RDWR));
    WORKS(rename("new", "old"));
    HOLDS(WORKS(pread(fd, text, 8, 0)) == 3 && memcmp(text, "old", 3) == 0);
    HOLDS(WORKS(pwrite(fd, "OLD", 3, 0)) == 3);
    HOLDS(holds_text("old", "new!"));
}

/* A directory that was removed while somebody is in it takes no new names. */
void posix_open_removed_directory(void) {
    struct stat status;

    make_directory("directory", 0777);
    int fd = WORKS(open("directory", O_RDONLY | O_DIRECTORY));
    WORKS(rmdir("directory"));
    FAILS(ENOENT, openat(fd, "file", O_RDWR | O_CREAT, 0644));
    FAILS(ENOENT, mkdirat(fd, "directory", 0755));
    FAILS(ENOENT, symlinkat("x", fd, "link"));
    FAILS(ENOENT, openat(fd, "file", O_RDONLY));
    WORKS(fstat(fd, &status));
    HOLDS(status.st_nlink == 0);
}
