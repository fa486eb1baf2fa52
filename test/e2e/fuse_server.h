/* A mount of the stand-in for libshoal, served by a process of its own, so that a test that fails
 * never waits for itself, and so that the server can be killed. */
#pragma once
#include "../unit/memory_shoal.h"
#include "front/fuse/fuse.h"
#include <stdbool.h>
#include <sys/types.h>

struct fuse_server_options {
    const char *name; /* in the names of tests */
    enum memory_shoal_mode mode;
    bool refuse_direct;
    unsigned thread_count;
    uint32_t requests_max;
    uint64_t timeout_ns;
    enum fuse_channel channel;
};

struct fuse_server {
    pid_t process;
    int control;
    char path[64]; /* the mount point, made for it */
};

enum fuse_server_question {
    SERVER_COUNT,        /* memory_shoal_count of the operation given */
    SERVER_OPEN_COUNT,   /* files open */
    SERVER_INODE_COUNT,  /* inodes there are */
    SERVER_MISALIGNMENT, /* of the last write */
    SERVER_FAIL,         /* the next request of the operation fails with the errno given */
    SERVER_DETACH,       /* fuse_mount_detach; the answer is its result, negated */
    SERVER_REFUSE,       /* from here on the kernel refuses commands of io_uring */
    SERVER_FAILURE,      /* fuse_mount_failure, negated */
    SERVER_STATISTICS,   /* kinds of requests that were counted */
    SERVER_STOP,         /* fuse_mount_stop; the answer is how many files stayed open */
};

#define FUSE_ENABLE_URING "/sys/module/fuse/parameters/enable_uring"

/* Lets the kernel offer io_uring, for good, as mounts do: others may mount beside. False where that
 * can't be. */
bool fuse_server_uring_enable(void);
/* NULL, or why nothing can be mounted here. Where io_uring is asked for it enables that. */
const char *fuse_server_missing(void);
/* What SHOAL_CHANNEL asks for, "dev" (also where nothing does) or "uring". A server takes that
 * where its options leave it open, but /dev/fuse where they give it few requests. */
enum fuse_channel fuse_server_channel(void);
/* Runs each test in each way, as its initial state; what main answers. Each test's name is printed
 * behind its way's. */
int fuse_server_run(const struct CMUnitTest *tests, size_t test_count,
                    const struct fuse_server_options *ways, size_t way_count);
/* Fails the test when it doesn't mount. At an existing path when given, else in a new folder. */
struct fuse_server fuse_server_start(const struct fuse_server_options *options, const char *path);
uint64_t fuse_server_ask(struct fuse_server *server, enum fuse_server_question question,
                         uint64_t first, uint64_t second);
/* Stops it, if it runs, and checks that it went well; removes the mount point. */
void fuse_server_stop(struct fuse_server *server);
/* kill -9; the mount stays. */
void fuse_server_kill(struct fuse_server *server);
/* Whatever is left of it goes; never fails. */
void fuse_server_clean(struct fuse_server *server);
