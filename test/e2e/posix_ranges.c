/* lseek for data and holes, fallocate: ranges of files. */
#include "posix.h"
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const off_t offset_max = INT64_MAX;

/* Of a file in the inode, of chunks, and of what was not closed yet. */
void posix_lseek_holes(void) {
    static char data[65536];
    int fd = new_file("file");
    off_t far = 5 << 20;

    memset(data, 'x', sizeof data);
    HOLDS(WORKS(pwrite(fd, data, sizeof data, 0)) == sizeof data);
    HOLDS(WORKS(pwrite(fd, data, sizeof data, far)) == sizeof data);
    HOLDS(WORKS(lseek(fd, 0, SEEK_DATA)) == 0);
    HOLDS(WORKS(lseek(fd, 0, SEEK_HOLE)) == sizeof data);
    HOLDS(WORKS(lseek(fd, sizeof data, SEEK_DATA)) == far);
    HOLDS(WORKS(lseek(fd, far + 1, SEEK_DATA)) == far + 1);
    HOLDS(WORKS(lseek(fd, far, SEEK_HOLE)) == far + (off_t)sizeof data);
    WORKS(ftruncate(fd, far + (1 << 20)));
    FAILS(ENXIO, lseek(fd, far + (off_t)sizeof data, SEEK_DATA));
    HOLDS(WORKS(lseek(fd, far + 100000, SEEK_HOLE)) == far + 100000);
    WORKS(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 16384));
    HOLDS(WORKS(lseek(fd, 0, SEEK_HOLE)) == 8192);
    HOLDS(WORKS(lseek(fd, 8192, SEEK_DATA)) == 8192 + 16384);
    WORKS(close(fd));
    fd = WORKS(open("file", O_RDONLY));
    HOLDS(WORKS(lseek(fd, 100000, SEEK_DATA)) == far);
}

/* Holes cost nothing, however far. */
void posix_lseek_far(void) {
    int fd = new_file("file");
    off_t far = (off_t)1 << 50;

    HOLDS(WORKS(pwrite(fd, "end", 3, far)) == 3);
    HOLDS(WORKS(lseek(fd, 0, SEEK_DATA)) == far);
    HOLDS(WORKS(lseek(fd, 0, SEEK_HOLE)) == 0);
    WORKS(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, far + 4096));
    FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
    HOLDS(size_of("file") == far + 3);
}

static void allocation_fails(int error, int fd, off_t offset, off_t size) {
    int r = posix_fallocate(fd, offset, size);

    errno = r;
    HOLDS(r == error);
}

void posix_fallocate_bad(void) {
    make_file("file", 0644, "text");
    allocation_fails(EBADF, 999, 0, 1);
    allocation_fails(EBADF, WORKS(open("file", O_RDONLY)), 0, 1);
}

void posix_fallocate_invalid(void) {
    int fd = new_file("file");

    allocation_fails(EINVAL, fd, 0, 0);
    allocation_fails(EINVAL, fd, -1, 1);
    allocation_fails(EINVAL, fd, 0, -1);
}

void posix_fallocate_too_far(void) {
    int fd = new_file("file");

    allocation_fails(EFBIG, fd, offset_max, 1);
    HOLDS(size_of("file") == 0);
}

void posix_fallocate_device(void) {
    int fd = WORKS(open(".", O_RDONLY));
    int r = posix_fallocate(fd, 0, 1);

    HOLDS(r == ENODEV || r == EBADF || r == EISDIR);
}

void posix_fallocate_fifo(void) {
    WORKS(mkfifo("fifo", 0644));
    allocation_fails(ESPIPE, WORKS(open("fifo", O_RDWR)), 0, 1);
}

void posix_fallocate_grows(void) {
    char text[8];
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    allocation_fails(0, fd, 0, 2);
    HOLDS(size_of("file") == 4);
    allocation_fails(0, fd, 100, 1000000);
    HOLDS(size_of("file") == 1000100);
    HOLDS(WORKS(pread(fd, text, 8, 0)) == 8 && memcmp(text, "text\0\0\0\0", 8) == 0);
    HOLDS(WORKS(pread(fd, text, 8, 1000096)) == 4 && memcmp(text, "\0\0\0\0", 4) == 0);
}

void posix_fallocate_modes(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 4096));
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_UNSHARE_RANGE, 0, 4096));
    FAILS(EOPNOTSUPP, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096));
    FAILS(
        EOPNOTSUPP,
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE, 0, 4096));
    HOLDS(holds_text("file", "text"));
}

void posix_fallocate_keeps_size(void) {
    int fd = new_file("file");

    HOLDS(WORKS(write(fd, "text", 4)) == 4);
    WORKS(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
    HOLDS(size_of("file") == 4 && holds_text("file", "text"));
    HOLDS(WORKS(pwrite(fd, "more", 4, 4)) == 4);
    HOLDS(holds_text("file", "textmore"));
}

static bool is_all(int fd, off_t from, size_t size, char what) {
    static char data[1 << 20];

    HOLDS(size <= sizeof data && WORKS(pread(fd, data, size, from)) == (ssize_t)size);
    for (size_t i = 0; i < size; i++) {
        if (data[i] != what) {
            return false;
        }
    }
    return true;
}

/* Across the ends of blocks and of chunks; and of a file that lies with its inode. */
static void range_goes(int mode) {
    static char data[3 << 20];
    int fd = new_file("file");

    memset(data, 'x', sizeof data);
    HOLDS(WORKS(pwrite(fd, data, 4000, 0)) == 4000);
    WORKS(fallocate(fd, mode, 1000, 1000));
    HOLDS(is_all(fd, 0, 1000, 'x') && is_all(fd, 1000, 1000, 0) && is_all(fd, 2000, 2000, 'x'));
    HOLDS(WORKS(pwrite(fd, data, sizeof data, 0)) == sizeof data);
    WORKS(fallocate(fd, mode, (1 << 20) - 5000, 10000));
    HOLDS(is_all(fd, 0, (1 << 20) - 5000, 'x') && is_all(fd, (1 << 20) - 5000, 10000, 0) &&
          is_all(fd, (1 << 20) + 5000, 100000, 'x'));
    WORKS(fallocate(fd, mode, (3 << 20) - 10, 1 << 20));
    HOLDS(size_of("file") == 3 << 20 && is_all(fd, (3 << 20) - 10, 10, 0));
    WORKS(ftruncate(fd, 4 << 20));
    HOLDS(is_all(fd, (3 << 20) - 10, 1 << 20, 0));
    WORKS(close(fd));
}

void posix_fallocate_punches(void) {
    range_goes(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

void posix_fallocate_zeroes(void) {
    range_goes(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
    int fd = new_file("longer");
    WORKS(fallocate(fd, FALLOC_FL_ZERO_RANGE, 1000, 1 << 20));
    HOLDS(size_of("longer") == (1 << 20) + 1000);
}

/* As a write drops them: see posix_write_drops_set_id and posix_write_drops_mark. */
void posix_fallocate_drops_set_id(void) {
    static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_ZERO_RANGE};

    make_file("file", 0666, "text");
    WORKS(chown("file", 0, SOMEGROUP));
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        int fd = WORKS(open("file", O_RDWR));
        WORKS(chmod("file", 06777));
        become(NOBODY, NOBODY, 0);
        WORKS(fallocate(fd, modes[i], 0, 4096 + (off_t)i));
        HOLDS(mode_of("file") == 0777);
        become(0, 0, 0);
        WORKS(chmod("file", 02666));
        become(NOBODY, NOBODY, 0);
        WORKS(fallocate(fd, modes[i], 0, 8192 + (off_t)i));
        HOLDS(mode_of("file") == 0666);
        become(0, 0, 0);
        WORKS(chmod("file", 02666));
        become(SOMEBODY, NOBODY, SOMEGROUP);
        WORKS(fallocate(fd, modes[i], 0, 16384 + (off_t)i));
        HOLDS(mode_of("file") == 02666);
        become(0, 0, 0);
        WORKS(close(fd));
    }
}

/* More than there is: nothing of it stays. What fits is subtracted from what is free. */
void posix_fallocate_full(void) {
    struct statvfs all;

    WORKS(statvfs(".", &all));
    fsblkcnt_t blocks = all.f_blocks * 7 / 10;
    wait_for_space(blocks);
    fsblkcnt_t before = blocks_free();
    int fd = new_file("file");
    FAILS(ENOSPC, fallocate(fd, 0, 0, (off_t)(all.f_blocks * all.f_frsize) * 2));
    HOLDS(size_of("file") == 0);
    HOLDS(blocks_free() + all.f_blocks / 100 > before);
    WORKS(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)(before / 4 * all.f_frsize)));
    HOLDS(blocks_free() < before - before / 5);
    WORKS(close(fd));
    WORKS(unlink("file"));
    wait_for_space(blocks);
}

/* What was promised has room when all else is full. */
void posix_fallocate_holds(void) {
    static char data[1 << 20];
    enum { PROMISED = 16 << 20 };
    struct statvfs all;
    off_t end = 0;
    ssize_t r;

    WORKS(statvfs(".", &all));
    wait_for_space(all.f_blocks * 7 / 10);
    memset(data, 'x', sizeof data);
    int kept = new_file("kept");
    WORKS(fallocate(kept, 0, 0, PROMISED));
    int fd = new_file("file");
    while ((r = pwrite(fd, data, sizeof data, end)) > 0) {
        end += r;
    }
    HOLDS(r == -1 && errno == ENOSPC);
    for (off_t at = 0; at < PROMISED; at += (off_t)sizeof data) {
        HOLDS(WORKS(pwrite(kept, data, sizeof data, at)) == sizeof data);
    }
    WORKS(close(fd));
    WORKS(close(kept));
    WORKS(unlink("file"));
    WORKS(unlink("kept"));
}
