/* One request of the kernel, from its bytes to its reply. */
#include "front/fuse/request.h"
#include "env/env_groups.h"
#include "front/fuse/ops.h"
#include <errno.h>
#include <string.h>

/* Of what size on a second thread brings more than it takes from the programs: measured. */
enum { READ_LARGE_BYTES = 32768, READ_SHORT_BYTES = 65536, WRITE_LARGE_BYTES = 65536 };

enum {
    GROUPS_MAX = 1024, /* what a shoal_identity takes */
    GROUPS_BYTES = GROUPS_MAX * sizeof(uint32_t),
    PATH_BYTES_MAX = 4095,
    REPLY_BODY_BYTES_MAX = BUFFER_URING_AT - sizeof(struct abi_out_header),
};

const struct op ops[OPERATION_COUNT] = {
#define OP(name_, number, body, names_, flags_, start_, finish_)                                   \
    [number] = {#name_, body, names_, flags_, start_, finish_},
#include "front/fuse/ops.def"
#undef OP
};

static const struct op fuse_op_none = {"UNKNOWN", 0, 0, 0, fuse_op_unknown, NULL};

static void request_done(struct shoal_request *shoal);

void *request_reply_body(struct fuse_request *request, size_t body_bytes) {
    void *body = request_reply(request) + 1;

    static_assert(sizeof(struct abi_statx_out) <= REPLY_BODY_BYTES_MAX, "the greatest body");
    request->body_bytes = (uint32_t)body_bytes;
    return memset(body, 0, body_bytes);
}

struct shoal_request *request_prepare(struct fuse_request *request,
                                      enum shoal_operation operation) {
    const struct abi_in_header *header = request_header(request);
    struct shoal_request *shoal = &request->shoal;

    memset(shoal, 0, offsetof(struct shoal_request, internal));
    shoal->operation = operation;
    shoal->ino = header->nodeid;
    shoal->name = request->names[0].text;
    shoal->name_bytes = request->names[0].bytes;
    shoal->identity.uid = header->uid;
    shoal->identity.gid = header->gid;
    if (request->with_groups) {
        shoal->identity.group_count = request->group_count;
        shoal->identity.groups =
            (const uint32_t *)(const void *)(request_payload(request) +
                                             request->front->features.write_bytes_max -
                                             GROUPS_BYTES);
    }
    shoal->done = request_done;
    shoal->interrupted = interrupts_asked;
    shoal->context = request;
    return shoal;
}

int request_prepare_handle(struct fuse_request *request, enum shoal_operation operation,
                           uint64_t number) {
    struct handle *handle = handle_find(&request->front->handles, number);

    if (!handle)
        return -EBADF;
    request->handle = handle;
    request_prepare(request, operation)->file = handle->file;
    return VERDICT_SUBMIT;
}

/* Past the kernel's pages a program asks for as much as it has room for. */
static size_t bytes_of_read(const struct fuse_request *request, const struct abi_read_in *read) {
    struct handle *handle = handle_find(&request->front->handles, read->handle);

    return handle && handle->pages.way == KEPT_PAST ? MIN(read->size, handle->pages.whole_bytes)
                                                    : read->size;
}

static bool moves_more(const struct fuse_request *request, size_t in_bytes, size_t read_bytes) {
    const struct abi_in_header *header = request_header(request);
    const void *body = request_body(request);
    const struct abi_read_in *read = body;
    const struct abi_fallocate_in *allocate = body;
    const struct abi_copy_in *copy = body;
    const struct op *op = in_bytes >= sizeof(*header) && header->opcode < OPERATION_COUNT &&
                                  in_bytes - sizeof(*header) >= ops[header->opcode].body_bytes
                              ? &ops[header->opcode]
                              : &fuse_op_none;

    static_assert(offsetof(struct abi_read_in, size) == offsetof(struct abi_write_in, size),
                  "read alike");
    return (op->start == fuse_op_read && bytes_of_read(request, read) > read_bytes) ||
           (op->start == fuse_op_write && read->size > WRITE_LARGE_BYTES) ||
           (op->start == fuse_op_fallocate && allocate->length > WRITE_LARGE_BYTES) ||
           ((op->start == fuse_op_copy || op->start == fuse_op_copy_64) &&
            copy->length > WRITE_LARGE_BYTES);
}

bool fuse_request_is_large(const struct fuse_request *request, size_t in_bytes) {
    return moves_more(request, in_bytes, READ_LARGE_BYTES);
}

bool fuse_request_is_short(const struct fuse_request *request, size_t in_bytes) {
    return !moves_more(request, in_bytes, READ_SHORT_BYTES);
}

/* Finds the names behind the body. Everything that is read later is checked here, except that a
 * WRITE brings as much as it says. */
static int request_decode(struct fuse_request *request) {
    const struct abi_in_header *header = request_header(request);
    const struct op *op = request->op;
    const char *at = (const char *)header + sizeof(*header) + op->body_bytes;
    size_t left = request->in_bytes - sizeof(*header);
    size_t extension_bytes = (size_t)header->extension_words * 8;

    if (header->bytes != request->in_bytes || left < op->body_bytes + extension_bytes)
        return -EIO;
    left -= op->body_bytes + extension_bytes;
    request->in_bytes -= extension_bytes;
    for (unsigned i = 0; i < op->name_count; i++) {
        const char *end = memchr(at, 0, left);

        if (!end)
            return -EIO;
        request->names[i] = (struct request_name){at, (size_t)(end - at)};
        if (end == at)
            return -EINVAL;
        left -= (size_t)(end + 1 - at);
        at = end + 1;
    }
    if (request->names[0].bytes > SHOAL_NAME_BYTES_MAX ||
        request->names[1].bytes >
            (op->start == fuse_op_symlink ? PATH_BYTES_MAX : SHOAL_NAME_BYTES_MAX))
        return -ENAMETOOLONG;
    return 0;
}

/* They lie at the end of the buffer, where no request that names its caller reaches. */
bool request_learn_groups(struct fuse_request *request) {
    const struct abi_in_header *header = request_header(request);
    size_t place = request->front->features.write_bytes_max - GROUPS_BYTES;
    size_t count;

    if (request->with_groups || !(request->op->flags & OP_CALLER) || header->uid == 0 ||
        request->in_bytes > place)
        return false;
    if (env_groups_get((int)header->pid, GROUPS_MAX,
                       (uint32_t *)(void *)(request_payload(request) + place), &count) < 0)
        return false;
    request->group_count = (uint32_t)MIN(count, (size_t)GROUPS_MAX);
    request->with_groups = true;
    return request->group_count > 0;
}

static void request_account(struct fuse_request *request, bool failed) {
    struct front *front = request->front;
    uint64_t latency_ns = env_now_ns(front->env) - request->started_ns;
    ptrdiff_t number = request->op == &fuse_op_none ? 0 : request->op - ops;

    statistics_add(&front->statistics[request->thread_index][number], latency_ns, failed);
}

/* What the calling thread is in the middle of, in fuse_request_run. */
static _Thread_local const struct fuse_request *running;

static void request_reply_fill(struct fuse_request *request, int result) {
    struct abi_out_header *out = request_reply(request);

    if (result < 0) {
        request->body_bytes = 0;
        request->data_bytes = 0;
        if (result < -ABI_ERROR_MAX)
            result = -EIO;
    }
    *out = (struct abi_out_header){
        .bytes = (uint32_t)(sizeof(*out) + request->body_bytes + request->data_bytes),
        .error = result,
        .unique = request_header(request)->unique,
    };
}

static void request_reply_send(struct fuse_request *request) {
    request->front->channel->reply(request->front->channel, request);
}

/* One that ends where it was begun is answered when nothing of it is left to do: the program may
 * take this thread's CPU then, and finds no lock that is held. */
static void request_reply_all(struct fuse_request *request, int result) {
    request_reply_fill(request, result);
    request->unsent = running == request;
    if (!request->unsent)
        request_reply_send(request);
}

void fuse_request_answer_early(struct fuse_request *request, int error) {
    if (request->entry)
        return;
    if (!request->answered) {
        request_reply_fill(request, error);
        request_reply_send(request);
    }
    request->answered = true;
}

/* The pool lasts until all have left. */
static void detached_leave(struct front *front) {
    struct request_pool *pool = &front->requests;

    atomic_fetch_sub(&pool->detached_count, 1);
    if (atomic_load(&pool->waiting_count) > 0)
        front->channel->wake(front->channel);
    atomic_fetch_sub(&pool->leaving_count, 1);
}

/* Who waits counts himself, looks, and sleeps: one of the two sees the other. */
void fuse_request_put(struct front *front, struct fuse_request *request) {
    struct request_pool *pool = &front->requests;

    request_pool_put(pool, request);
    if (atomic_load(&pool->waiting_count) > 0)
        front->channel->wake(front->channel);
}

void fuse_request_detach(struct front *front) {
    atomic_fetch_add(&front->requests.detached_count, 1);
}

void fuse_request_leave(struct front *front) {
    atomic_fetch_add(&front->requests.leaving_count, 1);
    detached_leave(front);
}

/* Whoever comes second disposes of it: the thread that read it, or the one that ends it. */
static void request_end(struct fuse_request *request) {
    struct front *front = request->front;
    struct request_pool *pool = &front->requests;

    if (request->turn)
        fair_end(&front->fair, request);
    if (atomic_exchange(&request->state, REQUEST_DONE) != REQUEST_DETACHED)
        return;
    atomic_fetch_add(&pool->leaving_count, 1);
    if (request->entry)
        front->channel->ended(front->channel, request);
    else
        request_pool_put(pool, request);
    detached_leave(front);
}

static void request_proceed(struct fuse_request *request, int verdict) {
    if (verdict == VERDICT_WAIT)
        return;
    if (verdict == VERDICT_SUBMIT) {
        shoal_submit(request->front->client, &request->shoal);
        return;
    }
    if (verdict < 0 && request->handle && !handle_is_open(request->handle))
        handle_put(&request->front->handles, request->handle);
    request_account(request, verdict < 0);
    if (!(request->op->flags & OP_QUIET))
        ahead_told(request->front);
    if (verdict != VERDICT_SILENT && !request->answered)
        request_reply_all(request, verdict);
    request_end(request);
}

/* Later stages see to their errors themselves. */
static void request_done(struct shoal_request *shoal) {
    struct fuse_request *request = shoal->context;
    int verdict = VERDICT_REPLY;

    if (shoal->result < 0 && request->stage == STAGE_START) {
        verdict = (int)MAX(shoal->result, (int64_t)INT16_MIN);
        if ((verdict == -EACCES || verdict == -EPERM) && request_learn_groups(request))
            verdict = request->op->start(request);
    } else if (request->op->finish) {
        verdict = request->op->finish(request);
    }
    request_proceed(request, verdict);
}

void request_forget_attributes(const struct fuse_request *request, uint64_t ino) {
    struct front_channel *channel = request->front->channel;

    ahead_told(request->front);
    channel->forget_attributes(channel, ino);
}

void fuse_request_start_again(struct fuse_request *request) {
    request_proceed(request, request->op->start(request));
}

void fuse_request_lay(struct fuse_request *request, const struct abi_in_header *header,
                      const void *body, size_t body_bytes) {
    uint8_t *at = request_head(request);

    memcpy(at, header, sizeof(*header));
    memcpy(at + sizeof(*header), body, body_bytes);
    request->names[0] = (struct request_name){0};
    request->names[1] = (struct request_name){0};
    request->with_groups = false;
    request->stage = STAGE_START;
}

static void request_reset(struct fuse_request *request, size_t in_bytes) {
    uint32_t opcode = request_header(request)->opcode;

    if (!request->turn)
        request->started_ns = env_now_ns(request->front->env);
    request->op = opcode < OPERATION_COUNT && ops[opcode].name ? &ops[opcode] : &fuse_op_none;
    request->in_bytes = in_bytes;
    request->names[0] = (struct request_name){0};
    request->names[1] = (struct request_name){0};
    request->handle = NULL;
    request->with_groups = false;
    request->stage = STAGE_START;
    request->answered = false;
    request->unsent = false;
    request->body_bytes = 0;
    request->data_bytes = 0;
    atomic_store_explicit(&request->looked_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&request->state, REQUEST_RUNNING, memory_order_relaxed);
    interrupts_meet(request, request_header(request)->unique);
}

/* True: it has ended, and nobody else looks at it any more. */
static bool request_begin(struct fuse_request *request, size_t in_bytes) {
    struct request_pool *pool = &request->front->requests;
    int verdict;

    request_reset(request, in_bytes);
    verdict = request->op->flags & OP_SILENT ? 0 : request_decode(request);
    if (verdict == 0)
        verdict = request->op->start(request);
    request_proceed(request, verdict);
    if (atomic_load(&request->state) == REQUEST_DONE)
        return true;
    /* Counted before another thread may end it, so that nobody takes it for the last one meanwhile:
     * threads that drain leave by that, with their loops. */
    atomic_fetch_add(&pool->detached_count, 1);
    if (atomic_exchange(&request->state, REQUEST_DETACHED) != REQUEST_DONE)
        return false;
    atomic_fetch_sub(&pool->detached_count, 1);
    if (atomic_load(&pool->waiting_count) > 0)
        request->front->channel->wake(request->front->channel);
    return true;
}

bool fuse_request_run(struct fuse_request *request, size_t in_bytes) {
    const struct fuse_request *outer = running;

    if (in_bytes < sizeof(struct abi_in_header))
        return true;
    running = request;
    bool ended = request_begin(request, in_bytes);
    running = outer;
    if (ended && request->unsent)
        request_reply_send(request);
    return ended;
}
