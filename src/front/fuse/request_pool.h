/* The requests in flight and their buffers, a fixed number.
 *
 *     0             4016                 4096                                write_bytes_max later
 *     | reply ...   | header, fixed body | payload of a WRITE, space for a READ's data ... |
 *
 * A request is read to 4016 on, so that what a WRITE brings (behind 40 + 40 bytes) starts on a
 * page: it can go to a disk as it lies. (Over io_uring all that is behind the fixed body starts
 * there, and the header where it must.) A buffer's pages are had when it is first taken.
 *
 * Thread: any.  Memory: requests_max buffers, mapped at start, resident from their first use on. */
#pragma once
#include "base/err.h"
#include "base/index_pool.h"

enum {
    BUFFER_HEAD_BYTES = 4096, /* reply and, at its end, the request up to the payload */
    BUFFER_PREFIX_BYTES = 80, /* header and fixed body of a WRITE */
    BUFFER_URING_AT = 2048,   /* what io_uring's entry says beside the payload; behind any reply */
};

struct fuse_request;

struct request_pool_options {
    uint32_t requests_max;
    uint32_t write_bytes_max; /* a multiple of 4096 */
};

struct request_pool {
    struct fuse_request *requests;
    uint8_t *buffers;
    size_t buffers_bytes;
    size_t buffer_bytes;
    struct index_pool free; /* they have their memory, or were never taken */
    struct index_pool bare; /* there was no memory: once more when there is no other */
    /* Requests that went on without the thread that read them. */
    _Atomic int32_t detached_count;
    /* Threads to be told when one comes back. */
    _Atomic uint32_t waiting_count;
    /* Threads between putting a detached one back and having told those: the pool must last. */
    _Atomic uint32_t leaving_count;
};

MUST_CHECK int request_pool_init(struct request_pool *pool,
                                 const struct request_pool_options *options);
void request_pool_deinit(struct request_pool *pool);

/* NULL when all are in flight, or memory for its buffer is missing. */
struct fuse_request *request_pool_take(struct request_pool *pool);
void request_pool_put(struct request_pool *pool, struct fuse_request *request);
