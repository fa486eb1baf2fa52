/* The outside of a process: clocks, files, shared memory, ticks, blocking jobs, randomness.
 *
 * Everything above env/ reaches the world through this table, so that the whole cluster also runs
 * in one thread under the simulator (env_sim.h). One struct env per process (daemon, client, or
 * simulated process).
 *
 * Asynchronous work (env_io, env_job) is owned by the caller until done() has been called. done()
 * runs on the thread that submitted it, from env_loop_poll, never inside the submitting call; it
 * must not block: it sets a flag and posts a message.
 *
 * Calls marked (start) may block and are for start and stop only, before a role serves. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct env;
struct env_file;   /* an open file or block device */
struct env_shared; /* a shared memory region */

/* The env's own part of a request. */
struct env_work {
    struct env_work *next;
    void (*run)(struct env_work *work);    /* on a lane's thread */
    void (*finish)(struct env_work *work); /* on the submitter's */
    void *owner;
    size_t progress_bytes;
    int result;
};

enum env_io_kind { ENV_IO_READ, ENV_IO_WRITE, ENV_IO_SYNC, ENV_IO_ALLOCATE };

/* One file operation. Reads and writes of direct files need offset, size and buffer aligned to
 * 4096, else -ERR_INVALID. A read past the end of file gives fewer bytes in ret_size; a short
 * write is an error. SYNC makes what completed before its submission durable (fdatasync).
 * ALLOCATE makes [offset, offset + size) writable without -ERR_NO_SPACE and grows the file; no
 * write to that range may be in flight meanwhile. It answers -ERR_NO_SPACE also when fewer than
 * keep_free_bytes would be left for other files; on failure the file has its old size. It ends
 * behind all direct writes to the file that began before it, also those of a process that has been
 * killed since; not so on a block device, and where the medium has no fallocate. */
struct env_io {
    enum env_io_kind kind;
    struct env_file *file;
    uint64_t offset;
    void *buffer;
    size_t size;
    uint64_t keep_free_bytes;
    void (*done)(struct env_io *io, int result);
    void *context;
    size_t ret_size;
    struct env_work work;
};

/* Work that blocks (LMDB commits and cold reads): run() on a job thread, then done() on the
 * submitter's. run() may use io_run and nothing else of the env that submits. Jobs of the WRITE
 * lane run one after another in order of submission, those of READ side by side in any order. */
enum env_lane { ENV_LANE_WRITE, ENV_LANE_READ, ENV_LANE_COUNT };

struct env_job {
    enum env_lane lane;
    void (*run)(struct env_job *job);
    void (*done)(struct env_job *job);
    struct env_work work;
};

/* Called every period on the service thread, from tick_start until tick_stop returned. Both may be
 * called from any thread, tick_stop also from fire itself. */
struct env_tick {
    uint64_t period_ns;
    void (*fire)(struct env_tick *tick);
    struct env_tick *next; /* env's own */
    uint64_t due_ns;       /* env's own */
};

enum env_file_flags {
    ENV_FILE_CREATE = 1,    /* create when missing */
    ENV_FILE_EXCLUSIVE = 2, /* with CREATE: -ERR_EXISTS when there */
    ENV_FILE_DIRECT = 4,    /* bypass the page cache where the medium allows it */
    ENV_FILE_READ_ONLY = 8,
};

/* Copied by the thread that submits; by io_uring; by threads that block. */
enum env_way { ENV_WAY_NONE, ENV_WAY_COPY, ENV_WAY_URING, ENV_WAY_THREADS };

struct env_file_ways {
    enum env_way reads, writes;
    bool direct; /* past the page cache */
};

struct env_ops {
    uint64_t (*now_ns)(struct env *env);  /* monotonic, starts above 0 */
    uint64_t (*wall_ns)(struct env *env); /* since 1970 */
    void (*random)(struct env *env, void *data, size_t size_bytes);

    /* (start) Paths are relative to the env's root directory. Parents must exist. */
    int (*file_open)(struct env *env, const char *path, unsigned flags, struct env_file **ret_file);
    void (*file_close)(struct env_file *file);
    int (*file_size)(struct env_file *file, uint64_t *ret_size_bytes); /* (start) */
    /* What is free on the file system that the file lies on, as the kernel knows it without asking
     * the medium: also in a step. UINT64_MAX where there is no bound to tell. */
    int (*file_space)(struct env_file *file, uint64_t *ret_free_bytes);
    void (*file_ways)(const struct env_file *file, struct env_file_ways *ret_ways); /* or NULL */
    /* (start) The synchronous form of submit; done is not called. */
    int (*io_run)(struct env *env, struct env_io *io);
    int (*directory_make)(struct env *env, const char *path); /* (start) -ERR_EXISTS is success */
    int (*file_remove)(struct env *env, const char *path);    /* (start) durable on return */
    /* (start) Replaces `to`; both renames and the directory's entry are durable on return. */
    int (*file_rename)(struct env *env, const char *from, const char *to);

    void (*io_submit)(struct env *env, struct env_io *io);
    void (*job_submit)(struct env *env, struct env_job *job);

    /* (start) Maps the named region, creating it zeroed when missing or of another size
     * (*ret_created then). It starts at a page. Populated: touching it later never faults on disk.
     * It survives the death of the process, not that of the machine, whose regions have one space
     * of names, whatever the root. */
    int (*shared_open)(struct env *env, const char *name, size_t size_bytes,
                       struct env_shared **ret_shared, bool *ret_created);
    /* (start) The size of the named region, as it is now; -ERR_NOT_FOUND when there is none. */
    int (*shared_size)(struct env *env, const char *name, uint64_t *ret_size_bytes);
    void *(*shared_data)(struct env_shared *shared);
    void (*shared_close)(struct env_shared *shared);
    int (*shared_remove)(struct env *env, const char *name);
    /* (start) Where a person finds the named region, cut to the size; for messages. */
    void (*shared_path)(struct env *env, const char *name, size_t size_bytes, char *ret_path);
    /* 16 bytes that change with each boot of the machine. (start) */
    void (*boot_id)(struct env *env, uint8_t ret_id[16]);

    void (*tick_start)(struct env *env, struct env_tick *tick);
    void (*tick_stop)(struct env *env, struct env_tick *tick);
};

struct env_stream_ops;

struct env {
    const struct env_ops *ops;
    const struct env_stream_ops *streams; /* env_stream.h; NULL in an outside that has none */
};

static inline uint64_t env_now_ns(struct env *env) {
    return env->ops->now_ns(env);
}
static inline uint64_t env_wall_ns(struct env *env) {
    return env->ops->wall_ns(env);
}
static inline void env_io_submit(struct env *env, struct env_io *io) {
    env->ops->io_submit(env, io);
}
static inline void env_job_submit(struct env *env, struct env_job *job) {
    env->ops->job_submit(env, job);
}
