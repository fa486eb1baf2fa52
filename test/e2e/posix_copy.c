/* copy_file_range. */
#include "posix.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LARGE_BYTES = 40 << 20, PIECE_BYTES = 1 << 20 };

static int file_open(const char *name, int flags) {
    return WORKS(open(name, flags | O_CREAT | O_CLOEXEC, 0644));
}

/* All of [from, from + size), in as many calls as it takes; no call may copy nothing. */
static void copy_all(int source, off_t from, int target, off_t to, size_t size) {
    while (size > 0) {
        off_t from_before = from, to_before = to;
        ssize_t copied = WORKS(copy_file_range(source, &from, target, &to, size, 0));

        HOLDS(copied > 0 && (size_t)copied <= size);
        HOLDS(from == from_before + copied && to == to_before + copied);
        size -= (size_t)copied;
    }
}

static void write_pattern(int fd, off_t offset, size_t size, unsigned seed) {
    unsigned char *data = malloc(PIECE_BYTES);

    HOLDS(data);
    for (size_t done = 0; done < size; done += PIECE_BYTES) {
        size_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;

        for (size_t i = 0; i < piece; i++) {
            data[i] = (unsigned char)((done + i) * 31 / 7 + (done + i) / 4096 + seed);
        }
        HOLDS(WORKS(pwrite(fd, data, piece, offset + (off_t)done)) == (ssize_t)piece);
    }
    free(data);
}

static bool same_bytes(int one, off_t at_one, int other, off_t at_other, size_t size) {
    char *data = malloc(2 * PIECE_BYTES);
    bool same = true;

    HOLDS(data);
    for (size_t done = 0; done < size && same; done += PIECE_BYTES) {
        size_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;

        HOLDS(WORKS(pread(one, data, piece, at_one + (off_t)done)) == (ssize_t)piece);
        HOLDS(WORKS(pread(other, data + PIECE_BYTES, piece, at_other + (off_t)done)) ==
              (ssize_t)piece);
        same = memcmp(data, data + PIECE_BYTES, piece) == 0;
    }
    free(data);
    return same;
}

void posix_copy_bad(void) {
    int both = file_open("both", O_RDWR);
    int to_read = file_open("read", O_RDONLY);
    int to_write = file_open("write", O_WRONLY);
    int to_append = file_open("append", O_WRONLY | O_APPEND);

    FAILS(EBADF, copy_file_range(999, NULL, both, NULL, 1, 0));
    FAILS(EBADF, copy_file_range(both, NULL, 999, NULL, 1, 0));
    FAILS(EBADF, copy_file_range(to_write, NULL, both, NULL, 1, 0));
    FAILS(EBADF, copy_file_range(both, NULL, to_read, NULL, 1, 0));
    FAILS(EBADF, copy_file_range(both, NULL, to_append, NULL, 1, 0));
}

void posix_copy_invalid(void) {
    int fd = file_open("file", O_RDWR);
    int other = file_open("other", O_RDWR);
    off_t from = 0, to = 50;
    int ends[2];

    write_pattern(fd, 0, 100, 0);
    FAILS(EINVAL, copy_file_range(fd, NULL, other, NULL, 10, 1));
    FAILS(EINVAL, copy_file_range(fd, &from, fd, &to, 60, 0));
    WORKS(pipe2(ends, O_CLOEXEC));
    FAILS(EINVAL, copy_file_range(ends[0], NULL, other, NULL, 10, 0));
    FAILS(EINVAL, copy_file_range(fd, NULL, ends[1], NULL, 10, 0));
}

void posix_copy_directory(void) {
    int directory = WORKS(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int fd = file_open("file", O_RDWR);

    FAILS(EISDIR, copy_file_range(directory, NULL, fd, NULL, 10, 0));
}

void posix_copy_elsewhere(void) {
    int elsewhere = WORKS(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    int fd = file_open("file", O_RDWR);

    HOLDS(WORKS(write(elsewhere, "text", 4)) == 4);
    WORKS(lseek(elsewhere, 0, SEEK_SET));
    FAILS(EXDEV, copy_file_range(elsewhere, NULL, fd, NULL, 4, 0));
}

void posix_copy_limit(void) {
    const struct rlimit limit = {100, 100};
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);
    off_t from = 0, to = 0;

    write_pattern(fd, 0, 300, 0);
    WORKS(setrlimit(RLIMIT_FSIZE, &limit));
    HOLDS(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    HOLDS(WORKS(copy_file_range(fd, &from, copy, &to, 300, 0)) == 100);
    FAILS(EFBIG, copy_file_range(fd, &from, copy, &to, 200, 0));
    HOLDS(size_of("copy") == 100);
}

/* What there was room for is there, and told. */
void posix_copy_full(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);
    off_t to = 0;
    struct statvfs all;
    ssize_t copied;

    WORKS(statvfs(".", &all));
    wait_for_space(all.f_blocks * 8 / 10);
    write_pattern(fd, 0, LARGE_BYTES / 4, 0);
    do {
        off_t from = 0;
        off_t before = to;

        copied = copy_file_range(fd, &from, copy, &to, LARGE_BYTES / 4, 0);
        HOLDS(copied != 0 && (copied < 0 || to == before + copied));
    } while (copied > 0);
    HOLDS(errno == ENOSPC && to > 0);
    HOLDS(size_of("copy") >= to);
    HOLDS(same_bytes(fd, 0, copy, 0, (size_t)(to < LARGE_BYTES / 4 ? to : LARGE_BYTES / 4)));
    WORKS(close(copy));
    WORKS(unlink("copy"));
    WORKS(unlink("file"));
}

void posix_copy_damaged(void) {
    int fd = WORKS(open("damaged", O_RDONLY | O_CLOEXEC));
    int copy = file_open("copy of damaged", O_RDWR);

    FAILS(EIO, copy_file_range(fd, NULL, copy, NULL, 4096, 0));
    HOLDS(size_of("copy of damaged") == 0);
    WORKS(unlink("copy of damaged"));
}

void posix_copy_works(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);

    write_pattern(fd, 0, 300000, 0);
    WORKS(lseek(fd, 0, SEEK_SET));
    /* By the descriptors' own places. */
    HOLDS(WORKS(copy_file_range(fd, NULL, copy, NULL, 300000, 0)) == 300000);
    HOLDS(WORKS(lseek(fd, 0, SEEK_CUR)) == 300000 && WORKS(lseek(copy, 0, SEEK_CUR)) == 300000);
    HOLDS(same_bytes(fd, 0, copy, 0, 300000) && size_of("copy") == 300000);
    /* Over what is there, from anywhere to anywhere; and what the kernel had of it is old. */
    int cached = WORKS(open("copy", O_RDONLY | O_CLOEXEC));
    HOLDS(same_bytes(cached, 0, copy, 0, 300000));
    write_pattern(fd, 0, 300000, 99);
    copy_all(fd, 12345, copy, 777, 77777);
    HOLDS(same_bytes(fd, 12345, copy, 777, 77777));
    HOLDS(same_bytes(fd, 12345, cached, 777, 77777));
    HOLDS(size_of("copy") == 300000);
    /* Small ones. */
    int small = file_open("small", O_RDWR);
    copy_all(fd, 5, small, 0, 10);
    copy_all(small, 0, small, 10, 10);
    HOLDS(same_bytes(fd, 5, small, 10, 10) && size_of("small") == 20);
}

void posix_copy_large(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);

    write_pattern(fd, 0, LARGE_BYTES, 0);
    copy_all(fd, 0, copy, 0, LARGE_BYTES);
    HOLDS(size_of("copy") == LARGE_BYTES && same_bytes(fd, 0, copy, 0, LARGE_BYTES));
    copy_all(fd, 4097, copy, 100, LARGE_BYTES - 8000);
    HOLDS(same_bytes(fd, 4097, copy, 100, LARGE_BYTES - 8000));
}

void posix_copy_end(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);
    off_t from = 90, to = 0;

    write_pattern(fd, 0, 100, 0);
    HOLDS(WORKS(copy_file_range(fd, &from, copy, &to, 50, 0)) == 10);
    HOLDS(WORKS(copy_file_range(fd, &from, copy, &to, 50, 0)) == 0);
    HOLDS(WORKS(copy_file_range(fd, NULL, copy, NULL, 0, 0)) == 0);
    HOLDS(size_of("copy") == 10);
}

void posix_copy_within(void) {
    int fd = file_open("file", O_RDWR);

    write_pattern(fd, 0, 3 * PIECE_BYTES, 0);
    copy_all(fd, 0, fd, 3 * PIECE_BYTES, 3 * PIECE_BYTES);
    HOLDS(size_of("file") == 6 * PIECE_BYTES);
    HOLDS(same_bytes(fd, 0, fd, 3 * PIECE_BYTES, 3 * PIECE_BYTES));
}

/* Holes are zeros in the copy. */
void posix_copy_hole(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);

    write_pattern(copy, 0, 5 * PIECE_BYTES, 7);
    write_pattern(fd, 4 * PIECE_BYTES, 100, 0);
    copy_all(fd, 0, copy, 0, 4 * PIECE_BYTES + 100);
    HOLDS(same_bytes(fd, 0, copy, 0, 4 * PIECE_BYTES + 100));
    /* Behind the target's end there is one. */
    int far = file_open("far", O_RDWR);
    copy_all(fd, 4 * PIECE_BYTES, far, 2 * PIECE_BYTES, 100);
    HOLDS(size_of("far") == 2 * PIECE_BYTES + 100);
    HOLDS(same_bytes(fd, 0, far, 0, 2 * PIECE_BYTES));
}

void posix_copy_set_id(void) {
    int fd = file_open("file", O_RDWR);

    write_pattern(fd, 0, 100, 0);
    make_file("by-other", 06777, "");
    make_file("by-root", 06777, "");
    become(NOBODY, NOBODY, 0);
    int by_other = WORKS(open("by-other", O_WRONLY | O_CLOEXEC));
    copy_all(fd, 0, by_other, 0, 100);
    become(0, 0, 0);
    HOLDS(mode_of("by-other") == 0777);
    int by_root = WORKS(open("by-root", O_WRONLY | O_CLOEXEC));
    copy_all(fd, 0, by_root, 0, 100);
    HOLDS(mode_of("by-root") == 06777);
}

void posix_copy_times(void) {
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat status;
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_RDWR);

    write_pattern(fd, 0, 100, 0);
    WORKS(fsync(copy));
    WORKS(futimens(copy, times));
    copy_all(fd, 0, copy, 0, 100);
    WORKS(close(copy));
    WORKS(stat("copy", &status));
    HOLDS(status.st_mtim.tv_sec > 1000 && status.st_ctim.tv_sec > 1000);
}

void posix_copy_synchronous(void) {
    int fd = file_open("file", O_RDWR);
    int copy = file_open("copy", O_WRONLY | O_SYNC);

    write_pattern(fd, 0, 2 * PIECE_BYTES, 0);
    copy_all(fd, 0, copy, 0, 2 * PIECE_BYTES);
    WORKS(close(copy));
    copy = WORKS(open("copy", O_RDONLY | O_CLOEXEC));
    HOLDS(same_bytes(fd, 0, copy, 0, 2 * PIECE_BYTES));
}
