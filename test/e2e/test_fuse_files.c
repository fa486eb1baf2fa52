/* File operations by system calls, through the mount, however libshoal completes its calls and
 * whether the kernel can map what is opened for direct I/O or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "fuse_server.h"

enum { MIB_BYTES = 1 << 20 };

/* Fails with what the system said. */
#define must(call)                                                                                 \
    __extension__({                                                                                \
        __typeof__(call) must_result_ = (call);                                                    \
        if (must_result_ == (__typeof__(call))-1)                                                  \
            fail_msg("%s:%d: %s: %s", __func__, __LINE__, #call, strerror(errno));                 \
        must_result_;                                                                              \
    })
#define must_fail(want, call)                                                                      \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) != -1 || errno != (want))                                                       \
            fail_msg("%s:%d: %s: %s instead of %s", __func__, __LINE__, #call, strerror(errno),    \
                     strerror(want));                                                              \
    } while (0)

static struct fuse_server server;
static int root; /* descriptor of the mount's root */

static int set_up(void **state) {
    server = fuse_server_start(*state, NULL);
    root = must(open(server.path, O_RDONLY | O_DIRECTORY));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)close(root);
    if (server.process > 0)
        fuse_server_stop(&server);
    return 0;
}

static uint64_t count(enum shoal_operation operation) {
    return fuse_server_ask(&server, SERVER_COUNT, operation, 0);
}

static int file_open(const char *name, int flags) {
    return must(openat(root, name, flags, 0644));
}

static struct stat stat_of(const char *name) {
    struct stat attributes;

    must(fstatat(root, name, &attributes, AT_SYMLINK_NOFOLLOW));
    return attributes;
}

/* Different at each place. */
static void fill(uint8_t *data, size_t bytes, unsigned salt) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 31 + i / 251 + salt);
}

static void *aligned(size_t bytes) {
    void *memory = NULL;

    assert_int_equal(posix_memalign(&memory, 4096, bytes), 0);
    return memory;
}

static void file_make(const char *name, const void *data, size_t bytes) {
    int fd = file_open(name, O_WRONLY | O_CREAT | O_TRUNC);

    assert_int_equal(write(fd, data, bytes), bytes);
    must(close(fd));
}

static void file_expect(const char *name, int flags, const uint8_t *data, size_t bytes) {
    uint8_t *got = aligned(bytes + 4096);
    int fd = file_open(name, flags);
    size_t done = 0;
    ssize_t part;

    while ((part = must(read(fd, got + done, bytes + 4096 - done))) > 0)
        done += (size_t)part;
    assert_int_equal(done, bytes);
    assert_memory_equal(got, data, bytes);
    must(close(fd));
    free(got);
}

static void test_write_and_read(void **state) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 65537, MIB_BYTES, 3 * MIB_BYTES + 17};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *data = aligned(sizes[i] + 1);
        struct stat attributes;

        fill(data, sizes[i], (unsigned)i);
        file_make("file", data, sizes[i]);
        file_expect("file", O_RDONLY, data, sizes[i]);
        attributes = stat_of("file");
        assert_int_equal(attributes.st_size, sizes[i]);
        assert_int_equal(attributes.st_nlink, 1);
        assert_int_equal(attributes.st_mode, S_IFREG | 0644);
        assert_int_equal(attributes.st_blksize, MIB_BYTES);
        free(data);
    }
    assert_int_equal(stat_of(".").st_blksize, 4096);
}

static void test_direct_io(void **state) {
    enum { BYTES = 3 * MIB_BYTES };
    uint8_t *data = aligned(BYTES);
    int fd;

    (void)state;
    fill(data, BYTES, 5);
    fd = file_open("file", O_RDWR | O_CREAT | O_DIRECT);
    assert_int_equal(pwrite(fd, data, BYTES, 0), BYTES);
    assert_int_equal(fuse_server_ask(&server, SERVER_MISALIGNMENT, 0, 0), 0);
    fill(data, 8192, 6);
    assert_int_equal(pwrite(fd, data, 8192, MIB_BYTES), 8192);
    memcpy(data + MIB_BYTES, data, 8192);
    fill(data, 8192, 5);
    must(close(fd));
    file_expect("file", O_RDONLY | O_DIRECT, data, BYTES);
    file_expect("file", O_RDONLY, data, BYTES);
    free(data);
}

/* What one descriptor wrote another one reads, in each pairing of the kernel's ways. */
static void test_opens_agree(void **state) {
    static const int ways[] = {O_RDWR, O_RDWR | O_DIRECT, O_RDONLY, O_RDONLY | O_DIRECT};
    enum { WAYS = 4, BYTES = 64 * 1024, ROUNDS = 12 };
    uint8_t *data = aligned(BYTES);
    uint8_t *got = aligned(BYTES);
    int fds[WAYS];

    (void)state;
    fill(data, BYTES, 0);
    file_make("file", data, BYTES);
    for (int i = 0; i < WAYS; i++)
        fds[i] = file_open("file", ways[i]);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        int writer = fds[round % 2];
        size_t at = (round * 7 % 16) * 4096;

        /* All have it cached, where they cache. */
        for (int i = 0; i < WAYS; i++)
            assert_int_equal(pread(fds[i], got, BYTES, 0), BYTES);
        fill(data + at, 4096, round);
        assert_int_equal(pwrite(writer, data + at, 4096, (off_t)at), 4096);
        for (int i = 0; i < WAYS; i++) {
            memset(got, 0, BYTES);
            assert_int_equal(pread(fds[i], got, BYTES, 0), BYTES);
            if (memcmp(got, data, BYTES) != 0)
                fail_msg("way %d doesn't see what way %u wrote", i, round % 2);
        }
    }
    for (int i = 0; i < WAYS; i++)
        must(close(fds[i]));
    free(data);
    free(got);
}

/* A descriptor that was opened for reading only sees growth and truncation by others. */
static void test_opens_agree_on_size(void **state) {
    uint8_t data[100];
    uint8_t got[300];
    int reader;
    int writer;

    (void)state;
    fill(data, sizeof(data), 1);
    file_make("file", data, sizeof(data));
    reader = file_open("file", O_RDONLY);
    writer = file_open("file", O_RDWR);
    assert_int_equal(pread(reader, got, sizeof(got), 0), 100);
    assert_int_equal(pwrite(writer, data, 100, 100), 100);
    assert_int_equal(pread(reader, got, sizeof(got), 0), 200);
    assert_memory_equal(got + 100, data, 100);
    must(ftruncate(writer, 50));
    assert_int_equal(pread(reader, got, sizeof(got), 0), 50);
    must(ftruncate(writer, 150));
    assert_int_equal(pread(reader, got, sizeof(got), 0), 150);
    for (int i = 50; i < 150; i++)
        assert_int_equal(got[i], 0);
    assert_int_equal(lseek(reader, 0, SEEK_END), 150);
    assert_int_equal(stat_of("file").st_size, 150);
    must(close(reader));
    must(close(writer));
}

/* Shared mappings and read/write see each other, whatever the open. */
static void test_shared_mappings(void **state) {
    static const int ways[] = {O_RDWR, O_RDWR | O_DIRECT};
    enum { BYTES = 5 * 4096 };
    uint8_t *data = aligned(BYTES);
    uint8_t *got = aligned(BYTES);

    (void)state;
    for (int way = 0; way < 2; way++) {
        int writer = file_open("file", O_RDWR | O_CREAT | O_TRUNC);
        uint8_t *shared;
        uint8_t *watched;
        int mapped;
        int reader;

        fill(data, BYTES, 1);
        assert_int_equal(pwrite(writer, data, BYTES, 0), BYTES);
        mapped = file_open("file", ways[way]);
        reader = file_open("file", O_RDONLY);
        shared = must(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0));
        watched = must(mmap(NULL, BYTES, PROT_READ, MAP_SHARED, reader, 0));
        assert_memory_equal(shared, data, BYTES);
        assert_memory_equal(watched, data, BYTES);

        /* write -> mappings */
        fill(data + 4096, 100, 2);
        assert_int_equal(pwrite(writer, data + 4096, 100, 4096), 100);
        assert_memory_equal(shared, data, BYTES);
        assert_memory_equal(watched, data, BYTES);

        /* mapping -> read, without msync, and the other mapping */
        fill(data + 8192, 3000, 3);
        memcpy(shared + 8192, data + 8192, 3000);
        assert_int_equal(pread(writer, got, BYTES, 0), BYTES);
        assert_memory_equal(got, data, BYTES);
        assert_int_equal(pread(reader, got, BYTES, 0), BYTES);
        assert_memory_equal(got, data, BYTES);
        assert_memory_equal(watched, data, BYTES);

        /* mapping -> file, past the descriptor's life */
        must(close(mapped));
        fill(data, 50, 4);
        memcpy(shared, data, 50);
        must(msync(shared, BYTES, MS_SYNC));
        memcpy(shared + 4096, data, 50);
        memcpy(data + 4096, data, 50);
        must(munmap(shared, BYTES));
        must(munmap(watched, BYTES));
        must(close(reader));
        must(close(writer));
        file_expect("file", O_RDONLY | O_DIRECT, data, BYTES);
    }
    free(data);
    free(got);
}

static void test_append(void **state) {
    int first = file_open("log", O_WRONLY | O_CREAT | O_APPEND);
    int second = file_open("log", O_WRONLY | O_APPEND);
    uint8_t want[200];

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        fill(want + 10 * (size_t)i, 10, i);
        assert_int_equal(pwrite(i % 2 ? first : second, want + 10 * (size_t)i, 10, 0), 10);
    }
    /* What is no longer for appending isn't. */
    must(fcntl(first, F_SETFL, 0));
    fill(want, 5, 99);
    assert_int_equal(pwrite(first, want, 5, 0), 5);
    must(close(first));
    must(close(second));
    file_expect("log", O_RDONLY, want, sizeof(want));
}

static void test_holes_and_allocation(void **state) {
    int fd = file_open("file", O_RDWR | O_CREAT);
    uint8_t got[100];

    (void)state;
    assert_int_equal(pwrite(fd, "end", 3, 5 * MIB_BYTES), 3);
    assert_int_equal(stat_of("file").st_size, 5 * MIB_BYTES + 3);
    assert_int_equal(pread(fd, got, sizeof(got), MIB_BYTES), sizeof(got));
    for (size_t i = 0; i < sizeof(got); i++)
        assert_int_equal(got[i], 0);
    must(fallocate(fd, 0, 0, 6 * MIB_BYTES));
    assert_int_equal(stat_of("file").st_size, 6 * MIB_BYTES);
    must(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 * MIB_BYTES));
    assert_int_equal(stat_of("file").st_size, 6 * MIB_BYTES);
    must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5 * MIB_BYTES, 2));
    assert_int_equal(pread(fd, got, 3, 5 * MIB_BYTES), 3);
    assert_memory_equal(got, "\0\0d", 3);
    must_fail(EOPNOTSUPP, fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
    must(posix_fallocate(fd, 0, 4096));
    assert_int_equal(lseek(fd, 0, SEEK_DATA), 0);
    assert_int_equal(lseek(fd, 0, SEEK_HOLE), 6 * MIB_BYTES);
    must(close(fd));
}

static void test_open_truncates(void **state) {
    uint8_t data[1000] = {1};
    int fd;

    (void)state;
    file_make("file", data, sizeof(data));
    fd = file_open("file", O_RDONLY);
    assert_int_equal(read(fd, data, 10), 10);
    file_make("file", data, 3);
    assert_int_equal(stat_of("file").st_size, 3);
    assert_int_equal(pread(fd, data, 10, 0), 3);
    must(close(fd));
    must_fail(EEXIST, openat(root, "file", O_CREAT | O_EXCL | O_WRONLY, 0644));
    must_fail(ENOENT, openat(root, "none", O_WRONLY));
    must_fail(ENOTDIR, openat(root, "file/x", O_RDONLY));
    must_fail(EISDIR, openat(root, ".", O_WRONLY));
    must_fail(ENOTDIR, openat(root, "file", O_RDONLY | O_DIRECTORY));
}

static void test_unlinked_but_open(void **state) {
    uint64_t inodes = fuse_server_ask(&server, SERVER_INODE_COUNT, 0, 0);
    struct stat attributes;
    char got[5];
    int fd;

    (void)state;
    file_make("file", "12345", 5);
    fd = file_open("file", O_RDWR);
    must(unlinkat(root, "file", 0));
    must_fail(ENOENT, fstatat(root, "file", &attributes, 0));
    must(fstat(fd, &attributes));
    assert_int_equal(attributes.st_nlink, 0);
    assert_int_equal(pwrite(fd, "x", 1, 2), 1);
    assert_int_equal(pread(fd, got, 5, 0), 5);
    assert_memory_equal(got, "12x45", 5);
    must(ftruncate(fd, 1));
    must(fchmod(fd, 0600));
    must(close(fd));
    /* The kernel doesn't wait for RELEASE, so neither does close. */
    while (fuse_server_ask(&server, SERVER_INODE_COUNT, 0, 0) != inodes)
        (void)sched_yield();
}

static void test_rename(void **state) {
    (void)state;
    file_make("a", "a", 1);
    file_make("b", "bb", 2);
    must(mkdirat(root, "d", 0755));
    must(renameat(root, "a", root, "d/a"));
    assert_int_equal(stat_of("d/a").st_size, 1);
    must_fail(EEXIST, renameat2(root, "b", root, "d/a", RENAME_NOREPLACE));
    must(renameat2(root, "b", root, "d/a", RENAME_EXCHANGE));
    assert_int_equal(stat_of("d/a").st_size, 2);
    assert_int_equal(stat_of("b").st_size, 1);
    must(renameat(root, "b", root, "d/a"));
    assert_int_equal(stat_of("d/a").st_size, 1);
    must_fail(EINVAL, renameat2(root, "d/a", root, "w", RENAME_WHITEOUT));
    must_fail(EINVAL, renameat(root, "d", root, "d/e"));
    must_fail(ENOTEMPTY, unlinkat(root, "d", AT_REMOVEDIR));
    must_fail(ENOENT, renameat(root, "b", root, "c"));
    must(renameat(root, "d", root, "e"));
    must(unlinkat(root, "e/a", 0));
    must(unlinkat(root, "e", AT_REMOVEDIR));
}

static void test_long_names_of_any_bytes(void **state) {
    char name[257];

    (void)state;
    for (int i = 0; i < 256; i++)
        name[i] = (char)(i + 1 == '/' ? 1 : i + 1);
    name[255] = 0;
    file_make(name, "x", 1);
    assert_int_equal(stat_of(name).st_size, 1);
    must(unlinkat(root, name, 0));
    name[255] = 'x';
    name[256] = 0;
    must_fail(ENAMETOOLONG, openat(root, name, O_CREAT | O_WRONLY, 0644));
    must_fail(ENAMETOOLONG, mkdirat(root, name, 0755));
}

static void test_links_and_special_files(void **state) {
    char target[4096];
    char got[4096];

    (void)state;
    file_make("file", "x", 1);
    must(linkat(root, "file", root, "hard", 0));
    assert_int_equal(stat_of("file").st_nlink, 2);
    assert_int_equal(stat_of("hard").st_ino, stat_of("file").st_ino);
    must(unlinkat(root, "file", 0));
    assert_int_equal(stat_of("hard").st_nlink, 1);

    memset(target, 't', sizeof(target));
    target[4095] = 0;
    must(symlinkat(target, root, "soft"));
    assert_int_equal(readlinkat(root, "soft", got, sizeof(got)), 4095);
    assert_memory_equal(got, target, 4095);
    must(symlinkat("hard", root, "good"));
    assert_int_equal(close(file_open("good", O_RDONLY)), 0);
    must_fail(EINVAL, readlinkat(root, "hard", got, sizeof(got)));

    must(mkfifoat(root, "fifo", 0600));
    assert_true(S_ISFIFO(stat_of("fifo").st_mode));
    must(mknodat(root, "device", S_IFCHR | 0600, makedev(1000, 70000)));
    assert_true(S_ISCHR(stat_of("device").st_mode));
    assert_int_equal(stat_of("device").st_rdev, makedev(1000, 70000));
}

static void test_attributes(void **state) {
    const struct timespec times[] = {{.tv_sec = -5, .tv_nsec = 999999999},
                                     {.tv_sec = 1LL << 33, .tv_nsec = 7}};
    const struct timespec now[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    struct stat attributes;
    struct statx extended;

    (void)state;
    file_make("file", "x", 1);
    must(fchmodat(root, "file", 07751, 0));
    assert_int_equal(stat_of("file").st_mode, S_IFREG | 07751);
    must(utimensat(root, "file", times, 0));
    attributes = stat_of("file");
    assert_int_equal(attributes.st_atim.tv_sec, -5);
    assert_int_equal(attributes.st_atim.tv_nsec, 999999999);
    assert_int_equal(attributes.st_mtim.tv_sec, 1LL << 33);
    assert_int_equal(attributes.st_mtim.tv_nsec, 7);
    must(utimensat(root, "file", now, 0));
    attributes = stat_of("file");
    assert_true(attributes.st_atim.tv_sec > 1000000000);
    assert_int_equal(attributes.st_mtim.tv_nsec, 7);
    must(fchownat(root, "file", 12, 34, 0));
    attributes = stat_of("file");
    assert_int_equal(attributes.st_uid, 12);
    assert_int_equal(attributes.st_gid, 34);
    assert_int_equal(attributes.st_mode, S_IFREG | 01751);

    must(statx(root, "file", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &extended));
    assert_true(extended.stx_mask & STATX_BTIME);
    assert_true(extended.stx_btime.tv_sec > 1000000000);
    assert_int_equal(extended.stx_uid, 12);
}

static void test_many_entries(void **state) {
    enum { ENTRIES = 5000 };
    static uint8_t seen[ENTRIES];
    struct dirent *entry;
    char name[300];
    DIR *directory;
    int folder;

    (void)state;
    memset(seen, 0, sizeof(seen));
    must(mkdirat(root, "many", 0755));
    folder = file_open("many", O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < ENTRIES; i++) {
        (void)snprintf(name, sizeof(name), "%0*u", (int)(4 + i % 250), i);
        must(mknodat(folder, name, S_IFREG | 0600, 0));
    }
    directory = fdopendir(folder);
    assert_non_null(directory);
    for (unsigned other = ENTRIES; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        assert_int_equal(entry->d_type, DT_REG);
        assert_int_equal(seen[strtoul(entry->d_name, NULL, 10)]++, 0);
        /* What comes and goes meanwhile changes nothing for the others. */
        if (other % 10 == 0) {
            (void)snprintf(name, sizeof(name), "many/.%u", other);
            must(mknodat(root, name, S_IFREG | 0600, 0));
            must(unlinkat(root, name, 0));
        }
        other--;
    }
    for (unsigned i = 0; i < ENTRIES; i++)
        assert_int_equal(seen[i], 1);

    rewinddir(directory);
    for (long place = -1; (entry = readdir(directory));) {
        if (entry->d_name[0] != '.')
            must(unlinkat(dirfd(directory), entry->d_name, 0));
        assert_true(telldir(directory) != place);
        place = telldir(directory);
    }
    must(closedir(directory));
    must(unlinkat(root, "many", AT_REMOVEDIR));
}

/* Runs a program of the mount; answers its exit status. */
static int run(const char *name, const char *argument) {
    char path[128];
    int status;
    pid_t child;

    (void)snprintf(path, sizeof(path), "%s/%s", server.path, name);
    child = must(fork());
    if (child == 0) {
        (void)execl(path, path, "-c", argument, (char *)NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One larger than what is read through the page cache otherwise, and one that was just written. */
static void test_programs_run(void **state) {
    int from = must(open("/bin/bash", O_RDONLY));
    struct stat attributes;
    uint8_t *data;
    int fd;

    (void)state;
    must(fstat(from, &attributes));
    assert_true(attributes.st_size > MIB_BYTES);
    data = must(mmap(NULL, (size_t)attributes.st_size, PROT_READ, MAP_PRIVATE, from, 0));
    file_make("shell", data, (size_t)attributes.st_size);
    must(munmap(data, (size_t)attributes.st_size));
    must(close(from));
    must(fchmodat(root, "shell", 0755, 0));
    for (int i = 0; i < 3; i++)
        assert_int_equal(run("shell", "exit 7"), 7);
    file_make("script", "#!/bin/sh\nexit 9\n", 17);
    assert_int_equal(run("script", ""), 126);
    must(fchmodat(root, "script", 0755, 0));
    assert_int_equal(run("script", ""), 9);
    fd = file_open("script", O_WRONLY);
    assert_int_equal(pwrite(fd, "8", 1, 15), 1);
    must(close(fd));
    assert_int_equal(run("script", ""), 8);
}

/* Runs the step as somebody else; answers its exit status. */
static int run_as(uid_t uid, const gid_t *groups, size_t group_count, int (*step)(void)) {
    pid_t child = must(fork());
    int status;

    if (child == 0) {
        if (setgroups(group_count, groups) < 0 || setresgid(uid, uid, uid) < 0 ||
            setresuid(uid, uid, uid) < 0)
            _exit(125);
        _exit(step());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int step_write(void) {
    int fd = openat(root, "file", O_WRONLY);

    if (fd < 0 || write(fd, "x", 1) != 1)
        return errno;
    return close(fd) < 0 ? errno : 0;
}

static int step_truncate(void) {
    int fd = openat(root, "file", O_WRONLY | O_TRUNC);

    return fd < 0 || close(fd) < 0 ? errno : 0;
}

static int step_change_mode(void) {
    return fchmodat(root, "file", 02770, 0) < 0 ? errno : 0;
}

static int step_make(void) {
    int fd = openat(root, "team/new", O_WRONLY | O_CREAT | O_EXCL, 0644);

    return fd < 0 || close(fd) < 0 ? errno : 0;
}

/* Without size and times, so that the kernel answers from what it remembers if it can. */
static unsigned mode_alone_of(const char *name) {
    struct statx attributes;

    must(statx(root, name, AT_SYMLINK_NOFOLLOW, STATX_MODE, &attributes));
    return attributes.stx_mode & 07777u;
}

static void test_set_id_bits_go(void **state) {
    static int (*const steps[])(void) = {step_write, step_truncate};

    (void)state;
    file_make("file", "12345", 5);
    for (size_t i = 0; i < 2; i++) {
        must(fchmodat(root, "file", 06777, 0));
        assert_int_equal(stat_of("file").st_mode & 07777, 06777);
        assert_int_equal(run_as(1000, NULL, 0, steps[i]), 0);
        assert_int_equal(mode_alone_of("file"), 0777);
    }
    /* Root keeps them. */
    must(fchmodat(root, "file", 06777, 0));
    assert_int_equal(step_write(), 0);
    assert_int_equal(stat_of("file").st_mode & 07777, 06777);
}

static void test_supplementary_groups(void **state) {
    static const gid_t groups[] = {4000, 4242, 5000};

    (void)state;
    file_make("file", "12345", 5);
    must(fchownat(root, "file", 0, 4242, 0));
    must(fchmodat(root, "file", 0060, 0));
    assert_int_equal(run_as(1000, groups, 3, step_write), 0);
    assert_int_equal(run_as(1000, groups, 1, step_write), EACCES);
    must(mkdirat(root, "team", 0775));
    must(fchmodat(root, "team", 0775, 0));
    must(fchownat(root, "team", 0, 4242, 0));
    assert_int_equal(run_as(1000, groups, 1, step_make), EACCES);
    assert_int_equal(run_as(1000, groups, 3, step_make), 0);
    must(fchownat(root, "file", 1000, 4242, 0));
    assert_int_equal(run_as(1000, groups, 3, step_change_mode), 0);
    assert_int_equal(stat_of("file").st_mode & 07777, 02770);
}

static void test_locks_of_the_kernel(void **state) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int first = file_open("file", O_RDWR | O_CREAT);
    int second = file_open("file", O_RDWR);

    (void)state;
    must(flock(first, LOCK_EX | LOCK_NB));
    must_fail(EWOULDBLOCK, flock(second, LOCK_EX | LOCK_NB));
    must(flock(first, LOCK_UN));
    must(fcntl(first, F_OFD_SETLK, &lock));
    must_fail(EAGAIN, fcntl(second, F_OFD_SETLK, &lock));
    must(close(first));
    must(close(second));
}

/* What isn't there says so, the way programs expect it. */
static void test_unsupported(void **state) {
    char value[16];
    loff_t from = 0;
    int first;
    int second;

    (void)state;
    file_make("file", "12345", 5);
    first = file_open("file", O_RDWR);
    second = file_open("copy", O_RDWR | O_CREAT);
    must_fail(EOPNOTSUPP, fsetxattr(first, "user.x", "y", 1, 0));
    must_fail(EOPNOTSUPP, (int)fgetxattr(first, "user.x", value, sizeof(value)));
    must_fail(ENOTTY, ioctl(first, _IOR(200, 1, int), value));
    /* The kernel copies by reading and writing where it is told so. */
    assert_int_equal(copy_file_range(first, &from, second, NULL, 5, 0), 5);
    file_expect("copy", O_RDONLY, (const uint8_t *)"12345", 5);
    must(close(first));
    must(close(second));
}

static void test_durability(void **state) {
    uint64_t syncs = count(SHOAL_FSYNC);
    int fd = file_open("file", O_RDWR | O_CREAT);

    (void)state;
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(count(SHOAL_FSYNC), syncs);
    must(fsync(fd));
    assert_int_equal(count(SHOAL_FSYNC), syncs + 1);
    must(fdatasync(fd));
    assert_int_equal(count(SHOAL_FSYNC), syncs + 2);
    must(close(fd));
    fd = file_open("file", O_RDWR | O_DSYNC);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(count(SHOAL_FSYNC), syncs + 3);
    must(close(fd));
    must(fsync(root));
    assert_int_equal(count(SHOAL_FSYNC), syncs + 4);
}

/* Errors reach the caller that they belong to. */
static void test_errors_are_passed_on(void **state) {
    int fd = file_open("file", O_RDWR | O_CREAT);
    int direct = file_open("file", O_RDONLY | O_DIRECT);
    uint8_t *data = aligned(4096);

    (void)state;
    fuse_server_ask(&server, SERVER_FAIL, SHOAL_WRITE, ENOSPC);
    must_fail(ENOSPC, (int)pwrite(fd, "x", 1, 0));
    fuse_server_ask(&server, SERVER_FAIL, SHOAL_READ, EIO);
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    must_fail(EIO, (int)pread(direct, data, 4096, 0));
    assert_int_equal(pread(direct, data, 4096, 0), 1);
    fuse_server_ask(&server, SERVER_FAIL, SHOAL_FSYNC, EIO);
    must_fail(EIO, fsync(fd));
    fuse_server_ask(&server, SERVER_FAIL, SHOAL_FLUSH, EDQUOT);
    must_fail(EDQUOT, close(fd));
    fuse_server_ask(&server, SERVER_FAIL, SHOAL_MKDIR, EMLINK);
    must_fail(EMLINK, mkdirat(root, "d", 0755));
    must(close(direct));
    free(data);
}

static void test_file_system_figures(void **state) {
    struct statvfs figures;

    (void)state;
    must(fstatvfs(root, &figures));
    assert_int_equal(figures.f_blocks * figures.f_frsize, 1 << 30);
    assert_int_equal(figures.f_bavail * figures.f_frsize, 1 << 28);
    assert_int_equal(figures.f_namemax, 255);
    assert_int_equal(figures.f_files, 1000000);
    assert_true(figures.f_flag & ST_NOATIME);
}

static const struct fuse_server_options ways[] = {
    {.name = "inline", .mode = MEMORY_SHOAL_INLINE, .timeout_ns = 1000000000},
    {.name = "job", .mode = MEMORY_SHOAL_JOB, .timeout_ns = 1000000000},
    {.name = "thread", .mode = MEMORY_SHOAL_THREAD, .timeout_ns = 0},
    {.name = "cached",
     .mode = MEMORY_SHOAL_INLINE,
     .timeout_ns = 1000000000,
     .refuse_direct = true},
};

#define FILE_TEST(test) {#test, test, set_up, tear_down, NULL}

static const struct CMUnitTest tests[] = {
    FILE_TEST(test_write_and_read),
    FILE_TEST(test_direct_io),
    FILE_TEST(test_opens_agree),
    FILE_TEST(test_opens_agree_on_size),
    FILE_TEST(test_shared_mappings),
    FILE_TEST(test_append),
    FILE_TEST(test_holes_and_allocation),
    FILE_TEST(test_open_truncates),
    FILE_TEST(test_unlinked_but_open),
    FILE_TEST(test_rename),
    FILE_TEST(test_long_names_of_any_bytes),
    FILE_TEST(test_links_and_special_files),
    FILE_TEST(test_attributes),
    FILE_TEST(test_many_entries),
    FILE_TEST(test_programs_run),
    FILE_TEST(test_set_id_bits_go),
    FILE_TEST(test_supplementary_groups),
    FILE_TEST(test_locks_of_the_kernel),
    FILE_TEST(test_unsupported),
    FILE_TEST(test_durability),
    FILE_TEST(test_errors_are_passed_on),
    FILE_TEST(test_file_system_figures),
};

enum { TESTS = sizeof(tests) / sizeof(tests[0]), WAYS = sizeof(ways) / sizeof(ways[0]) };

int main(void) {
    server.control = -1;
    return fuse_server_run(tests, TESTS, ways, WAYS);
}
