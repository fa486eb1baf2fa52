/* lseek's SEEK_DATA and SEEK_HOLE: by the size known here, and by what the targets have.
 *
 * What lies with the inode is data, as far as it goes. A target that does not know the question has
 * data everywhere. */
#include "client/client_internal.h"
#include "client/fan.h"
#include "client/seek.h"
#include <assert.h>

enum { SEEK_ENTER, SEEK_START, SEEK_ASKED, SEEK_FAN };

/* operation->start: where from; reached: the first place that was told; error: stage of the fan. */
enum { FAN_ONE, FAN_NAMED, FAN_ALL };

static uint64_t seek_chunk(const struct operation *operation, uint32_t number) {
    return operation->start / operation->file->layout.chunk_bytes + number;
}

/* Chains of the file; 0: the map does not name its pool version. */
static uint32_t seek_width(const struct operation *operation) {
    const struct cluster_map *map = router_map(&operation->client->router);
    const struct layout *layout = &operation->file->layout;
    struct pool_version pool;

    return cluster_map_pool(map, layout->pool_version, &pool) ? layout_width(layout, &pool) : 0;
}

/* Behind the end, which may have moved since the seek began, there is nothing to ask about. */
static bool seek_is_behind(const struct operation *operation, uint64_t chunk) {
    const struct open_file *file = operation->file;
    uint64_t end = operation->what == WIRE_SEEK_ANY ? FILE_BYTES_MAX : file->size;
    uint32_t chunk_bytes = file->layout.chunk_bytes;

    return chunk >= (end + chunk_bytes - 1) / chunk_bytes;
}

/* The first chunks from there on lie on different chains; the answer of each tells of all that
 * follow it there. */
static bool seek_send(struct operation *operation, struct errand *errand, uint32_t number) {
    const struct open_file *file = operation->file;
    uint32_t chunk_bytes = file->layout.chunk_bytes;
    uint64_t chunk = seek_chunk(operation, number);

    if (seek_is_behind(operation, chunk)) {
        return false;
    }
    errand->call.request.chunk_seek = (struct chunk_seek_request){
        .capability = file->capability,
        .chunk = chunk,
        .chunk_bytes = chunk_bytes,
        .offset = number == 0 ? (uint32_t)(operation->start % chunk_bytes) : 0,
        .stride = MAX(seek_width(operation), 1U),
        .what = operation->what,
    };
    errand_start_chunk(errand, OP_CHUNK_SEEK, ino_slot(operation->ino), &file->layout, chunk);
    return true;
}

static int seek_take(struct operation *operation, const struct errand *errand) {
    const struct chunk_seek_request *asked = &errand->call.request.chunk_seek;
    const struct chunk_seek_reply *reply = &errand->call.reply.chunk_seek;
    bool older = errand->call.result == -ERR_NOT_SUPPORTED;

    if (older && operation->what != WIRE_SEEK_HOLE) {
        uint64_t place = asked->chunk * asked->chunk_bytes + asked->offset;

        operation->reached = MIN(operation->reached, place);
    } else if (errand->call.result == 0 && reply->found) {
        operation->reached = MIN(operation->reached, reply->offset);
    }
    return older ? 0 : errand->call.result;
}

static void seek_fan(struct operation *operation, uint32_t count) {
    operation->truncate_seq = operation->file->capability.truncate_seq;
    fan_start(operation, count);
}

void seek_start(struct operation *operation, uint32_t what, uint64_t from) {
    operation->what = what;
    operation->start = from;
    operation->reached = UINT64_MAX;
    operation->error = seek_width(operation) == 0 ? FAN_NAMED : FAN_ONE;
    seek_fan(operation, 1);
}

uint64_t seek_place(const struct operation *operation) {
    return operation->reached;
}

bool seek_advance(struct operation *operation) {
    if (!fan_advance(operation, seek_send, seek_take)) {
        return false;
    }
    uint64_t behind = (seek_chunk(operation, 0) + 1) * operation->file->layout.chunk_bytes;

    if (operation->result == 0 && operation->error == FAN_NAMED &&
        !seek_is_behind(operation, seek_chunk(operation, 0))) {
        /* Now that the map names them all, as that chunk has waited for one that does. */
        seek_start(operation, operation->what, operation->start);
        return seek_advance(operation);
    }
    if (operation->result == 0 && operation->error == FAN_ONE && operation->reached >= behind &&
        seek_width(operation) > 1) {
        operation->error = FAN_ALL;
        operation->reached = UINT64_MAX;
        seek_fan(operation, seek_width(operation));
        return seek_advance(operation);
    }
    return true;
}

static void seek_finish(struct operation *operation, int64_t result) {
    file_leave(operation->file, operation);
    operation_finish(operation, result);
}

static void seek_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);

    if (asked->file->flags & SHOAL_OPEN_DIRECTORY) {
        operation_finish(operation, -ERR_BAD_HANDLE);
    } else if (asked->flags != SHOAL_SEEK_DATA && asked->flags != SHOAL_SEEK_HOLE) {
        operation_finish(operation, -ERR_INVALID);
    } else {
        operation->file = asked->file->file;
        file_pin(operation->file);
        operation->stage = SEEK_START;
        file_enter(operation->file, operation, FILE_NEEDS_READ);
    }
}

/* A place behind the end is none, and at the end there is a hole. */
static void seek_found(struct operation *operation, uint64_t place) {
    const struct open_file *file = operation->file;
    bool hole = operation_request(operation)->flags == SHOAL_SEEK_HOLE;

    if (operation_request(operation)->offset >= file->size || (!hole && place >= file->size)) {
        seek_finish(operation, -ERR_NO_DATA);
    } else {
        seek_finish(operation, (int64_t)MIN(place, file->size));
    }
}

static void seek_inline(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct open_file *file = operation->file;
    bool empty = file->attributes.data_state == DATA_EMPTY;
    uint64_t end = empty ? 0 : MIN(file->size, (uint64_t)INLINE_BYTES_MAX);
    bool hole = asked->flags == SHOAL_SEEK_HOLE;

    if (asked->offset < end) {
        seek_found(operation, hole ? end : asked->offset);
    } else {
        seek_found(operation, hole ? asked->offset : UINT64_MAX);
    }
}

static void seek_chunks(struct operation *operation) {
    if (!seek_advance(operation)) {
        return;
    }
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = SEEK_START;
        file_renew(operation->file, operation);
    } else if (operation->result) {
        seek_finish(operation, operation->result);
    } else {
        seek_found(operation, operation->reached);
    }
}

static void seek_begin(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct open_file *file = operation->file;
    bool hole = asked->flags == SHOAL_SEEK_HOLE;

    if (operation->result || file->gone) {
        seek_finish(operation, operation->result ? operation->result : -ERR_STALE);
    } else if (!operation->asked && file_is_old(file, operation_began_ns(operation))) {
        operation_look(operation, SEEK_ASKED);
    } else if (asked->offset >= file->size) {
        seek_finish(operation, -ERR_NO_DATA);
    } else if (file->attributes.data_state != DATA_CHUNKED) {
        seek_inline(operation);
    } else if (file_needs_renewal(file) && operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = SEEK_START;
        file_renew(file, operation);
    } else {
        operation->stage = SEEK_FAN;
        seek_start(operation, hole ? WIRE_SEEK_HOLE : WIRE_SEEK_DATA, asked->offset);
        seek_chunks(operation);
    }
}

void op_seek_step(struct operation *operation) {
    switch (operation->stage) {
    case SEEK_ENTER:
        seek_enter(operation);
        break;
    case SEEK_ASKED:
        operation_looked(operation);
        operation->stage = SEEK_START;
        seek_begin(operation);
        break;
    case SEEK_START:
        seek_begin(operation);
        break;
    case SEEK_FAN:
        seek_chunks(operation);
        break;
    }
}
