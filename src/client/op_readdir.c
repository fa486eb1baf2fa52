/* Reading a directory: entries of one answer after the other, until the caller or the directory
 * ends it.
 *
 * With plus, an entry whose file is written here is overlaid in the step of that file's shard: the
 * operation moves there and goes on from there. It ends where its buffer belongs. */
#include "client/client_internal.h"
#include "client/listed.h"
#include <assert.h>

enum { READDIR_ENTER, READDIR_SEND, READDIR_ANSWERED, READDIR_EMIT, READDIR_END };

enum { READDIR_BYTES_MIN = 1024 };

static void readdir_end(struct operation *operation) {
    if (operation->shard != operation->home) {
        operation->stage = READDIR_END;
        operation_post(operation, operation->home);
        return;
    }
    if (operation->buffer) {
        shard_readdir_put(operation->home, operation->buffer);
    }
    operation_finish(operation, operation->error ? operation->error : (int64_t)operation->count);
}

static void readdir_fail(struct operation *operation, int error) {
    operation->error = error;
    readdir_end(operation);
}

static void readdir_send(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct call *call = operation_prepare(operation);
    uint32_t bytes = READDIR_BYTES;

    if (asked->size > 0) {
        bytes = (uint32_t)MAX(MIN(asked->size, (size_t)READDIR_BYTES), (size_t)READDIR_BYTES_MIN);
    }
    operation->stage = READDIR_ANSWERED;
    operation->position = 0;
    call->request.readdir = (struct readdir_request){
        .ino = operation->ino,
        .cookie = operation->next,
        .bytes_max = bytes,
        .plus = asked->plus != 0,
        .who = operation_who(operation),
    };
    call->bulk_in = (struct buffer){.data = operation->buffer, .capacity = bytes};
    operation_call(operation, OP_READDIR, operation->ino);
}

static void readdir_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);

    if (!(asked->file->flags & SHOAL_OPEN_DIRECTORY) || !asked->entry) {
        operation_finish(operation, -ERR_BAD_HANDLE);
        return;
    }
    if (!operation->file) {
        operation->file = asked->file->file;
        file_pin(operation->file);
        operation->next = asked->offset;
    }
    operation->buffer = shard_readdir_get(operation->shard, operation);
    if (operation->buffer) {
        readdir_send(operation);
    }
}

/* The one that is at hand. */
static int readdir_parse(const struct operation *operation, struct listed_entry *ret_entry) {
    const struct buffer *bulk = &operation->errand.call.bulk_in;

    assert(operation->position <= bulk->size);
    return listed_entry_parse(
        (struct bytes){operation->buffer + operation->position, bulk->size - operation->position},
        ret_entry);
}

/* False: the operation has moved to the shard that can tell. Attributes that it cannot tell either
 * are left out, as nobody depends on them. */
static bool readdir_overlay(struct operation *operation, struct listed_entry *entry) {
    struct shard *shard = client_shard(operation->client, (struct ino){entry->head.ino});

    if (!entry->has_attributes || shard_is_plain(shard, operation->close_stamp)) {
        return true;
    }
    if (shard != operation->shard) {
        operation->stage = READDIR_EMIT;
        operation_post(operation, shard);
        return false;
    }
    entry->has_attributes = shard_refresh(shard, operation->close_stamp, &entry->attributes);
    return true;
}

static int readdir_give(struct operation *operation, const struct listed_entry *entry) {
    const struct shoal_request *asked = operation_request(operation);
    struct shoal_attributes attributes;
    bool plus = asked->plus && entry->has_attributes;

    if (plus) {
        attributes_out(&entry->attributes, &attributes);
    }
    const struct shoal_entry given = {.name = entry->name,
                                      .name_bytes = entry->head.name_bytes,
                                      .ino = entry->head.ino,
                                      .cookie = entry->head.cookie,
                                      .type = entry->head.type,
                                      .attributes = plus ? &attributes : NULL};
    return asked->entry(asked->entry_context, &given);
}

static void readdir_emit(struct operation *operation) {
    const struct call *call = &operation->errand.call;

    while (operation->position < call->bulk_in.size) {
        struct listed_entry entry;
        int r = readdir_parse(operation, &entry);

        if (r) {
            readdir_fail(operation, r);
            return;
        }
        if (!readdir_overlay(operation, &entry)) {
            return;
        }
        if (readdir_give(operation, &entry)) {
            readdir_end(operation);
            return;
        }
        operation->count++;
        operation->position += entry.head.entry_bytes;
    }
    if (call->reply.readdir.end || call->bulk_in.size == 0) {
        readdir_end(operation);
    } else {
        operation->next = call->reply.readdir.next_cookie;
        readdir_send(operation);
    }
}

void op_readdir_step(struct operation *operation) {
    switch (operation->stage) {
    case READDIR_ENTER:
        readdir_enter(operation);
        break;
    case READDIR_ANSWERED:
        if (operation->result) {
            readdir_fail(operation, operation->result);
        } else {
            readdir_emit(operation);
        }
        break;
    case READDIR_EMIT:
        readdir_emit(operation);
        break;
    case READDIR_END:
        readdir_end(operation);
        break;
    }
}
