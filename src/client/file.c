/* What is known of an open file, and who may work on it when. */
#include "client/file.h"
#include "client/client_internal.h"
#include <assert.h>

/* Attributes are at most so old (close-to-open between mounts). */
#define FILE_OLD_NS NS_PER_S

bool file_is_owed(const struct open_file *file) {
    return file->size_owed || file->times_owed;
}

/* Somebody else may have written to them, or this client may have given them back. */
static void untouched_see(struct open_file *file) {
    struct attributes *attributes = &file->attributes;

    if (file->untouched == 0) {
        return;
    }
    if (attributes->data_state == DATA_CHUNKED && attributes->size == 0 &&
        attributes->truncate_seq == 0) {
        attributes->data_state = DATA_EMPTY;
    } else {
        file->untouched = 0;
    }
}

void file_made(struct open_file *file, const struct attributes *attributes,
               const struct capability *capability) {
    if (attributes->data_state == DATA_CHUNKED) {
        file->untouched = capability->generation;
    }
}

uint32_t file_untouched_give_back(struct open_file *file) {
    uint32_t generation = file->untouched;

    if (generation != 0) {
        file->untouched = 0;
        file->capability.generation = 0;
    }
    return generation;
}

bool file_untouched_take(struct open_file *file) {
    bool is = file->untouched != 0;

    if (is) {
        file_is_chunked(file);
    }
    return is;
}

void file_is_chunked(struct open_file *file) {
    file->untouched = 0;
    file->attributes.data_state = DATA_CHUNKED;
}

/* Ours counts as long as the server was not told: nothing but a truncation makes a file shorter. */
bool file_see(struct open_file *file, const struct attributes *attributes) {
    /* Never back to the inode, but when a power failure took the way out of it back. */
    bool back = file->seen && file->attributes.data_state == DATA_CHUNKED &&
                attributes->data_state != DATA_CHUNKED;
    /* A write into the inode is answered with the size as it is. */
    bool writes = file->writes_in_flight > 0 && attributes->data_state == DATA_CHUNKED;
    bool owed = !back && !file->size_is_void && (file->size_owed || writes);

    /* Of a directory that is closed nothing is said. */
    if (attributes->ino.value != file->ino.value) {
        return false;
    }
    if (file->seen && attributes->epoch < file->attributes.epoch) {
        return false;
    }
    if (file->seen && owed && attributes->truncate_seq == file->attributes.truncate_seq) {
        file->size = MAX(file->size, attributes->size);
    } else {
        file->size = attributes->size;
        file->size_owed = false;
    }
    file->size_is_void = false;
    file->attributes = *attributes;
    untouched_see(file);
    file->seen = true;
    file->seen_ns = env_now_ns(file->shard->client->options.env);
    return true;
}

/* What is no regular file has none, and no chunks; where it is said to have some they are looked
 * for by one that is at least a layout. A server of a version before tells none with some answers:
 * what is known stays. */
static void layout_take(struct open_file *file, const struct layout *layout) {
    static const struct layout least = {
        .pool_version = 1, .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1};

    if (layout_is_valid(layout)) {
        file->layout = *layout;
    } else if (!layout_is_valid(&file->layout)) {
        file->layout = least;
    }
}

void file_see_layout(struct open_file *file, const struct layout *layout) {
    if (file->capability.generation == 0) {
        layout_take(file, layout);
    }
}

static void capability_take(struct open_file *file, const struct capability *capability,
                            const struct layout *layout) {
    const struct capability *old = &file->capability;
    bool same = capability->generation == old->generation &&
                capability->truncate_seq == old->truncate_seq &&
                capability->key_number == old->key_number &&
                capability->signature[0] == old->signature[0] &&
                capability->signature[1] == old->signature[1];

    if (capability->generation != 0 && capability->generation != old->generation) {
        layout_take(file, layout);
    }
    file->capabilities += !same;
    file->capability = *capability;
}

/* A generation, once there is one, is the file's for good; 0 says only that the server answered
 * before. */
void file_see_capability(struct open_file *file, const struct capability *capability,
                         const struct layout *layout) {
    const struct capability *old = &file->capability;
    bool first = capability->generation != 0 && old->generation == 0;
    bool other = capability->generation != 0 && capability->generation != old->generation;
    bool older = capability->truncate_seq < old->truncate_seq ||
                 (capability->generation == 0 && old->generation != 0);
    bool newer = capability->truncate_seq > old->truncate_seq || first ||
                 (capability->rights & old->rights) == old->rights;

    if (capability->ino.value == file->ino.value && !older && newer && (!other || layout)) {
        capability_take(file, capability, layout);
    }
}

void file_restarted(struct open_file *file, const struct reopen_reply *reply) {
    /* Where it went back with its power, what we have is no newer than that; else no newer than it
     * was, whatever has changed there since. */
    file->attributes.epoch = MIN(file->attributes.epoch, reply->epoch);
    file->seen_ns = 0;
    bool known = reply->capability.ino.value == file->ino.value;
    uint32_t generation = reply->capability.generation;
    /* What it was told of the size may be among what it has lost; where it has lost that there are
     * these chunks, so is what was written to them, and nothing of that is told. */
    bool same = generation != 0 && generation == file->capability.generation;
    if (file->writer_count > 0 && file->attributes.data_state == DATA_CHUNKED) {
        file->size_owed = !known || same;
    }
    file->size_is_void = file->size_is_void || (known && generation != 0 && !same);
    if (known) {
        capability_take(file, &reply->capability, &reply->layout);
    }
}

void file_see_truncated(struct open_file *file, const struct attributes *attributes,
                        const struct capability *capability) {
    if (file->seen && attributes->epoch < file->attributes.epoch) {
        return;
    }
    file->size_owed = false;
    file_see(file, attributes);
    file->size = attributes->size;
    file_see_capability(file, capability, NULL);
}

void file_overlay(const struct open_file *file, struct attributes *attributes) {
    attributes->size = file->size;
    attributes->bytes_used = file_blocks_used(file, attributes);
    if (file->times_owed) {
        attributes->mtime_ns = MAX(attributes->mtime_ns, file->write_ns);
        attributes->ctime_ns = MAX(attributes->ctime_ns, file->write_ns);
    }
}

static void write_ended(struct open_file *file) {
    file->write_ns = (int64_t)env_wall_ns(file->shard->client->options.env);
    file->write_count++;
}

void file_may_have_changed(struct open_file *file) {
    write_ended(file);
    file->is_doubtful = true;
}

/* A write that went with a capability older than the last truncation counts as before it. */
void file_wrote(struct open_file *file, uint64_t end, uint32_t truncate_seq) {
    write_ended(file);
    file->times_owed = true;
    bool grows = end > file->size || (file->size_is_void && end > 0);
    if (truncate_seq >= file->attributes.truncate_seq && grows) {
        file->size = end;
        file->size_owed = true;
        file->size_is_void = false;
    }
}

void file_handle_added(struct open_file *file, const struct shoal_file *handle) {
    file->reader_count += handle->flags & SHOAL_OPEN_WRITE ? 0 : 1;
    file->writer_count += handle->flags & SHOAL_OPEN_WRITE ? 1 : 0;
    file->named_count += handle->named ? 1 : 0;
    file->name = MAX(file->name, handle->name);
    if (file->writer_count > 0 && !file->overlaid) {
        file->overlaid = true;
        file_blocks_begin(file);
        shard_overlay_begin(file->shard);
    }
    assert(file->overlaid == (file->writer_count > 0));
    assert(file->reader_count + file->writer_count <= file->pin_count);
}

void file_handle_removed(struct open_file *file, const struct shoal_file *handle) {
    struct attributes attributes = file->attributes;

    assert((handle->flags & SHOAL_OPEN_WRITE ? file->writer_count : file->reader_count) > 0);
    assert(file->overlaid == (file->writer_count > 0));
    assert(!handle->named || file->named_count > 0);
    file->reader_count -= handle->flags & SHOAL_OPEN_WRITE ? 0 : 1;
    file->writer_count -= handle->flags & SHOAL_OPEN_WRITE ? 1 : 0;
    file->named_count -= handle->named ? 1 : 0;
    if (file->writer_count == 0 && file->overlaid) {
        file_overlay(file, &attributes);
        file->overlaid = false;
        file->size_owed = false;
        file->times_owed = false;
        file->is_doubtful = false;
        file_blocks_forget(file);
        shard_overlay_end(file->shard, &attributes);
    }
}

void file_opening(struct open_file *file) {
    file->opening_count++;
}

void file_opened(struct open_file *file) {
    struct list closing;
    struct list_node *node;

    assert(file->opening_count > 0);
    if (--file->opening_count > 0) {
        return;
    }
    list_init(&closing);
    while ((node = list_pop_front(&file->closing)) != NULL) {
        list_push_back(&closing, node);
    }
    file_pin(file);
    while ((node = list_pop_front(&closing)) != NULL) {
        struct operation *operation = CONTAINER_OF(node, struct operation, node);

        operation->step(operation);
    }
    file_unpin(file);
}

bool file_close_waits(struct open_file *file, struct operation *operation) {
    if (file->opening_count == 0) {
        return false;
    }
    list_push_back(&file->closing, &operation->node);
    return true;
}

void file_reopen_fill(const struct open_file *file, struct reopen_request *request) {
    *request = (struct reopen_request){
        .ino = file->ino,
        .open_flags = (file->reader_count ? (uint32_t)OPEN_READ : 0) |
                      (file->writer_count ? (uint32_t)OPEN_READ | OPEN_WRITE : 0),
        .read_count = file->reader_count - file->named_count,
        .write_count = file->writer_count,
        .name = file->named_count ? file->name : 0,
        .who = {.uid = file->uid},
    };
}

static bool file_is_quiet(const struct open_file *file) {
    return !file->alone && file->reads_in_flight == 0 && file->writes_in_flight == 0;
}

void file_pin(struct open_file *file) {
    file->pin_count++;
}

void file_unpin(struct open_file *file) {
    assert(file->pin_count > 0);
    if (--file->pin_count == 0) {
        assert(file->reader_count + file->writer_count == 0 && !file->overlaid);
        assert(file->opening_count == 0 && list_is_empty(&file->closing));
        assert(file_is_quiet(file) && !file->renewing && file->fsyncs == 0);
        shard_forget(file->shard, file);
    }
}

static bool file_allows(const struct open_file *file, uint32_t need) {
    if (file->alone) {
        return false;
    }
    switch ((enum file_need)need) {
    case FILE_NEEDS_READ:
    case FILE_NEEDS_WRITE:
        return true;
    case FILE_NEEDS_APPEND:
    case FILE_NEEDS_QUIET:
        return file->writes_in_flight == 0;
    case FILE_NEEDS_ALL:
        break;
    }
    return file->writes_in_flight == 0 && file->reads_in_flight == 0;
}

static void file_count(struct open_file *file, struct operation *operation, uint32_t change) {
    switch ((enum file_need)operation->need) {
    case FILE_NEEDS_READ:
        assert(change == 1 ? !file->alone : file->reads_in_flight > 0);
        file->reads_in_flight += change;
        break;
    case FILE_NEEDS_WRITE:
    case FILE_NEEDS_APPEND:
        assert(change == 1 ? !file->alone : file->writes_in_flight > 0);
        file->writes_in_flight += change;
        break;
    case FILE_NEEDS_QUIET:
        break;
    case FILE_NEEDS_ALL:
        assert(change == 1 ? file_is_quiet(file) : file->alone == operation);
        file->alone = change == 1 ? operation : NULL;
        break;
    }
}

/* Not nested: a step that ends at once would otherwise start the next one from within. */
static void file_advance(struct open_file *file) {
    if (file->advancing) {
        return;
    }
    file->advancing = true;
    file_pin(file);
    while (!list_is_empty(&file->waiting)) {
        struct operation *operation =
            CONTAINER_OF(list_first(&file->waiting), struct operation, node);

        if (!file_allows(file, operation->need)) {
            break;
        }
        list_remove(&operation->node);
        file_count(file, operation, 1);
        operation->step(operation);
    }
    file->advancing = false;
    file_unpin(file);
}

void file_enter(struct open_file *file, struct operation *operation, uint32_t need) {
    operation->need = need;
    list_push_back(&file->waiting, &operation->node);
    file_advance(file);
}

void file_leave(struct open_file *file, struct operation *operation) {
    file_count(file, operation, UINT32_MAX);
    file_advance(file);
}

void file_enter_alone(struct open_file *file, struct operation *operation) {
    file_count(file, operation, UINT32_MAX);
    operation->need = FILE_NEEDS_ALL;
    list_push_front(&file->waiting, &operation->node);
    file_advance(file);
}

static void file_reopened(struct errand *errand);

static void renewal_begin(struct open_file *file, struct operation *operation) {
    struct errand *errand = &operation->errand;

    file->renewing = true;
    operation_errand_init(operation, errand, file_reopened);
    file_reopen_fill(file, &errand->call.request.reopen);
    errand_start_slot(errand, OP_REOPEN, ino_slot(file->ino));
}

/* That one was interrupted, or its time is up, is its own matter: the next one asks. */
static void file_renewed(struct open_file *file, struct operation *operation, int result) {
    bool is_own = result == -ERR_INTERRUPTED || result == -ERR_TIMED_OUT;
    struct list stale;
    struct list_node *node;

    assert(file->renewing && operation->file == file);
    file->renewing = false;
    list_init(&stale);
    if (is_own && (node = list_pop_front(&file->stale)) != NULL) {
        renewal_begin(file, CONTAINER_OF(node, struct operation, node));
    }
    while (!is_own && (node = list_pop_front(&file->stale)) != NULL) {
        list_push_back(&stale, node);
    }
    file_pin(file);
    do {
        operation->result = result;
        operation->step(operation);
        node = list_pop_front(&stale);
        operation = node ? CONTAINER_OF(node, struct operation, node) : NULL;
    } while (operation);
    file_unpin(file);
}

static void file_asked(struct errand *errand) {
    struct operation *operation = CONTAINER_OF(errand, struct operation, errand);
    struct open_file *file = operation->file;

    if (errand->call.result == 0) {
        file_see(file, &errand->call.reply.getattr.attributes);
    }
    file_renewed(file, operation, errand->call.result);
}

/* Somebody else may have truncated, so the size is asked for as well. */
static void file_reopened(struct errand *errand) {
    struct operation *operation = CONTAINER_OF(errand, struct operation, errand);
    struct open_file *file = operation->file;
    const struct capability *capability = &errand->call.reply.reopen.capability;

    if (errand->call.result) {
        file_renewed(file, operation, errand->call.result);
        return;
    }
    if (capability->truncate_seq >= file->capability.truncate_seq &&
        capability->ino.value == file->ino.value) {
        capability_take(file, capability, &errand->call.reply.reopen.layout);
    }
    operation_errand_init(operation, errand, file_asked);
    errand->call.request.getattr.ino = file->ino;
    errand_start_slot(errand, OP_GETATTR, ino_slot(file->ino));
}

bool file_is_old(const struct open_file *file, uint64_t now_ns) {
    bool truncated = file->capability.truncate_seq > file->attributes.truncate_seq;

    return truncated || (now_ns > file->seen_ns && now_ns - file->seen_ns > FILE_OLD_NS);
}

bool file_needs_renewal(const struct open_file *file) {
    return file->attributes.data_state == DATA_CHUNKED &&
           (file->capability.generation == 0 ||
            file->capability.truncate_seq < file->attributes.truncate_seq);
}

void file_renew(struct open_file *file, struct operation *operation) {
    if (file->renewing) {
        list_push_back(&file->stale, &operation->node);
        return;
    }
    assert(list_is_empty(&file->stale));
    renewal_begin(file, operation);
}
