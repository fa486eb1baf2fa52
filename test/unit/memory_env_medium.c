/* A medium that fails: blocks that can't be read, flushes that fail, writes that come late. */
#include "memory_env_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool block_is_in(uint64_t block, const struct env_io *io) {
    return block * BLOCK_BYTES < io->offset + io->size && io->offset < (block + 1) * BLOCK_BYTES;
}

bool memory_meets_lost_block(const struct env_io *io) {
    const struct memory_env *world = io->file->world;

    for (size_t i = 0; i < LOST_BLOCKS_MAX; i++) {
        if (world->lost[i].file == io->file && block_is_in(world->lost[i].block, io)) {
            return true;
        }
    }
    return false;
}

void memory_lost_blocks_heal(const struct env_io *io) {
    struct memory_env *world = io->file->world;

    for (size_t i = 0; i < LOST_BLOCKS_MAX; i++) {
        if (world->lost[i].file == io->file && block_is_in(world->lost[i].block, io)) {
            world->lost[i].file = NULL;
        }
    }
}

int memory_medium_flush(struct env_file *file) {
    struct memory_env *world = file->world;

    world->flushes++;
    if (world->failing_flushes > 0) {
        world->failing_flushes--;
        return -ERR_IO;
    }
    memory_file_flush(file);
    return 0;
}

void memory_late_writes_land(struct memory_env *world, const struct env_file *file) {
    for (size_t i = 0; i < world->late_count;) {
        struct late_write late = world->late[i];

        if (file && late.file != file) {
            i++;
            continue;
        }
        if (memory_file_grow(late.file, late.offset + late.size) == 0) {
            memcpy(late.file->content + late.offset, late.data, late.size);
            memory_mark_dirty(late.file, late.offset, late.size);
        }
        free(late.data);
        world->late[i] = world->late[--world->late_count];
    }
}

void memory_env_kill_late(struct memory_env *world) {
    for (struct env_io *io = world->ios; io; io = *io_next(io)) {
        if (io->kind == ENV_IO_WRITE) {
            struct late_write late = {
                .file = io->file, .offset = io->offset, .data = malloc(io->size), .size = io->size};

            assert(late.data && world->late_count < LATE_WRITES_MAX);
            memcpy(late.data, io->buffer, io->size);
            world->late[world->late_count++] = late;
        }
    }
    world->ios = NULL;
    memory_env_kill(world);
}

void memory_env_land(struct memory_env *world) {
    memory_late_writes_land(world, NULL);
}

void memory_env_forget(struct memory_env *world) {
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct env_file *file = &world->files[i];

        for (uint64_t block = 0; file->path[0] && block * BLOCK_BYTES < file->size; block++) {
            uint64_t at = block * BLOCK_BYTES;

            if (file->dirty[block]) {
                memcpy(file->content + at, file->durable + at, BLOCK_BYTES);
                file->dirty[block] = false;
            }
        }
    }
}

void memory_env_refuse_space(struct memory_env *world) {
    world->refuses_space = true;
}

void memory_env_fail_flushes(struct memory_env *world, unsigned count) {
    world->failing_flushes = count;
}

void memory_env_block_lose(struct memory_env *world, const char *path, uint64_t offset) {
    size_t at = 0;

    while (world->lost[at].file) {
        at++;
        assert(at < LOST_BLOCKS_MAX);
    }
    world->lost[at].file = memory_file_find(world, path);
    world->lost[at].block = offset / BLOCK_BYTES;
    assert(world->lost[at].file);
}

void memory_env_resize(struct memory_env *world, const char *path, uint64_t size) {
    struct env_file *file = memory_file_find(world, path);

    assert(file);
    if (memory_file_grow(file, size) == 0) {
        file->size = size;
    }
}

unsigned memory_env_flushes(const struct memory_env *world) {
    return world->flushes;
}
