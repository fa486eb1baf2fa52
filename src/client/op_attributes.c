/* Attributes, sizes and layouts: getattr, setattr, layout. */
#include "client/client_internal.h"
#include "client/settle.h"

_Static_assert((uint32_t)SHOAL_SET_MODE == (uint32_t)SETATTR_MODE &&
                   (uint32_t)SHOAL_SET_UID == (uint32_t)SETATTR_UID &&
                   (uint32_t)SHOAL_SET_GID == (uint32_t)SETATTR_GID &&
                   (uint32_t)SHOAL_SET_SIZE == (uint32_t)SETATTR_SIZE &&
                   (uint32_t)SHOAL_SET_ATIME == (uint32_t)SETATTR_ATIME &&
                   (uint32_t)SHOAL_SET_MTIME == (uint32_t)SETATTR_MTIME &&
                   (uint32_t)SHOAL_SET_ATIME_NOW == (uint32_t)SETATTR_ATIME_NOW &&
                   (uint32_t)SHOAL_SET_MTIME_NOW == (uint32_t)SETATTR_MTIME_NOW &&
                   (uint32_t)SHOAL_SET_KILL_SUID == (uint32_t)SETATTR_KILL_SUID,
               "what to set is passed on as it is");

enum { SET_ALL = 511 };

/* A directory has no file here whose size may be newer. */
static bool getattr_is_known(struct operation *operation) {
    struct shoal_request *asked = operation_request(operation);
    struct attributes attributes;

    int64_t age_ns = directories_find(&operation->client->directories, operation->ino,
                                      operation->began_ns, asked->age_max_ns, &attributes);
    if (age_ns < 0) {
        return false;
    }
    asked->age_ns = (uint64_t)age_ns;
    attributes_out(&attributes, &asked->attributes);
    return true;
}

void op_getattr_step(struct operation *operation) {
    if (operation->stage == 0 && getattr_is_known(operation)) {
        operation_finish(operation, 0);
    } else if (operation->stage == 0) {
        operation->stage = 1;
        operation_ask(operation, operation->ino);
    } else if (operation->result) {
        operation_finish(operation, operation->result);
    } else {
        operation_finish_attributes(operation, &operation->errand.call.reply.getattr.attributes);
    }
}

enum { SETATTR_ENTER, SETATTR_SETTLED, SETATTR_SEND, SETATTR_ANSWERED };

static bool handle_writes(const struct shoal_request *request) {
    return request->file && (request->file->flags & SHOAL_OPEN_WRITE);
}

static void setattr_enter(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct open_file *file = shard_find(operation->shard, operation->ino);

    if (asked->set & ~(uint32_t)SET_ALL || asked->attributes.size > FILE_BYTES_MAX) {
        operation_finish(operation,
                         asked->set & ~(uint32_t)SET_ALL ? -ERR_INVALID : -ERR_FILE_TOO_BIG);
        return;
    }
    operation->stage = SETATTR_SEND;
    if (file && (asked->set & SHOAL_SET_SIZE)) {
        file_pin(file);
        operation->file = file;
        file_enter(file, operation, FILE_NEEDS_ALL);
    } else if (file && file->size_owed && (asked->set & (SHOAL_SET_MTIME | SHOAL_SET_MTIME_NOW))) {
        /* Were the size told only after the time, then, should we die before, the servers would
         * find the longer file later, and would take that for a write after the time was set. */
        file_pin(file);
        operation->file = file;
        operation->need = FILE_NEEDS_QUIET;
        operation->stage = SETATTR_SETTLED;
        operation_settle(operation);
    } else {
        op_setattr_step(operation);
    }
}

static void setattr_settled(struct operation *operation) {
    if (operation->result) {
        settle_failed(operation->file, &operation->errand.call);
        operation_finish(operation, operation->result);
        return;
    }
    if (operation_settled(operation)) {
        operation->stage = SETATTR_SEND;
        op_setattr_step(operation);
    }
}

static void setattr_send(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct shoal_attributes *wanted = &asked->attributes;
    const struct open_file *file = shard_find(operation->shard, operation->ino);
    struct call *call = operation_prepare(operation);

    operation->stage = SETATTR_ANSWERED;
    operation->write_count = file ? file->write_count : 0;
    call->request.setattr = (struct setattr_request){
        .ino = operation->ino,
        .who = operation_who(operation),
        .valid = asked->set,
        .mode = wanted->mode,
        .uid = wanted->uid,
        .gid = wanted->gid,
        .size = wanted->size,
        .atime_ns = wanted->atime_ns,
        .mtime_ns = wanted->mtime_ns,
        .opened = handle_writes(asked),
        .untouched = operation->need == FILE_NEEDS_ALL && operation->file
                         ? file_untouched_give_back(operation->file)
                         : 0,
    };
    operation_call(operation, OP_SETATTR, operation->ino);
}

/* The file may have been opened here since we asked. */
static void setattr_answered(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    const struct setattr_reply *reply = &operation->errand.call.reply.setattr;
    struct open_file *file = shard_find(operation->shard, operation->ino);

    if (file && file->seen && operation->result == 0 && !errand_is_over(&operation->errand)) {
        if (asked->set & SHOAL_SET_SIZE) {
            file_see_truncated(file, &reply->attributes, &reply->capability);
        }
        if ((asked->set & (SHOAL_SET_MTIME | SHOAL_SET_MTIME_NOW)) &&
            file->write_count == operation->write_count) {
            file->times_owed = false; /* It is another version by this change, too. */
            file->is_doubtful = false;
        }
        file_see(file, &reply->attributes);
    }
    if (operation->file) {
        file_leave(operation->file, operation);
    }
    if (operation->result) {
        operation_finish(operation, operation->result);
    } else {
        operation_finish_attributes(operation, &reply->attributes);
    }
}

void op_setattr_step(struct operation *operation) {
    switch (operation->stage) {
    case SETATTR_ENTER:
        setattr_enter(operation);
        break;
    case SETATTR_SETTLED:
        setattr_settled(operation);
        break;
    case SETATTR_SEND:
        setattr_send(operation);
        break;
    case SETATTR_ANSWERED:
        setattr_answered(operation);
        break;
    }
}

static int layout_in(const struct shoal_layout *from, struct layout *to) {
    *to = (struct layout){
        .pool_version = from->pool_version,
        .chunk_bytes = from->chunk_bytes,
        .stripe_count = from->stripe_count < 0 ? STRIPE_ALL : (uint16_t)from->stripe_count,
    };
    return from->stripe_count < -1 || from->stripe_count >= STRIPE_ALL || !layout_is_valid(to)
               ? -ERR_INVALID
               : 0;
}

static void layout_out(const struct layout *from, struct shoal_layout *to) {
    *to = (struct shoal_layout){
        .pool_version = from->pool_version,
        .chunk_bytes = from->chunk_bytes,
        .stripe_count = from->stripe_count == STRIPE_ALL ? -1 : from->stripe_count,
    };
}

static void layout_finish(struct operation *operation, int result) {
    if (operation->file) {
        file_leave(operation->file, operation);
    }
    operation_finish(operation, result);
}

static void layout_set_send(struct operation *operation) {
    struct call *call = operation_prepare(operation);
    int r = layout_in(&operation_request(operation)->layout, &call->request.layout_set.layout);

    if (r) {
        layout_finish(operation, r);
        return;
    }
    operation->stage = 1;
    call->request.layout_set.ino = operation->ino;
    call->request.layout_set.who = operation_who(operation);
    if (operation->file) {
        call->request.layout_set.untouched = file_untouched_give_back(operation->file);
    }
    operation_call(operation, OP_LAYOUT_SET, operation->ino);
}

void op_layout_step(struct operation *operation) {
    struct shoal_request *asked = operation_request(operation);
    const struct call *call = &operation->errand.call;
    struct open_file *file = shard_find(operation->shard, operation->ino);
    bool sets = asked->operation == SHOAL_LAYOUT_SET;

    if (operation->stage == 0 && sets && file && file->untouched != 0 && !operation->file) {
        file_pin(file);
        operation->file = file;
        file_enter(file, operation, FILE_NEEDS_ALL); /* Nobody may begin to write meanwhile. */
    } else if (operation->stage == 0 && sets) {
        layout_set_send(operation);
    } else if (operation->stage == 0) {
        operation->stage = 1;
        operation_prepare(operation)->request.layout_get.ino = operation->ino;
        operation_call(operation, OP_LAYOUT_GET, operation->ino);
    } else if (operation->result == 0 && sets) {
        if (file && !errand_is_over(&operation->errand)) {
            file_see_layout(file, &call->reply.layout_set.layout);
        }
        layout_out(&call->reply.layout_set.layout, &asked->layout);
        layout_finish(operation, 0);
    } else {
        layout_out(&call->reply.layout_get.layout, &asked->layout);
        layout_finish(operation, operation->result);
    }
}
