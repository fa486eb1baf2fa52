/* A request at work: lives in shoal_request.internal.
 *
 * One step function an operation of shoal.h; its switch over stage tells the whole story. It runs
 * when the operation starts in its shard, when its errand is done, and when what it waited for has
 * come; it ends with operation_finish, after which nothing of the request may be touched. */
#pragma once
#include "client/directories.h"
#include "client/errand.h"
#include <shoal/shoal.h>

enum { OPERATION_CHECKSUMS = 17, OPERATION_RENEWALS_MAX = 8 };

struct open_file;
struct piece;

struct operation {
    struct message message; /* to its shard */
    struct list_node node;  /* in a file's waiting or stale ones, or those that want a piece */
    struct shoal_client *client;
    struct shard *shard; /* in whose step it runs */
    struct shard *home;  /* where it is counted */
    void (*step)(struct operation *operation);
    struct ino ino;         /* of the file, or the directory of the name */
    struct open_file *file; /* pinned; NULL: none */
    uint64_t began_ns;
    uint64_t deadline_ns; /* later than at first where what it waited for went away meanwhile */
    uint64_t trace_id;    /* of all its calls */
    uint64_t close_stamp; /* files that had been closed when it started */
    uint32_t parity;      /* of the router's readers */
    uint32_t stage;
    uint32_t need;         /* enum file_need */
    uint32_t what;         /* of chunk_space or chunk_seek calls */
    uint32_t renewals;     /* of the same capability */
    uint64_t capabilities; /* the file's, when its data was asked for last */
    bool own_retried;      /* the own call's data was damaged once */
    bool asked;            /* the server was asked how the file is now */
    bool killed;           /* a write: set-id bits are cleared */
    bool is_extended;      /* deadline_ns is a later one already */
    int failure;           /* what it has ended with; client_failure */
    int result;            /* of the errand, or of what was waited for */
    int error;             /* that ends it, when something is to be mended first */

    uint64_t start; /* data: [start, end), from next on not on its way yet */
    uint64_t next;
    uint64_t end;
    uint64_t reached;      /* end of what was written, in spite of an error */
    uint32_t in_flight;    /* calls */
    uint32_t truncate_seq; /* of the capability that a write goes with, */
    uint32_t generation;   /* and of that */
    uint64_t write_count;  /* of the file, when a settle or setattr was sent */
    uint64_t name;         /* that the file was opened by; 0: counted, or not yet */
    uint64_t count;        /* entries given to the caller */
    uint64_t losses;       /* of the client, when a conversion wrote */
    struct piece *piece;
    struct capability capability; /* a conversion's, until it is the file's */
    union {
        struct layout layout; /* likewise */
        struct {
            uint8_t *buffer; /* readdir's */
            size_t position;
        };
    };

    struct errand errand;
    /* What an operation needs of these when its errand is under way. */
    union {
        struct directory_ticket tickets[2]; /* of directories that it changes */
        struct attributes attributes;
        uint32_t checksums[OPERATION_CHECKSUMS];
    };
};

_Static_assert(sizeof(struct operation) <= sizeof(((struct shoal_request *)0)->internal),
               "an operation fits into the request that it serves");

static inline struct shoal_request *operation_request(struct operation *operation) {
    return (struct shoal_request *)(void *)((char *)operation -
                                            offsetof(struct shoal_request, internal));
}

static inline struct operation *operation_of(struct shoal_request *request) {
    return (struct operation *)(void *)request->internal;
}

/* result: bytes or 0, or a negative ERR code. Unpins the file. In the step of the file's shard. */
void operation_finish(struct operation *operation, int64_t result);
/* Runs step in the shard's step, where the operation lives from then on. */
void operation_post(struct operation *operation, struct shard *shard);
/* An errand of the operation's shard and deadline, whose call tells what it is part of. */
void operation_errand_init(struct operation *operation, struct errand *errand,
                           void (*done)(struct errand *errand));
/* A clean call to fill; and sending it to the group of an inode: step runs when it is done, with
 * its result in result. */
struct call *operation_prepare(struct operation *operation);
void operation_call(struct operation *operation, uint16_t opcode, struct ino ino);
/* How an inode is now: a getattr. */
void operation_ask(struct operation *operation, struct ino ino);
/* The same of the operation's file, once, before its size is relied on; and taking the answer: what
 * fails goes on by what is known, unless it was interrupted. */
void operation_look(struct operation *operation, uint32_t stage);
void operation_looked(struct operation *operation);
struct credentials operation_who(struct operation *operation);
/* When it was submitted. */
uint64_t operation_began_ns(const struct operation *operation);

/* op_write.c: who asks may not keep the set-id bits of the file that he changes. */
bool write_kills(const struct operation *operation);
/* They are cleared; and taking the answer. */
void write_kill(struct operation *operation, uint32_t stage);
void write_killed(struct operation *operation);

void attributes_out(const struct attributes *from, struct shoal_attributes *to);
/* Ends the operation with attributes that a server answered, overlaid with what is only known
 * here; moves to the shard of their ino when that may know more. */
void operation_finish_attributes(struct operation *operation, const struct attributes *attributes);

/* The steps, by file. */
void op_name_step(struct operation *operation);    /* op_name.c */
void op_getattr_step(struct operation *operation); /* op_attributes.c */
void op_setattr_step(struct operation *operation);
void op_layout_step(struct operation *operation);
void op_create_step(struct operation *operation); /* op_open.c */
void op_open_step(struct operation *operation);
void op_release_step(struct operation *operation);
void op_flush_step(struct operation *operation);
void op_read_step(struct operation *operation);       /* op_read.c */
void op_allocate_step(struct operation *operation);   /* op_allocate.c */
void op_seek_step(struct operation *operation);       /* op_seek.c */
void op_write_step(struct operation *operation);      /* op_write.c */
void op_readdir_step(struct operation *operation);    /* op_readdir.c */
void op_fsync_step(struct operation *operation);      /* op_sync.c */
void op_everywhere_step(struct operation *operation); /* op_everywhere.c */
