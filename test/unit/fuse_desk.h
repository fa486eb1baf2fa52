/* A front without a kernel: requests are laid into a buffer as the kernel would, replies are kept.
 * For tests of the FUSE front-end's decoding; one thread. */
#pragma once
#include "front/fuse/ops.h"
#include "memory_shoal.h"

enum { DESK_WRITE_BYTES_MAX = 65536, DESK_HANDLES_MAX = 64 };

struct desk_reply {
    int error; /* 0 or -errno */
    uint64_t unique;
    size_t bytes; /* behind the header */
    uint8_t body[DESK_WRITE_BYTES_MAX + 4096];
};

struct desk {
    struct env env;
    struct env_ops env_ops;
    struct front_channel channel;
    struct front front;
    struct shoal_client *client;
    struct fuse_request *request;
    unsigned reply_count;
    unsigned forget_count; /* forget_attributes */
    unsigned ahead_count;  /* ahead */
    struct desk_reply reply;
    uint32_t uid, gid, pid; /* of the requests to come */
};

/* Time goes on by so much, besides a microsecond a look. */
void desk_pass(uint64_t time_ns);

struct desk *desk_new(void);
void desk_free(struct desk *desk);

/* What a request is made of: body, the first name and the second with their NULs, data. */
struct desk_request {
    uint32_t opcode;
    uint64_t nodeid;
    const void *body;
    size_t body_bytes;
    const char *name;
    const char *new_name;
    const void *data;
    size_t data_bytes;
};

/* Runs it; answers the reply's error. */
int desk_run(struct desk *desk, const struct desk_request *request);
/* Lays it into the buffer without running it; answers its size. */
size_t desk_lay(struct desk *desk, const struct desk_request *request);
/* Runs bytes that lie in the buffer already. */
void desk_run_bytes(struct desk *desk, size_t bytes);

/* Common ones; answer 0 or -errno. */
int desk_create(struct desk *desk, const char *name, uint32_t mode, uint64_t *ret_handle);
int desk_open(struct desk *desk, uint64_t nodeid, uint32_t flags, struct abi_open_out *ret_open);
int desk_write(struct desk *desk, const struct abi_write_in *in, const void *data);
int desk_release(struct desk *desk, uint64_t handle);
/* The inode of a name in the root, 0 when there is none. */
uint64_t desk_ino(struct desk *desk, const char *name);
