/* A base on LMDB. See kv_base.h for the contract, kv_base_row.h for what a value looks like.
 *
 * All rows lie in LMDB's main table, so that a commit rewrites no table of tables. Behind all rows
 * lies one more, the format row: its key is longer than a row's and all ones. The walks depend on
 * it being there and last.
 *
 * The map is made large at once: it is address space only, and growing it would need a moment
 * without any reader. Read-ahead is off, since what is read is mostly single rows of a file larger
 * than memory: with it, a cold read brings in 128 KiB for one page.
 *
 * Thread: one read transaction, opened by the first read of a step and reset by read_end, is the
 * owner's; warm opens its own on each call; commits have LMDB's only writer, on the lane WRITE. */
#include "kv/kv_lmdb.h"
#include "kv/kv_base_row.h"
#include "kv/kv_lmdb_check.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PATH_BYTES_MAX = 4096,
    PROBLEM_BYTES = 256,
    FILE_MODE = 0600,
    FORMAT_VERSION = 1,
    FORMAT_KEY_BYTES = KV_KEY_BYTES + 1,
    WARM_ROWS = 64,       /* about four pages */
    FULL_BYTES = 1 << 20, /* with less left, a file system is full */
    META_PAGES = 2,       /* LMDB's, the file's first */
    META_BYTES = 512,     /* all that is in one */
};
#define MAKING_SUFFIX ".new"
#define MAP_BYTES_MAX (1024 * GIB)
/* Room for three of the largest commits: a commit may not use what the last two have freed. */
#define RESERVE_BYTES (3 * 100000ull * BLOCK_BYTES)

static const uint8_t format_key[FORMAT_KEY_BYTES] = {
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
};

/* The format row: magic, version, CRC-32C of both, little-endian. A newer version may be longer,
 * but begins like this. */
enum { FORMAT_MAGIC_BYTES = 8, FORMAT_VERSION_AT = 8, FORMAT_CRC_AT = 12, FORMAT_ROW_BYTES = 16 };
static const char format_magic[FORMAT_MAGIC_BYTES] = "SHOALKV";

struct kv_base {
    MDB_env *lmdb;
    MDB_dbi table;
    MDB_txn *read;
    MDB_cursor *cursor; /* of gets */
    MDB_cursor *walk;   /* of next and previous: gets elsewhere leave it at its page */
    bool reading;       /* the transaction is open, not reset */
    bool walking;       /* walk belongs to it */
    struct env *env;
    uint64_t memory_bytes;
    uint64_t used_bytes_max;     /* without the reserve */
    _Atomic uint64_t used_bytes; /* pages that hold rows */
    _Atomic uint64_t file_bytes;
    char path[PATH_BYTES_MAX];
};

static int error_of(int lmdb_result) {
    switch (lmdb_result) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return -ERR_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return -ERR_NO_SPACE;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
        return -ERR_CORRUPT;
    case MDB_VERSION_MISMATCH:
        return -ERR_NEWER_FORMAT;
    case MDB_READERS_FULL:
        return -ERR_BUSY;
    case ENOMEM:
        return -ERR_NO_MEMORY;
    case EACCES:
    case EPERM:
        return -ERR_ACCESS;
    case EROFS:
        return -ERR_READ_ONLY;
    case ENOENT:
        return -ERR_NOT_FOUND;
    default:
        return -ERR_IO;
    }
}

PRINTF_LIKE(3, 4)
static int problem_set(char ret_problem[PROBLEM_BYTES], int result, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(ret_problem, PROBLEM_BYTES, format, arguments);
    va_end(arguments);
    return result;
}

static int lmdb_problem(char ret_problem[PROBLEM_BYTES], const struct kv_base *base, int result) {
    return problem_set(ret_problem, error_of(result), "%s: %s", base->path, mdb_strerror(result));
}

static MDB_val key_val(const struct kv_key *key) {
    return (MDB_val){.mv_size = KV_KEY_BYTES, .mv_data = (void *)(uintptr_t)key->bytes};
}

static MDB_val format_key_val(void) {
    return (MDB_val){.mv_size = FORMAT_KEY_BYTES, .mv_data = (void *)(uintptr_t)format_key};
}

/* Inside a transaction that sees what is to be measured. */
static int measure(struct kv_base *base, MDB_txn *txn, uint64_t *ret_used_bytes) {
    MDB_stat stat;
    int r = mdb_stat(txn, base->table, &stat);

    if (r == 0) {
        *ret_used_bytes = (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) *
                          (uint64_t)stat.ms_psize;
    }
    return r;
}

static void measure_file(struct kv_base *base) {
    MDB_envinfo info;
    MDB_stat stat;

    if (mdb_env_info(base->lmdb, &info) == 0 && mdb_env_stat(base->lmdb, &stat) == 0) {
        atomic_store_explicit(&base->file_bytes, (info.me_last_pgno + 1) * stat.ms_psize,
                              memory_order_relaxed);
    }
}

static int lmdb_open_mapped(struct kv_base *base, size_t map_bytes) {
    int r = mdb_env_create(&base->lmdb);

    if (r == 0) {
        r = mdb_env_set_mapsize(base->lmdb, map_bytes);
    }
    if (r == 0) {
        r = mdb_env_open(base->lmdb, base->path, MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD,
                         FILE_MODE);
    }
    if (r != 0 && base->lmdb) {
        mdb_env_close(base->lmdb);
        base->lmdb = NULL;
    }
    base->used_bytes_max = map_bytes - MIN(map_bytes / 8, RESERVE_BYTES);
    return r;
}

static void say_of_rows(const struct kv_base *base, const struct kv_base_options *options,
                        const struct lmdb_check_found *found) {
    char line[PATH_BYTES_MAX + 256];

    if (found->damaged_rows > 0 && options->log) {
        (void)snprintf(line, sizeof line,
                       "%s: damaged rows: %" PRIu64 ", the first at byte %" PRIu64
                       ": what needs them answers EIO, or is missing: `shoal fsck` tells more; "
                       "check the disk, restore DIR from a backup",
                       base->path, found->damaged_rows, found->damaged_row_at);
        options->log(options->log_context, line);
    }
}

static uint64_t check_bytes(const struct kv_base_options *options) {
    return options->check_bytes ? options->check_bytes : LMDB_CHECK_BYTES_DEFAULT;
}

static void say_of_size(const struct kv_base *base, const struct kv_base_options *options,
                        uint64_t size_bytes) {
    char line[PATH_BYTES_MAX + 256];

    if (options->log) {
        (void)snprintf(line, sizeof line,
                       "%s has %" PRIu64 " bytes, base_check_bytes is %" PRIu64
                       ": this start has looked at its first two pages only",
                       base->path, size_bytes, check_bytes(options));
        options->log(options->log_context, line);
    }
}

static int check_mapped(const struct kv_base *base, const struct kv_base_options *options,
                        struct bytes file, char ret_problem[PROBLEM_BYTES]) {
    struct lmdb_check_found found;
    char what[96];
    int r = lmdb_check(file, check_bytes(options), &found, what);

    if (r < 0) {
        return problem_set(ret_problem, r,
                           "%s/" KV_LMDB_NAME
                           " is damaged: %s: check the disk, and restore DIR from a backup",
                           options->directory, r == -ERR_CORRUPT ? what : err_text(r));
    }
    if (found.partly) {
        say_of_size(base, options, file.size);
    }
    say_of_rows(base, options, &found);
    return 0;
}

/* Before LMDB trusts it. What can't be opened or mapped is for LMDB to tell. */
static int file_check(const struct kv_base *base, const struct kv_base_options *options,
                      char ret_problem[PROBLEM_BYTES]) {
    int fd = open(base->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat stat;
    int r = 0;

    if (fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0) {
        size_t size_bytes = (size_t)stat.st_size;
        void *file = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);

        if (file != MAP_FAILED) {
            if (size_bytes <= check_bytes(options)) {
                (void)madvise(file, size_bytes, MADV_WILLNEED);
            }
            r = check_mapped(base, options, (struct bytes){file, size_bytes}, ret_problem);
            (void)munmap(file, size_bytes);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return r;
}

/* LMDB's last pages may be free and never written; a file that lost pages looks alike. Zeros in
 * their place are found when they are read; pages behind the end of the file would be a SIGBUS. */
static int file_complete(struct kv_base *base) {
    struct stat stat;
    uint64_t bytes = atomic_load_explicit(&base->file_bytes, memory_order_relaxed);
    mdb_filehandle_t file;
    int r = mdb_env_get_fd(base->lmdb, &file);

    if (r == 0 && (fstat(file, &stat) < 0 ||
                   ((uint64_t)stat.st_size < bytes && ftruncate(file, (off_t)bytes) < 0))) {
        r = errno;
    }
    return r;
}

/* Makes the names of a directory durable. */
static int directory_sync(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;

    if (fd < 0 || fsync(fd) < 0) {
        r = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return r;
}

/* The file's directory, and the one that has its name. */
static int directories_sync(const struct kv_base *base) {
    char path[PATH_BYTES_MAX];
    int r = 0;

    memcpy(path, base->path, sizeof path);
    for (unsigned i = 0; r == 0 && i < 2; i++) {
        char *slash = strrchr(path, '/');

        assert(slash);
        *slash = '\0';
        r = directory_sync(path[0] ? path : "/");
    }
    return r;
}

static int format_write(MDB_env *lmdb) {
    uint8_t row[FORMAT_ROW_BYTES];
    MDB_val key = format_key_val();
    MDB_val value = {sizeof row, row};
    MDB_txn *txn;
    MDB_dbi table;
    int r = mdb_txn_begin(lmdb, NULL, 0, &txn);

    if (r != 0) {
        return r;
    }
    memcpy(row, format_magic, FORMAT_MAGIC_BYTES);
    store_le32(row + FORMAT_VERSION_AT, FORMAT_VERSION);
    store_le32(row + FORMAT_CRC_AT, crc32c(0, row, FORMAT_CRC_AT));
    r = mdb_dbi_open(txn, NULL, 0, &table);
    if (r == 0) {
        r = mdb_put(txn, table, &key, &value, 0);
    }
    if (r != 0) {
        mdb_txn_abort(txn);
        return r;
    }
    return mdb_txn_commit(txn);
}

/* LMDB can't open a file whose making was cut, so the file gets its name when it is whole. */
static int file_create(const struct kv_base *base) {
    char path[PATH_BYTES_MAX + sizeof MAKING_SUFFIX];
    MDB_env *lmdb;
    int r = mdb_env_create(&lmdb);

    if (r != 0) {
        return r;
    }
    (void)snprintf(path, sizeof path, "%s" MAKING_SUFFIX, base->path);
    (void)unlink(path);
    r = mdb_env_open(lmdb, path, MDB_NOSUBDIR | MDB_NOLOCK, FILE_MODE);
    if (r == 0) {
        r = format_write(lmdb);
    }
    mdb_env_close(lmdb);
    return r == 0 && rename(path, base->path) < 0 ? errno : r;
}

/* A process that was killed, or told of an error, may have left meta pages in the page cache that
 * are not on disk, or the other way round. Who reads them builds on them, so they are written
 * again; and the names, too. */
static int file_settle(const struct kv_base *base) {
    mdb_filehandle_t file;
    MDB_stat stat;
    int r = mdb_env_get_fd(base->lmdb, &file);

    if (r == 0) {
        r = mdb_env_stat(base->lmdb, &stat);
    }
    for (off_t i = 0; r == 0 && i < META_PAGES; i++) {
        uint8_t meta[META_BYTES];
        off_t at = i * (off_t)stat.ms_psize;
        ssize_t size = pread(file, meta, sizeof meta, at);

        if (size == sizeof meta) {
            size = pwrite(file, meta, sizeof meta, at);
        }
        if (size != sizeof meta) {
            r = size < 0 ? errno : EIO;
        }
    }
    if (r == 0) {
        r = mdb_env_sync(base->lmdb, 1);
    }
    return r == 0 ? directories_sync(base) : r;
}

static int lmdb_open_file(struct kv_base *base, size_t map_bytes) {
    int r = lmdb_open_mapped(base, map_bytes);

    while (r == ENOMEM && map_bytes > KV_LMDB_MAP_BYTES_MIN) {
        map_bytes /= 2;
        r = lmdb_open_mapped(base, map_bytes);
    }
    if (r == 0) {
        measure_file(base);
        r = file_complete(base);
    }
    return r == 0 ? file_settle(base) : r;
}

static int lmdb_open_rows(struct kv_base *base) {
    uint64_t used_bytes;
    int r = mdb_txn_begin(base->lmdb, NULL, MDB_RDONLY, &base->read);

    if (r == 0) {
        base->reading = true;
        r = mdb_dbi_open(base->read, NULL, 0, &base->table);
    }
    if (r == 0) {
        r = mdb_cursor_open(base->read, base->table, &base->cursor);
    }
    if (r == 0) {
        r = mdb_cursor_open(base->read, base->table, &base->walk);
    }
    if (r == 0) {
        r = measure(base, base->read, &used_bytes);
    }
    if (r == 0) {
        atomic_store_explicit(&base->used_bytes, used_bytes, memory_order_relaxed);
    }
    return r;
}

static int format_check(struct kv_base *base, char ret_problem[PROBLEM_BYTES]) {
    MDB_val key = format_key_val(), value;
    MDB_stat stat;
    const uint8_t *row;
    int r = mdb_get(base->read, base->table, &key, &value);

    if (r == MDB_NOTFOUND && mdb_stat(base->read, base->table, &stat) == 0 &&
        stat.ms_entries == 0) {
        r = format_write(base->lmdb);
        return r == 0 ? 0 : lmdb_problem(ret_problem, base, r);
    }
    if (r == MDB_NOTFOUND) {
        return problem_set(ret_problem, -ERR_CORRUPT, "%s: has rows but none that names its format",
                           base->path);
    }
    if (r != 0) {
        return lmdb_problem(ret_problem, base, r);
    }
    row = value.mv_data;
    if (value.mv_size < FORMAT_ROW_BYTES || memcmp(row, format_magic, FORMAT_MAGIC_BYTES) != 0 ||
        load_le32(row + FORMAT_CRC_AT) != crc32c(0, row, FORMAT_CRC_AT)) {
        return problem_set(ret_problem, -ERR_CORRUPT,
                           "%s: the row that names its format is damaged", base->path);
    }
    if (load_le32(row + FORMAT_VERSION_AT) != FORMAT_VERSION) {
        return problem_set(ret_problem, -ERR_NEWER_FORMAT, "%s: format %u, this is written for %u",
                           base->path, load_le32(row + FORMAT_VERSION_AT), FORMAT_VERSION);
    }
    return 0;
}

static void lmdb_read_end(struct kv_base *base) {
    if (base->reading) {
        mdb_txn_reset(base->read);
        base->reading = false;
        base->walking = false;
    }
}

static void lmdb_close(struct kv_base *base) {
    if (!base) {
        return;
    }
    if (base->cursor) {
        mdb_cursor_close(base->cursor);
    }
    if (base->walk) {
        mdb_cursor_close(base->walk);
    }
    if (base->read) {
        mdb_txn_abort(base->read);
    }
    if (base->lmdb) {
        mdb_env_close(base->lmdb);
    }
    free(base);
}

static int lmdb_open(const struct kv_base_options *options, struct kv_base **ret_base,
                     char ret_problem[PROBLEM_BYTES]) {
    struct kv_base *base = calloc(1, sizeof *base);
    int r;

    if (!base) {
        return problem_set(ret_problem, -ERR_NO_MEMORY, "no memory for the base");
    }
    base->env = options->env;
    base->memory_bytes = options->memory_bytes;
    r = snprintf(base->path, sizeof base->path, "%s/%s/" KV_LMDB_NAME, options->root,
                 options->directory);
    if (r < 0 || (size_t)r >= sizeof base->path) {
        lmdb_close(base);
        return problem_set(ret_problem, -ERR_NAME_TOO_LONG, "the path of the base is too long");
    }
    r = options->env->ops->directory_make(options->env, options->directory);
    if (r < 0) {
        (void)problem_set(ret_problem, r, "%s: %s", options->directory, err_text(r));
    } else {
        r = file_check(base, options, ret_problem);
    }
    if (r == 0) {
        r = access(base->path, F_OK) < 0 && errno == ENOENT ? file_create(base) : 0;
        if (r == 0) {
            r = lmdb_open_file(base, options->map_bytes ? options->map_bytes : MAP_BYTES_MAX);
        }
        if (r == 0) {
            r = lmdb_open_rows(base);
        }
        r = r == 0 ? format_check(base, ret_problem) : lmdb_problem(ret_problem, base, r);
    }
    if (r < 0) {
        lmdb_close(base);
        return r;
    }
    lmdb_read_end(base);
    *ret_base = base;
    return 0;
}

static bool lmdb_is_cold(struct kv_base *base) {
    return atomic_load_explicit(&base->used_bytes, memory_order_relaxed) > base->memory_bytes;
}

static uint64_t lmdb_file_bytes(struct kv_base *base) {
    return atomic_load_explicit(&base->file_bytes, memory_order_relaxed);
}

static void lmdb_space(struct kv_base *base, struct kv_base_space *ret_space) {
    uint64_t used = atomic_load_explicit(&base->used_bytes, memory_order_relaxed);
    uint64_t file = lmdb_file_bytes(base);

    *ret_space = (struct kv_base_space){.used_bytes = used,
                                        .unused_bytes = file - MIN(file, used),
                                        .bytes_max = base->used_bytes_max};
}

static int read_begin(struct kv_base *base) {
    int r = 0;

    if (!base->reading) {
        r = mdb_txn_renew(base->read);
        if (r == 0) {
            base->reading = true;
            r = mdb_cursor_renew(base->read, base->cursor);
        }
    }
    return r;
}

static int walk_begin(struct kv_base *base) {
    int r = read_begin(base);

    if (r == 0 && !base->walking) {
        r = mdb_cursor_renew(base->read, base->walk);
        base->walking = r == 0;
    }
    return r;
}

/* What a cursor stands on; the format row is the end. */
static int row_answer(const MDB_val *key, const MDB_val *value, struct kv_key *ret_key,
                      struct bytes *ret_value) {
    if (key->mv_size == FORMAT_KEY_BYTES) {
        return -ERR_NOT_FOUND;
    }
    if (key->mv_size != KV_KEY_BYTES) {
        return -ERR_CORRUPT;
    }
    memcpy(ret_key->bytes, key->mv_data, KV_KEY_BYTES);
    return base_row_check(ret_key, (struct bytes){value->mv_data, value->mv_size}, ret_value);
}

static int lmdb_get(struct kv_base *base, const struct kv_key *key, struct bytes *ret_value) {
    MDB_val wanted = key_val(key), value;
    int r = read_begin(base);

    if (r == 0) {
        r = mdb_cursor_get(base->cursor, &wanted, &value, MDB_SET);
    }
    if (r != 0) {
        return error_of(r);
    }
    return base_row_check(key, (struct bytes){value.mv_data, value.mv_size}, ret_value);
}

static int lmdb_next(struct kv_base *base, const struct kv_key *key, bool inclusive,
                     struct kv_key *ret_key, struct bytes *ret_value) {
    MDB_val found = key_val(key), value;
    int r = walk_begin(base);

    if (r == 0) {
        r = mdb_cursor_get(base->walk, &found, &value, MDB_SET_RANGE);
    }
    if (r == 0 && !inclusive && found.mv_size == KV_KEY_BYTES &&
        memcmp(found.mv_data, key->bytes, KV_KEY_BYTES) == 0) {
        r = mdb_cursor_get(base->walk, &found, &value, MDB_NEXT);
    }
    return r == 0 ? row_answer(&found, &value, ret_key, ret_value) : error_of(r);
}

static int lmdb_previous(struct kv_base *base, const struct kv_key *key, struct kv_key *ret_key,
                         struct bytes *ret_value) {
    MDB_val found = key_val(key), value;
    int r = walk_begin(base);

    if (r == 0) {
        /* Finds the format row if nothing else. */
        r = mdb_cursor_get(base->walk, &found, &value, MDB_SET_RANGE);
    }
    if (r == 0) {
        r = mdb_cursor_get(base->walk, &found, &value, MDB_PREV);
    }
    return r == 0 ? row_answer(&found, &value, ret_key, ret_value) : error_of(r);
}

/* Its bytes are in memory once each page of them has been touched. */
static void row_touch(const MDB_val *value) {
    const volatile uint8_t *bytes = value->mv_data;

    for (size_t at = 0; at < value->mv_size; at += BLOCK_BYTES) {
        (void)bytes[at];
    }
    if (value->mv_size > 0) {
        (void)bytes[value->mv_size - 1];
    }
}

static void lmdb_warm(struct kv_base *base, struct kv_stretch *stretch) {
    MDB_val found = key_val(&stretch->first), value;
    MDB_cursor *cursor;
    MDB_txn *txn;

    stretch->last = stretch->first;
    /* Errors are met again, and reported, by the read that this prepares. */
    if (mdb_txn_begin(base->lmdb, NULL, MDB_RDONLY, &txn) != 0) {
        return;
    }
    if (mdb_cursor_open(txn, base->table, &cursor) == 0) {
        int r = mdb_cursor_get(cursor, &found, &value, MDB_SET_RANGE);

        if (r == 0 && mdb_cursor_get(cursor, &found, &value, MDB_PREV) == 0) {
            row_touch(&value);
            r = mdb_cursor_get(cursor, &found, &value, MDB_NEXT);
        }
        for (unsigned i = 0; r == 0 && found.mv_size == KV_KEY_BYTES && i < WARM_ROWS; i++) {
            memcpy(stretch->last.bytes, found.mv_data, KV_KEY_BYTES);
            row_touch(&value);
            r = mdb_cursor_get(cursor, &found, &value, MDB_NEXT);
        }
        if (r == 0 && found.mv_size == FORMAT_KEY_BYTES) {
            memset(stretch->last.bytes, 0xff, KV_KEY_BYTES);
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
}

static int row_commit(MDB_cursor *cursor, const struct kv_base_row *row) {
    MDB_val key = key_val(&row->key);
    MDB_val value = {.mv_size = row->value.size + BASE_ROW_CRC_BYTES};
    int r;

    if (row->deleted) {
        r = mdb_cursor_get(cursor, &key, &value, MDB_SET);
        if (r == 0) {
            r = mdb_cursor_del(cursor, 0);
        }
        return r == MDB_NOTFOUND ? 0 : r;
    }
    r = mdb_cursor_put(cursor, &key, &value, MDB_RESERVE);
    if (r == 0) {
        base_row_write(value.mv_data, &row->key, row->value);
    }
    return r;
}

static int rows_commit(struct kv_base *base, MDB_txn *txn, const struct kv_base_commit *commit) {
    MDB_cursor *cursor;
    int r = mdb_cursor_open(txn, base->table, &cursor);

    for (size_t i = 0; r == 0 && i < commit->row_count; i++) {
        assert(i == 0 || kv_key_compare(&commit->rows[i - 1].key, &commit->rows[i].key) < 0);
        r = row_commit(cursor, &commit->rows[i]);
    }
    /* The cursor ends with the transaction. */
    return r;
}

/* After a meta page that it could not write LMDB takes no more transactions: a later one might
 * build on a page that is there or not. */
static bool is_dead(struct kv_base *base) {
    MDB_txn *txn;
    int r = mdb_txn_begin(base->lmdb, NULL, 0, &txn);

    if (r == 0) {
        mdb_txn_abort(txn);
    }
    return r == MDB_PANIC;
}

/* LMDB calls it EIO, too, when the file system takes a part of a write only, being full then. */
static int commit_error(struct kv_base *base, int lmdb_result) {
    struct statvfs space;
    mdb_filehandle_t file;

    if (lmdb_result != 0 && is_dead(base)) {
        return -ERR_IO;
    }
    if (lmdb_result == EIO && mdb_env_get_fd(base->lmdb, &file) == 0 &&
        fstatvfs(file, &space) == 0 && space.f_bavail * space.f_frsize < FULL_BYTES) {
        return -ERR_NO_SPACE;
    }
    return error_of(lmdb_result);
}

/* In a map that is full to its end nothing can be deleted either. */
static int reserve_keep(struct kv_base *base, uint64_t used_bytes) {
    bool grows = used_bytes > atomic_load_explicit(&base->used_bytes, memory_order_relaxed);

    return grows && used_bytes > base->used_bytes_max ? MDB_MAP_FULL : 0;
}

static void lmdb_commit_run(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);
    struct kv_base *base = commit->base;
    uint64_t used_bytes;
    MDB_txn *txn;
    int r = mdb_txn_begin(base->lmdb, NULL, 0, &txn);

    if (r == 0) {
        r = rows_commit(base, txn, commit);
        if (r == 0) {
            r = measure(base, txn, &used_bytes);
        }
        if (r == 0) {
            r = reserve_keep(base, used_bytes);
        }
        if (r == 0) {
            r = mdb_txn_commit(txn);
        } else {
            mdb_txn_abort(txn);
        }
    }
    if (r == 0) {
        atomic_store_explicit(&base->used_bytes, used_bytes, memory_order_relaxed);
    }
    measure_file(base);
    commit->result = commit_error(base, r);
}

static void lmdb_commit_done(struct env_job *job) {
    struct kv_base_commit *commit = CONTAINER_OF(job, struct kv_base_commit, job);

    commit->done(commit);
}

static int lmdb_commit_now(struct kv_base *base, struct kv_base_commit *commit) {
    commit->base = base;
    lmdb_commit_run(&commit->job);
    return commit->result;
}

static void lmdb_commit(struct kv_base *base, struct kv_base_commit *commit) {
    assert(commit->row_count <= KV_BASE_COMMIT_ROWS_MAX);
    commit->base = base;
    commit->job = (struct env_job){
        .lane = ENV_LANE_WRITE,
        .run = lmdb_commit_run,
        .done = lmdb_commit_done,
    };
    env_job_submit(base->env, &commit->job);
}

const struct kv_base_ops kv_lmdb_ops = {
    .open = lmdb_open,
    .is_cold = lmdb_is_cold,
    .get = lmdb_get,
    .next = lmdb_next,
    .previous = lmdb_previous,
    .read_end = lmdb_read_end,
    .warm = lmdb_warm,
    .commit = lmdb_commit,
    .commit_now = lmdb_commit_now,
    .file_bytes = lmdb_file_bytes,
    .space = lmdb_space,
    .close = lmdb_close,
};
