/* The requests in flight and their buffers, a fixed number. */
#include "front/fuse/request_pool.h"
#include "front/fuse/channel_memory.h"
#include "front/fuse/request.h"

int request_pool_init(struct request_pool *pool, const struct request_pool_options *options) {
    *pool = (struct request_pool){
        .buffer_bytes = BUFFER_HEAD_BYTES + options->write_bytes_max,
    };
    pool->buffers_bytes = pool->buffer_bytes * options->requests_max;
    pool->requests = calloc(options->requests_max, sizeof(*pool->requests));
    pool->buffers = channel_memory_map(pool->buffers_bytes);
    if (!pool->requests || !pool->buffers || !index_pool_init(&pool->free, options->requests_max) ||
        !index_pool_init(&pool->bare, options->requests_max)) {
        request_pool_deinit(pool);
        return -ERR_NO_MEMORY;
    }
    atomic_store(&pool->bare.fresh, options->requests_max); /* All of it is put there. */
    return 0;
}

void request_pool_deinit(struct request_pool *pool) {
    index_pool_deinit(&pool->free);
    index_pool_deinit(&pool->bare);
    if (pool->buffers)
        channel_memory_unmap(pool->buffers, pool->buffers_bytes);
    free(pool->requests);
    pool->buffers = NULL;
    pool->requests = NULL;
}

struct fuse_request *request_pool_take(struct request_pool *pool) {
    uint32_t index = index_pool_take(&pool->free);
    struct fuse_request *request;

    if (index == INDEX_NONE)
        index = index_pool_take(&pool->bare);
    if (index == INDEX_NONE)
        return NULL;
    request = &pool->requests[index];
    if (!request->buffer) {
        uint8_t *buffer = pool->buffers + index * pool->buffer_bytes;

        if (!channel_memory_populate(buffer, pool->buffer_bytes)) {
            index_pool_put(&pool->bare, index);
            return NULL;
        }
        request->index = index;
        request->buffer = buffer;
        request->head_bytes = BUFFER_PREFIX_BYTES;
    }
    return request;
}

void request_pool_put(struct request_pool *pool, struct fuse_request *request) {
    index_pool_put(&pool->free, request->index);
}
