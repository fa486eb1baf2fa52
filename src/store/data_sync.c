/* Sync points, our part: small writes up to the cut go to their blocks, then the data file is
 * flushed. Direct writes were complete before their records, so the flush covers them.
 *
 *     kv: data_sync hook -> runs of small blocks, up to 32 I/Os in flight -> flush
 *         -> kv_data_synced -> log -> synced hook -> freed blocks may be used again */
#include "store/operations.h"
#include "base/bug.h"
#include <assert.h>

static void data_sync_finish(struct ost *ost, int result) {
    assert(ost->sync.running && ost->sync.io_pending == 0);
    ost->sync.running = false;
    kv_data_synced(ost->kv, result);
    ost->kv_due = true;
}

static void flush_finished(struct ost *ost, struct ost_io *io) {
    int result = io->result;

    assert(ost->sync.flushing && ost->sync.io_pending == 0);
    ost_io_put(ost, io);
    data_sync_finish(ost, result);
}

static void write_finished(struct ost *ost, struct ost_io *io) {
    assert(ost->sync.running && !ost->sync.flushing && ost->sync.io_pending > 0);
    if (io->result < 0 && ost->sync.result == 0) {
        ost->sync.result = io->result;
    }
    ost_io_put(ost, io);
    ost->sync.io_pending--;
    data_sync_step(ost);
}

static void span_write(struct ost *ost, struct ost_io *io, const struct small_span *span) {
    io->finished = write_finished;
    io->io = (struct env_io){.kind = ENV_IO_WRITE,
                             .offset = span->block * BLOCK_BYTES,
                             .buffer = span->data,
                             .size = (size_t)span->block_count * BLOCK_BYTES};
    ost->sync.io_pending++;
    ost->counters.sync_writes++;
    ost->counters.sync_blocks += span->block_count;
    ost_io_start(ost, io);
}

/* They are on their way to the disk's memory; reads find them there. What a few bytes more may soon
 * be written to, or read from, is kept. */
static void small_forget(struct ost *ost) {
    uint64_t block;

    while (ost->small.count > 0) {
        const struct small_entry *oldest = &ost->small.entries[ost->small.first];

        if (oldest->position > ost->sync.cut) {
            break;
        }
        if (oldest->soon) {
            block_cache_insert(&ost->cache, oldest->block,
                               kv_data_at(ost->kv, oldest->ring_offset, BLOCK_BYTES));
        }
        if (!small_drop(&ost->small, ost->sync.cut, &block)) {
            break;
        }
    }
}

static void data_flush(struct ost *ost) {
    struct ost_io *io = ost_io_get(ost, OST_IO_OF_SYNC);

    assert(io);
    ost->sync.flushing = true;
    io->finished = flush_finished;
    io->io = (struct env_io){.kind = ENV_IO_SYNC};
    ost_io_start(ost, io);
}

void data_sync_step(struct ost *ost) {
    struct data_sync *sync = &ost->sync;
    struct small_span span;

    assert(sync->running && !sync->flushing && sync->io_pending <= OST_SYNC_IO_MAX);
    while (sync->result == 0 && sync->io_pending < OST_SYNC_IO_MAX) {
        uint32_t at = sync->at;

        if (!small_next(&ost->small, &at, sync->cut, OST_SYNC_IO_BLOCKS, &span)) {
            break;
        }
        struct ost_io *io = ost_io_get(ost, OST_IO_OF_SYNC);
        if (!io) {
            assert(sync->io_pending > 0);
            return;
        }
        sync->at = at;
        span_write(ost, io, &span);
    }
    if (sync->io_pending > 0) {
        return;
    }
    if (sync->result < 0) {
        data_sync_finish(ost, sync->result);
        return;
    }
    uint32_t above = ost->small.count - sync->at;

    small_forget(ost);
    assert(ost->small.count == above); /* What was written is what is forgotten. */
    if (BUG(EARLY_RECORD)) {
        data_sync_finish(ost, 0);
        return;
    }
    data_flush(ost);
}

void data_sync_start(struct ost *ost, uint64_t cut) {
    assert(!ost->sync.running && ost->sync.io_pending == 0 && cut >= ost->sync.cut);
    ost->sync = (struct data_sync){.running = true, .cut = cut};
    ost->direct_bytes = 0;
    data_sync_step(ost);
}

enum { SYNC_START, SYNC_WAIT };

void sync_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;

    if (request->stage == SYNC_START) {
        uint64_t newest = kv_seal(ost->kv);
        uint64_t position = call->request.sync.position;

        /* A position of a longer log than ours was lost with a power failure, or is nonsense. */
        request->stage = SYNC_WAIT;
        request_sync(ost, request, position == 0 ? newest : MIN(position, newest));
        return;
    }
    call->reply.sync.synced_position = kv_synced_position(ost->kv);
    request_finish(ost, request, request->sync_result);
}
