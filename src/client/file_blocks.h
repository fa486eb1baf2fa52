/* Blocks of 4 KiB that the chunks of an open file have gained by writes from here, and that the
 * server was not told of yet.
 *
 *     answers of chunk_write --> gained --settle leaves--> telling --its answer--> the server's
 *
 * One sum is enough, however many chunks it is about: each answer says what its chunk had before
 * and has behind the write. Sums are of writes of one truncate_seq, the newest. What can't be told
 * as a sum makes the file *unsure*, and so does a loss that this client has heard of, until nobody
 * here has it open for writing: the server then asks the storage targets once, when the last writer
 * closes.
 *
 * Thread: the file's shard's step. */
#pragma once
#include "rpc/call.h"

struct open_file;

struct file_blocks {
    int64_t gained;
    int64_t telling; /* by settles under way */
    uint32_t truncate_seq;
    bool unsure;
    uint64_t losses; /* the client's count of losses when it was opened for writing */
};

/* It is open for writing from now on. */
void file_blocks_begin(struct open_file *file);

/* A chunk_write has ended, with whatever result. */
void file_blocks_wrote(struct open_file *file, const struct call *call);
/* What a chunk has gained or lost is not known here: for all who change chunks by other means than
 * a chunk_write that is answered with its counts. May be called at any time while a handle is open
 * for writing, again too, before the settle or close that follows the change. A truncation through
 * the server needs no such call: the server knows of it. */
void file_blocks_unsure(struct open_file *file);
/* Puts into a settle what is to be told. It ends with file_blocks_told, or _untold: with an error,
 * or an answer that says nothing of what the server has kept. */
void file_blocks_tell(struct open_file *file, struct settle_request *request);
void file_blocks_told(struct open_file *file, const struct settle_request *request);
void file_blocks_untold(struct open_file *file, const struct settle_request *request, int result);
/* Nobody has it open for writing any more. */
void file_blocks_forget(struct open_file *file);
/* Bytes used as the server says it, with what it was not told, in blocks as the size has at most.
 * The attributes have the size as it is known here. */
uint64_t file_blocks_used(const struct open_file *file, const struct attributes *attributes);
