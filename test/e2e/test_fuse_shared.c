/* Programs read, write, cut and list the same files at once through one mount: nobody reads what
 * was older than its open, or is told what was before, nor waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "fuse_server.h"

enum {
    FILES = 4,
    WRITERS = 2,
    READERS = 4,
    VERSIONS = 150, /* that each file has, one after another */
    WORDS_MAX = 16000,
    LISTED = 600, /* files in a directory whose listing has several answers */
    LISTINGS = 12,
    WAITED_S = 120, /* then something waits for ever */
};

/* What is known of a file by those who share it. */
struct file {
    _Atomic uint32_t begun;  /* the version that may be there */
    _Atomic uint32_t stands; /* the one that is, or a newer one */
};

enum { SHARED_BYTES = (LISTED + 1) * sizeof(struct file) };

static struct fuse_server server;
static struct file *files;        /* LISTED */
static _Atomic uint32_t *writing; /* writers that are not done */

/* In a child: ends it with what went wrong. */
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s:%d: %s: %s\n", __func__, __LINE__, #condition, strerror(errno));       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static int set_up(void **state) {
    server = fuse_server_start(*state, NULL);
    files = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(files != MAP_FAILED);
    writing = (void *)&files[LISTED];
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)munmap(files, SHARED_BYTES);
    if (server.process > 0)
        fuse_server_stop(&server);
    return 0;
}

/* How many words a version has, each of them its number. */
static size_t words_of(uint32_t version) {
    return 1 + (size_t)version * 2654435761U % WORDS_MAX;
}

static char *path_of(unsigned file, char path[96]) {
    (void)snprintf(path, 96, "%s/%u", server.path, file);
    return path;
}

/* Two ways to have a version: over the one before, which is cut to its length first or last. */
static void version_write(unsigned number, uint32_t version) {
    static uint64_t words[WORDS_MAX + 1];
    size_t bytes = words_of(version) * sizeof(words[0]);
    char path[96];
    int fd;

    for (size_t i = 0; i < words_of(version); i++)
        words[i] = version;
    path_of(number, path);
    atomic_store(&files[number].begun, version);
    if (version % 3 == 0)
        need(truncate(path, version % 2 ? 0 : (off_t)bytes) == 0 || errno == ENOENT);
    fd = open(path, O_WRONLY | O_CREAT | (version % 3 == 1 ? O_TRUNC : 0), 0644);
    need(fd >= 0);
    need(pwrite(fd, words, bytes, 0) == (ssize_t)bytes);
    if (version % 2) {
        need(ftruncate(fd, (off_t)bytes) == 0);
        need(close(fd) == 0);
    } else {
        need(close(fd) == 0);
        need(truncate(path, (off_t)bytes) == 0);
    }
    atomic_store(&files[number].stands, version);
}

static void writer(unsigned index) {
    for (uint32_t version = 1; version <= VERSIONS; version++)
        for (unsigned number = index; number < FILES; number += WRITERS)
            version_write(number, version);
    atomic_fetch_sub(writing, 1);
}

/* Bytes that were read between two looks at what may be there. */
static void words_check(const struct file *file, uint32_t before, const uint64_t *words,
                        size_t bytes) {
    uint32_t after = atomic_load(&file->begun);

    for (size_t i = 0; i < bytes / sizeof(words[0]); i++)
        need((words[i] >= before && words[i] <= after) || (words[i] == 0 && before != after));
    if (before == after)
        need(bytes == words_of(before) * sizeof(words[0]));
}

/* All of the file by a handle of its own; -1: there is no such file yet. */
static int read_whole(unsigned number) {
    static uint64_t words[WORDS_MAX + 1];
    struct file *file = &files[number];
    uint32_t before = atomic_load(&file->stands);
    char path[96];
    int fd = open(path_of(number, path), O_RDONLY);
    ssize_t bytes;

    if (fd < 0) {
        need(errno == ENOENT && before == 0);
        return -1;
    }
    bytes = read(fd, words, sizeof(words));
    need(bytes >= 0);
    words_check(file, before, words, (size_t)bytes);
    return fd;
}

/* Some close at once, others when the next file is open, or this one by another handle. */
static void reader(unsigned index) {
    int last = -1;

    do {
        for (unsigned number = 0; number < FILES; number++) {
            int fd = read_whole(number);
            int again = index == 3 ? read_whole(number) : -1;

            need(again < 0 || close(again) == 0);
            need(last < 0 || close(last) == 0);
            last = index > 0 ? fd : -1;
            need(index > 0 || fd < 0 || close(fd) == 0);
        }
    } while (atomic_load(writing) > 0);
    need(last < 0 || close(last) == 0);
}

static pid_t begin(void (*act)(unsigned index), unsigned index) {
    pid_t process = fork();

    assert_true(process >= 0);
    if (process == 0) {
        (void)alarm(WAITED_S);
        act(index);
        _exit(0);
    }
    return process;
}

/* Runs writers and readers; the readers go on until the writers have ended. */
static void run_both(void (*writes)(unsigned index), void (*reads)(unsigned index)) {
    pid_t children[WRITERS + READERS];
    unsigned failed = 0;

    atomic_store(writing, WRITERS);
    for (unsigned i = 0; i < WRITERS + READERS; i++)
        children[i] = i < WRITERS ? begin(writes, i) : begin(reads, i - WRITERS);
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        int status = 0;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (status == 0)
            continue;
        print_error("%s %u: %s %d\n", i < WRITERS ? "writer" : "reader", i,
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed++;
        atomic_store(writing, 0); /* The readers end. */
    }
    assert_int_equal(failed, 0);
}

static void nobody_reads_what_was_before(void **state) {
    (void)state;
    run_both(writer, reader);
}

/* A file's version is its length. */
static void cutter(unsigned index) {
    char path[96];

    for (uint32_t version = 1; version <= LISTINGS; version++)
        for (unsigned number = index; number < LISTED; number += WRITERS) {
            atomic_store(&files[number].begun, version);
            need(truncate(path_of(number, path), version) == 0);
            atomic_store(&files[number].stands, version);
        }
    atomic_fetch_sub(writing, 1);
}

static void list_once(void) {
    unsigned seen[LISTED] = {0};
    DIR *directory = opendir(server.path);
    struct dirent *entry;

    need(directory);
    while ((entry = readdir(directory))) {
        char *end;
        unsigned long number = strtoul(entry->d_name, &end, 10);
        struct stat attributes;

        if (entry->d_name[0] == '.')
            continue;
        need(*end == '\0' && number < LISTED);
        seen[number]++;
        uint32_t before = atomic_load(&files[number].stands);
        need(fstatat(dirfd(directory), entry->d_name, &attributes, 0) == 0);
        need(attributes.st_size >= before);
        need(attributes.st_size <= atomic_load(&files[number].begun));
    }
    need(closedir(directory) == 0);
    for (unsigned i = 0; i < LISTED; i++)
        need(seen[i] == 1);
}

static void lister(unsigned index) {
    (void)index;
    do
        list_once();
    while (atomic_load(writing) > 0);
}

static void nobody_is_told_what_was_before(void **state) {
    char path[96];

    (void)state;
    for (unsigned i = 0; i < LISTED; i++) {
        int fd = open(path_of(i, path), O_WRONLY | O_CREAT, 0644);

        assert_true(fd >= 0);
        assert_int_equal(close(fd), 0);
    }
    run_both(cutter, lister);
}

static const struct fuse_server_options ways[] = {
    {.name = "inline", .mode = MEMORY_SHOAL_INLINE, .timeout_ns = 1000000000},
    {.name = "thread", .mode = MEMORY_SHOAL_THREAD, .timeout_ns = 1000000000},
    {.name = "no timeouts", .mode = MEMORY_SHOAL_THREAD, .timeout_ns = 0},
    {.name = "cached",
     .mode = MEMORY_SHOAL_INLINE,
     .timeout_ns = 1000000000,
     .refuse_direct = true},
};

static const struct CMUnitTest tests[] = {
    {"nobody_reads_what_was_before", nobody_reads_what_was_before, set_up, tear_down, NULL},
    {"nobody_is_told_what_was_before", nobody_is_told_what_was_before, set_up, tear_down, NULL},
};

enum { TESTS = sizeof(tests) / sizeof(tests[0]), WAYS = sizeof(ways) / sizeof(ways[0]) };

int main(void) {
    server.control = -1;
    return fuse_server_run(tests, TESTS, ways, WAYS);
}
