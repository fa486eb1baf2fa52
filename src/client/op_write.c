/* Writing: into the inode while the file is small, into chunks after.
 *
 * A write is acknowledged when all its calls have answered; its error is the first of theirs. What
 * a failed write left beyond the end of the file is cut off before the error is told, so that no
 * later growth of the file shows it; unless somebody else may have written there. */
#include "client/client_internal.h"
#include "client/convert.h"
#include "client/data.h"
#include <assert.h>

enum {
    WRITE_ENTER,
    WRITE_START = CONVERT_RETURNS_TO,
    WRITE_ASKED,
    WRITE_KILLED,
    WRITE_INLINE,
    WRITE_CHUNKS,
    WRITE_TRIM,
    WRITE_TRIMMED
};

enum { MODE_SETUID = 04000, MODE_SETGID = 02000, MODE_GROUP_EXECUTE = 010 };

static void write_start(struct operation *operation);

static void write_finish(struct operation *operation, int64_t result) {
    file_leave(operation->file, operation);
    operation_finish(operation, result);
}

static void write_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    uint32_t flags = asked->file->flags;

    if (!(flags & SHOAL_OPEN_WRITE)) {
        operation_finish(operation, -ERR_BAD_HANDLE);
        return;
    }
    if (asked->size == 0) {
        operation_finish(operation, 0);
        return;
    }
    operation->file = asked->file->file;
    file_pin(operation->file);
    operation->stage = WRITE_START;
    file_enter(operation->file, operation,
               flags & SHOAL_OPEN_APPEND ? FILE_NEEDS_APPEND : FILE_NEEDS_WRITE);
}

bool write_kills(const struct operation *operation) {
    const struct shoal_request *asked = operation_request((struct operation *)(uintptr_t)operation);
    uint32_t mode = operation->file->attributes.mode;
    bool has = (mode & MODE_SETUID) ||
               (mode & (MODE_SETGID | MODE_GROUP_EXECUTE)) == (MODE_SETGID | MODE_GROUP_EXECUTE);

    return has && (asked->identity.uid != 0 || (asked->set & SHOAL_SET_KILL_SUID));
}

void write_kill(struct operation *operation, uint32_t stage) {
    struct call *call = operation_prepare(operation);

    operation->killed = true;
    operation->stage = stage;
    call->request.setattr = (struct setattr_request){.ino = operation->ino,
                                                     .who = operation_who(operation),
                                                     .valid = SETATTR_KILL_SUID,
                                                     .opened = 1};
    operation_call(operation, OP_SETATTR, operation->ino);
}

void write_killed(struct operation *operation) {
    if (operation->result == 0 && !errand_is_over(&operation->errand)) {
        file_see(operation->file, &operation->errand.call.reply.setattr.attributes);
    }
}

static void write_inline_send(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct call *call = operation_prepare(operation);

    operation->stage = WRITE_INLINE;
    call->request.inline_write = (struct inline_write_request){
        .ino = operation->ino,
        .offset = operation->start,
        .data = {asked->data, asked->size},
        .drop_suid = write_kills(operation),
        .untouched = file_untouched_give_back(operation->file),
    };
    operation_call(operation, OP_INLINE_WRITE, operation->ino);
}

static void write_inline_answered(struct operation *operation) {
    const struct inline_write_reply *reply = &operation->errand.call.reply.inline_write;
    struct open_file *file = operation->file;

    if (operation->result) {
        write_finish(operation, operation->result);
        return;
    }
    if (!errand_is_over(&operation->errand)) {
        file_see(file, &reply->attributes);
        file_see_capability(file, &reply->capability, NULL);
        if (reply->attributes.data_state == DATA_CHUNKED) {
            file_is_chunked(file);
        }
    }
    if (reply->attributes.data_state == DATA_CHUNKED) {
        write_start(operation);
    } else {
        write_finish(operation, (int64_t)operation_request(operation)->size);
    }
}

static void write_fail(struct operation *operation, int error) {
    if (operation->reached <= operation->file->size) {
        write_finish(operation, error);
        return;
    }
    operation->error = error;
    operation->stage = WRITE_TRIM;
    if (operation->need == FILE_NEEDS_ALL) {
        op_write_step(operation);
    } else {
        file_enter_alone(operation->file, operation);
    }
}

/* Alone: what another write made part of the file meanwhile stays. The write may have ended as its
 * time was up: the cut has its own, or it would be refused. */
static void write_trim(struct operation *operation) {
    const struct client_options *options = &operation->client->options;
    uint64_t deadline_ns = env_now_ns(options->env) + options->request_timeout_ns;
    struct open_file *file = operation->file;
    struct call *call;

    assert(file->alone == operation && operation->in_flight == 0);
    if (operation->reached <= file->size) {
        write_finish(operation, operation->error);
        return;
    }
    operation->deadline_ns = MAX(operation->deadline_ns, deadline_ns);
    operation->is_extended = false;
    call = operation_prepare(operation);
    operation->stage = WRITE_TRIMMED;
    call->request.setattr = (struct setattr_request){.ino = operation->ino,
                                                     .who = operation_who(operation),
                                                     .valid = SETATTR_SIZE | SETATTR_TRIM,
                                                     .size = file->size,
                                                     .opened = 1,
                                                     .truncate_seq = file->attributes.truncate_seq};
    operation_call(operation, OP_SETATTR, operation->ino);
}

static void write_trimmed(struct operation *operation) {
    const struct setattr_reply *reply = &operation->errand.call.reply.setattr;
    struct open_file *file = operation->file;

    if (operation->result == 0 && !errand_is_over(&operation->errand)) {
        if (reply->attributes.truncate_seq != file->attributes.truncate_seq) {
            file_see_truncated(file, &reply->attributes, &reply->capability);
        } else {
            file_see(file, &reply->attributes);
        }
    }
    write_finish(operation, operation->error);
}

static void write_chunks(struct operation *operation) {
    if (!data_advance(operation)) {
        return;
    }
    if (operation->result && operation->next > operation->start) {
        file_may_have_changed(operation->file);
    }
    if (operation->result == -ERR_BAD_CAPABILITY &&
        operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = WRITE_START;
        file_renew(operation->file, operation);
    } else if (operation->result) {
        write_fail(operation, operation->result);
    } else {
        file_wrote(operation->file, data_end(operation, operation->end), operation->truncate_seq);
        write_finish(operation, (int64_t)(operation->end - operation->start));
    }
}

static bool write_fits_inline(const struct operation *operation) {
    return operation->end <= operation->client->options.inline_bytes_max;
}

static void write_start(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct open_file *file = operation->file;
    bool append = (asked->file->flags & SHOAL_OPEN_APPEND) != 0;
    uint64_t offset = append ? file->size : asked->offset;

    if (operation->result || file->gone) {
        write_fail(operation, operation->result ? operation->result : -ERR_STALE);
        return;
    }
    if (!operation->asked && file_is_old(file, operation_began_ns(operation))) {
        operation_look(operation, WRITE_ASKED);
        return;
    }
    if (offset > FILE_BYTES_MAX || asked->size > FILE_BYTES_MAX - offset) {
        write_finish(operation, -ERR_FILE_TOO_BIG);
        return;
    }
    operation->start = offset;
    operation->end = offset + asked->size;
    bool is_chunked = file->attributes.data_state == DATA_CHUNKED;
    bool goes_inline = !is_chunked && write_fits_inline(operation);
    bool needs_all = file->untouched != 0 || (!is_chunked && !goes_inline);
    if (needs_all && operation->need != FILE_NEEDS_ALL) {
        file_enter_alone(file, operation);
    } else if (goes_inline) {
        write_inline_send(operation);
    } else if (file->attributes.data_state != DATA_CHUNKED) {
        convert_start(operation);
    } else if (write_kills(operation) && !operation->killed) {
        write_kill(operation, WRITE_KILLED);
    } else if (file_needs_renewal(file) && operation->renewals++ < OPERATION_RENEWALS_MAX) {
        operation->stage = WRITE_START;
        file_renew(file, operation);
    } else {
        operation->stage = WRITE_CHUNKS;
        data_start(operation, operation->start, operation->end);
        write_chunks(operation);
    }
}

void op_write_step(struct operation *operation) {
    if (convert_owns(operation)) {
        convert_step(operation);
        return;
    }
    switch (operation->stage) {
    case WRITE_ENTER:
        write_enter(operation);
        break;
    case WRITE_ASKED:
        operation_looked(operation);
        operation->stage = WRITE_START;
        write_start(operation);
        break;
    case WRITE_KILLED:
        write_killed(operation);
        operation->stage = WRITE_START;
        write_start(operation);
        break;
    case WRITE_START:
        write_start(operation);
        break;
    case WRITE_INLINE:
        write_inline_answered(operation);
        break;
    case WRITE_CHUNKS:
        write_chunks(operation);
        break;
    case WRITE_TRIM:
        write_trim(operation);
        break;
    case WRITE_TRIMMED:
        write_trimmed(operation);
        break;
    }
}
