/* A shard: the actor of all that is done with the inodes that hash to it, and the pools it needs.
 *
 *     files    ino -> open_file
 *     pieces   calls for chunks
 *     closed   what the last written files closed here became
 *
 * An answer about an inode may have left the server before a size that is only known here reached
 * it. So files that are written count in overlay_count, and a written file that goes leaves its
 * last attributes in `closed`, stamped with the client's count of such events. Whoever gets
 * attributes compares (shard_is_plain) and, where something may be newer, asks in the shard's step
 * (shard_refresh).
 *
 * Thread: the shard's step, but the atomic fields. Memory: from init to deinit. */
#pragma once
#include "client/client.h"
#include "client/errand.h"
#include "client/file.h"
#include "client/late.h"
#include "client/operation.h"
#include "client/piece.h"
#include "client/router.h"

enum { SHARD_CLOSED_MAX = 16 };

enum shard_message {
    SHARD_OPERATION = 1,
    SHARD_ERRAND,
    SHARD_REOPEN,
    SHARD_LATE,
    SHARD_LATE_MADE,
    SHARD_LET_GO
};

struct shard;

struct closed_file {
    struct attributes attributes;
    uint64_t stamp;
};

/* Presents the open files of one peer after its restart; see reattach.c. */
struct reopening {
    struct message message;
    struct shard *shard;
    struct peer *peer;
    struct open_file *file; /* the last one that was presented; pinned */
    uint32_t bucket;
    int result;
    uint64_t term; /* of the server, to which they were presented */
    struct errand errand;
};

/* A buffer of READDIR_BYTES while nobody uses it. */
struct readdir_buffer {
    struct readdir_buffer *next;
};

struct shard {
    struct actor actor; /* first */
    struct shoal_client *client;
    struct router_readers readers;
    _Atomic uint64_t
        epoch; /* newest that an answer to one of its calls has told; its steps write */
    _Atomic uint32_t overlay_count;
    _Atomic uint64_t closed_stamp; /* of the newest in `closed` */

    struct open_file **buckets;
    uint32_t bucket_mask;
    uint32_t file_count_max;
    uint32_t file_count; /* of `files`, ever used; those that were given back are in files_free */
    struct open_file *files;
    struct open_file *files_free;
    struct piece_pool pieces;
    uint8_t *readdir_memory;
    struct readdir_buffer *readdir_free;
    struct list readdir_waiting;

    struct message going; /* see again.h */
    struct late_closes late;
    struct closed_file closed[SHARD_CLOSED_MAX];
    uint32_t closed_next;
    uint64_t forgotten_stamp; /* of the newest that made way in `closed` */
    _Atomic uint64_t requests, failures, retries, reopened, conversions;
};

MUST_CHECK int shard_init(struct shard *shard, struct shoal_client *client,
                          const struct client_options *options);
void shard_deinit(struct shard *shard);

/* NULL when it is not open here. */
struct open_file *shard_find(struct shard *shard, struct ino ino);
/* Found or made, and pinned; -ERR_TOO_MANY_OPEN. */
MUST_CHECK int shard_pin(struct shard *shard, struct ino ino, struct open_file **ret_file);
/* By file_unpin. */
void shard_forget(struct shard *shard, struct open_file *file);

/* NULL when all are in use: the operation's step then runs again when one may be free. */
uint8_t *shard_readdir_get(struct shard *shard, struct operation *operation);
void shard_readdir_put(struct shard *shard, uint8_t *buffer);

/* From any thread: nothing in this shard can be newer than what a server answered to a request
 * that began at stamp. */
bool shard_is_plain(const struct shard *shard, uint64_t stamp);
/* In the step: makes attributes as new as what is known here. False: that was known once, but is
 * forgotten, so the server must be asked again. */
MUST_CHECK bool shard_refresh(struct shard *shard, uint64_t stamp, struct attributes *attributes);
/* A file here begins to be written; no longer is, and the server has told attributes since. */
void shard_overlay_begin(struct shard *shard);
void shard_overlay_end(struct shard *shard, const struct attributes *attributes);

/* In the step of its shard: presents the open files of its peer; see reattach.c. */
void shard_reopen(struct reopening *reopening);
