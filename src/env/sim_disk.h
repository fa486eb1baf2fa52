/* A simulated disk: files by path, each with what is durable and what is not yet.
 *
 *     block: durable <- version <- version <- newest        (what reads see: newest, else durable)
 *                       `---- written since the last SYNC ----'
 *
 * A version is overwritten in place unless a SYNC under way may still make it durable (or, now and
 * then, by lot, so that a crash can also leave what was overwritten in between). NULL data is
 * 4 KiB of zeros, so that files written through with zeros take no memory.
 *
 * Internal to the simulator. */
#pragma once
#include "base/list.h"
#include "env/env.h"
#include "env/sim.h"

struct sim_disk;
struct sim_file;
struct sim_faults;

/* A SYNC under way: what it covers. */
struct sim_sync {
    struct sim_sync *next;
    uint64_t cut; /* sequence of the newest write it covers */
    uint64_t size_bytes;
};

struct sim_disk *sim_disk_new(struct sim *sim, const struct sim_faults *faults);
void sim_disk_free(struct sim_disk *disk);
uint64_t sim_disk_used_blocks(const struct sim_disk *disk);
/* Every block as the power failure leaves it. No file may be open. */
void sim_disk_power(struct sim_disk *disk);

/* The directory of files; all of it durable at once. Open files are counted. */
int sim_disk_open(struct sim_disk *disk, const char *path, unsigned flags,
                  struct sim_file **ret_file);
/* Whether opening with these flags would make the file. */
bool sim_disk_open_creates(struct sim_disk *disk, const char *path, unsigned flags);
int sim_disk_directory_make(struct sim_disk *disk, const char *path);
int sim_disk_remove(struct sim_disk *disk, const char *path);
int sim_disk_rename(struct sim_disk *disk, const char *from, const char *to);
/* The file at path without opening it, or NULL. */
struct sim_file *sim_disk_find(struct sim_disk *disk, const char *path);

struct sim_file *sim_file_new(struct sim_disk *disk);
void sim_file_get(struct sim_file *file);
/* Frees the file with the last of its name and its opens. */
void sim_file_put(struct sim_file *file);
uint64_t sim_file_size(const struct sim_file *file);
size_t sim_file_read(const struct sim_file *file, uint64_t offset, void *buffer, size_t size);
/* -ERR_NO_SPACE leaves the file as it was. */
int sim_file_write(struct sim_file *file, uint64_t offset, const void *buffer, size_t size);
/* Writes some of the 4 KiB pieces, by lot; what a crash leaves of a write in flight. */
void sim_file_write_some(struct sim_file *file, uint64_t offset, const void *buffer, size_t size);
/* Of a killed process: still with the medium, until it lands, or until a loss of power. */
void sim_file_write_late(struct sim_file *file, uint64_t offset, const void *buffer, size_t size);
bool sim_file_is_late(const struct sim_file *file);
/* All of these are done; each with that chance, the others are gone. */
void sim_file_land(struct sim_file *file, uint64_t numerator, uint64_t denominator);
/* Whether all of it is the file's, and has its space. */
bool sim_file_is_allocated(const struct sim_file *file, uint64_t offset, uint64_t size);
/* With keep_free_bytes as struct env_io has it. */
int sim_file_allocate(struct sim_file *file, uint64_t offset, uint64_t size,
                      uint64_t keep_free_bytes);
void sim_file_sync_begin(struct sim_file *file, struct sim_sync *sync);
/* Makes durable what it covers when it succeeded. */
void sim_file_sync_end(struct sim_file *file, struct sim_sync *sync, bool succeeded);
void sim_file_power(struct sim_file *file);
unsigned sim_file_flip(struct sim_file *file, uint64_t first_block, uint64_t end_block,
                       uint64_t *ret_offset);
bool sim_file_flip_bit(struct sim_file *file, uint64_t bit);

/* For sim_file.c: space accounting. False when the disk has not that many blocks left. */
bool sim_disk_has_room(const struct sim_disk *disk, uint64_t block_count);
bool sim_disk_take(struct sim_disk *disk, uint64_t block_count);
/* UINT64_MAX when the disk has no end. */
uint64_t sim_disk_free_bytes(const struct sim_disk *disk);
void sim_disk_give(struct sim_disk *disk, uint64_t block_count);
struct sim *sim_disk_world(const struct sim_disk *disk);
const struct sim_faults *sim_disk_faults(const struct sim_disk *disk);
/* Numbers writes, so that a SYNC can tell what it covers. */
uint64_t sim_disk_next_sequence(struct sim_disk *disk);
uint64_t sim_disk_sequence(const struct sim_disk *disk);
