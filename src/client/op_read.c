/* Reading: the inode's bytes, or chunks; holes are zeros, and the size known here is the end. */
#include "client/client_internal.h"
#include "client/data.h"
#include <assert.h>
#include <string.h>

enum { READ_ENTER, READ_START, READ_ASKED, READ_INLINE, READ_CHUNKS };

static void read_start(struct operation *operation);

static void read_piece_put(struct operation *operation) {
    if (operation->piece) {
        assert(operation->piece->operation == operation);
        piece_put(&operation->shard->pieces, operation->piece);
        operation->piece = NULL;
    }
}

static void read_finish(struct operation *operation, int64_t result) {
    read_piece_put(operation);
    file_leave(operation->file, operation);
    operation_finish(operation, result);
}

static void read_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);

    if (!(asked->file->flags & (SHOAL_OPEN_READ | SHOAL_OPEN_EXECUTE)) ||
        (asked->file->flags & SHOAL_OPEN_DIRECTORY)) {
        operation_finish(operation, -ERR_BAD_HANDLE);
        return;
    }
    operation->file = asked->file->file;
    file_pin(operation->file);
    operation->stage = READ_START;
    file_enter(operation->file, operation, FILE_NEEDS_READ);
}

/* Straight to the caller when all that an inode can hold fits there. */
static void read_inline_send(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    bool direct = asked->offset == 0 && asked->size >= INLINE_BYTES_MAX;
    uint8_t *space = asked->data;
    struct call *call;

    operation->stage = READ_INLINE;
    if (!direct) {
        if (!operation->piece) {
            operation->piece = piece_get(&operation->shard->pieces, operation);
        }
        if (!operation->piece) {
            operation->stage = READ_START; /* again, when there is one */
            return;
        }
        space = operation->piece->data;
    }
    call = operation_prepare(operation);
    call->request.inline_read = (struct inline_read_request){
        .ino = operation->ino, .truncate_seq = operation->file->capability.truncate_seq};
    call->bulk_in = (struct buffer){.data = space, .capacity = INLINE_BYTES_MAX};
    operation_call(operation, OP_INLINE_READ, operation->ino);
}

/* [offset, end) of the file, whose first `got` bytes the inode holds; the rest is a hole. */
static void read_inline_copy(struct operation *operation, uint64_t end, size_t got) {
    const struct shoal_request *asked = operation_request(operation);
    uint8_t *to = asked->data;
    size_t from = (size_t)MIN(asked->offset, (uint64_t)got);
    size_t count = (size_t)(MIN(end, (uint64_t)got) - from);

    if (operation->piece && count > 0) {
        memcpy(to, operation->piece->data + from, count);
    }
    memset(to + count, 0, (size_t)(end - asked->offset) - count);
}

static void read_inline_answered(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct call *call = &operation->errand.call;
    const struct inline_read_reply *reply = &call->reply.inline_read;
    struct open_file *file = operation->file;

    if (operation->result) {
        read_finish(operation, operation->result);
        return;
    }
    file_see(file, &reply->attributes);
    file_see_capability(file, &reply->capability, NULL);
    if (reply->attributes.data_state == DATA_CHUNKED) {
        file_is_chunked(file);
        read_piece_put(operation); /* The calls for chunks may need it. */
        read_start(operation);
        return;
    }
    uint64_t end = MIN(asked->offset + asked->size, file->size);

    if (asked->offset >= end) {
        read_finish(operation, 0);
        return;
    }
    read_inline_copy(operation, end, call->bulk_in.size);
    read_finish(operation, (int64_t)(end - asked->offset));
}

static void read_chunks(struct operation *operation) {
    if (!data_advance(operation)) {
        return;
    }
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = READ_START;
        file_renew(operation->file, operation);
        return;
    }
    if (operation->result) {
        read_finish(operation, operation->result);
    } else {
        read_finish(operation, (int64_t)(operation->end - operation->start));
    }
}

static void read_start(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct open_file *file = operation->file;
    uint64_t space = MIN((uint64_t)asked->size, FILE_BYTES_MAX);
    uint64_t end = asked->offset < file->size
                       ? asked->offset + MIN(space, file->size - asked->offset)
                       : asked->offset;

    if (operation->result || file->gone) {
        read_finish(operation, operation->result ? operation->result : -ERR_STALE);
    } else if (!operation->asked && file_is_old(file, operation_began_ns(operation))) {
        operation_look(operation, READ_ASKED);
    } else if (end == asked->offset) {
        read_finish(operation, 0);
    } else if (file->attributes.data_state != DATA_CHUNKED) {
        read_inline_send(operation);
    } else if (file_needs_renewal(file) && operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = READ_START;
        file_renew(operation->file, operation);
    } else {
        operation->stage = READ_CHUNKS;
        data_start(operation, asked->offset, end);
        read_chunks(operation);
    }
}

void op_read_step(struct operation *operation) {
    switch (operation->stage) {
    case READ_ENTER:
        read_enter(operation);
        break;
    case READ_ASKED:
        operation_looked(operation);
        operation->stage = READ_START;
        read_start(operation);
        break;
    case READ_START:
        read_start(operation);
        break;
    case READ_INLINE:
        read_inline_answered(operation);
        break;
    case READ_CHUNKS:
        read_chunks(operation);
        break;
    }
}
