/* Equal buffers for bulk, aligned to a block, all taken at start.
 *
 * Thread: get on the thread of the worker that is bound at init; put on any. */
#pragma once
#include "rpc/pool.h"

struct bulk_memory {
    struct pool pool; /* its objects stand for the buffers, by number */
    uint8_t *memory;
    size_t buffer_bytes;
    size_t all_bytes;
};

/* The name is static. -ERR_NO_MEMORY, and the errors of pool_init. */
MUST_CHECK int bulk_memory_init(struct bulk_memory *bulk, const char *name, uint32_t count,
                                size_t buffer_bytes);
/* All buffers must be back. One that is zeroed is no error. */
void bulk_memory_deinit(struct bulk_memory *bulk);
/* NULL when all are in use. */
void *bulk_memory_get(struct bulk_memory *bulk);
/* False when the buffer is none of these. */
bool bulk_memory_put(struct bulk_memory *bulk, const uint8_t *buffer);
