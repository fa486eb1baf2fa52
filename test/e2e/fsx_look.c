/* What stat, lseek and a read of the whole file tell. */
#include "fsx_steps.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a local file system may take beyond content and promises, for its own lists and in
 * expectation of more. */
#define LOCAL_SLACK_BYTES (4 * MIB)
/* The server may ask the storage targets for a count behind the last close. */
#define COUNT_LIMIT_S UINT64_C(20)

static unsigned long long told(uint64_t number) {
    return (unsigned long long)number;
}

static void look_at_blocks(struct fsx_file *file, uint64_t blocks) {
    uint64_t highest = file->fsx->is_fuse ? file->size : file->highest + LOCAL_SLACK_BYTES;
    uint64_t most = (highest + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES / 512;

    if (file->size == 0 && (file->fsx->is_fuse || file->highest == 0)) {
        most = 0;
    }
    if (blocks > most) {
        fsx_wrong(file, 0, "st_blocks: got %llu, expected %llu at most, size %llu", told(blocks),
                  told(most), told(file->size));
    }
}

static void look_at(struct fsx_file *file, const struct statx *now) {
    int64_t mtime_ns = now->stx_mtime.tv_sec * (int64_t)NS_PER_S + now->stx_mtime.tv_nsec;

    if (now->stx_size != file->size) {
        fsx_wrong(file, MIN(now->stx_size, file->size), "st_size: got %llu, expected %llu",
                  told(now->stx_size), told(file->size));
    }
    if (now->stx_nlink != file->links || !S_ISREG(now->stx_mode)) {
        fsx_wrong(file, 0, "st_nlink: got %u, expected %u; mode %o", now->stx_nlink, file->links,
                  now->stx_mode);
    }
    if (file->ino != 0 && now->stx_ino != file->ino) {
        fsx_wrong(file, 0, "st_ino: got %llu, expected %llu", told(now->stx_ino), told(file->ino));
    }
    if (mtime_ns < file->mtime_ns) {
        fsx_wrong(file, 0, "st_mtime: got %lld ns, %lld ns before what was seen earlier",
                  (long long)mtime_ns, (long long)(file->mtime_ns - mtime_ns));
    }
    if (mtime_ns < file->written_ns) {
        fsx_wrong(file, 0, "st_mtime: got %lld ns, %lld ns before the last write",
                  (long long)mtime_ns, (long long)(file->written_ns - mtime_ns));
    }
    look_at_blocks(file, now->stx_blocks);
    file->ino = now->stx_ino;
    file->mtime_ns = mtime_ns;
}

static void stat_file(struct fsx_file *file, int fd, struct statx *ret_now) {
    struct fsx *fsx = file->fsx;
    int flags = fsx_one_in(fsx, 2) ? AT_STATX_FORCE_SYNC : AT_STATX_SYNC_AS_STAT;

    fsx_must(file, FSX_CALL(fsx, statx(fd, "", flags | AT_EMPTY_PATH, STATX_BASIC_STATS, ret_now)),
             "statx", 0);
    look_at(file, ret_now);
}

/* By each name, which leads to it and nothing else. */
static void look_by_names(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct statx now;
    char path[4096];

    for (unsigned name = 0; name < FSX_FOLDERS * FSX_NAMES; name++) {
        if (fsx->names[name] != file) {
            continue;
        }
        fsx_path(fsx, file->home, name, path);
        fsx_must(file, FSX_CALL(fsx, statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &now)), path, 0);
        look_at(file, &now);
    }
}

void fsx_look(struct fsx_file *file) {
    struct statx now;

    fsx_note(file, "look");
    if (file->handle_count > 0) {
        unsigned handle = (unsigned)fsx_below(file->fsx, file->handle_count);
        stat_file(file, file->handles[handle].fd, &now);
    }
    if (file->handle_count == 0 || fsx_one_in(file->fsx, 3)) {
        look_by_names(file);
    }
}

bool fsx_stat(struct fsx_file *file) {
    fsx_look(file);
    return true;
}

void fsx_compare(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    struct statx now;
    bool direct = fsx_one_in(fsx, 2);

    fsx_note(file, "compare, %s, size %llu", direct ? "direct" : "buffered", told(file->size));
    int fd = fsx_open(file, direct ? FSX_DIRECT_READER : FSX_READER);
    uint64_t got;
    uint64_t at = 0;
    do {
        memset(fsx->buffer, 0xa5, FSX_PIECE);
        ssize_t result = FSX_CALL(fsx, pread(fd, fsx->buffer, FSX_PIECE, (off_t)at));
        fsx_must(file, result, "pread", at);
        got = (uint64_t)result;
        if (got != fsx_found(file, at, FSX_PIECE)) {
            fsx_wrong(file, at + got, "pread: got %llu bytes, expected %llu", told(got),
                      told(fsx_found(file, at, FSX_PIECE)));
        }
        fsx_same(file, at, fsx->buffer, got);
        at += got;
    } while (got > 0);
    stat_file(file, fd, &now);
    if (now.stx_blocks == 0 && !file->dirty && !fsx_is_zero(file, 0, file->size)) {
        fsx_wrong(file, 0, "st_blocks: got 0 for a file that is not all zeros");
    }
    fsx_must(file, FSX_CALL(fsx, close(fd)), "close", 0);
}

/* Data is never skipped, and the walk comes to the end. Answers the blocks that have data. */
static uint64_t walk(struct fsx_file *file, int fd) {
    struct fsx *fsx = file->fsx;
    uint64_t at = 0;
    uint64_t blocks = 0;

    while (at < file->size) {
        off_t data = FSX_CALL(fsx, lseek(fd, (off_t)at, SEEK_DATA));
        if (data < 0 && errno != ENXIO) {
            fsx_must(file, data, "SEEK_DATA", at);
        }
        uint64_t end = data < 0 ? file->size : (uint64_t)data;
        if (end < at || end > file->size || (data >= 0 && end == file->size)) {
            fsx_wrong(file, at, "SEEK_DATA: got %lld, size %llu", (long long)data,
                      told(file->size));
        }
        if (!fsx_is_zero(file, at, end)) {
            fsx_wrong(file, at, "SEEK_DATA: got %lld, expected data before", (long long)data);
        }
        if (data < 0) {
            return blocks;
        }
        off_t hole = FSX_CALL(fsx, lseek(fd, data, SEEK_HOLE));
        fsx_must(file, hole, "SEEK_HOLE", end);
        if (hole <= data || (uint64_t)hole > file->size) {
            fsx_wrong(file, end, "SEEK_HOLE: got %lld, size %llu", (long long)hole,
                      told(file->size));
        }
        at = (uint64_t)hole;
        blocks += (at + BLOCK_BYTES - 1) / BLOCK_BYTES - end / BLOCK_BYTES;
    }
    return blocks;
}

bool fsx_seek(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;

    /* The kernel does not tell a file system of pages that are dirty by a mapping. */
    if (file->dirty) {
        fsx_sync(file);
    }
    fsx_note(file, "SEEK_DATA and SEEK_HOLE, size %llu", told(file->size));
    int fd = fsx_handle(file, ~0u);
    (void)walk(file, fd);
    int what = fsx_one_in(fsx, 2) ? SEEK_DATA : SEEK_HOLE;
    off_t behind = (off_t)(file->size + fsx_below(fsx, 3));
    off_t result = FSX_CALL(fsx, lseek(fd, behind, what));
    if (result >= 0 || errno != ENXIO) {
        fsx_wrong(file, (uint64_t)behind, "lseek behind the end: got %lld, expected ENXIO",
                  (long long)result);
    }
    return true;
}

bool fsx_whole(struct fsx_file *file) {
    fsx_compare(file);
    return true;
}

/* Who opens it at another mount after an fsync sees all, while it stays open here. */
bool fsx_peek(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    unsigned home = file->home;

    if (file->links == 0 || fsx->mount_count < 2) {
        return false;
    }
    fsx_sync(file);
    file->home = (home + 1 + (unsigned)fsx_below(fsx, fsx->mount_count - 1)) % fsx->mount_count;
    fsx_note(file, "by mount %u:", file->home);
    fsx_compare(file);
    file->home = home;
    return true;
}

/* Small data lies with the inode, and is counted by its bytes. */
static bool is_counted(const struct fsx_file *file, uint64_t data_blocks, uint64_t sectors) {
    return sectors == data_blocks * (BLOCK_BYTES / 512) ||
           (file->size <= BLOCK_BYTES && sectors == (file->size + 511) / 512);
}

void fsx_count(struct fsx_file *file) {
    struct fsx *fsx = file->fsx;
    uint64_t began_ns = fsx_now_ns();
    struct statx now;

    fsx_note(file, "count, size %llu", told(file->size));
    int fd = fsx_open(file, FSX_READER);
    uint64_t blocks = walk(file, fd);
    do {
        fsx_must(file,
                 FSX_CALL(fsx, statx(fd, "", AT_STATX_FORCE_SYNC | AT_EMPTY_PATH, STATX_BASIC_STATS,
                                     &now)),
                 "statx", 0);
        if (fsx_now_ns() - began_ns > COUNT_LIMIT_S * NS_PER_S) {
            fsx_wrong(file, 0, "st_blocks: got %llu, expected those of %llu blocks with data",
                      told(now.stx_blocks), told(blocks));
        }
    } while (!is_counted(file, blocks, now.stx_blocks));
    fsx_must(file, FSX_CALL(fsx, close(fd)), "close", 0);
}
