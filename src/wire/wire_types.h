/* The types that messages are made of. Roles share these and nothing else. */
#pragma once
#include "base/types.h"
#include "layout/layout.h"
#include "wire/wire_fsck.h"
#include "wire/wire_rows.h"

enum { WIRE_GROUPS_MAX = 1024, WIRE_TICKET_BYTES_MAX = 302, WIRE_ENDED_BYTES_MAX = 1024 };
/* struct wire_space of each OST of a node */
enum {
    WIRE_SPACES_MAX = 64,
    WIRE_SPACES_BYTES_MAX = WIRE_SPACES_MAX * WIRE_ROW_GROWTH * WIRE_SPACE_BYTES_MIN
};

/* Little-endian, one behind the other. Slots from `first` on, by the hand-over of that number; how
 * many files a group has, and whether new directories are to go to others: 0 of one that has room,
 * or whose version, or the manager's, does not tell. */
struct wire_slots {
    uint32_t first;
    uint32_t count;
    uint64_t handover;
};
struct wire_load {
    uint64_t log;
    uint64_t inode_count;
    uint8_t is_full;
    uint8_t reserved[7]; /* 0 */
};
_Static_assert(sizeof(struct wire_slots) == 16 && sizeof(struct wire_load) == 24, "no padding");
_Static_assert(sizeof(struct wire_load) <= WIRE_ROW_GROWTH * WIRE_LOAD_BYTES_MIN, "it has space");

/* What a storage target has: bytes that are used, and bytes that new data may still take, by its
 * own limit and by what is free below. */
struct wire_space {
    uint32_t target;
    uint32_t reserved; /* 0 */
    uint64_t used_bytes;
    uint64_t available_bytes;
};
_Static_assert(sizeof(struct wire_space) == 24, "no padding");

/* Where the bytes of a file are. It goes from EMPTY to INLINE to CHUNKED or straight to CHUNKED,
 * never back. */
enum data_state { DATA_EMPTY, DATA_INLINE, DATA_CHUNKED };

struct attributes {
    struct ino ino;
    uint32_t generation;
    uint32_t mode; /* type and permission, as in POSIX */
    uint32_t uid;
    uint32_t gid;
    uint32_t nlink;
    uint32_t rdev;
    uint32_t truncate_seq; /* rises when written bytes are cut off */
    uint64_t size;
    uint64_t bytes_used;
    int64_t atime_ns; /* since 1970 */
    int64_t mtime_ns;
    int64_t ctime_ns;
    int64_t btime_ns;
    uint64_t epoch; /* of the last change */
    uint8_t data_state;
};

/* Who asks. groups are the supplementary ones, owned by the caller; at most WIRE_GROUPS_MAX. */
struct credentials {
    uint32_t uid;
    uint32_t gid;
    uint32_t group_count;
    const uint32_t *groups;
};

/* RIGHT_SYNC_FIRST: somebody may have been told that the inline rows are on disk, so chunk 0 must
 * be before they are dropped. */
enum { RIGHT_READ = 1, RIGHT_WRITE = 2, RIGHT_SYNC_FIRST = 4 };

/* What an MDT allows its bearer to do with the chunks of a file. key_number 0: not signed, good
 * within one process only. The signature is over all other fields; see capability.h. */
struct capability {
    struct ino ino;
    uint32_t generation; /* of the chunks */
    uint32_t rights;
    uint64_t max_offset;
    uint32_t truncate_seq;  /* bytes at or beyond truncate_size that are older than */
    uint64_t truncate_size; /* this sequence read as a hole */
    uint64_t session;
    uint64_t session_incarnation;
    uint64_t map_version;
    uint32_t key_number;
    uint64_t signature[2];
    uint64_t key_name; /* of the members' key, whose key of that number has signed */
};

enum setattr_valid {
    SETATTR_MODE = 1,
    SETATTR_UID = 2,
    SETATTR_GID = 4,
    SETATTR_SIZE = 8,
    SETATTR_ATIME = 16,
    SETATTR_MTIME = 32,
    SETATTR_ATIME_NOW = 64,
    SETATTR_MTIME_NOW = 128,
    SETATTR_KILL_SUID = 256, /* a write by somebody who may not keep set-id bits */
    /* With SETATTR_SIZE: cuts off what a failed write left behind the end. Does nothing when
     * somebody else may have written there: has it open for writing, made it longer, or cut it. */
    SETATTR_TRIM = 1024,
    SETATTR_CTIME_ONLY = 512,
};

enum open_flag {
    OPEN_READ = 1,
    OPEN_WRITE = 2,
    OPEN_TRUNCATE = 4,
    OPEN_DIRECTORY = 8,
    OPEN_EXECUTE = 16,
};

/* An open that only reads: the session has the inode open by the request's sequence, which names
 * it; any number of such opens of a session are one, which one close ends (meta/opens.h). */
static inline bool wire_opens_by_name(uint32_t open_flags) {
    return !(open_flags & (OPEN_WRITE | OPEN_TRUNCATE));
}

enum rename_flag { RENAME_FLAG_NO_REPLACE = 1, RENAME_FLAG_EXCHANGE = 2 };

enum inline_convert_stage { INLINE_CONVERT_BEGIN = 1, INLINE_CONVERT_COMMIT = 2 };

/* What becomes of a range of a chunk: a hole; a hole that stays promised; its holes are promised;
 * no more so by the same call. */
enum chunk_space { SPACE_PUNCH = 1, SPACE_ZERO, SPACE_PROMISE, SPACE_UNDO };
/* Where begins: what is stored, a hole, a chunk with blocks or a promise. */
enum chunk_seek { WIRE_SEEK_DATA = 1, WIRE_SEEK_HOLE, WIRE_SEEK_ANY };

/* What a coordinator knows of a transaction across logs. */
enum { CROSS_UNDECIDED = 1, CROSS_COMMITTED = 2, CROSS_ABORTED = 3 };

/* Entry of a readdir's bulk: header, name, then, with plus, encoded attributes. Cookies are
 * (hash:51 << 12 | rank:12) + 3, of this entry; 1 and 2 are "." and "..", below 2^63. */
struct wire_dirent {
    uint64_t cookie;
    uint64_t ino;
    uint16_t entry_bytes;     /* of the whole, a multiple of 8 */
    uint16_t attribute_bytes; /* 0 without plus */
    uint8_t type;             /* DT_ of dirent.h: mode >> 12 */
    uint8_t name_bytes;
    uint8_t reserved[2];
};
_Static_assert(sizeof(struct wire_dirent) == 24, "dirents are packed by hand");
