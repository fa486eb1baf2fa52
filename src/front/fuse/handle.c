/* What the kernel has open: a table of handles. */
#include "front/fuse/handle.h"
#include <assert.h>

int handle_table_init(struct handle_table *table, uint32_t handles_max) {
    *table = (struct handle_table){0};
    table->handles = calloc(handles_max, sizeof(*table->handles));
    table->writers = calloc(WRITERS_SLOTS, sizeof(*table->writers));
    if (!table->handles || !table->writers || !index_pool_init(&table->free, handles_max) ||
        user_shares_init(&table->shares, handles_max) < 0) {
        handle_table_deinit(table);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void handle_table_deinit(struct handle_table *table) {
    user_shares_deinit(&table->shares);
    index_pool_deinit(&table->free);
    free(table->writers);
    free(table->handles);
    table->writers = NULL;
    table->handles = NULL;
}

struct handle *handle_take(struct handle_table *table, uint32_t uid) {
    uint32_t index;
    struct handle *handle;

    if (!user_shares_take(&table->shares, uid))
        return NULL;
    index = index_pool_take(&table->free);
    if (index == INDEX_NONE) {
        user_shares_put(&table->shares, uid);
        return NULL;
    }
    handle = &table->handles[index];
    handle->uid = uid;
    handle->file = NULL;
    kept_use_none(&handle->pages);
    return handle;
}

static _Atomic uint32_t *writers_of(const struct handle_table *table, uint64_t ino) {
    static_assert(WRITERS_SLOTS == 1 << (64 - 51), "as many as a hash may be");
    return &table->writers[(ino ^ ino >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 51];
}

void handle_count_writer(struct handle_table *table, struct handle *handle) {
    if (!handle->counted)
        atomic_fetch_add(writers_of(table, handle->ino), 1);
    handle->counted = true;
}

bool handle_has_writers(const struct handle_table *table, uint64_t ino) {
    return atomic_load(writers_of(table, ino)) > 0;
}

uint64_t handle_open(struct handle_table *table, struct handle *handle) {
    uint32_t generation = atomic_load(&handle->generation) + 1;
    uint32_t index = (uint32_t)(handle - table->handles);

    assert(generation & 1);
    atomic_store_explicit(&handle->generation, generation, memory_order_release);
    return (uint64_t)generation << 32 | (index + 1);
}

void handle_put(struct handle_table *table, struct handle *handle) {
    uint32_t generation = atomic_load(&handle->generation);

    if (generation & 1)
        atomic_store(&handle->generation, generation + 1);
    if (handle->counted)
        atomic_fetch_sub(writers_of(table, handle->ino), 1);
    handle->counted = false;
    user_shares_put(&table->shares, handle->uid);
    index_pool_put(&table->free, (uint32_t)(handle - table->handles));
}

struct handle *handle_find(struct handle_table *table, uint64_t number) {
    uint32_t index = (uint32_t)number - 1; /* 0 becomes the greatest */
    uint32_t generation = (uint32_t)(number >> 32);
    struct handle *handle;

    if (index >= index_pool_used(&table->free) || !(generation & 1))
        return NULL;
    handle = &table->handles[index];
    if (atomic_load_explicit(&handle->generation, memory_order_acquire) != generation)
        return NULL;
    return handle;
}

bool handle_evict(struct handle_table *table, uint32_t *at, struct shoal_file **ret_file) {
    while (*at < index_pool_used(&table->free)) {
        struct handle *handle = &table->handles[(*at)++];

        if (atomic_load(&handle->generation) & 1) {
            *ret_file = handle->file;
            handle_put(table, handle);
            return true;
        }
    }
    return false;
}
