/* Open files come and go: create, open, flush, release. */
#include "base/bug.h"
#include "client/client_internal.h"
#include "client/loss.h"
#include "client/settle.h"
#include "client/thread.h"

_Static_assert((uint32_t)SHOAL_OPEN_READ == (uint32_t)OPEN_READ &&
                   (uint32_t)SHOAL_OPEN_WRITE == (uint32_t)OPEN_WRITE &&
                   (uint32_t)SHOAL_OPEN_TRUNCATE == (uint32_t)OPEN_TRUNCATE &&
                   (uint32_t)SHOAL_OPEN_DIRECTORY == (uint32_t)OPEN_DIRECTORY &&
                   (uint32_t)SHOAL_OPEN_EXECUTE == (uint32_t)OPEN_EXECUTE,
               "the flags that servers know are passed on as they are");

uint64_t settle_fill(struct open_file *file, struct call *call, uint32_t handle_flags) {
    uint32_t open_flags = handle_flags & OPEN_FLAGS_THAT_STAY;
    bool tells = open_flags == 0 || (open_flags & OPEN_WRITE) != 0;

    /* The size is as it was under the truncation that our attributes know; a capability may have
     * heard of a later one. */
    call->request.settle = (struct settle_request){
        .ino = file->ino,
        .truncate_seq = file->attributes.truncate_seq,
        .size = tells && file->size_owed ? file->size : 0,
        .mtime_ns = file->write_ns,
        .close = open_flags != 0,
        .open_flags = open_flags ? open_flags : OPEN_WRITE,
        .wrote = tells && (file->times_owed || file->is_doubtful),
        .generation = tells ? file->capability.generation : 0,
    };
    if (tells) {
        file_blocks_tell(file, &call->request.settle);
    }
    bool is_last = (open_flags & OPEN_WRITE) && file->writer_count == 1;
    if (is_last && !file->alone && file->writes_in_flight == 0 && list_is_empty(&file->waiting)) {
        call->request.settle.untouched = file_untouched_give_back(file);
    }
    return file->write_count;
}

uint64_t settle_fill_close(struct open_file *file, struct call *call,
                           const struct shoal_file *handle) {
    if (!handle->named) {
        return settle_fill(file, call, handle->flags);
    }
    call->request.settle =
        (struct settle_request){.ino = file->ino, .close = 1, .name = handle->name};
    return file->write_count;
}

void settle_done(struct open_file *file, const struct call *call, uint64_t write_count) {
    const struct settle_request *told = &call->request.settle;

    if (write_count == file->write_count) {
        file->size_owed = file->size_owed && told->size != file->size;
        file->times_owed = file->times_owed && !told->wrote;
        file->is_doubtful = file->is_doubtful && !told->wrote;
    }
    file_blocks_told(file, told);
    file_see(file, &call->reply.settle.attributes);
}

void settle_failed(struct open_file *file, const struct call *call) {
    file_blocks_untold(file, &call->request.settle, call->result);
}

void operation_settle(struct operation *operation) {
    struct call *call = operation_prepare(operation);

    operation->write_count = settle_fill(operation->file, call, 0);
    operation_call(operation, OP_SETTLE, operation->file->ino);
}

bool operation_settled(struct operation *operation) {
    if (errand_is_over(&operation->errand)) {
        settle_failed(operation->file, &operation->errand.call);
        operation_settle(operation);
        return false;
    }
    settle_done(operation->file, &operation->errand.call, operation->write_count);
    return true;
}

/* Whether a regular file's chunks can be found by it. */
static bool layout_is_usable(const struct attributes *attributes, const struct layout *layout) {
    return attributes->mode >> 12 != 8 || layout_is_valid(layout);
}

/* The server has opened it: so have we, from now on. */
static void open_handle(struct operation *operation, struct shoal_file *handle,
                        const struct layout *layout, const struct capability *capability) {
    struct shoal_request *asked = operation_request(operation);
    struct open_file *file = operation->file;

    file_see_layout(file, layout);
    file_see_capability(file, capability, layout);
    handle->file = file;
    handle->flags = asked->flags;
    handle->named = operation->name != 0;
    handle->name = operation->name;
    handle->synced = false;
    handle->seen = 0;
    handle->opened = atomic_load(&operation->client->router.losses);
    file_pin(file);
    file->uid = file->reader_count + file->writer_count > 0 ? file->uid : asked->identity.uid;
    file_handle_added(file, handle);
    asked->file = handle;
}

/* Of the operation's file, which is pinned. */
static void open_send_by(struct operation *operation, struct ino ino, bool again) {
    struct call *call = operation_prepare(operation);
    uint32_t flags = operation_request(operation)->flags & OPEN_FLAGS_OF_SERVERS;

    call->request.open =
        (struct open_request){.ino = ino, .who = operation_who(operation), .open_flags = flags};
    call->keeps_number = true;
    if (wire_opens_by_name(flags) && !again) {
        file_opening(operation->file);
    }
    operation_call(operation, OP_OPEN, ino);
}

/* Its answer is looked at, and there is a handle if there is to be one. */
static void open_is_over(struct operation *operation) {
    if (wire_opens_by_name(operation->errand.call.request.open.open_flags)) {
        file_opened(operation->file);
    }
}

/* It has failed: the handle goes, or stays as long as the server may have it open. */
static void open_give_up(struct operation *operation, struct shoal_file *handle) {
    struct call *call = &operation->errand.call;
    bool is_dropped = BUG(KEPT_OPEN) && call->result == -ERR_INTERRUPTED;

    if (is_dropped || !late_takes_open(call)) {
        call_abandon(call);
        client_handle_put(operation->shard->client, handle);
        return;
    }
    handle->flags = operation_request(operation)->flags;
    handle->file = operation->file;
    handle->ino = operation->ino;
    late_keep_open(operation->shard, handle, call);
}

/* The server has it open, and nobody gets it. */
static void open_close_late(struct operation *operation, struct shoal_file *handle) {
    if (handle->named) {
        file_handle_removed(operation->file, handle);
        handle->name = 0; /* The last that is open by name says so. */
    }
    operation_request(operation)->file = NULL;
    late_keep(operation->shard, handle, &operation->errand.call);
}

/* A server that has lost the end of its log with its power has an earlier epoch again, and storage
 * targets what was written since. */
static uint64_t open_version(const struct operation *operation,
                             const struct attributes *attributes) {
    uint64_t term = operation->errand.call.header.term;

    return (attributes->epoch + term * UINT64_C(0x9e3779b97f4a7c15)) | UINT64_C(1) << 63;
}

static void open_finish(struct operation *operation) {
    struct attributes attributes = operation->file->attributes;

    file_overlay(operation->file, &attributes);
    attributes_out(&attributes, &operation_request(operation)->attributes);
    operation_request(operation)->attributes.version = open_version(operation, &attributes);
    operation_finish(operation, 0);
}

enum { CREATE_SEND, CREATE_ANSWERED, CREATE_ENTER, CREATE_OPENED, CREATE_ASKED, CREATE_CLOSED };

static void create_send(struct operation *operation) {
    const struct shoal_request *asked = operation_request(operation);
    struct call *call = operation_prepare(operation);

    call->request.create = (struct create_request){
        .parent = {asked->ino},
        .name = {(const uint8_t *)asked->name, asked->name_bytes},
        .unnamed = (asked->flags & SHOAL_OPEN_UNNAMED) != 0,
        .who = operation_who(operation),
        .mode = asked->mode,
        .open_flags = asked->flags & OPEN_FLAGS_OF_SERVERS,
        .exclusive = (asked->flags & SHOAL_OPEN_EXCLUSIVE) != 0,
        .draws = 1,
    };
    call->keeps_number = true;
    operation_call(operation, OP_CREATE, operation->ino);
}

/* Without a handle to keep it by it is let go. */
static void create_give_up(struct operation *operation) {
    struct call *call = &operation->errand.call;
    struct shoal_file *handle;

    if (late_takes_open(call) && client_handle_get(operation->client, &handle) == 0) {
        open_give_up(operation, handle);
    } else {
        call_abandon(call);
    }
    operation_finish(operation, operation->result);
}

/* The server has a file open for which there is no room here. */
static void create_undo(struct operation *operation, struct ino ino, int why) {
    struct open_file *file = operation->file;

    if (operation->name) {
        file->name = MAX(file->name, operation->name);
        file_opened(file);
        if (file->named_count + file->opening_count > 0 || file->name == 0) {
            operation_finish(operation, why); /* another handle's close ends it as well */
            return;
        }
        operation->name = file->name;
        file->name = 0;
    }
    struct call *call = operation_prepare(operation);

    operation->stage = CREATE_CLOSED;
    operation->next = (uint64_t)-why;
    call->request.settle = (struct settle_request){
        .ino = ino,
        .close = 1,
        .open_flags = operation_request(operation)->flags & OPEN_FLAGS_THAT_STAY,
        .name = operation->name,
    };
    operation_call(operation, OP_SETTLE, ino);
}

static void create_enter(struct operation *operation);

/* Made, but not open any more for the server that has started anew since; or there, but another
 * server's: so it is opened. */
static void create_open(struct operation *operation, struct ino ino, bool again) {
    int r = again ? 0 : shard_pin(operation->shard, ino, &operation->file);

    if (r) {
        operation_finish(operation, r);
        return;
    }
    operation->stage = CREATE_OPENED;
    open_send_by(operation, ino, again);
}

static void create_opened(struct operation *operation) {
    const struct open_reply opened = operation->errand.call.reply.open;

    if (errand_is_over(&operation->errand)) {
        create_open(operation, operation->errand.call.request.open.ino, true);
    } else if (operation->result == -ERR_STALE) {
        /* The server has lost what it made, and nobody was told of it yet: it is made anew. Or the
         * name has lost its inode since. */
        open_is_over(operation);
        call_abandon(&operation->errand.call);
        file_unpin(operation->file);
        operation->file = NULL;
        operation->stage = CREATE_SEND;
        operation_post(operation, operation->home);
    } else if (operation->result) {
        open_is_over(operation);
        create_give_up(operation);
    } else {
        operation->name = opened.name;
        operation->errand.call.reply.create =
            (struct create_reply){.attributes = opened.attributes,
                                  .layout = opened.layout,
                                  .capability = opened.capability};
        operation->stage = CREATE_ENTER;
        create_enter(operation);
    }
}

/* In the shard of the new file, which may be open here already. */
static void create_enter(struct operation *operation) {
    struct create_reply *reply = &operation->errand.call.reply.create;
    struct shoal_file *handle;
    struct open_file *file = operation->file;

    if (!file && (errand_is_over(&operation->errand) || reply->elsewhere)) {
        create_open(operation, reply->attributes.ino, false);
        return;
    }
    int r = file ? 0 : shard_pin(operation->shard, reply->attributes.ino, &file);

    operation->file = file;
    r = r ? r : client_handle_get(operation->shard->client, &handle);
    if (r) {
        create_undo(operation, reply->attributes.ino, r);
        return;
    }
    bool fresh = shard_refresh(operation->shard, operation->close_stamp, &reply->attributes);

    if (!file->seen && reply->created) {
        file_made(file, &reply->attributes, &reply->capability);
    }
    if (!file->seen) {
        file_see(file, &reply->attributes);
    }
    open_handle(operation, handle, &reply->layout, &reply->capability);
    if (operation->name) {
        file_opened(file);
    }
    if (!layout_is_usable(&reply->attributes, &reply->layout)) {
        open_close_late(operation, handle);
        operation_finish(operation, -ERR_MALFORMED);
        return;
    }
    handle->synced = reply->created != 0;
    operation_request(operation)->flags &= ~(uint32_t)SHOAL_OPEN_MADE;
    operation_request(operation)->flags |= reply->created ? (uint32_t)SHOAL_OPEN_MADE : 0;
    if (fresh) {
        open_finish(operation);
        return;
    }
    operation->stage = CREATE_ASKED;
    operation_ask(operation, file->ino);
}

void op_create_step(struct operation *operation) {
    const struct attributes *attributes = &operation->errand.call.reply.create.attributes;

    switch (operation->stage) {
    case CREATE_SEND:
        operation->stage = CREATE_ANSWERED;
        create_send(operation);
        break;
    case CREATE_ANSWERED:
        if (operation->result) {
            create_give_up(operation);
        } else {
            operation->stage = CREATE_ENTER;
            operation_post(operation, client_shard(operation->client, attributes->ino));
        }
        break;
    case CREATE_ENTER:
        create_enter(operation);
        break;
    case CREATE_OPENED:
        create_opened(operation);
        break;
    case CREATE_ASKED:
        if (operation->result == 0) {
            file_see(operation->file, &operation->errand.call.reply.getattr.attributes);
        }
        open_finish(operation);
        break;
    case CREATE_CLOSED:
        operation_finish(operation, -(int64_t)operation->next);
        break;
    }
}

enum { OPEN_ENTER, OPEN_SEND, OPEN_ANSWERED };

static void open_enter(struct operation *operation) {
    struct shoal_request *asked = operation_request(operation);
    int r = shard_pin(operation->shard, operation->ino, &operation->file);

    r = r ? r : client_handle_get(operation->shard->client, &asked->file);
    if (r) {
        operation_finish(operation, r);
        return;
    }
    operation->stage = OPEN_SEND;
    if (asked->flags & SHOAL_OPEN_TRUNCATE) {
        file_enter(operation->file, operation, FILE_NEEDS_ALL);
    } else {
        op_open_step(operation);
    }
}

static void open_send(struct operation *operation, bool again) {
    operation->stage = OPEN_ANSWERED;
    open_send_by(operation, operation->ino, again);
}

static void open_answered(struct operation *operation) {
    struct shoal_request *asked = operation_request(operation);
    const struct open_reply *reply = &operation->errand.call.reply.open;
    int r = operation->result;

    if (errand_is_over(&operation->errand)) {
        open_send(operation, true);
        return;
    }
    if (r == 0) {
        file_see(operation->file, &reply->attributes);
        operation->name = reply->name;
        open_handle(operation, asked->file, &reply->layout, &reply->capability);
    } else {
        open_give_up(operation, asked->file);
        asked->file = NULL;
    }
    open_is_over(operation);
    if (r == 0 && !layout_is_usable(&reply->attributes, &reply->layout)) {
        r = -ERR_MALFORMED;
        open_close_late(operation, asked->file);
    }
    if (asked->flags & SHOAL_OPEN_TRUNCATE) {
        file_leave(operation->file, operation);
    }
    if (r) {
        operation_finish(operation, r);
    } else {
        open_finish(operation);
    }
}

void op_open_step(struct operation *operation) {
    switch (operation->stage) {
    case OPEN_ENTER:
        open_enter(operation);
        break;
    case OPEN_SEND:
        open_send(operation, false);
        break;
    case OPEN_ANSWERED:
        open_answered(operation);
        break;
    }
}

enum { RELEASE_BEGIN, RELEASE_SEND, RELEASE_ANSWERED };

/* The handle goes whatever the server says, but that it has no room; and where it says nothing. */
static void release_finish(struct operation *operation, int result) {
    struct shoal_file *handle = operation_request(operation)->file;
    struct open_file *file = operation->file;

    if (!handle->named) {
        file_handle_removed(file, handle);
    }
    client_handle_put(operation->shard->client, handle);
    file_unpin(file);
    operation_finish(operation, result);
}

static void release_send(struct operation *operation) {
    const struct shoal_file *handle = operation_request(operation)->file;
    struct call *call = operation_prepare(operation);

    operation->stage = RELEASE_ANSWERED;
    call->keeps_number = true;
    operation->write_count = settle_fill_close(operation->file, call, handle);
    /* Few wait for a close that tells nothing. Those of files that were read go at once: who reads
     * files one after another would have them processed before his next question. */
    const struct settle_request *told = &call->request.settle;
    call->may_wait = !handle->named && told->size == 0 && !told->wrote && told->blocks == 0 &&
                     !client_thread_awaits(operation_request(operation));
    operation_call(operation, OP_SETTLE, operation->file->ino);
}

/* The last of those that are open by name says so, when no open is under way: it names the newest,
 * which is all of them. */
static void release_named(struct operation *operation, struct shoal_file *handle) {
    struct open_file *file = operation->file;

    if (file_close_waits(file, operation)) {
        return;
    }
    if (file->named_count > 0 || file->name == 0) {
        release_finish(operation, 0);
        return;
    }
    handle->name = file->name;
    file->name = 0;
    release_send(operation);
}

void op_release_step(struct operation *operation) {
    struct shoal_file *handle = operation_request(operation)->file;

    if (operation->stage == RELEASE_BEGIN) {
        operation->stage = RELEASE_SEND;
        operation->file = handle->file;
        file_pin(operation->file);
        if (handle->named) {
            file_handle_removed(operation->file, handle);
        }
    }
    if (operation->stage == RELEASE_SEND) {
        if (client_is_fenced(operation->client)) {
            release_finish(operation, -ERR_FENCED);
        } else if (operation->file->gone) {
            release_finish(operation, -ERR_STALE);
        } else if (handle->named) {
            release_named(operation, handle);
        } else {
            release_send(operation);
        }
        return;
    }
    if (operation->result || errand_is_over(&operation->errand) || operation->file->gone) {
        settle_failed(operation->file, &operation->errand.call);
    }
    if (errand_is_over(&operation->errand)) {
        release_send(operation);
        return;
    }
    if (!operation->file->gone && late_takes(operation->result)) {
        late_keep(operation->shard, handle, &operation->errand.call);
        operation_finish(operation, operation->result == -ERR_NO_SPACE ? 0 : operation->result);
        return;
    }
    call_abandon(&operation->errand.call);
    if (operation->file->gone) {
        release_finish(operation, -ERR_STALE);
    } else {
        if (operation->result == 0) {
            settle_done(operation->file, &operation->errand.call, operation->write_count);
        }
        release_finish(operation, operation->result);
    }
}

void op_flush_step(struct operation *operation) {
    struct shoal_file *handle = operation_request(operation)->file;

    if (operation->stage == 0) {
        operation->file = handle->file;
        file_pin(operation->file);
        if (!file_is_owed(operation->file)) {
            operation_finish(operation, loss_check(handle, false));
            return;
        }
        operation->stage = 1;
        operation_settle(operation);
        return;
    }
    if (operation->result == 0) {
        if (!operation_settled(operation)) {
            return;
        }
        operation->result = loss_check(handle, false);
    } else {
        settle_failed(operation->file, &operation->errand.call);
    }
    operation_finish(operation, operation->file->gone ? -ERR_STALE : operation->result);
}
