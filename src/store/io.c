/* Operations of the data file: their pool, bounce buffers, and blocks that merges need whole.
 *
 * env calls done on the thread that submitted; the OST may be run by another one by then, so done
 * posts the operation to the actor as a message. */
#include "base/crc32c.h"
#include "store/operations.h"
#include <assert.h>
#include <inttypes.h>

struct ost_io *ost_io_get(struct ost *ost, enum ost_io_need need) {
    uint32_t left = need == OST_IO_OF_SYNC ? 0 : OST_SYNC_IO_MAX;
    bool bounces = need == OST_IO_BOUNCED;

    assert((ost->free_io_count == 0) == list_is_empty(&ost->free_ios));
    if (ost->free_io_count <= left || (bounces && ost->free_bounce_count == 0)) {
        return NULL;
    }
    struct list_node *node = list_pop_front(&ost->free_ios);
    struct ost_io *io = CONTAINER_OF(node, struct ost_io, node);

    ost->free_io_count--;
    io->bounce = bounces ? ost->free_bounces[--ost->free_bounce_count] : NULL;
    ost->counters.bounces += bounces;
    return io;
}

void ost_io_put(struct ost *ost, struct ost_io *io) {
    struct list_node *node;

    assert(ost->free_io_count < ost->options.io_max);
    if (io->bounce) {
        assert(ost->free_bounce_count < ost->options.bounce_max);
        ost->free_bounces[ost->free_bounce_count++] = io->bounce;
        io->bounce = NULL;
    }
    list_push_front(&ost->free_ios, &io->node);
    ost->free_io_count++;
    while ((node = list_pop_front(&ost->io_waiting))) {
        request_ready(ost, CONTAINER_OF(node, struct request, node));
    }
}

static void io_done(struct env_io *env_io, int result) {
    struct ost_io *io = env_io->context;

    io->result = result;
    if (result == 0 && env_io->kind == ENV_IO_READ && env_io->ret_size != env_io->size) {
        io->result = -ERR_IO; /* The data file ends before a block that is in use. */
    }
    actor_post(&io->ost->actor, &io->message);
}

void ost_io_start(struct ost *ost, struct ost_io *io) {
    assert(((uintptr_t)io->io.buffer | io->io.offset | io->io.size) % BLOCK_BYTES == 0);
    io->ost = ost;
    io->io.file = ost->file;
    io->io.done = io_done;
    io->io.context = io;
    io->message = (struct message){.kind = OST_MESSAGE_IO, .message_class = MESSAGE_CONTROL};
    ost->counters.disk_reads += io->io.kind == ENV_IO_READ;
    ost->counters.disk_writes += io->io.kind == ENV_IO_WRITE;
    env_io_submit(ost->env, &io->io);
}

void request_io_start(struct ost *ost, struct request *request, struct ost_io *io) {
    io->owner = request;
    request->io_pending++;
    request_disk_begins(ost, request);
    ost_io_start(ost, io);
}

void request_io_end(struct ost *ost, struct request *request, struct ost_io *io, int result) {
    assert(request->io_pending > 0 && request->call && io->owner == request);
    ost_io_put(ost, io);
    request->io_pending--;
    if (result < 0 && request->io_result == 0) {
        request->io_result = result;
    }
    request_ready(ost, request);
}

const uint8_t *block_in_memory(struct ost *ost, uint64_t block) {
    const uint8_t *data = small_find(&ost->small, block);

    return data ? data : block_cache_find(&ost->cache, block);
}

int block_corrupt(struct ost *ost, const struct chunk_id *id, uint64_t block) {
    ost->counters.corrupt_blocks++;
    ost_log(ost,
            "target %" PRIu32 ": block %" PRIu64 ", of chunk %" PRIu64 " of inode %#" PRIx64
            ", does not match its checksum; reads of it fail: restore the file from a copy, and "
            "check the disk",
            ost->options.target.value, block, id->chunk, id->ino.value);
    return -ERR_CORRUPT;
}

static void edge_finished(struct ost *ost, struct ost_io *io) {
    struct request *request = io->owner;
    struct edge *edge = &request->edges[io->index];
    int result = io->result;

    assert(edge->state == EDGE_LOADING && request->is_pinned);
    if (result == 0 && crc32c(0, edge->data, BLOCK_BYTES) != edge->crc) {
        result = block_corrupt(ost, &request->id, edge->block);
    }
    edge->state = result == 0 ? EDGE_LOADED : EDGE_FAILED;
    edge->result = result;
    if (result == 0) {
        block_cache_insert(&ost->cache, edge->block, edge->data);
    }
    request_io_end(ost, request, io, 0); /* What it means is for who asks for the block. */
}

static int edge_load(struct ost *ost, struct request *request, unsigned which,
                     struct block_entry entry) {
    struct edge *edge = &request->edges[which];
    struct ost_io *io = ost_io_get(ost, OST_IO_PLAIN);

    if (!io) {
        request_wait(request, &ost->io_waiting);
        return REQUEST_WAITS;
    }
    request_pin(ost, request);
    edge->state = EDGE_LOADING;
    edge->block = entry.block;
    edge->crc = entry.crc;
    io->index = which;
    io->finished = edge_finished;
    io->io = (struct env_io){.kind = ENV_IO_READ,
                             .offset = entry.block * BLOCK_BYTES,
                             .buffer = edge->data,
                             .size = BLOCK_BYTES};
    ost->counters.merge_reads++;
    request_io_start(ost, request, io);
    return REQUEST_WAITS;
}

int edge_get(struct ost *ost, struct request *request, unsigned which, struct block_entry entry,
             const uint8_t **ret_data) {
    struct edge *edge = &request->edges[which];
    const uint8_t *data = block_in_memory(ost, entry.block);

    assert(edge->state == EDGE_EMPTY || request->is_pinned);
    if (edge->state == EDGE_LOADED && edge->block == entry.block) {
        data = edge->data;
    }
    if (edge->state == EDGE_LOADING) {
        return REQUEST_WAITS;
    }
    if (edge->state == EDGE_FAILED && edge->block == entry.block && edge->crc == entry.crc) {
        return edge->result;
    }
    if (!data) {
        return edge_load(ost, request, which, entry);
    }
    if (crc32c(0, data, BLOCK_BYTES) != entry.crc) {
        return block_corrupt(ost, &request->id, entry.block);
    }
    *ret_data = data;
    return 0;
}

void edges_forget(struct request *request) {
    for (size_t i = 0; i < REQUEST_EDGES; i++) {
        if (request->edges[i].state != EDGE_LOADING) {
            request->edges[i].state = EDGE_EMPTY;
        }
    }
}
