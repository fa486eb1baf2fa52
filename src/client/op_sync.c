/* fsync: what was written is on disk, with the size that makes it visible.
 *
 *     storage targets of the chunks written since the last one -> settle -> the group
 *
 * In this order, so that after a power loss the size never speaks of bytes that are not there. */
#include "client/client_internal.h"
#include "client/fan.h"
#include "client/settle.h"

enum { FSYNC_ENTER, FSYNC_START, FSYNC_CHUNKS, FSYNC_SETTLED, FSYNC_GROUP };

static void fsync_finish(struct operation *operation, int result) {
    struct open_file *file = operation->file;

    /* What is not known to be on disk is owed to the next one. */
    if (result) {
        chunk_range_add(&file->unsynced,
                        (struct chunk_range){operation->start, operation->reached});
    }
    file->syncs_in_flight--;
    if (file->syncs_in_flight == 0) {
        file->syncing = (struct chunk_range){0};
    }
    operation_finish(operation, result);
}

static void fsync_group(struct operation *operation) {
    operation->stage = FSYNC_GROUP;
    operation_prepare(operation);
    operation_call(operation, OP_SYNC, operation->ino);
}

static void fsync_settle(struct operation *operation) {
    if (!file_is_owed(operation->file)) {
        fsync_group(operation);
        return;
    }
    operation->stage = FSYNC_SETTLED;
    settle_fill(operation, operation_prepare(operation), 0);
    operation_call(operation, OP_SETTLE, operation->ino);
}

static void fsync_send(struct operation *operation, struct errand *errand, uint32_t number) {
    const struct open_file *file = operation->file;
    uint32_t chain;

    if (router_chunk(&operation->client->router, &file->layout, operation->start + number,
                     &chain)) {
        chain = UINT32_MAX; /* Which no map has: it waits for a map that knows the file's pool. */
    }
    errand_start_chain(errand, OP_SYNC, ino_slot(file->ino), chain);
}

static void fsync_chunks(struct operation *operation) {
    if (!fan_advance(operation, fsync_send, NULL)) {
        return;
    }
    if (operation->result) {
        fsync_finish(operation, operation->result);
    } else {
        fsync_settle(operation);
    }
}

/* Who wrote the file, and closed it, may not have synced it: so the first one after an open is
 * about all of it. One that another overtakes is about what that has not finished, too. */
static struct chunk_range fsync_range(struct open_file *file) {
    struct chunk_range range = file->unsynced;

    if (!file->old_synced && file->attributes.data_state == DATA_CHUNKED && file->size > 0) {
        uint64_t count = (file->size - 1) / file->layout.chunk_bytes + 1;

        chunk_range_add(&range, (struct chunk_range){0, count});
    }
    chunk_range_add(&range, file->syncing);
    return range;
}

/* Neighbouring chunks lie on different chains, so no more chunks than chains need to be named. */
static void fsync_start(struct operation *operation) {
    const struct cluster_map *map = router_map(&operation->client->router);
    struct open_file *file = operation->file;
    struct chunk_range range = fsync_range(file);
    uint64_t count = range.to - range.from;

    operation->start = range.from;
    operation->reached = range.to;
    file->old_synced = true; /* or owed to the next one */
    file->unsynced = (struct chunk_range){0};
    file->syncing = range;
    file->syncs_in_flight++;
    if (count == 0) {
        file_leave(file, operation);
        fsync_settle(operation);
        return;
    }
    operation->stage = FSYNC_CHUNKS;
    fan_start(operation, (uint32_t)MIN(count, layout_width(&file->layout, &map->pool)));
    file_leave(file, operation);
    fsync_chunks(operation);
}

static void fsync_enter(struct operation *operation) {
    if (operation->ino.value == INO_ROOT.value) {
        operation->step = op_everywhere_step;
        operation->step(operation);
        return;
    }
    operation->file = operation_request(operation)->file->file;
    file_pin(operation->file);
    operation->stage = FSYNC_START;
    file_enter(operation->file, operation, FILE_NEEDS_QUIET);
}

void op_fsync_step(struct operation *operation) {
    switch (operation->stage) {
    case FSYNC_ENTER:
        fsync_enter(operation);
        break;
    case FSYNC_START:
        fsync_start(operation);
        break;
    case FSYNC_CHUNKS:
        fsync_chunks(operation);
        break;
    case FSYNC_SETTLED:
        if (operation->result) {
            fsync_finish(operation, operation->result);
        } else {
            settle_done(operation);
            fsync_group(operation);
        }
        break;
    case FSYNC_GROUP:
        fsync_finish(operation, operation->result);
        break;
    }
}
