/* What steps are made of, and the steps: each draws what it asks, asks it, and compares. */
#pragma once
#include "fsx.h"

/* Model (fsx_model.c). */
/* Places at and around the edges that matter, below the file's limit. */
uint64_t fsx_offset(struct fsx_file *file);
/* 1 or more, so that offset + length is the limit at most; offset below the limit. */
uint64_t fsx_length(struct fsx_file *file, uint64_t offset);
/* Fills the buffer with what the next write brings. */
void fsx_content(struct fsx *fsx, uint8_t *bytes, uint64_t length);
/* bytes NULL: zeros. The size grows with it. */
void fsx_put(struct fsx_file *file, uint64_t offset, const uint8_t *bytes, uint64_t length);
/* Zeros, as far as the size. */
void fsx_clear(struct fsx_file *file, uint64_t offset, uint64_t length);
void fsx_resize(struct fsx_file *file, uint64_t size);
/* How many bytes a read of so many finds. */
uint64_t fsx_found(const struct fsx_file *file, uint64_t offset, uint64_t length);
/* What was read is what the model has. */
void fsx_same(struct fsx_file *file, uint64_t offset, const uint8_t *bytes, uint64_t length);
bool fsx_is_zero(const struct fsx_file *file, uint64_t from, uint64_t to);

/* Handles and names (fsx_names.c). */
void fsx_path(const struct fsx *fsx, unsigned mount, unsigned name, char ret_path[4096]);
/* A handle of one of these ways (bits), which is opened when there is none. Where there are
 * FSX_HANDLES_MAX another one is closed for it: who needs two at once makes room before. */
void fsx_make_room(struct fsx_file *file);
int fsx_handle(struct fsx_file *file, unsigned ways);
/* One that the caller closes. */
int fsx_open(struct fsx_file *file, enum fsx_way way);
void fsx_close_all(struct fsx_file *file);
/* All names are there, and nothing else. */
void fsx_list(struct fsx *fsx, unsigned mount);
/* A new file, with a name or without; false: there is no room for one more. */
bool fsx_make(struct fsx *fsx, bool named);
fsx_step fsx_open_more, fsx_close_one, fsx_reopen, fsx_rename, fsx_unlink, fsx_link, fsx_name_it,
    fsx_make_over, fsx_move_home, fsx_list_step;

/* Looks (fsx_look.c). */
/* Size, links, blocks and times, of a handle or of a name. */
void fsx_look(struct fsx_file *file);
void fsx_compare(struct fsx_file *file);
/* Of a file that nobody has open: st_blocks becomes what SEEK_DATA tells. Not behind a kill, which
 * may leave an estimate. */
void fsx_count(struct fsx_file *file);
fsx_step fsx_stat, fsx_seek, fsx_whole, fsx_peek;

/* Content (fsx_data.c). */
void fsx_unmap(struct fsx_file *file);
fsx_step fsx_write, fsx_write_vector, fsx_append, fsx_write_direct, fsx_read, fsx_read_vector,
    fsx_read_direct, fsx_map, fsx_map_write, fsx_map_read, fsx_map_sync, fsx_truncate, fsx_allocate,
    fsx_allocate_keep, fsx_punch, fsx_zero, fsx_zero_keep, fsx_copy_within, fsx_copy_between,
    fsx_sync, fsx_sync_data, fsx_drop;
