/* From shoal_submit to done. */
#include "client/operation.h"
#include "client/client_internal.h"
#include "client/thread.h"
#include "env/errno_map.h"
#include <assert.h>
#include <string.h>

/* Where an operation begins: straight from the caller, or in the step of its inode's shard. */
struct operation_row {
    void (*step)(struct operation *operation);
    bool in_shard;
    enum { FILE_NONE, FILE_MAY, FILE_MUST } file;
};

static const struct operation_row rows[] = {
    [SHOAL_LOOKUP] = {op_name_step, false, FILE_NONE},
    [SHOAL_GETATTR] = {op_getattr_step, false, FILE_MAY},
    [SHOAL_SETATTR] = {op_setattr_step, true, FILE_MAY},
    [SHOAL_CREATE] = {op_create_step, false, FILE_NONE},
    [SHOAL_MKNOD] = {op_name_step, false, FILE_NONE},
    [SHOAL_MKDIR] = {op_name_step, false, FILE_NONE},
    [SHOAL_SYMLINK] = {op_name_step, false, FILE_NONE},
    [SHOAL_READLINK] = {op_name_step, false, FILE_NONE},
    [SHOAL_LINK] = {op_name_step, false, FILE_NONE},
    [SHOAL_UNLINK] = {op_name_step, false, FILE_NONE},
    [SHOAL_RMDIR] = {op_name_step, false, FILE_NONE},
    [SHOAL_RENAME] = {op_name_step, false, FILE_NONE},
    [SHOAL_OPEN] = {op_open_step, true, FILE_NONE},
    [SHOAL_RELEASE] = {op_release_step, true, FILE_MUST},
    [SHOAL_READ] = {op_read_step, true, FILE_MUST},
    [SHOAL_WRITE] = {op_write_step, true, FILE_MUST},
    [SHOAL_FSYNC] = {op_fsync_step, true, FILE_MUST},
    [SHOAL_FLUSH] = {op_flush_step, true, FILE_MUST},
    [SHOAL_READDIR] = {op_readdir_step, true, FILE_MUST},
    [SHOAL_STATFS] = {op_everywhere_step, true, FILE_NONE},
    [SHOAL_ACCESS] = {op_name_step, false, FILE_NONE},
    [SHOAL_LAYOUT_GET] = {op_layout_step, true, FILE_NONE},
    [SHOAL_LAYOUT_SET] = {op_layout_step, true, FILE_NONE},
    [SHOAL_SYNC] = {op_everywhere_step, true, FILE_NONE},
    [SHOAL_ALLOCATE] = {op_allocate_step, true, FILE_MUST},
    [SHOAL_SEEK] = {op_seek_step, true, FILE_MUST},
};

static void operation_errand_done(struct errand *errand) {
    struct operation *operation = CONTAINER_OF(errand, struct operation, errand);

    directories_answered(&operation->client->directories, &errand->call, errand_is_over(errand),
                         operation->tickets);
    operation->result = errand->call.result;
    operation->deadline_ns = MAX(operation->deadline_ns, errand->call.deadline_ns);
    operation->is_extended = operation->is_extended || errand->call.is_extended;
    operation->step(operation);
}

static bool operation_is_unwanted(void *context) {
    struct shoal_request *request = operation_request(context);
    bool goes_on = request->operation == SHOAL_OPEN || request->operation == SHOAL_CREATE ||
                   request->operation == SHOAL_RELEASE;

    int wish = request->interrupted ? request->interrupted(request) : 0;

    return wish == SHOAL_ABANDONED || (wish != 0 && !goes_on);
}

void operation_errand_init(struct operation *operation, struct errand *errand,
                           void (*done)(struct errand *errand)) {
    errand_init(errand, operation->shard, done, operation->deadline_ns);
    errand->call.patience_ns = operation->client->options.request_timeout_ns;
    errand->call.is_extended = operation->is_extended;
    errand->call.header.trace_id = operation->trace_id;
    errand->call.unwanted = operation_is_unwanted;
    errand->call.unwanted_context = operation;
}

struct call *operation_prepare(struct operation *operation) {
    operation_errand_init(operation, &operation->errand, operation_errand_done);
    return &operation->errand.call;
}

void operation_call(struct operation *operation, uint16_t opcode, struct ino ino) {
    directories_asked(&operation->client->directories, opcode, &operation->errand.call,
                      operation->began_ns, operation->tickets);
    errand_start_slot(&operation->errand, opcode, ino_slot(ino));
}

void operation_ask(struct operation *operation, struct ino ino) {
    operation_prepare(operation)->request.getattr.ino = ino;
    operation_call(operation, OP_GETATTR, ino);
}

void operation_look(struct operation *operation, uint32_t stage) {
    operation->asked = true;
    operation->stage = stage;
    operation_ask(operation, operation->ino);
}

void operation_looked(struct operation *operation) {
    if (operation->result == 0) {
        file_see(operation->file, &operation->errand.call.reply.getattr.attributes);
    }
    if (operation->result != -ERR_INTERRUPTED) {
        operation->result = 0;
    }
}

struct credentials operation_who(struct operation *operation) {
    const struct shoal_identity *identity = &operation_request(operation)->identity;

    return (struct credentials){.uid = identity->uid,
                                .gid = identity->gid,
                                .group_count = identity->group_count,
                                .groups = identity->groups};
}

uint64_t operation_began_ns(const struct operation *operation) {
    return operation->began_ns;
}

void operation_post(struct operation *operation, struct shard *shard) {
    assert(!list_contains(&operation->node) && operation->in_flight == 0);
    operation->shard = shard;
    operation->message.kind = SHARD_OPERATION;
    operation->message.message_class = MESSAGE_REQUEST;
    actor_post(&shard->actor, &operation->message);
}

static int operation_check(const struct shoal_request *request) {
    size_t number = (size_t)request->operation;

    if (number >= ARRAY_SIZE(rows) || !rows[number].step) {
        return -ERR_NOT_SUPPORTED;
    }
    if (rows[number].file == FILE_MUST && !request->file) {
        return -ERR_BAD_HANDLE;
    }
    if (request->name_bytes > NAME_BYTES_MAX || request->new_name_bytes > NAME_BYTES_MAX) {
        return -ERR_NAME_TOO_LONG;
    }
    if (request->identity.group_count > WIRE_GROUPS_MAX) {
        return -ERR_INVALID;
    }
    return 0;
}

static void request_fail(struct shoal_request *request, int result) {
    operation_of(request)->failure = result;
    request->result = -err_to_errno(result);
    request->done(request);
}

/* Session, shard, and the number of the request there: found again in every server's log. */
static uint64_t trace_id_of(struct shoal_client *client, struct shard *shard) {
    uint64_t number = atomic_fetch_add_explicit(&shard->requests, 1, memory_order_relaxed);
    uint64_t index = (uint64_t)(shard - client->shards);

    return client_session(client).value << 40 | index << 34 | (number & ((UINT64_C(1) << 34) - 1));
}

/* Evicted: nothing that was open exists any more, but handles still go back. */
static int session_check(const struct shoal_client *client, const struct shoal_request *request) {
    bool has_file = rows[request->operation].file != FILE_NONE && request->file;

    if (request->operation == SHOAL_RELEASE) {
        return 0;
    }
    if (atomic_load(&client->session.revoked)) {
        return -ERR_REVOKED;
    }
    if (atomic_load(&client->session.fenced)) {
        return has_file && client->options.began_again ? -ERR_IO : -ERR_FENCED;
    }
    return has_file && request->file->file->evicted ? -ERR_IO : 0;
}

static void operation_start(struct shoal_client *client, struct shoal_request *request) {
    struct operation *operation = operation_of(request);
    int r = operation_check(request);

    if (r) {
        request_fail(request, r);
        return;
    }
    const struct operation_row *row = &rows[request->operation];
    bool by_file = row->file != FILE_NONE && request->file;
    struct ino ino = by_file ? request->file->file->ino : (struct ino){request->ino};
    struct shard *shard = client_shard(client, ino);

    if (!router_map(&client->router)) {
        request_fail(request, -ERR_NO_SESSION);
        return;
    }
    r = session_check(client, request);
    if (r) {
        request_fail(request, r);
        return;
    }
    memset(operation, 0, offsetof(struct operation, errand));
    request->age_ns = 0;
    operation->ino = ino;
    operation->client = client;
    operation->home = shard;
    operation->shard = shard;
    operation->step = row->step;
    operation->began_ns = env_now_ns(client->options.env);
    operation->deadline_ns = operation->began_ns + client->options.request_timeout_ns;
    operation->parity = router_enter(&client->router, &shard->readers);
    r = session_check(client, request);
    if (r) {
        router_leave(&shard->readers, operation->parity); /* again.h waits for who was counted. */
        request_fail(request, r);
        return;
    }
    operation->close_stamp = atomic_load_explicit(&client->close_stamp, memory_order_acquire);
    operation->trace_id = trace_id_of(client, shard);
    if (row->in_shard) {
        operation_post(operation, shard);
    } else {
        operation->step(operation);
    }
}

void shoal_submit(struct shoal_client *client, struct shoal_request *request) {
    struct client_thread thread;
    int r = client_thread_enter(&thread, client->options.env);

    if (r) {
        request_fail(request, r);
        return;
    }
    operation_start(client, request);
    client_thread_leave(&thread);
}

void operation_finish(struct operation *operation, int64_t result) {
    struct shoal_request *request = operation_request(operation);

    assert(operation->in_flight == 0 && !operation->piece && !list_contains(&operation->node));
    assert(!operation->file || operation->file->alone != operation);
    if (operation->file) {
        file_unpin(operation->file);
    }
    operation->failure = 0;
    if (result < 0) {
        /* Whoever had this long to answer is away, whatever its links look like. */
        operation->failure = result == -ERR_TIMED_OUT ? -ERR_AWAY : (int)result;
        result = operation->failure;
        atomic_fetch_add_explicit(&operation->home->failures, 1, memory_order_relaxed);
        result = -err_to_errno((int)result);
    }
    router_leave(&operation->home->readers, operation->parity);
    request->result = result;
    request->done(request);
}

int client_failure(const struct shoal_request *request) {
    return ((const struct operation *)(const void *)request->internal)->failure;
}

void attributes_out(const struct attributes *from, struct shoal_attributes *to) {
    *to = (struct shoal_attributes){
        .ino = from->ino.value,
        .size = from->size,
        .bytes_used = from->bytes_used,
        .atime_ns = from->atime_ns,
        .mtime_ns = from->mtime_ns,
        .ctime_ns = from->ctime_ns,
        .btime_ns = from->btime_ns,
        .mode = from->mode,
        .uid = from->uid,
        .gid = from->gid,
        .nlink = from->nlink,
        .rdev = from->rdev,
        .generation = from->generation,
    };
}

enum { REFRESH_BEGIN, REFRESH_ASKED, REFRESH_ASKED_ANEW };

/* Another answer is needed. */
static void refresh_ask(struct operation *operation, bool is_over) {
    const struct attributes *attributes = &operation->attributes;

    if (operation->stage == REFRESH_BEGIN) {
        operation->stage = is_over ? REFRESH_ASKED_ANEW : REFRESH_ASKED;
    }
    attributes_out(attributes, &operation_request(operation)->attributes);
    operation->close_stamp = atomic_load(&operation->client->close_stamp);
    operation_ask(operation, attributes->ino);
}

/* In the step of the inode's shard. What is forgotten there is asked for again, as a new question:
 * what it does not know then had reached the server before. So is what a term that is over has
 * answered, which may be lost and would look newer than what is so now; if nobody tells that, the
 * change is acknowledged with what it was answered, and no file takes it. */
static void operation_refresh_step(struct operation *operation) {
    struct attributes *attributes = &operation->attributes;
    bool asked = operation->stage != REFRESH_BEGIN;
    bool is_over = errand_is_over(&operation->errand);

    if (operation->stage == REFRESH_ASKED_ANEW && operation->result) {
        operation_finish(operation, 0);
        return;
    }
    if (asked && operation->result == 0) {
        *attributes = operation->errand.call.reply.getattr.attributes;
    }
    if (operation->result == 0 &&
        (is_over || !shard_refresh(operation->shard, operation->close_stamp, attributes))) {
        refresh_ask(operation, is_over);
        return;
    }
    attributes_out(attributes, &operation_request(operation)->attributes);
    operation_finish(operation, operation->result);
}

void operation_finish_attributes(struct operation *operation, const struct attributes *attributes) {
    struct shard *shard = client_shard(operation->client, attributes->ino);

    if (shard_is_plain(shard, operation->close_stamp)) {
        attributes_out(attributes, &operation_request(operation)->attributes);
        operation_finish(operation, 0);
        return;
    }
    operation->attributes = *attributes;
    operation->step = operation_refresh_step;
    operation->stage = REFRESH_BEGIN;
    operation->result = 0;
    if (shard == operation->shard) {
        operation->step(operation);
    } else {
        operation_post(operation, shard);
    }
}
