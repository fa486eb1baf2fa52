/* Chunk calls: cutting a range, summing what leaves and what comes. */
#include "client/data.h"
#include "base/crc32c.h"
#include "client/client_internal.h"
#include <assert.h>
#include <string.h>

/* Renewals that brought another capability are no tries of the one that was refused: keys may turn,
 * and others truncate, faster than a slow link brings what it asks for. */
static void renewals_count(struct operation *operation) {
    if (operation->capabilities != operation->file->capabilities) {
        operation->capabilities = operation->file->capabilities;
        operation->renewals = 0;
    }
}

void data_start(struct operation *operation, uint64_t start, uint64_t end) {
    assert(operation->in_flight == 0 && start < end);
    renewals_count(operation);
    operation->start = start;
    operation->next = start;
    operation->end = end;
    operation->reached = start;
    operation->in_flight = 0;
    operation->result = 0;
    operation->own_retried = false;
    operation->truncate_seq = operation->file->capability.truncate_seq;
    operation->generation = operation->file->capability.generation;
}

/* Bytes of the first block that a range at this offset touches. */
static size_t data_first(uint32_t offset, size_t size) {
    return MIN(size, (size_t)(BLOCK_BYTES - offset % BLOCK_BYTES));
}

static uint32_t data_blocks(uint32_t offset, size_t size) {
    return (uint32_t)((offset % BLOCK_BYTES + size + BLOCK_BYTES - 1) / BLOCK_BYTES);
}

static void data_sum(uint32_t offset, const uint8_t *data, size_t size, uint32_t *checksums) {
    for (size_t part = data_first(offset, size); size > 0; part = MIN(size, (size_t)BLOCK_BYTES)) {
        *checksums++ = crc32c_ahead(data, part, size - part);
        data += part;
        size -= part;
    }
}

static bool data_is_sound(const struct call *call, uint32_t offset) {
    const uint8_t *data = call->bulk_in.data;
    const uint32_t *checksums = call->checksums;
    size_t size = call->bulk_in.size;

    if (size > call->request.chunk_read.size || data_blocks(offset, size) > call->checksum_count) {
        return size == 0;
    }
    for (size_t part = data_first(offset, size); size > 0; part = MIN(size, (size_t)BLOCK_BYTES)) {
        if (crc32c_ahead(data, part, size - part) != *checksums++) {
            return false;
        }
        data += part;
        size -= part;
    }
    return true;
}

/* One part, sent or answered: [at, at + size) of the file. */
struct part {
    uint64_t at;
    uint64_t chunk;
    uint32_t offset; /* in the chunk */
    uint32_t size;
};

/* A promise of a whole chunk is a word in its head. */
static bool data_is_promise(const struct operation *operation) {
    return operation->what == SPACE_PROMISE || operation->what == SPACE_UNDO;
}

static void data_part(const struct operation *operation, struct part *ret_part) {
    uint32_t chunk_bytes = operation->file->layout.chunk_bytes;
    struct part part = {
        .at = operation->next,
        .chunk = operation->next / chunk_bytes,
        .offset = (uint32_t)(operation->next % chunk_bytes),
    };

    uint32_t call_bytes = operation->client->options.call_bytes_max;
    uint32_t room = MIN(chunk_bytes - part.offset, call_bytes - part.offset % call_bytes);

    if (data_is_promise(operation) && part.offset == 0 &&
        operation->end - operation->next >= chunk_bytes) {
        room = chunk_bytes;
    }
    part.size = (uint32_t)MIN(operation->end - operation->next, room);
    *ret_part = part;
}

static void data_fill(struct operation *operation, struct call *call, const struct part *part) {
    const struct shoal_request *asked = operation_request(operation);
    uint8_t *data = asked->data ? (uint8_t *)asked->data + (part->at - operation->start) : NULL;
    struct open_file *file = operation->file;

    if (operation->what != 0) {
        call->request.chunk_space = (struct chunk_space_request){
            file->capability, part->chunk,     file->layout.chunk_bytes, part->offset,
            part->size,       operation->what, operation->trace_id};
        call->checksum_count = 0;
    } else if (asked->operation == SHOAL_WRITE) {
        call->request.chunk_write = (struct chunk_write_request){
            file->capability, part->chunk, file->layout.chunk_bytes, part->offset, part->size};
        call->bulk_out[0] = (struct bytes){data, part->size};
        call->bulk_out_count = 1;
        data_sum(part->offset, data, part->size, call->checksums);
    } else {
        call->request.chunk_read = (struct chunk_read_request){
            file->capability, part->chunk, file->layout.chunk_bytes, part->offset, part->size, 0};
        /* Behind the last piece, what the caller has room for takes the rest of a block. */
        bool last = part->at + part->size == operation->end;
        size_t before = (size_t)(part->at - operation->start);
        call->bulk_in =
            (struct buffer){.data = data, .capacity = last ? asked->size - before : part->size};
    }
}

static void data_send(struct operation *operation, struct errand *errand, const struct part *part) {
    bool writes = operation_request(operation)->operation == SHOAL_WRITE;
    uint16_t opcode = operation->what != 0 ? OP_CHUNK_SPACE
                      : writes             ? OP_CHUNK_WRITE
                                           : OP_CHUNK_READ;

    operation->in_flight++;
    operation->next += part->size;
    assert(operation->start < operation->next && operation->next <= operation->end);
    data_fill(operation, &errand->call, part);
    errand_start_chunk(errand, opcode, ino_slot(operation->ino), &operation->file->layout,
                       part->chunk);
}

/* Takes an answer. True when the same is to be asked once more: what came was damaged. */
static bool data_take(struct operation *operation, struct errand *errand, bool *retried) {
    struct call *call = &errand->call;
    const struct chunk_read_request *read = &call->request.chunk_read;

    assert(operation->in_flight > 0);
    operation->in_flight--;
    if (call->header.opcode == OP_CHUNK_WRITE) {
        file_blocks_wrote(operation->file, call);
    }
    if (call->result == 0 && call->header.opcode == OP_CHUNK_READ) {
        if (!data_is_sound(call, read->offset)) {
            if (!*retried) {
                *retried = true;
                return true;
            }
            call->result = -ERR_CORRUPT;
        } else {
            memset(call->bulk_in.data + call->bulk_in.size, 0, read->size - call->bulk_in.size);
        }
    } else if (call->result == 0 && call->header.opcode == OP_CHUNK_WRITE) {
        const struct chunk_write_request *write = &call->request.chunk_write;
        uint64_t end = write->chunk * write->chunk_bytes + write->offset + write->size;

        assert(end > operation->start && end <= operation->next);
        operation->reached = MAX(operation->reached, end);
    }
    if (operation->result == 0) {
        operation->result = call->result;
    }
    return false;
}

static void data_resend(struct errand *errand) {
    struct call *call = &errand->call;

    call->bulk_in.size = 0;
    call->request.chunk_read.verify = 1;
    errand_start_chunk(errand, OP_CHUNK_READ, call->header.slot, errand->layout, errand->chunk);
}

static void data_own_done(struct errand *errand) {
    struct operation *operation = CONTAINER_OF(errand, struct operation, errand);

    if (data_take(operation, errand, &operation->own_retried)) {
        operation->in_flight++;
        data_resend(errand);
        return;
    }
    operation->step(operation);
}

/* After an error there is nothing to wait for a piece for. */
static void data_piece_done(struct errand *errand) {
    struct piece *piece = CONTAINER_OF(errand, struct piece, errand);
    struct operation *operation = piece->operation;

    if (data_take(operation, errand, &piece->retried)) {
        operation->in_flight++;
        data_resend(errand);
        return;
    }
    piece_put(&operation->shard->pieces, piece);
    if (operation->result) {
        list_remove(&operation->node);
    }
    operation->step(operation);
}

static bool data_fits_own(const struct operation *operation, const struct part *part) {
    return operation->in_flight == 0 && part->at == operation->start &&
           part->size == operation->end - part->at &&
           data_blocks(part->offset, part->size) <= OPERATION_CHECKSUMS;
}

static bool data_send_piece(struct operation *operation, const struct part *part) {
    uint32_t blocks = data_blocks(part->offset, part->size);
    struct piece *piece = piece_get(&operation->shard->pieces, operation);

    if (!piece) {
        return false;
    }
    operation_errand_init(operation, &piece->errand, data_piece_done);
    piece->errand.call.checksums = piece->checksums;
    piece->errand.call.checksum_count = blocks;
    data_send(operation, &piece->errand, part);
    return true;
}

/* Not where a new start has taken the file's chunks back, or has others; nor where it was truncated
 * since the first part was sent: that may be cut, and the rest would not be. */
static bool data_may_go_on(const struct operation *operation) {
    const struct capability *capability = &operation->file->capability;

    return capability->generation != 0 && capability->generation == operation->generation &&
           capability->truncate_seq == operation->truncate_seq;
}

uint64_t data_end(const struct operation *operation, uint64_t end) {
    return operation->generation == operation->file->capability.generation ? end : 0;
}

bool data_advance(struct operation *operation) {
    if (list_contains(&operation->node)) {
        return false;
    }
    while (operation->result == 0 && operation->next < operation->end) {
        struct part part;

        if (!data_may_go_on(operation)) {
            operation->result = -ERR_BAD_CAPABILITY;
            break;
        }
        data_part(operation, &part);
        if (data_fits_own(operation, &part)) {
            struct call *call = operation_prepare(operation);

            operation->errand.done = data_own_done;
            call->checksums = operation->checksums;
            call->checksum_count = data_blocks(part.offset, part.size);
            data_send(operation, &operation->errand, &part);
            return false;
        }
        if (!data_send_piece(operation, &part)) {
            return false;
        }
    }
    return operation->in_flight == 0;
}
