/* The FUSE front-end: serves a session of libshoal as a file system of this machine, on the
 * kernel's own protocol over /dev/fuse.
 *
 *     kernel --> thread (one per CPU): read, decode, shoal_submit ... done: encode, reply
 *
 * Threads: its own, started with the mount; a reply leaves from the thread that completed the call.
 * An idle thread sleeps in read. Memory: requests_max * (write_bytes_max + 4 KiB) of buffers,
 * resident from first use on; handles and counters at start; nothing per inode. */
#pragma once
#include "base/err.h"
#include "env/env.h"
#include <shoal/shoal.h>

struct fuse_mount;

/* What requests come by. Over io_uring (Linux 6.14, where the module's enable_uring is set) a
 * program is answered on its own CPU; FUSE_CHANNEL_ANY takes it where it is offered (fuse.md). */
enum fuse_channel { FUSE_CHANNEL_ANY, FUSE_CHANNEL_DEV, FUSE_CHANNEL_URING };

/* Zero means the default in brackets, except where it says something else. */
struct fuse_options {
    struct shoal_client *client;
    struct env *env; /* the real one (env_linux.h) */
    /* An existing directory, as fuse_mount_check answers it: absolute, without symbolic links. One
     * that has come there since is refused (-ERR_LOOP), not followed. Copied. */
    const char *mount_point;
    const char *source; /* what the table of mounts says is mounted ["shoal"]; copied */
    bool read_only;     /* the kernel refuses what would change something */
    bool no_set_id, no_devices, no_programs; /* as nosuid, nodev, noexec of mount(8) */
    unsigned thread_count;                   /* [CPUs, at least 2] */
    /* [1 MiB; 256 KiB above 32 threads] the largest WRITE and READ; a multiple of 4 KiB from 64 KiB
     * to 1 MiB */
    uint32_t write_bytes_max;
    uint32_t requests_max;          /* [256, or 8 a thread] in flight; more than threads */
    uint32_t handles_max;           /* [1,048,576] open files and directories */
    uint64_t entry_timeout_ns;      /* how long names hold; 0: not at all; at most 1 h */
    uint64_t attributes_timeout_ns; /* likewise attributes */
    bool refuse_direct;             /* act as kernels before 6.6, which can't map direct files */
    enum fuse_channel channel;
    bool tune; /* may set enable_uring where another channel than the device's is wanted */

    /* What the level above does on each thread; each may be NULL. */
    void (*thread_enter)(void *context); /* first, after env_thread_enter */
    void (*thread_leave)(void *context); /* last, before env_thread_leave */
    bool (*thread_idle)(void *context);  /* runs the thread's actors; true: something ran */
    /* Whether others may need the thread while it has nothing to do: it sleeps in env_loop_wait
     * then, and not in read, which only a request ends. */
    bool (*thread_needed)(void *context);
    void *context;
};

/* One line for a person: what was wrong, with what, what to do. */
struct fuse_problem {
    char text[512];
};

/* Mounts and serves; the mount answers when this returns. A mount that a killed Shoal left there is
 * cleared right before. Needs CAP_SYS_ADMIN. On failure nothing has changed, but that such a mount
 * may be gone when the kernel refused ours, and *ret_problem says why:
 * -ERR_INVALID for options, -ERR_NOT_FOUND, -ERR_NOT_DIRECTORY, -ERR_IN_USE for the mount point,
 * -ERR_NO_DEVICE without /dev/fuse, -ERR_NOT_PERMITTED, -ERR_NOT_SUPPORTED for an old kernel,
 * -ERR_NO_MEMORY, -ERR_BUSY for threads. */
MUST_CHECK int fuse_mount_start(const struct fuse_options *options, struct fuse_mount **ret_mount,
                                struct fuse_problem *ret_problem);
/* Whether a mount at path would be refused, and where it would be (absolute, without symbolic
 * links, for the caller to free). Changes nothing: a mount that a killed Shoal left there stays
 * until the start. The errors of start. */
MUST_CHECK int fuse_mount_check(const char *path, char **ret_path,
                                struct fuse_problem *ret_problem);
/* Whether path is at a mount of Shoal (*ret_is_mount_point), or below one, as far as its text and
 * the table of mounts tell, so that a mount which doesn't answer is not asked. Then *ret_path is
 * absolute, for the caller to free. */
bool fuse_path_in_mount(const char *path, char **ret_path, bool *ret_is_mount_point);
/* What the table of mounts says is mounted there, for the caller to free; NULL when path is neither
 * at a mount of Shoal nor below one. */
char *fuse_path_source(const char *path);
/* Takes away the mount of Shoal at the path, which another process serves: -ERR_IN_USE or -ERR_BUSY
 * when programs use it, -ERR_NOT_FOUND when there is none, -ERR_NOT_PERMITTED. */
MUST_CHECK int fuse_path_unmount(const char *path);
/* Takes away mounts of Shoal at the path whose servers are dead, also from who uses them:
 * -ERR_IN_USE when one lives. */
MUST_CHECK int fuse_path_clear(const char *path);
/* Whether path lies on a file system whose server is dead. Waits for one that lives and doesn't
 * answer. */
bool fuse_path_is_dead(const char *path);
/* Whether it still is at its mount point: umount(8) may have taken it away. */
bool fuse_mount_is_there(struct fuse_mount *mount);
/* Its connection has ended, and it is still in the table of mounts; nobody is asked. To be trusted
 * while nobody can have taken it away and mounted Shoal there again, as numbers are used again. */
bool fuse_mount_is_left_dead(struct fuse_mount *mount);
/* Whether its connection with the kernel has ended; it may be in the table of mounts still. Asks
 * nobody but the kernel, so it is cheap. */
bool fuse_mount_has_died(struct fuse_mount *mount);
/* What it is served by: FUSE_CHANNEL_DEV or FUSE_CHANNEL_URING. */
enum fuse_channel fuse_mount_channel(const struct fuse_mount *mount);
/* With FUSE_CHANNEL_ANY: the line that says why it is not io_uring; else empty. */
const char *fuse_mount_channel_why(const struct fuse_mount *mount);
/* Whether the module's enable_uring was N, and was set for it. */
bool fuse_mount_tuned(const struct fuse_mount *mount);
/* 0, or the error by which the kernel refused what serves it over io_uring, so that it was ended:
 * -errno. */
int fuse_mount_failure(const struct fuse_mount *mount);
/* Takes the mount away, if nobody uses it: -ERR_IN_USE; another error when it can't be told what is
 * mounted. fuse_mount_stop is to follow. */
MUST_CHECK int fuse_mount_detach(struct fuse_mount *mount);
/* Returns when the mount is gone: by detach, stop, or umount(8). */
void fuse_mount_wait(struct fuse_mount *mount);
/* Takes the mount away, also from its users, waits for what is in flight, closes what the kernel
 * left open, frees. Not on a thread of the mount. Takes NULL. */
void fuse_mount_stop(struct fuse_mount *mount);

/* Whether a user has met his share of the open files, or of the requests at work, and is to be told
 * of now: a line, at most one a minute of each. One thread at a time. */
bool fuse_mount_share_met(struct fuse_mount *mount, char ret_line[160]);
/* Who met that last; false: nobody. Any thread. */
enum fuse_share { FUSE_SHARE_FILES, FUSE_SHARE_REQUESTS };
bool fuse_mount_share_last(struct fuse_mount *mount, enum fuse_share share, uint32_t *ret_uid);

/* Since the start. */
struct fuse_counters {
    uint64_t waited;       /* requests that waited for their user's turn */
    uint64_t held_back;    /* times that a user was passed over, as he had his share at work */
    bool may_stand_aside;  /* threads, for the program that they serve (channel_aside.h) */
    uint64_t stood_aside;  /* times that one did */
    uint64_t served_aside; /* requests taken up by one that did */
    uint64_t listed_ahead; /* listings that were begun before they were asked for (ahead.h) */
    uint64_t ahead_taken;  /* of these, that were answered */
};
/* Any thread. */
void fuse_mount_counters(const struct fuse_mount *mount, struct fuse_counters *ret_counters);

/* Since the start, of one kind of request. Latencies are from its reading to its reply. */
struct fuse_operation_statistics {
    const char *name; /* as in the protocol: LOOKUP, ... */
    uint64_t count;
    uint64_t error_count;
    uint64_t mean_ns, p50_ns, p99_ns, p999_ns;
};

enum { FUSE_OPERATIONS_MAX = 64 };

/* Fills in the kinds that have occurred and answers how many. Any thread. */
unsigned fuse_mount_statistics(struct fuse_mount *mount,
                               struct fuse_operation_statistics ret_all[FUSE_OPERATIONS_MAX]);
