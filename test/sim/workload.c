/* Askers and their questions. */
#include "workload.h"
#include "names.h"
#include "victims.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLES_MAX = 12, DEPTH_MAX = 8, FILES_MAX = 512, NAME_BYTES = 32 };

struct known_file {
    uint64_t ino;
    uint64_t created; /* when that was answered */
    bool durable;
    uint64_t doubted; /* when a power failure may have undone its creation; 0: it has not */
    char name[NAME_BYTES];
};

struct handle {
    struct shoal_file *file; /* NULL: none */
    struct content_file *content;
    uint64_t ino;
    uint32_t flags;
    uint32_t busy;
    uint32_t told; /* how often of a loss */
    struct content_sync sync;
    uint64_t synced; /* when its last fsync ended, or it was opened */
    bool closing;
};

struct asker;

/* A slot for one question at a time. */
struct question {
    struct asker *asker;
    struct shoal_request request; /* its internal part is the library's */
    bool open;
    struct handle *handle;
    struct content_file *content;
    struct content_write *write;
    struct content_look look;
    bool looking;
    bool naming; /* it is about `names` */
    struct name_slot names;
    bool hunting;         /* it is about `victim` */
    struct handle *visit; /* opened to be written, read and closed at once; NULL: none */
    enum shoal_operation visit_next;
    struct victim victim;
    char name[NAME_BYTES];
    uint8_t *buffer;
    uint64_t begin;
};

/* One client. */
struct asker {
    struct workload *workload;
    struct node *node;
    uint64_t incarnation; /* of the node that the askers are for; 0: none */
    struct handle handles[HANDLES_MAX];
    struct question questions[DEPTH_MAX];
    uint32_t busy;
};

struct workload {
    struct world *world;
    struct workload_options options;
    struct workload_counters counters;
    struct contents *contents;
    struct asker askers[WORLD_CLIENTS_MAX];
    struct known_file files[FILES_MAX];
    uint32_t file_count;
    uint64_t name_count;
    char failure[600];
};

static struct prng *prng_of(struct workload *workload) {
    return sim_prng(workload->world->sim);
}

static uint64_t draw(struct workload *workload, uint64_t bound) {
    return prng_below(prng_of(workload), bound);
}

struct workload *workload_new(struct world *world, const struct workload_options *options) {
    struct workload *workload = calloc(1, sizeof *workload);

    if (!workload) {
        abort();
    }
    workload->world = world;
    workload->options = *options;
    workload->contents = contents_new(WORLD_CALL_BYTES);
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        asker->workload = workload;
        asker->node = &world->clients[i];
        for (uint32_t k = 0; k < options->depth; k++) {
            asker->questions[k].asker = asker;
            asker->questions[k].buffer = malloc(options->size_max);
            if (!asker->questions[k].buffer) {
                abort();
            }
        }
    }
    return workload;
}

void workload_free(struct workload *workload) {
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        for (uint32_t k = 0; k < DEPTH_MAX; k++) {
            free(workload->askers[i].questions[k].buffer);
        }
    }
    contents_free(workload->contents);
    free(workload);
}

static void fail(struct workload *workload, const struct question *question, const char *text) {
    if (!workload->failure[0]) {
        snprintf(workload->failure, sizeof workload->failure,
                 "%s, operation %d, result %" PRId64 " at %.3f ms: %s",
                 sim_process_name(question->asker->node->process), question->request.operation,
                 question->request.result, (double)sim_now_ns(workload->world->sim) / 1e6, text);
    }
}

static void ask(void *context);

static void ask_later(struct question *question, uint64_t delay_ns) {
    struct asker *asker = question->asker;

    sim_schedule(asker->workload->world->sim, asker->node->process, delay_ns, ask, question);
}

static void answered(struct shoal_request *request);

static void tell(const struct question *question, const char *what) {
    const struct workload *workload = question->asker->workload;
    const struct shoal_request *request = &question->request;

    if (workload->options.tell) {
        fprintf(workload->options.tell,
                "%12.6f ms %-10s %s %td: op %d ino %" PRIx64 " write %" PRIu64 " offset %" PRIu64
                " size %zu set-size %" PRIu64 " flags %x name %.20s -> %" PRId64 "\n",
                (double)sim_now_ns(workload->world->sim) / 1e6,
                sim_process_name(question->asker->node->process), what,
                question - question->asker->questions, request->operation,
                question->handle && question->handle->ino ? question->handle->ino : request->ino,
                question->write ? question->write->number : 0, request->offset, request->size,
                request->attributes.size, request->flags, request->name ? request->name : "-",
                request->result);
    }
}

static void submit(struct question *question) {
    struct asker *asker = question->asker;

    question->open = true;
    question->begin = contents_now(asker->workload->contents);
    question->request.done = answered;
    question->request.context = question;
    asker->busy++;
    asker->workload->counters.submitted++;
    tell(question, "asks");
    if (question->handle) {
        question->handle->busy++;
    }
    shoal_submit(node_client(asker->node), &question->request);
}

static struct handle *handle_free(struct asker *asker) {
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        if (!asker->handles[i].file && asker->handles[i].busy == 0) {
            return &asker->handles[i];
        }
    }
    return NULL;
}

static struct handle *handle_draw(struct asker *asker) {
    struct handle *handle = &asker->handles[draw(asker->workload, HANDLES_MAX)];

    return handle->file && !handle->closing ? handle : NULL;
}

static void look(struct question *question) {
    contents_look_begin(question->content, question->asker->node->index, &question->look);
    question->looking = true;
}

static void unlook(struct question *question) {
    if (question->looking) {
        contents_look_drop(question->content, &question->look);
        question->looking = false;
    }
}

static bool ask_create(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;

    snprintf(question->name, sizeof question->name, "f%" PRIu64, workload->name_count++);
    question->handle = handle;
    question->request = (struct shoal_request){.operation = SHOAL_CREATE,
                                               .ino = SHOAL_INO_ROOT,
                                               .name = question->name,
                                               .name_bytes = strlen(question->name),
                                               .mode = 0644,
                                               .flags = SHOAL_OPEN_READ | SHOAL_OPEN_WRITE};
    return true;
}

static bool ask_open(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    const struct known_file *file;

    if (workload->file_count == 0) {
        return false;
    }
    file = &workload->files[draw(workload, workload->file_count)];
    question->handle = handle;
    question->content = contents_file(workload->contents, file->ino);
    look(question);
    question->request = (struct shoal_request){.operation = SHOAL_OPEN,
                                               .ino = file->ino,
                                               .flags = SHOAL_OPEN_READ |
                                                        (draw(workload, 2) ? SHOAL_OPEN_WRITE : 0)};
    if (question->request.flags & SHOAL_OPEN_WRITE) {
        contents_writer_begin(question->content, question->asker->node->index);
    }
    return true;
}

static uint64_t offset_draw(struct workload *workload, uint64_t size_max) {
    uint64_t offset = draw(workload, 3) == 0 ? 0 : draw(workload, size_max);

    return draw(workload, 2) ? offset / BLOCK_BYTES * BLOCK_BYTES : offset;
}

static uint64_t size_draw(struct workload *workload) {
    switch (draw(workload, 6)) {
    case 0:
        return 1 + draw(workload, 100);
    case 1:
        return 1 + draw(workload, 5000);
    case 2:
        return BLOCK_BYTES * (1 + draw(workload, 4));
    case 3:
        return 65536;
    case 4:
        return 1 + draw(workload, 20000);
    default:
        return 1 + draw(workload, 3) == 0 ? 150000 : 3000;
    }
}

static bool ask_write(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t offset = offset_draw(workload, workload->options.size_max / 2);
    uint64_t size = MIN(size_draw(workload), workload->options.size_max - offset);

    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        return false;
    }
    question->handle = handle;
    question->content = handle->content;
    question->write =
        contents_write_begin(handle->content, question->asker->node->index, offset, size);
    contents_fill(question->write, question->buffer);
    question->request = (struct shoal_request){.operation = SHOAL_WRITE,
                                               .file = handle->file,
                                               .offset = offset,
                                               .data = question->buffer,
                                               .size = size};
    return true;
}

static bool ask_read(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t offset = offset_draw(workload, workload->options.size_max / 2);

    question->handle = handle;
    question->content = handle->content;
    look(question);
    question->request =
        (struct shoal_request){.operation = SHOAL_READ,
                               .file = handle->file,
                               .offset = offset,
                               .data = question->buffer,
                               .size = MIN(size_draw(workload), workload->options.size_max)};
    return true;
}

static bool ask_handle(struct question *question, struct handle *handle,
                       enum shoal_operation operation) {
    question->handle = handle;
    question->content = handle->content;
    look(question);
    question->request =
        (struct shoal_request){.operation = operation, .file = handle->file, .ino = handle->ino};
    return true;
}

static bool ask_cut(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t size = offset_draw(workload, workload->options.size_max / 2);

    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        return false;
    }
    question->handle = handle;
    question->content = handle->content;
    question->write = contents_cut_begin(handle->content, question->asker->node->index, size);
    question->request = (struct shoal_request){.operation = SHOAL_SETATTR,
                                               .file = handle->file,
                                               .ino = handle->ino,
                                               .set = SHOAL_SET_SIZE,
                                               .attributes = {.size = size}};
    return true;
}

static bool ask_name(struct question *question) {
    struct workload *workload = question->asker->workload;

    names_ask(&question->names, draw(workload, 1000), workload->name_count++,
              sim_now_ns(workload->world->sim), &question->request);
    question->naming = true;
    return true;
}

static bool ask_victim(struct question *question) {
    struct workload *workload = question->asker->workload;

    victim_ask(&question->victim, workload->name_count++, sim_now_ns(workload->world->sim),
               question->buffer, &question->request);
    question->hunting = true;
    return true;
}

/* Opened, written and closed between two sync points: what power loss leaves of it, if anything, is
 * what a storage target has. Others may have got hold of the handle: then it is left to them. */
static bool ask_visit(struct question *question) {
    struct handle *handle = question->visit;
    uint64_t size_max = question->asker->workload->options.size_max;

    if (!handle || !handle->file || handle->closing || handle->busy > 0) {
        question->visit = NULL;
        return false;
    }
    switch (question->visit_next) {
    case SHOAL_WRITE:
        question->visit_next = SHOAL_READ;
        return ask_write(question, handle);
    case SHOAL_READ:
        question->visit_next = SHOAL_RELEASE;
        (void)ask_read(question, handle);
        question->request.offset = 0;
        question->request.size = size_max;
        return true;
    default:
        question->visit = NULL;
        handle->closing = true;
        return ask_handle(question, handle, SHOAL_RELEASE);
    }
}

static bool ask_one(struct question *question) {
    struct asker *asker = question->asker;
    struct handle *handle = handle_draw(asker);
    struct handle *unused = handle_free(asker);

    switch (draw(asker->workload, 18)) {
    case 0:
        return unused && asker->workload->file_count < 40 && ask_create(question, unused);
    case 1:
        return unused && ask_open(question, unused);
    case 2:
        if (handle && handle->busy == 0 && ask_handle(question, handle, SHOAL_RELEASE)) {
            handle->closing = true;
            return true;
        }
        return false;
    case 3:
        return handle && ask_handle(question, handle, SHOAL_FSYNC);
    case 4:
        return handle && ask_handle(question, handle, SHOAL_GETATTR);
    case 5:
        return handle && draw(asker->workload, 3) == 0 && ask_cut(question, handle);
    case 6:
    case 7:
    case 8:
        return handle && ask_read(question, handle);
    case 9:
    case 10:
    case 11:
        return ask_name(question);
    case 12:
    case 13:
    case 14:
        return ask_victim(question);
    default:
        return handle && ask_write(question, handle);
    }
}

static void ask(void *context) {
    struct question *question = context;
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;

    if (workload_is_done(workload) || !node_client(asker->node)) {
        return;
    }
    if (client_is_fenced(node_client(asker->node))) {
        return;
    }
    question->handle = NULL;
    question->content = NULL;
    question->write = NULL;
    question->looking = false;
    question->naming = false;
    question->hunting = false;
    for (int i = 0; i < 50; i++) {
        if (ask_visit(question) || ask_one(question)) {
            submit(question);
            return;
        }
    }
    ask_later(question, NS_PER_MS);
}

/* What the answer says about the question's effects; false: it cannot be. */
static bool is_lost(const struct question *question) {
    int64_t result = question->request.result;

    return result == -ETIMEDOUT || client_is_fenced(node_client(question->asker->node));
}

static uint64_t ino_of(const struct question *question) {
    const struct handle *handle = question->handle;

    return handle && handle->ino ? handle->ino : question->request.ino;
}

static struct known_file *file_of(const struct question *question) {
    struct workload *workload = question->asker->workload;
    uint64_t ino = ino_of(question);

    for (uint32_t i = 0; i < workload->file_count; i++) {
        if (workload->files[i].ino == ino) {
            return &workload->files[i];
        }
    }
    return NULL;
}

/* A create is as good as its record: until a sync point a power failure may undo it. */
static bool may_be_gone(const struct question *question) {
    const struct known_file *file = file_of(question);

    return file && file->doubted > 0;
}

/* Each power failure may have cost something that was acknowledged, of which each handle is told
 * once. */
static bool may_be_told(const struct question *question) {
    const struct asker *asker = question->asker;

    return question->request.operation == SHOAL_FSYNC &&
           question->handle->told < contents_powers(asker->workload->contents, asker->node->index);
}

/* The metadata target has answered for it since. */
static void file_seen(const struct question *question) {
    struct known_file *file = file_of(question);

    if (file && file->doubted < question->begin) {
        file->doubted = 0;
    }
}

/* A sync point of the metadata target covers all that had been answered when it was asked for. A
 * handle that is told of losses since before the file came in doubt would have been told of its. */
static void files_synced(const struct question *question) {
    struct workload *workload = question->asker->workload;
    struct known_file *own = file_of(question);

    if (own && question->handle->sync.sure < own->doubted) {
        own->doubted = 0;
    }
    for (uint32_t i = 0; i < workload->file_count; i++) {
        struct known_file *file = &workload->files[i];

        file->durable |= file->doubted == 0 && file->created < question->begin;
    }
}

static void take_failure(struct question *question) {
    struct workload *workload = question->asker->workload;
    int64_t result = question->request.result;
    enum content_end how = is_lost(question) ? CONTENT_LOST : CONTENT_FAILED;
    bool expected =
        how == CONTENT_LOST || (result == -ESTALE && may_be_gone(question)) ||
        (result == -EIO && may_be_told(question)) ||
        excuses_explain(workload->options.excuses, &question->request, ino_of(question));
    char text[64];

    unlook(question);
    if (question->write && question->write->zeros) {
        contents_cut_end(question->write, how);
    } else if (question->write) {
        contents_write_end(question->write, how);
    }
    if (question->request.operation == SHOAL_RELEASE) {
        *question->handle = (struct handle){.busy = question->handle->busy};
    }
    if (question->request.operation == SHOAL_FSYNC && result == -EIO) {
        question->handle->told++;
        question->handle->sync.sure = contents_now(workload->contents);
        question->handle->synced = question->begin;
    }
    if (question->request.operation == SHOAL_OPEN && how == CONTENT_FAILED &&
        (question->request.flags & SHOAL_OPEN_WRITE)) {
        contents_writer_end(question->content, question->asker->node->index);
    }
    workload->counters.lost += how == CONTENT_LOST;
    if (!expected) {
        snprintf(text, sizeof text, "nothing explains this error");
        fail(workload, question, text);
    }
}

/* The file was opened before a power failure, and no fsync has heard since whether it cost
 * something that the file's data rests on. */
static bool rests_on_lost(const struct question *question) {
    return question->handle->synced < contents_power_at(question->asker->workload->contents);
}

static bool take_data(struct question *question, char *problem) {
    struct asker *asker = question->asker;
    const struct shoal_request *request = &question->request;
    uint32_t client = asker->node->index;
    const struct content_read read = {.client = client,
                                      .offset = request->offset,
                                      .end_offset = request->offset + request->size,
                                      .data = question->buffer,
                                      .got = (uint64_t)request->result};

    switch (request->operation) {
    case SHOAL_READ:
        question->looking = false;
        return contents_read_end(question->content, &question->look, &read, problem);
    case SHOAL_GETATTR:
        question->looking = false;
        return contents_size_end(question->content, client, &question->look,
                                 request->attributes.size, problem);
    case SHOAL_WRITE:
        contents_write_end(question->write, rests_on_lost(question) ? CONTENT_UNSURE : CONTENT_OK);
        break;
    case SHOAL_SETATTR:
        file_seen(question);
        contents_cut_end(question->write, CONTENT_OK);
        break;
    default:
        question->looking = false;
        if (request->operation == SHOAL_FSYNC) {
            files_synced(question);
            question->handle->synced = question->begin;
        }
        contents_settled(question->content, client, &question->look,
                         request->operation == SHOAL_FSYNC ? &question->handle->sync : NULL);
        break;
    }
    return true;
}

static void take_name(struct question *question) {
    struct workload *workload = question->asker->workload;
    bool lost = is_lost(question);
    char problem[NAMES_PROBLEM_BYTES];

    workload->counters.succeeded += question->request.result >= 0;
    workload->counters.failed += question->request.result < 0;
    workload->counters.lost += lost;
    if (lost) {
        names_forget(&question->names);
        victim_forget(&question->victim);
    } else if (question->hunting) {
        if (!victim_answered(&question->victim, &question->request, workload->world->mdt->lost_ns,
                             problem)) {
            fail(workload, question, problem);
        }
    } else if (!names_answered(&question->names, &question->request, workload->world->mdt->lost_ns,
                               problem)) {
        fail(workload, question, problem);
    }
}

static bool take_success(struct question *question, char *problem) {
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;
    const struct shoal_request *request = &question->request;
    struct handle *handle = question->handle;
    struct content_sync sync = {.opened = question->begin,
                                .sure = contents_now(workload->contents)};
    bool wrote;

    switch (request->operation) {
    case SHOAL_CREATE:
        *handle =
            (struct handle){.file = request->file,
                            .ino = request->attributes.ino,
                            .flags = request->flags,
                            .busy = handle->busy,
                            .sync = sync,
                            .synced = question->begin,
                            .content = contents_file(workload->contents, request->attributes.ino)};
        contents_writer_begin(handle->content, asker->node->index);
        if (workload->file_count < FILES_MAX) {
            struct known_file *file = &workload->files[workload->file_count++];

            file->ino = request->attributes.ino;
            file->created = contents_now(workload->contents);
            if (question->begin < contents_power_at(workload->contents)) {
                file->doubted = contents_power_at(workload->contents); /* A late answer. */
            }
            memcpy(file->name, question->name, sizeof file->name);
        }
        return true;
    case SHOAL_OPEN:
        contents_opened(question->content, asker->node->index, &question->look,
                        &(struct content_open){request->attributes.size,
                                               (request->flags & SHOAL_OPEN_WRITE) != 0});
        question->looking = false;
        *handle = (struct handle){.file = request->file,
                                  .ino = request->ino,
                                  .flags = request->flags,
                                  .busy = handle->busy,
                                  .sync = sync,
                                  .synced = question->begin,
                                  .content = question->content};
        if ((request->flags & SHOAL_OPEN_WRITE) && draw(workload, 2)) {
            question->visit = handle;
            question->visit_next = SHOAL_WRITE;
        }
        file_seen(question);
        return true;
    case SHOAL_RELEASE:
        wrote = (handle->flags & SHOAL_OPEN_WRITE) != 0;
        *handle = (struct handle){.busy = handle->busy};
        if (!wrote) {
            unlook(question);
            return true;
        }
        contents_writer_end(question->content, asker->node->index);
        return take_data(question, problem);
    default:
        return take_data(question, problem);
    }
}

static void answered(struct shoal_request *request) {
    struct question *question = request->context;
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;
    char problem[CONTENTS_PROBLEM_BYTES];

    question->open = false;
    asker->busy--;
    tell(question, "hears");
    sim_trace(workload->world->sim, "answer", request->operation, (uint64_t)request->result);
    if (question->naming || question->hunting) {
        take_name(question);
    } else if (request->result < 0) {
        workload->counters.failed++;
        take_failure(question);
    } else {
        workload->counters.succeeded++;
        if (!take_success(question, problem)) {
            fail(workload, question, problem);
        }
    }
    if (question->handle) {
        question->handle->busy--;
    }
    ask_later(question, draw(workload, workload->options.think_ns));
}

void workload_look(struct workload *workload) {
    for (uint32_t i = 0; i < workload->world->options.client_count; i++) {
        struct asker *asker = &workload->askers[i];

        if (asker->incarnation == asker->node->incarnation || !node_client(asker->node)) {
            continue;
        }
        asker->incarnation = asker->node->incarnation;
        contents_session_over(workload->contents, i);
        for (uint32_t k = 0; k < workload->options.depth; k++) {
            ask_later(&asker->questions[k], draw(workload, workload->options.think_ns));
        }
    }
}

void workload_client_gone(struct workload *workload, struct node *node) {
    struct asker *asker = &workload->askers[node->index];

    for (uint32_t k = 0; k < workload->options.depth; k++) {
        struct question *question = &asker->questions[k];

        names_forget(&question->names);
        victim_forget(&question->victim);
        if (question->open) {
            unlook(question);
            workload->counters.lost++;
            if (question->write && question->write->zeros) {
                contents_cut_end(question->write, CONTENT_LOST);
            } else if (question->write) {
                contents_write_end(question->write, CONTENT_LOST);
            }
            question->open = false;
        }
    }
    for (uint32_t k = 0; k < workload->options.depth; k++) {
        asker->questions[k].visit = NULL;
    }
    asker->busy = 0;
    memset(asker->handles, 0, sizeof asker->handles);
}

void workload_power(struct workload *workload, bool all) {
    contents_power(workload->contents, all);
    for (uint32_t i = 0; i < workload->file_count; i++) {
        if (!workload->files[i].durable && workload->files[i].doubted == 0) {
            workload->files[i].doubted = contents_now(workload->contents);
        }
    }
}

const char *workload_failure(const struct workload *workload) {
    return workload->failure[0] ? workload->failure : NULL;
}

const struct workload_counters *workload_counters_get(const struct workload *workload) {
    return &workload->counters;
}

bool workload_is_done(const struct workload *workload) {
    return workload->counters.submitted >= workload->options.operations || workload->failure[0];
}

bool workload_is_idle(const struct workload *workload) {
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        if (workload->askers[i].busy > 0) {
            return false;
        }
    }
    return true;
}
