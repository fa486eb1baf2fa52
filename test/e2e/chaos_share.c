/* Files that one mount writes and others read, close-to-open: who opens a file after another mount
 * has closed it sees what that one wrote.
 *
 * A block names its file, its place and its version. A version's size is drawn from its number. Who
 * reads notes which version was closed before the open and which was begun after the last read: if
 * that is the same one, all of the file is of that version; else each block is of one between. */
#include "chaos_load.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCKS_MAX = 96, FILE_BYTES_MAX = BLOCKS_MAX * BLOCK_BYTES, SHARE_PATH_BYTES = 512 };

struct unit {
    char mark[sizeof WORK_MARK - 1];
    uint32_t file;
    uint32_t block;
    uint64_t version;
};

static __thread uint8_t bytes[FILE_BYTES_MAX + 1];

static void complain(struct chaos_share *share, const char *format, ...) PRINTF_LIKE(2, 3);
static void complain(struct chaos_share *share, const char *format, ...) {
    va_list arguments;

    if (!share->problem[0]) {
        va_start(arguments, format);
        vsnprintf(share->problem, sizeof share->problem, format, arguments);
        va_end(arguments);
    }
}

static void path_of(const char *mount, unsigned file, char ret_path[SHARE_PATH_BYTES]) {
    snprintf(ret_path, SHARE_PATH_BYTES, "%s/exchanged-%u", mount, file);
}

static uint64_t size_of(unsigned file, uint64_t version) {
    struct prng prng;

    prng_init(&prng, version * 64 + file);
    return prng_between(&prng, 1, prng_chance(&prng, 1, 2) ? 3 * BLOCK_BYTES : FILE_BYTES_MAX);
}

static void block_fill(unsigned file, uint32_t block, uint64_t version, uint8_t *ret_bytes) {
    struct unit unit = {.file = file, .block = block, .version = version};

    memcpy(unit.mark, WORK_MARK, sizeof unit.mark);
    for (size_t at = 0; at < BLOCK_BYTES; at += sizeof unit) {
        memcpy(ret_bytes + at, &unit, sizeof unit);
    }
}

static bool call_failed(struct chaos_share *share, int64_t result, const char *what,
                        const char *path) {
    int error = errno;

    chaos_end(share->state);
    if (result < 0) {
        complain(share, "%s of %s: %s", what, path, strerror(error));
    }
    return result < 0;
}

static bool write_all(struct chaos_share *share, int fd, uint64_t size, const char *path) {
    uint64_t at = 0;

    while (at < size) {
        uint64_t blocks = prng_between(&share->prng, 1, BLOCKS_MAX);
        uint64_t piece = MIN(size - at, blocks * BLOCK_BYTES);

        chaos_begin(share->state);
        ssize_t wrote = pwrite(fd, bytes + at, piece, (off_t)at);
        if (call_failed(share, wrote, "write", path)) {
            return false;
        }
        at += (uint64_t)wrote;
    }
    return true;
}

/* The next version of a file that is this mount's. */
static void file_write(struct chaos_share *share, unsigned file) {
    struct chaos_shared *shared = &share->files[file];
    uint64_t version = atomic_load(&shared->begun) + 1;
    uint64_t size = size_of(file, version);
    bool truncate = prng_chance(&share->prng, 1, 2);
    char path[SHARE_PATH_BYTES];

    path_of(share->mount, file, path);
    for (uint32_t block = 0; block < BLOCKS_MAX; block++) {
        block_fill(file, block, version, bytes + (size_t)block * BLOCK_BYTES);
    }
    atomic_store(&shared->begun, version);
    chaos_begin(share->state);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0644);
    if (call_failed(share, fd, "open for writing", path)) {
        return;
    }
    bool fine = write_all(share, fd, size, path);
    if (fine && !truncate) {
        chaos_begin(share->state);
        fine = !call_failed(share, ftruncate(fd, (off_t)size), "ftruncate", path);
    }
    if (fine && prng_chance(&share->prng, 1, 4)) {
        chaos_begin(share->state);
        fine = !call_failed(share, fsync(fd), "fsync", path);
    }
    chaos_begin(share->state);
    if (!call_failed(share, close(fd), "close", path) && fine) {
        atomic_store(&shared->closed, version);
        share->state->counts[0]++;
    }
}

/* The version of a block, 0 where it has none: while a file is being written it has holes, and a
 * version's end may lie anywhere in a block, with zeros behind it. */
static uint64_t version_of(const uint8_t *block, uint64_t size) {
    struct unit units[2];

    if (size < sizeof units) {
        return 0;
    }
    memcpy(units, block, sizeof units);
    return memcmp(&units[0], &units[1], sizeof units[0]) == 0 ? units[0].version : 0;
}

/* Each block is of a version that lies between two. */
static void blocks_check(struct chaos_share *share, const char *path,
                         const uint64_t size_and_versions[3]) {
    uint64_t size = size_and_versions[0];

    for (uint64_t at = 0; at < size; at += BLOCK_BYTES) {
        uint64_t version = version_of(bytes + at, MIN(size - at, (uint64_t)BLOCK_BYTES));

        if (version != 0 && (version < size_and_versions[1] || version > size_and_versions[2])) {
            complain(share, "%s: block %llu is of version %llu, not %llu to %llu", path,
                     (unsigned long long)(at / BLOCK_BYTES), (unsigned long long)version,
                     (unsigned long long)size_and_versions[1],
                     (unsigned long long)size_and_versions[2]);
        }
    }
}

static void version_check(struct chaos_share *share, const char *path, unsigned file,
                          const uint64_t size_and_version[2]) {
    uint64_t version = size_and_version[1];
    uint8_t want[BLOCK_BYTES];

    if (size_and_version[0] != size_of(file, version)) {
        struct stat status = {0};

        (void)stat(path, &status);
        complain(share,
                 "%s has %llu bytes, not the %llu of version %llu, which was closed; a look "
                 "right after finds %lld, and the version before had %llu",
                 path, (unsigned long long)size_and_version[0],
                 (unsigned long long)size_of(file, version), (unsigned long long)version,
                 (long long)status.st_size, (unsigned long long)size_of(file, version - 1));
        return;
    }
    for (uint64_t at = 0; at < size_and_version[0]; at += BLOCK_BYTES) {
        struct unit unit = {0};
        uint64_t left = MIN(size_and_version[0] - at, (uint64_t)BLOCK_BYTES);

        block_fill(file, (uint32_t)(at / BLOCK_BYTES), version, want);
        memcpy(&unit, bytes + at, MIN(left, sizeof unit));
        if (memcmp(bytes + at, want, left) != 0) {
            complain(share,
                     "%s: block %llu is not of version %llu, which was closed; it begins "
                     "as block %u of version %llu of file %u",
                     path, (unsigned long long)(at / BLOCK_BYTES), (unsigned long long)version,
                     unit.block, (unsigned long long)unit.version, unit.file);
            return;
        }
    }
}

static bool read_all(struct chaos_share *share, int fd, const char *path, uint64_t *ret_size) {
    uint64_t size = 0;
    ssize_t got = 1;

    while (got > 0 && size < sizeof bytes) {
        chaos_begin(share->state);
        got = read(fd, bytes + size, sizeof bytes - size);
        if (call_failed(share, got, "read", path)) {
            return false;
        }
        size += (uint64_t)got;
    }
    if (size > FILE_BYTES_MAX) {
        complain(share, "%s has more than the %d bytes that were ever written", path,
                 FILE_BYTES_MAX);
        return false;
    }
    *ret_size = size;
    return true;
}

static void file_read(struct chaos_share *share, const char *mount, unsigned file) {
    struct chaos_shared *shared = &share->files[file];
    uint64_t closed = atomic_load(&shared->closed);
    uint64_t size = 0;
    char path[SHARE_PATH_BYTES];

    path_of(mount, file, path);
    chaos_begin(share->state);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (call_failed(share, fd, "open", path)) {
        return;
    }
    bool fine = read_all(share, fd, path, &size);
    uint64_t begun = atomic_load(&shared->begun);
    chaos_begin(share->state);
    if (call_failed(share, close(fd), "close", path) || !fine) {
        return;
    }
    share->state->counts[1]++;
    if (begun == closed) {
        share->state->counts[2]++;
        version_check(share, path, file, (const uint64_t[]){size, closed});
    } else {
        blocks_check(share, path, (const uint64_t[]){size, closed, begun});
    }
}

void chaos_share_make(struct chaos_share *share) {
    for (unsigned i = 0; i < CHAOS_SHARED_FILES; i++) {
        file_write(share, share->mount_index * CHAOS_SHARED_FILES + i);
    }
}

void chaos_share_step(struct chaos_share *share) {
    unsigned own = share->mount_index * CHAOS_SHARED_FILES;
    unsigned count = share->mount_count * CHAOS_SHARED_FILES;

    if (prng_chance(&share->prng, 1, 3)) {
        file_write(share, own + (unsigned)prng_below(&share->prng, CHAOS_SHARED_FILES));
        return;
    }
    unsigned other = (unsigned)prng_below(&share->prng, count);
    if (other / CHAOS_SHARED_FILES != share->mount_index || share->mount_count == 1) {
        file_read(share, share->mount, other);
    }
}

void chaos_share_check(struct chaos_share *share, const char *mount) {
    for (unsigned file = 0; file < share->mount_count * CHAOS_SHARED_FILES; file++) {
        file_read(share, mount, file);
    }
}
