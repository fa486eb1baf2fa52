/* INIT: what the kernel offers, what we take.
 *
 * Taken where offered: parallel look-ups and direct writes, adaptive readdirplus, truncation with
 * the open, set-id bits cleared by us, io_uring where we are ready for it, shared mappings of files
 * opened for direct I/O, handles that outlive what the kernel remembers. Never taken: the
 * write-back cache (an acknowledged write must have reached the servers) and locks (the kernel's
 * own serve within a mount). */
#pragma once
#include "base/err.h"
#include "front/fuse/fuse_abi.h"
#include <stdbool.h>

struct features {
    uint32_t minor;
    uint32_t write_bytes_max;
    bool direct;          /* direct I/O keeps cached opens and mappings of the file right */
    bool uring;           /* requests come over io_uring */
    bool parallel_writes; /* the kernel may have several direct writes of a file in flight */
};

struct negotiate_options {
    uint32_t write_bytes_max;
    uint32_t page_bytes; /* the kernel's, in which it counts; 0: 4 KiB */
    uint32_t background_max;
    bool take_uring;    /* what it needs of us is had */
    bool refuse_direct; /* act as on kernels that can't map what is opened for direct I/O */
};

/* in_bytes is what came, header excluded. -ERR_MALFORMED, or -ERR_NOT_SUPPORTED for a kernel older
 * than ABI_MINOR_MIN. A kernel of a later major version gets our version and asks again: then the
 * result is -ERR_CONFLICT and *ret_out is to be sent. */
MUST_CHECK int negotiate(const struct negotiate_options *options, const struct abi_init_in *in,
                         size_t in_bytes, struct abi_init_out *ret_out,
                         struct features *ret_features);
