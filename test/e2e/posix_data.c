/* read, write, lseek, truncate, fsync, mmap: bytes. */
#include "posix.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const off_t offset_max = INT64_MAX;

static void *map(size_t size, int protection, int flags, int fd) {
    return mmap(NULL, size, protection, flags, fd, 0);
}

int new_file(const char *name) {
    return WORKS(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

void posix_read_not_open(void) {
    char byte;

    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_WRONLY));
    FAILS(EBADF, read(fd, &byte, 1));
    FAILS(EBADF, pread(fd, &byte, 1, 0));
    FAILS(EBADF, read(999, &byte, 1));
}

void posix_read_directory(void) {
    char byte;
    int fd = WORKS(open(".", O_RDONLY));

    FAILS(EISDIR, read(fd, &byte, 1));
    FAILS(EISDIR, pread(fd, &byte, 1, 0));
}

void posix_read_fifo_empty(void) {
    char byte;

    WORKS(mkfifo("fifo", 0644));
    int fd = WORKS(open("fifo", O_RDWR | O_NONBLOCK));
    FAILS(EAGAIN, read(fd, &byte, 1));
}

void posix_read_interrupted(void) {
    char byte;

    WORKS(mkfifo("fifo", 0644));
    int fd = WORKS(open("fifo", O_RDWR));
    interrupt_soon();
    FAILS(EINTR, read(fd, &byte, 1));
}

void posix_read_negative(void) {
    char byte = 0;
    int fd = new_file("file");

    FAILS(EINVAL, pread(fd, &byte, 1, -1));
    FAILS(EINVAL, pwrite(fd, &byte, 1, -1));
}

void posix_read_fifo_offset(void) {
    char byte = 0;

    WORKS(mkfifo("fifo", 0644));
    int fd = WORKS(open("fifo", O_RDWR));
    FAILS(ESPIPE, pread(fd, &byte, 1, 0));
    FAILS(ESPIPE, pwrite(fd, &byte, 1, 0));
    FAILS(ESPIPE, lseek(fd, 0, SEEK_CUR));
}

void posix_read_bad_memory(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    char *nowhere = map(4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    HOLDS(nowhere != MAP_FAILED);
    FAILS(EFAULT, pread(fd, nowhere, 4, 0));
    FAILS(EFAULT, pwrite(fd, nowhere, 4, 0));
    HOLDS(holds_text("file", "text"));
}

/* At and beyond the end there is nothing; up to the largest offset. */
void posix_read_end(void) {
    char text[8];
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    HOLDS(WORKS(pread(fd, text, 8, 4)) == 0);
    HOLDS(WORKS(pread(fd, text, 8, 2)) == 2);
    HOLDS(WORKS(pread(fd, text, 8, 1000000)) == 0);
    HOLDS(WORKS(pread(fd, text, 0, 0)) == 0);
}

void posix_read_overflow(void) {
    char text[8];
    int fd = new_file("file");

    ssize_t r = pread(fd, text, 8, offset_max);

    HOLDS(r == -1 && (errno == EOVERFLOW || errno == EINVAL));
}

/* Holes read as zeros, whatever lies before and behind, and whichever way the file grew. */
void posix_read_hole(void) {
    static const off_t ends[] = {3, 5000, 70000, 1 << 20, (3 << 20) + 17};
    static char data[4 << 20];
    char name[32];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "file-%zu", i);
        int fd = new_file(name);
        HOLDS(WORKS(pwrite(fd, "a", 1, 0)) == 1);
        HOLDS(WORKS(pwrite(fd, "z", 1, ends[i])) == 1);
        HOLDS(WORKS(pread(fd, data, sizeof data, 0)) == ends[i] + 1);
        HOLDS(data[0] == 'a' && data[ends[i]] == 'z');
        for (off_t at = 1; at < ends[i]; at++) {
            HOLDS(data[at] == 0);
        }
        WORKS(ftruncate(fd, 2 * ends[i]));
        HOLDS(WORKS(pread(fd, data, 4096, ends[i] + 1)) == (ends[i] > 4096 ? 4096 : ends[i] - 1));
        HOLDS(data[0] == 0);
        WORKS(close(fd));
    }
}

void posix_write_not_open(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDONLY));
    FAILS(EBADF, write(fd, "x", 1));
    FAILS(EBADF, pwrite(fd, "x", 1, 0));
    FAILS(EBADF, write(999, "x", 1));
}

void posix_write_fifo_full(void) {
    char data[4096] = {0};
    ssize_t r;

    WORKS(mkfifo("fifo", 0644));
    int fd = WORKS(open("fifo", O_RDWR | O_NONBLOCK));
    while ((r = write(fd, data, sizeof data)) > 0) {
    }
    HOLDS(r == -1 && errno == EAGAIN);
}

void posix_write_fifo_closed(void) {
    WORKS(mkfifo("fifo", 0644));
    int reader = WORKS(open("fifo", O_RDONLY | O_NONBLOCK));
    int fd = WORKS(open("fifo", O_WRONLY));
    WORKS(close(reader));
    HOLDS(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    FAILS(EPIPE, write(fd, "x", 1));
}

void posix_write_interrupted(void) {
    char data[4096] = {0};

    WORKS(mkfifo("fifo", 0644));
    int fd = WORKS(open("fifo", O_RDWR | O_NONBLOCK));
    while (write(fd, data, sizeof data) > 0) {
    }
    WORKS(fcntl(fd, F_SETFL, 0));
    interrupt_soon();
    FAILS(EINTR, write(fd, data, sizeof data));
}

static void limit_files(rlim_t bytes) {
    const struct rlimit limit = {bytes, bytes};

    HOLDS(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    WORKS(setrlimit(RLIMIT_FSIZE, &limit));
}

void posix_write_limit(void) {
    int fd = new_file("file");

    limit_files(10000);
    HOLDS(WORKS(pwrite(fd, "xxxx", 4, 9998)) == 2);
    FAILS(EFBIG, pwrite(fd, "x", 1, 10000));
    FAILS(EFBIG, pwrite(fd, "x", 1, 20000));
    HOLDS(size_of("file") == 10000);
    FAILS(EFBIG, ftruncate(fd, 10001));
    FAILS(EFBIG, truncate("file", 10001));
    FAILS(EFBIG, posix_fallocate(fd, 9999, 2) == 0 ? 0 : (errno = EFBIG, -1));
    HOLDS(size_of("file") == 10000);
}

void posix_write_too_far(void) {
    int fd = new_file("file");
    ssize_t r = pwrite(fd, "x", 1, offset_max);

    HOLDS(r == -1 && (errno == EFBIG || errno == EINVAL));
    HOLDS(size_of("file") == 0);
}

void posix_write_nothing(void) {
    int fd = new_file("file");

    HOLDS(WORKS(pwrite(fd, "", 0, 1000)) == 0);
    HOLDS(size_of("file") == 0);
}

/* Two processes append; every line is whole, none is lost. */
void posix_write_append(void) {
    enum { LINES = 300, LINE = 64 };
    char data[LINE * 2 * LINES + 1];
    char line[LINE + 1];
    size_t counts[2] = {0, 0};
    int status;

    for (int which = 0; which < 2; which++) {
        if (WORKS(fork()) == 0) {
            int fd = WORKS(open("file", O_WRONLY | O_CREAT | O_APPEND, 0644));

            for (int i = 0; i < LINES; i++) {
                memset(line, 'a' + which, LINE);
                snprintf(line, sizeof line, "%d-%d-", which, i);
                line[strlen(line)] = (char)('a' + which);
                line[LINE - 1] = '\n';
                HOLDS(WORKS(write(fd, line, LINE)) == LINE);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        WORKS(wait(&status));
        HOLDS(status == 0);
    }
    int fd = WORKS(open("file", O_RDONLY));
    HOLDS(WORKS(read(fd, data, sizeof data)) == (ssize_t)(LINE * 2 * LINES));
    for (size_t i = 0; i < (size_t)2 * LINES; i++) {
        const char *at = data + i * LINE;
        int which = at[0] - '0';
        char want[32];

        HOLDS(which == 0 || which == 1);
        snprintf(want, sizeof want, "%d-%zu-", which, counts[which]++);
        HOLDS(memcmp(at, want, strlen(want)) == 0 && at[LINE - 1] == '\n');
        HOLDS(at[LINE - 2] == 'a' + which);
    }
}

/* pwrite on a file opened with O_APPEND appends, here as on Linux's own file systems. */
void posix_write_append_offset(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDWR | O_APPEND));
    HOLDS(WORKS(lseek(fd, 0, SEEK_SET)) == 0);
    HOLDS(WORKS(write(fd, "1", 1)) == 1);
    HOLDS(WORKS(lseek(fd, 0, SEEK_CUR)) == 5);
    WORKS(truncate("file", 2));
    HOLDS(WORKS(write(fd, "2", 1)) == 1);
    HOLDS(holds_text("file", "te2"));
}

/* Data of every size at every kind of offset, read back by another descriptor. */
void posix_write_sizes(void) {
    static const size_t sizes[] = {1,     511,   4095,          4096,          4097,
                                   65536, 70001, (1 << 20) - 1, (1 << 20) + 1, 3000000};
    static const off_t offsets[] = {0, 1, 4095, 4096, 65535, (1 << 20) - 1, 1 << 20};
    uint8_t *data = malloc(4 << 20);
    uint8_t *got = malloc(4 << 20);
    char name[32];

    HOLDS(data && got);
    for (size_t i = 0; i < 4 << 20; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251 + i / 65521);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t at = 0; at < sizeof offsets / sizeof offsets[0]; at++) {
            snprintf(name, sizeof name, "file-%zu-%zu", i, at);
            int fd = new_file(name);
            HOLDS(WORKS(pwrite(fd, data, sizes[i], offsets[at])) == (ssize_t)sizes[i]);
            int other = WORKS(open(name, O_RDONLY));
            HOLDS(WORKS(pread(other, got, 4 << 20, offsets[at])) == (ssize_t)sizes[i]);
            HOLDS(memcmp(got, data, sizes[i]) == 0);
            HOLDS(size_of(name) == offsets[at] + (off_t)sizes[i]);
            WORKS(close(other));
            WORKS(close(fd));
            WORKS(unlink(name));
        }
    }
}

void posix_write_vectors(void) {
    char first[3];
    char second[5];
    struct iovec out[] = {{"abc", 3}, {"", 0}, {"defgh", 5}};
    struct iovec in[] = {{first, 3}, {second, 5}};
    int fd = new_file("file");

    HOLDS(WORKS(writev(fd, out, 3)) == 8);
    HOLDS(WORKS(preadv(fd, in, 2, 0)) == 8);
    HOLDS(memcmp(first, "abc", 3) == 0 && memcmp(second, "defgh", 5) == 0);
}

/* Bits that would let others act for the owner go when someone else writes. */
void posix_write_drops_set_id(void) {
    make_file("file", 0666, "text");
    WORKS(chmod("file", 06777));
    become(NOBODY, NOBODY, 0);
    int fd = WORKS(open("file", O_WRONLY));
    HOLDS(WORKS(write(fd, "x", 1)) == 1);
    HOLDS(mode_of("file") == 0777);
    become(0, 0, 0);
    WORKS(chmod("file", 06777));
    become(NOBODY, NOBODY, 0);
    WORKS(truncate("file", 0));
    HOLDS(mode_of("file") == 0777);
    become(0, 0, 0);
    WORKS(chmod("file", 06777));
    become(NOBODY, NOBODY, 0);
    WORKS(close(WORKS(open("file", O_WRONLY | O_TRUNC))));
    HOLDS(mode_of("file") == 0777);
}

static void write_some(void) {
    int fd = WORKS(open("file", O_WRONLY));

    HOLDS(WORKS(write(fd, "x", 1)) == 1);
    WORKS(close(fd));
}

static void truncate_some(void) {
    WORKS(truncate("file", 2));
}

static void open_some(void) {
    WORKS(close(WORKS(open("file", O_WRONLY | O_TRUNC))));
}

/* Without execution by the group, set-group-ID stays for its members, as Linux has it since 6.2. */
void posix_write_drops_mark(void) {
    static void (*const ways[])(void) = {write_some, truncate_some, open_some};

    make_file("file", 0666, "text");
    WORKS(chown("file", 0, SOMEGROUP));
    WORKS(chmod("file", 02666));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        become(SOMEBODY, NOBODY, SOMEGROUP);
        ways[i]();
        HOLDS(mode_of("file") == 02666);
        become(NOBODY, NOBODY, 0);
        ways[i]();
        HOLDS(mode_of("file") == 0666);
        become(0, 0, 0);
        WORKS(chmod("file", 02666));
        ways[i]();
        HOLDS(mode_of("file") == 02666);
    }
}

/* They are what was asked for of a file that is made. */
void posix_open_makes_set_id(void) {
    WORKS(chmod(".", 0777));
    become(NOBODY, NOBODY, 0);
    mode_t before = umask(0);
    WORKS(close(WORKS(open("file", O_WRONLY | O_CREAT | O_TRUNC, 06755))));
    umask(before);
    HOLDS(mode_of("file") == 06755);
    WORKS(close(WORKS(open("file", O_WRONLY | O_CREAT | O_TRUNC, 06755))));
    HOLDS(mode_of("file") == 0755);
}

void posix_lseek_bad(void) {
    FAILS(EBADF, lseek(999, 0, SEEK_SET));
}

void posix_lseek_invalid(void) {
    int fd = new_file("file");

    FAILS(EINVAL, lseek(fd, 0, 99));
    FAILS(EINVAL, lseek(fd, -1, SEEK_SET));
    FAILS(EINVAL, lseek(fd, -1, SEEK_END));
    HOLDS(WORKS(lseek(fd, 0, SEEK_CUR)) == 0);
}

void posix_lseek_overflow(void) {
    int fd = new_file("file");
    off_t far = WORKS(lseek(fd, (off_t)1 << 40, SEEK_SET));

    HOLDS(far == (off_t)1 << 40);
    off_t r = lseek(fd, offset_max, SEEK_CUR);
    HOLDS(r == -1 && (errno == EOVERFLOW || errno == EINVAL));
    HOLDS(WORKS(lseek(fd, 0, SEEK_CUR)) == far);
}

void posix_lseek_places(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    HOLDS(WORKS(lseek(fd, 0, SEEK_END)) == 4);
    HOLDS(WORKS(lseek(fd, -3, SEEK_CUR)) == 1);
    HOLDS(WORKS(lseek(fd, 100, SEEK_END)) == 104);
    HOLDS(size_of("file") == 4);
    int other = WORKS(open("file", O_RDWR));
    HOLDS(WORKS(pwrite(other, "more", 4, 4)) == 4);
    HOLDS(WORKS(lseek(fd, 0, SEEK_END)) == 8);
}

void posix_lseek_no_data(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    HOLDS(WORKS(lseek(fd, 0, SEEK_DATA)) == 0);
    HOLDS(WORKS(lseek(fd, 0, SEEK_HOLE)) == 4);
    FAILS(ENXIO, lseek(fd, 4, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, 5, SEEK_HOLE));
}

void posix_truncate_negative(void) {
    int fd = new_file("file");

    FAILS(EINVAL, ftruncate(fd, -1));
    FAILS(EINVAL, truncate("file", -1));
}

void posix_truncate_special(void) {
    WORKS(mkfifo("fifo", 0644));
    FAILS(EINVAL, truncate("fifo", 0));
    int fd = WORKS(open("fifo", O_RDWR));
    FAILS(EINVAL, ftruncate(fd, 0));
}

void posix_truncate_too_far(void) {
    int fd = new_file("file");
    int r = ftruncate(fd, offset_max);

    HOLDS(r == 0 || errno == EFBIG || errno == EINVAL);
    if (r == 0) {
        HOLDS(size_of("file") == offset_max);
    }
}

void posix_truncate_not_writable(void) {
    make_file("file", 0444, "text");
    become(NOBODY, NOBODY, 0);
    FAILS(EACCES, truncate("file", 0));
    HOLDS(holds_text("file", "text"));
}

void posix_truncate_directory(void) {
    make_directory("directory", 0777);
    FAILS(EISDIR, truncate("directory", 0));
}

void posix_ftruncate_not_open(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDONLY));
    int r = ftruncate(fd, 0);
    HOLDS(r == -1 && (errno == EINVAL || errno == EBADF));
    FAILS(EBADF, ftruncate(999, 0));
    HOLDS(holds_text("file", "text"));
}

/* What was cut stays cut when the file grows again, by whichever way, at each kind of place. */
void posix_truncate_zeros(void) {
    static const off_t cuts[] = {0,    1,     100,    4095,    4096,
                                 4097, 65536, 100001, 1 << 20, (1 << 20) + 5};
    enum { SIZE = (2 << 20) + 777 };
    uint8_t *data = malloc(SIZE);
    char name[32];

    HOLDS(data);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0] * 2; i++) {
        off_t cut = cuts[i / 2];

        snprintf(name, sizeof name, "file-%zu", i);
        int fd = new_file(name);
        memset(data, 'x', SIZE);
        HOLDS(WORKS(write(fd, data, SIZE)) == SIZE);
        WORKS(ftruncate(fd, cut));
        HOLDS(size_of(name) == cut);
        HOLDS(WORKS(pread(fd, data, SIZE, 0)) == cut);
        if (i % 2) {
            WORKS(ftruncate(fd, SIZE));
        } else {
            HOLDS(WORKS(pwrite(fd, "", 1, SIZE - 1)) == 1);
        }
        HOLDS(WORKS(pread(fd, data, SIZE, 0)) == SIZE);
        for (off_t at = 0; at < SIZE; at++) {
            HOLDS(data[at] == (at < cut ? 'x' : 0));
        }
        WORKS(close(fd));
        WORKS(unlink(name));
    }
}

/* A truncation that changes nothing of the size changes the times all the same. */
void posix_truncate_times(void) {
    const struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat status;

    make_file("file", 0644, "text");
    WORKS(utimensat(AT_FDCWD, "file", past, 0));
    WORKS(truncate("file", 2));
    WORKS(stat("file", &status));
    HOLDS(status.st_mtim.tv_sec > 1000 && status.st_size == 2);
    WORKS(utimensat(AT_FDCWD, "file", past, 0));
    int fd = WORKS(open("file", O_RDWR));
    WORKS(ftruncate(fd, 2));
    WORKS(fstat(fd, &status));
    HOLDS(status.st_mtim.tv_sec > 1000);
}

void posix_fsync_bad(void) {
    FAILS(EBADF, fsync(999));
    FAILS(EBADF, fdatasync(999));
}

void posix_fsync_pipe(void) {
    int ends[2];

    WORKS(mkfifo("fifo", 0644));
    WORKS(pipe(ends));
    FAILS(EINVAL, fsync(ends[0]));
    FAILS(EINVAL, fsync(WORKS(open("fifo", O_RDWR))));
}

void posix_fsync_all_kinds(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    WORKS(fsync(fd));
    WORKS(fdatasync(fd));
    WORKS(unlink("file"));
    WORKS(fsync(fd));
    WORKS(fsync(WORKS(open(".", O_RDONLY))));
    WORKS(fsync(WORKS(open(".", O_RDONLY | O_DIRECTORY))));
    int synced = WORKS(open("synced", O_RDWR | O_CREAT | O_SYNC, 0644));
    HOLDS(WORKS(write(synced, "text", 4)) == 4);
    int data_synced = WORKS(open("synced", O_RDWR | O_DSYNC));
    HOLDS(WORKS(write(data_synced, "TEXT", 4)) == 4);
    HOLDS(holds_text("synced", "TEXT"));
}

void posix_mmap_access(void) {
    make_file("file", 0644, "text");
    int reader = WORKS(open("file", O_RDONLY));
    int writer = WORKS(open("file", O_WRONLY));

    FAILS(EACCES, map(4, PROT_READ, MAP_SHARED, writer));
    FAILS(EACCES, map(4, PROT_READ, MAP_PRIVATE, writer));
    FAILS(EACCES, map(4, PROT_READ | PROT_WRITE, MAP_SHARED, reader));
    HOLDS(map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader) != MAP_FAILED);
}

void posix_mmap_bad(void) {
    FAILS(EBADF, map(4, PROT_READ, MAP_SHARED, 999));
}

void posix_mmap_invalid(void) {
    int fd = new_file("file");

    FAILS(EINVAL, map(0, PROT_READ, MAP_SHARED, fd));
    FAILS(EINVAL, map(4096, PROT_READ, 0, fd));
    FAILS(EINVAL, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 17));
}

void posix_mmap_kind(void) {
    WORKS(mkfifo("fifo", 0644));
    FAILS(ENODEV, map(4096, PROT_READ, MAP_SHARED, WORKS(open("fifo", O_RDWR))));
    FAILS(ENODEV, map(4096, PROT_READ, MAP_SHARED, WORKS(open(".", O_RDONLY))));
}

void posix_mmap_no_memory(void) {
    int fd = new_file("file");

    FAILS(ENOMEM, map((size_t)1 << 47, PROT_READ, MAP_SHARED, fd));
}

void posix_mmap_overflow(void) {
    int fd = new_file("file");
    off_t offset = offset_max / 4096 * 4096;

    FAILS(EOVERFLOW, mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, offset));
}

/* What one stores in a shared mapping another reads by read(), and the other way round. */
void posix_mmap_shared(void) {
    enum { SIZE = 300000 };
    char text[8];
    int fd = new_file("file");

    WORKS(ftruncate(fd, SIZE));
    char *data = map(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    HOLDS(data != MAP_FAILED);
    memcpy(data + 100, "stored", 6);
    memcpy(data + SIZE - 6, "at end", 6);
    WORKS(msync(data, SIZE, MS_SYNC));
    int other = WORKS(open("file", O_RDWR));
    HOLDS(WORKS(pread(other, text, 6, 100)) == 6 && memcmp(text, "stored", 6) == 0);
    HOLDS(WORKS(pread(other, text, 8, SIZE - 6)) == 6 && memcmp(text, "at end", 6) == 0);
    HOLDS(WORKS(pwrite(other, "written", 7, 5000)) == 7);
    HOLDS(memcmp(data + 5000, "written", 7) == 0);
    WORKS(munmap(data, SIZE));
    HOLDS(WORKS(pread(fd, text, 6, 100)) == 6 && memcmp(text, "stored", 6) == 0);
    WORKS(close(fd));
    WORKS(close(other));
    HOLDS(size_of("file") == SIZE);
}

/* Without msync: the unmapping and the close are enough for a reader that opens afterwards. */
void posix_mmap_closed(void) {
    char text[8];
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, long_text(10000), 10000)) == 10000);
    char *data = map(10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    HOLDS(data != MAP_FAILED);
    WORKS(close(fd));
    memcpy(data + 4094, "stored", 6);
    WORKS(munmap(data, 10000));
    fd = WORKS(open("file", O_RDONLY));
    HOLDS(WORKS(pread(fd, text, 8, 4094)) == 8 && memcmp(text, "storednn", 8) == 0);
}

/* A private mapping is nobody else's. */
void posix_mmap_private(void) {
    make_file("file", 0644, "text");
    int fd = WORKS(open("file", O_RDONLY));
    char *data = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);

    HOLDS(data != MAP_FAILED && memcmp(data, "text", 4) == 0);
    memcpy(data, "mine", 4);
    WORKS(munmap(data, 4));
    HOLDS(holds_text("file", "text"));
}

static void touch_behind_end(void) {
    int fd = WORKS(open("file", O_RDWR));
    volatile char *data = map(8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

    HOLDS(data != MAP_FAILED);
    HOLDS(data[4095] == 0);
    _exit(data[4096]);
}

/* Pages behind the end of the file are no memory. */
void posix_mmap_behind_end(void) {
    int status;

    make_file("file", 0644, "text");
    pid_t child = WORKS(fork());
    if (child == 0) {
        touch_behind_end();
    }
    WORKS(waitpid(child, &status, 0));
    HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

void posix_msync_unmapped(void) {
    FAILS(ENOMEM, msync((void *)(uintptr_t)4096, 4096, MS_SYNC));
}

void posix_msync_invalid(void) {
    int fd = new_file("file");

    WORKS(ftruncate(fd, 4096));
    char *data = map(4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    HOLDS(data != MAP_FAILED);
    FAILS(EINVAL, msync(data + 1, 4096, MS_SYNC));
    FAILS(EINVAL, msync(data, 4096, MS_SYNC | MS_ASYNC));
    FAILS(EINVAL, msync(data, 4096, 64));
}

/* O_DIRECT: whole blocks, through to the servers, seen by all others. */
void posix_write_direct(void) {
    enum { SIZE = 1 << 20 };
    void *data;
    char text[16];

    HOLDS(posix_memalign(&data, 4096, SIZE) == 0);
    memset(data, 'd', SIZE);
    int fd = WORKS(open("file", O_RDWR | O_CREAT | O_DIRECT, 0644));
    HOLDS(WORKS(pwrite(fd, data, SIZE, 4096)) == SIZE);
    int other = WORKS(open("file", O_RDWR));
    HOLDS(WORKS(pread(other, text, 16, 4090)) == 16);
    HOLDS(memcmp(text, "\0\0\0\0\0\0dddddddddd", 16) == 0);
    HOLDS(WORKS(pwrite(other, "cached", 6, 5000)) == 6);
    HOLDS(WORKS(pread(fd, data, 8192, 0)) == 8192);
    HOLDS(memcmp((char *)data + 5000, "cached", 6) == 0);
}

/* A write by one descriptor is read by another at once, whatever each was opened for. */
void posix_read_after_write(void) {
    char text[16];

    make_file("file", 0644, "0000000000");
    int reader = WORKS(open("file", O_RDONLY));
    int writer = WORKS(open("file", O_RDWR));
    HOLDS(WORKS(pread(reader, text, 10, 0)) == 10);
    for (char i = 1; i < 10; i++) {
        char digit = (char)('0' + i);

        HOLDS(WORKS(pwrite(writer, &digit, 1, i)) == 1);
        HOLDS(WORKS(pread(reader, text, 10, 0)) == 10 && text[(int)i] == digit);
    }
    WORKS(ftruncate(writer, 3));
    HOLDS(WORKS(pread(reader, text, 10, 0)) == 3);
    HOLDS(WORKS(pwrite(writer, "x", 1, 8000)) == 1);
    HOLDS(WORKS(pread(reader, text, 10, 7999)) == 2 && text[0] == 0 && text[1] == 'x');
}

/* Reads bytes that the medium has lost: an error, never other bytes. */
void posix_read_damaged(void) {
    char data[4096];
    int fd = WORKS(open("damaged", O_RDONLY));

    FAILS(EIO, pread(fd, data, sizeof data, 0));
    int direct = WORKS(open("damaged", O_RDWR));
    FAILS(EIO, pread(direct, data, sizeof data, 0));
    FAILS(EIO, pwrite(direct, "x", 1, 17));
}

void posix_mmap_damaged(void) {
    int status;
    pid_t child = WORKS(fork());

    if (child == 0) {
        volatile char *data = map(4096, PROT_READ, MAP_PRIVATE, WORKS(open("damaged", O_RDONLY)));

        _exit(data[0]);
    }
    WORKS(waitpid(child, &status, 0));
    HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* Space gives out in the middle: what was written stays, what is freed can be used again. */
void posix_write_full(void) {
    static char data[1 << 20];
    off_t end = 0;
    ssize_t r;

    memset(data, 'x', sizeof data);
    int fd = new_file("file");
    while ((r = pwrite(fd, data, sizeof data, end)) > 0) {
        end += r;
    }
    HOLDS(r == -1 && errno == ENOSPC);
    FAILS(ENOSPC, pwrite(fd, data, sizeof data, end));
    HOLDS(WORKS(pread(fd, data, 1, 0)) == (end > 0) && (end == 0 || data[0] == 'x'));
    HOLDS(size_of("file") == end);
    WORKS(fsync(fd));
    WORKS(close(fd));
    WORKS(unlink("file"));
}

/* What a removed file took is there for the next one. */
void posix_write_full_again(void) {
    static char data[1 << 20];
    fsblkcnt_t blocks; /* as many as there were for the first one, less a hundredth */
    struct statvfs all;
    off_t ends[3];

    WORKS(statvfs(".", &all));
    blocks = all.f_blocks * 8 / 10;
    for (int round = 0; round < 3; round++) {
        off_t end = 0;
        ssize_t r;

        wait_for_space(blocks);
        blocks = round == 0 ? blocks_free() - all.f_blocks / 100 : blocks;
        int fd = new_file("file");
        while ((r = pwrite(fd, data, sizeof data, end)) > 0) {
            end += r;
        }
        HOLDS(r == -1 && errno == ENOSPC);
        ends[round] = end;
        WORKS(close(fd));
        WORKS(unlink("file"));
    }
    HOLDS(ends[0] > 0 && ends[1] >= ends[0] * 9 / 10 && ends[2] >= ends[0] * 9 / 10);
}
