/* The way of a file from its inode to chunks; the picture is in convert.h. */
#include "client/convert.h"
#include "base/crc32c.h"
#include "client/client_internal.h"
#include <assert.h>

enum convert_stage {
    CONVERT_BEGIN = CONVERT_STAGES,
    CONVERT_BEGUN,
    CONVERT_WRITTEN,
    CONVERT_SYNCED,
    CONVERT_COMMITTED
};

static void convert_finish(struct operation *operation, int result) {
    if (operation->piece) {
        piece_put(&operation->shard->pieces, operation->piece);
        operation->piece = NULL;
    }
    if (result == 0) {
        atomic_fetch_add_explicit(&operation->shard->conversions, 1, memory_order_relaxed);
    }
    operation->result = result;
    operation->stage = CONVERT_RETURNS_TO;
    operation->step(operation);
}

static void convert_begin(struct operation *operation) {
    struct call *call;

    assert(operation->file->alone == operation && operation->in_flight == 0);
    if (!operation->piece) {
        operation->piece = piece_get(&operation->shard->pieces, operation);
    }
    if (!operation->piece) {
        return; /* Comes back with CONVERT_BEGIN when there is one. */
    }
    operation->stage = CONVERT_BEGUN;
    call = operation_prepare(operation);
    call->request.inline_convert = (struct inline_convert_request){
        .ino = operation->ino,
        .stage = INLINE_CONVERT_BEGIN,
        .truncate_seq = operation->file->capability.truncate_seq,
        .size = operation->file->size,
    };
    call->bulk_in =
        (struct buffer){.data = operation->piece->data, .capacity = sizeof operation->piece->data};
    operation_call(operation, OP_INLINE_CONVERT, operation->ino);
}

static void convert_commit(struct operation *operation, bool synced) {
    struct call *call = operation_prepare(operation);

    assert(operation->piece && operation->file->alone == operation);
    operation->stage = CONVERT_COMMITTED;
    call->request.inline_convert = (struct inline_convert_request){
        .ino = operation->ino,
        .stage = INLINE_CONVERT_COMMIT,
        .truncate_seq = operation->file->capability.truncate_seq,
        .size = operation->file->size,
        .inline_epoch = operation->next,
        .generation = operation->capability.generation,
        .synced = synced,
    };
    operation_call(operation, OP_INLINE_CONVERT, operation->ino);
}

static void convert_write(struct operation *operation, size_t size) {
    struct open_file *file = operation->file;
    const uint8_t *data = operation->piece->data;
    struct call *call = operation_prepare(operation);

    operation->stage = CONVERT_WRITTEN;
    operation->losses = atomic_load(&operation->client->router.losses);
    operation->checksums[0] = crc32c(0, data, size);
    call->request.chunk_write = (struct chunk_write_request){
        .capability = operation->capability,
        .chunk_bytes = operation->layout.chunk_bytes,
        .size = (uint32_t)size,
    };
    call->bulk_out[0] = (struct bytes){data, size};
    call->bulk_out_count = 1;
    call->checksums = operation->checksums;
    call->checksum_count = 1;
    errand_start_chunk(&operation->errand, OP_CHUNK_WRITE, ino_slot(file->ino), &operation->layout,
                       0);
}

static void convert_sync(struct operation *operation) {
    operation->stage = CONVERT_SYNCED;
    operation_prepare(operation);
    errand_start_chunk(&operation->errand, OP_SYNC, ino_slot(operation->ino), &operation->layout,
                       0);
}

/* Whether the target has lost power since it was written to: what the sync has put on disk is not
 * what was written then, and with the commit the inode's bytes would go. */
static bool convert_is_lost(const struct operation *operation) {
    const struct ledger *ledger = &operation->errand.peer->ledger;

    return ledger_loss(ledger, operation->ino, operation->losses, operation->losses) > 0;
}

/* Whether the file is chunked now; if so, the capability is its own. The one of a conversion that
 * has only begun names a generation that may never be the file's, and its layout is of that alone:
 * the COMMIT is refused if somebody has set another one since. */
static bool convert_learn(struct operation *operation) {
    const struct inline_convert_reply *reply = &operation->errand.call.reply.inline_convert;
    struct open_file *file = operation->file;

    file_see(file, &reply->attributes);
    if (reply->attributes.data_state != DATA_CHUNKED) {
        operation->capability = reply->capability;
        operation->layout = layout_is_valid(&reply->layout) ? reply->layout : file->layout;
        return false;
    }
    file_is_chunked(file);
    file_see_capability(file, &reply->capability, &reply->layout);
    return true;
}

void convert_start(struct operation *operation) {
    if (file_untouched_take(operation->file)) {
        operation->result = 0;
        convert_finish(operation, 0);
        return;
    }
    operation->stage = CONVERT_BEGIN;
    convert_begin(operation);
}

/* A term that is over may have lost what it has said: the next one says how far the file is. */
static void convert_begun(struct operation *operation) {
    const struct call *call = &operation->errand.call;

    if (errand_is_over(&operation->errand)) {
        convert_start(operation);
        return;
    }
    if (convert_learn(operation)) {
        convert_finish(operation, 0);
        return;
    }
    operation->next = call->reply.inline_convert.attributes.epoch;
    if (call->bulk_in.size == 0) {
        convert_commit(operation, false);
    } else {
        convert_write(operation, call->bulk_in.size);
    }
}

static void convert_again(struct operation *operation, int why) {
    if (operation->renewals++ >= OPERATION_RENEWALS_MAX) {
        convert_finish(operation, why);
    } else {
        operation->stage = CONVERT_BEGIN;
        convert_begin(operation);
    }
}

void convert_step(struct operation *operation) {
    int r = operation->result;

    if (operation->stage != CONVERT_BEGIN &&
        (r == -ERR_CONFLICT || (r == -ERR_BAD_CAPABILITY && operation->stage != CONVERT_BEGUN))) {
        convert_again(operation, r == -ERR_CONFLICT ? -ERR_BUSY : r);
        return;
    }
    if (operation->stage != CONVERT_BEGIN && r) {
        convert_finish(operation, r);
        return;
    }
    switch ((enum convert_stage)operation->stage) {
    case CONVERT_BEGIN:
        convert_begin(operation);
        break;
    case CONVERT_BEGUN:
        convert_begun(operation);
        break;
    case CONVERT_WRITTEN:
        if ((operation->capability.rights & RIGHT_SYNC_FIRST) || operation->file->fsyncs > 0) {
            convert_sync(operation);
        } else {
            convert_commit(operation, false);
        }
        break;
    case CONVERT_SYNCED:
        if (convert_is_lost(operation)) {
            convert_again(operation, -ERR_IO);
        } else {
            convert_commit(operation, true);
        }
        break;
    case CONVERT_COMMITTED:
        if (errand_is_over(&operation->errand)) {
            convert_start(operation);
            break;
        }
        (void)convert_learn(operation);
        convert_finish(operation, 0);
        break;
    }
}
