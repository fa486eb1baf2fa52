/* Shared regions of a simulated process, and what a kill leaves of them. */
#include "env/sim_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Aligned to pages, as mapped memory is: direct I/O goes to and from it. */
static void *region_memory(size_t size_bytes) {
    void *memory =
        aligned_alloc(BLOCK_BYTES, (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);

    if (!memory) {
        abort();
    }
    return memory;
}

static struct sim_region **region_link(struct sim_process *process, const char *name) {
    struct sim_region **link = &process->regions;

    while (*link && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    return link;
}

/* The memory of a removed region belongs to who still has it open. */
static void region_unlink(struct sim_region **link) {
    struct sim_region *region = *link;

    *link = region->next;
    if (region->open) {
        region->open->region = NULL;
        region->data = NULL;
    }
    sim_region_free(region);
}

static struct sim_region *region_add(struct sim_process *process, const char *name,
                                     size_t size_bytes) {
    struct sim_region *region = sim_allocate(sizeof *region);
    size_t name_size = strlen(name) + 1;

    region->name = sim_allocate(name_size);
    memcpy(region->name, name, name_size);
    region->data = region_memory(size_bytes);
    memset(region->data, 0, size_bytes);
    region->size_bytes = size_bytes;
    region->next = process->regions;
    process->regions = region;
    return region;
}

int sim_env_shared_open(struct env *base, const char *name, size_t size_bytes,
                        struct env_shared **ret_shared, bool *ret_created) {
    struct env_sim *env = env_sim_of(base);
    struct sim_region **link = region_link(env->process, name);
    bool fits = *link && (*link)->size_bytes == size_bytes;

    if (size_bytes == 0) {
        return -ERR_INVALID;
    }
    if (*link && (*link)->open) {
        return -ERR_IN_USE;
    }
    if (fits ? !may_read(env) : !may_change(env)) {
        return -ERR_CLOSED;
    }
    if (*link && !fits) {
        region_unlink(link);
    }
    struct sim_region *region = fits ? *link : region_add(env->process, name, size_bytes);
    struct env_shared *shared = sim_allocate(sizeof *shared);
    shared->region = region;
    shared->data = region->data;
    region->open = shared;
    list_push_back(&env->regions, &shared->node);
    *ret_shared = shared;
    *ret_created = !fits;
    return 0;
}

int sim_env_shared_size(struct env *base, const char *name, uint64_t *ret_size_bytes) {
    struct env_sim *env = env_sim_of(base);
    struct sim_region *region = *region_link(env->process, name);

    if (!may_read(env)) {
        return -ERR_CLOSED;
    }
    if (!region) {
        return -ERR_NOT_FOUND;
    }
    *ret_size_bytes = region->size_bytes;
    return 0;
}

void *sim_env_shared_data(struct env_shared *shared) {
    return shared->data;
}

void sim_env_shared_close(struct env_shared *shared) {
    if (!shared) {
        return;
    }
    if (shared->region) {
        shared->region->open = NULL;
    } else {
        free(shared->data);
    }
    list_remove(&shared->node);
    free(shared);
}

int sim_env_shared_remove(struct env *base, const char *name) {
    struct env_sim *env = env_sim_of(base);
    struct sim_region **link = region_link(env->process, name);

    if (!may_change(env)) {
        return -ERR_CLOSED;
    }
    if (!*link) {
        return -ERR_NOT_FOUND;
    }
    region_unlink(link);
    return 0;
}

void sim_env_shared_path(struct env *base, const char *name, size_t size_bytes, char *ret_path) {
    (void)base;
    snprintf(ret_path, size_bytes, "%s", name);
}

void sim_regions_kill(struct env_sim *env) {
    struct list_node *node;

    /* What is taken down later may still write to the memory that it has mapped: the next
     * incarnation gets the bytes as they are now. */
    for (node = list_first(&env->regions); node; node = list_next(&env->regions, node)) {
        struct env_shared *shared = CONTAINER_OF(node, struct env_shared, node);
        struct sim_region *region = shared->region;

        if (region) {
            region->data = region_memory(region->size_bytes);
            memcpy(region->data, shared->data, region->size_bytes);
            region->open = NULL;
            shared->region = NULL;
        }
    }
}
