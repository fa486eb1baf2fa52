/* fsync: what was written is on disk, with the size that makes it visible.
 *
 *     settle -> storage targets that have something of the file, and the group, all at once
 *            -> was anything lost?
 *
 * Nothing is said before all of them have answered. Until then a power loss may leave the new size
 * without its bytes, which then read as zeros, as it may for a file that nobody syncs. A target
 * that has started anew since it acknowledged something says so before it answers the sync; so at
 * the end all losses are known.
 *
 * The first fsync of a handle asks every target of the file, for others may have written it and
 * closed it before. The next ones ask where this client has something that is not on disk. Who is
 * lost is not asked: what this client had there and not on disk is a loss, which is told of. */
#include "client/client_internal.h"
#include "client/fan.h"
#include "client/loss.h"
#include "client/settle.h"
#include <assert.h>

enum { FSYNC_ENTER, FSYNC_START, FSYNC_SETTLED, FSYNC_TARGETS };

static struct shoal_file *fsync_handle(struct operation *operation) {
    return operation_request(operation)->file;
}

static void fsync_finish(struct operation *operation, int result) {
    struct shoal_file *handle = fsync_handle(operation);

    assert(operation->file->fsyncs > 0 && operation->in_flight == 0);
    operation->file->fsyncs--;
    if (operation->file->gone) {
        result = -ERR_STALE;
    }
    if (result == 0) {
        handle->synced = true;
        result = loss_check(handle, true);
    }
    operation_finish(operation, result);
}

/* The last number is the group's. */
static bool fsync_send(struct operation *operation, struct errand *errand, uint32_t number) {
    const struct open_file *file = operation->file;

    if (number == operation->end - 1) {
        errand_start_slot(errand, OP_SYNC, ino_slot(file->ino));
        return true;
    }
    const struct peer *peer = loss_chunk_peer(file, number);
    uint64_t position = peer ? ledger_unsynced(&peer->ledger, file->ino) : 0;
    bool all = !fsync_handle(operation)->synced;

    if (peer && (atomic_load(&peer->is_lost) || (position == 0 && !all))) {
        return false;
    }
    errand->call.request.sync.position = all ? 0 : position;
    errand_start_chunk(errand, OP_SYNC, ino_slot(file->ino), &file->layout, number);
    return true;
}

/* Without its inode nobody finds what is on disk of a file. */
static int fsync_take(struct operation *operation, const struct errand *errand) {
    bool is_group = errand->route == ERRAND_TO_SLOT;

    return is_group ? errand->call.result : sync_take(operation, errand);
}

static void fsync_fan(struct operation *operation);

static void fsync_targets(struct operation *operation) {
    if (!fan_advance(operation, fsync_send, fsync_take)) {
        return;
    }
    if (operation->asked && operation->result == 0) {
        fsync_fan(operation); /* Now that the map names them all. */
        return;
    }
    fsync_finish(operation, operation->result);
}

/* Where the map does not name the file's pool version, its first chunk waits for one that does. */
static void fsync_fan(struct operation *operation) {
    operation->stage = FSYNC_TARGETS;
    operation->asked = loss_is_unnamed(operation->file);
    fan_start(operation, operation->asked ? 2 : loss_chunk_count(operation->file) + 1);
    fsync_targets(operation);
}

static void fsync_start(struct operation *operation) {
    operation->file->fsyncs++;
    file_leave(operation->file, operation);
    if (!file_is_owed(operation->file)) {
        fsync_fan(operation);
        return;
    }
    operation->stage = FSYNC_SETTLED;
    operation_settle(operation);
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
    case FSYNC_SETTLED:
        if (operation->result) {
            settle_failed(operation->file, &operation->errand.call);
            fsync_finish(operation, operation->result);
        } else if (operation_settled(operation)) {
            fsync_fan(operation);
        }
        break;
    case FSYNC_TARGETS:
        fsync_targets(operation);
        break;
    }
}
