/* The contract is in bulk_memory.h. */
#include "rpc/bulk_memory.h"
#include "rpc/worker.h"
#include <stdlib.h>

int bulk_memory_init(struct bulk_memory *bulk, const char *name, uint32_t count,
                     size_t buffer_bytes) {
    const struct pool_options options = {.name = name,
                                         .object_bytes = sizeof(struct pool_item),
                                         .object_count = count,
                                         .worker = worker_current()};

    bulk->buffer_bytes = buffer_bytes;
    bulk->all_bytes = count * buffer_bytes;
    bulk->memory = aligned_alloc(BLOCK_BYTES, bulk->all_bytes);
    return bulk->memory ? pool_init(&bulk->pool, &options) : -ERR_NO_MEMORY;
}

void bulk_memory_deinit(struct bulk_memory *bulk) {
    if (bulk->memory) {
        pool_deinit(&bulk->pool);
        free(TAKE_PTR(bulk->memory));
    }
}

void *bulk_memory_get(struct bulk_memory *bulk) {
    const uint8_t *item = pool_get(&bulk->pool, MESSAGE_REQUEST);
    const uint8_t *first = pool_object(&bulk->pool, 0);

    return item ? bulk->memory +
                      (size_t)(item - first) / bulk->pool.stride_bytes * bulk->buffer_bytes
                : NULL;
}

bool bulk_memory_put(struct bulk_memory *bulk, const uint8_t *buffer) {
    if (buffer < bulk->memory || buffer >= bulk->memory + bulk->all_bytes) {
        return false;
    }
    pool_put(
        pool_object(&bulk->pool, (uint32_t)((size_t)(buffer - bulk->memory) / bulk->buffer_bytes)));
    return true;
}
