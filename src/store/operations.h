/* What the files of store/ offer each other: one run function a message, and the helpers below. */
#pragma once
#include "store/cut.h"
#include "store/ost_internal.h"
#include "store/outcome.h"

/* One a message; see request.h for how they are run. */
void write_run(struct ost *ost, struct request *request);
void read_run(struct ost *ost, struct request *request);
void allocate_run(struct ost *ost, struct request *request);
void seek_run(struct ost *ost, struct request *request);
void cut_run(struct ost *ost, struct request *request);
void remove_run(struct ost *ost, struct request *request);
void length_run(struct ost *ost, struct request *request);
void attach_run(struct ost *ost, struct request *request);
void floor_run(struct ost *ost, struct request *request);
void ended_run(struct ost *ost, struct request *request);
void sync_run(struct ost *ost, struct request *request);
void statfs_run(struct ost *ost, struct request *request);
void fsck_run(struct ost *ost, struct request *request);

/* ost.c */
actor_step_fn ost_step;
void ost_wake(struct ost *ost);
uint64_t ost_epoch(struct ost *ost);
/* Counts bytes that went to the disk directly; many begin a sync point. */
void ost_count_direct(struct ost *ost, uint64_t bytes);
void ost_log(struct ost *ost, const char *format, ...) PRINTF_LIKE(2, 3);

/* request.c: answers all finished requests, behind the seal. */
void requests_answer(struct ost *ost);
/* Of a target that serves nothing any more: what each call is answered, as the error itself may
 * mean a damaged chunk, and that the target lives. 0 stays. */
int ost_failure_told(int failure);
/* In a step that a tick began: ends those that their callers have given up. */
void requests_give_up(struct ost *ost);

/* load.c: reads what the OST keeps in memory; -ERR_PENDING: again at the next wake. */
MUST_CHECK int load_file(struct ost *ost, char problem[256]);
MUST_CHECK int ost_load_step(struct ost *ost);
/* Writes the label of a new data file once its state row is on disk. */
void load_label(struct ost *ost);

/* io.c. NULL: none is free now; wait in ost->io_waiting, unless an I/O in flight wakes anyway. */
enum ost_io_need { OST_IO_PLAIN, OST_IO_BOUNCED, OST_IO_OF_SYNC };
struct ost_io *ost_io_get(struct ost *ost, enum ost_io_need need);
/* Gives io and its bounce buffer back. */
void ost_io_put(struct ost *ost, struct ost_io *io);
/* io->io.kind, offset, buffer, size and finished, owner are set. */
void ost_io_start(struct ost *ost, struct ost_io *io);
/* Part of a request: counts io_pending, keeps the first error. */
void request_io_start(struct ost *ost, struct request *request, struct ost_io *io);
void request_io_end(struct ost *ost, struct request *request, struct ost_io *io, int result);
/* A block's content when it is in memory: in the ring or the cache; else NULL. */
const uint8_t *block_in_memory(struct ost *ost, uint64_t block);
/* The checked content of a stored block, in one of the request's two places for them.
 * REQUEST_WAITS; -ERR_CORRUPT; what the disk answered. */
MUST_CHECK int edge_get(struct ost *ost, struct request *request, unsigned which,
                        struct block_entry entry, const uint8_t **ret_data);
void edges_forget(struct request *request);
/* Says where a block was found damaged and counts it. */
int block_corrupt(struct ost *ost, const struct chunk_id *id, uint64_t block);

/* ost_open.c: blocks that one request touches at the most. */
uint32_t request_blocks(const struct ost_options *options);

/* space.c: entries[0, count) of the request get blocks. count_new of them fill holes that are not
 * promised: these may use neither the reserve nor what is promised, but for count_spent holes that
 * the others fill. REQUEST_WAITS, -ERR_NO_SPACE, or the log's error. */
struct space_wish {
    enum blocks_lane lane;
    uint32_t count;
    uint32_t count_new;
    uint32_t count_spent;
};
MUST_CHECK int space_take(struct ost *ost, struct request *request, const struct space_wish *wish,
                          struct block_entry *entries);
/* So many more holes may be promised. Likewise. */
MUST_CHECK int space_promise(struct ost *ost, struct request *request, uint32_t count);
/* They are named by a record now, or were never used. */
void space_recorded(struct ost *ost, uint32_t count);
void space_give_back(struct ost *ost, const struct block_entry *entries, uint32_t count);
/* Room for the extents that a change may free; else waits for a sync point. */
MUST_CHECK int space_quarantine(struct ost *ost, struct request *request);
void space_release(struct ost *ost);
void space_grow_ahead(struct ost *ost);
void space_tick(struct ost *ost);
/* For ost_space_get, once a second. */
void space_note(struct ost *ost);
uint64_t space_free_blocks(const struct ost *ost);
/* Of these, what it can't get, as the file system below has not that much to spare. */
uint64_t space_lacking_blocks(const struct ost *ost);
/* What would not let it grow, and what to do, behind "FILE cannot ...: ". */
void space_say_full(const struct ost *ost, char *text, size_t size);

/* data_sync.c: the hook of kv, and what it takes to answer. */
void data_sync_start(struct ost *ost, uint64_t cut);
void data_sync_step(struct ost *ost);

/* ost.c: no operation of the data file is in flight. */
bool ost_io_is_idle(const struct ost *ost);

/* small_write.c: blocks that go through the ring. In an open transaction: fill before change_stage,
 * notes after it, and commit with its position. */
struct small_part {
    struct block_entry *entries; /* their blocks are taken; crc is filled in */
    uint32_t count;
    /* Puts the content of entry i into data and answers its checksum. */
    uint32_t (*fill)(void *context, uint32_t i, uint8_t *data);
    void *context;
};
struct small_spans {
    struct {
        uint64_t block;
        uint64_t ring_offset;
        uint32_t count;
    } items[OST_SMALL_BLOCKS_MAX];
    uint32_t count;
};
/* Adds to spans. -ERR_NO_SPACE: the ring is full. */
void small_part_fill(struct ost *ost, const struct small_part *part, struct small_spans *spans);
/* What the notes of so many blocks take of a record at the most. */
uint32_t small_spans_bytes(uint32_t block_count);
MUST_CHECK int small_spans_note(struct ost *ost, const struct small_spans *spans);
void small_spans_commit(struct ost *ost, const struct small_spans *spans, uint64_t position);

/* ended.c */
MUST_CHECK int ost_ended_load(struct ost *ost);

/* session.c */
MUST_CHECK int ost_session_check(struct ost *ost, uint64_t session, uint64_t incarnation);
/* From now on this incarnation, and those before it, are refused. Position: to be on disk before
 * anybody is told. */
MUST_CHECK int ost_session_fence(struct ost *ost, struct request *request,
                                 struct session_entry fence, uint64_t *ret_position);
