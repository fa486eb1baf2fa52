/* libshoal: the client of the Shoal parallel file system.
 *
 * Two layers over one session: inode numbers (shoal_ino_*, what a file system front-end needs) and
 * paths (shoal_*, what a program needs). Both are asynchronous with the caller's buffers; the
 * synchronous calls of the path layer are the same operations, waited for.
 *
 * Threads: any thread may call; a request's done runs on the thread that completes it and must not
 * block. A request and its buffers belong to the library from start until done.
 * Results: 0 or more for success, or -(errno of Linux). Units: bytes; ns since 1970. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SHOAL_EXPORT __attribute__((visibility("default")))
enum { SHOAL_VERSION_MAJOR = 0, SHOAL_VERSION_MINOR = 1, SHOAL_NAME_BYTES_MAX = 255 };
#define SHOAL_INO_ROOT UINT64_C(1)
struct shoal_client; /* a session with a cluster */
struct shoal_file;   /* an open file or directory */

/* Who asks; groups are borrowed until done. NULL where a pointer to it is asked for: root. */
struct shoal_identity {
    uint32_t uid, gid, group_count; /* of groups at most 1,024 */
    const uint32_t *groups;
};

struct shoal_attributes {
    uint64_t ino, size, bytes_used, version; /* version: of an open, another after each change */
    int64_t atime_ns, mtime_ns, ctime_ns, btime_ns;
    uint32_t mode, uid, gid, nlink, rdev, generation;
};

struct shoal_statfs {
    uint64_t bytes_total, bytes_free, bytes_available, files_total, files_free;
};

/* How new files are laid out. stripe_count -1: over all targets. */
struct shoal_layout {
    uint32_t chunk_bytes; /* a multiple of 64 KiB, up to 64 MiB */
    int32_t stripe_count;
    uint32_t pool_version;
};

enum shoal_open_flag {
    SHOAL_OPEN_READ = 1,
    SHOAL_OPEN_WRITE = 2,
    SHOAL_OPEN_TRUNCATE = 4,
    SHOAL_OPEN_DIRECTORY = 8,
    SHOAL_OPEN_EXECUTE = 16,
    SHOAL_OPEN_CREATE = 32,
    SHOAL_OPEN_EXCLUSIVE = 64,
    SHOAL_OPEN_APPEND = 128,
    SHOAL_OPEN_MADE = 256,    /* set by CREATE: the file was not there before */
    SHOAL_OPEN_UNNAMED = 512, /* CREATE, to write: no name until LINK; with EXCLUSIVE never one */
};

enum shoal_set {
    SHOAL_SET_MODE = 1,
    SHOAL_SET_UID = 2,
    SHOAL_SET_GID = 4,
    SHOAL_SET_SIZE = 8,
    SHOAL_SET_ATIME = 16,
    SHOAL_SET_MTIME = 32,
    SHOAL_SET_ATIME_NOW = 64,
    SHOAL_SET_MTIME_NOW = 128,
    SHOAL_SET_KILL_SUID = 256, /* of a regular file: set-user-ID, and set-group-ID beside x */
};
enum { SHOAL_RENAME_NO_REPLACE = 1, SHOAL_RENAME_EXCHANGE = 2 };
enum { SHOAL_KEEP_SIZE = 1, SHOAL_PUNCH_HOLE = 2, SHOAL_ZERO_RANGE = 16 }; /* Linux's numbers */
enum { SHOAL_SEEK_DATA = 3, SHOAL_SEEK_HOLE = 4 };
enum { SHOAL_ABANDONED = 2 }; /* `interrupted` says it: nobody will use what is opened */
enum shoal_operation {
    SHOAL_LOOKUP = 1, /* ino, name -> attributes; nlink 0: lost, but for its name and type */
    SHOAL_GETATTR,    /* ino or file -> attributes */
    SHOAL_SETATTR,    /* ino (file when opened), set, attributes -> attributes */
    SHOAL_CREATE,     /* ino, name, mode, flags -> attributes, file */
    SHOAL_MKNOD,      /* ino, name, mode, rdev -> attributes */
    SHOAL_MKDIR,      /* ino, name, mode -> attributes */
    SHOAL_SYMLINK,    /* ino, name, data (target) -> attributes */
    SHOAL_READLINK,   /* ino, data (space) -> result = bytes */
    SHOAL_LINK,       /* ino (of the file), new_ino (parent), new_name -> attributes */
    SHOAL_UNLINK,     /* ino, name */
    SHOAL_RMDIR,      /* ino, name */
    SHOAL_RENAME,     /* ino, name, new_ino, new_name, flags (SHOAL_RENAME_*) */
    SHOAL_OPEN,       /* ino, flags -> file, attributes */
    SHOAL_RELEASE,    /* file: closes it; always takes it */
    SHOAL_READ,       /* file, offset, data (space; undefined behind result), size -> result */
    SHOAL_WRITE,      /* file, offset, data, size -> result = bytes (all, or an error) */
    SHOAL_FSYNC,      /* file; root: as SHOAL_SYNC. -EIO once a handle: a power cut undid changes */
    SHOAL_FLUSH,      /* file: settles size and times, as close does */
    SHOAL_READDIR,    /* file, offset (cookie), size (wanted about; 0: any), entry, entry_context */
    SHOAL_STATFS,     /* -> statfs */
    SHOAL_ACCESS,     /* ino, mode (mask of 4 2 1) */
    SHOAL_LAYOUT_GET, /* ino -> layout */
    SHOAL_LAYOUT_SET, /* ino (directory or empty file), layout */
    SHOAL_SYNC,       /* a sync point on every target; -EIO once: any change of ours was undone */
    SHOAL_ALLOCATE,   /* file, offset, size, flags (SHOAL_KEEP_SIZE ...): as fallocate */
    SHOAL_SEEK,       /* file, offset, flags (SHOAL_SEEK_*) -> result = offset; -ENXIO: none */
};

/* One entry of a directory; attributes is NULL without plus, or can be. Non-zero stops before the
 * entry. Called inside the library: no calls back into it. */
struct shoal_entry {
    const char *name; /* not ended by NUL */
    size_t name_bytes;
    uint64_t ino, cookie; /* cookie: the place behind it */
    uint32_t type;        /* DT_ of dirent.h */
    const struct shoal_attributes *attributes;
};
typedef int shoal_entry_fn(void *context, const struct shoal_entry *entry);

struct shoal_request {
    enum shoal_operation operation;
    uint32_t flags, mode, rdev;
    uint32_t set; /* shoal_set bits */
    uint32_t plus;
    uint64_t ino, new_ino;
    const char *name, *new_name;
    size_t name_bytes, new_name_bytes;
    struct shoal_file *file;
    uint64_t offset;
    void *data;
    size_t size;
    struct shoal_identity identity;
    uint64_t age_max_ns; /* GETATTR of a directory: as the client knows it; 0: as a server */
    shoal_entry_fn *entry;
    void *entry_context;
    int64_t result;                     /* bytes or 0, or a negative errno */
    uint64_t age_ns;                    /* that they have, at most; below age_max_ns */
    struct shoal_attributes attributes; /* also input of SETATTR */
    struct shoal_statfs statfs;
    struct shoal_layout layout;
    void (*done)(struct shoal_request *request);
    void *context; /* the caller's */
    /* Asked by any thread while a server is away, or NULL. Not 0: it ends with -EINTR, may have
     * taken effect; but OPEN, CREATE, RELEASE go on, unless it is SHOAL_ABANDONED. */
    int (*interrupted)(struct shoal_request *request);
    uint64_t internal[192]; /* the library's */
};

/* Starts the request; done may run before this returns. */
SHOAL_EXPORT void shoal_submit(struct shoal_client *client, struct shoal_request *request);
/* submit, wait, answer request->result. */
SHOAL_EXPORT int64_t shoal_run(struct shoal_client *client, struct shoal_request *request);

#ifdef __cplusplus
}
#endif
