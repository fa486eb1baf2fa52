/* The contract is in file_blocks.h. */
#include "client/file_blocks.h"
#include "client/client_internal.h"
#include "client/file.h"
#include "wire/wire_blocks.h"

static uint64_t losses_of(const struct open_file *file) {
    return atomic_load(&file->shard->client->router.losses);
}

void file_blocks_begin(struct open_file *file) {
    file->blocks.losses = losses_of(file);
}

/* A refusal of the capability has done nothing; of other errors nobody knows. */
void file_blocks_wrote(struct open_file *file, const struct call *call) {
    const struct chunk_write_reply *reply = &call->reply.chunk_write;
    uint32_t truncate_seq = call->request.chunk_write.capability.truncate_seq;
    struct file_blocks *blocks = &file->blocks;

    if (call->result < 0 || reply->blocks == 0) {
        blocks->unsure = blocks->unsure || call->result != -ERR_BAD_CAPABILITY;
        return;
    }
    if (truncate_seq > blocks->truncate_seq) {
        blocks->truncate_seq = truncate_seq;
        blocks->gained = 0;
    }
    if (truncate_seq == blocks->truncate_seq) {
        blocks->gained += (int64_t)reply->blocks - (int64_t)reply->blocks_before;
    }
}

void file_blocks_unsure(struct open_file *file) {
    file->blocks.unsure = true;
}

void file_blocks_tell(struct open_file *file, struct settle_request *request) {
    struct file_blocks *blocks = &file->blocks;

    blocks->unsure = blocks->unsure || blocks->losses != losses_of(file);
    request->blocks = blocks->gained;
    request->blocks_seq = blocks->truncate_seq;
    request->blocks_told = blocks->unsure ? BLOCKS_UNSURE : BLOCKS_SUM;
    blocks->telling += blocks->gained;
    blocks->gained = 0;
}

void file_blocks_told(struct open_file *file, const struct settle_request *request) {
    file->blocks.telling -= request->blocks;
}

/* What was refused for want of room is told again; of all else nobody knows whether it was
 * taken. */
void file_blocks_untold(struct open_file *file, const struct settle_request *request, int result) {
    struct file_blocks *blocks = &file->blocks;

    blocks->telling -= request->blocks;
    if (request->blocks_told == 0) {
        return;
    }
    if (result != -ERR_NO_SPACE) {
        blocks->unsure = true;
    } else if (request->blocks_seq == blocks->truncate_seq) {
        blocks->gained += request->blocks;
    }
}

void file_blocks_forget(struct open_file *file) {
    file->blocks.gained = 0;
    file->blocks.unsure = false;
}

/* What the server is unsure of may have what the writes from here have, too: together no more than
 * the size allows. */
static uint64_t used_at_most(const struct attributes *attributes, uint64_t used) {
    uint64_t tail = attributes->size % BLOCK_BYTES;

    return used > attributes->size
               ? MIN(used, attributes->size - tail + (tail != 0) * (uint64_t)BLOCK_BYTES)
               : used;
}

uint64_t file_blocks_used(const struct open_file *file, const struct attributes *attributes) {
    const struct file_blocks *blocks = &file->blocks;
    int64_t untold = blocks->gained + blocks->telling;

    if (attributes->data_state != DATA_CHUNKED ||
        attributes->truncate_seq != blocks->truncate_seq) {
        return attributes->bytes_used;
    }
    if (untold < 0) {
        uint64_t less = (uint64_t)-untold * BLOCK_BYTES;

        return attributes->bytes_used > less ? attributes->bytes_used - less : 0;
    }
    return used_at_most(attributes, attributes->bytes_used + (uint64_t)untold * BLOCK_BYTES);
}
