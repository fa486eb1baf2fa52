/* stat, chmod, chown, utimensat, access, statvfs. */
#include "posix.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static struct stat status_of(const char *name) {
    struct stat status;

    WORKS(lstat(name, &status));
    return status;
}

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

void posix_fd_bad(void) {
    const struct timespec times[2] = {{0}, {0}};
    struct stat status;
    struct statvfs space;

    FAILS(EBADF, fstat(999, &status));
    FAILS(EBADF, fchmod(999, 0600));
    FAILS(EBADF, fchown(999, 0, 0));
    FAILS(EBADF, futimens(999, times));
    FAILS(EBADF, fstatvfs(999, &space));
}

void posix_at_flags(void) {
    const struct timespec times[2] = {{0}, {0}};
    struct stat status;

    make_file("file", 0644, "text");
    FAILS(EINVAL, fstatat(AT_FDCWD, "file", &status, 0x8000000));
    FAILS(EINVAL, fchmodat(AT_FDCWD, "file", 0600, 0x8000000));
    FAILS(EINVAL, fchownat(AT_FDCWD, "file", 0, 0, 0x8000000));
    FAILS(EINVAL, utimensat(AT_FDCWD, "file", times, 0x8000000));
    FAILS(EINVAL, faccessat(AT_FDCWD, "file", R_OK, 0x8000000));
}

void posix_stat_kinds(void) {
    struct stat status;

    make_file("file", 0640, "text");
    make_directory("directory", 0750);
    WORKS(symlink("file", "link"));
    status = status_of("file");
    HOLDS(S_ISREG(status.st_mode) && status.st_size == 4 && status.st_nlink == 1);
    HOLDS(status.st_uid == 0 && status.st_gid == 0);
    HOLDS(status.st_blksize > 0);
    HOLDS(S_ISDIR(status_of("directory").st_mode));
    HOLDS(S_ISLNK(status_of("link").st_mode) && status_of("link").st_size == 4);
    WORKS(stat("link", &status));
    HOLDS(S_ISREG(status.st_mode) && status.st_ino == status_of("file").st_ino);
    HOLDS(status.st_dev == status_of("directory").st_dev);
}

enum { SECTORS = 4096 / 512, BLOCKS_SOON_S = 20 };

static blkcnt_t blocks_of(const char *name) {
    return status_of(name).st_blocks;
}

/* Asks the daemon each time, until it says so: it counts anew behind the last close. */
static bool blocks_soon(const char *name, uint64_t sectors) {
    struct timespec start, now;
    struct statx status;

    WORKS(clock_gettime(CLOCK_MONOTONIC, &start));
    do {
        WORKS(poll(NULL, 0, 10));
        WORKS(statx(AT_FDCWD, name, AT_STATX_FORCE_SYNC, STATX_BLOCKS, &status));
        WORKS(clock_gettime(CLOCK_MONOTONIC, &now));
    } while (status.stx_blocks != sectors && now.tv_sec < start.tv_sec + BLOCKS_SOON_S);
    return status.stx_blocks == sectors;
}

/* Blocks are counted where bytes are, once. */
void posix_stat_blocks(void) {
    static char data[1 << 20];

    memset(data, 'x', sizeof data);
    int fd = WORKS(open("file", O_RDWR | O_CREAT, 0644));
    HOLDS(WORKS(write(fd, data, sizeof data)) == (ssize_t)sizeof data);
    HOLDS(blocks_of("file") * 512 == (blkcnt_t)sizeof data);
    WORKS(fsync(fd));
    HOLDS(blocks_of("file") * 512 == (blkcnt_t)sizeof data);
    HOLDS(WORKS(pwrite(fd, data, sizeof data, 0)) == (ssize_t)sizeof data);
    WORKS(close(fd));
    HOLDS(blocks_of("file") * 512 == (blkcnt_t)sizeof data);
    fd = WORKS(open("file", O_WRONLY | O_TRUNC));
    HOLDS(blocks_of("file") == 0);
    HOLDS(WORKS(pwrite(fd, data, 8192, 0)) == 8192);
    WORKS(close(fd));
    HOLDS(blocks_of("file") == 2 * SECTORS);
}

/* Not where there are holes. */
void posix_stat_blocks_of_holes(void) {
    const off_t far = (off_t)1 << 40;

    int fd = WORKS(open("file", O_RDWR | O_CREAT, 0644));
    WORKS(ftruncate(fd, far));
    HOLDS(blocks_of("file") == 0);
    HOLDS(WORKS(pwrite(fd, "x", 1, far - 1)) == 1);
    HOLDS(blocks_of("file") == SECTORS);
    WORKS(close(fd));
    HOLDS(blocks_of("file") == SECTORS && size_of("file") == far);
    fd = WORKS(open("file", O_RDWR));
    HOLDS(WORKS(pwrite(fd, "xx", 2, 4095)) == 2);
    HOLDS(WORKS(pwrite(fd, "x", 1, far / 2)) == 1);
    WORKS(fsync(fd));
    HOLDS(blocks_of("file") == 4 * SECTORS);
    WORKS(close(fd));
    HOLDS(blocks_of("file") == 4 * SECTORS);
}

void posix_stat_blocks_of_small(void) {
    static char data[4097];

    make_file("file", 0644, "");
    HOLDS(blocks_of("file") == 0);
    WORKS(truncate("file", 4096));
    HOLDS(blocks_of("file") == 0);
    make_file("small", 0644, "text");
    HOLDS(blocks_of("small") == 1);
    int fd = WORKS(open("small", O_WRONLY));
    HOLDS(WORKS(pwrite(fd, data, 1000, 0)) == 1000);
    HOLDS(blocks_of("small") == 2);
    HOLDS(WORKS(pwrite(fd, data, sizeof data, 0)) == (ssize_t)sizeof data);
    WORKS(close(fd));
    HOLDS(blocks_of("small") == 2 * SECTORS);
}

/* What a truncation leaves is counted when nobody writes any more; before, at most the size. */
void posix_stat_blocks_of_cut(void) {
    static char data[1 << 16];

    memset(data, 'x', sizeof data);
    int fd = WORKS(open("file", O_RDWR | O_CREAT, 0644));
    HOLDS(WORKS(write(fd, data, sizeof data)) == (ssize_t)sizeof data);
    HOLDS(WORKS(pwrite(fd, data, sizeof data, 1 << 20)) == (ssize_t)sizeof data);
    WORKS(ftruncate(fd, (1 << 20) + 4096));
    HOLDS(blocks_of("file") * 512 <= (1 << 20) + 4096);
    WORKS(close(fd));
    HOLDS(blocks_soon("file", sizeof data / 512 + SECTORS));
    WORKS(truncate("file", 5000));
    HOLDS(blocks_of("file") <= 2 * SECTORS);
    HOLDS(blocks_soon("file", 2 * SECTORS));
    WORKS(truncate("file", (off_t)1 << 40));
    HOLDS(blocks_of("file") == 2 * SECTORS);
    WORKS(truncate("file", 0));
    HOLDS(blocks_of("file") == 0);
}

void posix_chmod_not_owner(void) {
    make_file("file", 0666, "text");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    int fd = WORKS(open("file", O_RDWR));
    become(NOBODY, SOMEGROUP, 0);
    FAILS(EPERM, chmod("file", 0600));
    FAILS(EPERM, fchmod(fd, 0600));
    become(0, 0, 0);
    HOLDS(mode_of("file") == 0666);
    become(SOMEBODY, SOMEGROUP, 0);
    WORKS(chmod("file", 0));
    WORKS(chmod("file", 0600));
    WORKS(fchmod(fd, 0644));
    HOLDS(mode_of("file") == 0644);
}

/* The set-group-ID bit goes when the owner is no member of the file's group. */
void posix_chmod_set_group(void) {
    make_file("file", 0644, "text");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    become(SOMEBODY, NOBODY, 0);
    WORKS(chmod("file", 06755));
    HOLDS(mode_of("file") == 04755);
    become(SOMEBODY, NOBODY, SOMEGROUP);
    WORKS(chmod("file", 06755));
    HOLDS(mode_of("file") == 06755);
}

void posix_chmod_all_bits(void) {
    make_file("file", 0, "text");
    make_directory("directory", 0);
    for (mode_t mode = 0; mode <= 07777; mode += 0111) {
        WORKS(chmod("file", mode));
        HOLDS(mode_of("file") == mode);
        WORKS(chmod("directory", mode));
        HOLDS(mode_of("directory") == mode);
    }
}

void posix_chmod_link(void) {
    make_file("file", 0644, "text");
    WORKS(symlink("file", "link"));
    FAILS(EOPNOTSUPP, fchmodat(AT_FDCWD, "link", 0600, AT_SYMLINK_NOFOLLOW));
    WORKS(chmod("link", 0600));
    HOLDS(mode_of("file") == 0600);
}

void posix_chown_not_owner(void) {
    make_file("file", 0666, "text");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    int fd = WORKS(open("file", O_RDWR));
    become(NOBODY, NOBODY, 0);
    FAILS(EPERM, chown("file", NOBODY, NOBODY));
    FAILS(EPERM, chown("file", (uid_t)-1, NOBODY));
    FAILS(EPERM, fchown(fd, NOBODY, (gid_t)-1));
    FAILS(EPERM, lchown("file", NOBODY, NOBODY));
    /* The owner gives the file to a group of his, and to nobody else. */
    become(SOMEBODY, NOBODY, SOMEGROUP);
    FAILS(EPERM, chown("file", NOBODY, (gid_t)-1));
    FAILS(EPERM, chown("file", (uid_t)-1, 777));
    WORKS(chown("file", (uid_t)-1, NOBODY));
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    HOLDS(status_of("file").st_uid == SOMEBODY && status_of("file").st_gid == SOMEGROUP);
}

/* Ownership is enough; no right to write is asked for. */
void posix_chown_unwritable(void) {
    make_file("file", 0444, "text");
    WORKS(chown("file", SOMEBODY, NOBODY));
    WORKS(chmod("file", 0));
    become(SOMEBODY, NOBODY, SOMEGROUP);
    WORKS(chown("file", (uid_t)-1, SOMEGROUP));
    WORKS(chmod("file", 0400));
    HOLDS(status_of("file").st_gid == SOMEGROUP);
}

void posix_chown_drops_set_id(void) {
    make_file("file", 06755, "text");
    make_directory("directory", 0755);
    WORKS(chmod("directory", 06755));
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    HOLDS(mode_of("file") == 0755);
    WORKS(chown("directory", SOMEBODY, SOMEGROUP));
    HOLDS(mode_of("directory") == 06755);
    WORKS(chmod("file", 06755));
    become(SOMEBODY, SOMEGROUP, NOBODY);
    WORKS(chown("file", (uid_t)-1, NOBODY));
    HOLDS(mode_of("file") == 0755);
}

void posix_chown_link(void) {
    make_file("file", 0644, "text");
    WORKS(symlink("file", "link"));
    WORKS(lchown("link", SOMEBODY, SOMEGROUP));
    HOLDS(status_of("link").st_uid == SOMEBODY && status_of("file").st_uid == 0);
    WORKS(chown("link", NOBODY, (gid_t)-1));
    HOLDS(status_of("file").st_uid == NOBODY && status_of("file").st_gid == 0);
    WORKS(chown("file", (uid_t)-1, 4000000000U));
    HOLDS(status_of("file").st_gid == 4000000000U);
}

void posix_utimensat_not_owner(void) {
    const struct timespec set[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    const struct timespec half[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    make_file("file", 0666, "text");
    become(NOBODY, NOBODY, 0);
    FAILS(EPERM, utimensat(AT_FDCWD, "file", set, 0));
    FAILS(EPERM, utimensat(AT_FDCWD, "file", half, 0));
    WORKS(utimensat(AT_FDCWD, "file", NULL, 0));
    WORKS(utimensat(AT_FDCWD, "file", now, 0));
}

void posix_utimensat_not_writable(void) {
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    make_file("file", 0444, "text");
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, utimensat(AT_FDCWD, "file", NULL, 0));
    FAILS(EACCES, utimensat(AT_FDCWD, "file", now, 0));
}

void posix_utimensat_invalid(void) {
    const struct timespec bad[2] = {{.tv_nsec = 1000000000}, {0}};
    const struct timespec negative[2] = {{0}, {.tv_nsec = -1}};

    make_file("file", 0644, "text");
    FAILS(EINVAL, utimensat(AT_FDCWD, "file", bad, 0));
    FAILS(EINVAL, utimensat(AT_FDCWD, "file", negative, 0));
}

void posix_utimensat_sets(void) {
    const struct timespec set[2] = {{100, 123456789}, {4000000000, 987654321}};
    const struct timespec before_1970[2] = {{-1000, 5}, {-1, 999999999}};
    const struct timespec half[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 7}};
    const struct timespec none[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    struct stat status;

    make_file("file", 0644, "text");
    WORKS(symlink("file", "link"));
    WORKS(utimensat(AT_FDCWD, "file", set, 0));
    status = status_of("file");
    HOLDS(status.st_atim.tv_sec == 100 && status.st_atim.tv_nsec == 123456789);
    HOLDS(status.st_mtim.tv_sec == 4000000000 && status.st_mtim.tv_nsec == 987654321);
    WORKS(utimensat(AT_FDCWD, "file", before_1970, 0));
    status = status_of("file");
    HOLDS(status.st_atim.tv_sec == -1000 && status.st_atim.tv_nsec == 5);
    HOLDS(status.st_mtim.tv_sec == -1 && status.st_mtim.tv_nsec == 999999999);
    WORKS(utimensat(AT_FDCWD, "file", half, 0));
    status = status_of("file");
    HOLDS(status.st_atim.tv_sec == -1000 && status.st_mtim.tv_sec == 7);
    WORKS(utimensat(AT_FDCWD, "file", none, 0));
    WORKS(utimensat(AT_FDCWD, "link", set, AT_SYMLINK_NOFOLLOW));
    HOLDS(status_of("link").st_atim.tv_sec == 100 && status_of("file").st_mtim.tv_sec == 7);
}

/* Times set while it is open for writing, after the last write, are those that stay. */
/* What can't be kept becomes the nearest that can, a whole second, as the kernel has it. */
void posix_utimensat_far(void) {
    const time_t far = (time_t)1 << 40;
    const struct timespec later[2] = {{.tv_sec = far, .tv_nsec = 5},
                                      {.tv_sec = INT64_MAX, .tv_nsec = 5}};
    const struct timespec earlier[2] = {{.tv_sec = -far, .tv_nsec = 5},
                                        {.tv_sec = INT64_MIN, .tv_nsec = 5}};

    make_file("file", 0644, "");
    WORKS(utimensat(AT_FDCWD, "file", later, 0));
    struct stat status = status_of("file");
    HOLDS(status.st_atim.tv_sec > INT32_MAX && status.st_atim.tv_sec <= far);
    HOLDS(status.st_atim.tv_nsec == (status.st_atim.tv_sec == far ? 5 : 0));
    HOLDS(status.st_mtim.tv_sec >= status.st_atim.tv_sec && status.st_mtim.tv_nsec == 0);
    WORKS(utimensat(AT_FDCWD, "file", earlier, 0));
    status = status_of("file");
    HOLDS(status.st_atim.tv_sec <= INT32_MIN && status.st_atim.tv_sec >= -far);
    HOLDS(status.st_atim.tv_nsec == (status.st_atim.tv_sec == -far ? 5 : 0));
    HOLDS(status.st_mtim.tv_sec <= status.st_atim.tv_sec && status.st_mtim.tv_nsec == 0);
}

void posix_utimensat_before_close(void) {
    static char data[100000];
    const struct timespec set[2] = {{100, 1}, {200, 2}};

    for (int i = 0; i < 2; i++) {
        const char *name = i ? "large" : "small";
        int fd = WORKS(open(name, O_RDWR | O_CREAT, 0644));

        WORKS(write(fd, data, i ? sizeof data : 10));
        WORKS(futimens(fd, set));
        WORKS(close(fd));
        HOLDS(status_of(name).st_mtim.tv_sec == 200 && status_of(name).st_mtim.tv_nsec == 2);
        fd = WORKS(open(name, O_RDWR));
        WORKS(pwrite(fd, "x", 1, 0));
        WORKS(close(fd));
        HOLDS(status_of(name).st_mtim.tv_sec > 200);
    }
}

/* Clocks of file systems tick slowly: only what happens after the next tick has a later time. */
static void wait_past(struct timespec time) {
    struct timespec now;

    do {
        WORKS(clock_gettime(CLOCK_REALTIME_COARSE, &now));
    } while (!is_later(now, time));
}

/* Which operation changes which time, of the object and of its directory. */
void posix_times_marked(void) {
    struct stat before;
    struct stat after;

    make_directory("directory", 0777);
    make_file("directory/file", 0644, "text");
#define MARKS(name, call, modified)                                                                \
    do {                                                                                           \
        before = status_of(name);                                                                  \
        wait_past(before.st_ctim);                                                                 \
        WORKS(call);                                                                               \
        after = status_of(name);                                                                   \
        HOLDS(is_later(after.st_ctim, before.st_ctim));                                            \
        HOLDS(is_later(after.st_mtim, before.st_mtim) == (modified));                              \
    } while (0)
    int fd = WORKS(open("directory/file", O_RDWR));
    MARKS("directory/file", write(fd, "x", 1), true);
    MARKS("directory/file", ftruncate(fd, 3), true);
    MARKS("directory/file", chmod("directory/file", 0600), false);
    MARKS("directory/file", chown("directory/file", 1, 1), false);
    MARKS("directory/file", link("directory/file", "second"), false);
    MARKS("directory/file", unlink("second"), false);
    WORKS(link("directory/file", "directory/same"));
    MARKS("directory/same", rename("directory/file", "directory/other"), false);
#undef MARKS
}

void posix_times_of_directory(void) {
    struct stat before;
    struct stat after;

    make_directory("directory", 0777);
#define MARKS(call)                                                                                \
    do {                                                                                           \
        before = status_of("directory");                                                           \
        wait_past(before.st_ctim);                                                                 \
        WORKS(call);                                                                               \
        after = status_of("directory");                                                            \
        HOLDS(is_later(after.st_ctim, before.st_ctim));                                            \
        HOLDS(is_later(after.st_mtim, before.st_mtim));                                            \
    } while (0)
    MARKS(creat("directory/file", 0644));
    MARKS(mkdir("directory/sub", 0755));
    MARKS(symlink("x", "directory/link"));
    MARKS(mkfifo("directory/fifo", 0644));
    MARKS(link("directory/file", "directory/second"));
    MARKS(rename("directory/file", "directory/third"));
    MARKS(rename("directory/third", "out"));
    MARKS(rename("out", "directory/in"));
    MARKS(unlink("directory/in"));
    MARKS(rmdir("directory/sub"));
#undef MARKS
}

void posix_access_denied(void) {
    make_file("file", 0640, "text");
    WORKS(chown("file", SOMEBODY, SOMEGROUP));
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, faccessat(AT_FDCWD, "file", R_OK, AT_EACCESS));
    WORKS(faccessat(AT_FDCWD, "file", F_OK, AT_EACCESS));
    become(NOBODY, NOBODY, SOMEGROUP);
    WORKS(faccessat(AT_FDCWD, "file", R_OK, AT_EACCESS));
    FAILS(EACCES, faccessat(AT_FDCWD, "file", W_OK, AT_EACCESS));
    become(SOMEBODY, NOBODY, 0);
    WORKS(faccessat(AT_FDCWD, "file", R_OK | W_OK, AT_EACCESS));
    FAILS(EACCES, faccessat(AT_FDCWD, "file", X_OK, AT_EACCESS));
    become(0, 0, 0);
    FAILS(EACCES, access("file", X_OK));
    WORKS(access("file", R_OK | W_OK));
}

void posix_access_invalid(void) {
    make_file("file", 0644, "text");
    FAILS(EINVAL, access("file", 8));
}

void posix_statvfs_sane(void) {
    struct statvfs space;
    struct statvfs by_descriptor;

    WORKS(statvfs(".", &space));
    WORKS(fstatvfs(WORKS(open(".", O_RDONLY)), &by_descriptor));
    HOLDS(space.f_bsize > 0 && space.f_frsize > 0 && space.f_blocks > 0);
    HOLDS(space.f_bfree <= space.f_blocks && space.f_bavail <= space.f_bfree);
    HOLDS(space.f_ffree <= space.f_files && space.f_namemax == 255);
    HOLDS(by_descriptor.f_blocks == space.f_blocks && by_descriptor.f_namemax == space.f_namemax);
}
