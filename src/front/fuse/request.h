/* One request of the kernel, from its bytes to its reply.
 *
 *     fuse_request_run: decode -> start -> libshoal -> finish -> reply
 *                                  ^                     |
 *                                  '--- further stage ---'   (ops that need several calls)
 *
 * start and finish answer one of the verdicts below or -errno. A refusal for lack of permission is
 * started once more with the caller's groups, which the protocol doesn't carry.
 *
 * Thread: run on the thread that read it; what follows a call on the thread that completed it.
 * Memory: the pool's. */
#pragma once
#include "front/fuse/front.h"
#include "front/fuse/fuse_abi_body.h"

enum verdict {
    VERDICT_REPLY = 0,  /* what lies in the request */
    VERDICT_SUBMIT = 1, /* request->shoal, then finish */
    VERDICT_SILENT = 2, /* the kernel expects no reply */
    VERDICT_WAIT = 3,   /* somebody has it, and starts it again */
};

enum { OP_CALLER = 1, OP_QUIET = 2, OP_SILENT = 4 };

struct fuse_request;
typedef int fuse_op_fn(struct fuse_request *request);

struct op {
    const char *name; /* NULL: not known */
    uint16_t body_bytes;
    uint8_t name_count;
    uint8_t flags;
    fuse_op_fn *start;
    fuse_op_fn *finish;
};

struct request_name {
    const char *text; /* in the buffer, ended by NUL */
    size_t bytes;
};

/* What COPY_FILE_RANGE is about; the target is the request's handle. */
struct copy {
    struct handle *source;
    uint64_t from, to; /* offsets */
    uint64_t size;     /* of all, in bytes */
    uint64_t done;     /* of these */
};

enum request_state { REQUEST_RUNNING, REQUEST_DONE, REQUEST_DETACHED };

struct fuse_request {
    struct shoal_request shoal;
    struct front *front;
    uint8_t *buffer;
    uint32_t index; /* in the pool */
    uint32_t thread_index;
    int descriptor;      /* the channel's: where it was read */
    void *entry;         /* likewise: of the queue that brings it, whose it is for good; or NULL */
    void *carrier;       /* likewise: the entry that brought what was copied here; or NULL */
    uint32_t head_bytes; /* that lie before the payload */
    _Atomic int state;
    _Atomic uint64_t number;      /* the kernel's, which it has used for nothing else */
    _Atomic uint64_t interrupted; /* the number, if its program was; interrupts.h */
    _Atomic uint64_t looked_ns;   /* likewise: when its process was seen not to be; or 0 */
    bool answered;                /* the program has got its answer already */
    bool unsent;                  /* its reply is ready */
    const struct op *op;
    size_t in_bytes;
    uint64_t started_ns;
    struct request_name names[2];
    struct handle *handle;
    uint32_t group_count;
    bool with_groups;
    uint8_t stage;             /* of an op that needs several calls; 0 at start */
    uint32_t set_id;           /* ops_set_id.c */
    int error;                 /* of an earlier stage */
    struct copy copy;          /* ops_copy.c */
    struct fuse_request *next; /* fair.c; ahead.c, while it waits there */
    uint64_t cookie;           /* ops_dir.c: of the last entry that it lists */
    bool full;                 /* likewise: the next one had no room */
    bool ahead;                /* likewise: it is listed for a request to come */
    uint8_t turn;              /* fair.c: whose, + 1, from put to its end; 0: nobody's */
    bool large;                /* likewise: fuse_request_is_large */
    uint32_t body_bytes;       /* of the reply */
    const void *data;          /* of the reply, behind the body */
    size_t data_bytes;
};

/* Where a channel puts what it has of one, head_bytes before the payload. */
static inline void *request_head(const struct fuse_request *request) {
    return request->buffer + BUFFER_HEAD_BYTES - request->head_bytes;
}
static inline const struct abi_in_header *request_header(const struct fuse_request *request) {
    return request_head(request);
}
/* The fixed body; at least op->body_bytes of it are there. */
static inline const void *request_body(const struct fuse_request *request) {
    return request_header(request) + 1;
}
static inline uint8_t *request_payload(const struct fuse_request *request) {
    return request->buffer + BUFFER_HEAD_BYTES;
}
/* Where the reply lies: header, body_bytes, then data_bytes at data. */
static inline struct abi_out_header *request_reply(const struct fuse_request *request) {
    return (void *)request->buffer;
}
/* Zeroed space for the reply's body. */
void *request_reply_body(struct fuse_request *request, size_t body_bytes);

/* Handles the in_bytes bytes at request_header. True: it has ended and can be used again; false: it
 * is on its way and no longer the caller's. */
MUST_CHECK bool fuse_request_run(struct fuse_request *request, size_t in_bytes);

/* Tells the kernel to ask anew for an inode's attributes. */
void request_forget_attributes(const struct fuse_request *request, uint64_t ino);

/* From its start, by who has had it since VERDICT_WAIT. */
void fuse_request_start_again(struct fuse_request *request);

/* A call of our own goes on without its thread, and has ended: until then the pool, and threads
 * whose loops it may need, last. */
void fuse_request_detach(struct front *front);
void fuse_request_leave(struct front *front);
/* Of a request of our own: puts header and fixed body where the kernel would. */
void fuse_request_lay(struct fuse_request *request, const struct abi_in_header *header,
                      const void *body, size_t body_bytes);

/* Back to the pool; a thread that waits for one is told. */
void fuse_request_put(struct front *front, struct fuse_request *request);

/* While it goes on: the program gets this error now, and nothing when it ends. Once. */
void fuse_request_answer_early(struct fuse_request *request, int error);

/* Whether the in_bytes bytes at request_header are a READ of more than 32 KiB or a WRITE of more
 * than 64 KiB. */
bool fuse_request_is_large(const struct fuse_request *request, size_t in_bytes);
/* Likewise, one that moves no more than 64 KiB, as that of a small file does. */
bool fuse_request_is_short(const struct fuse_request *request, size_t in_bytes);

/* For ops: the shoal_request set up for an operation on the header's inode, as its caller. */
struct shoal_request *request_prepare(struct fuse_request *request, enum shoal_operation operation);
/* Likewise on an open handle, which is found and kept in request->handle; -EBADF. */
int request_prepare_handle(struct fuse_request *request, enum shoal_operation operation,
                           uint64_t number);
/* Learns the caller's groups for what is prepared from here on; false when that brings nothing
 * new: they are known, there are none, or the caller is root, gone or of no matter to the op. */
bool request_learn_groups(struct fuse_request *request);
