/* What all requests of one mount share. */
#include "front/fuse/front.h"
#include "front/fuse/request.h"

static void requests_bind(struct front *front, uint32_t requests_max) {
    for (uint32_t i = 0; i < requests_max; i++)
        front->requests.requests[i].front = front;
}

int front_init(struct front *front, const struct front_options *options) {
    int r;

    *front = (struct front){
        .client = options->client,
        .env = options->env,
        .channel = options->channel,
        .entry_timeout_ns = options->entry_timeout_ns,
        .attributes_timeout_ns = options->attributes_timeout_ns,
        .thread_count = options->thread_count,
        .set_id_change = 1,
    };
    ahead_init(&front->ahead);
    fair_init(&front->fair, options->env, options->requests.requests_max, options->thread_count);
    r = request_pool_init(&front->requests, &options->requests);
    if (r == 0)
        r = handle_table_init(&front->handles, options->handles_max);
    if (r == 0)
        r = told_table_init(&front->told);
    if (r == 0)
        r = kept_table_init(&front->kept, options->memory_bytes);
    if (r == 0) {
        front->statistics = calloc(options->thread_count, sizeof(*front->statistics));
        r = front->statistics ? 0 : -ERR_NO_MEMORY;
    }
    if (r < 0) {
        front_deinit(front);
        return r;
    }
    requests_bind(front, options->requests.requests_max);
    return 0;
}

void front_deinit(struct front *front) {
    free(front->statistics);
    front->statistics = NULL;
    kept_table_deinit(&front->kept);
    told_table_deinit(&front->told);
    handle_table_deinit(&front->handles);
    request_pool_deinit(&front->requests);
    ahead_deinit(&front->ahead);
    fair_deinit(&front->fair);
}
