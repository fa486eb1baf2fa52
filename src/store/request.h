/* Requests: calls that the OST is at work on, and what they wait for.
 *
 * run() is called again and again until it calls request_finish. Each time before it returns it has
 * finished, or has arranged to be called again: request_wait in a list, an I/O in flight,
 * request_yield, or a kv_sync. What it learned before a wait is looked up again after it.
 *
 * Thread: the OST's. Memory: ost_options.requests_max of them. */
#pragma once
#include "rpc/call.h"
#include "store/chunk.h"

struct ost;
struct request;

/* Answer of a helper that has arranged for the request to be called again. */
enum { REQUEST_WAITS = 1 };

/* FAILED: the disk did not give it, or it does not match its checksum. */
enum edge_state { EDGE_EMPTY, EDGE_LOADING, EDGE_LOADED, EDGE_FAILED };

/* Old content of a block that is replaced in part. */
struct edge {
    enum edge_state state;
    uint64_t block;
    uint32_t crc;
    int result; /* of FAILED */
    uint8_t *data;
};

enum { REQUEST_EDGES = 2 };

struct request {
    struct list_node node;   /* in a list of free, ready or waiting ones */
    struct list_node active; /* writes: in ost->active */
    struct list_node pin;    /* in ost->pins */
    struct list followers;   /* writes that overlap this one and came later */
    struct ost *ost;
    struct call *call;
    void (*run)(struct ost *ost, struct request *request);
    int stage;
    int result;
    uint32_t io_pending;
    int io_result; /* the first error of its I/O */
    bool is_ready;
    bool is_syncing;
    bool is_pinned;
    uint64_t pin_number;
    struct kv_waiter waiter;
    int sync_result;
    uint64_t cursor; /* how far it got; a block of the range, a chunk */
    uint64_t sum;
    uint64_t more;
    struct kv_cursor walk; /* fsck: the last row that it looked at; else where a walk waits, */
    bool walk_kept;        /* if it does */

    /* Reads and writes of data. */
    struct chunk_id id;
    struct extent range; /* blocks of the chunk that the data touches */
    uint32_t skip;       /* bytes of the first of them before the data */
    uint32_t size;
    uint32_t visible;                    /* bytes of the chunk that this reader may see */
    uint32_t direct_first, direct_count; /* of range: written to disk by the write itself */
    bool has_blocks;                     /* entries are taken, not recorded yet */
    struct block_entry *entries;         /* one a block of range */
    struct edge edges[REQUEST_EDGES];
};

/* Puts it into the queue of its class, out of the list that it waits in. */
void request_ready(struct ost *ost, struct request *request);
void request_wait(struct request *request, struct list *list);
/* Called again in a later step: others get their turn. */
void request_yield(struct ost *ost, struct request *request);
/* Waits for its I/O, then answers the call once the step's records are sealed. */
void request_finish(struct ost *ost, struct request *request, int result);
/* Ends it without an answer: a copy of another one. */
void request_discard(struct ost *ost, struct request *request);
/* What was read of the rows until now stays on disk until the request is unpinned or ends. */
void request_pin(struct ost *ost, struct request *request);
void request_unpin(struct ost *ost, struct request *request);
/* From here on it waits for the disk, as far as its line among slow ones tells. */
void request_disk_begins(const struct ost *ost, struct request *request);
/* Calls it again when records up to position are on disk; the result is then in sync_result. */
void request_sync(struct ost *ost, struct request *request, uint64_t position);
/* r of a kv call or a helper: waits, finishes with the error, or neither when r is 0. True: done
 * with this run. */
bool request_stops(struct ost *ost, struct request *request, int r);
/* A walk over the rows of a file from the head of chunk request->cursor on. One that waits goes on
 * at the row that it had come to, not at those before it, which are deleted. */
void request_walk(struct request *request, const struct chunk_id *file,
                  struct kv_cursor *ret_cursor);
void request_walked(struct request *request, int r, const struct kv_cursor *cursor);
/* Begins the transaction that the request ends in, and whose staging cannot fail but with the log.
 * REQUEST_WAITS: it has no room yet, and runs again later. -ERR_NO_SPACE, -ERR_BUSY. */
MUST_CHECK int request_begin(struct ost *ost, struct request *request, const struct kv_need *need);

/* Checks that the header's session may do what the capability says, now. */
MUST_CHECK int request_capability(struct ost *ost, const struct call *call,
                                  const struct capability *capability, uint32_t rights);
/* Sizes and offsets of a read or write; fills id, range, skip and size. */
struct request_shape {
    const struct capability *capability;
    uint64_t chunk;
    uint32_t chunk_bytes;
    uint32_t offset;
    uint32_t size;
    bool is_whole; /* all of the chunk, whose blocks are not looked at one by one */
};
MUST_CHECK int request_shape(struct ost *ost, struct request *request,
                             const struct request_shape *shape);

/* The bytes [*ret_from, *ret_to) of block i of the range are asked for, or written. */
void request_block_part(const struct request *request, uint32_t i, uint32_t *ret_from,
                        uint32_t *ret_to);
/* Bytes of chunk that lie before truncate_size. */
uint32_t chunk_bytes_before(uint64_t chunk, uint32_t chunk_bytes, uint64_t truncate_size);
