/* Inside of the outside in memory, shared by memory_env*.c only. */
#pragma once
#include "memory_env.h"

enum { FILES_MAX = 64, SECTOR_BYTES = 512, LOST_BLOCKS_MAX = 4, LATE_WRITES_MAX = 8 };

/* A write of a process that was killed, which the medium still has to do. */
struct late_write {
    struct env_file *file;
    uint64_t offset;
    uint8_t *data;
    size_t size;
};

struct env_file {
    struct memory_env *world;
    char path[256];
    uint8_t *content;
    uint8_t *durable;
    bool direct; /* opened so: its reads and writes are of whole blocks */
    bool *dirty; /* a block that differs from durable */
    uint64_t size;
    uint64_t capacity;
};

struct env_shared {
    char name[128];
    uint8_t *data;
    size_t size;
};

struct memory_env {
    struct env env;
    struct prng prng;
    struct env_file files[FILES_MAX];
    struct env_shared shared[FILES_MAX];
    struct env_io *ios;
    struct env_job *jobs;
    struct late_write late[LATE_WRITES_MAX];
    size_t late_count;
    struct {
        const struct env_file *file; /* NULL: none */
        uint64_t block;
    } lost[LOST_BLOCKS_MAX];
    bool refuses_space; /* also such as is there */
    unsigned failing_flushes;
    unsigned flushes;
    size_t pending;
    uint64_t now_ns;
    uint64_t boot;
    uint64_t crash_after;
    uint64_t capacity;
};

/* The list of what is in flight goes through a word that is env's own. */
static inline struct env_io **io_next(struct env_io *io) {
    return (struct env_io **)(void *)&io->work.next;
}

/* memory_env.c */
struct env_file *memory_file_find(const struct memory_env *world, const char *path);
MUST_CHECK int memory_file_grow(struct env_file *file, uint64_t size);
void memory_mark_dirty(struct env_file *file, uint64_t offset, size_t size);
void memory_file_flush(struct env_file *file);

/* memory_env_medium.c: what a medium does that fails, or is slow. */
bool memory_meets_lost_block(const struct env_io *io);
/* The medium puts another block in the place of a lost one that is written. */
void memory_lost_blocks_heal(const struct env_io *io);
MUST_CHECK int memory_medium_flush(struct env_file *file);
/* What is still to come; NULL: of all files. */
void memory_late_writes_land(struct memory_env *world, const struct env_file *file);
