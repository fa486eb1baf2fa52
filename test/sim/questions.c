/* Drawing questions. */
#include "workload_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of files that are to grow: the last questions, and how long before them none does. */
enum { GROWS_LAST = 80, GROWS_STOCK = 200, LOST_EVERY = 16, PARENT_EVERY = 16 };

static struct handle *handle_free(struct asker *asker) {
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        if (!asker->handles[i].file && asker->handles[i].busy == 0) {
            return &asker->handles[i];
        }
    }
    return NULL;
}

static struct handle *handle_draw(struct asker *asker) {
    struct handle *handle = &asker->handles[workload_draw(asker->workload, HANDLES_MAX)];

    return handle->file && !handle->closing ? handle : NULL;
}

static void look(struct question *question) {
    contents_look_begin(question->content, question->asker->node->index, &question->look);
    question->looking = true;
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
    if (workload->options.grows) { /* one of the last */
        file = &workload->files[workload->file_count - 1 -
                                workload_draw(workload, MIN(workload->file_count, 4U))];
    } else {
        file = &workload->files[workload_draw(workload, workload->file_count)];
    }
    question->handle = handle;
    question->content = contents_file(workload->contents, file->ino);
    look(question);
    question->request = (struct shoal_request){
        .operation = SHOAL_OPEN,
        .ino = file->ino,
        .flags = SHOAL_OPEN_READ | (workload_draw(workload, 2) ? SHOAL_OPEN_WRITE : 0)};
    if (question->request.flags & SHOAL_OPEN_WRITE) {
        contents_writer_begin(question->content, question->asker->node->index);
    }
    return true;
}

static uint64_t offset_draw(struct workload *workload, uint64_t size_max) {
    uint64_t offset = workload_draw(workload, 3) == 0 ? 0 : workload_draw(workload, size_max);

    return workload_draw(workload, 2) ? offset / BLOCK_BYTES * BLOCK_BYTES : offset;
}

static uint64_t size_draw(struct workload *workload) {
    if (workload->options.overwrites && workload_draw(workload, 2)) {
        return 65536;
    }
    switch (workload_draw(workload, 6)) {
    case 0:
        return 1 + workload_draw(workload, 100);
    case 1:
        return 1 + workload_draw(workload, 5000);
    case 2:
        return BLOCK_BYTES * (1 + workload_draw(workload, 4));
    case 3:
        return 65536;
    case 4:
        return 1 + workload_draw(workload, 20000);
    default:
        return 1 + workload_draw(workload, 3) == 0 ? 150000 : 3000;
    }
}

static bool ask_write_at(struct question *question, struct handle *handle, uint64_t offset,
                         uint64_t size) {
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

static bool ask_write(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t offset = offset_draw(workload, workload->options.size_max / 2);
    uint64_t size = MIN(size_draw(workload), workload->options.size_max - offset);

    return (handle->flags & SHOAL_OPEN_WRITE) && ask_write_at(question, handle, offset, size);
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

/* A hole, or zeros that stay promised; within what writes reach, so that bytes go. */
static bool ask_hole(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t offset = offset_draw(workload, workload->options.size_max / 2);
    uint64_t size = MIN(size_draw(workload), workload->options.size_max - offset);
    bool punch = workload_draw(workload, 2);

    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        return false;
    }
    question->handle = handle;
    question->content = handle->content;
    question->write =
        contents_hole_begin(handle->content, question->asker->node->index, offset, size);
    question->request =
        (struct shoal_request){.operation = SHOAL_ALLOCATE,
                               .file = handle->file,
                               .flags = (uint32_t)SHOAL_KEEP_SIZE |
                                        (uint32_t)(punch ? SHOAL_PUNCH_HOLE : SHOAL_ZERO_RANGE),
                               .offset = offset,
                               .size = size};
    return true;
}

/* Space for a range, which is then written, some of it or all. */
static bool ask_promise(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t offset = offset_draw(workload, workload->options.size_max / 2);

    if (!(handle->flags & SHOAL_OPEN_WRITE)) {
        return false;
    }
    question->handle = handle;
    question->content = handle->content;
    question->request = (struct shoal_request){
        .operation = SHOAL_ALLOCATE,
        .file = handle->file,
        .flags = SHOAL_KEEP_SIZE,
        .offset = offset,
        .size = MIN(4 * size_draw(workload), workload->options.size_max - offset)};
    return true;
}

static bool ask_promised(struct question *question) {
    struct handle *handle = question->promised;
    uint64_t size = question->promised_size;
    uint64_t skip;

    question->promised = NULL;
    if (!handle || !handle->file || handle->closing || !(handle->flags & SHOAL_OPEN_WRITE)) {
        return false;
    }
    skip = workload_draw(question->asker->workload, MIN(size, (uint64_t)BLOCK_BYTES));
    return ask_write_at(question, handle, question->promised_offset + skip,
                        1 + workload_draw(question->asker->workload, size - skip));
}

static bool ask_name(struct question *question) {
    struct workload *workload = question->asker->workload;

    names_ask(&question->names, workload_draw(workload, 1000), workload->name_count++,
              sim_now_ns(workload->world->sim), &question->request);
    question->about = ABOUT_NAMES;
    return true;
}

static bool ask_victim(struct question *question) {
    struct workload *workload = question->asker->workload;

    victim_ask(&question->victim, workload->name_count++, sim_now_ns(workload->world->sim),
               question->buffer, &question->request);
    question->about = ABOUT_VICTIM;
    return true;
}

static bool ask_nameless(struct question *question) {
    struct workload *workload = question->asker->workload;

    nameless_ask(&question->nameless, workload->name_count++, sim_now_ns(workload->world->sim),
                 question->buffer, &question->request);
    question->about = ABOUT_NAMELESS;
    return true;
}

static bool ask_tree(struct question *question) {
    struct asker *asker = question->asker;
    struct workload *workload = asker->workload;

    question->about = ABOUT_TREE;
    return trees_ask(workload->trees, sim_prng(workload->world->sim), asker->node->index,
                     &question->tree, &question->request);
}

/* Writes that free what others wrote, syncs that let it be used, and reads that look. */
static bool overwrite_draw(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;

    switch (workload_draw(workload, 10)) {
    case 0:
        return handle && ask_handle(question, handle, SHOAL_FSYNC);
    case 1:
    case 2:
        return handle && ask_read(question, handle);
    case 8:
        return handle && ask_hole(question, handle);
    case 9:
        return handle && ask_promise(question, handle);
    default:
        return handle && ask_write(question, handle);
    }
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

static bool ask_enlarge(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;

    handle->small = false;
    return ask_write_at(question, handle, workload_draw(workload, BLOCK_BYTES),
                        BLOCK_BYTES + workload_draw(workload, 3 * BLOCK_BYTES));
}

static struct handle *handle_small(struct asker *asker) {
    for (size_t i = 0; i < HANDLES_MAX; i++) {
        if (asker->handles[i].small && asker->handles[i].file && !asker->handles[i].closing) {
            return &asker->handles[i];
        }
    }
    return NULL;
}

static bool ask_sync(struct question *question) {
    question->about = ABOUT_ALL;
    question->request = (struct shoal_request){.operation = SHOAL_SYNC};
    return true;
}

/* What is kept with the inode, perhaps synced by somebody, goes to chunks. */
static bool ask_growth(struct question *question) {
    struct workload *workload = question->asker->workload;
    struct handle *handle = question->grown;

    if (!handle || !handle->file || handle->closing || !(handle->flags & SHOAL_OPEN_WRITE)) {
        question->growth = GROWTH_NONE;
        return false;
    }
    switch (question->growth) {
    case GROWTH_NONE:
        break;
    case GROWTH_SMALL:
        question->growth = GROWTH_SYNC;
        return ask_write_at(question, handle, 0, 1 + workload_draw(workload, BLOCK_BYTES));
    case GROWTH_SYNC:
        question->growth = GROWTH_NONE;
        handle->small = true;
        return workload_draw(workload, 2) && ask_handle(question, handle, SHOAL_FSYNC);
    case GROWTH_LARGE:
        question->growth = GROWTH_LOOK;
        return ask_enlarge(question, handle);
    case GROWTH_LOOK:
        question->growth = GROWTH_NONE;
        (void)ask_read(question, handle);
        question->request.offset = 0;
        question->request.size = workload->options.size_max;
        return true;
    }
    return false;
}

/* At the end of the work small files that are on disk become large, and nobody syncs that. */
static bool grows_last(struct question *question, struct handle *handle, struct handle *unused) {
    struct workload *workload = question->asker->workload;
    struct handle *small = handle_small(question->asker);

    switch (workload_draw(workload, 4)) {
    case 0:
        return handle && ask_read(question, handle);
    case 1:
        return unused && ask_open(question, unused);
    default:
        return small && ask_enlarge(question, small);
    }
}

/* Such a file, or everything, is synced while it grows, by the client that makes it large or by the
 * one that made it. */
static bool grows_draw(struct question *question, struct handle *handle, struct handle *unused) {
    struct workload *workload = question->asker->workload;
    struct handle *small = handle_small(question->asker);

    uint64_t left = workload->options.operations - workload->counters.submitted;
    if (left < GROWS_LAST) {
        return grows_last(question, handle, unused);
    }
    switch (workload_draw(workload, 9)) {
    case 0:
        return ask_sync(question);
    case 1:
    case 2:
        return handle && ask_handle(question, handle, SHOAL_FSYNC);
    case 3:
        return handle && ask_read(question, handle);
    case 4:
        if (handle && handle->busy == 0 && ask_handle(question, handle, SHOAL_RELEASE)) {
            handle->closing = true;
            return true;
        }
        return false;
    case 5:
        return unused && ask_open(question, unused);
    case 6:
        return small && left > GROWS_STOCK && ask_enlarge(question, small);
    default:
        return unused && workload->file_count < workload->options.files_max &&
               ask_create(question, unused);
    }
}

/* A directory that a lost target had: its attributes, a name in it, a new one. */
static bool ask_lost(struct question *question) {
    static const enum shoal_operation operations[] = {SHOAL_GETATTR, SHOAL_LOOKUP, SHOAL_MKDIR};
    struct workload *workload = question->asker->workload;
    uint64_t number = workload->counters.submitted;
    uint64_t ino = number % LOST_EVERY == 0
                       ? losses_probe(workload->options.losses, question->asker->node, number)
                       : 0;

    if (ino == 0) {
        return false;
    }
    question->about = ABOUT_LOST;
    question->request = (struct shoal_request){
        .operation = operations[number / LOST_EVERY % ARRAY_SIZE(operations)],
        .ino = ino,
        .name = "x",
        .name_bytes = 1,
        .mode = 0755};
    return true;
}

/* In the middle between those for what is lost. */
static bool ask_parent(struct question *question) {
    uint64_t number = question->asker->workload->counters.submitted;

    if (number % PARENT_EVERY != PARENT_EVERY / 2) {
        return false;
    }
    parents_ask(&question->request, number / PARENT_EVERY);
    question->about = ABOUT_PARENT;
    return true;
}

static bool ask_layout(struct question *question) {
    struct workload *workload = question->asker->workload;
    struct layouts *layouts = &workload->layouts;

    if (!layouts_is_due(layouts, workload->counters.submitted) || workload->file_count == 0) {
        return false;
    }
    layouts_ask(layouts, workload->files[layouts_file(layouts, workload->file_count)].ino,
                &question->request);
    question->about = ABOUT_LAYOUT;
    return true;
}

/* Most are small writes; some of them are on disk before the ring has no more room. */
static bool wraps_draw(struct question *question, struct handle *handle) {
    struct workload *workload = question->asker->workload;
    uint64_t size_max = workload->options.size_max;

    switch (workload_draw(workload, 16)) {
    case 0:
        return ask_handle(question, handle, SHOAL_FSYNC);
    case 1:
    case 2:
        return ask_read(question, handle);
    default:
        return (handle->flags & SHOAL_OPEN_WRITE) &&
               ask_write_at(question, handle, workload_draw(workload, size_max / 2),
                            1 + workload_draw(workload, 30000));
    }
}

static bool writes_draw(struct question *question, struct handle *handle) {
    return question->asker->workload->options.wraps ? wraps_draw(question, handle)
                                                    : overwrite_draw(question, handle);
}

static bool ask_back(struct question *question) {
    struct handle *handle = question->back;

    question->back = NULL;
    return handle && ask_handle(question, handle, SHOAL_RELEASE);
}

bool question_draw(struct question *question) {
    struct asker *asker = question->asker;
    struct handle *handle = handle_draw(asker);
    struct handle *unused = handle_free(asker);

    if (ask_back(question) || ask_lost(question)) {
        return true;
    }
    if (asker->workload->calm_ns == 0 && (ask_parent(question) || ask_layout(question))) {
        return true;
    }
    if (asker->workload->calm_ns > 0 ||
        (asker->workload->options.moves && workload_draw(asker->workload, 4) > 0)) {
        return ask_tree(question);
    }
    if (ask_promised(question) || ask_visit(question) || ask_growth(question)) {
        return true;
    }
    if (asker->workload->options.grows && workload_draw(asker->workload, 8) > 0) {
        return grows_draw(question, handle, unused);
    }
    if (asker->workload->options.unlinks && workload_draw(asker->workload, 8) > 0) {
        return ask_victim(question);
    }
    bool writes = asker->workload->options.overwrites || asker->workload->options.wraps;
    if (writes && handle && workload_draw(asker->workload, 8) > 0) {
        return writes_draw(question, handle);
    }
    switch (workload_draw(asker->workload, 22)) {
    case 20:
        return handle && ask_hole(question, handle);
    case 21:
        return handle && ask_promise(question, handle);
    case 0:
        return unused && asker->workload->file_count < asker->workload->options.files_max &&
               ask_create(question, unused);
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
        return handle && workload_draw(asker->workload, 3) == 0 && ask_cut(question, handle);
    case 6:
    case 7:
    case 8:
        return handle && ask_read(question, handle);
    case 9:
    case 10:
        return ask_name(question);
    case 11:
    case 12:
        return ask_victim(question);
    case 13:
        return ask_nameless(question);
    case 14:
    case 15:
    case 16:
        return ask_tree(question);
    default:
        return handle && ask_write(question, handle);
    }
}
