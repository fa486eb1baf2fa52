/* What answers mean to the oracles. */
#include "absences.h"
#include "life.h"
#include "rpc/transport.h"
#include "workload_internal.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void unlook(struct question *question) {
    if (question->looking) {
        contents_look_drop(question->content, &question->look);
        question->looking = false;
    }
}

static bool is_given_up(const struct question *question) {
    return call_is_unanswered(client_failure(&question->request));
}

/* Whether the question may have taken effect, or may still. */
static bool is_lost(const struct question *question) {
    return is_given_up(question) || client_is_fenced(node_client(question->asker->node));
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

/* Each power failure may have cost something that was acknowledged. More starts than a log
 * remembers count as one. */
static uint32_t losses_possible(const struct asker *asker) {
    const struct workload *workload = asker->workload;

    return contents_powers(workload->contents, asker->node->index) +
           absences_forgotten(workload->world->absences, asker->node);
}

/* Of each of these a handle is told once. */
static bool may_be_told(const struct question *question) {
    return question->request.operation == SHOAL_FSYNC &&
           question->handle->told < losses_possible(question->asker);
}

/* The metadata target has answered for it since. */
static void file_seen(const struct question *question) {
    struct known_file *file = file_of(question);

    if (file && file->doubted < question->begin) {
        file->doubted = 0;
    }
}

static void names_synced(const struct question *question) {
    struct workload *workload = question->asker->workload;

    for (uint32_t i = 0; i < workload->file_count; i++) {
        struct known_file *file = &workload->files[i];

        file->durable |= file->doubted == 0 && file->created < question->begin;
    }
    trees_synced(workload->trees, question->tree_begin);
}

/* A sync point of the metadata target covers all that had been answered when it was asked for. A
 * handle that is told of losses since before the file came in doubt would have been told of its. */
static void files_synced(const struct question *question) {
    struct known_file *own = file_of(question);

    if (own && question->handle->sync.sure < own->doubted) {
        own->doubted = 0;
    }
    names_synced(question);
}

/* A sync of everything tells this client of what it has lost, once for each of these and each
 * answer that came after one. */
static void take_all(struct question *question) {
    struct workload *workload = question->asker->workload;
    uint32_t losses = losses_possible(question->asker);
    int64_t result = question->request.result;

    workload->counters.succeeded += result >= 0;
    workload->counters.failed += result < 0;
    workload->counters.lost += is_lost(question);
    if (result == 0) {
        contents_synced_all(workload->contents, question->begin);
        names_synced(question);
    } else if (result == -EIO && !is_given_up(question) &&
               question->asker->told < losses * (1 + workload->options.depth)) {
        question->asker->told++;
    } else if (!is_lost(question)) {
        workload_fail(workload, question, "nothing explains this error");
    }
}

/* Room in the index of a storage target is not promised: while its checkpoints find none below, a
 * write that asks for some is refused wherever it goes. */
static bool index_is_full(const struct world *world) {
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        const struct life *life = world->osts[i].life;
        struct kv_counters now = {0};

        if (life && life_kv(life)) {
            kv_counters_get(life_kv(life), &now);
        }
        if (now.levels.full_ns > 0) {
            return true;
        }
    }
    return false;
}

static void take_failure(struct question *question) {
    struct workload *workload = question->asker->workload;
    int64_t result = question->request.result;
    enum content_end how = is_lost(question) ? CONTENT_LOST : CONTENT_FAILED;
    bool expected =
        how == CONTENT_LOST || (result == -ESTALE && may_be_gone(question)) ||
        (result == -EIO && may_be_told(question)) ||
        losses_explain(workload->options.losses, &question->request) ||
        excuses_explain(workload->options.excuses, &question->request, ino_of(question));
    char text[64];

    unlook(question);
    if (result == -ENOSPC && question->request.operation == SHOAL_WRITE &&
        contents_is_promised(question->write) && !index_is_full(workload->world)) {
        workload_fail(workload, question, "its space was promised");
    }
    if (question->write && question->write->zeros) {
        contents_cut_end(question->write, how);
    } else if (question->write) {
        contents_write_end(question->write, how);
    }
    if (question->request.operation == SHOAL_RELEASE) {
        if (is_given_up(question)) {
            contents_close_lost(question->content, question->asker->node->index);
        }
        *question->handle = (struct handle){.busy = question->handle->busy};
    }
    if (question->request.operation == SHOAL_FSYNC && result == -EIO && !is_given_up(question)) {
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
        workload_fail(workload, question, text);
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
                                      .rests = request->operation == SHOAL_READ &&
                                               rests_on_lost(question),
                                      .offset = request->offset,
                                      .end_offset = request->offset + request->size,
                                      .data = question->buffer,
                                      .got = (uint64_t)request->result};

    switch (request->operation) {
    case SHOAL_READ:
        question->looking = false;
        if (!losses_check(asker->workload->options.losses, &question->lost, request)) {
            (void)snprintf(problem, CONTENTS_PROBLEM_BYTES, "bytes of a lost target are read");
            return false;
        }
        return contents_read_end(question->content, &question->look, &read, problem);
    case SHOAL_GETATTR:
        question->looking = false;
        return contents_size_end(question->content, client, &question->look,
                                 request->attributes.size, problem);
    case SHOAL_WRITE:
        contents_write_end(question->write, rests_on_lost(question) ? CONTENT_UNSURE : CONTENT_OK);
        break;
    case SHOAL_ALLOCATE:
        if (question->write) {
            contents_write_end(question->write,
                               rests_on_lost(question) ? CONTENT_UNSURE : CONTENT_OK);
            break;
        }
        contents_promised(question->content, question->begin, request->offset, request->size);
        question->promised = question->handle;
        question->promised_offset = request->offset;
        question->promised_size = request->size;
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

static bool take_parent(struct question *question, uint64_t lost_ns, char *problem) {
    if (question->request.result < 0) {
        (void)snprintf(problem, PARENTS_PROBLEM_BYTES, "nothing explains this error");
        return false;
    }
    return parents_answered(&question->asker->workload->parents, &question->parent,
                            &question->request, lost_ns, problem);
}

/* Of names that nobody else has, of the directory they are in, and of a tree: */
static bool take_own(struct question *question, bool refused, char *problem) {
    const struct workload *workload = question->asker->workload;
    uint64_t lost_ns = world_names_lost_ns(workload->world);

    if (question->about == ABOUT_PARENT) {
        return refused || take_parent(question, lost_ns, problem);
    }
    if (question->about == ABOUT_NAMELESS && refused) {
        nameless_left(&question->nameless);
        return true;
    }
    if (question->about == ABOUT_NAMELESS) {
        return nameless_answered(&question->nameless, &question->request, lost_ns, problem);
    }
    if (question->about == ABOUT_VICTIM) {
        return victim_answered(&question->victim, &question->request, lost_ns, problem);
    }
    if (refused) {
        names_forget(&question->names);
        return true;
    }
    return names_answered(&question->names, &question->request, lost_ns, problem);
}

static void nameless_count(const struct question *question) {
    struct workload_counters *counters = &question->asker->workload->counters;
    const struct shoal_request *request = &question->request;
    bool succeeded = question->about == ABOUT_NAMELESS && request->result == 0;

    counters->nameless += succeeded && request->operation == SHOAL_CREATE;
    counters->named += succeeded && request->operation == SHOAL_LINK;
}

static void take_name(struct question *question) {
    struct workload *workload = question->asker->workload;
    const struct shoal_request *request = &question->request;
    bool lost = is_lost(question);
    bool gone = (question->about == ABOUT_NAMES || question->about == ABOUT_NAMELESS) &&
                losses_explain_name(workload->options.losses, request);
    bool refused = !lost && request->result < 0 &&
                   (gone || losses_explain(workload->options.losses, request) ||
                    excuses_explain(workload->options.excuses, request, request->ino));
    bool right = true;
    char problem[TREES_PROBLEM_BYTES];

    if (request->operation == SHOAL_MKDIR && request->result == 0) {
        losses_note(workload->options.losses, request->attributes.ino);
    }

    workload->counters.succeeded += request->result >= 0;
    workload->counters.failed += request->result < 0;
    workload->counters.lost += lost;
    nameless_count(question);
    if (lost && question->about == ABOUT_TREE) {
        trees_lost(workload->trees, &question->tree);
    } else if (lost && question->about == ABOUT_NAMELESS) {
        nameless_left(&question->nameless);
    } else if (lost && question->about == ABOUT_VICTIM) {
        victim_left(&question->victim);
    } else if (lost) {
        names_forget(&question->names);
    } else if (question->about == ABOUT_TREE) {
        right = trees_answered(workload->trees, &question->tree, request, refused, problem);
    } else {
        right = take_own(question, refused, problem);
    }
    if (!right) {
        workload_fail(workload, question, problem);
    }
}

/* Whether the close may be one that stays with the client. A full disk must explain it. */
static bool is_late(const struct question *question) {
    struct asker *asker = question->asker;
    struct shoal_client *client = node_client(asker->node);
    struct client_counters counters;

    client_counters_get(client, &counters);
    if (counters.late_closes > asker->late_count &&
        !excuses_explain_late(asker->workload->options.excuses)) {
        workload_fail(asker->workload, question, "nothing explains that it was not taken");
    }
    asker->late_count = counters.late_closes;
    asker->late = asker->late || client_late_closes(client) > 0;
    return client_late_closes(client) > 0;
}

static bool take_close(struct question *question, char *problem) {
    uint32_t client = question->asker->node->index;
    struct handle *handle = question->handle;
    bool wrote = (handle->flags & SHOAL_OPEN_WRITE) != 0;
    bool late = is_late(question);

    *handle = (struct handle){.busy = handle->busy};
    if (!wrote) {
        unlook(question);
        return true;
    }
    if (late) {
        question->looking = false;
        contents_closed_late(question->content, client, &question->look);
        return true;
    }
    contents_writer_end(question->content, client);
    return take_data(question, problem);
}

static bool take_success(struct question *question, char *problem) {
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;
    const struct shoal_request *request = &question->request;
    struct handle *handle = question->handle;
    struct content_sync sync = {.opened = question->begin,
                                .sure = contents_now(workload->contents)};

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
        pools_note(workload->world, handle->ino, question->pool_floor);
        if (workload->options.grows) {
            question->grown = handle;
            question->growth = GROWTH_SMALL;
        }
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
        if ((request->flags & SHOAL_OPEN_WRITE) && workload->options.grows) {
            question->grown = handle;
            question->growth = GROWTH_LARGE;
        } else if ((request->flags & SHOAL_OPEN_WRITE) && workload_draw(workload, 2)) {
            question->visit = handle;
            question->visit_next = SHOAL_WRITE;
        }
        file_seen(question);
        return true;
    case SHOAL_RELEASE:
        return take_close(question, problem);
    default:
        return take_data(question, problem);
    }
}

static void take_lost(struct question *question) {
    struct workload *workload = question->asker->workload;

    workload->counters.failed++;
    if (losses_explain_name(workload->options.losses, &question->request)) {
        losses_probe_answered(workload->options.losses);
    } else if (!is_lost(question)) {
        workload_fail(workload, question, "a directory that is lost does not answer EIO");
    }
}

static bool is_open(const struct workload *workload, uint64_t ino) {
    for (uint32_t i = 0; i < WORLD_CLIENTS_MAX; i++) {
        for (size_t k = 0; k < HANDLES_MAX; k++) {
            const struct handle *handle = &workload->askers[i].handles[k];

            if (handle->file && handle->ino == ino) {
                return true;
            }
        }
    }
    return false;
}

/* Of a file that has chunks it is refused. */
static void take_layout(struct question *question) {
    struct workload *workload = question->asker->workload;
    const struct shoal_request *request = &question->request;
    bool set = request->result == 0;
    bool lost = is_lost(question);
    bool explained = set || lost || request->result == -EINVAL ||
                     (request->result == -ESTALE && may_be_gone(question)) ||
                     excuses_explain(workload->options.excuses, request, request->ino);

    workload->counters.succeeded += set;
    workload->counters.failed += !set;
    workload->counters.lost += lost;
    workload->layouts.set += set;
    workload->layouts.open += set && is_open(workload, request->ino);
    if (!explained) {
        workload_fail(workload, question, "nothing explains this error");
    }
}

/* Nobody uses what was opened behind an interrupt. */
static void take_back(struct question *question) {
    if (!interrupt_takes_back(&question->interrupt, &question->request)) {
        return;
    }
    question->asker->workload->interrupts.given_back++;
    if (question->about == ABOUT_VICTIM) {
        victim_left(&question->victim);
    } else if (question->about == ABOUT_NAMELESS) {
        nameless_left(&question->nameless);
    } else if (question->about == ABOUT_DATA) {
        question->back = question->handle;
        question->back->closing = true;
        question->visit = NULL;
        question->grown = NULL;
    }
}

static void take_answer(struct question *question) {
    struct workload *workload = question->asker->workload;
    char problem[CONTENTS_PROBLEM_BYTES];

    if (question->about == ABOUT_LOST) {
        take_lost(question);
    } else if (question->about == ABOUT_ALL) {
        take_all(question);
    } else if (question->about == ABOUT_LAYOUT) {
        take_layout(question);
    } else if (question->about != ABOUT_DATA) {
        take_name(question);
    } else if (question->request.result < 0) {
        workload->counters.failed++;
        take_failure(question);
    } else {
        workload->counters.succeeded++;
        if (!take_success(question, problem)) {
            workload_fail(workload, question, problem);
        }
    }
}

void question_take(struct question *question) {
    take_answer(question);
    take_back(question);
}

void question_lose(struct question *question) {
    names_forget(&question->names);
    victim_forget(&question->victim);
    nameless_forget(&question->nameless);
    if (!question->open) {
        return;
    }
    unlook(question);
    question->asker->workload->counters.lost++;
    if (question->about == ABOUT_TREE) {
        trees_lost(question->asker->workload->trees, &question->tree);
    }
    if (question->write && question->write->zeros) {
        contents_cut_end(question->write, CONTENT_LOST);
    } else if (question->write) {
        contents_write_end(question->write, CONTENT_LOST);
    }
    question->open = false;
}
