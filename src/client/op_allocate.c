/* allocate: promised space, holes, zeros.
 *
 *     mode 0, KEEP_SIZE   PROMISE ---------> size, settle --> done
 *     ZERO_RANGE          PROMISE -> ZERO -> size, settle --> done
 *     PUNCH_HOLE          PUNCH ----------------------------> done
 *                            '--error--> UNDO (of a promise) -> the error
 *
 * Each is a pass over the range, a call a chunk or piece of one, under a name by which UNDO knows
 * what this call has added. A pass that met a stale capability begins anew as a whole: nothing is
 * added or punched twice. The size is told as a write's end would be, so that nothing is cut.
 *
 * Where a file may have many chunks that are not there, PUNCH asks for the next one that is. */
#include "client/client_internal.h"
#include "client/convert.h"
#include "client/data.h"
#include "client/settle.h"
#include "client/seek.h"
#include <assert.h>

enum {
    ALLOCATE_ENTER,
    ALLOCATE_START = CONVERT_RETURNS_TO,
    ALLOCATE_ASKED,
    ALLOCATE_KILLED,
    ALLOCATE_INLINE,
    ALLOCATE_SKIP,
    ALLOCATE_PASS,
    ALLOCATE_UNDO,
    ALLOCATE_SETTLED
};

/* Of a punch that is larger the chunks that are there are asked for, as many at a time. */
enum { PUNCH_CHUNKS = 64 };

enum { ALLOCATE_FLAGS = SHOAL_KEEP_SIZE | SHOAL_PUNCH_HOLE | SHOAL_ZERO_RANGE };

static const uint8_t zeros[INLINE_BYTES_MAX];

static void allocate_finish(struct operation *operation, int result) {
    file_leave(operation->file, operation);
    operation_finish(operation, result);
}

static bool allocate_has(struct operation *operation, uint32_t flag) {
    return (operation_request(operation)->flags & flag) != 0;
}

static bool flags_are_good(uint32_t flags) {
    bool punch = flags & SHOAL_PUNCH_HOLE;

    return !(flags & ~(uint32_t)ALLOCATE_FLAGS) &&
           (!punch || flags == ((uint32_t)SHOAL_PUNCH_HOLE | (uint32_t)SHOAL_KEEP_SIZE));
}

static void allocate_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);

    if (!(asked->file->flags & SHOAL_OPEN_WRITE)) {
        operation_finish(operation, -ERR_BAD_HANDLE);
    } else if (asked->size == 0) {
        operation_finish(operation, -ERR_INVALID);
    } else if (!flags_are_good(asked->flags)) {
        operation_finish(operation, -ERR_NOT_SUPPORTED);
    } else if (asked->offset > FILE_BYTES_MAX || asked->size > FILE_BYTES_MAX - asked->offset) {
        operation_finish(operation, -ERR_FILE_TOO_BIG);
    } else {
        operation->stage = ALLOCATE_START;
        operation->file = asked->file->file;
        file_pin(operation->file);
        file_enter(operation->file, operation, FILE_NEEDS_ALL);
    }
}

/* Bytes that lie with the inode become zeros; behind them are none. */
static void allocate_inline(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    uint64_t stored = MIN(operation->file->size, (uint64_t)INLINE_BYTES_MAX);
    uint64_t end = MIN(asked->offset + asked->size, stored);
    struct call *call;

    if (operation->file->attributes.data_state != DATA_INLINE || asked->offset >= end) {
        allocate_finish(operation, 0);
        return;
    }
    operation->stage = ALLOCATE_INLINE;
    call = operation_prepare(operation);
    call->request.inline_write =
        (struct inline_write_request){.ino = operation->ino,
                                      .offset = asked->offset,
                                      .data = {zeros, (size_t)(end - asked->offset)}};
    operation_call(operation, OP_INLINE_WRITE, operation->ino);
}

static void allocate_start(struct operation *operation);

static void allocate_inline_answered(struct operation *operation) {
    const struct inline_write_reply *reply = &operation->errand.call.reply.inline_write;
    struct open_file *file = operation->file;

    if (operation->result) {
        allocate_finish(operation, operation->result);
        return;
    }
    if (!errand_is_over(&operation->errand)) {
        file_see(file, &reply->attributes);
        file_see_capability(file, &reply->capability, NULL);
    }
    if (reply->attributes.data_state == DATA_CHUNKED) {
        file_is_chunked(file);
        allocate_start(operation);
    } else {
        allocate_finish(operation, 0);
    }
}

static void allocate_pass(struct operation *operation);
static void allocate_fail(struct operation *operation, int error);

/* The next part of a pass: all of it, or of a punch as many chunks as are asked for at a time. */
static void allocate_next(struct operation *operation, uint32_t what, uint64_t from) {
    const struct shoal_request *asked = operation_request(operation);
    uint64_t end = asked->offset + asked->size;
    uint64_t chunk_bytes = operation->file->layout.chunk_bytes;

    operation->what = what;
    operation->stage = ALLOCATE_PASS;
    if (what == SPACE_PUNCH || what == SPACE_ZERO) {
        file_blocks_unsure(operation->file);
    }
    if (what == SPACE_PUNCH) {
        end = MIN(end, (from / chunk_bytes + PUNCH_CHUNKS) * chunk_bytes);
    } else if (what == SPACE_UNDO) {
        end = operation->count;
    }
    data_start(operation, from, end);
    allocate_pass(operation);
}

/* How far a punch is: where the next chunk is that has anything. */
static void allocate_skip(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    uint64_t end = asked->offset + asked->size;
    uint64_t place;

    if (!seek_advance(operation)) {
        return;
    }
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = ALLOCATE_START;
        file_renew(operation->file, operation);
        return;
    }
    place = seek_place(operation);
    if (operation->result || place >= end) {
        if (operation->result == 0) {
            file_wrote(operation->file, 0, operation->truncate_seq);
        }
        allocate_finish(operation, operation->result);
        return;
    }
    allocate_next(operation, SPACE_PUNCH, MAX(place, operation->count));
}

static void punch_from(struct operation *operation, uint64_t from) {
    const struct shoal_request *asked = operation_request(operation);
    uint64_t chunk_bytes = operation->file->layout.chunk_bytes;

    operation->count = from;
    if ((asked->offset + asked->size - from) / chunk_bytes < PUNCH_CHUNKS) {
        allocate_next(operation, SPACE_PUNCH, from);
        return;
    }
    operation->stage = ALLOCATE_SKIP;
    seek_start(operation, WIRE_SEEK_ANY, from);
    allocate_skip(operation);
}

static void allocate_start(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct open_file *file = operation->file;
    bool punches = allocate_has(operation, SHOAL_PUNCH_HOLE);

    if (file->gone) {
        allocate_finish(operation, operation->result ? operation->result : -ERR_STALE);
    } else if (operation->result) {
        allocate_fail(operation, operation->result);
    } else if (!operation->asked && (file_is_old(file, operation_began_ns(operation)) ||
                                     file->attributes.data_state != DATA_CHUNKED)) {
        operation_look(operation, ALLOCATE_ASKED);
    } else if (write_kills(operation) && !operation->killed) {
        write_kill(operation, ALLOCATE_KILLED);
    } else if (file->attributes.data_state != DATA_CHUNKED && punches) {
        allocate_inline(operation);
    } else if (file->attributes.data_state != DATA_CHUNKED) {
        convert_start(operation);
    } else if (file_needs_renewal(file) && operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = ALLOCATE_START;
        file_renew(file, operation);
    } else if (punches) {
        punch_from(operation, asked->offset);
    } else {
        allocate_next(operation, SPACE_PROMISE, asked->offset);
    }
}

/* Size and time go as a write's, and at once: of a promise no target could tell the size, were this
 * client to die. */
static void allocate_done(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    bool grows = !allocate_has(operation, SHOAL_KEEP_SIZE) &&
                 asked->offset + asked->size > operation->file->size;

    uint64_t end = grows ? asked->offset + asked->size : 0;

    file_wrote(operation->file, data_end(operation, end), operation->truncate_seq);
    if (!grows) {
        allocate_finish(operation, 0);
        return;
    }
    operation->stage = ALLOCATE_SETTLED;
    file_leave(operation->file, operation);
    operation_settle(operation);
}

/* A pass that ended with an error: how far any has asked for room. */
static void allocate_note(struct operation *operation) {
    if (!allocate_has(operation, SHOAL_PUNCH_HOLE)) {
        uint64_t end = operation->what == SPACE_PROMISE ? operation->next : operation->end;

        operation->count = MAX(operation->count, end);
    }
}

/* What was asked for, up to where, is taken back. */
static void allocate_fail(struct operation *operation, int error) {
    uint64_t from = operation_request(operation)->offset;

    operation->error = error;
    if (allocate_has(operation, SHOAL_PUNCH_HOLE) || operation->count <= from) {
        allocate_finish(operation, error);
    } else {
        allocate_next(operation, SPACE_UNDO, from);
    }
}

static void allocate_undone(struct operation *operation) {
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = ALLOCATE_UNDO;
        file_renew(operation->file, operation);
    } else {
        allocate_finish(operation, operation->error);
    }
}

/* As long as it goes on it may take: a range can have any number of chunks. */
static void allocate_pass(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct client_options *options = &operation->client->options;

    operation->deadline_ns = env_now_ns(options->env) + options->request_timeout_ns;
    if (!data_advance(operation)) {
        return;
    }
    if (operation->what == SPACE_UNDO) {
        allocate_undone(operation);
        return;
    }
    if (operation->what == SPACE_PUNCH || operation->what == SPACE_ZERO) {
        file_may_have_changed(operation->file);
    }
    if (operation->result) {
        allocate_note(operation);
    }
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = ALLOCATE_START;
        file_renew(operation->file, operation);
    } else if (operation->result) {
        allocate_fail(operation, operation->result);
    } else if (operation->what == SPACE_PROMISE && allocate_has(operation, SHOAL_ZERO_RANGE)) {
        allocate_next(operation, SPACE_ZERO, asked->offset);
    } else if (operation->what == SPACE_PUNCH && operation->end < asked->offset + asked->size) {
        punch_from(operation, operation->end);
    } else {
        allocate_done(operation);
    }
}

static void allocate_settled(struct operation *operation) {
    if (operation->result) {
        settle_failed(operation->file, &operation->errand.call);
        operation_finish(operation, operation->result);
    } else if (operation_settled(operation)) {
        operation_finish(operation, 0);
    }
}

void op_allocate_step(struct operation *operation) {
    if (convert_owns(operation)) {
        convert_step(operation);
        return;
    }
    switch (operation->stage) {
    case ALLOCATE_ENTER:
        allocate_enter(operation);
        break;
    case ALLOCATE_ASKED:
        operation_looked(operation);
        operation->stage = ALLOCATE_START;
        allocate_start(operation);
        break;
    case ALLOCATE_KILLED:
        write_killed(operation);
        operation->stage = ALLOCATE_START;
        allocate_start(operation);
        break;
    case ALLOCATE_START:
        allocate_start(operation);
        break;
    case ALLOCATE_INLINE:
        allocate_inline_answered(operation);
        break;
    case ALLOCATE_SKIP:
        allocate_skip(operation);
        break;
    case ALLOCATE_PASS:
        allocate_pass(operation);
        break;
    case ALLOCATE_UNDO:
        allocate_next(operation, SPACE_UNDO, operation_request(operation)->offset);
        break;
    case ALLOCATE_SETTLED:
        allocate_settled(operation);
        break;
    }
}
