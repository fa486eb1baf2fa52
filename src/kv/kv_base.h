/* What lies below the changes: a sorted store of rows that takes checkpoints. Two implementations:
 * kv_lmdb (on disk) and kv_mem (memory, for the simulator and tests).
 *
 * Values carry a CRC-32C of key and value, added by commit and checked and cut off by every read.
 *
 * Thread: get, next, previous, read_end and commit from the owner's step; warm from a job thread,
 * beside them; the work of a commit runs on the job lane WRITE. */
#pragma once
#include "env/env.h"
#include "kv/kv_key.h"

struct kv_base;

struct kv_base_row {
    struct kv_key key;
    struct bytes value; /* without CRC */
    bool deleted;
};

/* So many rows change fewer than 100,000 pages: each one a page of rows at the worst, and the
 * pages above are shared. */
enum { KV_BASE_COMMIT_ROWS_MAX = 65536 };

/* A commit is durable, and seen by reads that begin then, when done is called (on the submitter's
 * thread, not inside commit). A read that began before it sees the base without it until read_end:
 * call that before letting go of the rows. Rows are sorted by key, each key once, at most
 * KV_BASE_COMMIT_ROWS_MAX; they and their values are the caller's and stay until done. A commit
 * takes effect as a whole or, with a result below 0, not at all: -ERR_NO_SPACE lets it be given
 * again. After another result the base may take no more commits and reads, all -ERR_IO, as the
 * disk may hold the commit or not; the next open finds all of it or nothing, and keeps to that. */
struct kv_base_commit {
    struct env_job job;   /* the base's */
    struct kv_base *base; /* the base's */
    const struct kv_base_row *rows;
    size_t row_count;
    int result; /* the base's answer */
    void (*done)(struct kv_base_commit *commit);
    void *context; /* the caller's */
};

/* Keys from first to last, both of them. */
struct kv_stretch {
    struct kv_key first, last;
};

struct kv_base_options {
    struct env *env;
    const char *root;      /* file system path of the env's root; LMDB only */
    const char *directory; /* relative to the root */
    uint64_t memory_bytes; /* reads are warm while the store is smaller than this */
    uint64_t check_bytes;  /* likewise, LMDB only: an open looks through no larger file; 0: see
                              kv_lmdb_check.h */
    uint64_t map_bytes;    /* LMDB only: how large the file may grow; 0: see kv_lmdb.h */
    void *store;           /* kv_mem: its struct kv_mem_store; else NULL */
    /* Lines for the operator, or NULL. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Of its file, as the newest commit has left it. */
struct kv_base_space {
    uint64_t used_bytes;   /* that hold rows */
    uint64_t unused_bytes; /* that rows have left, and later ones may take */
    uint64_t bytes_max;    /* that rows may come to by its own limit; UINT64_MAX: it has none */
};

struct kv_base_ops {
    /* (start) Creates an empty store where there is none. -ERR_CORRUPT, -ERR_NEWER_FORMAT with a
     * line in ret_problem. */
    int (*open)(const struct kv_base_options *options, struct kv_base **ret_base,
                char ret_problem[256]);
    /* True: a read may have to wait for a disk; warm the key on a job thread first. Says so of
     * the store, not of a key: a key just warmed is read whatever this answers. */
    bool (*is_cold)(struct kv_base *base);
    /* Values are valid until read_end. 0, -ERR_NOT_FOUND, -ERR_CORRUPT, -ERR_IO. */
    int (*get)(struct kv_base *base, const struct kv_key *key, struct bytes *ret_value);
    /* The first row at or (unless inclusive) behind key. *ret_key is that row's also when its
     * checksum is wrong; it is left as it was when the store cannot be read. */
    int (*next)(struct kv_base *base, const struct kv_key *key, bool inclusive,
                struct kv_key *ret_key, struct bytes *ret_value);
    /* The last row before key (exclusive). */
    int (*previous)(struct kv_base *base, const struct kv_key *key, struct kv_key *ret_key,
                    struct bytes *ret_value);
    /* The step is over: ends the read transaction. */
    void (*read_end)(struct kv_base *base);
    /* Brings into memory what a get, next or previous of stretch->first reads, and what gets
     * within the stretch read and nexts before its last, which is for this to say. All ones: there
     * are no more rows. */
    void (*warm)(struct kv_base *base, struct kv_stretch *stretch);
    void (*commit)(struct kv_base *base, struct kv_base_commit *commit);
    /* (start) The same, here and now: answers the result, done is not called. */
    int (*commit_now)(struct kv_base *base, struct kv_base_commit *commit);
    uint64_t (*file_bytes)(struct kv_base *base);
    void (*space)(struct kv_base *base, struct kv_base_space *ret_space);
    /* No commit is in flight. Takes NULL. */
    void (*close)(struct kv_base *base);
};
